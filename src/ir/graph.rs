//! What a recording holds: values and nodes, plain data, no memory and no device.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ir::conv2d::Convolution;
use crate::ir::elementwise::Map;
use crate::ir::matmul::Product;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::reduce::Reduce;
use crate::ir::softmax::Softmax;
use crate::shape::{DType, Shape};

pub(crate) use super::value::ValueId;

/// What is known of a value before it has memory.
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
    /// A tensor from outside: the index of its lease.
    Tensor(u32),
    /// Written by nodes of this graph.
    Produced,
    /// Another value's memory, seen with another shape. Never an alias itself.
    Alias(ValueId),
}

/// A part of a value that a node reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) value: ValueId,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) write: bool,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// An elementwise program, not yet lowered to dispatches.
    Map(Map),
    /// A matrix product, not yet lowered to dispatches.
    Product(Box<Product>),
    /// A convolution, not yet lowered to dispatches.
    Convolution(Box<Convolution>),
    /// A reduction, not yet lowered to dispatches.
    Reduce(Box<Reduce>),
    /// A softmax, not yet lowered to dispatches.
    Softmax(Box<Softmax>),
    /// A dispatch; its accesses are its arguments, in the order of the bindings.
    Dispatch { pipeline: PipelineKey, push: SmallVec<[u8; 128]>, groups: [u32; 3] },
    /// A copy from the first access to the second.
    Copy,
    /// A fill of the only access with a 4-byte word.
    Fill { word: u32 },
}

/// One step of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) label: Label,
    pub(crate) work: Work,
    pub(crate) accesses: SmallVec<[Access; 4]>,
    /// What profiles count it as.
    pub(crate) cost: Cost,
    /// A bit for each access: those that read element for element, so that a result may be written over them.
    pub(crate) in_place: u32,
    /// It goes on with the program of the node in front of it, for other elements: each reads in place only what it writes.
    pub(crate) continues: bool,
}

/// The work of a node, by convention rather than by instruction:
/// - **flops**: one per element and step of an elementwise program, whatever the step (a division and an exponential
///   count as one, a copy as none); two per multiply-add of a product; one per element that a reduction takes in.
/// - **bytes**: what must cross the memory bus at the least, each byte that is read once and each that is written once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// `None` if nobody has said.
    pub(crate) flops: Option<u64>,
    /// `None` if nobody can say.
    pub(crate) bytes: Option<u64>,
}

impl Node {
    /// A node without arithmetic that reads and writes each of its accesses once; `with_flops` and `with_bytes` say
    /// otherwise.
    pub(crate) fn new(label: Label, work: Work, accesses: SmallVec<[Access; 4]>) -> Node {
        let bytes = accesses.iter().map(|access| access.bytes).sum();
        let cost = Cost { flops: Some(0), bytes: Some(bytes) };
        Node { label, work, accesses, cost, in_place: 0, continues: false }
    }

    /// Whether a binding of so many bytes spans whatever lowering makes of it, without looking closer: small operands always
    /// fit.
    pub(crate) fn surely_fits(&self, limit: u64) -> bool {
        // One column becomes a panel of 128, one row of it eight, and a sum is split into some parts.
        const PANEL: u64 = 128;
        const PARTS: u64 = 16;
        let largest = self.accesses.iter().map(|access| access.bytes).max().unwrap_or(0);
        match &self.work {
            Work::Product(product) => {
                let [m, n, k] =
                    [product.m, product.n, product.k].map(|x| u64::from(x).next_multiple_of(PANEL));
                let batches = product.batch.iter().fold(4 * PARTS, |all, &x| all.saturating_mul(x.into()));
                let bytes =
                    |(rows, columns): (u64, u64)| rows.saturating_mul(columns).saturating_mul(batches);
                [(m, k), (k, n), (m, n)].into_iter().map(bytes).all(|bytes| bytes <= limit)
                    && largest <= limit
            }
            Work::Convolution(_) => largest <= limit / (PANEL * PARTS),
            _ => largest <= limit,
        }
    }

    /// Names every value that it reads or writes (`true`), lowered or not.
    pub(crate) fn touches(&self, mut note: impl FnMut(ValueId, bool)) {
        if let Work::Map(map) = &self.work {
            map.inputs.iter().for_each(|input| note(input.value, false));
            map.outputs.iter().for_each(|output| note(output.value, true));
        } else {
            self.accesses.iter().for_each(|access| note(access.value, access.write));
        }
    }

    /// Counts so many floating-point operations.
    pub(crate) fn with_flops(mut self, flops: u64) -> Node {
        self.cost.flops = Some(flops);
        self
    }

    /// Counts so many bytes instead of all that the accesses span.
    pub(crate) fn with_bytes(mut self, bytes: u64) -> Node {
        self.cost.bytes = Some(bytes);
        self
    }

    /// Says which accesses a result may be written over.
    pub(crate) fn with_in_place(mut self, accesses: u32) -> Node {
        self.in_place = accesses;
        self
    }

    /// Says whether it goes on with what the node in front of it does.
    pub(crate) fn with_continues(mut self, continues: bool) -> Node {
        self.continues = continues;
        self
    }

    /// Counts as the caller says, which may be not at all.
    pub(crate) fn with_cost(mut self, cost: Cost) -> Node {
        self.cost = cost;
        self
    }
}

/// What a dispatch is called by validation messages, profiles and RenderDoc alike: `add 64x784 f32`.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) op: LabelName,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// The name in a label: ours are static; users' kernels and fused programs bring theirs.
#[derive(Clone, Debug)]
pub(crate) enum LabelName {
    Op(&'static str),
    Text(Arc<str>),
}

impl LabelName {
    /// The operation's name for errors, which of several that became one program is none.
    pub(crate) fn known(&self) -> &'static str {
        match self {
            LabelName::Op(name) => name,
            LabelName::Text(_) => "elementwise program",
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

/// The values and nodes of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) values: Vec<ValueInfo>,
    pub(crate) nodes: Vec<Node>,
}

impl Graph {
    /// An empty graph, with room for so many nodes and a value for each.
    pub(crate) fn with_room(nodes: usize) -> Graph {
        let (values, nodes) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        Graph { values, nodes }
    }

    pub(crate) fn add_value(&mut self, shape: Shape, dtype: DType, origin: Origin) -> ValueId {
        self.values.push(ValueInfo { shape, dtype, origin, kept: None });
        (self.values.len() - 1) as ValueId
    }

    pub(crate) fn value(&self, id: ValueId) -> &ValueInfo {
        &self.values[id as usize]
    }

    /// The value whose memory this one has.
    pub(crate) fn root(&self, id: ValueId) -> ValueId {
        match self.value(id).origin {
            Origin::Alias(root) => root,
            Origin::Tensor(_) | Origin::Produced => id,
        }
    }

    /// The value's size.
    pub(crate) fn bytes(&self, id: ValueId) -> u64 {
        let value = self.value(id);
        value.dtype.storage_bytes(value.shape.elements())
    }

    /// An access to all of a value.
    pub(crate) fn whole(&self, id: ValueId, write: bool) -> Access {
        Access { value: self.root(id), offset: 0, bytes: self.bytes(id), write }
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
