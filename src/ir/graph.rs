//! The graph of a recording: values, and the operations on them in order. Plain data: no memory, no device, no choice
//! of kernels.
//!
//! **Values are SSA, tensors have versions.** A value is made once, by the operation or the operations that write it,
//! before anything reads it, and means the same elements from then on. A tensor from outside takes part as a
//! [`TensorVersion`]: its contents as they were when the operation that names it was recorded. The same tensor with
//! other contents is another version, and another value. So nothing that is recorded later can change what an earlier
//! operation reads, and passes may move operations as long as each value is made before it is read.
//!
//! An operation that updates a tensor makes its next version, an [`Origin::State`]. That one is in the memory of the
//! version before, so an operation that reads the version before must not move behind the update. `Op::touches` names
//! the version before as read, unless all of it is overwritten.

use crate::ir::op::Op;
use crate::ir::value::{Label, Origin, ValueId, ValueInfo, Values};
use crate::shape::{DType, Shape};

/// An operation as it was recorded, or as fusion has left it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) label: Label,
    pub(crate) op: Op,
}

impl Node {
    pub(crate) fn new(label: Label, op: impl Into<Op>) -> Node {
        Node { label, op: op.into() }
    }
}

/// The values and operations of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) values: Values,
    pub(crate) nodes: Vec<Node>,
}

impl Graph {
    /// An empty graph, with room for this many nodes and a value for each.
    pub(crate) fn with_room(nodes: usize) -> Graph {
        Graph { values: Values::with_room(nodes), nodes: Vec::with_capacity(nodes) }
    }

    pub(crate) fn add_value(&mut self, shape: Shape, dtype: DType, origin: Origin) -> ValueId {
        self.values.add_value(shape, dtype, origin)
    }

    pub(crate) fn value(&self, id: ValueId) -> &ValueInfo {
        self.values.value(id)
    }

    /// The value whose memory this one has.
    pub(crate) fn root(&self, id: ValueId) -> ValueId {
        self.values.root(id)
    }

    /// The value's size.
    pub(crate) fn bytes(&self, id: ValueId) -> u64 {
        self.values.bytes(id)
    }
}
