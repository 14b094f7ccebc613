//! Dead operations: their results can never be read. A pure function of the graph.

use crate::ir::branches::branch;
use crate::ir::graph::Graph;
use crate::ir::value::{Origin, ValueInfo};

/// For each node, whether anybody can see what it does: it writes a value that is kept, a tensor that is updated, or
/// what such a node reads; or it is a user's kernel that writes nothing we know of, which is run for some other effect.
pub(crate) fn needed(graph: &Graph) -> Vec<bool> {
    let seen = |value: &ValueInfo| {
        value.kept.is_some() || matches!(value.origin, Origin::Tensor(_) | Origin::State(_))
    };
    let mut values: Vec<bool> = graph.values.iter().map(seen).collect();
    let mut nodes = vec![false; graph.nodes.len()];
    for (node, needed) in graph.nodes.iter().zip(&mut nodes).rev() {
        let mut writes = false;
        node.op.touches(|value, write| {
            writes |= write;
            *needed |= write && values[graph.root(value) as usize];
        });
        *needed |= !writes;
        if branch!("needed: a node", *needed) {
            // Several nodes may write parts of one value, so what is written stays needed before this one.
            node.op.touches(|value, _| values[graph.root(value) as usize] = true);
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
    use crate::ir::build::Build;
    use crate::ir::command::Cost;
    use crate::ir::copy::Fill;
    use crate::ir::dispatch::{Argument, KernelDispatch};
    use crate::ir::elementwise::OpCode;
    use crate::ir::pipeline_key::PipelineKey;
    use crate::ir::value::ValueId;
    use crate::kernels::catalog::Catalog;
    use crate::kernels::families;
    use crate::kernels::modules::generate;
    use crate::vk::physical::{DeviceInfo, DeviceKind};

    /// Users' kernels may read and write anything.
    fn kernel(b: &mut Build, reads: &[ValueId], writes: &[ValueId]) {
        let catalog = Catalog::new(families::ALL, &DeviceInfo::example(DeviceKind::Cpu), &[])
            .expect("its own variants");
        let kernel = catalog.kernel(generate::Module::Only.into()).expect("there is one").clone();
        let reads = reads.iter().map(|&value| Argument { value, write: false, over: None });
        let writes = writes.iter().map(|&value| Argument { value, write: true, over: None });
        let dispatch = KernelDispatch {
            pipeline: PipelineKey { kernel, specialization: Default::default() },
            push: Default::default(),
            groups: [1; 3],
            arguments: reads.chain(writes).collect(),
            cost: Cost::default(),
        };
        b.push("kernel", 0, dispatch);
    }

    #[test]
    fn what_leads_to_nothing_that_is_kept_is_dropped() {
        let mut b = Build::default();
        let x = b.tensor([4]);
        let a = b.copy(x);
        let dead = b.copy(a);
        b.copy(dead);
        // Read by way of an alias.
        let alias = b.alias(a, [2, 2]);
        let last = b.copy(alias);
        let seen = b.copy(x);
        b.keep(last);
        b.keep(seen);
        assert_eq!(needed(&b.graph), [true, false, false, true, true]);
        drop_unneeded(&mut b.graph);
        assert_eq!(b.graph.nodes.len(), 3);
    }

    #[test]
    fn what_an_elementwise_op_reads_by_way_of_a_view_is_needed() {
        let mut b = Build::default();
        let made = b.produced([4]);
        b.push("fill", made, Fill { word: 0, output: made });
        let view = b.alias(made, [4]);
        let last = b.op(OpCode::NegF32, &[view]);
        b.keep(last);
        assert_eq!(needed(&b.graph), [true; 2]);
    }

    #[test]
    fn all_who_write_a_part_of_what_is_needed_stay() {
        let mut b = Build::default();
        let (x, y) = (b.tensor([4]), b.tensor([4]));
        let parts = b.concat(&[x, y]);
        let second = b.copy(parts);
        assert_eq!(needed(&b.graph), [false; 3], "nothing is kept");
        b.keep(second);
        assert_eq!(needed(&b.graph), [true; 3]);
    }

    #[test]
    fn what_updates_a_tensor_stays() {
        let mut b = Build::default();
        let x = b.tensor([4]);
        let made = b.produced([4]);
        kernel(&mut b, &[], &[made]);
        kernel(&mut b, &[made], &[x]);
        assert_eq!(needed(&b.graph), [true; 2]);
    }

    #[test]
    fn a_node_with_one_result_that_is_needed_stays() {
        let mut b = Build::default();
        let [one, other] = [0; 2].map(|_| b.produced([4]));
        kernel(&mut b, &[], &[one, other]);
        b.keep(other);
        assert_eq!(needed(&b.graph), [true]);
    }
}
