//! Lowering: operations become dispatches, copies and fills. The one place that knows every family; how each does it
//! stands in that family's folder.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::command::{Action, Command, Lowered};
use crate::ir::graph::{Graph, Node};
use crate::ir::op::Op;
use crate::ir::value::Values;
use crate::kernels::catalog::Catalog;
use crate::kernels::copy::deep;

/// Turns the operations of a graph into commands. It may add values of its own behind the recorded ones.
pub(crate) fn lower(graph: Graph, catalog: &Catalog) -> Result<Lowered> {
    let Graph { mut values, nodes } = graph;
    let mut commands = Vec::with_capacity(nodes.len());
    for node in nodes {
        lower_op(node, &mut values, catalog, &mut commands)?;
    }
    Ok(Lowered { values, commands })
}

/// Appends the commands that carry an operation out.
fn lower_op(node: Node, values: &mut Values, catalog: &Catalog, commands: &mut Vec<Command>) -> Result<()> {
    let Node { label, op } = node;
    match op {
        Op::Elementwise(elementwise) => {
            let elementwise = deep::in_few_dims(elementwise, &label, values, catalog, commands)?;
            elementwise.lower(&label, values, catalog, commands)?;
        }
        Op::Matmul(matmul) => matmul.lower(&label, values, catalog, commands)?,
        Op::Conv2d(convolution) => convolution.lower(&label, values, catalog, commands)?,
        Op::PackWeights(pack) => pack.lower(&label, values, catalog, commands)?,
        Op::Reduce(reduce) => reduce.lower(&label, values, catalog, commands)?,
        Op::Softmax(softmax) => softmax.lower(&label, values, catalog, commands)?,
        Op::Pool(pooling) => pooling.lower(&label, values, catalog, commands)?,
        Op::Norm(norm) => norm.lower(&label, values, catalog, commands)?,
        Op::Resize(resize) => resize.lower(&label, values, catalog, commands)?,
        Op::Attention(attention) => attention.lower(&label, values, catalog, commands)?,
        Op::Angles(angles) => angles.lower(&label, values, catalog, commands)?,
        Op::CopyBox(copy) => copy.lower(&label, values, catalog, commands)?,
        Op::Gather(gather) => gather.lower(&label, values, catalog, commands)?,
        Op::Locate(locate) => locate.lower(&label, values, catalog, commands)?,
        Op::Scatter(scatter) => scatter.lower(&label, values, catalog, commands)?,
        Op::Histogram(histogram) => histogram.lower(&label, values, catalog, commands)?,
        Op::Scan(scan) => scan.lower(&label, values, catalog, commands)?,
        Op::Sort(sort) => sort.lower(&label, values, catalog, commands)?,
        Op::Search(search) => search.lower(&label, values, catalog, commands)?,
        Op::SegmentSum(sum) => sum.lower(&label, values, catalog, commands)?,
        Op::Generate(generate) => generate.lower(&label, values, catalog, commands)?,
        Op::Copy(copy) => {
            let accesses = smallvec![values.whole(copy.input, false), values.whole(copy.output, true)];
            commands.push(Command::new(label, Action::Copy, accesses));
        }
        Op::Fill(fill) => {
            let accesses = smallvec![values.whole(fill.output, true)];
            commands.push(Command::new(label, Action::Fill { word: fill.word }, accesses));
        }
        Op::Dispatch(dispatch) => {
            let arguments = dispatch.arguments.iter();
            let accesses = arguments.map(|argument| values.whole(argument.value, argument.write)).collect();
            let (pipeline, push, groups) = (dispatch.pipeline, dispatch.push, dispatch.groups);
            let action = Action::Dispatch { pipeline, push, groups };
            commands.push(Command::new(label, action, accesses).with_cost(dispatch.cost));
        }
    }
    Ok(())
}

/// Refuses an operation if one of its bindings would have to span more than the device allows, however it is cut. What
/// passes can be lowered as it is; together with others it may ask for more.
pub(crate) fn check(node: &Node, values: &Values, catalog: &Catalog) -> Result<()> {
    let name = node.label.op.known();
    match &node.op {
        Op::Elementwise(elementwise) => deep::check(elementwise, name, values, catalog),
        Op::Matmul(matmul) => matmul.check(values, catalog),
        Op::Conv2d(convolution) => convolution.check(values, catalog),
        Op::PackWeights(pack) => pack.check(values, catalog),
        Op::Reduce(reduce) => reduce.check(&node.label, values, catalog),
        Op::Softmax(softmax) => softmax.check(&node.label, values, catalog),
        Op::Pool(pooling) => pooling.check(name, values, catalog),
        Op::Norm(norm) => norm.check(&node.label, values, catalog),
        Op::Resize(resize) => resize.check(name, values, catalog),
        Op::Attention(attention) => attention.check(values, catalog),
        Op::Angles(angles) => angles.check(name, values, catalog),
        Op::Gather(gather) => gather.check(name, values, catalog),
        Op::Locate(locate) => locate.check(name, values, catalog),
        Op::Scatter(scatter) => scatter.check(name, values, catalog),
        Op::Histogram(histogram) => histogram.check(name, values, catalog),
        Op::Scan(scan) => scan.check(name, values, catalog),
        Op::Sort(sort) => sort.check(name, values, catalog),
        Op::Search(search) => search.check(name, values, catalog),
        Op::SegmentSum(sum) => sum.check(name, values, catalog),
        // The arguments of users' kernels were checked when they were recorded; the others are split as needed.
        Op::Dispatch(_) | Op::Copy(_) | Op::CopyBox(_) | Op::Generate(_) | Op::Fill(_) => Ok(()),
    }
}
