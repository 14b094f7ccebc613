//! Assignment of memory: a pure function from lifetimes to slots.
//!
//! Tensors from outside stay where they are, updated ones too. Values that are kept get a block of their own.
//! Temporaries share slots where their lives don't overlap. Sharing makes the second tenant's writer wait for the first
//! tenant's readers, so a slot is taken over only if a barrier stands between them in any case; independent branches
//! are never serialised. When memory is short, `tight` gives that up.
//!
//! An input whose only reader is one command that reads it element for element is overwritten in place: a chain of
//! elementwise commands lives in one slot, and if its end is kept, in that one's block. Commands that carry out one
//! operation for some elements each count as one here.

use crate::ir::command::Lowered;
use crate::ir::value::{Access, Origin, StateId, ValueId};
use crate::schedule::hazard::{BlockAccess, Hazards};
use crate::schedule::size_class::class_bytes;

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Never touched by a command and not kept.
    None,
    /// A tensor from outside, by its lease's index.
    Tensor(u32),
    /// A tensor from outside that is updated, by its place among those.
    State(StateId),
    /// A slot of the recording's own.
    Slot(u32),
}

/// The assignment of memory of a lowered graph.
#[derive(Debug, Default)]
pub(crate) struct Assignment {
    /// For each value.
    pub(crate) homes: Vec<Home>,
    /// The bytes of each slot.
    pub(crate) slots: Vec<u64>,
}

