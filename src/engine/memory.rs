//! Which values share memory: a pure function from lives to slots.
//!
//! Values that are kept get a block of their own. Temporaries share slots where their lives don't overlap. Sharing
//! makes the second tenant's writer wait for the first tenant's readers, so a slot is taken over only if a barrier
//! stands between them in any case; independent branches are never serialised. When memory is short, `tight`
//! gives that up.

use super::graph::{Graph, Origin};
use super::hazard::{BlockAccess, Hazards};
use super::pool::class_bytes;

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Never touched by a node and not kept.
    None,
    /// A tensor from outside, by its lease's index.
    Tensor(u32),
    /// A slot of the recording's own.
    Slot(u32),
}

/// The memory of a graph.
#[derive(Debug, Default)]
pub(crate) struct Assignment {
    /// For each value.
    pub(crate) homes: Vec<Home>,
    /// The bytes of each slot.
    pub(crate) slots: Vec<u64>,
}

/// Gives every value of a lowered graph its home.
pub(crate) fn assign(graph: &Graph, tight: bool) -> Assignment {
    let mut out = Assignment { homes: vec![Home::None; graph.values.len()], slots: Vec::new() };
    let mut last_use = vec![0usize; graph.values.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        for access in &node.accesses {
            last_use[access.value as usize] = i;
        }
    }
    for (id, value) in graph.values.iter().enumerate() {
        match value.origin {
            Origin::Tensor(lease) => out.homes[id] = Home::Tensor(lease),
            Origin::Produced if value.kept.is_some() => {
                out.homes[id] = Home::Slot(out.slots.len() as u32);
                out.slots.push(graph.bytes(id as u32));
            }
            Origin::Produced | Origin::Alias(_) => {}
        }
    }

    // Free slots with the number of the stretch between barriers in which they were last touched.
    let mut free: Vec<(u32, u32)> = Vec::new();
    let mut hazards = Hazards::default();
    let mut dying: Vec<u32> = Vec::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        // Hazards by value alone: what the graph itself demands.
        let by_value: smallvec::SmallVec<[BlockAccess; 4]> = node
            .accesses
            .iter()
            .map(|a| BlockAccess { block: a.value, offset: a.offset, bytes: a.bytes, write: a.write })
            .collect();
        hazards.node(&by_value);
        let stretch = hazards.barriers();
        dying.clear();
        for access in &node.accesses {
            let id = access.value as usize;
            if out.homes[id] == Home::None {
                let bytes = graph.bytes(access.value);
                let fits = |&(slot, last): &(u32, u32)| {
                    class_bytes(out.slots[slot as usize]) == class_bytes(bytes) && (tight || last < stretch)
                };
                let slot = match free.iter().position(fits) {
                    Some(found) => free.swap_remove(found).0,
                    None => {
                        out.slots.push(bytes);
                        (out.slots.len() - 1) as u32
                    }
                };
                out.slots[slot as usize] = out.slots[slot as usize].max(bytes);
                out.homes[id] = Home::Slot(slot);
            }
            let temporary = graph.values[id].origin == Origin::Produced && graph.values[id].kept.is_none();
            if temporary && last_use[id] == i && !dying.contains(&access.value) {
                dying.push(access.value);
            }
        }
        for &id in &dying {
            if let Home::Slot(slot) = out.homes[id as usize] {
                free.push((slot, stretch));
            }
        }
    }
    for id in 0..graph.values.len() {
        if let Origin::Alias(root) = graph.values[id].origin {
            out.homes[id] = out.homes[root as usize];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::graph::{Access, Label, LabelName, Node, ValueId, Work};
    use crate::shape::DType;
    use smallvec::SmallVec;

    fn value(graph: &mut Graph, elements: usize) -> ValueId {
        graph.add_value([elements].into(), DType::F32, Origin::Produced)
    }

    fn node(graph: &mut Graph, reads: &[ValueId], write: ValueId) {
        let mut accesses: SmallVec<[Access; 4]> = reads.iter().map(|&v| graph.whole(v, false)).collect();
        accesses.push(graph.whole(write, true));
        let label = Label { op: LabelName::Op("test"), shape: [1].into(), dtype: DType::F32 };
        graph.nodes.push(Node::new(label, Work::Copy, accesses));
    }

    #[test]
    fn a_chain_of_temporaries_lives_in_three_slots_at_most() {
        let mut graph = Graph::default();
        let mut last = value(&mut graph, 1000);
        node(&mut graph, &[], last);
        for _ in 0..100 {
            let next = value(&mut graph, 1000);
            node(&mut graph, &[last], next);
            last = next;
        }
        assert!(assign(&graph, false).slots.len() <= 3);
        assert_eq!(assign(&graph, true).slots.len(), 2);
    }

    #[test]
    fn independent_branches_share_nothing_unless_memory_is_short() {
        let mut graph = Graph::default();
        let tensor = graph.add_value([1000].into(), DType::F32, Origin::Tensor(0));
        for _ in 0..4 {
            let branch = value(&mut graph, 1000);
            node(&mut graph, &[tensor], branch);
        }
        assert_eq!(assign(&graph, false).slots.len(), 4);
        assert_eq!(assign(&graph, true).slots.len(), 1);
    }

    #[test]
    fn a_slot_serves_its_own_class_only() {
        let mut graph = Graph::default();
        let (a, b, c) = (value(&mut graph, 1000), value(&mut graph, 10), value(&mut graph, 1000));
        node(&mut graph, &[], a);
        node(&mut graph, &[a], b);
        node(&mut graph, &[b], c);
        let assignment = assign(&graph, false);
        assert_eq!(assignment.homes[a as usize], assignment.homes[c as usize]);
        assert_ne!(assignment.homes[a as usize], assignment.homes[b as usize]);
    }
}
