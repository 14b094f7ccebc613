//! Explanations of recordings.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::fusion::needed::needed;
use crate::ir::graph::Graph;
use crate::ir::value::{Label, Origin, TensorVersion, ValueId};
use crate::kernels::catalog::Catalog;
use crate::schedule::compiled_graph::CompiledGraph;
use crate::schedule::memory::Home;
use crate::shape::{DType, Shape};

/// The explanation of a recording: as it was recorded and as it will run. Made by
/// [`Recording::explain`](crate::Recording::explain). Displayed, it is a text for people;
/// [`to_svg`](Explanation::to_svg) draws it, and [`to_dot`](Explanation::to_dot) lets Graphviz do so.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// Every value that takes part, before or after fusion. Operations that make the same of the same values write one.
    pub values: Vec<ExplainedValue>,
    /// The operations in the order in which they were recorded, [dropped](ExplainedStep::dropped) ones too.
    pub recorded: Vec<ExplainedStep>,
    /// The dispatches, copies and fills that will run.
    pub run: Vec<ExplainedStep>,
    /// Barriers between those.
    pub barriers: usize,
    /// Bytes of the tensors that are read.
    pub input_bytes: u64,
    /// Bytes of the tensors that are kept.
    pub output_bytes: u64,
    /// Bytes of the blocks that temporaries share.
    pub temporary_bytes: u64,
    /// Bytes that the temporaries of the recording would take if each were stored in a block of its own.
    pub unshared_bytes: u64,
}

/// The role of a value in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A tensor from outside.
    Input,
    /// A number that a plan is given.
    Argument,
    /// A tensor from outside that is updated: each version of it is a value, in the same block.
    State,
    /// Kept.
    Output,
    /// Neither.
    Temporary,
}

/// A value of a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExplainedValue {
    /// What it is.
    pub role: Role,
    /// Its shape.
    pub shape: Shape,
    /// Its element type.
    pub dtype: DType,
    /// Its size.
    pub bytes: u64,
    /// The number of the block it will live in; values that share memory have the same. `None` if it is never stored.
    pub block: Option<usize>,
    /// What was declared, if it is an argument.
    pub argument: Option<ExplainedArgument>,
}

/// What was declared of an argument.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExplainedArgument {
    /// Its name.
    pub name: String,
    /// The least that it may be.
    pub least: f64,
    /// The most that it may be.
    pub most: f64,
}

impl ExplainedArgument {
    pub(crate) fn new(name: String, least: f64, most: f64) -> ExplainedArgument {
        ExplainedArgument { name, least, most }
    }
}

/// A step of a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExplainedStep {
    /// As profiles and RenderDoc name it.
    pub label: String,
    /// Values that it reads: indices of [`Explanation::values`].
    pub reads: Vec<usize>,
    /// Values that it writes.
    pub writes: Vec<usize>,
    /// The kernel's module, once that is decided; `copy` and `fill` for the device's own commands.
    pub kernel: Option<String>,
    /// Bytes that must cross the memory bus at the least, once that is decided.
    pub bytes: Option<u64>,
    /// A barrier stands in front.
    pub barrier: bool,
    /// It will not run: nothing that is kept needs what it writes.
    pub dropped: bool,
}

