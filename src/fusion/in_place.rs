//! Assignments without a copy: what a tensor is assigned is written into the tensor by the node that makes it. A pure
//! function from nodes to nodes, after all others.

use crate::fusion::def_use::DefUse;
use crate::fusion::elementwise::reads_whole;
use crate::ir::branches::branch;
use crate::ir::elementwise::Elementwise;
use crate::ir::graph::{Graph, Node};
use crate::ir::op::Op;
use crate::ir::value::{Origin, StateId, ValueId};

/// Lets nodes whose results are assigned write them in place, each at the place of the assignment. By then all that was
/// recorded before has read the tensor. An elementwise op may read the tensor itself, element for element, as it
/// overwrites it.
pub(crate) fn assign_in_place(graph: &mut Graph) {
    if !branch!("in place: any", !graph.values.states().is_empty()) {
        return;
    }
    let mut nodes = std::mem::take(&mut graph.nodes);
    let mut def_use = DefUse::new(graph, &nodes);
    for i in 0..nodes.len() {
        let Some((maker, value, version)) = find_maker(graph, &nodes, &def_use, i) else { continue };
        // What is then at the maker's place is dropped.
        nodes.swap(maker, i);
        def_use.move_to(maker, i);
        def_use.rename(version, value);
        graph.values[value as usize].origin = graph.values[version as usize].origin;
        graph.values[version as usize].origin = Origin::Alias(value);
        for info in graph.values.iter_mut().filter(|info| info.origin == Origin::Alias(version)) {
            info.origin = Origin::Alias(value);
        }
    }
    def_use.retain_places(&mut nodes);
    graph.nodes = nodes;
}

/// For an assignment at `i`: the place of the node that can make what is assigned there, what it makes, and the
/// tensor's version.
fn find_maker(
    graph: &Graph,
    nodes: &[Node],
    def_use: &DefUse,
    i: usize,
) -> Option<(usize, ValueId, ValueId)> {
    let Op::Copy(copy) = &nodes[i].op else { return None };
    let (value, version) = (graph.root(copy.input), copy.output);
    let Origin::State(state) = graph.value(version).origin else { return None };
    let info = graph.value(value);
    if branch!("in place: kept", info.kept.is_some())
        || branch!("in place: not made here", info.origin != Origin::Produced)
    {
        return None;
    }
    let maker = def_use.place_of_writer(value)?;
    let (op, place) = (&nodes[maker as usize].op, i as u32);
    // The value is the tensor's version from here on, and gone with the next update.
    let next = def_use.next_update(state, place);
    let mut readers = def_use.reader_places(value);
    let readers_fit = readers.all(|reader| reader == place || (reader > place && reader < next));
    let fits = branch!("in place: read in time", readers_fit)
        && branch!("in place: no user's kernel", !matches!(op, Op::Dispatch(_)))
        && others_wait(graph, def_use, op, (maker, place))
        && def_use.is_movable(graph, op, maker, place)
        && overwrites(graph, op, state);
    fits.then_some((maker as usize, value, version))
}

/// Whether nothing between the places reads what the node writes.
fn others_wait(graph: &Graph, def_use: &DefUse, op: &Op, (from, to): (u32, u32)) -> bool {
    let mut wait = true;
    op.touches(|value, write| wait &= !write || def_use.waits_for(graph.root(value), from, to));
    branch!("in place: others wait", wait)
}

