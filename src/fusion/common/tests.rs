//! What is merged, and what must not be.

use super::*;
use crate::fusion::fuse_all;
use crate::ir::build::Build;
use crate::ir::copy::{Fill, Gather, Generate, Indexed, Sequence};
use crate::ir::elementwise::{OpCode, Operand};
use crate::ir::reduce::Reduction;
use crate::shape::DType;
use crate::shape::axes::Geometry;

fn tensor(b: &mut Build) -> ValueId {
    b.tensor([8, 8])
}

fn reduce(b: &mut Build, reduction: Reduction, input: ValueId, second: Option<ValueId>) -> ValueId {
    b.reduce(reduction, input, second, 1)
}

fn merged(b: &Build) -> Graph {
    let mut graph = b.graph.clone();
    fuse_and_merge(&mut graph, fuse_all);
    graph
}

/// What a node writes, and nothing else.
fn result(node: &Node) -> ValueId {
    outputs(node)[0]
}

#[test]
fn equal_steps_of_an_elementwise_op_are_one() {
    let mut b = Build::default();
    let x = tensor(&mut b);
    let (first, second) = (b.op(OpCode::ExpF32, &[x]), b.op(OpCode::ExpF32, &[x]));
    let sum = b.op(OpCode::AddF32, &[first, second]);
    b.keep(sum);
    let graph = merged(&b);
    let [Node { op: Op::Elementwise(elementwise), .. }] = &graph.nodes[..] else {
        panic!("{:?}", graph.nodes)
    };
    assert_eq!(elementwise.steps.len(), 2);
    assert_eq!(elementwise.steps[1].operands[..2], [Operand::Step(0); 2]);
}

#[test]
fn the_mean_in_a_variance_is_the_mean() {
    let mut b = Build::default();
    let x = tensor(&mut b);
    let mean = reduce(&mut b, Reduction::Mean, x, None);
    let again = reduce(&mut b, Reduction::Mean, x, None);
    let variance = reduce(&mut b, Reduction::Variance, x, Some(again));
    b.keep(mean);
    b.keep(variance);
    let graph = merged(&b);
    assert_eq!(graph.nodes.len(), 2);
    let mut read = Vec::new();
    graph.nodes[1].op.touches(|value, write| read.extend((!write).then_some(graph.root(value))));
    assert_eq!(read, [x, mean]);
    assert_eq!(graph.root(again), mean);
}

#[test]
fn the_one_that_is_kept_stays() {
    let mut b = Build::default();
    let x = tensor(&mut b);
    let (first, second) = (reduce(&mut b, Reduction::Sum, x, None), reduce(&mut b, Reduction::Sum, x, None));
    let last = b.op(OpCode::AddF32, &[first, second]);
    b.keep(second);
    b.keep(last);
    let graph = merged(&b);
    assert_eq!(graph.nodes.len(), 2);
    assert_eq!((graph.root(first), graph.root(result(&graph.nodes[0]))), (second, second));
}

#[test]
fn two_that_are_kept_stay_two() {
    let mut b = Build::default();
    let x = tensor(&mut b);
    for _ in 0..3 {
        let sum = reduce(&mut b, Reduction::Sum, x, None);
        b.keep(sum);
    }
    assert_eq!(merged(&b).nodes.len(), 3);
}

#[test]
fn what_two_elementwise_ops_make_in_passing_is_not_stored_for_both() {
    let mut b = Build::default();
    let x = tensor(&mut b);
    for op in [OpCode::NegF32, OpCode::AbsF32] {
        let made = b.op(OpCode::ExpF32, &[x]);
        let last = b.op(op, &[made]);
        b.keep(last);
    }
    let graph = merged(&b);
    assert_eq!(graph.nodes.len(), 2);
    let outputs = |node: &Node| outputs(node).len();
    assert_eq!(graph.nodes.iter().map(outputs).sum::<usize>(), 2);
}

