//! What is merged, and what must not be.

use smallvec::smallvec;

use super::*;
use crate::fusion::elementwise::position_or_push;
use crate::fusion::fuse_all;
use crate::ir::elementwise::{OpCode, Operand, dense_strides};
use crate::ir::graph::Label;
use crate::ir::reduce::Reduce;
use crate::ir::reduce::Reduction;
use crate::ir::softmax::Softmax;
use crate::kernels::axis::span::Geometry;
use crate::shape::{DType, Shape};

/// A graph on values of one shape that is written down like a recording.
struct Build(Graph, Shape);

impl Build {
    fn new() -> Build {
        Build(Graph::default(), Shape::from([8, 8]))
    }

    fn tensor(&mut self) -> ValueId {
        self.0.add_value(self.1, DType::F32, Origin::Tensor(0))
    }

    fn made(&mut self) -> ValueId {
        self.0.add_value(self.1, DType::F32, Origin::Produced)
    }

    fn push(&mut self, work: Work, reads: &[ValueId], write: ValueId) -> ValueId {
        let label = Label { op: LabelName::Op("op"), shape: self.1, dtype: DType::F32 };
        let mut accesses: SmallVec<_> = reads.iter().map(|&value| self.0.whole(value, false)).collect();
        accesses.push(self.0.whole(write, true));
        let accesses = if matches!(work, Work::Map(_)) { SmallVec::new() } else { accesses };
        self.0.nodes.push(Node::new(label, work, accesses));
        write
    }

    fn op(&mut self, op: OpCode, operands: &[ValueId]) -> ValueId {
        let output = self.made();
        let mut inputs = SmallVec::new();
        let mut input = |value| {
            let input = MapInput { value, strides: dense_strides(&self.1), offset: 0 };
            Operand::Input(position_or_push(&mut inputs, input))
        };
        let code: Vec<Operand> = operands.iter().map(|&value| input(value)).collect();
        let operands = [0, 1, 2].map(|k| code.get(k).copied().unwrap_or(code[0]));
        let map = Map::single(op, operands, inputs, smallvec![], output);
        self.push(Work::Map(map), &[], output)
    }

    fn product(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let factor = |value| Factor { value, along_k: true, batch: [0; 2] };
        let output = self.made();
        let product = Product {
            m: 8,
            n: 8,
            k: 8,
            batch: [1; 2],
            lhs: factor(a),
            rhs: factor(b),
            alpha: 1.0,
            epilogue: Epilogue::default(),
            output,
        };
        self.push(Work::Product(Box::new(product)), &[a, b], output)
    }

    fn reduce(&mut self, reduction: Reduction, input: ValueId, second: Option<ValueId>) -> ValueId {
        let output = self.made();
        let geometry = Geometry::along(&self.1, 1);
        let reduce = Reduce { op: "reduce", reduction, input, second, head: None, geometry, output };
        let reads: Vec<ValueId> = [input].into_iter().chain(second).collect();
        self.push(Work::Reduce(Box::new(reduce)), &reads, output)
    }

    fn softmax(&mut self, logarithm: bool, input: ValueId) -> ValueId {
        let output = self.made();
        let geometry = Geometry::along(&self.1, 1);
        let softmax = Softmax { op: "softmax", logarithm, input, head: None, geometry, output };
        self.push(Work::Softmax(Box::new(softmax)), &[input], output)
    }

    fn keep(&mut self, value: ValueId) {
        self.0.values[value as usize].kept = Some(0);
    }

    fn merged(&self) -> Graph {
        let mut graph = self.0.clone();
        fuse_and_merge(&mut graph, fuse_all);
        graph
    }
}

#[test]
fn equal_steps_of_a_program_are_one() {
    let mut b = Build::new();
    let x = b.tensor();
    let (first, second) = (b.op(OpCode::ExpF32, &[x]), b.op(OpCode::ExpF32, &[x]));
    let sum = b.op(OpCode::AddF32, &[first, second]);
    b.keep(sum);
    let graph = b.merged();
    let [Node { work: Work::Map(map), .. }] = &graph.nodes[..] else { panic!("{:?}", graph.nodes) };
    assert_eq!(map.steps.len(), 2);
    assert_eq!(map.steps[1].operands[..2], [Operand::Step(0); 2]);
}

