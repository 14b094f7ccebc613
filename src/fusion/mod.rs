//! Passes over a recorded graph, from graph to graph.
//!
//! This module drops dead operations, merges equal ones, and fuses those that can share a kernel. It takes the recorded
//! operations, and returns fewer of them with the same results, bit for bit. It knows the limits of kernels, and no
//! device.

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
    // Epilogues that are chains first, so that elementwise ops don't grow beyond an epilogue; then those that had to be
    // joined.
    epilogue::absorb_epilogues(graph);
    elementwise::fuse(graph);
    epilogue::absorb_epilogues(graph);
    prologue::absorb_prologues(graph);
}
