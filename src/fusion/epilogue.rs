//! Epilogues: an elementwise op that reads the result of a matmul or a convolution element for element becomes a part
//! of its epilogue, and the result itself is never stored. A pure function from nodes to nodes.

use smallvec::SmallVec;

use crate::fusion::def_use::{DefUse, each_node};
use crate::fusion::elementwise::{joined_label, position_or_push, reads_whole};
use crate::ir::branches::branch;
use crate::ir::elementwise::{Elementwise, ElementwiseInput, Operand};
use crate::ir::epilogue::{self, Epilogue, Extra, Source};
use crate::ir::graph::{Graph, Node};
use crate::ir::op::Op;
use crate::ir::value::ValueId;
use crate::shape::Format;

/// A node that can take an epilogue: the layout of its result, and its epilogue so far.
struct Target<'a> {
    /// Extents of the result as the epilogue counts them, outermost first.
    extents: [u32; 4],
    epilogue: &'a Epilogue,
    output: ValueId,
}

impl Target<'_> {
    fn of(op: &Op) -> Option<Target<'_>> {
        match op {
            Op::Matmul(matmul) => {
                let [outer, inner] = matmul.batch;
                let extents = [outer, inner, matmul.m, matmul.n];
                Some(Target { extents, epilogue: &matmul.epilogue, output: matmul.output })
            }
            Op::Conv2d(convolution) => {
                let [images, channels, pixels] = convolution.extents();
                let extents = [1, images, channels, pixels];
                Some(Target { extents, epilogue: &convolution.epilogue, output: convolution.output })
            }
            _ => None,
        }
    }
}

/// Gives the node the elementwise op behind it as its epilogue.
fn join(node: &mut Node, later: &Node, epilogue: Epilogue) {
    let Op::Elementwise(elementwise) = &later.op else { return };
    let Some(output) = elementwise.only_output() else { return };
    match &mut node.op {
        Op::Matmul(matmul) => {
            branch!("fuse epilogue: of a matmul");
            matmul.epilogue = epilogue;
            matmul.output = output;
        }
        Op::Conv2d(convolution) => {
            branch!("fuse epilogue: of a convolution");
            convolution.epilogue = epilogue;
            convolution.output = output;
        }
        _ => return,
    }
    node.label.op = joined_label(&node.label, &later.label).op;
}

/// Moves every elementwise op that fits into the epilogue before it. The joined node is at the op's place: all that the
/// op reads is there by then.
pub(crate) fn absorb_epilogues(graph: &mut Graph) {
    let has_elementwise = graph.nodes.iter().any(|node| matches!(node.op, Op::Elementwise(_)));
    let targets = graph.nodes.iter().any(|node| Target::of(&node.op).is_some());
    if !branch!("fuse epilogue: elementwise", has_elementwise) || !branch!("fuse epilogue: targets", targets)
    {
        return;
    }
    each_node(graph, |graph, nodes, def_use, i| {
        let absorbed = absorb_one(graph, nodes, def_use, i);
        branch!("fuse epilogue: absorbed", absorbed.is_some());
        if let Some((target, epilogue)) = absorbed {
            // The node that is then at the target's place is dropped.
            nodes.swap(target, i);
            let (before, from) = nodes.split_at_mut(i);
            join(&mut from[0], &before[target], epilogue);
            def_use.move_to(target, i);
        }
    });
}

/// The place of a node that can take the elementwise op at `i` into its epilogue, and that epilogue.
fn absorb_one(graph: &Graph, nodes: &[Node], def_use: &DefUse, i: usize) -> Option<(usize, Epilogue)> {
    let Op::Elementwise(elementwise) = &nodes[i].op else { return None };
    let output = elementwise.only_output()?;
    // Matmuls and convolutions store words.
    if branch!("fuse epilogue: packed", graph.value(output).dtype.is_packed()) {
        return None;
    }
    elementwise.inputs.iter().find_map(|input| {
        let root = graph.root(input.value);
        let place = def_use.place_of_writer(root)?;
        let target =
            Target::of(&nodes[place as usize].op).filter(|target| graph.root(target.output) == root)?;
        if branch!("fuse epilogue: kept", graph.value(root).kept.is_some())
            || branch!("fuse epilogue: read elsewhere", def_use.read_elsewhere(root, [i as u32; 2]))
            || !def_use.is_movable(graph, &nodes[place as usize].op, place, i as u32)
        {
            return None;
        }
        Some((place as usize, joined_epilogue(graph, &target, elementwise)?))
    })
}

