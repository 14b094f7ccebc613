//! Softmax and its logarithm, as they are recorded.

use super::elementwise::Elementwise;
use super::value::ValueId;
use crate::shape::axes::Geometry;

/// Softmax of a value that has elements.
#[derive(Clone, Debug)]
pub(crate) struct Softmax {
    pub(crate) op: &'static str,
    pub(crate) logarithm: bool,
    pub(crate) input: ValueId,
    /// The elementwise op that makes the input element by element, which is then never stored.
    pub(crate) prologue: Option<Elementwise>,
    pub(crate) geometry: Geometry,
    pub(crate) output: ValueId,
}
