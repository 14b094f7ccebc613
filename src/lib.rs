//! Tidemill: a low-level Vulkan compute engine.

mod engine;
