//! Tidemill: a low-level Vulkan compute engine.

mod engine;
pub mod spirv;
