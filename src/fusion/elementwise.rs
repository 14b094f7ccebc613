//! Fusion: elementwise ops that feed each other become one. A pure function from nodes to nodes.
//!
//! An elementwise op is joined into a later one that reads its result element for element, at the place of the later
//! one. That is correct if nothing else needs its results before that place: other readers come later (then the result
//! is stored as one more output) or are part of the same elementwise op. The later op must read none of the results in
//! another layout, through any alias: elements at other positions are in memory only. Values are written once and
//! before they are read, so moving an elementwise op down the list does not change what it reads.

use smallvec::SmallVec;

use crate::fusion::def_use::{DefUse, each_node};
use crate::ir::branches::branch;
use crate::ir::elementwise::{
    Elementwise, ElementwiseInput, ElementwiseOutput, OpCode, Operand, Step, dense_strides,
};
use crate::ir::graph::{Graph, Node};
use crate::ir::op::Op;
use crate::ir::value::{Label, LabelName, ValueId};
use crate::kernels::elementwise::modules::elementwise_fits;

/// Joins what can be joined. The order of nodes is kept otherwise.
pub(crate) fn fuse(graph: &mut Graph) {
    let several = graph.nodes.iter().filter(|node| matches!(node.op, Op::Elementwise(_))).nth(1).is_some();
    if !branch!("fuse: several", several) {
        return;
    }
    each_node(graph, |graph, nodes, def_use, i| {
        let Op::Elementwise(elementwise) = &nodes[i].op else { return };
        let (mut elementwise, mut label) = (elementwise.clone(), nodes[i].label.clone());
        let mut joined = false;
        while let Some((earlier, both)) = join_one(graph, nodes, def_use, &elementwise, i) {
            label = joined_label(&nodes[earlier].label, &label);
            elementwise = both;
            def_use.move_to(earlier, i);
            joined = true;
        }
        if branch!("fuse: joined", joined) {
            nodes[i] = Node::new(label, elementwise);
        }
    });
}

/// Joins an elementwise op that `elementwise` (at `i`) reads from into it: its place, and the two as one.
fn join_one(
    graph: &Graph,
    nodes: &[Node],
    def_use: &DefUse,
    elementwise: &Elementwise,
    i: usize,
) -> Option<(usize, Elementwise)> {
    elementwise.inputs.iter().find_map(|input| {
        let root = graph.root(input.value);
        let place = def_use.place_of_writer(root)?;
        let Op::Elementwise(earlier) = &nodes[place as usize].op else { return None };
        let waits = |o: &ElementwiseOutput| def_use.waits_for(graph.root(o.value), place, i as u32);
        let movable = place as usize != i
            && branch!("fuse: reads whole", reads_whole_of(graph, elementwise, earlier))
            && branch!("fuse: one shape", shape_of(graph, earlier) == shape_of(graph, elementwise))
            && branch!("fuse: others wait", earlier.outputs.iter().all(waits))
            && def_use.is_movable(graph, &nodes[place as usize].op, place, i as u32);
        if !movable {
            return None;
        }
        let stays = |value: ValueId| {
            let root = graph.root(value);
            branch!("fuse: kept", graph.value(root).kept.is_some())
                || branch!("fuse: read elsewhere", def_use.read_elsewhere(root, [place, i as u32]))
        };
        let both = join(graph, earlier, elementwise, stays);
        branch!("fuse: fits", elementwise_fits(&both)).then_some((place as usize, both))
    })
}

fn shape_of<'a>(graph: &'a Graph, elementwise: &Elementwise) -> &'a [usize] {
    elementwise.outputs.first().map_or(&[], |output| graph.value(output.value).shape.dims())
}

/// Whether the input is read element for element, in the shape of the elementwise op's outputs.
pub(crate) fn reads_whole(graph: &Graph, elementwise: &Elementwise, input: &ElementwiseInput) -> bool {
    let shape = graph.value(input.value).shape;
    shape.dims() == shape_of(graph, elementwise)
        && input.offset == 0
        && input.strides == dense_strides(&shape)
}

