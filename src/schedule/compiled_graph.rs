//! A recording as it will run: fused and lowered, with a home for every value and barriers where they are needed. It is
//! made before memory is taken and commands are encoded.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::fusion::common::fuse_and_merge;
use crate::fusion::fuse_all;
use crate::fusion::in_place::assign_in_place;
use crate::fusion::needed::drop_unneeded;
use crate::ir::branches::branch;
use crate::ir::command::Lowered;
use crate::ir::graph::Graph;
use crate::ir::value::{Access, Origin, TensorVersion};
use crate::kernels::catalog::Catalog;
use crate::kernels::lower::lower;
use crate::schedule::hazard::{BlockAccess, Hazards};
use crate::schedule::memory::{Assignment, Home, assign};

/// How a compiled graph uses a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// The same, before the compiled graph's first own barrier: only there can earlier submissions be in the way.
    pub(crate) reads_early: bool,
    pub(crate) writes_early: bool,
}

impl Usage {
    pub(crate) fn note(&mut self, write: bool, early: bool) {
        if write {
            self.writes = true;
            self.writes_early |= early;
        } else {
            self.reads = true;
            self.reads_early |= early;
        }
    }

    /// The same, behind a barrier that stands in front of everything.
    pub(crate) fn behind_barrier(self) -> Usage {
        Usage { reads_early: false, writes_early: false, ..self }
    }
}

/// The amount of work in one execution of a compiled graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Dispatches, copies and fills.
    pub(crate) dispatches: u64,
    pub(crate) barriers: u64,
    /// Bytes that must cross the memory bus at the least, of those dispatches for which that is known.
    pub(crate) bytes: u64,
}

/// A lowered graph with its assignment of memory and its barriers. It has no operations any more. Blocks are numbered:
/// first the tensors that are read as they were captured, then those that are updated, then a block per slot.
#[derive(Debug)]
pub(crate) struct CompiledGraph {
    pub(crate) lowered: Lowered,
    pub(crate) assignment: Assignment,
    /// For each command, whether a barrier stands in front of it.
    pub(crate) barriers: Vec<bool>,
    /// For each block.
    pub(crate) usage: Vec<Usage>,
    /// How many of the blocks are tensors as they were captured.
    pub(crate) captured: usize,
    /// How many of the blocks are tensors from outside, captured or updated.
    pub(crate) tensors: usize,
    /// For each tensor that is updated, whether a part of its old contents is kept or read.
    pub(crate) reads_old: Vec<bool>,
}

impl CompiledGraph {
    /// Compiles a graph that captured this many tensors.
    pub(crate) fn new(
        catalog: &Catalog,
        fusion: bool,
        mut graph: Graph,
        captured: usize,
    ) -> Result<CompiledGraph> {
        drop_unneeded(&mut graph);
        // Together, operations may ask more of bindings than each of them alone, which was checked when it was
        // recorded.
        let limit = catalog.limits.storage_range_bytes;
        let large =
            |graph: &Graph| graph.values.iter().any(|v| v.dtype.storage_bytes(v.shape.elements()) > limit);
        let apart = (fusion && large(&graph)).then(|| graph.clone());
        if fusion {
            fuse_and_merge(&mut graph, fuse_all);
            // What prologues count themselves is not read any more.
            drop_unneeded(&mut graph);
            assign_in_place(&mut graph);
        }
        let reads_old = reads_old(&graph);
        let lowered = match (lower(graph, catalog), apart) {
            (Err(Error::BindingTooLarge { .. }), Some(apart)) => {
                branch!("compiled graph: only apart");
                lower(apart, catalog)
            }
            (lowered, _) => lowered,
        };
        Ok(CompiledGraph { reads_old, ..CompiledGraph::of(lowered?, captured) })
    }

    /// Compiles a list of commands.
    pub(crate) fn of(lowered: Lowered, captured: usize) -> CompiledGraph {
        let states = lowered.values.states().len();
        let mut compiled = CompiledGraph {
            captured,
            tensors: captured + states,
            reads_old: vec![true; states],
            lowered,
            assignment: Assignment::default(),
            barriers: Vec::new(),
            usage: Vec::new(),
        };
        compiled.place(false);
        compiled
    }

    /// Assigns homes to values, then places barriers. `tight` takes less memory and more barriers.
    pub(crate) fn place(&mut self, tight: bool) {
        self.assignment = assign(&self.lowered, tight);
        self.usage = vec![Usage::default(); self.tensors + self.assignment.slots.len()];
        let mut hazards = Hazards::default();
        let mut barriers = Vec::with_capacity(self.lowered.commands.len());
        for command in &self.lowered.commands {
            let accesses: SmallVec<[BlockAccess; 4]> = command
                .accesses
                .iter()
                .filter_map(|access| {
                    let Access { offset, bytes, write, .. } = *access;
                    let block = self.shared_block(self.block_of(access)?);
                    Some(BlockAccess { block: block as u32, offset, bytes, write })
                })
                .collect();
            barriers.push(hazards.node(&accesses));
            for access in &command.accesses {
                if let Some(block) = self.block_of(access) {
                    self.usage[block].note(access.write, hazards.barriers() == 0);
                }
            }
        }
        self.barriers = barriers;
    }

