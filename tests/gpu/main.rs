//! Everything that needs a device, on a real driver with validation and synchronization validation on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod accuracy;
mod asynchronous;
mod attention;
mod cases;
mod closures;
mod conv2d;
mod dynamic;
mod elementwise;
mod fixtures;
#[path = "../../src/fnv1a.rs"]
mod fnv1a;
mod fused_modules;
mod fusion;
mod graph;
mod half;
mod harness;
mod host_memory;
mod kernels;
mod layout;
mod loader;
mod matmul;
mod needed;
mod operands;
mod packed;
mod plan;
mod pool;
mod profile;
mod properties;
mod random;
mod recording;
mod reduce;
mod sizes;
mod softmax;
mod stream;
mod transfers;
mod tune;
mod uniform_store;
mod views;
