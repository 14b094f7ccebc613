//! Life on a device that an application has made for itself, with validation and synchronization validation on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "the host's side is plain Vulkan")]
#![allow(unsafe_code, reason = "the host's side is plain Vulkan")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod adoption;
mod buffers;
mod commands;
mod host;
mod names;
mod semaphores;
