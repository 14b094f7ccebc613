//! Common subexpressions: a node that equals an earlier one is dropped, and its readers read the earlier result. A pure
//! function from nodes to nodes.
//!
//! The pass adds neither a dispatch nor a stored value. A node that is never fused into its readers is stored in any
//! case, so merging it with an equal one adds nothing; after fusion, that holds for every node. Before fusion, a merged
//! elementwise op might have to be stored for two readers that would each have computed it in registers: such ops are
//! not merged. (Equal steps of one elementwise op become one when ops are joined: `elementwise.rs`.) Matmuls and
//! convolutions are merged before fusion only where a trial shows that this adds nothing.
//!
//! Values are written once, and a tensor has a value for each of its contents, whatever writes it: the host while a
//! recording is open, or the recording itself. So nodes that read the same values read the same words. Nodes that
//! update a tensor are not merged. Two values that are both kept stay two, in two blocks. Users' kernels run as often
//! as they are recorded.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::ir::attention::Attention;
use crate::ir::branches::branch;
use crate::ir::conv2d::Convolution;
use crate::ir::copy::Gather;
use crate::ir::elementwise::{Elementwise, ElementwiseInput};
use crate::ir::epilogue::Epilogue;
use crate::ir::graph::{Graph, Node};
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::norm::Norm;
use crate::ir::op::Op;
use crate::ir::rotary::Angles;
use crate::ir::value::{Origin, ValueId};

#[cfg(test)]
mod tests;

/// Fusions that are tried out to see which matmuls to merge; each takes as long as the fusion of the recording.
const MOST_TRIALS: usize = 8;

/// Fuses the graph and merges what is equal, so that there is no dispatch and no stored value more than fusion alone
/// leaves.
pub(crate) fn fuse_and_merge(graph: &mut Graph, fuse: impl Fn(&mut Graph)) {
    let fused = |mut graph: Graph| {
        fuse(&mut graph);
        merge(&mut graph, |_| true);
        graph
    };
    merge(graph, |node| !matches!(node.op, Op::Elementwise(_) | Op::Matmul(_) | Op::Conv2d(_)));
    let heavy = |node: &Node| matches!(node.op, Op::Matmul(_) | Op::Conv2d(_));
    let several = graph.nodes.iter().filter(|node| heavy(node)).nth(1).is_some();
    let twice = if branch!("common: several matmuls", several) {
        merge(&mut graph.clone(), heavy)
    } else {
        SmallVec::new()
    };
    if branch!("common: no matmul twice", twice.is_empty()) {
        *graph = fused(std::mem::take(graph));
        return;
    }
    let recorded = std::mem::take(graph);
    let merged = |outputs: &[ValueId]| {
        let mut merged = recorded.clone();
        let writes = |node: &Node| self::outputs(node).iter().any(|output| outputs.contains(output));
        let wanted = |node: &Node| heavy(node) && writes(node);
        // The first of them stays whatever it writes, so that it need not be among the outputs.
        merge_if(&mut merged, heavy, wanted);
        fused(merged)
    };
    let mut best = fused(recorded.clone());
    let mut taken: SmallVec<[ValueId; 4]> = SmallVec::new();
    // One after the other, or all at once where that would take long.
    let few = branch!("common: few trials", twice.len() <= MOST_TRIALS);
    let one_by_one = if few { 1 } else { twice.len() };
    for some in twice.chunks(one_by_one) {
        let before = taken.len();
        taken.extend_from_slice(some);
        let trial = merged(&taken);
        if branch!("common: adds nothing", adds_nothing(&trial, &best)) {
            best = trial;
        } else {
            taken.truncate(before);
        }
    }
    *graph = best;
}

/// Whether there are no more nodes than in the other graph, and no more stored values.
pub(crate) fn adds_nothing(graph: &Graph, other: &Graph) -> bool {
    let stored = |graph: &Graph| {
        let mut written = vec![false; graph.values.len()];
        for node in &graph.nodes {
            node.op.touches(|value, write| written[graph.root(value) as usize] |= write);
        }
        written.into_iter().filter(|written| *written).count()
    };
    graph.nodes.len() <= other.nodes.len() && stored(graph) <= stored(other)
}

/// Lets one node stand for all that are equal, of those that are `eligible`. Gives the results of those that are gone.
fn merge(graph: &mut Graph, eligible: impl Fn(&Node) -> bool) -> SmallVec<[ValueId; 4]> {
    merge_if(graph, eligible, |_| true)
}

