//! What a recording runs for nothing: operations whose results nobody can ever see. A pure function of the graph.

use crate::ir::branches::branch;
use crate::ir::graph::{Graph, Origin, ValueInfo};

/// For each node, whether anybody can see what it does: it writes a value that is kept, a tensor from outside, or what such a
/// node reads. Nothing else has an effect: a kernel, users' own too, writes its outputs alone, and memory of the host's is
/// written through kept values.
pub(crate) fn needed(graph: &Graph) -> Vec<bool> {
    let seen = |value: &ValueInfo| value.kept.is_some() || matches!(value.origin, Origin::Tensor(_));
    let mut values: Vec<bool> = graph.values.iter().map(seen).collect();
    let mut nodes = vec![false; graph.nodes.len()];
    for (node, needed) in graph.nodes.iter().zip(&mut nodes).rev() {
        node.touches(|value, write| *needed |= write && values[graph.root(value) as usize]);
        if branch!("needed: a node", *needed) {
            // Several nodes may write parts of one value, so what is written stays needed before this one.
            node.touches(|value, _| values[graph.root(value) as usize] = true);
        }
    }
    nodes
}

/// Drops the nodes that nothing needs.
pub(crate) fn drop_unneeded(graph: &mut Graph) {
    let needed = needed(graph);
    if branch!("needed: not all", needed.contains(&false)) {
        let mut needed = needed.into_iter();
        graph.nodes.retain(|_| needed.next().unwrap_or(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::elementwise::{Map, MapInput, OpCode, Operand};
    use crate::ir::graph::{Access, Label, LabelName, Node, ValueId, Work};
    use crate::shape::DType;
    use smallvec::{SmallVec, smallvec};

    fn label() -> Label {
        Label { op: LabelName::Op("copy"), shape: [4].into(), dtype: DType::F32 }
    }

    fn value(graph: &mut Graph, origin: Origin) -> ValueId {
        graph.add_value([4].into(), DType::F32, origin)
    }

    fn copy(graph: &mut Graph, from: &[ValueId], to: ValueId) {
        let mut accesses: SmallVec<[Access; 4]> =
            from.iter().map(|&value| graph.whole(value, false)).collect();
        accesses.push(graph.whole(to, true));
        graph.nodes.push(Node::new(label(), Work::Copy, accesses));
    }

    #[test]
    fn what_leads_to_nothing_that_is_kept_is_dropped() {
        let mut graph = Graph::default();
        let x = value(&mut graph, Origin::Tensor(0));
        let [a, b, dead, deader, seen] = [0; 5].map(|_| value(&mut graph, Origin::Produced));
        copy(&mut graph, &[x], a);
        copy(&mut graph, &[a], dead);
        copy(&mut graph, &[dead], deader);
        // Read by way of an alias.
        let alias = value(&mut graph, Origin::Alias(a));
        copy(&mut graph, &[alias], b);
        copy(&mut graph, &[x], seen);
        graph.values[b as usize].kept = Some(0);
        graph.values[seen as usize].kept = Some(1);
        assert_eq!(needed(&graph), [true, false, false, true, true]);
        drop_unneeded(&mut graph);
        assert_eq!(graph.nodes.len(), 3);
    }

    #[test]
    fn what_a_program_reads_by_way_of_a_view_is_needed() {
        let mut graph = Graph::default();
        let [made, last] = [0; 2].map(|_| value(&mut graph, Origin::Produced));
        copy(&mut graph, &[], made);
        let view = value(&mut graph, Origin::Alias(made));
        let input = MapInput { value: view, strides: [1, 0, 0, 0], offset: 0 };
        let program =
            Map::single(OpCode::NegF32, [Operand::Input(0); 3], smallvec![input], smallvec![], last);
        graph.nodes.push(Node::new(label(), Work::Map(program), SmallVec::new()));
        graph.values[last as usize].kept = Some(0);
        assert_eq!(needed(&graph), [true; 2]);
    }

    #[test]
    fn all_who_write_a_part_of_what_is_needed_stay() {
        let mut graph = Graph::default();
        let x = value(&mut graph, Origin::Tensor(0));
        let [parts, second] = [0; 2].map(|_| value(&mut graph, Origin::Produced));
        copy(&mut graph, &[x], parts);
        copy(&mut graph, &[], parts);
        copy(&mut graph, &[parts], second);
        assert_eq!(needed(&graph), [false; 3], "nothing is kept");
        graph.values[second as usize].kept = Some(0);
        assert_eq!(needed(&graph), [true; 3]);
    }

    #[test]
    fn what_updates_a_tensor_stays() {
        let mut graph = Graph::default();
        let x = value(&mut graph, Origin::Tensor(0));
        let made = value(&mut graph, Origin::Produced);
        copy(&mut graph, &[], made);
        copy(&mut graph, &[made], x);
        assert_eq!(needed(&graph), [true; 2]);
    }

    #[test]
    fn a_node_with_one_result_that_is_needed_stays() {
        let mut graph = Graph::default();
        let [one, other] = [0; 2].map(|_| value(&mut graph, Origin::Produced));
        let accesses = [one, other].iter().map(|&value| graph.whole(value, true)).collect();
        graph.nodes.push(Node::new(label(), Work::Copy, accesses));
        graph.values[other as usize].kept = Some(0);
        assert_eq!(needed(&graph), [true]);
    }
}
