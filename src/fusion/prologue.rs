//! Elementwise heads: a program whose result only a reduction or a softmax of rows reads becomes part of that, and the
//! result itself is never stored. A pure function from nodes to nodes.

use smallvec::SmallVec;

use crate::fusion::elementwise::{Places, joined_label, reads_whole};
use crate::ir::branches::branch;
use crate::ir::elementwise::{Map, MapInput};
use crate::ir::graph::{Graph, Label, Node, Work};
use crate::shape::{DType, MAX_RANK};

/// Puts every head that fits into what is behind it, at that one's place.
pub(crate) fn absorb_heads(graph: &mut Graph) {
    let mut nodes = std::mem::take(&mut graph.nodes);
    let any = nodes.iter().any(|node| matches!(node.work, Work::Reduce(_) | Work::Softmax(_)));
    if branch!("head: of any", any) {
        let mut places = Places::new(graph, &nodes);
        for i in 0..nodes.len() {
            let absorbed = absorb_one(graph, &nodes, &places, i);
            branch!("head: absorbed", absorbed.is_some());
            if let Some((head, joined)) = absorbed {
                nodes[i] = joined;
                places.move_to(head, i);
            }
        }
        places.retain_places(&mut nodes);
    }
    graph.nodes = nodes;
}

/// The reduction or softmax at `i` with the program that makes its input, and that program's place.
fn absorb_one(graph: &Graph, nodes: &[Node], places: &Places, i: usize) -> Option<(usize, Node)> {
    let (input, output) = match &nodes[i].work {
        Work::Reduce(reduce) => (reduce.input, reduce.output),
        Work::Softmax(softmax) => {
            branch!("head: before a softmax");
            (softmax.input, softmax.output)
        }
        _ => {
            branch!("head: of neither");
            return None;
        }
    };
    let root = graph.root(input);
    let place = places.place_of_writer(root)?;
    let Work::Map(head) = &nodes[place as usize].work else { return None };
    if branch!("head: kept", graph.value(root).kept.is_some())
        || branch!("head: read elsewhere", places.read_elsewhere(root, [i as u32; 2]))
        || !makes_one_dense_result(graph, head)
    {
        return None;
    }
    let mut work = nodes[i].work.clone();
    match &mut work {
        Work::Reduce(reduce) if branch!("head: of a reduction", reduce.takes(head)) => {
            reduce.head = Some(head.clone());
        }
        Work::Softmax(softmax) if branch!("head: of a softmax", softmax.takes(head)) => {
            softmax.head = Some(head.clone());
        }
        _ => return None,
    }
    let label = Label {
        op: joined_label(&nodes[place as usize].label, &nodes[i].label).op,
        ..nodes[i].label.clone()
    };
    let mut accesses: SmallVec<[_; 4]> =
        head.inputs.iter().map(|input| graph.whole(input.value, false)).collect();
    accesses.push(graph.whole(output, true));
    Some((place as usize, Node::new(label, work, accesses)))
}

