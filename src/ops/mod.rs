//! The operations: each checks its operands, names its output and appends a node. None waits or reads.
//!
//! This module owns the methods of [`Recording`](crate::Recording) that compute, a file for each family, and the
//! options that they take. It takes tensors and values, and gives values, or an error that says which numbers disagree.
//! It makes no decision about kernels.

mod activation;
pub(crate) mod attention;
mod binary;
mod bits;
mod cast;
mod compare;
pub(crate) mod conv2d;
mod dynamic;
mod elementwise;
pub(crate) mod epilogue;
mod generate;
mod index;
pub(crate) mod layout;
pub(crate) mod matmul;
pub(crate) mod norm;
mod pool;
mod reduce;
mod resize;
mod rotary;
mod scalar;
mod scan;
mod softmax;
pub(crate) mod sort;
mod state;
mod unary;
mod width;
