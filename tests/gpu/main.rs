//! Everything that needs a device, on a real driver with validation and synchronization validation on.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod accuracy;
mod cases;
mod elementwise;
mod harness;
mod layout;
mod profile;