/// The same, where those that go are only such as are `wanted` away.
fn merge_if(
    graph: &mut Graph,
    eligible: impl Fn(&Node) -> bool,
    wanted: impl Fn(&Node) -> bool,
) -> SmallVec<[ValueId; 4]> {
    let mut gone = SmallVec::new();
    if branch!("common: one node", graph.nodes.len() < 2) {
        return gone;
    }
    let mut nodes = std::mem::take(&mut graph.nodes);
    let mut merging = Merging::new(graph, &nodes);
    let mut known: FxHashMap<u64, SmallVec<[usize; 1]>> = FxHashMap::default();
    let mut stays = vec![true; nodes.len()];
    for (i, node) in nodes.iter().enumerate().filter(|(_, node)| eligible(node)) {
        let Some(key) = merging.key(node) else { continue };
        let same = known.entry(key).or_default();
        let first = same.iter().find(|&&first| wanted(node) && merging.mergeable(&nodes[first], node));
        branch!("common: same", first.is_some());
        if let Some(&first) = first {
            merging.merge(&nodes[first], node);
            gone.extend(outputs(node));
            stays[i] = false;
        } else {
            same.push(i);
        }
    }
    if branch!("common: some are gone", !gone.is_empty()) {
        let mut stays = stays.into_iter();
        nodes.retain(|_| stays.next().unwrap_or(true));
        let names = merging.names;
        rename(graph, &names);
    }
    graph.nodes = nodes;
    gone
}

/// Makes every value that another one stands for a view of that one.
fn rename(graph: &mut Graph, names: &[ValueId]) {
    for id in 0..graph.values.len() {
        let root = name(names, graph.root(id as ValueId));
        if branch!("common: renamed", root != id as ValueId) {
            graph.values[id].origin = Origin::Alias(root);
        }
    }
}

/// The value that stands for another; itself if none does.
fn name(names: &[ValueId], id: ValueId) -> ValueId {
    let mut id = id;
    while names[id as usize] != id {
        id = names[id as usize];
    }
    id
}

/// The roots that a node writes.
fn outputs(node: &Node) -> SmallVec<[ValueId; 2]> {
    let mut outputs = SmallVec::new();
    node.op.touches(|value, write| outputs.extend(write.then_some(value)));
    outputs
}

struct Merging<'a> {
    graph: &'a Graph,
    /// For each value, the one that stands for it.
    names: Vec<ValueId>,
    /// For each value, how many nodes write to it.
    writers: Vec<u32>,
}

