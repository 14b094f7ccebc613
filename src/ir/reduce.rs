//! Reductions along an axis, as they are recorded.

use super::elementwise::Elementwise;
use super::value::ValueId;
use crate::shape::axes::Geometry;

/// What is made from the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
    ArgMax,
    ArgMin,
    /// The root of the sum of squares.
    Norm,
    /// The sum of products with a second input.
    Dot,
    /// The mean of squared distances from means, which are the second input.
    Variance,
}

/// A reduction of a value that has elements, along an axis that has some.
#[derive(Clone, Debug)]
pub(crate) struct Reduce {
    pub(crate) op: &'static str,
    pub(crate) reduction: Reduction,
    pub(crate) input: ValueId,
    /// The other factor of a dot product, or the means of a variance.
    pub(crate) second: Option<ValueId>,
    /// The elementwise op that makes the input element by element, which is then never stored.
    pub(crate) prologue: Option<Elementwise>,
    pub(crate) geometry: Geometry,
    pub(crate) output: ValueId,
}
