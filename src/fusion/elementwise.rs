//! Fusion: elementwise programs that feed each other become one. A pure function from nodes to nodes.
//!
//! A program is joined into a later one that reads its result element for element, at the place of the later one. That
//! is right if nobody else needs its results before that place: other readers come later (then the result is stored
//! as one more output) or are part of the same program. The later one must read none of its results in any other layout,
//! through whatever alias: only memory has elements of other places. Values are written once and before they are read, so
//! moving a program down the list changes nothing that it reads.

use smallvec::SmallVec;

use crate::ir::branches::branch;
use crate::ir::elementwise::{Map, MapInput, MapOutput, OpCode, Operand, Step, dense_strides};
use crate::ir::graph::{Graph, Label, LabelName, Node, ValueId, Work};
use crate::kernels::elementwise::modules::map_fits;
use crate::shape::DType;

/// Joins what can be joined. The order of nodes is kept otherwise.
pub(crate) fn fuse(graph: &mut Graph) {
    let several = graph.nodes.iter().filter(|node| matches!(node.work, Work::Map(_))).nth(1).is_some();
    if !branch!("fuse: several programs", several) {
        return;
    }
    let mut nodes = std::mem::take(&mut graph.nodes);
    let mut places = Places::new(graph, &nodes);
    for i in 0..nodes.len() {
        let Work::Map(map) = &nodes[i].work else { continue };
        let (mut program, mut label) = (map.clone(), nodes[i].label.clone());
        let mut joined = false;
        while let Some((earlier, both)) = join_one(graph, &nodes, &places, &program, i) {
            label = joined_label(&nodes[earlier].label, &label);
            program = both;
            places.move_to(earlier, i);
            joined = true;
        }
        if branch!("fuse: joined", joined) {
            nodes[i].work = Work::Map(program);
            nodes[i].label = label;
        }
    }
    places.retain_places(&mut nodes);
    graph.nodes = nodes;
}

/// Who reads and writes a value, and where nodes have moved to.
pub(super) struct Places {
    /// The node that a node was joined into; itself if it was not.
    moved: Vec<u32>,
    readers: Vec<SmallVec<[u32; 2]>>,
    /// The one node that writes a value; none if there are several, or it comes from outside.
    writer: Vec<Option<u32>>,
}

impl Places {
    pub(super) fn new(graph: &Graph, nodes: &[Node]) -> Places {
        let values = graph.values.len();
        let mut places = Places {
            moved: (0..nodes.len() as u32).collect(),
            readers: vec![SmallVec::new(); values],
            writer: vec![None; values],
        };
        let mut written = vec![false; values];
        for (i, node) in nodes.iter().enumerate() {
            node.touches(|value, write| {
                let root = graph.root(value) as usize;
                if !write {
                    places.readers[root].push(i as u32);
                } else if branch!("fuse: written again", std::mem::replace(&mut written[root], true)) {
                    places.writer[root] = None;
                } else {
                    places.writer[root] = Some(i as u32);
                }
            });
        }
        places
    }

    fn find(&self, node: u32) -> u32 {
        let mut place = node;
        while self.moved[place as usize] != place {
            place = self.moved[place as usize];
        }
        place
    }

    /// Where the one node is by now that writes the value; none if there are several, or it comes from outside.
    pub(super) fn place_of_writer(&self, root: ValueId) -> Option<u32> {
        self.writer[root as usize].map(|writer| self.find(writer))
    }

    pub(super) fn move_to(&mut self, from: usize, to: usize) {
        self.moved[from] = to as u32;
    }

    /// Drops the nodes that were joined into others.
    pub(super) fn retain_places(&self, nodes: &mut Vec<Node>) {
        let mut own = (0..).zip(&self.moved).map(|(i, place)| i == *place);
        nodes.retain(|_| own.next().unwrap_or(true));
    }

    /// Whether the value is read by a node other than those at these two places.
    pub(super) fn read_elsewhere(&self, root: ValueId, here: [u32; 2]) -> bool {
        self.readers[root as usize].iter().any(|&reader| !here.contains(&self.find(reader)))
    }

    /// Whether every reader is at one of the two places, or comes after the later one.
    fn waits_for(&self, root: ValueId, earlier: u32, later: u32) -> bool {
        self.readers[root as usize].iter().all(|&reader| {
            let place = self.find(reader);
            place == earlier || place >= later
        })
    }
}