/// Whether all that the elementwise op reads of the earlier one's results is read element for element: elements of
/// other places are not there until the earlier one has run, and are nowhere if its results are not stored.
fn reads_whole_of(graph: &Graph, elementwise: &Elementwise, earlier: &Elementwise) -> bool {
    let mut of_earlier = elementwise.inputs.iter().filter(|input| made_by(graph, earlier, input).is_some());
    of_earlier.all(|input| reads_whole(graph, elementwise, input))
}

/// The elementwise op's result that the input reads, in whatever shape.
fn made_by<'a>(
    graph: &Graph,
    elementwise: &'a Elementwise,
    input: &ElementwiseInput,
) -> Option<&'a ElementwiseOutput> {
    let root = graph.root(input.value);
    elementwise.outputs.iter().find(|output| graph.root(output.value) == root)
}

/// Two elementwise ops as one. The earlier one's results are stored only if they are needed elsewhere.
fn join(
    graph: &Graph,
    earlier: &Elementwise,
    later: &Elementwise,
    stays: impl Fn(ValueId) -> bool,
) -> Elementwise {
    let mut both = earlier.clone();
    both.outputs.retain(|output| stays(output.value));
    let inputs: SmallVec<[Operand; 4]> = later
        .inputs
        .iter()
        .map(|input| match made_by(graph, earlier, input) {
            Some(output) => {
                branch!("fuse: a result of the earlier");
                stored(graph, output, &mut both)
            }
            None => Operand::Input(input_of(graph, &mut both, input)),
        })
        .collect();
    let scalars: SmallVec<[Operand; 4]> = later
        .scalars
        .iter()
        .map(|bits| Operand::Scalar(position_or_push(&mut both.scalars, *bits)))
        .collect();
    // A step that is there already serves again.
    let mut steps: SmallVec<[u8; 16]> = SmallVec::new();
    for step in &later.steps {
        let operands = step.operands.map(|operand| match operand {
            Operand::Input(k) => inputs[usize::from(k)],
            Operand::Scalar(k) => scalars[usize::from(k)],
            Operand::Step(k) => Operand::Step(steps[usize::from(k)]),
        });
        steps.push(position_or_push(&mut both.steps, Step { op: step.op, operands }));
    }
    let outputs = later.outputs.iter();
    both.outputs
        .extend(outputs.map(|o| ElementwiseOutput { step: steps[usize::from(o.step)], value: o.value }));
    both
}

/// The place of an input among the elementwise op's, by whatever name it is known there.
fn input_of(graph: &Graph, elementwise: &mut Elementwise, input: &ElementwiseInput) -> u8 {
    let shape = |value: ValueId| (graph.root(value), graph.value(value).shape);
    let same = |other: &&ElementwiseInput| {
        (other.strides, other.offset) == (input.strides, input.offset)
            && shape(other.value) == shape(input.value)
    };
    let known = elementwise.inputs.iter().find(same).copied();
    position_or_push(&mut elementwise.inputs, known.unwrap_or(*input))
}

/// A result as it is once it has been stored: what fusion leaves out must not change a bit.
fn stored(graph: &Graph, output: &ElementwiseOutput, elementwise: &mut Elementwise) -> Operand {
    let step = Operand::Step(output.step);
    let Some(op) = OpCode::as_stored(graph.value(output.value).dtype.format()) else {
        branch!("fuse: of words");
        return step;
    };
    let rounded = Step { op, operands: [step; 3] };
    Operand::Step(position_or_push(&mut elementwise.steps, rounded))
}

/// The place of an item in a list, which it is put on if it is new.
pub(crate) fn position_or_push<A: smallvec::Array>(list: &mut SmallVec<A>, item: A::Item) -> u8
where
    A::Item: PartialEq,
{
    let known = list.iter().position(|other| *other == item);
    let place = known.unwrap_or(list.len());
    if branch!("fuse: new on the list", known.is_none()) {
        list.push(item);
    }
    place as u8
}

