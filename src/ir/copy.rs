//! Operations that move or make elements and compute nothing else, as they are recorded.

use super::value::ValueId;
use crate::shape::axes::Geometry;
use crate::shape::{MAX_RANK, Shape};

/// All of a value, into another of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) input: ValueId,
    pub(crate) output: ValueId,
}

/// A dense tensor of words into a box of a larger one. Several of them, and a fill, may write parts of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyBox {
    pub(crate) input: ValueId,
    /// The input's shape: its own, or with a new dimension of one.
    pub(crate) shape: Shape,
    pub(crate) output: ValueId,
    /// Where its first element goes.
    pub(crate) corner: [usize; MAX_RANK],
    /// The version of a tensor that the output is the next one of: what the box leaves out stays as it is there.
    pub(crate) over: Option<ValueId>,
}

/// What of a gather's result has an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexed {
    /// Each slice.
    Slices,
    /// Each element.
    Elements,
    /// The first slice; the others follow it in the table.
    First,
}

/// Slices of a table along an axis by their indices, words all of them; an index outside the axis gives zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gather {
    pub(crate) table: ValueId,
    /// Of the table, along the axis.
    pub(crate) geometry: Geometry,
    pub(crate) rows: ValueId,
    pub(crate) indexed: Indexed,
    pub(crate) output: ValueId,
}

/// Elements that are made from their positions alone; numbers as in `glsl/generate.comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    IotaU32 = 0,
    IotaF32 = 1,
    Uniform = 2,
    Normal = 3,
}

/// Counts and random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generate {
    pub(crate) sequence: Sequence,
    pub(crate) seed: u64,
    pub(crate) output: ValueId,
}

/// Equal words. The output has some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) word: u32,
    pub(crate) output: ValueId,
}
