//! Random graphs mean the same before and after fusion, and in the memory that they are given. No device:
//! `interpreter.rs` runs them.

use smallvec::{SmallVec, smallvec};

use crate::fusion::common::{adds_nothing, fuse_and_merge};
use crate::fusion::elementwise::{position_or_push, reads_whole};
use crate::fusion::fuse_all;
use crate::fusion::in_place::assign_in_place;
use crate::fusion::needed::drop_unneeded;
use crate::ir::build::Build;
use crate::ir::command::{Action, Command, Lowered};
use crate::ir::conv2d::Convolution;
use crate::ir::copy::{Copy, CopyBox};
use crate::ir::elementwise::{Elementwise, ElementwiseInput, OpCode, Operand, dense_strides};
use crate::ir::epilogue::Epilogue;
use crate::ir::graph::{Graph, Node};
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::op::Op;
use crate::ir::reduce::Reduce;
use crate::ir::reduce::Reduction;
use crate::ir::value::{Origin, StateId, ValueId};
use crate::kernels::axis::split::Geometry;
use crate::kernels::elementwise::modules::elementwise_fits;
use crate::schedule::interpreter::run;
use crate::schedule::memory::assign;
use crate::shape::{DType, MAX_RANK, Shape};

/// A graph that grows by random nodes. All its extents are powers of one side, so that shapes meet often and a value
/// can be read in many layouts by an elementwise op of its own shape.
struct Growing {
    build: Build,
    state: u64,
    side: usize,
    /// Tensors that are updated, each with its version so far.
    updated: Vec<(StateId, ValueId)>,
}

impl Growing {
    fn new(seed: u64) -> Growing {
        let mut it = Growing { build: Build::default(), state: seed, side: 2, updated: Vec::new() };
        it.side += it.below(2);
        for extents in [1, 2, 2, 3] {
            let shape = it.cube(extents);
            let tensor = it.build.tensor(shape);
            if it.below(3) == 0 {
                let state = it.build.state(tensor);
                it.updated.push((state, tensor));
            }
        }
        it
    }

    fn graph(&self) -> &Graph {
        &self.build.graph
    }

