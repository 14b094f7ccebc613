//! Elementwise tails: a program that reads the result of a product or of a convolution element for element becomes part
//! of its epilogue, and the result itself is never stored. A pure function from nodes to nodes.

use smallvec::SmallVec;

use crate::fusion::elementwise::{Places, joined_label, position_or_push, reads_whole};
use crate::ir::branches::branch;
use crate::ir::elementwise::{Map, MapInput, Operand};
use crate::ir::epilogue::{self, Epilogue, Extra, Source};
use crate::ir::graph::{Graph, Node, ValueId, Work};
use crate::shape::DType;

/// What can take a tail: how its result is laid out, and what is done to it.
struct Head<'a> {
    /// Extents of the result as the epilogue counts them, outermost first.
    extents: [u32; 4],
    epilogue: &'a Epilogue,
    output: ValueId,
}

impl Head<'_> {
    fn of(work: &Work) -> Option<Head<'_>> {
        match work {
            Work::Product(product) => {
                let [outer, inner] = product.batch;
                let extents = [outer, inner, product.m, product.n];
                Some(Head { extents, epilogue: &product.epilogue, output: product.output })
            }
            Work::Convolution(convolution) => {
                let [images, channels, pixels] = convolution.extents();
                let extents = [1, images, channels, pixels];
                Some(Head { extents, epilogue: &convolution.epilogue, output: convolution.output })
            }
            Work::Map(_)
            | Work::Reduce(_)
            | Work::Softmax(_)
            | Work::Dispatch { .. }
            | Work::Copy
            | Work::Fill { .. } => None,
        }
    }
}

/// Gives the node the program behind it as its tail.
fn join(graph: &Graph, node: &mut Node, tail: &Node, epilogue: Epilogue) {
    let Work::Map(program) = &tail.work else { return };
    let Some(output) = program.only_output() else { return };
    let head = match &mut node.work {
        Work::Product(product) => {
            branch!("tail: of a product");
            product.epilogue = epilogue;
            std::mem::replace(&mut product.output, output)
        }
        Work::Convolution(convolution) => {
            branch!("tail: of a convolution");
            convolution.epilogue = epilogue;
            std::mem::replace(&mut convolution.output, output)
        }
        Work::Map(_)
        | Work::Reduce(_)
        | Work::Softmax(_)
        | Work::Dispatch { .. }
        | Work::Copy
        | Work::Fill { .. } => return,
    };
    let root = graph.root(head);
    node.label.op = joined_label(&node.label, &tail.label).op;
    node.accesses.retain(|access| !access.write);
    let others = program.inputs.iter().filter(|other| graph.root(other.value) != root);
    node.accesses.extend(others.map(|other| graph.whole(other.value, false)));
    node.accesses.push(graph.whole(output, true));
}

/// Puts every tail that fits into the epilogue before it. What is joined stands at the tail's place: all that the tail
/// reads is there by then.
pub(crate) fn absorb_tails(graph: &mut Graph) {
    let mut nodes = std::mem::take(&mut graph.nodes);
    let programs = nodes.iter().any(|node| matches!(node.work, Work::Map(_)));
    if branch!("tail: programs", programs)
        && branch!("tail: heads", nodes.iter().any(|node| Head::of(&node.work).is_some()))
    {
        let mut places = Places::new(graph, &nodes);
        for i in 0..nodes.len() {
            let absorbed = absorb_one(graph, &nodes, &places, i);
            branch!("tail: absorbed", absorbed.is_some());
            if let Some((head, epilogue)) = absorbed {
                // What is then at the head's place is dropped.
                nodes.swap(head, i);
                let (before, from) = nodes.split_at_mut(i);
                join(graph, &mut from[0], &before[head], epilogue);
                places.move_to(head, i);
            }
        }
        places.retain_places(&mut nodes);
    }
    graph.nodes = nodes;
}

