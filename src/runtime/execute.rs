//! Execution of a graph: compile it, assign memory, encode, submit.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ir::command::{Action, Command, Lowered};
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Access, Label};
use crate::runtime::commands::{BlockUse, Commands, Job};
use crate::runtime::core::{Core, OnShortage};
use crate::runtime::pipelines::PipelineBuildStats;
use crate::runtime::pipelines::parallel::needed;
use crate::runtime::pool::Lease;
use crate::runtime::profile::probe::{Probe, ProfileRequest};
use crate::runtime::profile::profiler::trace;
use crate::runtime::profile::ticket::RowPlan;
use crate::runtime::submission::Submitted;
use crate::runtime::tensor::{Contents, Storage};
use crate::runtime::updated::{LockedStates, Updated};
use crate::schedule::compiled_graph::CompiledGraph;
use crate::schedule::memory::Home;
use crate::vk::buffer::{Buffer, MemoryKind};
use crate::vk::command::{Barrier, Bound, CommandSlot};
use crate::vk::raw::HostSync;

/// How many of a submission's labels are kept to be named if the device is lost.
const LABELS_KEPT: usize = 8;

/// The tensors from outside that a compiled graph works with.
pub(crate) struct Outside<'a> {
    /// Of those that it has captured.
    pub(crate) leases: Vec<Lease>,
    /// Those that it updates.
    pub(crate) states: &'a [Updated],
}

/// Executes a compiled graph. Kept values become tensors.
pub(crate) fn execute(
    core: &Arc<Core>,
    mut compiled: CompiledGraph,
    kept: &[Arc<Storage>],
    outside: Outside<'_>,
    request: ProfileRequest,
    sync: HostSync,
) -> Result<Submitted> {
    core.open()?;
    let _span = trace::enter("encode");
    let probe = Probe::new(&core.profiler, &core.device, request)?;
    let Outside { leases, states } = outside;
    // Locked until the submission, so that no thread reads contents that are about to be overwritten.
    let states = LockedStates::of_recording(core, &compiled, states, &leases, OnShortage::Wait)?;
    let leases = leases.into_iter().chain(states.tensors.iter().map(|(_, lease)| lease.clone())).collect();
    let blocks = give_memory(core, &mut compiled, kept, leases, OnShortage::Wait)?;
    let mut slot = core.timeline.take_slot()?;
    slot.begin()?;
    let commands = 0..compiled.lowered.commands.len();
    let built =
        encode_commands(core, &mut slot, &compiled, commands, |block| &blocks[block].block().buffer, &probe)?;
    finish(&mut slot, &probe)?;

    let labels = last_labels(&compiled.lowered);
    let ticket = probe.is_on().then(|| {
        Arc::new(probe.ticket(
            &core.profiler,
            RowPlan::all(&compiled, probe.isolates()),
            request.begun_ns,
            built,
        ))
    });
    let uses = blocks.iter().zip(&compiled.usage);
    let uses = uses.map(|(lease, usage)| BlockUse::new(lease, probe.usage(*usage))).collect();
    let amount = compiled.amount();
    let has_barrier = amount.barriers > 0 || probe.isolates();
    let commands = Commands::Once(slot);
    core.move_contents(&states.moved)?;
    let value = core.submit(Job {
        commands,
        uses,
        words: Vec::new(),
        has_barrier,
        labels,
        ticket: ticket.clone(),
        sync,
    })?;
    core.counters.submitted(amount);
    core.counters.took(&compiled.temporaries());
    for (locked, lease) in states.tensors {
        locked.settle(Some(lease), Contents::Submitted(value));
    }
    settle(&compiled, kept, &blocks, Contents::Submitted(value));
    Ok(Submitted { value, ticket })
}

/// Makes kept values tensors.
pub(crate) fn settle(compiled: &CompiledGraph, kept: &[Arc<Storage>], blocks: &[Lease], contents: Contents) {
    for (value_info, home) in compiled.lowered.values.iter().zip(&compiled.assignment.homes) {
        let block = match *home {
            Home::Slot(slot) => compiled.tensors + slot as usize,
            Home::Tensor(tensor) => tensor as usize,
            // No tensor is a view of one that is updated.
            Home::State(_) | Home::None => continue,
        };
        if let Some(tensor) = value_info.kept {
            kept[tensor as usize].settle(Some(blocks[block].clone()), contents);
        }
    }
}