    fn below(&mut self, n: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % n
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn cube(&self, rank: usize) -> Shape {
        Shape::new(&vec![self.side; rank]).unwrap()
    }

    fn shape(&self, value: ValueId) -> Shape {
        self.graph().value(value).shape
    }

    /// A value that `fits`, rather a late one.
    fn pick(&mut self, fits: impl Fn(&Growing, ValueId) -> bool) -> Option<ValueId> {
        let late = self.below(3) > 0;
        let all = 0..self.graph().values.len() as ValueId;
        let found: Vec<ValueId> = all.filter(|&value| self.is_readable(value) && fits(self, value)).collect();
        let skip = if late { found.len().saturating_sub(4) } else { 0 };
        (!found.is_empty()).then(|| found[skip + self.below(found.len() - skip)])
    }

    /// Versions of tensors that were updated since are gone: recordings read copies of them.
    fn is_readable(&self, value: ValueId) -> bool {
        let root = self.graph().root(value);
        let state = self.graph().values.state_of(root);
        state.is_none_or(|state| self.updated.contains(&(state, root)))
    }

    /// Writes a part of a tensor, or all of it.
    fn update(&mut self) -> Option<()> {
        if self.updated.is_empty() {
            return None;
        }
        let chosen = self.below(self.updated.len());
        let (state, over) = self.updated[chosen];
        let shape = self.shape(over);
        let apart = |it: &Growing, value| it.graph().values.state_of(value) != Some(state);
        if self.below(2) == 0 {
            let fits = |it: &Growing, value| it.shape(value) == shape && apart(it, value);
            let input = self.pick_words_if(fits)?;
            let output = self.build.state_version(state, over);
            self.build.push("assign", output, Copy { input, output });
            self.updated[chosen].1 = output;
            return Some(());
        }
        // A box of all but the first along one dimension, or of a single element.
        let inside = |part: &Shape| part.dims().iter().zip(shape.dims()).all(|(part, whole)| part <= whole);
        let fits = |it: &Growing, value| {
            let part = it.shape(value);
            part.rank() == shape.rank() && inside(&part) && apart(it, value)
        };
        let input = self.pick_words_if(fits)?;
        let part = self.shape(input);
        let mut corner = [0; MAX_RANK];
        for (d, (part, whole)) in part.dims().iter().zip(shape.dims()).enumerate() {
            corner[d] = self.below(whole - part + 1);
        }
        let output = self.build.state_version(state, over);
        self.build.push("update", output, CopyBox { input, shape: part, output, corner, over: Some(over) });
        self.updated[chosen].1 = output;
        Some(())
    }

    fn pick_words_if(&mut self, fits: impl Fn(&Growing, ValueId) -> bool) -> Option<ValueId> {
        self.pick(|it, value| it.graph().value(value).dtype == DType::F32 && fits(it, value))
    }

    /// The kernels of everything but elementwise ops and matmuls read words.
    fn pick_words(&mut self) -> Option<ValueId> {
        self.pick(|it, value| it.graph().value(value).dtype == DType::F32)
    }

    fn produce(&mut self, shape: Shape, dtype: DType) -> ValueId {
        self.build.graph.add_value(shape, dtype, Origin::Produced)
    }

    /// An elementwise op of one operation, whose operands stretch to the first one's shape.
    fn elementwise(&mut self) -> Option<()> {
        let ops = [
            (OpCode::AddF32, 2),
            (OpCode::MulF32, 2),
            (OpCode::SubF32, 2),
            (OpCode::NegF32, 1),
            (OpCode::ReluF32, 1),
            (OpCode::Select, 3),
            (OpCode::ExpF32, 1),
        ];
        let (op, arity) = self.one_of(&ops);
        let first = self.pick(|_, _| true)?;
        let shape = self.shape(first);
        let (mut inputs, mut scalars, mut code) = (SmallVec::new(), SmallVec::new(), Vec::new());
        for k in 0..arity {
            if k > 0 && self.below(5) == 0 {
                let word = self.below(3) as u32;
                code.push(Operand::Scalar(position_or_push(&mut scalars, word)));
                continue;
            }
            let fits = |it: &Growing, value| stretched(&it.shape(value), &shape).is_some();
            let value = if k == 0 { first } else { self.pick(fits)? };
            let strides = stretched(&self.shape(value), &shape)?;
            code.push(Operand::Input(position_or_push(
                &mut inputs,
                ElementwiseInput { value, strides, offset: 0 },
            )));
        }
        // Swapped, so that what is joined is not always the first.
        if self.below(2) == 0 {
            code.reverse();
        }
        let operand = |k: usize| code.get(k).copied().unwrap_or(code[0]);
        let packed = [DType::F16, DType::Bf16, DType::I16, DType::U8];
        let dtype = if self.below(8) == 0 { packed[self.below(packed.len())] } else { DType::F32 };
        let output = self.produce(shape, dtype);
        let elementwise =
            Elementwise::single(op, [operand(0), operand(1), operand(2)], inputs, scalars, output);
        self.build.push("op", output, elementwise);
        Some(())
    }

    /// A copy with dimensions exchanged, one of them backwards or cut, or repeated along a new one.
    fn view(&mut self) -> Option<()> {
        let value = self.pick(|it, value| it.shape(value).rank() > 0)?;
        let shape = self.shape(value);
        let mut dims: Vec<(usize, u32)> = shape.dims().iter().copied().zip(dense_strides(&shape)).collect();
        let (a, b) = (self.below(dims.len()), self.below(dims.len()));
        let mut offset = 0;
        match self.below(6) {
            0 => {
                offset = dims[a].1 * (dims[a].0 as u32 - 1);
                dims[a].1 = dims[a].1.wrapping_neg();
            }
            1 if dims[a].0 > 1 => {
                offset = dims[a].1;
                dims[a].0 -= 1;
            }
            2 if dims.len() < 3 => dims.insert(a, (self.side, 0)),
            _ => dims.swap(a, b),
        }
        let (extents, steps): (Vec<usize>, Vec<u32>) = dims.into_iter().unzip();
        let mut strides = [0; MAX_RANK];
        strides[..steps.len()].copy_from_slice(&steps);
        let output = self.produce(Shape::new(&extents)?, self.graph().value(value).dtype);
        let inputs = smallvec![ElementwiseInput { value, strides, offset }];
        let elementwise =
            Elementwise::single(OpCode::Copy, [Operand::Input(0); 3], inputs, smallvec![], output);
        self.build.push("view", output, elementwise);
        Some(())
    }

    fn reshape(&mut self) -> Option<()> {
        let value = self.pick(|_, _| true)?;
        let n = self.side;
        let shapes: [&[usize]; 7] =
            [&[n, n], &[n * n], &[n, n, n], &[n * n, n], &[n, n * n], &[1, n, n], &[n]];
        let shape = Shape::new(self.one_of(&shapes))?;
        if shape.elements() == self.shape(value).elements() {
            self.build.alias(value, shape);
        }
        Some(())
    }

    fn matmul(&mut self) -> Option<()> {
        let cube = |rank: std::ops::RangeInclusive<usize>| {
            move |it: &Growing, value| {
                rank.contains(&it.shape(value).rank()) && it.shape(value) == it.cube(it.shape(value).rank())
            }
        };
        let (a, b) = (self.pick(cube(2..=3))?, self.pick(cube(2..=3))?);
        let k_contiguous = [self.below(2) == 0, self.below(2) == 0];
        let mut output = self.matmul_of([a, b], k_contiguous);
        // Often some more behind it, so that all may become one.
        for _ in 0..self.below(4) {
            let k_contiguous = [self.below(4) > 0, self.below(2) == 0];
            output = self.matmul_of([output, b], k_contiguous);
        }
        Some(())
    }

    fn matmul_of(&mut self, [a, b]: [ValueId; 2], k_contiguous: [bool; 2]) -> ValueId {
        let rank = self.shape(a).rank().max(self.shape(b).rank());
        let (n, size) = (self.side as u32, (self.side * self.side) as u32);
        let output = self.produce(self.cube(rank), DType::F32);
        let matrix = |value, k_contiguous| MatrixOperand {
            value,
            k_contiguous,
            batch: [0, if self.shape(value).rank() == 3 { size } else { 0 }],
        };
        let (lhs, rhs) = (matrix(a, k_contiguous[0]), matrix(b, k_contiguous[1]));
        let batch = [1, if rank == 3 { n } else { 1 }];
        let epilogue = Epilogue::default();
        let matmul = Matmul { m: n, n, k: n, batch, lhs, rhs, alpha: 1.0, epilogue, output };
        self.build.push("matmul", output, matmul);
        output
    }

    /// An image for each of the side, and as many channels, rows and columns. The weights are whatever comes.
    fn convolution(&mut self) -> Option<()> {
        let (input, weights) = (self.pick_words()?, self.pick_words()?);
        let n = self.side as u32;
        let output = self.produce(self.cube(4), DType::F32);
        let convolution = Convolution {
            input,
            weights,
            images: n,
            groups: 1,
            channels: 1,
            rows: n,
            size: [n; 2],
            taps: [1; 2],
            result: [n; 2],
            stride: [1; 2],
            dilation: [1; 2],
            padding: [0; 2],
            epilogue: Epilogue::default(),
            output,
        };
        self.build.push("conv2d", output, convolution);
        Some(())
    }

    fn reduce(&mut self) -> Option<()> {
        let input = self.pick_words()?;
        let shape = self.shape(input);
        let axis = self.below(shape.rank() + 1);
        let (geometry, left) = if axis == shape.rank() {
            (Geometry::whole(&shape), Shape::new(&[])?)
        } else {
            let mut dims = shape.dims().to_vec();
            dims[axis] = 1;
            (Geometry::along(&shape, axis), Shape::new(&dims)?)
        };
        let second = if self.below(6) == 0 { self.pick(|it, value| it.shape(value) == shape) } else { None };
        let output = self.produce(left, DType::F32);
        let reduction = if second.is_some() { Reduction::Dot } else { Reduction::Sum };
        let reduce = Reduce { op: "sum", reduction, input, second, prologue: None, geometry, output };
        self.build.push("sum", input, reduce);
        Some(())
    }

    fn softmax(&mut self) -> Option<()> {
        let input = self.pick_words()?;
        let shape = self.shape(input);
        let axis = shape.rank().checked_sub(1 + self.below(2))?;
        self.build.softmax(false, input, axis);
        Some(())
    }

    /// Two values one after the other: a value with two writers.
    fn concat(&mut self) -> Option<()> {
        let parts = [self.pick_words()?, self.pick_words()?];
        self.build.concat(&parts);
        Some(())
    }

    /// What was recorded before once more, with results of its own.
    fn again(&mut self) -> Option<()> {
        let node = self.below(self.graph().nodes.len().max(1));
        let mut node = self.graph().nodes.get(node)?.clone();
        // One of two writers would be no whole.
        if matches!(node.op, Op::CopyBox(_) | Op::Copy(_)) {
            return None;
        }
        let mut gone = false;
        node.op.touches(|value, write| gone |= !write && !self.is_readable(value));
        if gone {
            return None;
        }
        let graph = &mut self.build.graph;
        let mut output = |old: &mut ValueId| {
            let info = graph.value(*old).clone();
            *old = graph.add_value(info.shape, info.dtype, Origin::Produced);
        };
        match &mut node.op {
            Op::Elementwise(elementwise) => elementwise.outputs.iter_mut().for_each(|o| output(&mut o.value)),
            Op::Matmul(matmul) => output(&mut matmul.output),
            Op::Conv2d(convolution) => output(&mut convolution.output),
            Op::Reduce(reduce) => output(&mut reduce.output),
            Op::Softmax(softmax) => output(&mut softmax.output),
            _ => return None,
        }
        self.build.graph.nodes.push(node);
        Some(())
    }

    fn grow(&mut self) -> Option<()> {
        match self.below(23) {
            20.. => self.update()?,
            0..8 => self.elementwise()?,
            8..10 => self.again()?,
            10..13 => self.view()?,
            13 => self.reshape()?,
            14..16 => self.matmul()?,
            16 => self.convolution()?,
            17 => self.reduce()?,
            18 => self.softmax()?,
            _ => self.concat()?,
        }
        if self.below(4) == 0 {
            self.keep(self.graph().values.len() as ValueId - 1);
        }
        Some(())
    }

    fn keep(&mut self, value: ValueId) {
        let root = self.graph().root(value);
        if self.graph().value(root).origin == Origin::Produced {
            self.build.keep(root);
        }
    }
}

/// The strides with which a value is read in a larger shape.
fn stretched(from: &Shape, to: &Shape) -> Option<[u32; MAX_RANK]> {
    let added = to.rank().checked_sub(from.rank())?;
    let mut strides = [0; MAX_RANK];
    for (d, (&extent, stride)) in from.dims().iter().zip(dense_strides(from)).enumerate() {
        match to.dims()[added + d] {
            wanted if wanted == extent => strides[added + d] = stride,
            _ if extent == 1 => {}
            _ => return None,
        }
    }
    Some(strides)
}

fn random_graph(seed: u64) -> Graph {
    let mut it = Growing::new(seed);
    let nodes = [3, 8, 20, 40][it.below(4)];
    while it.graph().nodes.len() < nodes {
        // What finds no operand that fits is not made.
        let _ = it.grow();
    }
    it.keep(it.graph().values.len() as ValueId - 1);
    it.build.graph
}

/// How often fusion did what.
#[derive(Debug, Default)]
struct Tally {
    joined: usize,
    several_results: usize,
    epilogues: usize,
    prologues: usize,
}

impl Tally {
    fn count(&mut self, graph: &Graph) {
        for node in &graph.nodes {
            match &node.op {
                Op::Elementwise(elementwise) => {
                    assert!(elementwise_fits(elementwise), "no module holds {elementwise:?}");
                    self.joined += usize::from(elementwise.steps.len() > 1);
                    self.several_results += usize::from(elementwise.outputs.len() > 1);
                }
                Op::Matmul(matmul) => {
                    self.epilogue(&matmul.epilogue);
                }
                Op::Conv2d(convolution) => self.epilogue(&convolution.epilogue),
                Op::Reduce(reduce) => self.prologues += usize::from(reduce.prologue.is_some()),
                Op::Softmax(softmax) => self.prologues += usize::from(softmax.prologue.is_some()),
                _ => {}
            }
        }
    }