impl Explanation {
    /// Of a graph that reads tensors in blocks of these numbers, some of which are arguments.
    pub(crate) fn new(
        catalog: &Catalog,
        fusion: bool,
        graph: &Graph,
        blocks: &[Option<usize>],
        argument: impl Fn(TensorVersion) -> Option<ExplainedArgument>,
    ) -> Result<Explanation> {
        let compiled = CompiledGraph::new(catalog, fusion, graph.clone(), blocks.len())?;
        let lowered = &compiled.lowered;
        // Values that take part, by their first appearance; lowering has only added to the recorded ones.
        let mut places = vec![None; lowered.values.len()];
        let mut order: Vec<ValueId> = Vec::new();
        let mut place = |id: ValueId| {
            *places[lowered.values.root(id) as usize].get_or_insert_with(|| {
                order.push(lowered.values.root(id));
                order.len() - 1
            })
        };
        let mut step = |label: &Label, touched: &[(ValueId, bool)]| {
            let (mut reads, mut writes) = (Vec::new(), Vec::new());
            for &(id, write) in touched {
                let list = if write { &mut writes } else { &mut reads };
                let place = place(id);
                if !list.contains(&place) {
                    list.push(place);
                }
            }
            let (label, kernel, bytes) = (label.to_string(), None, None);
            ExplainedStep { label, reads, writes, kernel, bytes, barrier: false, dropped: false }
        };
        let mut recorded = Vec::with_capacity(graph.nodes.len());
        for (node, needed) in graph.nodes.iter().zip(needed(graph)) {
            let mut touched = Vec::new();
            node.op.touches(|id, write| touched.push((graph.root(id), write)));
            recorded.push(ExplainedStep { dropped: !needed, ..step(&node.label, &touched) });
        }
        let run: Vec<_> = lowered
            .commands
            .iter()
            .zip(&compiled.barriers)
            .map(|(command, &barrier)| {
                let touched: Vec<_> = command.accesses.iter().map(|a| (a.value, a.write)).collect();
                let kernel = Some(command.action.name().to_owned());
                ExplainedStep { kernel, bytes: command.cost.bytes, barrier, ..step(&command.label, &touched) }
            })
            .collect();
        let values: Vec<_> =
            order.iter().map(|&id| explained_value(&compiled, blocks, &argument, id)).collect();
        let sum = |role: Role| values.iter().filter(|v| v.role == role).map(|v| v.bytes).sum();
        let is_read = |place: usize| run.iter().any(|step| step.reads.contains(&place));
        let inputs = values.iter().enumerate().filter(|(place, v)| v.role == Role::Input && is_read(*place));
        let inputs: BTreeMap<_, _> = inputs.map(|(_, v)| (v.block, v.bytes)).collect();
        let output_bytes = sum(Role::Output);
        let stored: u64 = compiled.assignment.slots.iter().sum();
        let unshared = values.iter().enumerate().filter(|(place, value)| {
            let writes = |step: &ExplainedStep| !step.dropped && step.writes.contains(place);
            value.role == Role::Temporary && recorded.iter().any(writes)
        });
        Ok(Explanation {
            barriers: run.iter().filter(|step| step.barrier).count(),
            input_bytes: inputs.values().sum(),
            output_bytes,
            temporary_bytes: stored.saturating_sub(output_bytes),
            unshared_bytes: unshared.map(|(_, value)| value.bytes).sum(),
            values,
            recorded,
            run,
        })
    }
}

fn explained_value(
    compiled: &CompiledGraph,
    blocks: &[Option<usize>],
    argument: impl Fn(TensorVersion) -> Option<ExplainedArgument>,
    id: ValueId,
) -> ExplainedValue {
    let value = compiled.lowered.values.value(id);
    let argument = match value.origin {
        Origin::Tensor(version) => argument(version),
        Origin::State(_) | Origin::Produced | Origin::Alias(_) => None,
    };
    let role = match value.origin {
        Origin::Tensor(_) if argument.is_some() => Role::Argument,
        Origin::Tensor(_) => Role::Input,
        Origin::State(_) => Role::State,
        Origin::Produced | Origin::Alias(_) if value.kept.is_some() => Role::Output,
        Origin::Produced | Origin::Alias(_) => Role::Temporary,
    };
    let block = match compiled.assignment.homes[id as usize] {
        Home::Tensor(tensor) => blocks[tensor as usize],
        Home::State(state) => {
            let captured = compiled.lowered.values.states()[state as usize].first();
            captured.map_or(Some(compiled.captured + state as usize), |version| blocks[*version as usize])
        }
        Home::Slot(slot) => Some(compiled.tensors + slot as usize),
        Home::None => None,
    };
    ExplainedValue {
        role,
        shape: value.shape,
        dtype: value.dtype,
        bytes: compiled.lowered.values.bytes(id),
        block,
        argument,
    }
}
