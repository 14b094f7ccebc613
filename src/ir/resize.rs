//! Resizing as it is recorded.

use super::value::ValueId;
use crate::shape::resize::Resizing;

/// An image with other extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resize {
    pub(crate) how: Resizing,
    pub(crate) input: ValueId,
    pub(crate) output: ValueId,
}