    fn epilogue(&mut self, epilogue: &Epilogue) {
        assert!(epilogue.fits(), "no kernel holds {epilogue:?}");
        self.epilogues += usize::from(!epilogue.steps.is_empty());
    }
}

/// A command for each node, with the values that it touches: an output may be written over what is read element for
/// element.
fn commands(graph: &Graph) -> Vec<Command> {
    let command = |node: &Node| {
        let mut accesses = SmallVec::new();
        node.op.touches(|value, write| accesses.push(graph.values.whole(value, write)));
        let command = Command::new(node.label.clone(), Action::Copy, accesses);
        let Op::Elementwise(elementwise) = &node.op else { return command };
        let words = |value| !graph.value(value).dtype.is_packed();
        let over = |input: &ElementwiseInput| {
            words(input.value)
                && elementwise.outputs.iter().all(|o| words(o.value))
                && reads_whole(graph, elementwise, input)
        };
        let in_place =
            (0..).zip(&elementwise.inputs).filter(|(_, input)| over(input)).map(|(k, _)| 1 << k).sum();
        command.with_in_place(in_place)
    };
    graph.nodes.iter().map(command).collect()
}

/// Says which graph it was if the test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
            for passes in [Passes::None, Passes::Needed, Passes::Fused, Passes::Merged, Passes::InPlace] {
                let graph = passed(self.0, passes);
                eprintln!("{passes:?}:");
                for node in &graph.nodes {
                    let mut touched = Vec::new();
                    node.op.touches(|value, write| {
                        touched.push((value, graph.value(graph.root(value)).origin, write));
                    });
                    eprintln!("  {}: {touched:?}", node.label);
                }
            }
        }
    }
}

