//! Attention as it is recorded.

use super::value::ValueId;
use crate::shape::attention::{Extents, Rules};

/// What is told of pairs of a query and a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mask {
    pub(crate) value: ValueId,
    /// Numbers that are added to scores; otherwise a 0 hides a key.
    pub(crate) added: bool,
    /// Elements from one batch, head, token and key to the next.
    pub(crate) strides: [u32; 4],
}

/// `softmax(scale · q kᵀ + mask) v` of operands whose rows are whole groups of four, and that have elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attention {
    pub(crate) extents: Extents,
    pub(crate) rules: Rules,
    pub(crate) scale: f32,
    pub(crate) q: ValueId,
    pub(crate) k: ValueId,
    pub(crate) v: ValueId,
    pub(crate) mask: Option<Mask>,
    /// One number: how many keys there are, at most as many as k has.
    pub(crate) length: Option<ValueId>,
    pub(crate) output: ValueId,
}
