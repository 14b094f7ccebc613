//! Everything that needs a device, on a real driver with validation and synchronization validation on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod accuracy;
mod cases;
mod elementwise;
mod fixtures;
mod fusion;
mod harness;
mod kernels;
mod layout;
mod matmul;
mod pool;
mod profile;
mod recording;
mod reduce;
mod sizes;
mod softmax;
mod transfers;