/// Joins a program that `program` (at `i`) reads from into it: its place, and the two as one.
fn join_one(graph: &Graph, nodes: &[Node], places: &Places, program: &Map, i: usize) -> Option<(usize, Map)> {
    program.inputs.iter().find_map(|input| {
        let root = graph.root(input.value);
        let place = places.place_of_writer(root)?;
        let Work::Map(earlier) = &nodes[place as usize].work else { return None };
        let waits = |o: &MapOutput| places.waits_for(graph.root(o.value), place, i as u32);
        let movable = place as usize != i
            && branch!("fuse: reads whole", reads_whole_of(graph, program, earlier))
            && branch!("fuse: one shape", shape_of(graph, earlier) == shape_of(graph, program))
            && branch!("fuse: others wait", earlier.outputs.iter().all(waits));
        if !movable {
            return None;
        }
        let stays = |value: ValueId| {
            let root = graph.root(value);
            branch!("fuse: kept", graph.value(root).kept.is_some())
                || branch!("fuse: read elsewhere", places.read_elsewhere(root, [place, i as u32]))
        };
        let both = join(graph, earlier, program, stays);
        branch!("fuse: fits", map_fits(&both)).then_some((place as usize, both))
    })
}

fn shape_of<'a>(graph: &'a Graph, map: &Map) -> &'a [usize] {
    map.outputs.first().map_or(&[], |output| graph.value(output.value).shape.dims())
}

/// Whether the input is read element for element, in the shape of the program's outputs.
pub(crate) fn reads_whole(graph: &Graph, program: &Map, input: &MapInput) -> bool {
    let shape = graph.value(input.value).shape;
    shape.dims() == shape_of(graph, program) && input.offset == 0 && input.strides == dense_strides(&shape)
}

/// Whether all that the program reads of the earlier one's results is read element for element: elements of other places
/// are not there until the earlier one has run, and are nowhere if its results are not stored.
fn reads_whole_of(graph: &Graph, program: &Map, earlier: &Map) -> bool {
    let mut of_earlier = program.inputs.iter().filter(|input| made_by(graph, earlier, input).is_some());
    of_earlier.all(|input| reads_whole(graph, program, input))
}

/// The program's result that the input reads, in whatever shape.
fn made_by<'a>(graph: &Graph, program: &'a Map, input: &MapInput) -> Option<&'a MapOutput> {
    let root = graph.root(input.value);
    program.outputs.iter().find(|output| graph.root(output.value) == root)
}

/// Two programs as one. The earlier one's results are stored only if they are needed elsewhere.
fn join(graph: &Graph, earlier: &Map, later: &Map, stays: impl Fn(ValueId) -> bool) -> Map {
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
    both.outputs.extend(outputs.map(|o| MapOutput { step: steps[usize::from(o.step)], value: o.value }));
    both
}

/// The place of an input among the program's, by whatever name it is known there.
fn input_of(graph: &Graph, program: &mut Map, input: &MapInput) -> u8 {
    let shape = |value: ValueId| (graph.root(value), graph.value(value).shape);
    let same = |other: &&MapInput| {
        (other.strides, other.offset) == (input.strides, input.offset)
            && shape(other.value) == shape(input.value)
    };
    let known = program.inputs.iter().find(same).copied();
    position_or_push(&mut program.inputs, known.unwrap_or(*input))
}

