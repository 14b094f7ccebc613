//! Matmuls, as they are recorded.

use super::epilogue::Epilogue;
use super::value::ValueId;

/// One of the two matrices of a matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixOperand {
    pub(crate) value: ValueId,
    /// Whether neighbours in memory are neighbours in k: a left-hand side as it is, a right-hand side transposed.
    pub(crate) k_contiguous: bool,
    /// Strides of the batch dimensions, in elements; 0 where one matrix serves all.
    pub(crate) batch: [u32; 2],
}

/// `output[batch][m][n] = epilogue(alpha * lhs[m][k] * rhs[k][n])`. The result has elements; k may be 0.
#[derive(Clone, Debug)]
pub(crate) struct Matmul {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
    pub(crate) batch: [u32; 2],
    pub(crate) lhs: MatrixOperand,
    pub(crate) rhs: MatrixOperand,
    pub(crate) alpha: f32,
    pub(crate) epilogue: Epilogue,
    pub(crate) output: ValueId,
}
