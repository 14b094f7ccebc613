//! What we are measured against (the same driver driven bare, and the CPU at its best), and by.

pub(crate) mod clock;
pub(crate) mod reduce;
pub(crate) mod stream;
pub(crate) mod vulkan;
