//! All decisions about a recording before memory is taken.
//!
//! This module owns the order of passes, lowering, the assignment of values to blocks, and the placement of barriers.
//! It takes a recorded graph and a catalog, and returns a list of dispatches, copies and fills with a home for every
//! value. All of it is pure functions, tested without a device.

pub(crate) mod compiled_graph;
pub(crate) mod explain;
#[cfg(test)]
mod fusion_properties;
pub(crate) mod hazard;
#[cfg(test)]
mod interpreter;
pub(crate) mod memory;
pub(crate) mod size_class;