/// `add+mul 64x64 f32`; long ones are cut.
pub(super) fn joined_label(earlier: &Label, later: &Label) -> Label {
    const LONGEST: usize = 48;
    let (first, second) = (earlier.op.as_str(), later.op.as_str());
    let text = if first.len() + second.len() < LONGEST {
        [first, "+", second].concat()
    } else if second.ends_with("+…") || first.len() >= LONGEST {
        second.to_owned()
    } else {
        [first, "+…"].concat()
    };
    Label { op: LabelName::Text(text.into()), ..later.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::build::{Build, first_dims};

    /// A copy of a square with its dimensions exchanged.
    fn transpose(b: &mut Build, from: ValueId) -> ValueId {
        let turned = b.op(OpCode::Copy, &[from]);
        b.last_elementwise().inputs[0].strides[..2].reverse();
        turned
    }

    fn fused(mut b: Build) -> Vec<Node> {
        fuse(&mut b.graph);
        b.graph.nodes
    }

    fn elementwise_of(node: &Node) -> &Elementwise {
        match &node.op {
            Op::Elementwise(elementwise) => elementwise,
            _ => panic!("not elementwise"),
        }
    }

    #[test]
    fn a_chain_becomes_one_elementwise_op() {
        let mut b = Build::default();
        let (x, y) = (b.tensor([8, 4]), b.tensor([8, 4]));
        let sum = b.op(OpCode::AddF32, &[x, y]);
        let product = b.op(OpCode::MulF32, &[sum, y]);
        let last = b.op(OpCode::ReluF32, &[product]);
        let nodes = fused(b);
        assert_eq!(nodes.len(), 1);
        let elementwise = elementwise_of(&nodes[0]);
        assert_eq!(elementwise.inputs.len(), 2, "y is bound once");
        assert_eq!(elementwise.steps.len(), 3);
        assert_eq!(elementwise.steps[1].operands[..2], [Operand::Step(0), Operand::Input(1)]);
        assert_eq!(elementwise.outputs.as_slice(), [ElementwiseOutput { step: 2, value: last }]);
        assert_eq!(nodes[0].label.to_string(), "op+op+op 8x4 f32");
    }

    #[test]
    fn two_parts_of_a_tensor_are_two_inputs() {
        let mut b = Build::default();
        let (long, x) = (b.tensor([32]), b.tensor([16]));
        let first = b.op(OpCode::NegF32, &[x]);
        b.op(OpCode::AddF32, &[first, x]);
        for (node, input, offset) in [(0, 0, 0), (1, 1, 16)] {
            let Op::Elementwise(elementwise) = &mut b.graph.nodes[node].op else { panic!("not elementwise") };
            elementwise.inputs[input] = ElementwiseInput { value: long, offset, ..elementwise.inputs[input] };
        }
        let nodes = fused(b);
        assert_eq!(nodes.len(), 1);
        let offsets: Vec<u32> = elementwise_of(&nodes[0]).inputs.iter().map(|input| input.offset).collect();
        assert_eq!(offsets, [0, 16]);
    }

    #[test]
    fn a_diamond_becomes_one_elementwise_op() {
        let mut b = Build::default();
        let x = b.tensor([16]);
        let top = b.op(OpCode::NegF32, &[x]);
        let (left, right) = (b.op(OpCode::AbsF32, &[top]), b.op(OpCode::ReluF32, &[top]));
        b.op(OpCode::AddF32, &[left, right]);
        let nodes = fused(b);
        assert_eq!(nodes.len(), 1);
        assert_eq!(elementwise_of(&nodes[0]).steps.len(), 4);
        assert_eq!(elementwise_of(&nodes[0]).outputs.len(), 1);
    }

    #[test]
    fn what_is_read_in_between_by_others_is_not_moved() {
        let mut b = Build::default();
        let x = b.tensor([16]);
        let first = b.op(OpCode::NegF32, &[x]);
        let copied = b.copy(first);
        b.op(OpCode::AddF32, &[first, copied]);
        assert_eq!(fused(b).len(), 3);
    }

    #[test]
    fn what_is_read_later_by_others_is_stored_too() {
        let mut b = Build::default();
        let x = b.tensor([16]);
        let first = b.op(OpCode::NegF32, &[x]);
        let second = b.op(OpCode::AbsF32, &[first]);
        b.copy(first);
        let nodes = fused(b);
        assert_eq!(nodes.len(), 2);
        let outputs = &elementwise_of(&nodes[0]).outputs;
        assert_eq!(outputs.iter().map(|o| (o.step, o.value)).collect::<Vec<_>>(), [(0, first), (1, second)]);
    }

    /// The elements that an elementwise op reads of a value in another layout must be in memory when it runs.
    #[test]
    fn what_is_read_in_two_layouts_is_stored_first() {
        let mut b = Build::default();
        let (x, y) = (b.tensor([8, 8]), b.tensor([8, 8]));
        let made = b.op(OpCode::MulF32, &[x, y]);
        let turned = transpose(&mut b, made);
        let turned = b.op(OpCode::NegF32, &[turned]);
        b.op(OpCode::AddF32, &[made, turned]);
        let nodes = fused(b);
        assert_eq!(nodes.len(), 2);
        assert_eq!(
            elementwise_of(&nodes[0]).outputs.as_slice(),
            [ElementwiseOutput { step: 0, value: made }]
        );
        assert_eq!(elementwise_of(&nodes[1]).steps.len(), 3);

        // The same through an alias, and by way of an elementwise op that has two results.
        let mut b = Build::default();
        let x = b.tensor([8, 8]);
        let first = b.op(OpCode::NegF32, &[x]);
        let second = b.op(OpCode::AbsF32, &[first]);
        let flat = b.alias(first, [64]);
        let square = b.alias(flat, [8, 8]);
        let turned = transpose(&mut b, square);
        b.op(OpCode::AddF32, &[second, turned]);
        let nodes = fused(b);
        assert_eq!(nodes.len(), 2);
        assert_eq!(elementwise_of(&nodes[0]).outputs.len(), 2);
    }

    #[test]
    fn an_alias_of_the_same_shape_is_the_same_step() {
        let mut b = Build::default();
        let x = b.tensor([8, 8]);
        let made = b.op(OpCode::NegF32, &[x]);
        let same = b.alias(made, [8, 8]);
        b.op(OpCode::AddF32, &[made, same]);
        let nodes = fused(b);
        assert_eq!(nodes.len(), 1);
        assert_eq!(elementwise_of(&nodes[0]).steps[1].operands[..2], [Operand::Step(0); 2]);
    }

    #[test]
    fn rows_are_inputs_and_never_producers_of_a_larger_shape() {
        let mut b = Build::default();
        let (x, row) = (b.tensor([8, 4]), b.tensor([4]));
        let made_row = b.op(OpCode::NegF32, &[row]);
        b.op(OpCode::AddF32, &[x, made_row]);
        let nodes = fused(b);
        assert_eq!(nodes.len(), 2);
        assert_eq!(elementwise_of(&nodes[1]).inputs[1].strides, first_dims(&[0, 1]));
    }

    #[test]
    fn elementwise_ops_end_where_a_module_does() {
        let mut b = Build::default();
        let (x, mut last) = (b.tensor([16]), b.tensor([16]));
        for _ in 0..100 {
            last = b.op(OpCode::AddF32, &[last, x]);
        }
        let nodes = fused(b);
        assert_eq!(nodes.len(), 7);
        assert!(nodes.iter().all(|node| elementwise_of(node).steps.len() <= 16));
        let mut b = Build::default();
        let mut last = b.tensor([16]);
        for _ in 0..6 {
            let other = b.tensor([16]);
            last = b.op(OpCode::AddF32, &[last, other]);
        }
        assert_eq!(fused(b).len(), 2, "four inputs at most");
    }
}
