//! Operations by index, as they are recorded.

use smallvec::SmallVec;

use super::value::ValueId;
use crate::shape::MAX_RANK;
use crate::shape::axes::Geometry;

/// Rows of indices, one index for each of a table's first dimensions, become row numbers of that table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locate {
    pub(crate) indices: ValueId,
    /// Of the table's first dimensions.
    pub(crate) extents: SmallVec<[u32; MAX_RANK]>,
    pub(crate) output: ValueId,
}

/// How an update is combined with the element that it goes to; numbers as in `glsl/scatter.comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Add = 0,
    MaxI32 = 1,
    MaxU32 = 2,
    MinI32 = 3,
    MinU32 = 4,
    MaxF32 = 5,
    MinF32 = 6,
    /// The place gets one more than the last slot that names it.
    Last = 7,
    /// No two slots name one place.
    Store = 8,
    /// The same; the one index is the first slot's, and the others follow it.
    Run = 9,
}

/// Updates go to places that indices name, in a result that has contents before. What lies outside is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scatter {
    pub(crate) update: Update,
    /// One for each slice of the updates along the axis, or for the first.
    pub(crate) indices: ValueId,
    /// The indices, where there are no updates.
    pub(crate) updates: ValueId,
    /// Of the result, along the axis.
    pub(crate) geometry: Geometry,
    pub(crate) output: ValueId,
    /// The version of a tensor that the output is the next one of: what no update goes to stays as it is there.
    pub(crate) over: Option<ValueId>,
}

/// How often each number occurs, added to a result that has contents before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Histogram {
    pub(crate) numbers: ValueId,
    pub(crate) output: ValueId,
}
