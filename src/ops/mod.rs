//! The operations: each checks its operands, names its output and appends a node. None waits or reads.

mod activation;
mod binary;
mod cast;
mod compare;
pub(crate) mod conv2d;
mod elementwise;
pub(crate) mod epilogue;
mod generate;
pub(crate) mod layout;
pub(crate) mod matmul;
mod place;
mod reduce;
mod scalar;
mod softmax;
mod unary;