#[test]
fn matmuls_are_merged_where_that_adds_nothing() {
    // A sum of both, which one epilogue can be.
    let mut b = Build::default();
    let (x, y) = (tensor(&mut b), tensor(&mut b));
    let (first, second) = (b.matmul(x, y), b.matmul(x, y));
    let positive = b.op(OpCode::ReluF32, &[first]);
    let sum = b.op(OpCode::AddF32, &[positive, second]);
    b.keep(sum);
    let graph = merged(&b);
    assert_eq!(graph.nodes.len(), 1);

    // Two that each have an epilogue of their own: merged, they would be three.
    let (first, second) = (b.matmul(x, sum), b.matmul(x, sum));
    for (op, matmul) in [(OpCode::ReluF32, first), (OpCode::NegF32, second)] {
        let last = b.op(op, &[matmul]);
        b.keep(last);
    }
    let graph = merged(&b);
    assert_eq!(graph.nodes.len(), 3, "the first pair is one, the second stays two");
}

#[test]
fn matmuls_stay_two_where_one_would_have_to_be_stored() {
    // Each has an epilogue: the second reads the result of the first. As one, the matmul itself would be stored for an
    // elementwise op that makes both results.
    let mut b = Build::default();
    let (x, y) = (tensor(&mut b), tensor(&mut b));
    let (first, second) = (b.matmul(x, y), b.matmul(x, y));
    let positive = b.op(OpCode::ReluF32, &[first]);
    let last = b.op(OpCode::MulF32, &[positive, second]);
    b.keep(positive);
    b.keep(last);
    let graph = merged(&b);
    let stored = graph.nodes.iter().map(|node| outputs(node).len()).sum::<usize>();
    assert_eq!((graph.nodes.len(), stored), (2, 2), "{:?}", graph.nodes);
}

#[test]
fn softmax_and_its_logarithm_are_two() {
    for (logarithms, nodes) in [([false, false], 2), ([true, true], 2), ([false, true], 3)] {
        let mut b = Build::default();
        let x = tensor(&mut b);
        let [first, second] = logarithms.map(|logarithm| b.softmax(logarithm, x, 1));
        let both = b.op(OpCode::AddF32, &[first, second]);
        b.keep(both);
        assert_eq!(merged(&b).nodes.len(), nodes, "{logarithms:?}");
    }
}

#[test]
fn reads_before_and_after_an_update_are_two() {
    let mut b = Build::default();
    let x = tensor(&mut b);
    let state = b.state(x);
    let before = reduce(&mut b, Reduction::Sum, x, None);
    let zeros = b.state_version(state, x);
    b.push("fill", zeros, Fill { word: 0, output: zeros });
    let after = reduce(&mut b, Reduction::Sum, zeros, None);
    let again = reduce(&mut b, Reduction::Sum, zeros, None);
    let both = b.op(OpCode::AddF32, &[before, after]);
    let all = b.op(OpCode::AddF32, &[both, again]);
    b.keep(all);
    assert_eq!(merged(&b).nodes.len(), 4);
}

#[test]
fn what_is_moved_or_made_twice_is_made_once() {
    let mut b = Build::default();
    let (x, rows) = (tensor(&mut b), b.graph.add_value([8].into(), DType::U32, Origin::Tensor(1)));
    let gather = |table, rows, output| {
        let geometry = Geometry { outer: 1, extent: 8, inner: 8 };
        Gather { table, geometry, rows, indexed: Indexed::Slices, output }
    };
    let record = |b: &mut Build, seed: u64| {
        let (gathered, random) = (b.produced([8, 8]), b.produced([8, 8]));
        b.push("gather_rows", gathered, gather(x, rows, gathered));
        b.push("random", random, Generate { sequence: Sequence::Uniform, seed, output: random });
        let whole = b.concat(&[x]);
        let whole = b.alias(whole, [8, 8]);
        let copied = b.copy(x);
        [gathered, random, whole, copied]
    };
    for (seeds, nodes) in [([7, 7], 8), ([7, 8], 9)] {
        let mut b = b.clone();
        let [first, second] = seeds.map(|seed| record(&mut b, seed));
        for (one, other) in first.into_iter().zip(second) {
            // Stays apart from the others: each has its own operation of two operands.
            let both = b.op(OpCode::AddF32, &[one, other]);
            b.keep(both);
        }
        assert_eq!(merged(&b).nodes.len(), nodes, "{seeds:?}");
    }
    // Two parts of one value are never one.
    let mut b = Build::default();
    let x = tensor(&mut b);
    let (first, second) = (b.concat(&[x, x]), b.concat(&[x, x]));
    let both = b.op(OpCode::AddF32, &[first, second]);
    b.keep(both);
    assert_eq!(merged(&b).nodes.len(), 5);
}