/// A result as it is once it has been stored: what fusion leaves out must not change a bit.
fn stored(graph: &Graph, output: &MapOutput, program: &mut Map) -> Operand {
    let step = Operand::Step(output.step);
    if !branch!("fuse: of a half", graph.value(output.value).dtype == DType::F16) {
        return step;
    }
    let rounded = Step { op: OpCode::RoundToF16, operands: [step; 3] };
    Operand::Step(position_or_push(&mut program.steps, rounded))
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
    use crate::ir::graph::Origin;
    use crate::shape::Shape;
    use smallvec::smallvec;

    /// A graph that is written down like a recording.
    struct Build(Graph);

    impl Build {
        fn new() -> Build {
            Build(Graph::default())
        }

        fn tensor(&mut self, shape: impl Into<Shape>) -> ValueId {
            self.0.add_value(shape.into(), DType::F32, Origin::Tensor(0))
        }

        fn op(&mut self, op: OpCode, operands: &[ValueId]) -> ValueId {
            let shape = self.0.value(operands[0]).shape;
            let output = self.0.add_value(shape, DType::F32, Origin::Produced);
            let mut inputs: SmallVec<[MapInput; 4]> = SmallVec::new();
            let code: SmallVec<[Operand; 3]> = operands
                .iter()
                .map(|&value| {
                    let from = self.0.value(value).shape;
                    // A row, if the shape is another one.
                    let strides = if from == shape { dense_strides(&shape) } else { [0, 1, 0, 0] };
                    Operand::Input(position_or_push(&mut inputs, MapInput { value, strides, offset: 0 }))
                })
                .collect();
            let operand = |k: usize| code.get(k).copied().unwrap_or(code[0]);
            let map = Map::single(op, [operand(0), operand(1), operand(2)], inputs, smallvec![], output);
            let label = Label { op: LabelName::Op("op"), shape, dtype: DType::F32 };
            self.0.nodes.push(Node::new(label, Work::Map(map), SmallVec::new()));
            output
        }

        /// A copy of a square with its dimensions exchanged.
        fn transpose(&mut self, from: ValueId) -> ValueId {
            let turned = self.op(OpCode::Copy, &[from]);
            let Some(Node { work: Work::Map(map), .. }) = self.0.nodes.last_mut() else {
                panic!("no program")
            };
            map.inputs[0].strides[..2].reverse();
            turned
        }

        fn alias(&mut self, of: ValueId, shape: impl Into<Shape>) -> ValueId {
            self.0.add_value(shape.into(), DType::F32, Origin::Alias(self.0.root(of)))
        }

        fn copy(&mut self, from: ValueId) -> ValueId {
            let to = self.0.add_value(self.0.value(from).shape, DType::F32, Origin::Produced);
            let accesses = smallvec![self.0.whole(from, false), self.0.whole(to, true)];
            let label = Label { op: LabelName::Op("copy"), shape: [1].into(), dtype: DType::F32 };
            self.0.nodes.push(Node::new(label, Work::Copy, accesses));
            to
        }

        fn fused(mut self) -> Vec<Node> {
            fuse(&mut self.0);
            self.0.nodes
        }
    }

    fn program(node: &Node) -> &Map {
        match &node.work {
            Work::Map(map) => map,
            _ => panic!("not a program"),
        }
    }

    #[test]
    fn a_chain_becomes_one_program() {
        let mut b = Build::new();
        let (x, y) = (b.tensor([8, 4]), b.tensor([8, 4]));
        let sum = b.op(OpCode::AddF32, &[x, y]);
        let product = b.op(OpCode::MulF32, &[sum, y]);
        let last = b.op(OpCode::ReluF32, &[product]);
        let nodes = b.fused();
        assert_eq!(nodes.len(), 1);
        let map = program(&nodes[0]);
        assert_eq!(map.inputs.len(), 2, "y is bound once");
        assert_eq!(map.steps.len(), 3);
        assert_eq!(map.steps[1].operands[..2], [Operand::Step(0), Operand::Input(1)]);
        assert_eq!(map.outputs.as_slice(), [MapOutput { step: 2, value: last }]);
        assert_eq!(nodes[0].label.to_string(), "op+op+op 8x4 f32");
    }

    #[test]
    fn two_parts_of_a_tensor_are_two_inputs() {
        let mut b = Build::new();
        let (long, x) = (b.tensor([32]), b.tensor([16]));
        let first = b.op(OpCode::NegF32, &[x]);
        b.op(OpCode::AddF32, &[first, x]);
        for (node, input, offset) in [(0, 0, 0), (1, 1, 16)] {
            let Work::Map(map) = &mut b.0.nodes[node].work else { panic!("no program") };
            map.inputs[input] = MapInput { value: long, offset, ..map.inputs[input] };
        }
        let nodes = b.fused();
        assert_eq!(nodes.len(), 1);
        let offsets: Vec<u32> = program(&nodes[0]).inputs.iter().map(|input| input.offset).collect();
        assert_eq!(offsets, [0, 16]);
    }

    #[test]
    fn a_diamond_becomes_one_program() {
        let mut b = Build::new();
        let x = b.tensor([16]);
        let top = b.op(OpCode::NegF32, &[x]);
        let (left, right) = (b.op(OpCode::AbsF32, &[top]), b.op(OpCode::ReluF32, &[top]));
        b.op(OpCode::AddF32, &[left, right]);
        let nodes = b.fused();
        assert_eq!(nodes.len(), 1);
        assert_eq!(program(&nodes[0]).steps.len(), 4);
        assert_eq!(program(&nodes[0]).outputs.len(), 1);
    }

    #[test]
    fn what_is_read_in_between_by_others_is_not_moved() {
        let mut b = Build::new();
        let x = b.tensor([16]);
        let first = b.op(OpCode::NegF32, &[x]);
        let copied = b.copy(first);
        b.op(OpCode::AddF32, &[first, copied]);
        assert_eq!(b.fused().len(), 3);
    }

    #[test]
    fn what_is_read_later_by_others_is_stored_too() {
        let mut b = Build::new();
        let x = b.tensor([16]);
        let first = b.op(OpCode::NegF32, &[x]);
        let second = b.op(OpCode::AbsF32, &[first]);
        b.copy(first);
        let nodes = b.fused();
        assert_eq!(nodes.len(), 2);
        let outputs = &program(&nodes[0]).outputs;
        assert_eq!(outputs.iter().map(|o| (o.step, o.value)).collect::<Vec<_>>(), [(0, first), (1, second)]);
    }

    /// The elements that a program reads of a value in another layout must be in memory when it runs.
    #[test]
    fn what_is_read_in_two_layouts_is_stored_first() {
        let mut b = Build::new();
        let (x, y) = (b.tensor([8, 8]), b.tensor([8, 8]));
        let made = b.op(OpCode::MulF32, &[x, y]);
        let turned = b.transpose(made);
        let turned = b.op(OpCode::NegF32, &[turned]);
        b.op(OpCode::AddF32, &[made, turned]);
        let nodes = b.fused();
        assert_eq!(nodes.len(), 2);
        assert_eq!(program(&nodes[0]).outputs.as_slice(), [MapOutput { step: 0, value: made }]);
        assert_eq!(program(&nodes[1]).steps.len(), 3);

        // The same through an alias, and by way of a program that has two results.
        let mut b = Build::new();
        let x = b.tensor([8, 8]);
        let first = b.op(OpCode::NegF32, &[x]);
        let second = b.op(OpCode::AbsF32, &[first]);
        let flat = b.alias(first, [64]);
        let square = b.alias(flat, [8, 8]);
        let turned = b.transpose(square);
        b.op(OpCode::AddF32, &[second, turned]);
        let nodes = b.fused();
        assert_eq!(nodes.len(), 2);
        assert_eq!(program(&nodes[0]).outputs.len(), 2);
    }

    #[test]
    fn an_alias_of_the_same_shape_is_the_same_step() {
        let mut b = Build::new();
        let x = b.tensor([8, 8]);
        let made = b.op(OpCode::NegF32, &[x]);
        let same = b.alias(made, [8, 8]);
        b.op(OpCode::AddF32, &[made, same]);
        let nodes = b.fused();
        assert_eq!(nodes.len(), 1);
        assert_eq!(program(&nodes[0]).steps[1].operands[..2], [Operand::Step(0); 2]);
    }

    #[test]
    fn rows_are_inputs_and_never_producers_of_a_larger_shape() {
        let mut b = Build::new();
        let (x, row) = (b.tensor([8, 4]), b.tensor([4]));
        let made_row = b.op(OpCode::NegF32, &[row]);
        b.op(OpCode::AddF32, &[x, made_row]);
        let nodes = b.fused();
        assert_eq!(nodes.len(), 2);
        assert_eq!(program(&nodes[1]).inputs[1].strides, [0, 1, 0, 0]);
    }

    #[test]
    fn programs_end_where_a_module_does() {
        let mut b = Build::new();
        let (x, mut last) = (b.tensor([16]), b.tensor([16]));
        for _ in 0..100 {
            last = b.op(OpCode::AddF32, &[last, x]);
        }
        let nodes = b.fused();
        assert_eq!(nodes.len(), 7);
        assert!(nodes.iter().all(|node| program(node).steps.len() <= 16));
        let mut b = Build::new();
        let mut last = b.tensor([16]);
        for _ in 0..6 {
            let other = b.tensor([16]);
            last = b.op(OpCode::AddF32, &[last, other]);
        }
        assert_eq!(b.fused().len(), 2, "four inputs at most");
    }
}
