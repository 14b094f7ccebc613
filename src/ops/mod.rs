//! The operations: each checks its operands, names its output and appends a node. None waits or reads.

mod elementwise;
mod generate;
pub(crate) mod layout;