/// Blocks for everything: those of the tensors from outside, then one per slot. When memory is short, values share
/// more.
pub(crate) fn give_memory(
    core: &Core,
    compiled: &mut CompiledGraph,
    kept: &[Arc<Storage>],
    leases: Vec<Lease>,
    on_shortage: OnShortage,
) -> Result<Vec<Lease>> {
    let attempt = |compiled: &CompiledGraph| -> Result<Vec<Lease>> {
        let mut pinned: SmallVec<[Option<Lease>; 16]> =
            SmallVec::from_elem(None, compiled.assignment.slots.len());
        for (value, home) in compiled.lowered.values.iter().zip(&compiled.assignment.homes) {
            if let (Some(tensor), Home::Slot(slot)) = (value.kept, home) {
                pinned[*slot as usize] = kept[tensor as usize].wrapped();
            }
        }
        let mut blocks = leases.clone();
        for (&bytes, pinned) in compiled.assignment.slots.iter().zip(pinned) {
            blocks.push(match pinned {
                Some(lease) => lease,
                None => core.acquire_with(MemoryKind::Device, bytes, on_shortage)?,
            });
        }
        Ok(blocks)
    };
    match attempt(compiled) {
        Err(Error::OverCap { .. } | Error::OutOfMemory { .. }) => {
            compiled.place(true);
            attempt(compiled)
        }
        other => other,
    }
}

/// The labels that are named if the device is lost.
pub(crate) fn last_labels(lowered: &Lowered) -> Arc<[Label]> {
    let first = lowered.commands.len().saturating_sub(LABELS_KEPT);
    lowered.commands[first..].iter().map(|command| command.label.clone()).collect()
}

/// Encodes some of a compiled graph's commands; `buffer` gives the buffer of a block. Returns the cost of pipelines
/// that were new.
pub(crate) fn encode_commands<'b>(
    core: &Core,
    slot: &mut CommandSlot,
    compiled: &CompiledGraph,
    commands: Range<usize>,
    buffer: impl Fn(usize) -> &'b Buffer,
    probe: &Probe,
) -> Result<PipelineBuildStats> {
    let barriers = &compiled.barriers[commands.clone()];
    let commands = &compiled.lowered.commands[commands];
    name_slot(slot, commands);
    core.counters.encoded.fetch_add(1, Ordering::Relaxed);
    let mut bound_pipeline = None;
    let mut built = PipelineBuildStats::default();
    for (command, &barrier) in commands.iter().zip(barriers) {
        let arguments: SmallVec<[Bound<'_>; 4]> = command
            .accesses
            .iter()
            .filter_map(|access| {
                let Access { offset, bytes, .. } = *access;
                compiled.block_of(access).map(|block| Bound { buffer: buffer(block), offset, bytes })
            })
            .collect();
        begin_dispatch(slot, probe, command, barrier)?;
        let needed = || needed(&compiled.lowered);
        encode(core, slot, command, &arguments, &mut bound_pipeline, &mut built, needed)?;
        end_dispatch(slot, probe)?;
    }
    Ok(built)
}

/// Closes the last command buffer of a submission.
pub(crate) fn finish(slot: &mut CommandSlot, probe: &Probe) -> Result<()> {
    if probe.isolates() {
        // The next submission is ordered after it, too.
        slot.barrier(Barrier::Device);
    }
    slot.barrier(Barrier::Host);
    slot.end()
}

/// Names the command buffer after what is in it.
fn name_slot(slot: &CommandSlot, commands: &[Command]) {
    if let Some(first) = commands.first().filter(|_| slot.wants_name()) {
        let more = commands.len() - 1;
        slot.name(&if more > 0 {
            format!("{} and {more} more", first.label)
        } else {
            first.label.to_string()
        });
    }
}

/// Begins a dispatch: barrier, label and timestamp, in the one place where each is given. So a validation message, a
/// profile's row and a RenderDoc marker can't disagree.
fn begin_dispatch(slot: &mut CommandSlot, probe: &Probe, command: &Command, barrier: bool) -> Result<()> {
    let ordered = barrier || probe.isolates();
    if ordered {
        slot.barrier(Barrier::Device);
    }
    if slot.wants_labels() {
        slot.begin_label(&command.label.to_string());
    }
    trace::dispatch(&command.label);
    probe.begin(slot, ordered)
}

/// Ends what `begin_dispatch` began.
fn end_dispatch(slot: &mut CommandSlot, probe: &Probe) -> Result<()> {
    probe.end(slot)?;
    slot.end_label();
    Ok(())
}

/// Encodes one command. `needed` are the pipelines of all commands.
fn encode<'k>(
    core: &Core,
    slot: &mut CommandSlot,
    command: &'k Command,
    arguments: &[Bound<'_>],
    bound_pipeline: &mut Option<PipelineKey>,
    built: &mut PipelineBuildStats,
    needed: impl FnOnce() -> Vec<&'k PipelineKey>,
) -> Result<()> {
    match &command.action {
        Action::Dispatch { pipeline: key, push, groups } => {
            let pipeline = core.pipelines.get(key, built, needed)?;
            if bound_pipeline.as_ref() != Some(key) {
                slot.bind_pipeline(&pipeline);
                *bound_pipeline = Some(key.clone());
            }
            slot.bind_arguments(&pipeline, arguments)?;
            slot.push_constants(&pipeline, push);
            slot.dispatch(*groups);
        }
        Action::Copy => {
            if let [from, to] = arguments {
                slot.copy(*from, *to);
            }
        }
        Action::Fill { word } => {
            if let [to] = arguments {
                slot.fill(*to, *word);
            }
        }
    }
    Ok(())
}
