//! What we are measured against (the same driver driven bare, and the CPU at its best), and by.

pub(crate) mod clock;
pub(crate) mod fused;
pub(crate) mod gemm;
pub(crate) mod reduce;
pub(crate) mod stream;
pub(crate) mod tiled;
pub(crate) mod vulkan;
