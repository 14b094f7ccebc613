//! Prologues: an elementwise op whose only reader is a reduction or a softmax of rows becomes the reader's prologue,
//! and the result itself is never stored. A pure function from nodes to nodes.

use crate::fusion::def_use::{DefUse, each_node};
use crate::fusion::elementwise::{joined_label, reads_whole};
use crate::ir::branches::branch;
use crate::ir::copy::Sequence;
use crate::ir::elementwise::{COUNTED, Elementwise, ElementwiseInput};
use crate::ir::graph::{Graph, Node};
use crate::ir::op::Op;
use crate::ir::value::Label;
use crate::shape::MAX_RANK;
use crate::shape::axes::Geometry;

/// Moves every elementwise op that fits into the prologue of its reader, at the reader's place.
pub(crate) fn absorb_prologues(graph: &mut Graph) {
    let any = graph.nodes.iter().any(|node| matches!(node.op, Op::Reduce(_) | Op::Softmax(_)));
    if !branch!("fuse prologue: of any", any) {
        return;
    }
    each_node(graph, |graph, nodes, def_use, i| {
        let absorbed = absorb_one(graph, nodes, def_use, i);
        branch!("fuse prologue: absorbed", absorbed.is_some());
        if let Some((prologue, joined)) = absorbed {
            nodes[i] = joined;
            def_use.move_to(prologue, i);
        }
    });
}

/// The reduction or softmax at `i` with the elementwise op that makes its input, and that elementwise op's place.
fn absorb_one(graph: &Graph, nodes: &[Node], def_use: &DefUse, i: usize) -> Option<(usize, Node)> {
    let (input, geometry) = match &nodes[i].op {
        Op::Reduce(reduce) => (reduce.input, reduce.geometry),
        Op::Softmax(softmax) => {
            branch!("fuse prologue: before a softmax");
            (softmax.input, softmax.geometry)
        }
        _ => {
            branch!("fuse prologue: of neither");
            return None;
        }
    };
    let root = graph.root(input);
    let place = def_use.place_of_writer(root)?;
    let Op::Elementwise(prologue) = &nodes[place as usize].op else { return None };
    let prologue = &counted(prologue, |input| counts_along(graph, nodes, def_use, prologue, input, geometry));
    if branch!("fuse prologue: kept", graph.value(root).kept.is_some())
        || branch!("fuse prologue: read elsewhere", def_use.read_elsewhere(root, [i as u32; 2]))
        || !def_use.is_movable(graph, &nodes[place as usize].op, place, i as u32)
        || !makes_one_dense_result(graph, prologue)
    {
        return None;
    }
    let mut op = nodes[i].op.clone();
    match &mut op {
        Op::Reduce(reduce) if branch!("fuse prologue: of a reduction", reduce.takes(prologue)) => {
            reduce.prologue = Some(prologue.clone());
        }
        Op::Softmax(softmax) if branch!("fuse prologue: of a softmax", softmax.takes(prologue)) => {
            softmax.prologue = Some(prologue.clone());
        }
        _ => return None,
    }
    let label = Label {
        op: joined_label(&nodes[place as usize].label, &nodes[i].label).op,
        ..nodes[i].label.clone()
    };
    Some((place as usize, Node { label, op }))
}

/// Whether it stores one result alone, and every input is read element for element or is one element for all.
fn makes_one_dense_result(graph: &Graph, prologue: &Elementwise) -> bool {
    // The kernels load words.
    let word = |input: &ElementwiseInput| {
        branch!("fuse prologue: words", !graph.value(input.value).dtype.is_packed())
    };
    // The kernels read the first one. (No operation reads another for all today: slices keep their strides.)
    let single = |input: &ElementwiseInput| {
        branch!("fuse prologue: one for all", input.strides == [0; MAX_RANK]) && input.offset == 0
    };
    let whole =
        |input: &ElementwiseInput| branch!("fuse prologue: reads whole", reads_whole(graph, prologue, input));
    let count = |input: &ElementwiseInput| branch!("fuse prologue: counts", input.strides == COUNTED);
    prologue.only_output().is_some()
        && prologue.inputs.iter().all(|input| word(input) && (count(input) || single(input) || whole(input)))
}