/// What is done to a random graph before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passes {
    None,
    Needed,
    Fused,
    Merged,
    InPlace,
}

fn passed(seed: u64, passes: Passes) -> Graph {
    let mut graph = random_graph(seed);
    if passes != Passes::None {
        drop_unneeded(&mut graph);
    }
    match passes {
        Passes::None | Passes::Needed => {}
        Passes::Fused => fuse_all(&mut graph),
        Passes::Merged | Passes::InPlace => fuse_and_merge(&mut graph, fuse_all),
    }
    if passes == Passes::InPlace {
        assign_in_place(&mut graph);
    }
    graph
}

#[test]
fn random_graphs_mean_the_same_after_fusion_and_in_shared_memory() {
    let mut tally = Tally::default();
    let (mut dropped, mut merged, mut in_place) = (0, 0, 0);
    for seed in 0..7000 {
        let _told = Seed(seed);
        let recorded = random_graph(seed);
        let expected = run(&recorded, None);
        let [_, needed, fused, both, placed] =
            [Passes::None, Passes::Needed, Passes::Fused, Passes::Merged, Passes::InPlace].map(|passes| {
                let graph = passed(seed, passes);
                if passes == Passes::Merged {
                    tally.count(&graph);
                }
                let lowered = Lowered { values: graph.values.clone(), commands: commands(&graph) };
                for tight in [false, true] {
                    let memory = (&assign(&lowered, tight), &lowered.commands[..]);
                    assert_eq!(run(&graph, Some(memory)), expected);
                }
                graph
            });
        dropped += usize::from(needed.nodes.len() < recorded.nodes.len());
        merged += usize::from(both.nodes.len() < fused.nodes.len());
        in_place += usize::from(placed.nodes.len() < both.nodes.len());
        assert!(adds_nothing(&both, &fused), "merging adds a dispatch or a stored value");
    }
    assert!(dropped > 200 && merged > 200, "{dropped} graphs with unneeded nodes, {merged} with equal ones");
    assert!(in_place > 200, "{in_place} graphs with assignments in place");
    let Tally { joined, several_results, epilogues, prologues } = tally;
    let least = [joined, several_results, epilogues, prologues].into_iter().min();
    assert!(least > Some(200), "too little is fused for a test: {tally:?}");
}
