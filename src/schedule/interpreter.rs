//! An interpreter of graphs, for tests: its nodes run on the CPU one after the other, before or after fusion, with
//! memory of its own for each value or as it is assigned.
//!
//! Operations are hashes of their operands, so that whatever is left out, exchanged, or taken from another place
//! changes a result. What a device would get wrong without a word is a panic here: elements that were not written or
//! that another value was written over, a value that one node reads and writes, and a read or write that the node does
//! not name.

use std::cell::RefCell;
use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::ir::command::Command;
use crate::ir::copy::CopyBox;
use crate::ir::elementwise::{Elementwise, ElementwiseInput, OpCode, Operand, dense_strides};
use crate::ir::epilogue::{Epilogue, Source};
use crate::ir::graph::{Graph, Node};
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::op::Op;
use crate::ir::value::{Origin, TensorVersion, ValueId};
use crate::schedule::memory::{Assignment, Home};
use crate::shape::{Format, MAX_RANK, Shape};

/// Runs the graph and gives the contents of the values that are kept. `memory` is what they are assigned, and a command
/// for each node that says what may be written over.
pub(super) fn run(graph: &Graph, memory: Option<(&Assignment, &[Command])>) -> Vec<Vec<u32>> {
    let mut machine = Interpreter::new(graph, memory.map(|(assignment, _)| assignment));
    for (i, node) in graph.nodes.iter().enumerate() {
        machine.node(node, memory.map(|(_, commands)| &commands[i]));
    }
    let kept = (0..).zip(graph.values.iter()).filter(|(_, value)| value.kept.is_some());
    let kept = kept.map(|(id, value)| (0..value.shape.elements()).map(|i| machine.read(id, i)).collect());
    // And what is left in the tensors that are updated, by their last writer.
    let words =
        |memory: &Vec<Option<(ValueId, u32)>>| memory.iter().flatten().map(|(_, word)| *word).collect();
    kept.chain(machine.states.iter().map(words)).collect()
}

/// A word that depends on all of these and their order.
fn hash(words: impl IntoIterator<Item = u32>) -> u32 {
    words.into_iter().fold(0x811c_9dc5, |hash, word| (hash ^ word).wrapping_mul(0x0100_0193).rotate_left(11))
}

/// A word as a store and a load of this format would leave it: here each format loses other bits.
fn as_stored(format: Format, word: u32) -> u32 {
    word & !match format {
        Format::Word | Format::Bool => 0,
        Format::F16 => 0x1fff,
        Format::Bf16 => 0xffff,
        Format::U16 | Format::I16 => 0xffff_0000,
        Format::U8 | Format::I8 => 0xffff_ff00,
    }
}

fn apply(op: OpCode, operands: [u32; 3]) -> u32 {
    match op {
        OpCode::Copy => operands[0],
        OpCode::RoundToF16 => as_stored(Format::F16, operands[0]),
        OpCode::RoundToBf16 => as_stored(Format::Bf16, operands[0]),
        OpCode::WrapU16 | OpCode::WrapI16 => as_stored(Format::U16, operands[0]),
        OpCode::WrapU8 | OpCode::WrapI8 => as_stored(Format::U8, operands[0]),
        _ => hash([op as u32].into_iter().chain(operands)),
    }
}

struct Interpreter<'a> {
    graph: &'a Graph,
    assignment: Option<&'a Assignment>,
    /// For each value, and then for each slot: whose element it is, and the word; none if it was not written.
    memory: Vec<Vec<Option<(ValueId, u32)>>>,
    /// The same for each tensor that is updated: all of its versions are there, one after the other.
    states: Vec<Vec<Option<(ValueId, u32)>>>,
    /// Roots that the current node has read.
    reads: RefCell<BTreeSet<ValueId>>,
}