/// The elementwise op with inputs that are counted where they may be. Another input stands behind their bindings.
fn counted(prologue: &Elementwise, may_be: impl Fn(&ElementwiseInput) -> bool) -> Elementwise {
    let mut prologue = prologue.clone();
    let Some(other) = prologue.inputs.iter().find(|input| !may_be(input)).map(|input| input.value) else {
        return prologue;
    };
    for input in prologue.inputs.iter_mut().filter(|input| may_be(input)) {
        *input = ElementwiseInput { value: other, strides: COUNTED, offset: 0 };
    }
    prologue
}

/// Whether an input is 0, 1, 2, … along the rows, the same for each.
fn counts_along(
    graph: &Graph,
    nodes: &[Node],
    def_use: &DefUse,
    prologue: &Elementwise,
    input: &ElementwiseInput,
    rows: Geometry,
) -> bool {
    let made =
        |place: u32| matches!(&nodes[place as usize].op, Op::Generate(g) if g.sequence == Sequence::IotaU32);
    if !rows.is_rows() || !def_use.place_of_writer(graph.root(input.value)).is_some_and(made) {
        return false;
    }
    let shape = graph.value(prologue.outputs[0].value).shape;
    // Dimensions of one element have no place of their own.
    let mut long = (0..shape.rank()).rev().filter(|&d| shape.dims()[d] > 1);
    let along = long
        .next()
        .is_some_and(|d| shape.dims()[d] as u64 == rows.extent && input.strides[d] == 1 && input.offset == 0);
    branch!("fuse prologue: counts along rows", along && long.all(|d| input.strides[d] == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::build::{Build, first_dims};
    use crate::ir::copy::Generate;
    use crate::ir::elementwise::{OpCode, Operand, Step, dense_strides};
    use crate::ir::reduce::Reduction;
    use crate::ir::value::ValueId;
    use crate::shape::DType;

    /// An operation on a value and a tensor of the same shape with these strides.
    fn op(b: &mut Build, op: OpCode, value: ValueId, strides: [u32; MAX_RANK]) -> ValueId {
        let shape = b.shape(value);
        let other = b.tensor(shape);
        b.strided(op, shape, &[(value, dense_strides(&shape)), (other, strides)])
    }

    fn sum(b: &mut Build, input: ValueId, axis: usize) -> ValueId {
        b.reduce(Reduction::Sum, input, None, axis)
    }

    fn absorbed(mut b: Build) -> Vec<Node> {
        absorb_prologues(&mut b.graph);
        b.graph.nodes
    }

    const DENSE: [u32; MAX_RANK] = [100, 1, 0, 0, 0, 0, 0, 0];

    #[test]
    fn an_elementwise_op_that_only_a_reduction_reads_becomes_its_prologue() {
        let mut b = Build::default();
        let x = b.tensor([8, 100]);
        let made = op(&mut b, OpCode::MulF32, x, DENSE);
        let sum = sum(&mut b, made, 1);
        let nodes = absorbed(b);
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].label.to_string(), "op+sum 8x100 f32");
        let mut touched = Vec::new();
        nodes[0].op.touches(|value, write| touched.push((value, write)));
        assert_eq!(touched, [(x, false), (x + 1, false), (sum, true)]);
    }

    #[test]
    fn places_along_the_rows_are_counted() {
        for (places, strides, is_counted) in [([1, 100], [0, 1], true), ([8, 1], [1, 0], false)] {
            let mut b = Build::default();
            let x = b.tensor([8, 100]);
            let iota = b.produced(places);
            b.push("iota", iota, Generate { sequence: Sequence::IotaU32, seed: 0, output: iota });
            let made = b.strided(OpCode::LtU32, [8, 100].into(), &[(x, DENSE), (iota, first_dims(&strides))]);
            sum(&mut b, made, 1);
            let nodes = absorbed(b);
            let mut reads_iota = false;
            nodes
                .iter()
                .for_each(|node| node.op.touches(|value, write| reads_iota |= value == iota && !write));
            assert_eq!((nodes.len() == 2, reads_iota), (is_counted, !is_counted), "{places:?}");
        }
    }

    #[test]
    fn softmax_takes_a_head_where_rows_are_not_long() {
        for (extents, axis, nodes) in [([8, 100], 1, 1), ([8, 100], 0, 2), ([2, 100_000], 1, 2)] {
            let mut b = Build::default();
            let x = b.tensor(extents);
            let made = op(&mut b, OpCode::MulF32, x, dense_strides(&extents.into()));
            b.softmax(false, made, axis);
            let absorbed = absorbed(b);
            assert_eq!(absorbed.len(), nodes, "{extents:?}");
            assert_eq!(absorbed[0].label.to_string().starts_with("op+softmax"), nodes == 1);
        }
    }

    #[test]
    fn one_element_for_all_is_read_as_such_and_rows_are_not_read() {
        for (first, nodes) in [([0; 2], 1), ([0, 1], 2), ([1, 0], 2)] {
            let mut b = Build::default();
            let x = b.tensor([8, 100]);
            let made = op(&mut b, OpCode::MulF32, x, first_dims(&first));
            sum(&mut b, made, 1);
            assert_eq!(absorbed(b).len(), nodes, "{first:?}");
        }
    }

    #[test]
    fn what_kernels_of_rows_have_no_room_for_stays_an_elementwise_op() {
        let nodes = |strides: [u32; MAX_RANK], change: &dyn Fn(&mut Elementwise, &mut Graph)| {
            let mut b = Build::default();
            let x = b.tensor([8, 100]);
            let made = op(&mut b, OpCode::MulF32, x, strides);
            let mut elementwise = b.last_elementwise().clone();
            change(&mut elementwise, &mut b.graph);
            *b.last_elementwise() = elementwise;
            sum(&mut b, made, 1);
            absorbed(b).len()
        };
        let with_steps = |steps: u8| {
            nodes(DENSE, &|elementwise, _| {
                for step in 1..steps {
                    elementwise
                        .steps
                        .push(Step { op: OpCode::NegF32, operands: [Operand::Step(step - 1); 3] });
                    elementwise.outputs[0].step = step;
                }
            })
        };
        assert_eq!([1, 4, 5, 16].map(with_steps), [1, 1, 2, 2]);
        let with_inputs = |inputs: usize| {
            nodes(DENSE, &|elementwise, _| elementwise.inputs.resize(inputs, elementwise.inputs[1]))
        };
        assert_eq!([2, 3, 4].map(with_inputs), [1, 1, 2]);
        // The first element stands for all, and elements are words.
        for (offset, expected) in [(0, 1), (3, 2)] {
            assert_eq!(
                nodes([0; MAX_RANK], &|elementwise, _| elementwise.inputs[1].offset = offset),
                expected
            );
        }
        let is_f16 = |elementwise: &mut Elementwise, graph: &mut Graph| {
            graph.values[elementwise.inputs[1].value as usize].dtype = DType::F16;
        };
        assert_eq!(nodes(DENSE, &is_f16), 2);
    }

    #[test]
    fn what_others_need_or_no_kernel_runs_stays_an_elementwise_op() {
        let count = |shape: [usize; 2], code: OpCode, axis: usize, readers: usize| {
            let mut b = Build::default();
            let x = b.tensor(shape);
            let made = op(&mut b, code, x, dense_strides(&shape.into()));
            for _ in 0..readers {
                sum(&mut b, made, axis);
            }
            absorbed(b).len()
        };
        assert_eq!(count([8, 100], OpCode::AddF32, 1, 1), 1);
        assert_eq!(count([8, 100], OpCode::AddF32, 1, 2), 3, "two readers");
        assert_eq!(count([8, 100], OpCode::AddF32, 0, 1), 2, "columns");
        assert_eq!(count([8, 100], OpCode::PowF32, 1, 1), 2, "takes long to compile");
        assert_eq!(count([2000, 10], OpCode::AddF32, 1, 1), 2, "many short rows");
    }
}