/// The epilogue followed by an elementwise op that reads its result; `None` if that does not fit, or reads other
/// elements of it than the one that is at hand: they are never stored.
fn joined_epilogue(graph: &Graph, target: &Target<'_>, elementwise: &Elementwise) -> Option<Epilogue> {
    let root = graph.root(target.output);
    let mut joined = target.epilogue.clone();
    let result = joined.last();
    let before = joined.steps.len() as u8;
    let mut inputs: SmallVec<[Source; 4]> = SmallVec::new();
    for input in &elementwise.inputs {
        inputs.push(if branch!("fuse epilogue: another input", graph.root(input.value) != root) {
            let extra = extra(graph, target, elementwise, input)?;
            Source::Extra(position_or_push(&mut joined.extras, extra))
        } else if branch!("fuse epilogue: reads whole", reads_whole(graph, elementwise, input)) {
            result
        } else {
            return None;
        });
    }
    let scalars: SmallVec<[Source; 4]> = elementwise
        .scalars
        .iter()
        .map(|bits| Source::Scalar(position_or_push(&mut joined.scalars, *bits)))
        .collect();
    let source = |operand: Operand| match operand {
        Operand::Input(i) => inputs[usize::from(i)],
        Operand::Scalar(i) => scalars[usize::from(i)],
        Operand::Step(i) => Source::Step(before + i),
    };
    let steps = elementwise.steps.iter();
    joined.steps.extend(steps.map(|s| epilogue::Step { op: s.op, operands: s.operands.map(source) }));
    branch!("fuse epilogue: fits", joined.fits()).then_some(joined)
}

