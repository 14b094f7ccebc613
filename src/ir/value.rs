//! Values and the labels of what is done with them: what operations and commands both name.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::shape::{DType, Shape};

/// A value's place among the values of its graph.
pub(crate) type ValueId = u32;

/// A tensor from outside with the contents that it had when it was first named: a number that the recording gives, by
/// which it finds the block that holds them. What writes the tensor later gives it another block, or waits; either way
/// it is another version.
pub(crate) type TensorVersion = u32;

/// A tensor from outside that operations of the graph update: its place among those.
pub(crate) type StateId = u32;

/// A value before it has memory.
#[derive(Clone, Debug)]
pub(crate) struct ValueInfo {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) origin: Origin,
    /// The tensor that it becomes, if it is kept: its index among those that the recording or the plan has.
    pub(crate) kept: Option<u32>,
}

/// Where a value's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A tensor from outside, in one version.
    Tensor(TensorVersion),
    /// A tensor that this graph updates, in the tensor's own memory: as the submission finds it, or after an operation
    /// has written it. Each operation that writes it makes another value, and the one before is gone then.
    State(StateId),
    /// Written by operations of this graph, or by commands that it was lowered to.
    Produced,
    /// Another value's memory, seen with another shape. Never an alias itself.
    Alias(ValueId),
}

/// The values of a graph, recorded or lowered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    list: Vec<ValueInfo>,
    /// For each tensor that is updated: the versions of it that were captured before. They may be in the same memory.
    states: Vec<SmallVec<[TensorVersion; 1]>>,
}

impl Deref for Values {
    type Target = Vec<ValueInfo>;

    fn deref(&self) -> &Vec<ValueInfo> {
        &self.list
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut Vec<ValueInfo> {
        &mut self.list
    }
}

impl Values {
    /// No values, with room for this many.
    pub(crate) fn with_room(values: usize) -> Values {
        Values { list: Vec::with_capacity(values), states: Vec::new() }
    }

    /// One more tensor that is updated, of which these versions were captured before.
    pub(crate) fn add_state(&mut self, captured: SmallVec<[TensorVersion; 1]>) -> StateId {
        self.states.push(captured);
        (self.states.len() - 1) as StateId
    }

    /// The captured versions of each tensor that is updated.
    pub(crate) fn states(&self) -> &[SmallVec<[TensorVersion; 1]>] {
        &self.states
    }

    /// The tensor that is updated whose contents the value is, or was when it was captured.
    pub(crate) fn state_of(&self, id: ValueId) -> Option<StateId> {
        match self.value(self.root(id)).origin {
            Origin::State(state) => Some(state),
            Origin::Tensor(version) => {
                let state = self.states.iter().position(|captured| captured.contains(&version))?;
                Some(state as StateId)
            }
            Origin::Produced | Origin::Alias(_) => None,
        }
    }

    pub(crate) fn add_value(&mut self, shape: Shape, dtype: DType, origin: Origin) -> ValueId {
        self.push(ValueInfo { shape, dtype, origin, kept: None });
        (self.len() - 1) as ValueId
    }

    pub(crate) fn value(&self, id: ValueId) -> &ValueInfo {
        &self[id as usize]
    }

    /// The value whose memory this one has.
    pub(crate) fn root(&self, id: ValueId) -> ValueId {
        match self.value(id).origin {
            Origin::Alias(root) => root,
            Origin::Tensor(_) | Origin::State(_) | Origin::Produced => id,
        }
    }

    /// The value's size.
    pub(crate) fn bytes(&self, id: ValueId) -> u64 {
        let value = self.value(id);
        value.dtype.storage_bytes(value.shape.elements())
    }

    /// What a binding of all of a value spans: the shape that its memory has, and its size.
    pub(crate) fn binding(&self, id: ValueId) -> (Shape, u64) {
        (self.value(self.root(id)).shape, self.bytes(id))
    }

    /// An access to all of a value.
    pub(crate) fn whole(&self, id: ValueId, write: bool) -> Access {
        Access { value: self.root(id), offset: 0, bytes: self.bytes(id), write }
    }
}

/// A part of a value that a command reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) value: ValueId,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) write: bool,
}

/// The label of a dispatch in validation messages, profiles and RenderDoc: `add 64x784 f32`.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) op: LabelName,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// The name in a label: ours are static; users' kernels and fused elementwise ops bring theirs.
#[derive(Clone, Debug)]
pub(crate) enum LabelName {
    Op(&'static str),
    Text(Arc<str>),
}

impl LabelName {
    /// The operation's name for errors; a fused elementwise op has none.
    pub(crate) fn known(&self) -> &'static str {
        match self {
            LabelName::Op(name) => name,
            LabelName::Text(_) => "elementwise op",
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            LabelName::Op(name) => name,
            LabelName::Text(name) => name,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.op.as_str())?;
        if self.shape.rank() == 0 {
            f.write_str("scalar")?;
        }
        for (i, extent) in self.shape.dims().iter().enumerate() {
            write!(f, "{}{extent}", if i == 0 { "" } else { "x" })?;
        }
        write!(f, " {}", self.dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_well() {
        let label = |shape: Shape| Label { op: LabelName::Op("add"), shape, dtype: DType::F32 }.to_string();
        assert_eq!(label([64, 784].into()), "add 64x784 f32");
        assert_eq!(label([].into()), "add scalar f32");
    }
}
