//! Everything that needs a device, on a real driver with validation and synchronization validation on.

mod accuracy;
mod cases;
mod elementwise;
mod harness;
mod layout;
