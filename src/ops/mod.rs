//! The operations: each checks its operands, names its output and appends a node. None waits or reads.

mod activation;
pub(crate) mod axes;
mod binary;
mod cast;
mod compare;
mod elementwise;
pub(crate) mod epilogue;
mod generate;
pub(crate) mod layout;
pub(crate) mod matmul;
mod reduce;
mod scalar;
mod softmax;
mod unary;