/// The place of a node that can take the program at `i` as its tail, and the epilogue that it has then.
fn absorb_one(graph: &Graph, nodes: &[Node], places: &Places, i: usize) -> Option<(usize, Epilogue)> {
    let Work::Map(program) = &nodes[i].work else { return None };
    let output = program.only_output()?;
    // Products and convolutions store words.
    if branch!("tail: half", graph.value(output).dtype == DType::F16) {
        return None;
    }
    program.inputs.iter().find_map(|input| {
        let root = graph.root(input.value);
        let place = places.place_of_writer(root)?;
        let head = Head::of(&nodes[place as usize].work).filter(|head| graph.root(head.output) == root)?;
        if branch!("tail: kept", graph.value(root).kept.is_some())
            || branch!("tail: read elsewhere", places.read_elsewhere(root, [i as u32; 2]))
        {
            return None;
        }
        Some((place as usize, joined_epilogue(graph, &head, program)?))
    })
}

/// The epilogue followed by a program that reads its result; `None` if that does not fit, or reads other elements of it
/// than the one that is at hand: they are never stored.
fn joined_epilogue(graph: &Graph, head: &Head<'_>, program: &Map) -> Option<Epilogue> {
    let root = graph.root(head.output);
    let mut joined = head.epilogue.clone();
    let result = joined.last();
    let before = joined.steps.len() as u8;
    let mut inputs: SmallVec<[Source; 4]> = SmallVec::new();
    for input in &program.inputs {
        inputs.push(if branch!("tail: another input", graph.root(input.value) != root) {
            let extra = extra(graph, head, program, input)?;
            Source::Extra(position_or_push(&mut joined.extras, extra))
        } else if branch!("tail: reads whole", reads_whole(graph, program, input)) {
            result
        } else {
            return None;
        });
    }
    let scalars: SmallVec<[Source; 4]> = program
        .scalars
        .iter()
        .map(|bits| Source::Scalar(position_or_push(&mut joined.scalars, *bits)))
        .collect();
    let source = |operand: Operand| match operand {
        Operand::Input(i) => inputs[usize::from(i)],
        Operand::Scalar(i) => scalars[usize::from(i)],
        Operand::Step(i) => Source::Step(before + i),
    };
    let steps = program.steps.iter();
    joined.steps.extend(steps.map(|s| epilogue::Step { op: s.op, operands: s.operands.map(source) }));
    branch!("tail: fits", joined.fits()).then_some(joined)
}

