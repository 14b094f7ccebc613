//! Scans and sorts, as they are recorded.

use super::value::ValueId;
use crate::shape::DType;
use crate::shape::axes::Geometry;

/// How elements of a scan join; numbers as in `glsl/scan.comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Monoid {
    SumF32 = 0,
    SumU32 = 1,
    ProductF32 = 2,
    ProductU32 = 3,
    Largest = 4,
    Smallest = 5,
}

/// The element type of keys; numbers as in `glsl/lib/order.glsl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    U32 = 0,
    I32 = 1,
    F32 = 2,
}

impl Key {
    /// Of an element type of whole words.
    pub(crate) fn of(dtype: DType) -> Key {
        match dtype {
            DType::F32 => Key::F32,
            DType::I32 => Key::I32,
            _ => Key::U32,
        }
    }
}

/// A scan along an axis of a value that has elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    pub(crate) monoid: Monoid,
    pub(crate) key: Key,
    /// Each result is without the element at its own place.
    pub(crate) exclusive: bool,
    /// From the end.
    pub(crate) reverse: bool,
    pub(crate) input: ValueId,
    pub(crate) geometry: Geometry,
    pub(crate) output: ValueId,
}

/// A stable sort of rows of a value that has elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) key: Key,
    pub(crate) descending: bool,
    pub(crate) input: ValueId,
    /// Elements of a row.
    pub(crate) extent: u64,
    /// The elements in order, if they are wanted.
    pub(crate) sorted: Option<ValueId>,
    /// The places in their rows that they come from, if they are wanted.
    pub(crate) places: Option<ValueId>,
}

/// For each element, how many elements of a sorted list come before it, or are not above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    pub(crate) key: Key,
    /// Equal ones count, too.
    pub(crate) behind: bool,
    /// A list that has elements.
    pub(crate) sorted: ValueId,
    pub(crate) wanted: ValueId,
    pub(crate) output: ValueId,
}

/// Sums of rows by segment, of rows whose ids are sorted. There are some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSum {
    /// The sorted ids.
    pub(crate) ids: ValueId,
    /// The places of their rows.
    pub(crate) places: ValueId,
    pub(crate) updates: ValueId,
    /// Of the result, along the axis that has a place for each segment.
    pub(crate) geometry: Geometry,
    pub(crate) output: ValueId,
}