impl Interpreter<'_> {
    fn new<'a>(graph: &'a Graph, assignment: Option<&'a Assignment>) -> Interpreter<'a> {
        let words = (0..).zip(graph.values.iter()).map(|(id, value)| {
            let word = |i: usize| match value.origin {
                Origin::Tensor(_) => Some((id, hash([id, i as u32]))),
                Origin::State(_) | Origin::Produced | Origin::Alias(_) => None,
            };
            (0..value.shape.elements()).map(word).collect()
        });
        let slots = assignment.into_iter().flat_map(|assignment| &assignment.slots);
        let slots = slots.map(|bytes| vec![None; *bytes as usize]);
        let memory: Vec<Vec<_>> = words.chain(slots).collect();
        // What was captured of a tensor is what the submission finds there.
        let state = |(state, captured): (usize, &SmallVec<[TensorVersion; 1]>)| {
            let is_found = |id: &usize| match graph.values[*id].origin {
                Origin::Tensor(version) => captured.contains(&version),
                Origin::State(of) => of as usize == state && captured.is_empty(),
                Origin::Produced | Origin::Alias(_) => false,
            };
            let found = (0..graph.values.len()).find(is_found).expect("a version of the tensor");
            let word = |i| Some((found as ValueId, hash([found as u32, i as u32])));
            (0..graph.values[found].shape.elements()).map(word).collect()
        };
        let states = graph.values.states().iter().enumerate().map(state).collect();
        Interpreter { graph, assignment, memory, states, reads: RefCell::default() }
    }

    fn memory(&self, root: ValueId) -> &[Option<(ValueId, u32)>] {
        match self.graph.values.state_of(root) {
            Some(state) => &self.states[state as usize],
            None => &self.memory[self.home(root)],
        }
    }

    fn memory_mut(&mut self, root: ValueId) -> &mut [Option<(ValueId, u32)>] {
        let home = self.home(root);
        match self.graph.values.state_of(root) {
            Some(state) => &mut self.states[state as usize],
            None => &mut self.memory[home],
        }
    }

    /// Where a root's elements are in memory.
    fn home(&self, root: ValueId) -> usize {
        match self.assignment.map(|assignment| assignment.homes[root as usize]) {
            Some(Home::Slot(slot)) => self.graph.values.len() + slot as usize,
            Some(Home::Tensor(_) | Home::State(_) | Home::None) | None => root as usize,
        }
    }

    fn read(&self, value: ValueId, element: usize) -> u32 {
        let root = self.graph.root(value);
        self.reads.borrow_mut().insert(root);
        match self.memory(root).get(element) {
            Some(Some((owner, word))) if *owner == root => *word,
            Some(Some((owner, _))) => panic!("value {owner} was written over value {root}"),
            Some(None) => panic!("element {element} of value {root} is read before it is written"),
            None => panic!("element {element} of value {root} is outside of it"),
        }
    }

    fn read_all(&self, value: ValueId) -> u32 {
        hash((0..self.graph.value(value).shape.elements()).map(|i| self.read(value, i)))
    }

    /// Runs a node: it reads all that it reads before it writes.
    fn node(&mut self, node: &Node, command: Option<&Command>) {
        self.reads.borrow_mut().clear();
        let written = self.results(node);
        let reads = self.reads.borrow().clone();
        let mut writes = BTreeSet::new();
        // What an update leaves is the next version's from here on.
        if let Op::CopyBox(copy) = &node.op
            && let CopyBox { over: Some(over), output, .. } = **copy
        {
            let (over, output) = (self.graph.root(over), self.graph.root(output));
            assert!(self.memory(over).iter().flatten().all(|(owner, _)| *owner == over), "{over} is gone");
            self.memory_mut(over).iter_mut().flatten().for_each(|(owner, _)| *owner = output);
        }
        for (value, element, word) in written {
            let root = self.graph.root(value);
            writes.insert(root);
            let format = self.graph.value(root).dtype.format();
            self.memory_mut(root)[element] = Some((root, as_stored(format, word)));
        }
        if let Some(command) = command {
            for (k, read) in command.accesses.iter().enumerate().filter(|(_, access)| !access.write) {
                let state = |value| self.graph.values.state_of(value);
                let one = |write| match (state(write), state(read.value)) {
                    (None, None) => self.home(write) == self.home(read.value),
                    // What an update leaves is no read.
                    (Some(one), Some(other)) => one == other && !matches!(node.op, Op::CopyBox(_)),
                    _ => false,
                };
                let shared = writes.iter().any(|&write| one(write));
                let in_place = command.in_place & (1 << k) != 0;
                assert!(!shared || in_place, "{} writes over what it still reads", node.label);
            }
        }
        assert!(reads.is_disjoint(&writes), "{} reads and writes {:?}", node.label, &reads & &writes);
        let mut touched = [BTreeSet::new(), BTreeSet::new()];
        node.op.touches(|value, write| {
            touched[usize::from(write)].insert(self.graph.root(value));
        });
        assert_eq!([reads, writes], touched, "{} touches other values than it says", node.label);
    }

    /// The words that a node writes, with their places.
    fn results(&self, node: &Node) -> Vec<(ValueId, usize, u32)> {
        match &node.op {
            Op::Elementwise(elementwise) => self.elementwise(elementwise),
            Op::Matmul(matmul) => self.matmul(matmul),
            Op::Conv2d(convolution) => {
                let [images, channels, pixels] = convolution.extents();
                let all = [convolution.input, convolution.weights].map(|value| self.read_all(value));
                let extents = [1, images, channels, pixels];
                self.rows(&convolution.epilogue, extents, convolution.output, |at| {
                    hash(all.into_iter().chain(at))
                })
            }
            Op::Reduce(reduce) => {
                let (geometry, prologue) = (reduce.geometry, reduce.prologue.as_ref());
                let element = |i: usize| {
                    let second = reduce.second.map(|value| self.read(value, i));
                    hash([self.with_prologue(prologue, reduce.input, i)].into_iter().chain(second))
                };
                let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
                let result = |i: usize| {
                    let first = i / inner * extent * inner + i % inner;
                    (reduce.output, i, hash((0..extent).map(|k| element(first + k * inner))))
                };
                (0..geometry.results() as usize).map(result).collect()
            }
            Op::Softmax(softmax) => {
                let (geometry, prologue) = (softmax.geometry, softmax.prologue.as_ref());
                let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
                let element = |i: usize| self.with_prologue(prologue, softmax.input, i);
                let result = |i: usize| {
                    let first = i / (inner * extent) * extent * inner + i % inner;
                    let all = hash((0..extent).map(|k| element(first + k * inner)));
                    (softmax.output, i, hash([all, element(i)]))
                };
                (0..extent * geometry.results() as usize).map(result).collect()
            }
            Op::Copy(copy) => {
                let word = |i| (copy.output, i, self.read(copy.input, i));
                (0..self.graph.value(copy.input).shape.elements()).map(word).collect()
            }
            Op::CopyBox(copy) => {
                if let Some(over) = copy.over {
                    self.reads.borrow_mut().insert(self.graph.root(over));
                }
                let all = self.graph.value(copy.output).shape;
                let strides = dense_strides(&all);
                let to = |i: usize| {
                    let at =
                        strided(&copy.shape, &ElementwiseInput { value: copy.input, strides, offset: 0 }, i);
                    let corner = copy.corner.iter().zip(strides).map(|(&c, stride)| c * stride as usize);
                    at + corner.sum::<usize>()
                };
                let word = |i| (copy.output, to(i), self.read(copy.input, i));
                (0..copy.shape.elements()).map(word).collect()
            }
            Op::Norm(_)
            | Op::PackWeights(_)
            | Op::Gather(_)
            | Op::Locate(_)
            | Op::Scatter(_)
            | Op::Histogram(_)
            | Op::Pool(_)
            | Op::Resize(_)
            | Op::Attention(_)
            | Op::Angles(_)
            | Op::Scan(_)
            | Op::Sort(_)
            | Op::Search(_)
            | Op::SegmentSum(_)
            | Op::Generate(_)
            | Op::Fill(_)
            | Op::Dispatch(_) => panic!("no random graph has these"),
        }
    }

    fn elementwise(&self, elementwise: &Elementwise) -> Vec<(ValueId, usize, u32)> {
        let shape = self.graph.value(elementwise.outputs[0].value).shape;
        let mut written = Vec::new();
        for i in 0..shape.elements() {
            let results = self.steps(elementwise, |input| strided(&shape, input, i));
            written.extend(elementwise.outputs.iter().map(|o| (o.value, i, results[usize::from(o.step)])));
        }
        written
    }

    /// The results of an elementwise op's steps for one element.
    fn steps(&self, elementwise: &Elementwise, place: impl Fn(&ElementwiseInput) -> usize) -> Vec<u32> {
        let mut results = Vec::new();
        for step in &elementwise.steps {
            let words = step.operands.map(|operand| match operand {
                Operand::Input(k) => {
                    let input = &elementwise.inputs[usize::from(k)];
                    self.read(input.value, place(input))
                }
                Operand::Scalar(k) => elementwise.scalars[usize::from(k)],
                Operand::Step(k) => results[usize::from(k)],
            });
            results.push(apply(step.op, words));
        }
        results
    }

    /// An element of what a reduction or a softmax reads: it is in memory, or an elementwise op makes it.
    fn with_prologue(&self, prologue: Option<&Elementwise>, input: ValueId, i: usize) -> u32 {
        let Some(prologue) = prologue else { return self.read(input, i) };
        let place = |input: &ElementwiseInput| if input.strides == [0; MAX_RANK] { 0 } else { i };
        self.steps(prologue, place)[usize::from(prologue.outputs[0].step)]
    }

    fn matmul(&self, matmul: &Matmul) -> Vec<(ValueId, usize, u32)> {
        let [outer, inner] = matmul.batch;
        let extents = [outer, inner, matmul.m, matmul.n];
        self.rows(&matmul.epilogue, extents, matmul.output, |[outer, inner, row, column]| {
            let read = |matrix: MatrixOperand, i: u32| {
                let batch = outer * matrix.batch[0] + inner * matrix.batch[1];
                self.read(matrix.value, (batch + i) as usize)
            };
            hash((0..matmul.k).flat_map(|k| {
                let (row_first, column_first) = (row * matmul.k + k, column * matmul.k + k);
                let a = if matmul.lhs.k_contiguous { row_first } else { k * matmul.m + row };
                let b = if matmul.rhs.k_contiguous { column_first } else { k * matmul.n + column };
                [read(matmul.lhs, a), read(matmul.rhs, b)]
            }))
        })
    }

    /// Rows of columns in batches, through an epilogue.
    fn rows(
        &self,
        epilogue: &Epilogue,
        extents: [u32; 4],
        output: ValueId,
        matmul: impl Fn([u32; 4]) -> u32,
    ) -> Vec<(ValueId, usize, u32)> {
        let result = |i: u32| {
            let [_, inner, rows, columns] = extents;
            let at =
                [i / (inner * rows * columns), i / (rows * columns) % inner, i / columns % rows, i % columns];
            (output, i as usize, self.epilogue(epilogue, at, matmul(at)))
        };
        (0..extents.iter().product()).map(result).collect()
    }

    fn epilogue(&self, epilogue: &Epilogue, [outer, inner, row, column]: [u32; 4], matmul: u32) -> u32 {
        let mut results = vec![matmul];
        for step in &epilogue.steps {
            let words = step.operands.map(|operand| match operand {
                Source::Accumulator => matmul,
                Source::Scalar(k) => epilogue.scalars[usize::from(k)],
                Source::Step(k) => results[usize::from(k) + 1],
                Source::Extra(k) => {
                    let extra = &epilogue.extras[usize::from(k)];
                    let batch = outer * extra.batch[0] + inner * extra.batch[1];
                    self.read(extra.value, (batch + row * extra.row + column * extra.column) as usize)
                }
            });
            results.push(apply(step.op, words));
        }
        results[results.len() - 1]
    }
}

/// Where an input's element is for the i-th of a result.
fn strided(shape: &Shape, input: &ElementwiseInput, mut i: usize) -> usize {
    let mut at = input.offset;
    for (extent, stride) in shape.dims().iter().zip(input.strides).rev() {
        at = at.wrapping_add(stride.wrapping_mul((i % extent) as u32));
        i /= extent;
    }
    at as usize
}
