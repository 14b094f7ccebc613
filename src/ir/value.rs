//! What stands for a value in a graph.

/// A value's place in its graph.
pub(crate) type ValueId = u32;
