//! Tensors that recordings and plans update: their versions while a recording is open, and their memory when it is submitted.
//!
//! An update goes to the tensor as the submission finds it, so that submissions which update one tensor take effect in their order. It
//! is written in the tensor's own memory, whatever work is in flight. If something still needs the old contents as they are (an open
//! recording that captured them, a read of the host's under way, another tensor that is a view), the tensor moves to other memory, and what
//! the update leaves is copied there by a submission in front.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ir::copy::Copy;
use crate::ir::graph::Node;
use crate::ir::value::{Label, Origin, StateId, TensorVersion, ValueId, ValueInfo};
use crate::runtime::commands::{BlockUse, Job};
use crate::runtime::core::{Core, OnShortage};
use crate::runtime::pool::Lease;
use crate::runtime::recording::{Recording, State, foreign_tensor};
use crate::runtime::tensor::{LockedOutput, Storage, Tensor};
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
    snapshots: SmallVec<[(ValueId, ValueId); 1]>,
}

impl Updated {
    /// The copy of an older version, if there is one.
    fn snapshot_of(&self, version: ValueId) -> Option<ValueId> {
        self.snapshots.iter().find(|(known, _)| *known == version).map(|(_, copy)| *copy)
    }

    fn bytes(&self) -> u64 {
        self.storage.dtype.storage_bytes(self.shape.elements())
    }
}

/// For what updates tensors.
impl Recording {
    /// The tensor's place among those that the recording updates. `whole` says that nothing of what is there is left.
    pub(crate) fn updated_tensor(&self, op: &'static str, tensor: &Tensor, whole: bool) -> Result<StateId> {
        if !Arc::ptr_eq(&tensor.storage.core, self.shared_core()) {
            return Err(foreign_tensor(op, &tensor.storage.core, self.core()));
        }
        if let Some(state) = self.known_state(&tensor.storage) {
            return Ok(state);
        }
        if whole {
            tensor.storage.check_assignable(op, tensor.shape())?;
        } else {
            let _contents = tensor.storage.settled(op, tensor.shape())?;
        }
        self.check_host_memory(op, tensor)?;
        self.keep_copies(&tensor.storage)?;
        let State { graph, tensors, updated, .. } = &mut *self.edit();
        let same = |(_, (storage, _)): &(u32, &(Arc<Storage>, Shape))| Arc::ptr_eq(storage, &tensor.storage);
        let captured = (0..).zip(&*tensors).filter(same).map(|(version, _)| version as TensorVersion);
        let state = graph.values.add_state(captured.collect());
        let current = graph.add_value(tensor.shape(), tensor.dtype(), Origin::State(state));
        let (storage, shape) = (tensor.storage.clone(), tensor.shape());
        updated.push(Updated { storage, shape, current, snapshots: SmallVec::new() });
        Ok(state)
    }

    /// Refuses to update the host's memory where the recording is to write it otherwise, or reads a view of it.
    fn check_host_memory(&self, op: &'static str, tensor: &Tensor) -> Result<()> {
        let (Some(lease), shape) = (tensor.storage.wrapped(), tensor.shape()) else { return Ok(()) };
        let State { leases, tensors, promised, .. } = &*self.state();
        if promised.iter().any(|kept| kept.address() == lease.address()) {
            return Err(Error::NotSubmitted { op, shape });
        }
        let view = |(read, (storage, _)): (&Lease, &(Arc<Storage>, Shape))| {
            read.address() == lease.address() && !Arc::ptr_eq(storage, &tensor.storage)
        };
        if leases.iter().zip(tensors).any(view) { Err(Error::ReadToo { op, shape }) } else { Ok(()) }
    }

    /// Refuses to read a view of the host's memory where a tensor in that memory is updated: both are in place.
    pub(crate) fn check_views(
        &self,
        op: &'static str,
        storage: &Arc<Storage>,
        lease: &Lease,
        shape: Shape,
    ) -> Result<()> {
        let updated = |updated: &Updated| updated.storage.shares_host_memory(storage);
        if lease.is_pinned() && self.state().updated.iter().any(updated) {
            return Err(Error::ReadToo { op, shape });
        }
        Ok(())
    }

    /// The tensor's version so far.
    pub(crate) fn current(&self, state: StateId) -> ValueId {
        self.state().updated[state as usize].current
    }