/// Whether a node may write over a tensor: it makes no other version of it, and reads none, or is an elementwise op
/// that reads each element only where it writes.
fn overwrites(graph: &Graph, op: &Op, state: StateId) -> bool {
    let of_tensor = |value: ValueId| graph.values.state_of(value) == Some(state);
    let mut writes = false;
    op.touches(|value, write| writes |= write && of_tensor(value));
    if branch!("in place: makes another version", writes) {
        return false;
    }
    if let Op::Elementwise(elementwise) = op {
        let packed = |value: ValueId| graph.value(value).dtype.is_packed();
        // Elements that share a word are loaded and stored with their neighbours.
        let packs = |elementwise: &Elementwise| elementwise.outputs.iter().any(|output| packed(output.value));
        let reads = elementwise.inputs.iter().filter(|input| of_tensor(input.value));
        return branch!(
            "in place: reads what it writes",
            reads.clone().all(|input| reads_whole(graph, elementwise, input)
                && !packed(input.value)
                && !packs(elementwise))
        );
    }
    let mut reads = false;
    op.touches(|value, write| reads |= !write && of_tensor(value));
    !branch!("in place: reads the tensor", reads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::build::Build;
    use crate::ir::copy::Copy;
    use crate::ir::elementwise::OpCode;
    use crate::shape::DType;

    /// Assigns a value to a tensor; gives the version.
    fn assign(b: &mut Build, state: StateId, value: ValueId) -> ValueId {
        let version = b.state_version(state, value);
        b.push("assign", version, Copy { input: value, output: version });
        version
    }

    fn placed(mut b: Build) -> Graph {
        assign_in_place(&mut b.graph);
        b.graph
    }

    #[test]
    fn an_elementwise_op_that_reads_what_it_overwrites_does_so_in_place() {
        let mut b = Build::default();
        let (w, gradient) = (b.tensor([8, 8]), b.tensor([8, 8]));
        let state = b.state(w);
        let stepped = b.op(OpCode::SubF32, &[w, gradient]);
        let version = assign(&mut b, state, stepped);
        let after = b.op(OpCode::NegF32, &[version]);
        b.keep(after);
        let graph = placed(b);
        assert_eq!(graph.nodes.len(), 2);
        assert_eq!(graph.value(stepped).origin, Origin::State(state));
        assert_eq!(graph.root(version), stepped);
    }

    #[test]
    fn what_reads_other_elements_of_the_tensor_is_copied() {
        let mut b = Build::default();
        let w = b.tensor([8, 8]);
        let state = b.state(w);
        let turned = b.op(OpCode::NegF32, &[w]);
        b.last_elementwise().inputs[0].strides[..2].reverse();
        assign(&mut b, state, turned);
        assert_eq!(placed(b).nodes.len(), 2);
        // A matmul reads all of its operands for each element.
        let mut b = Build::default();
        let (w, x) = (b.tensor([8, 8]), b.tensor([8, 8]));
        let state = b.state(w);
        let matmul = b.matmul(w, x);
        assign(&mut b, state, matmul);
        assert_eq!(placed(b).nodes.len(), 2);
    }

    #[test]
    fn a_value_that_is_read_before_or_too_late_is_copied() {
        let record = |early: bool, late: bool| {
            let mut b = Build::default();
            let (w, x) = (b.tensor([8, 8]), b.tensor([8, 8]));
            let state = b.state(w);
            let matmul = b.matmul(x, x);
            if early {
                let read = b.softmax(false, matmul, 1);
                b.keep(read);
            }
            assign(&mut b, state, matmul);
            if late {
                let other = b.op(OpCode::NegF32, &[x]);
                assign(&mut b, state, other);
                let read = b.softmax(false, matmul, 1);
                b.keep(read);
            }
            placed(b).nodes.len()
        };
        assert_eq!([record(false, false), record(true, false)], [1, 3]);
        // The second assignment is in place; the first one's value outlives it.
        assert_eq!(record(false, true), 4);
    }

    #[test]
    fn of_two_results_for_one_tensor_one_is_copied() {
        let mut b = Build::default();
        let (w, x) = (b.tensor([8]), b.tensor([8]));
        let state = b.state(w);
        let first = b.op(OpCode::NegF32, &[x]);
        let second = b.op(OpCode::AbsF32, &[first]);
        assign(&mut b, state, second);
        assign(&mut b, state, first);
        crate::fusion::fuse_all(&mut b.graph);
        let graph = placed(b);
        assert_eq!(graph.nodes.len(), 2);
        assert_eq!(
            (graph.value(second).origin, graph.value(first).origin),
            (Origin::State(state), Origin::Produced)
        );
    }

    #[test]
    fn elementwise_ops_with_two_results_write_both_tensors() {
        let mut b = Build::default();
        let (m, w, g) = (b.tensor([8]), b.tensor([8]), b.tensor([8]));
        let (momentum, weights) = (b.state(m), b.state(w));
        let moved = b.op(OpCode::AddF32, &[m, g]);
        let stepped = b.op(OpCode::SubF32, &[w, moved]);
        assign(&mut b, momentum, moved);
        assign(&mut b, weights, stepped);
        crate::fusion::fuse_all(&mut b.graph);
        let graph = placed(b);
        assert_eq!(graph.nodes.len(), 1);
        assert_eq!(graph.value(moved).origin, Origin::State(momentum));
        assert_eq!(graph.value(stepped).origin, Origin::State(weights));
    }

    #[test]
    fn a_value_that_is_kept_is_copied() {
        let record = |kept: bool| {
            let mut b = Build::default();
            let (w, x) = (b.tensor([8]), b.tensor([8]));
            let state = b.state(w);
            let value = b.op(OpCode::NegF32, &[x]);
            if kept {
                b.keep(value);
            }
            assign(&mut b, state, value);
            placed(b).nodes.len()
        };
        assert_eq!([record(false), record(true)], [1, 2]);
    }

    /// A word holds two halves, so an elementwise op that reads other halves of the tensor could find them overwritten.
    #[test]
    fn halves_that_are_read_are_not_overwritten() {
        let record = |dtype: DType| {
            let mut b = Build::default();
            let w = b.tensor([8]);
            let state = b.state(w);
            let value = b.op(OpCode::NegF32, &[w]);
            b.graph.values[w as usize].dtype = dtype;
            assign(&mut b, state, value);
            placed(b).nodes.len()
        };
        assert_eq!([record(DType::F32), record(DType::F16)], [1, 2]);
    }

    /// An elementwise op with two results stays where it is if something reads the other one before the assignment.
    #[test]
    fn an_elementwise_op_whose_other_result_is_read_before_the_assignment_is_not_moved() {
        let record = |early: bool| {
            let mut b = Build::default();
            let (w, x) = (b.tensor([8]), b.tensor([8]));
            let state = b.state(w);
            let first = b.op(OpCode::NegF32, &[x]);
            let second = b.op(OpCode::AbsF32, &[first]);
            let shares = |b: &mut Build| {
                let shares = b.softmax(false, first, 0);
                b.keep(shares);
            };
            if early {
                shares(&mut b);
            }
            assign(&mut b, state, second);
            if !early {
                shares(&mut b);
            }
            crate::fusion::fuse_all(&mut b.graph);
            placed(b).nodes.len()
        };
        assert_eq!([record(false), record(true)], [2, 3]);
    }

    #[test]
    fn an_elementwise_op_that_reads_a_tensor_is_not_moved_past_its_update() {
        let mut b = Build::default();
        let (w, v, x) = (b.tensor([8]), b.tensor([8]), b.tensor([8]));
        let states = [w, v].map(|tensor| b.state(tensor));
        let stepped = b.op(OpCode::SubF32, &[w, v]);
        assign(&mut b, states[1], x);
        assign(&mut b, states[0], stepped);
        let graph = placed(b);
        assert_eq!(graph.nodes.len(), 3);
        assert_eq!(graph.value(stepped).origin, Origin::Produced);
    }
}
