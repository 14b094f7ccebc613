//! Softmax and its logarithm, as they are recorded.

use super::elementwise::Map;
use super::value::ValueId;
use crate::shape::axes::Geometry;

/// Softmax of a value that has elements.
#[derive(Clone, Debug)]
pub(crate) struct Softmax {
    pub(crate) op: &'static str,
    pub(crate) logarithm: bool,
    pub(crate) input: ValueId,
    /// The program that makes the input element by element, which is then never stored.
    pub(crate) head: Option<Map>,
    pub(crate) geometry: Geometry,
    pub(crate) output: ValueId,
}