#[test]
fn the_mean_in_a_variance_is_the_mean() {
    let mut b = Build::new();
    let x = b.tensor();
    let mean = b.reduce(Reduction::Mean, x, None);
    let again = b.reduce(Reduction::Mean, x, None);
    let variance = b.reduce(Reduction::Variance, x, Some(again));
    b.keep(mean);
    b.keep(variance);
    let graph = b.merged();
    assert_eq!(graph.nodes.len(), 2);
    assert_eq!(graph.nodes[1].accesses[1].value, mean);
    assert_eq!(graph.root(again), mean);
}

#[test]
fn the_one_that_is_kept_stays() {
    let mut b = Build::new();
    let x = b.tensor();
    let (first, second) = (b.reduce(Reduction::Sum, x, None), b.reduce(Reduction::Sum, x, None));
    let last = b.op(OpCode::AddF32, &[first, second]);
    b.keep(second);
    b.keep(last);
    let graph = b.merged();
    assert_eq!(graph.nodes.len(), 2);
    assert_eq!((graph.root(first), graph.nodes[0].accesses[1].value), (second, second));
}

#[test]
fn two_that_are_kept_stay_two() {
    let mut b = Build::new();
    let x = b.tensor();
    for _ in 0..3 {
        let sum = b.reduce(Reduction::Sum, x, None);
        b.keep(sum);
    }
    assert_eq!(b.merged().nodes.len(), 3);
}

#[test]
fn what_two_programs_make_in_passing_is_not_stored_for_both() {
    let mut b = Build::new();
    let x = b.tensor();
    for op in [OpCode::NegF32, OpCode::AbsF32] {
        let made = b.op(OpCode::ExpF32, &[x]);
        let last = b.op(op, &[made]);
        b.keep(last);
    }
    let graph = b.merged();
    assert_eq!(graph.nodes.len(), 2);
    let outputs = |node: &Node| outputs(node).len();
    assert_eq!(graph.nodes.iter().map(outputs).sum::<usize>(), 2);
}

#[test]
fn products_are_merged_where_that_adds_nothing() {
    // A sum of both, which one epilogue can be.
    let mut b = Build::new();
    let (x, y) = (b.tensor(), b.tensor());
    let (first, second) = (b.product(x, y), b.product(x, y));
    let positive = b.op(OpCode::ReluF32, &[first]);
    let sum = b.op(OpCode::AddF32, &[positive, second]);
    b.keep(sum);
    let graph = b.merged();
    assert_eq!(graph.nodes.len(), 1);

    // Two that each have an epilogue of their own: merged, they would be three.
    let (first, second) = (b.product(x, sum), b.product(x, sum));
    for (op, product) in [(OpCode::ReluF32, first), (OpCode::NegF32, second)] {
        let last = b.op(op, &[product]);
        b.keep(last);
    }
    let graph = b.merged();
    assert_eq!(graph.nodes.len(), 3, "the first pair is one, the second stays two");
}

#[test]
fn products_stay_two_where_one_would_have_to_be_stored() {
    // Each has an epilogue: the second reads the result of the first. As one, the product itself would be stored for a program that
    // makes both results.
    let mut b = Build::new();
    let (x, y) = (b.tensor(), b.tensor());
    let (first, second) = (b.product(x, y), b.product(x, y));
    let positive = b.op(OpCode::ReluF32, &[first]);
    let last = b.op(OpCode::MulF32, &[positive, second]);
    b.keep(positive);
    b.keep(last);
    let graph = b.merged();
    let stored = graph.nodes.iter().map(|node| outputs(node).len()).sum::<usize>();
    assert_eq!((graph.nodes.len(), stored), (2, 2), "{:?}", graph.nodes);
}

#[test]
fn softmax_and_its_logarithm_are_two() {
    for (logarithms, nodes) in [([false, false], 2), ([true, true], 2), ([false, true], 3)] {
        let mut b = Build::new();
        let x = b.tensor();
        let [first, second] = logarithms.map(|logarithm| b.softmax(logarithm, x));
        let both = b.op(OpCode::AddF32, &[first, second]);
        b.keep(both);
        assert_eq!(b.merged().nodes.len(), nodes, "{logarithms:?}");
    }
}

#[test]
fn reads_before_and_after_an_update_are_two() {
    let mut b = Build::new();
    let x = b.tensor();
    let before = b.reduce(Reduction::Sum, x, None);
    b.push(Work::Fill { word: 0 }, &[], x);
    let after = b.reduce(Reduction::Sum, x, None);
    let both = b.op(OpCode::AddF32, &[before, after]);
    b.keep(both);
    assert_eq!(b.merged().nodes.len(), 4);
}
