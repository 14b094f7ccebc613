//! Recorded operations and executed commands, as plain data.
//!
//! This module owns the two kinds of graph. A [`Graph`](graph::Graph) has values and [operations](op::Op), as they were
//! recorded. Lowering turns it into [`Lowered`](command::Lowered): more values, and [commands](command::Command)
//! (dispatches, copies and fills) with the bytes that each of them reads and writes. Nothing here has memory, a device
//! or a choice of kernels. It takes shapes and element types from the base, and gives types to every layer above.

pub(crate) mod attention;
pub(crate) mod branches;
#[cfg(test)]
pub(crate) mod build;
pub(crate) mod command;
pub(crate) mod conv2d;
pub(crate) mod copy;
pub(crate) mod dispatch;
pub(crate) mod elementwise;
pub(crate) mod epilogue;
pub(crate) mod graph;
pub(crate) mod index;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod op;
pub(crate) mod op_code;
pub(crate) mod pipeline_key;
pub(crate) mod pool;
pub(crate) mod reduce;
pub(crate) mod resize;
pub(crate) mod rotary;
pub(crate) mod scan;
pub(crate) mod softmax;
pub(crate) mod value;