/// Assigns a home to every value of a lowered graph.
pub(crate) fn assign(lowered: &Lowered, tight: bool) -> Assignment {
    let lives = Lives::new(lowered);
    let mut out = outer_homes(lowered, &lives);
    // Free slots with the number of the stretch between barriers in which they were last touched.
    let mut free: Vec<(u32, u32)> = Vec::new();
    let mut hazards = Hazards::default();
    let mut dying: Vec<u32> = Vec::new();
    for (i, command) in lowered.commands.iter().enumerate() {
        // Hazards by value alone: what the graph itself demands.
        let by_value: smallvec::SmallVec<[BlockAccess; 4]> = command
            .accesses
            .iter()
            .map(|a| BlockAccess { block: a.value, offset: a.offset, bytes: a.bytes, write: a.write })
            .collect();
        hazards.node(&by_value);
        let stretch = hazards.barriers();
        dying.clear();
        for access in &command.accesses {
            let id = access.value as usize;
            if out.homes[id] == Home::None {
                let bytes = lowered.values.bytes(access.value);
                let fits = |&(slot, last): &(u32, u32)| {
                    class_bytes(out.slots[slot as usize]) == class_bytes(bytes) && (tight || last < stretch)
                };
                let taken = |home: Home| {
                    command.accesses.iter().any(|a| a.write && out.homes[a.value as usize] == home)
                };
                let over = lives.overwritten(lowered, i, access.value).map(|id| out.homes[id as usize]);
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
            if lives.dies_at(lowered, access.value, i) && !dying.contains(&access.value) {
                dying.push(access.value);
            }
        }
        for &id in &dying {
            let home = out.homes[id as usize];
            let goes_on =
                |a: &Access| a.write && !dying.contains(&a.value) && out.homes[a.value as usize] == home;
            match home {
                // A result without readers dies together with what it was written over.
                Home::Slot(slot) if free.contains(&(slot, stretch)) => {}
                Home::Slot(slot) if !command.accesses.iter().any(goes_on) => free.push((slot, stretch)),
                _ => {}
            }
        }
    }
    for id in 0..lowered.values.len() {
        if let Origin::Alias(root) = lowered.values[id].origin {
            out.homes[id] = out.homes[root as usize];
        }
    }
    out
}

/// The homes of tensors, of values that are kept, and of what those are written over.
fn outer_homes(lowered: &Lowered, lives: &Lives) -> Assignment {
    let mut out = Assignment { homes: vec![Home::None; lowered.values.len()], slots: Vec::new() };
    for (id, value) in lowered.values.iter().enumerate() {
        match value.origin {
            Origin::Tensor(lease) => out.homes[id] = Home::Tensor(lease),
            Origin::State(state) => out.homes[id] = Home::State(state),
            Origin::Produced if value.kept.is_some() => {
                out.homes[id] = Home::Slot(out.slots.len() as u32);
                out.slots.push(lowered.values.bytes(id as u32));
            }
            Origin::Produced | Origin::Alias(_) => {}
        }
    }
    for id in 0..lowered.values.len() {
        // A kept value's block has no other use before its writer runs: what that writes over may live there, and so
        // on.
        let (home, mut at) = (out.homes[id], id as ValueId);
        while let Some(earlier) = lives.writer(at).and_then(|i| lives.overwritten(lowered, i, at)) {
            if !matches!(home, Home::Slot(_)) || out.homes[earlier as usize] != Home::None {
                break;
            }
            out.homes[earlier as usize] = home;
            at = earlier;
        }
    }
    out
}

/// The commands that access values, and the last of them.
struct Lives {
    last_use: Vec<usize>,
    /// For each command, the first of those that carry out its operation.
    op_start: Vec<usize>,
    /// The one operation that reads a value, and the one that writes it, if there is just one: its first command.
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
    fn note(&mut self, command: usize) {
        *self = match *self {
            Only::None => Only::One(command),
            Only::One(known) if known == command => *self,
            Only::One(_) | Only::Several => Only::Several,
        };
    }
}

impl Lives {
    fn new(lowered: &Lowered) -> Lives {
        let values = lowered.values.len();
        let mut lives = Lives {
            last_use: vec![0; values],
            op_start: Vec::with_capacity(lowered.commands.len()),
            reader: vec![Only::None; values],
            writer: vec![Only::None; values],
        };
        let mut first = 0;
        for (i, command) in lowered.commands.iter().enumerate() {
            first = if command.continues { first } else { i };
            lives.op_start.push(first);
            for access in &command.accesses {
                let id = access.value as usize;
                lives.last_use[id] = i;
                if access.write { lives.writer[id].note(first) } else { lives.reader[id].note(first) }
            }
        }
        lives
    }

    fn writer(&self, id: ValueId) -> Option<usize> {
        match self.writer[id as usize] {
            Only::One(command) => Some(command),
            Only::None | Only::Several => None,
        }
    }

    fn dies_at(&self, lowered: &Lowered, id: ValueId, command: usize) -> bool {
        let value = lowered.values.value(id);
        let temporary = value.origin == Origin::Produced && value.kept.is_none();
        temporary && self.last_use[id as usize] == command
    }

    /// A value of the same size that a command's operation may write `result` over: it alone reads it, element for
    /// element.
    fn overwritten(&self, lowered: &Lowered, i: usize, result: ValueId) -> Option<ValueId> {
        let first = self.op_start[i];
        let commands = first + self.op_start[first..].iter().take_while(|start| **start == first).count();
        let commands = &lowered.commands[first..commands];
        let in_place = |id: ValueId| {
            commands.iter().all(|command| {
                let mut reads =
                    command.accesses.iter().enumerate().filter(|(_, a)| !a.write && a.value == id);
                reads.all(|(k, _)| command.in_place & (1 << k) != 0)
            })
        };
        let candidates = commands[0].accesses.iter().filter(|a| !a.write).map(|a| a.value);
        let fits = |&id: &ValueId| {
            self.dies_at(lowered, id, first + commands.len() - 1)
                && self.reader[id as usize] == Only::One(first)
                && self.writer(id).is_some_and(|writer| writer < first)
                && lowered.values.bytes(id) == lowered.values.bytes(result)
                && in_place(id)
        };
        candidates.filter(|_| commands[0].in_place != 0).find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::command::{Action, Command};
    use crate::ir::value::{Access, Label, LabelName, ValueId};
    use crate::shape::DType;
    use smallvec::SmallVec;

    fn value(lowered: &mut Lowered, elements: usize) -> ValueId {
        lowered.values.add_value([elements].into(), DType::F32, Origin::Produced)
    }

    fn command(lowered: &mut Lowered, reads: &[ValueId], write: ValueId) {
        let mut accesses: SmallVec<[Access; 4]> =
            reads.iter().map(|&v| lowered.values.whole(v, false)).collect();
        accesses.push(lowered.values.whole(write, true));
        let label = Label { op: LabelName::Op("test"), shape: [1].into(), dtype: DType::F32 };
        lowered.commands.push(Command::new(label, Action::Copy, accesses));
    }

    #[test]
    fn a_chain_of_temporaries_lives_in_three_slots_at_most() {
        let mut lowered = Lowered::default();
        let mut last = value(&mut lowered, 1000);
        command(&mut lowered, &[], last);
        for _ in 0..100 {
            let next = value(&mut lowered, 1000);
            command(&mut lowered, &[last], next);
            last = next;
        }
        assert!(assign(&lowered, false).slots.len() <= 3);
        assert_eq!(assign(&lowered, true).slots.len(), 2);
    }

    /// As `node`, reading the first of its operands element for element.
    fn in_place(lowered: &mut Lowered, reads: &[ValueId], write: ValueId) {
        command(lowered, reads, write);
        let last = lowered.commands.len() - 1;
        lowered.commands[last].in_place = 1;
    }

    #[test]
    fn an_elementwise_chain_lives_in_one_slot() {
        let mut lowered = Lowered::default();
        let input = lowered.values.add_value([1000].into(), DType::F32, Origin::Tensor(0));
        let mut last = value(&mut lowered, 1000);
        in_place(&mut lowered, &[input], last);
        for _ in 0..10 {
            let next = value(&mut lowered, 1000);
            in_place(&mut lowered, &[last, input], next);
            last = next;
        }
        let assignment = assign(&lowered, false);
        assert_eq!(assignment.slots.len(), 1);
        assert_eq!(assignment.homes[input as usize], Home::Tensor(0), "tensors are never written over");
    }

    /// An operation in two commands, of the first elements and of the others, that reads the first of its operands
    /// element for element.
    fn in_windows(lowered: &mut Lowered, reads: &[ValueId], write: ValueId, reads_window: bool) {
        let (bytes, cut) = (lowered.values.bytes(write), 4 * 900);
        for (offset, end) in [(0, cut), (cut, bytes)] {
            in_place(lowered, reads, write);
            let last = lowered.commands.len() - 1;
            let command = &mut lowered.commands[last];
            command.continues = offset > 0;
            for access in command.accesses.iter_mut().filter(|access| access.write || reads_window) {
                (access.offset, access.bytes) = (offset, end - offset);
            }
        }
    }

    #[test]
    fn an_elementwise_chain_in_windows_lives_in_one_slot() {
        for reads_window in [true, false] {
            let mut lowered = Lowered::default();
            let input = lowered.values.add_value([1000].into(), DType::F32, Origin::Tensor(0));
            let mut last = value(&mut lowered, 1000);
            in_windows(&mut lowered, &[input], last, reads_window);
            for _ in 0..10 {
                let next = value(&mut lowered, 1000);
                in_windows(&mut lowered, &[last, input], next, reads_window);
                last = next;
            }
            for tight in [false, true] {
                assert_eq!(assign(&lowered, tight).slots.len(), 1, "{reads_window} {tight}");
            }
        }
    }

    #[test]
    fn what_one_window_reads_otherwise_is_not_written_over() {
        let mut lowered = Lowered::default();
        let [t, a, other] = [0; 3].map(|_| value(&mut lowered, 1000));
        command(&mut lowered, &[], t);
        in_windows(&mut lowered, &[t], a, true);
        lowered.commands[2].in_place = 0;
        let homes = assign(&lowered, false).homes;
        assert_ne!(homes[t as usize], homes[a as usize]);
        // Nor a value that another command reads after the windows.
        lowered.commands[2].in_place = 1;
        command(&mut lowered, &[t], other);
        let homes = assign(&lowered, false).homes;
        assert_ne!(homes[t as usize], homes[a as usize]);
    }

    #[test]
    fn what_others_read_or_what_is_read_otherwise_is_not_written_over() {
        let mut lowered = Lowered::default();
        let (t, a, b) = (value(&mut lowered, 1000), value(&mut lowered, 1000), value(&mut lowered, 1000));
        command(&mut lowered, &[], t);
        in_place(&mut lowered, &[t], a);
        in_place(&mut lowered, &[t], b);
        let homes = assign(&lowered, false).homes;
        assert!(homes[t as usize] != homes[a as usize] && homes[t as usize] != homes[b as usize]);

        let mut lowered = Lowered::default();
        let (t, a) = (value(&mut lowered, 1000), value(&mut lowered, 1000));
        command(&mut lowered, &[], t);
        in_place(&mut lowered, &[t, t], a);
        assert_ne!(
            assign(&lowered, false).homes[0],
            assign(&lowered, false).homes[1],
            "read in another way, too"
        );
    }

    #[test]
    fn a_result_that_nobody_reads_gives_its_slot_back_once() {
        let mut lowered = Lowered::default();
        let [t, dead, a, b, c] = [0; 5].map(|_| value(&mut lowered, 1000));
        command(&mut lowered, &[], t);
        in_place(&mut lowered, &[t], dead);
        command(&mut lowered, &[], a);
        command(&mut lowered, &[a], b);
        command(&mut lowered, &[a, b], c);
        for tight in [false, true] {
            let homes = assign(&lowered, tight).homes;
            assert_eq!(homes[t as usize], homes[dead as usize]);
            assert_ne!(homes[a as usize], homes[b as usize], "both are read at the end");
        }
    }

    #[test]
    fn two_results_never_take_the_same_slot() {
        let mut lowered = Lowered::default();
        let (t, a, b) = (value(&mut lowered, 1000), value(&mut lowered, 1000), value(&mut lowered, 1000));
        command(&mut lowered, &[], t);
        in_place(&mut lowered, &[t], a);
        let second = lowered.values.whole(b, true);
        lowered.commands[1].accesses.push(second);
        let c = value(&mut lowered, 1000);
        command(&mut lowered, &[a, b], c);
        let homes = assign(&lowered, false).homes;
        assert_ne!(homes[a as usize], homes[b as usize]);
    }

    #[test]
    fn independent_branches_share_nothing_unless_memory_is_short() {
        let mut lowered = Lowered::default();
        let tensor = lowered.values.add_value([1000].into(), DType::F32, Origin::Tensor(0));
        for _ in 0..4 {
            let branch = value(&mut lowered, 1000);
            command(&mut lowered, &[tensor], branch);
        }
        assert_eq!(assign(&lowered, false).slots.len(), 4);
        assert_eq!(assign(&lowered, true).slots.len(), 1);
    }

    #[test]
    fn a_slot_holds_the_largest_of_its_tenants() {
        let mut lowered = Lowered::default();
        // All of one class.
        let sizes = [1000, 1001, 1010, 1020, 1005, 1023];
        let values = sizes.map(|elements| value(&mut lowered, elements));
        for (i, &made) in values.iter().enumerate() {
            command(&mut lowered, &values[i.saturating_sub(1)..i], made);
        }
        for tight in [false, true] {
            let Assignment { homes, slots } = assign(&lowered, tight);
            assert!(slots.len() < sizes.len(), "some share a slot");
            for (&value, elements) in values.iter().zip(sizes) {
                let Home::Slot(slot) = homes[value as usize] else { panic!("{value} has no slot") };
                assert!(slots[slot as usize] >= 4 * elements as u64, "{slots:?} {homes:?}");
            }
        }
    }

    #[test]
    fn a_slot_serves_its_own_class_only() {
        let mut lowered = Lowered::default();
        let (a, b, c) = (value(&mut lowered, 1000), value(&mut lowered, 10), value(&mut lowered, 1000));
        command(&mut lowered, &[], a);
        command(&mut lowered, &[a], b);
        command(&mut lowered, &[b], c);
        let assignment = assign(&lowered, false);
        assert_eq!(assignment.homes[a as usize], assignment.homes[c as usize]);
        assert_ne!(assignment.homes[a as usize], assignment.homes[b as usize]);

        // Nor does a small value take a large slot that is free.
        let mut lowered = Lowered::default();
        let (a, b, small) = (value(&mut lowered, 1000), value(&mut lowered, 1000), value(&mut lowered, 10));
        command(&mut lowered, &[], a);
        command(&mut lowered, &[a], b);
        command(&mut lowered, &[b], small);
        for tight in [false, true] {
            assert!(assign(&lowered, tight).slots.contains(&40), "{tight}");
        }
    }
}
