//! The memory of tensors that recordings and plans update: locked, and moved where something still needs the old
//! contents.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::Result;
use crate::ir::value::ValueId;
use crate::runtime::commands::{BlockUse, Job};
use crate::runtime::core::{Core, OnShortage};
use crate::runtime::pool::Lease;
use crate::runtime::tensor::{LockedOutput, Storage};
use crate::schedule::compiled_graph::{Amount, CompiledGraph};
use crate::shape::Shape;
use crate::vk::buffer::MemoryKind;
use crate::vk::command::{Barrier, Bound, CommandSlot};

/// A tensor that a recording updates.
pub(crate) struct Updated {
    pub(crate) storage: Arc<Storage>,
    pub(crate) shape: Shape,
    /// The version that is read from now on.
    pub(crate) current: ValueId,
    /// Older versions that are still read, each with a copy of it.
    pub(super) snapshots: SmallVec<[(ValueId, ValueId); 1]>,
}

impl Updated {
    /// The copy of an older version, if there is one.
    pub(super) fn snapshot_of(&self, version: ValueId) -> Option<ValueId> {
        self.snapshots.iter().find(|(known, _)| *known == version).map(|(_, copy)| *copy)
    }

    fn bytes(&self) -> u64 {
        self.storage.dtype.storage_bytes(self.shape.elements())
    }
}

/// The blocks of tensors that a submission updates, locked so that no other thread reads or writes them meanwhile.
pub(crate) struct LockedStates<'a> {
    /// In the order of their places.
    pub(crate) tensors: Vec<(LockedOutput<'a>, Lease)>,
    /// What is to be copied first: from the old memory of a tensor to the new.
    pub(crate) moved: SmallVec<[(Lease, Lease, u64); 1]>,
}

impl<'a> LockedStates<'a> {
    /// Locks the tensors that a recording updates. `captured` are the blocks that it reads.
    pub(crate) fn of_recording(
        core: &Core,
        compiled: &CompiledGraph,
        states: &'a [Updated],
        captured: &[Lease],
        on_shortage: OnShortage,
    ) -> Result<LockedStates<'a>> {
        let requests: Vec<_> = (states.iter().zip(&compiled.reads_old))
            .map(|(updated, reads_old)| (&*updated.storage, updated.shape, *reads_old))
            .collect();
        let locked = lock_all("end_recording", &requests)?;
        let mut all = LockedStates { tensors: Vec::with_capacity(states.len()), moved: SmallVec::new() };
        for ((i, updated), locked) in states.iter().enumerate().zip(locked) {
            let versions = &compiled.lowered.values.states()[i];
            let address = locked.lease().map(Lease::address);
            let own = versions.iter().filter(|&&v| Some(captured[v as usize].address()) == address).count();
            let (bytes, reads_old) = (updated.bytes(), compiled.reads_old[i]);
            all.add(core, locked, (bytes, own, reads_old), on_shortage)?;
        }
        Ok(all)
    }

    /// Finds memory for one more.
    fn add(
        &mut self,
        core: &Core,
        locked: LockedOutput<'a>,
        (bytes, own, reads_old): (u64, usize, bool),
        on_shortage: OnShortage,
    ) -> Result<()> {
        let (lease, moved) = place(core, &locked, (bytes, own, reads_old), on_shortage)?;
        self.moved.extend(moved.map(|old| (old, lease.clone(), bytes)));
        self.tensors.push((locked, lease));
        Ok(())
    }

    /// Encodes the copies, with a barrier behind them, where they have no submission of their own.
    pub(crate) fn encode_moves(&self, slot: &mut CommandSlot) {
        for (from, to, bytes) in &self.moved {
            encode_move(slot, from, to, *bytes);
        }
        if !self.moved.is_empty() {
            slot.barrier(Barrier::Device);
        }
    }
}

/// The memory in which a tensor is updated: its own, or other memory if something needs the old contents. The second is
/// the old memory, if it is to be copied. `own` leases on it are the submission's.
pub(crate) fn place(
    core: &Core,
    locked: &LockedOutput<'_>,
    (bytes, own, reads_old): (u64, usize, bool),
    on_shortage: OnShortage,
) -> Result<(Lease, Option<Lease>)> {
    if let Some(lease) = locked.lease().filter(|_| locked.is_replaceable_beside(own)) {
        return Ok((lease.clone(), None));
    }
    let lease = core.acquire_with(MemoryKind::Device, bytes, on_shortage)?;
    Ok((lease, locked.lease().filter(|_| reads_old).cloned()))
}

/// Locks tensors to update them, in one order for all threads. Waits for writes in place on other threads while nothing
/// is locked. Gives them in the order of the requests.
fn lock_all<'a>(op: &'static str, requests: &[(&'a Storage, Shape, bool)]) -> Result<Vec<LockedOutput<'a>>> {
    let mut order: SmallVec<[usize; 8]> = (0..requests.len()).collect();
    order.sort_unstable_by_key(|&i| std::ptr::from_ref(requests[i].0).addr());
    'again: loop {
        let mut locked: Vec<(usize, LockedOutput<'a>)> = Vec::with_capacity(order.len());
        for &i in &order {
            let (storage, shape, reads_old) = requests[i];
            let Some(one) = storage.try_lock_state(op, shape, reads_old)? else {
                drop(locked);
                storage.wait_written();
                continue 'again;
            };
            locked.push((i, one));
        }
        locked.sort_unstable_by_key(|(i, _)| *i);
        return Ok(locked.into_iter().map(|(_, one)| one).collect());
    }
}

fn encode_move(slot: &mut CommandSlot, from: &Lease, to: &Lease, bytes: u64) {
    slot.begin_label("move");
    let bound = |lease: &'_ Lease| lease.block().buffer.size_bytes().min(bytes);
    let bytes = bound(from).min(bound(to));
    slot.copy(
        Bound { buffer: &from.block().buffer, offset: 0, bytes },
        Bound { buffer: &to.block().buffer, offset: 0, bytes },
    );
    slot.end_label();
}

impl Core {
    /// Copies what an update leaves of tensors that have moved, in a submission of its own in front.
    pub(crate) fn move_contents(&self, moved: &[(Lease, Lease, u64)]) -> Result<()> {
        if moved.is_empty() {
            return Ok(());
        }
        let mut slot = self.timeline.take_slot()?;
        slot.begin()?;
        let mut uses = Vec::with_capacity(2 * moved.len());
        let mut amount = Amount::default();
        for (from, to, bytes) in moved {
            encode_move(&mut slot, from, to, *bytes);
            uses.extend([BlockUse::reading(from.hold()), BlockUse::writing(to.hold())]);
            amount.dispatches += 1;
            amount.bytes += 2 * bytes;
        }
        slot.barrier(Barrier::Host);
        slot.end()?;
        self.timeline.submit(Job::plain(slot, uses))?;
        self.counters.moved(amount);
        Ok(())
    }
}