    /// A version that an operation is to write next, in a shape of as many elements. It is not the current one before
    /// [`set_current`](Recording::set_current).
    pub(crate) fn next_version(&self, state: StateId, shape: Shape) -> ValueId {
        let (_, dtype) = self.kind(self.current(state));
        self.edit().graph.add_value(shape, dtype, Origin::State(state))
    }

    /// From here on the tensor is read as an operation has left it.
    pub(crate) fn set_current(&self, version: ValueId) {
        let State { graph, updated, .. } = &mut *self.edit();
        if let Some(state) = graph.values.state_of(version) {
            updated[state as usize].current = version;
        }
    }

    /// The place of a tensor among those that are updated, if it is.
    pub(crate) fn known_state(&self, storage: &Arc<Storage>) -> Option<StateId> {
        let state = self.state();
        let place = state.updated.iter().position(|updated| Arc::ptr_eq(&updated.storage, storage))?;
        Some(place as StateId)
    }

    /// Whether a value is the contents of a tensor that is updated, as they are or were.
    pub(crate) fn is_state(&self, id: ValueId, storage: &Arc<Storage>) -> bool {
        let state = self.graph().values.state_of(id);
        state.is_some() && state == self.known_state(storage)
    }

    /// The value, or a copy that was made before an update if it is the contents of a tensor that have been updated since.
    pub(crate) fn as_of_call(&self, id: ValueId) -> Result<ValueId> {
        let (state, root) = {
            let graph = self.graph();
            (graph.values.state_of(id), graph.root(id))
        };
        let Some(state) = state.filter(|state| self.current(*state) != root) else { return Ok(id) };
        let known = self.state().updated[state as usize].snapshot_of(root);
        let copy = match known {
            Some(copy) => copy,
            None => self.snapshot(state, root)?,
        };
        Ok(self.shaped(copy, self.kind(id).0))
    }

    /// Copies a version of a tensor in front of the operation that updates it.
    fn snapshot(&self, state: StateId, version: ValueId) -> Result<ValueId> {
        let (shape, dtype) = self.kind(version);
        let copy = self.produce("copy", shape, dtype)?;
        let label = self.label("copy", copy);
        let State { graph, updated, inserted, .. } = &mut *self.edit();
        let writes = |node: &Node, fits: &dyn Fn(ValueId) -> bool| {
            let mut found = false;
            node.op.touches(|value, write| found |= write && fits(graph.root(value)));
            found
        };
        let made = graph.nodes.iter().position(|node| writes(node, &|root| root == version));
        let from = made.map_or(0, |place| place + 1);
        let of_tensor = |root: ValueId| graph.value(root).origin == Origin::State(state);
        let update = graph.nodes[from..].iter().position(|node| writes(node, &of_tensor));
        let place = update.map_or(graph.nodes.len(), |update| from + update);
        graph.nodes.insert(place, Node::new(label, Copy { input: version, output: copy }));
        *inserted += 1;
        updated[state as usize].snapshots.push((version, copy));
        Ok(copy)
    }

    /// What is kept as a view of the tensor's contents is kept as a copy, since the tensor is about to change.
    fn keep_copies(&self, storage: &Arc<Storage>) -> Result<()> {
        let views: SmallVec<[ValueId; 2]> = {
            let State { graph, tensors, .. } = &*self.state();
            let is_view = |info: &ValueInfo| match info.origin {
                Origin::Tensor(version) => Arc::ptr_eq(&tensors[version as usize].0, storage),
                Origin::State(_) | Origin::Produced | Origin::Alias(_) => false,
            };
            let kept =
                (0..).zip(graph.values.iter()).filter(|(_, info)| info.kept.is_some() && is_view(info));
            kept.map(|(id, _)| id).collect()
        };
        for view in views {
            let (shape, dtype) = self.kind(view);
            let copy = self.produce("copy", shape, dtype)?;
            self.push(self.label("copy", copy), Copy { input: view, output: copy })?;
            let values = &mut self.edit().graph.values;
            values[copy as usize].kept = values[view as usize].kept.take();
        }
        Ok(())
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

/// The memory in which a tensor is updated: its own, or other memory if something needs the old contents. The second is the old
/// memory, if it is to be copied. `own` leases on it are the submission's.
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

/// Locks tensors to update them, in one order for all threads. Waits for writes in place on other threads while nothing is locked. Gives
/// them in the order of the requests.
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

/// What a node that updates a tensor is called.
pub(crate) fn update_label(recording: &Recording, op: &'static str, part: Shape, of: ValueId) -> Label {
    Label { shape: part, ..recording.label(op, of) }
}