/// Whether it stores one result alone, and every input is read element for element or is one element for all.
fn makes_one_dense_result(graph: &Graph, head: &Map) -> bool {
    // The kernels load words.
    let word = |input: &MapInput| branch!("head: words", graph.value(input.value).dtype != DType::F16);
    // The kernels read the first one. (No operation reads another for all today: slices keep their strides.)
    let single =
        |input: &MapInput| branch!("head: one for all", input.strides == [0; MAX_RANK]) && input.offset == 0;
    let whole = |input: &MapInput| branch!("head: reads whole", reads_whole(graph, head, input));
    head.only_output().is_some()
        && head.inputs.iter().all(|input| word(input) && (single(input) || whole(input)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::elementwise::{OpCode, Operand, Step, dense_strides};
    use crate::ir::graph::{LabelName, Origin, ValueId};
    use crate::ir::reduce::Reduce;
    use crate::ir::reduce::Reduction;
    use crate::ir::softmax::Softmax;
    use crate::kernels::axis::span::Geometry;
    use crate::shape::Shape;
    use smallvec::smallvec;

    struct Build(Graph, Shape);

    impl Build {
        fn new(shape: impl Into<Shape>) -> Build {
            Build(Graph::default(), shape.into())
        }

        fn label(&self, op: &'static str) -> Label {
            Label { op: LabelName::Op(op), shape: self.1, dtype: DType::F32 }
        }

        fn tensor(&mut self) -> ValueId {
            self.0.add_value(self.1, DType::F32, Origin::Tensor(0))
        }

        /// An operation on a value and a tensor with these strides.
        fn op(&mut self, op: OpCode, value: ValueId, strides: [u32; MAX_RANK]) -> ValueId {
            let other = self.tensor();
            let output = self.0.add_value(self.1, DType::F32, Origin::Produced);
            let dense = dense_strides(&self.1);
            let inputs = smallvec![
                MapInput { value, strides: dense, offset: 0 },
                MapInput { value: other, strides, offset: 0 }
            ];
            let operands = [Operand::Input(0), Operand::Input(1), Operand::Input(0)];
            let map = Map::single(op, operands, inputs, smallvec![], output);
            self.0.nodes.push(Node::new(self.label("op"), Work::Map(map), SmallVec::new()));
            output
        }

        fn sum(&mut self, input: ValueId, axis: usize) -> ValueId {
            let output = self.0.add_value([1].into(), DType::F32, Origin::Produced);
            let reduce = Reduce {
                op: "sum",
                reduction: Reduction::Sum,
                input,
                second: None,
                head: None,
                geometry: Geometry::along(&self.1, axis),
                output,
            };
            let accesses = smallvec![self.0.whole(input, false), self.0.whole(output, true)];
            self.0.nodes.push(Node::new(self.label("sum"), Work::Reduce(Box::new(reduce)), accesses));
            output
        }

        fn softmax(&mut self, input: ValueId, axis: usize) {
            let output = self.0.add_value(self.1, DType::F32, Origin::Produced);
            let geometry = Geometry::along(&self.1, axis);
            let softmax = Softmax { op: "softmax", logarithm: false, input, head: None, geometry, output };
            let accesses = smallvec![self.0.whole(input, false), self.0.whole(output, true)];
            self.0.nodes.push(Node::new(self.label("softmax"), Work::Softmax(Box::new(softmax)), accesses));
        }

        fn absorbed(mut self) -> Vec<Node> {
            absorb_heads(&mut self.0);
            self.0.nodes
        }
    }

    const DENSE: [u32; MAX_RANK] = [100, 1, 0, 0];

    #[test]
    fn a_program_that_only_a_reduction_reads_becomes_its_head() {
        let mut b = Build::new([8, 100]);
        let x = b.tensor();
        let made = b.op(OpCode::MulF32, x, DENSE);
        let sum = b.sum(made, 1);
        let nodes = b.absorbed();
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].label.to_string(), "op+sum 8x100 f32");
        let touched: Vec<_> = nodes[0].accesses.iter().map(|a| (a.value, a.write)).collect();
        assert_eq!(touched, [(x, false), (x + 1, false), (sum, true)]);
    }

    #[test]
    fn softmax_takes_a_head_where_rows_are_not_long() {
        for (extents, axis, nodes) in [([8, 100], 1, 1), ([8, 100], 0, 2), ([2, 100_000], 1, 2)] {
            let mut b = Build::new(extents);
            let x = b.tensor();
            let made = b.op(OpCode::MulF32, x, dense_strides(&extents.into()));
            b.softmax(made, axis);
            let absorbed = b.absorbed();
            assert_eq!(absorbed.len(), nodes, "{extents:?}");
            assert_eq!(absorbed[0].label.to_string().starts_with("op+softmax"), nodes == 1);
        }
    }

    #[test]
    fn one_element_for_all_is_read_as_such_and_rows_are_not_read() {
        for (strides, nodes) in [([0; 4], 1), ([0, 1, 0, 0], 2), ([1, 0, 0, 0], 2)] {
            let mut b = Build::new([8, 100]);
            let x = b.tensor();
            let made = b.op(OpCode::MulF32, x, strides);
            b.sum(made, 1);
            assert_eq!(b.absorbed().len(), nodes, "{strides:?}");
        }
    }

    #[test]
    fn what_kernels_of_rows_have_no_room_for_stays_a_program() {
        let nodes = |strides: [u32; MAX_RANK], change: &dyn Fn(&mut Map, &mut Graph)| {
            let mut b = Build::new([8, 100]);
            let x = b.tensor();
            let made = b.op(OpCode::MulF32, x, strides);
            let Some(Node { work: Work::Map(map), .. }) = b.0.nodes.last() else { panic!("no program") };
            let mut map = map.clone();
            change(&mut map, &mut b.0);
            b.0.nodes[0].work = Work::Map(map);
            b.sum(made, 1);
            b.absorbed().len()
        };
        let with_steps = |steps: u8| {
            nodes(DENSE, &|map, _| {
                for step in 1..steps {
                    map.steps.push(Step { op: OpCode::NegF32, operands: [Operand::Step(step - 1); 3] });
                    map.outputs[0].step = step;
                }
            })
        };
        assert_eq!([1, 4, 5, 16].map(with_steps), [1, 1, 2, 2]);
        let with_inputs = |inputs: usize| nodes(DENSE, &|map, _| map.inputs.resize(inputs, map.inputs[1]));
        assert_eq!([2, 3, 4].map(with_inputs), [1, 1, 2]);
        // The first element stands for all, and elements are words.
        for (offset, expected) in [(0, 1), (3, 2)] {
            assert_eq!(nodes([0; MAX_RANK], &|map, _| map.inputs[1].offset = offset), expected);
        }
        let half = |map: &mut Map, graph: &mut Graph| {
            graph.values[map.inputs[1].value as usize].dtype = DType::F16;
        };
        assert_eq!(nodes(DENSE, &half), 2);
    }

    #[test]
    fn what_others_need_or_no_kernel_runs_stays_a_program() {
        let count = |shape: [usize; 2], op: OpCode, axis: usize, readers: usize| {
            let mut b = Build::new(shape);
            let x = b.tensor();
            let made = b.op(op, x, dense_strides(&shape.into()));
            for _ in 0..readers {
                b.sum(made, axis);
            }
            b.absorbed().len()
        };
        assert_eq!(count([8, 100], OpCode::AddF32, 1, 1), 1);
        assert_eq!(count([8, 100], OpCode::AddF32, 1, 2), 3, "two readers");
        assert_eq!(count([8, 100], OpCode::AddF32, 0, 1), 2, "columns");
        assert_eq!(count([8, 100], OpCode::PowF32, 1, 1), 2, "takes long to compile");
        assert_eq!(count([2000, 10], OpCode::AddF32, 1, 1), 2, "many short rows");
    }
}
