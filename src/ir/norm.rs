//! Normalisation of rows, as it is recorded.

use super::value::ValueId;
use crate::shape::norm::Weights;

/// What is added to the input before it is normalised, and the value that keeps the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Residual {
    pub(crate) input: ValueId,
    pub(crate) sum: ValueId,
}

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta` for each row of a value that has elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Norm {
    pub(crate) op: &'static str,
    /// Whether the mean is subtracted; otherwise the mean square stands for the variance.
    pub(crate) centred: bool,
    pub(crate) input: ValueId,
    pub(crate) residual: Option<Residual>,
    pub(crate) gamma: ValueId,
    pub(crate) beta: Option<ValueId>,
    pub(crate) weights: Weights,
    pub(crate) epsilon: f32,
    pub(crate) rows: u64,
    /// Elements of a row.
    pub(crate) extent: u64,
    pub(crate) output: ValueId,
}