    /// The block that stands for all that may be the same memory: a tensor as it was captured, and as it is updated.
    fn shared_block(&self, block: usize) -> usize {
        let states = self.lowered.values.states().iter();
        let captured = |versions: &SmallVec<[TensorVersion; 1]>| versions.contains(&(block as TensorVersion));
        match states.clone().position(captured) {
            Some(state) if block < self.captured => self.captured + state,
            _ => block,
        }
    }

    /// The block behind an access.
    pub(crate) fn block_of(&self, access: &Access) -> Option<usize> {
        match self.assignment.homes[access.value as usize] {
            Home::Tensor(tensor) => Some(tensor as usize),
            Home::State(state) => Some(self.captured + state as usize),
            Home::Slot(slot) => Some(self.tensors + slot as usize),
            Home::None => None,
        }
    }

    /// The amount of work in one execution.
    pub(crate) fn amount(&self) -> Amount {
        let commands = &self.lowered.commands;
        Amount {
            dispatches: commands.len() as u64,
            barriers: self.barriers.iter().filter(|barrier| **barrier).count() as u64,
            bytes: commands.iter().filter_map(|command| command.cost.bytes).sum(),
        }
    }

    /// By slot: its bytes if it holds temporaries alone, `None` if a value that is kept lives there.
    pub(crate) fn temporaries(&self) -> SmallVec<[Option<u64>; 16]> {
        let slots = self.assignment.slots.iter();
        let mut temporaries: SmallVec<[Option<u64>; 16]> = slots.map(|bytes| Some(*bytes)).collect();
        for (value, home) in self.lowered.values.iter().zip(&self.assignment.homes) {
            if let (Some(_), Home::Slot(slot)) = (&value.kept, home) {
                temporaries[*slot as usize] = None;
            }
        }
        temporaries
    }
}

/// For each tensor that is updated, whether a node reads what no node has written: what the submission finds there.
fn reads_old(graph: &Graph) -> Vec<bool> {
    let mut written = vec![false; graph.values.len()];
    for node in &graph.nodes {
        node.op.touches(|value, write| written[graph.root(value) as usize] |= write);
    }
    let mut reads = vec![false; graph.values.states().len()];
    for node in &graph.nodes {
        node.op.touches(|value, write| {
            let root = graph.root(value) as usize;
            if let (Origin::State(state), false, false) = (graph.values[root].origin, write, written[root]) {
                reads[state as usize] = true;
            }
        });
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::build::Build;
    use crate::ir::elementwise::OpCode;
    use crate::kernels::families;
    use crate::vk::physical::{DeviceInfo, DeviceKind};

    /// This many additions of a tensor, one after the other.
    fn additions(count: usize, elements: usize) -> Graph {
        let mut b = Build::default();
        let tensor = b.tensor([elements]);
        let last = (0..count).fold(tensor, |last, _| b.op(OpCode::AddF32, &[last, tensor]));
        b.keep(last);
        b.graph
    }

    #[test]
    fn a_chain_of_any_size_lives_in_one_slot() {
        const MANY: usize = 1 << 18;
        // With the elements that fill no workgroup in a dispatch of their own, the rest of the slot is visible to both
        // where views span all of it, and a barrier stands between them.
        for (variant, elements, nodes, barriers) in [
            ("texel-64x8", MANY, 10, 9),
            ("texel-64x8", MANY + 1, 20, 18),
            ("buffer-64x8", MANY, 10, 9),
            ("buffer-64x8", MANY + 1, 20, 9),
            ("buffer-256x1", MANY + 1, 10, 9),
        ] {
            let mut info = DeviceInfo::example(DeviceKind::Cpu);
            info.limits.texel_elements = 1 << 20;
            let catalog =
                Catalog::new(families::ALL, &info, &[("elementwise".to_owned(), variant.to_owned())])
                    .unwrap();
            let compiled = CompiledGraph::new(&catalog, false, additions(10, elements), 1).unwrap();
            let slots = &compiled.assignment.slots;
            assert_eq!((compiled.lowered.commands.len(), slots.len()), (nodes, 1), "{variant} {elements}");
            assert_eq!(compiled.amount().barriers, barriers, "{variant} {elements}");
        }
    }
}