/// A further input of the elementwise op as the epilogue finds its elements.
fn extra(
    graph: &Graph,
    target: &Target<'_>,
    elementwise: &Elementwise,
    input: &ElementwiseInput,
) -> Option<Extra> {
    let shape = elementwise.outputs.first().map(|output| graph.value(output.value).shape)?;
    // Dimensions of one element are not walked over, and the epilogue may count some that the result lacks.
    let dims = shape.dims().iter().map(|extent| *extent as u32).zip(input.strides);
    let mut left: SmallVec<[(u32, u32); 4]> = dims.filter(|(extent, _)| *extent != 1).collect();
    let mut strides = [0; 4];
    for (stride, extent) in strides.iter_mut().zip(target.extents).rev().filter(|(_, extent)| *extent != 1) {
        let (mut covered, step) = left.pop()?;
        // The pixels of a convolution are rows of columns, and one dimension of its epilogue.
        while branch!("extra: several dimensions", covered < extent) {
            let (outer, outer_step) = left.pop()?;
            if branch!(
                "extra: pieces of a row",
                u64::from(outer_step) != u64::from(step) * u64::from(covered)
            ) {
                return None;
            }
            covered = covered.checked_mul(outer)?;
        }
        if branch!("extra: another shape", covered != extent) {
            return None;
        }
        *stride = step;
    }
    let [outer, inner, row, column] = strides;
    let fits = branch!("extra: from the first", input.offset == 0)
        && branch!("extra: columns side by side", column <= 1)
        && branch!("extra: nothing left", left.is_empty());
    let format = graph.value(input.value).dtype.format();
    branch!("extra: packed", format != Format::Word);
    fits.then_some(Extra { value: input.value, batch: [outer, inner], row, column, format })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fusion::elementwise::fuse;
    use crate::ir::build::{Build, first_dims};
    use crate::ir::elementwise::{OpCode, dense_strides};
    use crate::ir::value::Origin;
    use crate::shape::{DType, Shape};
    use smallvec::smallvec;

    const M: usize = 6;
    const N: usize = 8;

    fn matrices(b: &mut Build) -> ValueId {
        let (lhs, rhs) = (b.tensor([M, 3]), b.tensor([3, N]));
        b.matmul(lhs, rhs)
    }

    /// An operation on a value and, with these strides, on a tensor.
    fn op(b: &mut Build, op: OpCode, value: ValueId, other: Option<(ValueId, [u32; 2])>) -> ValueId {
        let shape = Shape::from([M, N]);
        let other = other.map(|(value, [row, column])| (value, first_dims(&[row, column])));
        let operands: Vec<_> = [(value, dense_strides(&shape))].into_iter().chain(other).collect();
        b.strided(op, shape, &operands)
    }

    fn absorbed(mut b: Build) -> Vec<Node> {
        absorb_epilogues(&mut b.graph);
        fuse(&mut b.graph);
        absorb_epilogues(&mut b.graph);
        b.graph.nodes
    }

    fn epilogue(node: &Node) -> &Epilogue {
        match &node.op {
            Op::Matmul(matmul) => &matmul.epilogue,
            _ => panic!("not a product"),
        }
    }

    #[test]
    fn bias_and_activation_become_an_epilogue() {
        let mut b = Build::default();
        let (matmul, bias) = (matrices(&mut b), b.tensor([N]));
        let sum = op(&mut b, OpCode::AddF32, matmul, Some((bias, [0, 1])));
        let last = op(&mut b, OpCode::ReluF32, sum, None);
        let nodes = absorbed(b);
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].label.to_string(), "matmul+op+op 6x8 f32");
        let later = epilogue(&nodes[0]);
        assert_eq!(
            later.extras.as_slice(),
            [Extra { value: bias, batch: [0; 2], row: 0, column: 1, format: Format::Word }]
        );
        assert_eq!(later.steps[0].operands[..2], [Source::Accumulator, Source::Extra(0)]);
        assert_eq!(later.steps[1].operands[0], Source::Step(0));
        let (mut read, mut written) = (Vec::new(), Vec::new());
        nodes[0].op.touches(|value, write| if write { written.push(value) } else { read.push(value) });
        assert_eq!((written, read.contains(&bias)), (vec![last], true));
    }

    #[test]
    fn a_diamond_behind_a_matmul_becomes_an_epilogue() {
        let mut b = Build::default();
        let matmul = matrices(&mut b);
        let (left, right) =
            (op(&mut b, OpCode::ReluF32, matmul, None), op(&mut b, OpCode::NegF32, matmul, None));
        op(&mut b, OpCode::AddF32, left, Some((right, [N as u32, 1])));
        let nodes = absorbed(b);
        assert_eq!((nodes.len(), epilogue(&nodes[0]).steps.len()), (1, 3));
    }

    #[test]
    fn what_others_need_is_stored() {
        let mut b = Build::default();
        let matmul = matrices(&mut b);
        op(&mut b, OpCode::ReluF32, matmul, None);
        b.copy(matmul);
        assert_eq!(absorbed(b).len(), 3);
    }

    #[test]
    fn a_matmul_that_is_read_in_two_layouts_is_stored() {
        let mut b = Build::default();
        let matmul = matrices(&mut b);
        op(&mut b, OpCode::AddF32, matmul, Some((matmul, [0, 1])));
        let nodes = absorbed(b);
        assert_eq!((nodes.len(), &epilogue(&nodes[0]).steps[..]), (2, &[][..]), "its first row for all rows");

        let mut b = Build::default();
        let matmul = matrices(&mut b);
        let same = b.graph.add_value([M, N].into(), DType::F32, Origin::Alias(matmul));
        op(&mut b, OpCode::MulF32, matmul, Some((same, [N as u32, 1])));
        let nodes = absorbed(b);
        assert_eq!(nodes.len(), 1, "an alias of the same shape is the same element");
        let later = epilogue(&nodes[0]);
        assert_eq!((later.extras.len(), later.steps[0].operands), (0, [Source::Accumulator; 3]));
    }

    #[test]
    fn what_begins_elsewhere_stays_an_elementwise_op() {
        for (offset, nodes) in [(0, 1), (1, 2), (8, 2)] {
            let mut b = Build::default();
            let (matmul, long) = (matrices(&mut b), b.tensor([2 * N]));
            op(&mut b, OpCode::AddF32, matmul, Some((long, [0, 1])));
            b.last_elementwise().inputs[1].offset = offset;
            assert_eq!(absorbed(b).len(), nodes, "{offset}");
        }
    }

    #[test]
    fn an_epilogue_knows_how_its_inputs_lie_in_memory() {
        let mut b = Build::default();
        let (mut last, shape) = (matrices(&mut b), Shape::from([N]));
        for dtype in [DType::F16, DType::F32] {
            let bias = b.graph.add_value(shape, dtype, Origin::Tensor(0));
            last = op(&mut b, OpCode::AddF32, last, Some((bias, [0, 1])));
        }
        let nodes = absorbed(b);
        let formats: Vec<Format> = epilogue(&nodes[0]).extras.iter().map(|extra| extra.format).collect();
        assert_eq!((nodes.len(), formats), (1, vec![Format::F16, Format::Word]));
    }

    #[test]
    fn what_an_epilogue_can_not_read_or_hold_stays_an_elementwise_op() {
        let mut b = Build::default();
        let (matmul, transposed) = (matrices(&mut b), b.tensor([N, M]));
        op(&mut b, OpCode::AddF32, matmul, Some((transposed, [1, M as u32])));
        assert_eq!(absorbed(b).len(), 2, "columns that are not neighbours");

        let mut b = Build::default();
        let mut last = matrices(&mut b);
        for _ in 0..3 {
            let other = b.tensor([M, N]);
            last = op(&mut b, OpCode::AddF32, last, Some((other, [N as u32, 1])));
        }
        let nodes = absorbed(b);
        assert_eq!((nodes.len(), epilogue(&nodes[0]).extras.len()), (2, 2), "two tensors at most");

        let mut b = Build::default();
        let mut last = matrices(&mut b);
        for _ in 0..8 {
            last = op(&mut b, OpCode::ReluF32, last, None);
        }
        let nodes = absorbed(b);
        assert_eq!((nodes.len(), epilogue(&nodes[0]).steps.len()), (2, 6), "six steps at most");
    }

    #[test]
    fn operands_made_in_between_are_waited_for() {
        let mut b = Build::default();
        let matmul = matrices(&mut b);
        let x = b.tensor([M, N]);
        let made = op(&mut b, OpCode::NegF32, x, None);
        op(&mut b, OpCode::AddF32, matmul, Some((made, [N as u32, 1])));
        let nodes = absorbed(b);
        assert!(matches!(nodes[0].op, Op::Elementwise(_)) && matches!(nodes[1].op, Op::Matmul(_)));
    }

    #[test]
    fn dimensions_are_found_whether_joined_or_missing() {
        let graph_of = |result: &[usize], extents: [u32; 4], strides: [u32; 4]| {
            let mut graph = Graph::default();
            let shape = Shape::new(result).expect("a shape");
            let output = graph.add_value(shape, DType::F32, Origin::Produced);
            let value = graph.add_value(shape, DType::F32, Origin::Tensor(0));
            let input = ElementwiseInput { value, strides: first_dims(&strides), offset: 0 };
            let elementwise = Elementwise::single(
                OpCode::AddF32,
                [Operand::Input(0); 3],
                smallvec![input],
                smallvec![],
                output,
            );
            let none = Epilogue::default();
            extra(&graph, &Target { extents, epilogue: &none, output }, &elementwise, &input)
        };
        let places = |e: Option<Extra>| e.map(|e| (e.batch, e.row, e.column));
        assert_eq!(places(graph_of(&[5], [1, 1, 5, 1], [1, 0, 0, 0])), Some(([0, 0], 1, 0)));
        assert_eq!(places(graph_of(&[5], [1, 1, 1, 5], [1, 0, 0, 0])), Some(([0, 0], 0, 1)));
        assert_eq!(places(graph_of(&[2, 5], [1, 2, 1, 5], [5, 1, 0, 0])), Some(([0, 5], 0, 1)));
        assert_eq!(places(graph_of(&[2, 1, 5], [2, 1, 1, 5], [0, 9, 1, 0])), Some(([0, 0], 0, 1)));
        assert_eq!(places(graph_of(&[10], [1, 1, 2, 5], [1, 0, 0, 0])), None, "another shape");
        // Images: rows and columns of pixels are one dimension.
        let images = |strides| places(graph_of(&[2, 3, 4, 5], [1, 2, 3, 20], strides));
        assert_eq!(images([60, 20, 5, 1]), Some(([0, 60], 20, 1)));
        assert_eq!(images([0, 1, 0, 0]), Some(([0, 0], 1, 0)));
        assert_eq!(images([0, 0, 5, 1]), Some(([0, 0], 0, 1)));
        assert_eq!(images([0, 0, 0, 1]), None, "one row of pixels for all");
        assert_eq!(images([0, 0, 1, 0]), None, "one column of pixels for all");
    }

    #[test]
    fn halves_are_narrowed_by_an_elementwise_op_of_their_own() {
        let mut b = Build::default();
        let matmul = matrices(&mut b);
        let as_f16 = op(&mut b, OpCode::Copy, matmul, None);
        b.graph.values[as_f16 as usize].dtype = DType::F16;
        assert_eq!(absorbed(b).len(), 2);
    }
}
