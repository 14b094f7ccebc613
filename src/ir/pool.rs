//! Pooling as it is recorded.

use super::value::ValueId;
use crate::shape::windows::Windows;

/// The result for a window; numbers as in `glsl/pool.comp`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PoolKind {
    Max,
    /// The place of the largest element in its image.
    Place,
    /// The mean of the elements inside.
    Mean,
    /// The same with zeros for those of the padding.
    MeanOfAll,
    /// (Σ|x|^p)^(1/p)
    Norm(f32),
}

impl PoolKind {
    pub(crate) fn number(self) -> u32 {
        match self {
            PoolKind::Max => 0,
            PoolKind::Place => 1,
            PoolKind::Mean => 2,
            PoolKind::MeanOfAll => 3,
            PoolKind::Norm(_) => 4,
        }
    }
}

/// A number for each window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pooling {
    pub(crate) kind: PoolKind,
    pub(crate) windows: Windows,
    pub(crate) input: ValueId,
    pub(crate) output: ValueId,
}