/// A further input of the program as the epilogue finds its elements.
fn extra(graph: &Graph, head: &Head<'_>, program: &Map, input: &MapInput) -> Option<Extra> {
    let shape = program.outputs.first().map(|output| graph.value(output.value).shape)?;
    // Dimensions of one element are not walked over, and the epilogue may count some that the result lacks.
    let dims = shape.dims().iter().map(|extent| *extent as u32).zip(input.strides);
    let mut left: SmallVec<[(u32, u32); 4]> = dims.filter(|(extent, _)| *extent != 1).collect();
    let mut strides = [0; 4];
    for (stride, extent) in strides.iter_mut().zip(head.extents).rev().filter(|(_, extent)| *extent != 1) {
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
        && left.is_empty();
    let half = branch!("extra: half", graph.value(input.value).dtype == DType::F16);
    fits.then_some(Extra { value: input.value, batch: [outer, inner], row, column, half })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fusion::elementwise::fuse;
    use crate::ir::elementwise::{OpCode, dense_strides};
    use crate::ir::graph::{Label, LabelName, Origin};
    use crate::ir::matmul::{Factor, Product};
    use crate::shape::Shape;
    use smallvec::smallvec;

    const M: usize = 6;
    const N: usize = 8;

    struct Build(Graph);

    impl Build {
        fn tensor(&mut self, shape: impl Into<Shape>) -> ValueId {
            self.0.add_value(shape.into(), DType::F32, Origin::Tensor(0))
        }

        fn label(op: &'static str) -> Label {
            Label { op: LabelName::Op(op), shape: [M, N].into(), dtype: DType::F32 }
        }

        fn product(&mut self) -> ValueId {
            let (a, b) = (self.tensor([M, 3]), self.tensor([3, N]));
            let output = self.0.add_value([M, N].into(), DType::F32, Origin::Produced);
            let factor = |value, along_k| Factor { value, along_k, batch: [0; 2] };
            let product = Product {
                m: M as u32,
                n: N as u32,
                k: 3,
                batch: [1; 2],
                lhs: factor(a, true),
                rhs: factor(b, false),
                alpha: 1.0,
                epilogue: Epilogue::default(),
                output,
            };
            let accesses =
                smallvec![self.0.whole(a, false), self.0.whole(b, false), self.0.whole(output, true)];
            self.0.nodes.push(Node::new(Self::label("matmul"), Work::Product(Box::new(product)), accesses));
            output
        }

        /// An operation on a value and, with these strides, on a tensor.
        fn op(&mut self, op: OpCode, value: ValueId, other: Option<(ValueId, [u32; 2])>) -> ValueId {
            let shape = Shape::from([M, N]);
            let output = self.0.add_value(shape, DType::F32, Origin::Produced);
            let mut inputs: SmallVec<[MapInput; 4]> =
                smallvec![MapInput { value, strides: dense_strides(&shape), offset: 0 }];
            inputs.extend(other.map(|(value, [row, column])| MapInput {
                value,
                strides: [row, column, 0, 0],
                offset: 0,
            }));
            let operands = [Operand::Input(0), Operand::Input(u8::from(other.is_some())), Operand::Input(0)];
            let map = Map::single(op, operands, inputs, smallvec![], output);
            self.0.nodes.push(Node::new(Self::label("op"), Work::Map(map), SmallVec::new()));
            output
        }

        fn absorbed(mut self) -> Vec<Node> {
            absorb_tails(&mut self.0);
            fuse(&mut self.0);
            absorb_tails(&mut self.0);
            self.0.nodes
        }
    }

    fn epilogue(node: &Node) -> &Epilogue {
        match &node.work {
            Work::Product(product) => &product.epilogue,
            _ => panic!("not a product"),
        }
    }

    #[test]
    fn bias_and_activation_become_an_epilogue() {
        let mut b = Build(Graph::default());
        let (product, bias) = (b.product(), b.tensor([N]));
        let sum = b.op(OpCode::AddF32, product, Some((bias, [0, 1])));
        let last = b.op(OpCode::ReluF32, sum, None);
        let nodes = b.absorbed();
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].label.to_string(), "matmul+op+op 6x8 f32");
        let tail = epilogue(&nodes[0]);
        assert_eq!(
            tail.extras.as_slice(),
            [Extra { value: bias, batch: [0; 2], row: 0, column: 1, half: false }]
        );
        assert_eq!(tail.steps[0].operands[..2], [Source::Product, Source::Extra(0)]);
        assert_eq!(tail.steps[1].operands[0], Source::Step(0));
        let written: Vec<_> = nodes[0].accesses.iter().filter(|a| a.write).map(|a| a.value).collect();
        assert_eq!(written, [last]);
        assert!(nodes[0].accesses.iter().any(|access| access.value == bias && !access.write));
    }

    #[test]
    fn a_diamond_behind_a_product_becomes_an_epilogue() {
        let mut b = Build(Graph::default());
        let product = b.product();
        let (left, right) = (b.op(OpCode::ReluF32, product, None), b.op(OpCode::NegF32, product, None));
        b.op(OpCode::AddF32, left, Some((right, [N as u32, 1])));
        let nodes = b.absorbed();
        assert_eq!((nodes.len(), epilogue(&nodes[0]).steps.len()), (1, 3));
    }

    #[test]
    fn what_others_need_is_stored() {
        let mut b = Build(Graph::default());
        let product = b.product();
        b.op(OpCode::ReluF32, product, None);
        let accesses = smallvec![b.0.whole(product, false)];
        b.0.nodes.push(Node::new(Build::label("reader"), Work::Copy, accesses));
        assert_eq!(b.absorbed().len(), 3);
    }

    #[test]
    fn a_product_that_is_read_in_two_layouts_is_stored() {
        let mut b = Build(Graph::default());
        let product = b.product();
        b.op(OpCode::AddF32, product, Some((product, [0, 1])));
        let nodes = b.absorbed();
        assert_eq!((nodes.len(), &epilogue(&nodes[0]).steps[..]), (2, &[][..]), "its first row for all rows");

        let mut b = Build(Graph::default());
        let product = b.product();
        let same = b.0.add_value([M, N].into(), DType::F32, Origin::Alias(product));
        b.op(OpCode::MulF32, product, Some((same, [N as u32, 1])));
        let nodes = b.absorbed();
        assert_eq!(nodes.len(), 1, "an alias of the same shape is the same element");
        let tail = epilogue(&nodes[0]);
        assert_eq!((tail.extras.len(), tail.steps[0].operands), (0, [Source::Product; 3]));
    }

    #[test]
    fn what_begins_elsewhere_stays_a_program() {
        for (offset, nodes) in [(0, 1), (1, 2), (8, 2)] {
            let mut b = Build(Graph::default());
            let (product, long) = (b.product(), b.tensor([2 * N]));
            b.op(OpCode::AddF32, product, Some((long, [0, 1])));
            let Some(Node { work: Work::Map(map), .. }) = b.0.nodes.last_mut() else { panic!("no program") };
            map.inputs[1].offset = offset;
            assert_eq!(b.absorbed().len(), nodes, "{offset}");
        }
    }

    #[test]
    fn an_epilogue_knows_which_of_its_inputs_are_halves() {
        let mut b = Build(Graph::default());
        let (mut last, shape) = (b.product(), Shape::from([N]));
        for dtype in [DType::F16, DType::F32] {
            let bias = b.0.add_value(shape, dtype, Origin::Tensor(0));
            last = b.op(OpCode::AddF32, last, Some((bias, [0, 1])));
        }
        let nodes = b.absorbed();
        let halves: Vec<bool> = epilogue(&nodes[0]).extras.iter().map(|extra| extra.half).collect();
        assert_eq!((nodes.len(), halves), (1, vec![true, false]));
    }

    #[test]
    fn what_an_epilogue_can_not_read_or_hold_stays_a_program() {
        let mut b = Build(Graph::default());
        let (product, transposed) = (b.product(), b.tensor([N, M]));
        b.op(OpCode::AddF32, product, Some((transposed, [1, M as u32])));
        assert_eq!(b.absorbed().len(), 2, "columns that are not neighbours");

        let mut b = Build(Graph::default());
        let mut last = b.product();
        for _ in 0..3 {
            let other = b.tensor([M, N]);
            last = b.op(OpCode::AddF32, last, Some((other, [N as u32, 1])));
        }
        let nodes = b.absorbed();
        assert_eq!((nodes.len(), epilogue(&nodes[0]).extras.len()), (2, 2), "two tensors at most");

        let mut b = Build(Graph::default());
        let mut last = b.product();
        for _ in 0..8 {
            last = b.op(OpCode::ReluF32, last, None);
        }
        let nodes = b.absorbed();
        assert_eq!((nodes.len(), epilogue(&nodes[0]).steps.len()), (2, 6), "six steps at most");
    }

    #[test]
    fn operands_made_in_between_are_waited_for() {
        let mut b = Build(Graph::default());
        let product = b.product();
        let x = b.tensor([M, N]);
        let made = b.op(OpCode::NegF32, x, None);
        b.op(OpCode::AddF32, product, Some((made, [N as u32, 1])));
        let nodes = b.absorbed();
        assert!(matches!(nodes[0].work, Work::Map(_)) && matches!(nodes[1].work, Work::Product(_)));
    }

    #[test]
    fn dimensions_are_found_whether_joined_or_missing() {
        let graph_of = |result: &[usize], extents: [u32; 4], strides: [u32; 4]| {
            let mut graph = Graph::default();
            let shape = Shape::new(result).expect("a shape");
            let output = graph.add_value(shape, DType::F32, Origin::Produced);
            let value = graph.add_value(shape, DType::F32, Origin::Tensor(0));
            let input = MapInput { value, strides, offset: 0 };
            let program =
                Map::single(OpCode::AddF32, [Operand::Input(0); 3], smallvec![input], smallvec![], output);
            let none = Epilogue::default();
            extra(&graph, &Head { extents, epilogue: &none, output }, &program, &input)
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
    fn halves_are_narrowed_by_a_program_of_their_own() {
        let mut b = Build(Graph::default());
        let product = b.product();
        let narrow = b.op(OpCode::Copy, product, None);
        b.0.values[narrow as usize].dtype = DType::F16;
        assert_eq!(b.absorbed().len(), 2);
    }
}
