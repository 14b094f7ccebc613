//! Which values share memory: a pure function from lives to slots.
//!
//! Values that are kept get a block of their own. Temporaries share slots where their lives don't overlap. Sharing
//! makes the second tenant's writer wait for the first tenant's readers, so a slot is taken over only if a barrier
//! stands between them in any case; independent branches are never serialised. When memory is short, `tight`
//! gives that up.
//!
//! What only one node reads, element for element, that node writes its result over: a chain of elementwise nodes lives
//! in one slot, and if its end is kept, in that one's block. Nodes that carry out one program for some elements each count as
//! one here.

use crate::ir::graph::{Access, Graph, Origin, ValueId};
use crate::schedule::hazard::{BlockAccess, Hazards};
use crate::schedule::size_class::class_bytes;

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
    let lives = Lives::new(graph);
    let mut out = outer_homes(graph, &lives);
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
                let taken =
                    |home: Home| node.accesses.iter().any(|a| a.write && out.homes[a.value as usize] == home);
                let over = lives.overwritten(graph, i, access.value).map(|id| out.homes[id as usize]);
                let slot =
                    match (over.filter(|home| access.write && !taken(*home)), free.iter().position(fits)) {
                        (Some(Home::Slot(slot)), _) => slot,
                        (_, Some(found)) => free.swap_remove(found).0,
                        (_, None) => {
                            out.slots.push(bytes);
                            (out.slots.len() - 1) as u32
                        }
                    };
                out.slots[slot as usize] = out.slots[slot as usize].max(bytes);
                out.homes[id] = Home::Slot(slot);
            }
            if lives.dies_at(graph, access.value, i) && !dying.contains(&access.value) {
                dying.push(access.value);
            }
        }
        for &id in &dying {
            let home = out.homes[id as usize];
            let goes_on =
                |a: &Access| a.write && !dying.contains(&a.value) && out.homes[a.value as usize] == home;
            match home {
                // A result that nobody reads dies together with what it was written over.
                Home::Slot(slot) if free.contains(&(slot, stretch)) => {}
                Home::Slot(slot) if !node.accesses.iter().any(goes_on) => free.push((slot, stretch)),
                _ => {}
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

/// The homes of tensors, of values that are kept, and of what those are written over.
fn outer_homes(graph: &Graph, lives: &Lives) -> Assignment {
    let mut out = Assignment { homes: vec![Home::None; graph.values.len()], slots: Vec::new() };
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
    for id in 0..graph.values.len() {
        // A kept value's block has no other use before its writer runs: what that writes over may live there, and so on.
        let (home, mut at) = (out.homes[id], id as ValueId);
        while let Some(earlier) = lives.writer(at).and_then(|i| lives.overwritten(graph, i, at)) {
            if !matches!(home, Home::Slot(_)) || out.homes[earlier as usize] != Home::None {
                break;
            }
            out.homes[earlier as usize] = home;
            at = earlier;
        }
    }
    out
}

/// Who touches values, and when for the last time.
struct Lives {
    last_use: Vec<usize>,
    /// For each node, the first of those that carry out its program.
    program: Vec<usize>,
    /// The one program that reads a value, and the one that writes it, if there is just one: its first node.
    reader: Vec<Only>,
    writer: Vec<Only>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    None,
    One(usize),
    Several,
}

impl Only {
    fn note(&mut self, node: usize) {
        *self = match *self {
            Only::None => Only::One(node),
            Only::One(known) if known == node => *self,
            Only::One(_) | Only::Several => Only::Several,
        };
    }
}

impl Lives {
    fn new(graph: &Graph) -> Lives {
        let values = graph.values.len();
        let mut lives = Lives {
            last_use: vec![0; values],
            program: Vec::with_capacity(graph.nodes.len()),
            reader: vec![Only::None; values],
            writer: vec![Only::None; values],
        };
        let mut first = 0;
        for (i, node) in graph.nodes.iter().enumerate() {
            first = if node.continues { first } else { i };
            lives.program.push(first);
            for access in &node.accesses {
                let id = access.value as usize;
                lives.last_use[id] = i;
                if access.write { lives.writer[id].note(first) } else { lives.reader[id].note(first) }
            }
        }
        lives
    }

    fn writer(&self, id: ValueId) -> Option<usize> {
        match self.writer[id as usize] {
            Only::One(node) => Some(node),
            Only::None | Only::Several => None,
        }
    }

    fn dies_at(&self, graph: &Graph, id: ValueId, node: usize) -> bool {
        let value = graph.value(id);
        let temporary = value.origin == Origin::Produced && value.kept.is_none();
        temporary && self.last_use[id as usize] == node
    }

    /// A value of the same size that a node's program may write `result` over: it alone reads it, element for element.
    fn overwritten(&self, graph: &Graph, i: usize, result: ValueId) -> Option<ValueId> {
        let first = self.program[i];
        let nodes = first + self.program[first..].iter().take_while(|program| **program == first).count();
        let nodes = &graph.nodes[first..nodes];
        let in_place = |id: ValueId| {
            nodes.iter().all(|node| {
                let mut reads = node.accesses.iter().enumerate().filter(|(_, a)| !a.write && a.value == id);
                reads.all(|(k, _)| node.in_place & (1 << k) != 0)
            })
        };
        let candidates = nodes[0].accesses.iter().filter(|a| !a.write).map(|a| a.value);
        let fits = |&id: &ValueId| {
            self.dies_at(graph, id, first + nodes.len() - 1)
                && self.reader[id as usize] == Only::One(first)
                && self.writer(id).is_some_and(|writer| writer < first)
                && graph.bytes(id) == graph.bytes(result)
                && in_place(id)
        };
        candidates.filter(|_| nodes[0].in_place != 0).find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::{Access, Label, LabelName, Node, ValueId, Work};
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

    /// As `node`, reading the first of its operands element for element.
    fn in_place(graph: &mut Graph, reads: &[ValueId], write: ValueId) {
        node(graph, reads, write);
        let last = graph.nodes.len() - 1;
        graph.nodes[last].in_place = 1;
    }

    #[test]
    fn an_elementwise_chain_lives_in_one_slot() {
        let mut graph = Graph::default();
        let input = graph.add_value([1000].into(), DType::F32, Origin::Tensor(0));
        let mut last = value(&mut graph, 1000);
        in_place(&mut graph, &[input], last);
        for _ in 0..10 {
            let next = value(&mut graph, 1000);
            in_place(&mut graph, &[last, input], next);
            last = next;
        }
        let assignment = assign(&graph, false);
        assert_eq!(assignment.slots.len(), 1);
        assert_eq!(assignment.homes[input as usize], Home::Tensor(0), "tensors are never written over");
    }

    /// A program in two nodes, of the first elements and of the others, that reads the first of its operands element for
    /// element.
    fn in_windows(graph: &mut Graph, reads: &[ValueId], write: ValueId, reads_window: bool) {
        let (bytes, cut) = (graph.bytes(write), 4 * 900);
        for (offset, end) in [(0, cut), (cut, bytes)] {
            in_place(graph, reads, write);
            let last = graph.nodes.len() - 1;
            let node = &mut graph.nodes[last];
            node.continues = offset > 0;
            for access in node.accesses.iter_mut().filter(|access| access.write || reads_window) {
                (access.offset, access.bytes) = (offset, end - offset);
            }
        }
    }

    #[test]
    fn an_elementwise_chain_in_windows_lives_in_one_slot() {
        for reads_window in [true, false] {
            let mut graph = Graph::default();
            let input = graph.add_value([1000].into(), DType::F32, Origin::Tensor(0));
            let mut last = value(&mut graph, 1000);
            in_windows(&mut graph, &[input], last, reads_window);
            for _ in 0..10 {
                let next = value(&mut graph, 1000);
                in_windows(&mut graph, &[last, input], next, reads_window);
                last = next;
            }
            for tight in [false, true] {
                assert_eq!(assign(&graph, tight).slots.len(), 1, "{reads_window} {tight}");
            }
        }
    }

    #[test]
    fn what_one_window_reads_otherwise_is_not_written_over() {
        let mut graph = Graph::default();
        let [t, a, other] = [0; 3].map(|_| value(&mut graph, 1000));
        node(&mut graph, &[], t);
        in_windows(&mut graph, &[t], a, true);
        graph.nodes[2].in_place = 0;
        let homes = assign(&graph, false).homes;
        assert_ne!(homes[t as usize], homes[a as usize]);
        // Nor what somebody else reads after the windows.
        graph.nodes[2].in_place = 1;
        node(&mut graph, &[t], other);
        let homes = assign(&graph, false).homes;
        assert_ne!(homes[t as usize], homes[a as usize]);
    }

    #[test]
    fn what_others_read_or_what_is_read_otherwise_is_not_written_over() {
        let mut graph = Graph::default();
        let (t, a, b) = (value(&mut graph, 1000), value(&mut graph, 1000), value(&mut graph, 1000));
        node(&mut graph, &[], t);
        in_place(&mut graph, &[t], a);
        in_place(&mut graph, &[t], b);
        let homes = assign(&graph, false).homes;
        assert!(homes[t as usize] != homes[a as usize] && homes[t as usize] != homes[b as usize]);

        let mut graph = Graph::default();
        let (t, a) = (value(&mut graph, 1000), value(&mut graph, 1000));
        node(&mut graph, &[], t);
        in_place(&mut graph, &[t, t], a);
        assert_ne!(
            assign(&graph, false).homes[0],
            assign(&graph, false).homes[1],
            "read in another way, too"
        );
    }

    #[test]
    fn a_result_that_nobody_reads_gives_its_slot_back_once() {
        let mut graph = Graph::default();
        let [t, dead, a, b, c] = [0; 5].map(|_| value(&mut graph, 1000));
        node(&mut graph, &[], t);
        in_place(&mut graph, &[t], dead);
        node(&mut graph, &[], a);
        node(&mut graph, &[a], b);
        node(&mut graph, &[a, b], c);
        for tight in [false, true] {
            let homes = assign(&graph, tight).homes;
            assert_eq!(homes[t as usize], homes[dead as usize]);
            assert_ne!(homes[a as usize], homes[b as usize], "both are read at the end");
        }
    }

    #[test]
    fn two_results_never_take_the_same_slot() {
        let mut graph = Graph::default();
        let (t, a, b) = (value(&mut graph, 1000), value(&mut graph, 1000), value(&mut graph, 1000));
        node(&mut graph, &[], t);
        in_place(&mut graph, &[t], a);
        let second = graph.whole(b, true);
        graph.nodes[1].accesses.push(second);
        let c = value(&mut graph, 1000);
        node(&mut graph, &[a, b], c);
        let homes = assign(&graph, false).homes;
        assert_ne!(homes[a as usize], homes[b as usize]);
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
    fn a_slot_holds_the_largest_of_its_tenants() {
        let mut graph = Graph::default();
        // All of one class.
        let sizes = [1000, 1001, 1010, 1020, 1005, 1023];
        let values = sizes.map(|elements| value(&mut graph, elements));
        for (i, &made) in values.iter().enumerate() {
            node(&mut graph, &values[i.saturating_sub(1)..i], made);
        }
        for tight in [false, true] {
            let Assignment { homes, slots } = assign(&graph, tight);
            assert!(slots.len() < sizes.len(), "some share a slot");
            for (&value, elements) in values.iter().zip(sizes) {
                let Home::Slot(slot) = homes[value as usize] else { panic!("{value} has no slot") };
                assert!(slots[slot as usize] >= 4 * elements as u64, "{slots:?} {homes:?}");
            }
        }
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

        // Nor does a small value take a large slot that is free.
        let mut graph = Graph::default();
        let (a, b, small) = (value(&mut graph, 1000), value(&mut graph, 1000), value(&mut graph, 10));
        node(&mut graph, &[], a);
        node(&mut graph, &[a], b);
        node(&mut graph, &[b], small);
        for tight in [false, true] {
            assert!(assign(&graph, tight).slots.contains(&40), "{tight}");
        }
    }
}
