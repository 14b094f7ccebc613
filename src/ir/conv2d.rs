//! Convolutions over two dimensions, as they are recorded.

use super::epilogue::Epilogue;
use super::value::ValueId;

/// `output[image][channel][y][x]`: over two dimensions, the inner one last everywhere. The result has elements.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    pub(crate) input: ValueId,
    /// As [`PackWeights`] leaves them.
    pub(crate) weights: ValueId,
    pub(crate) images: u32,
    pub(crate) groups: u32,
    /// Of the input, in a group.
    pub(crate) channels: u32,
    /// Of the result, in a group.
    pub(crate) rows: u32,
    pub(crate) size: [u32; 2],
    pub(crate) taps: [u32; 2],
    pub(crate) result: [u32; 2],
    pub(crate) stride: [u32; 2],
    pub(crate) dilation: [u32; 2],
    /// Zeros before the input; those after it follow from the rest.
    pub(crate) padding: [u32; 2],
    pub(crate) epilogue: Epilogue,
    pub(crate) output: ValueId,
}

/// Puts weights into the order in which all kernels read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackWeights {
    /// `[group * rows][channels][taps][taps]`.
    pub(crate) weights: ValueId,
    pub(crate) groups: u32,
    /// Channels of the result in a group.
    pub(crate) rows: u32,
    /// Matmuls in one element of the result.
    pub(crate) depth: u32,
    /// `[group][channel][kernel row][tap][row]`, rows padded to fours, f32.
    pub(crate) output: ValueId,
}
