//! Everything that needs a device, on a real driver with validation and synchronization validation on.

mod cases;
mod elementwise;
mod fixtures;
mod harness;
mod kernels;
mod pool;
mod recording;
mod sizes;
mod transfers;