impl Merging<'_> {
    fn new<'a>(graph: &'a Graph, nodes: &[Node]) -> Merging<'a> {
        let mut writers = vec![0; graph.values.len()];
        for node in nodes {
            node.op.touches(|value, write| writers[graph.root(value) as usize] += u32::from(write));
        }
        Merging { graph, names: (0..graph.values.len() as ValueId).collect(), writers }
    }

    /// The value whose words are read where this one is.
    fn read(&self, value: ValueId) -> ValueId {
        name(&self.names, self.graph.root(value))
    }

    /// A number that equal nodes share; none for what is not to be merged.
    fn key(&self, node: &Node) -> Option<u64> {
        // A kernel of users' own may do what it likes.
        if matches!(node.op, Op::Dispatch(_)) {
            return None;
        }
        let mut state = FxHasher::default();
        std::mem::discriminant(&node.op).hash(&mut state);
        node.op.touches(|value, write| {
            if write {
                self.graph.bytes(value).hash(&mut state);
            } else {
                self.read(value).hash(&mut state);
            }
        });
        match &node.op {
            Op::Elementwise(elementwise) => {
                elementwise.steps.iter().for_each(|step| step.word().hash(&mut state));
                elementwise.scalars.hash(&mut state);
            }
            Op::Reduce(reduce) => (reduce.reduction as u32, reduce.geometry.extent).hash(&mut state),
            Op::Matmul(matmul) => [matmul.m, matmul.n, matmul.k].hash(&mut state),
            Op::Fill(fill) => fill.word.hash(&mut state),
            Op::Generate(generate) => (generate.sequence as u32, generate.seed).hash(&mut state),
            _ => {}
        }
        Some(state.finish())
    }

    /// Whether one node may stand for both: they make the same words of the same ones, each alone writes all of its
    /// results, and none of those is to be two tensors.
    fn mergeable(&self, first: &Node, second: &Node) -> bool {
        let (made, again) = (outputs(first), outputs(second));
        let kept = |value| self.graph.value(self.read(value)).kept.is_some();
        let fit = |(&one, &other): (&ValueId, &ValueId)| {
            let types = [one, other].map(|value| self.graph.value(value).dtype);
            self.whole(one)
                && self.whole(other)
                && branch!("common: one type", types[0] == types[1])
                && self.graph.bytes(one) == self.graph.bytes(other)
                && !branch!("common: both are kept", kept(one) && kept(other))
        };
        made.len() == again.len()
            && made.iter().zip(&again).all(fit)
            && all_written(self.graph, first)
            && all_written(self.graph, second)
            && self.same(first, second)
    }

    /// Whether it is made here, and by just one node.
    fn whole(&self, value: ValueId) -> bool {
        let root = self.graph.root(value);
        self.writers[root as usize] == 1 && self.graph.value(root).origin == Origin::Produced
    }

    /// Lets the results of the first node stand for those of the second, or the other way round where those are kept.
    fn merge(&mut self, first: &Node, second: &Node) {
        for (one, other) in outputs(first).into_iter().zip(outputs(second)) {
            let (one, other) = (self.read(one), self.read(other));
            if branch!("common: the other is kept", self.graph.value(other).kept.is_some()) {
                self.names[one as usize] = other;
            } else {
                self.names[other as usize] = one;
            }
        }
    }

    fn same(&self, first: &Node, second: &Node) -> bool {
        match (&first.op, &second.op) {
            (Op::Elementwise(a), Op::Elementwise(b)) => {
                branch!("common: elementwise");
                self.same_elementwise(a, b) && self.same_results(a, b)
            }
            (Op::Matmul(a), Op::Matmul(b)) => {
                branch!("common: matmuls", self.same_matmul(a, b))
            }
            (Op::Conv2d(a), Op::Conv2d(b)) => {
                branch!("common: convolutions", self.same_convolution(a, b))
            }
            (Op::Reduce(a), Op::Reduce(b)) => {
                branch!("common: reductions");
                let second = |value: Option<ValueId>| value.map(|value| self.read(value));
                a.reduction == b.reduction
                    && a.geometry == b.geometry
                    && second(a.second) == second(b.second)
                    && self.same_input((a.input, a.prologue.as_ref()), (b.input, b.prologue.as_ref()))
            }
            (Op::Softmax(a), Op::Softmax(b)) => {
                branch!("common: softmax");
                a.logarithm == b.logarithm
                    && a.geometry == b.geometry
                    && self.same_input((a.input, a.prologue.as_ref()), (b.input, b.prologue.as_ref()))
            }
            (Op::Norm(a), Op::Norm(b)) => {
                branch!("common: norms");
                self.same_norm(a, b)
            }
            (Op::PackWeights(a), Op::PackWeights(b)) => {
                branch!("common: weights");
                (a.groups, a.rows, a.depth) == (b.groups, b.rows, b.depth)
                    && self.read(a.weights) == self.read(b.weights)
            }
            (Op::Gather(a), Op::Gather(b)) => {
                branch!("common: gathers");
                let read = |a: &Gather| ([self.read(a.table), self.read(a.rows)], a.geometry, a.indexed);
                read(a) == read(b)
            }
            (Op::Pool(a), Op::Pool(b)) => {
                branch!("common: pooled");
                a.kind == b.kind && a.windows == b.windows && self.read(a.input) == self.read(b.input)
            }
            (Op::Resize(a), Op::Resize(b)) => {
                branch!("common: resized");
                a.how == b.how && self.read(a.input) == self.read(b.input)
            }
            (Op::Attention(a), Op::Attention(b)) => {
                branch!("common: attention");
                let read = |a: &Attention| {
                    let mask = a.mask.map(|mask| (self.read(mask.value), mask.added, mask.strides));
                    let inputs = [a.q, a.k, a.v].map(|value| self.read(value));
                    (inputs, mask, a.length.map(|length| self.read(length)))
                };
                (a.extents, a.rules, a.scale) == (b.extents, b.rules, b.scale) && read(a) == read(b)
            }
            (Op::Angles(a), Op::Angles(b)) => {
                branch!("common: angles");
                let told = |a: &Angles| (a.start, a.interleaved, a.base.to_bits(), a.tokens, a.depth);
                told(a) == told(b) && self.read(a.positions) == self.read(b.positions)
            }
            (Op::Generate(a), Op::Generate(b)) => {
                branch!("common: generated");
                a.sequence == b.sequence && a.seed == b.seed
            }
            (Op::Copy(a), Op::Copy(b)) => {
                branch!("common: copies");
                self.read(a.input) == self.read(b.input)
            }
            (Op::CopyBox(a), Op::CopyBox(b)) => {
                branch!("common: boxes");
                self.read(a.input) == self.read(b.input)
            }
            (Op::Fill(a), Op::Fill(b)) => {
                branch!("common: fills");
                a.word == b.word
            }
            _ => false,
        }
    }

    /// What a reduction or a softmax reads: a value, or what an elementwise op makes.
    fn same_input(&self, a: (ValueId, Option<&Elementwise>), b: (ValueId, Option<&Elementwise>)) -> bool {
        match (a, b) {
            ((_, Some(a)), (_, Some(b))) => {
                branch!("common: prologues");
                self.same_elementwise(a, b)
            }
            ((a, None), (b, None)) => {
                branch!("common: no prologues");
                self.read(a) == self.read(b)
            }
            _ => false,
        }
    }

    fn same_norm(&self, a: &Norm, b: &Norm) -> bool {
        let inputs = |norm: &Norm| {
            let residual = norm.residual.map(|residual| residual.input);
            let inputs = [Some(norm.input), residual, Some(norm.gamma), norm.beta];
            inputs.map(|input| input.map(|value| self.read(value)))
        };
        let numbers = |norm: &Norm| (norm.centred, norm.weights, norm.rows, norm.epsilon.to_bits());
        numbers(a) == numbers(b) && inputs(a) == inputs(b)
    }

    /// The same steps on the same inputs.
    fn same_elementwise(&self, a: &Elementwise, b: &Elementwise) -> bool {
        let same = |(a, b): (&ElementwiseInput, &ElementwiseInput)| {
            (a.strides, a.offset) == (b.strides, b.offset) && self.read(a.value) == self.read(b.value)
        };
        a.steps == b.steps
            && a.scalars == b.scalars
            && a.inputs.len() == b.inputs.len()
            && a.inputs.iter().zip(&b.inputs).all(same)
    }

    /// The same steps' results, in the same shape, which strides go by.
    fn same_results(&self, a: &Elementwise, b: &Elementwise) -> bool {
        let shape = |value| self.graph.value(value).shape;
        a.outputs.len() == b.outputs.len()
            && a.outputs
                .iter()
                .zip(&b.outputs)
                .all(|(a, b)| a.step == b.step && shape(a.value) == shape(b.value))
    }

    fn same_matmul(&self, a: &Matmul, b: &Matmul) -> bool {
        let matrix = |matrix: &MatrixOperand| (self.read(matrix.value), matrix.k_contiguous, matrix.batch);
        (a.m, a.n, a.k, a.batch, a.alpha.to_bits()) == (b.m, b.n, b.k, b.batch, b.alpha.to_bits())
            && matrix(&a.lhs) == matrix(&b.lhs)
            && matrix(&a.rhs) == matrix(&b.rhs)
            && self.same_epilogue(&a.epilogue, &b.epilogue)
            && self.graph.value(a.output).shape == self.graph.value(b.output).shape
    }

    fn same_convolution(&self, a: &Convolution, b: &Convolution) -> bool {
        let sizes = |c: &Convolution| {
            let counts = [c.images, c.groups, c.channels, c.rows];
            (counts, [c.size, c.taps, c.result, c.stride, c.dilation, c.padding])
        };
        sizes(a) == sizes(b)
            && self.read(a.input) == self.read(b.input)
            && self.read(a.weights) == self.read(b.weights)
            && self.same_epilogue(&a.epilogue, &b.epilogue)
    }

    fn same_epilogue(&self, a: &Epilogue, b: &Epilogue) -> bool {
        a.steps == b.steps
            && a.scalars == b.scalars
            && a.extras.len() == b.extras.len()
            && a.extras.iter().zip(&b.extras).all(|(a, b)| {
                (a.batch, a.row, a.column, a.format) == (b.batch, b.row, b.column, b.format)
                    && self.read(a.value) == self.read(b.value)
            })
    }
}

/// Whether it writes its results from end to end. All do but those that fill a box of a larger value.
fn all_written(graph: &Graph, node: &Node) -> bool {
    match &node.op {
        Op::CopyBox(copy) => copy.shape.elements() == graph.value(copy.output).shape.elements(),
        _ => true,
    }
}
