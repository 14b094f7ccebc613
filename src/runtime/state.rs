//! Tensors that recordings and plans update: their versions while a recording is open. Their memory is `updated.rs`.
//!
//! An update goes to the tensor as the submission finds it, so that submissions which update one tensor take effect in
//! their order. It is written in the tensor's own memory, whatever work is in flight. If something still needs the old
//! contents as they are (an open recording that captured them, a read of the host's under way, another tensor that is a
//! view), the tensor moves to other memory, and what the update leaves is copied there by a submission in front.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ir::copy::Copy;
use crate::ir::graph::Node;
use crate::ir::value::{Label, Origin, StateId, TensorVersion, ValueId, ValueInfo};
use crate::runtime::core::foreign_tensor;
use crate::runtime::pool::Lease;
use crate::runtime::recording::{Recording, State};
use crate::runtime::tensor::{Storage, Tensor};
use crate::runtime::updated::Updated;
use crate::shape::Shape;

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

    /// The value, or a copy that was made before an update if it is the contents of a tensor that have been updated
    /// since.
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

/// The label of a node that updates a tensor.
pub(crate) fn update_label(recording: &Recording, op: &'static str, part: Shape, of: ValueId) -> Label {
    Label { shape: part, ..recording.label(op, of) }
}
