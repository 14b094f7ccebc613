//! Kernels, and the lowering of operations to dispatches of them.
//!
//! This module owns the families of kernels, the catalog of their variants, the embedded SPIR-V modules, and a folder
//! for each family of operations with its lowering; `lower.rs` chooses among them. It takes operations and the limits
//! of a device, and gives dispatches, copies and fills. It makes no pipeline and takes no memory.

pub(crate) mod attention;
pub(crate) mod axis;
pub(crate) mod bindings;
pub(crate) mod bounds;
pub(crate) mod catalog;
pub(crate) mod conv2d;
pub(crate) mod copy;
pub(crate) mod division;
pub(crate) mod elementwise;
pub(crate) mod epilogue;
pub(crate) mod families;
pub(crate) mod index;
pub(crate) mod launch;
pub(crate) mod lower;
pub(crate) mod matmul;
pub(crate) mod modules;
pub(crate) mod pack;
pub(crate) mod pool;
pub(crate) mod resize;
pub(crate) mod sort;
pub(crate) mod uniform_store;
pub(crate) mod variant;
