//! Passes over a recorded graph, from graph to graph.
//!
//! This room owns what is dropped, what is computed once instead of twice, and what is computed together. It takes the operations as they
//! were recorded, and gives fewer of them with the same results, bit for bit. It knows what kernels have room for, and no device.

pub(crate) mod common;
mod def_use;
pub(crate) mod elementwise;
pub(crate) mod epilogue;
pub(crate) mod in_place;
pub(crate) mod needed;
pub(crate) mod prologue;

use crate::ir::graph::Graph;

/// All of fusion.
pub(crate) fn fuse_all(graph: &mut Graph) {
    // Epilogues that are chains first, so that elementwise ops don't grow beyond an epilogue; then those that had to be joined.
    epilogue::absorb_epilogues(graph);
    elementwise::fuse(graph);
    epilogue::absorb_epilogues(graph);
    prologue::absorb_prologues(graph);
}
