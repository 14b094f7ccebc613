//! From a graph to a submission: lower, give memory, place barriers, encode, submit.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::core::Core;
use super::fuse::fuse;
use super::graph::{Access, Graph, Label, Node, Work};
use super::hazard::{BlockAccess, Hazards};
use super::memory::{Assignment, Home, assign};
use super::pipelines::PipelineKey;
use super::pool::Lease;
use super::profile::Profiling;
use super::profile::profiler::trace;
use super::profile::ticket::{Probe, Ticket};
use super::tensor::Contents;
use super::timeline::{BlockUse, Job, LABELS_KEPT};
use crate::error::{Error, Result};
use crate::vk::buffer::MemoryKind;
use crate::vk::command::{Barrier, Bound, CommandSlot};

/// How a recording wants to be profiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) mode: Profiling,
    /// Only what the host does is noted: no timestamps.
    pub(crate) host_only: bool,
    /// When the recording was begun, if that was noted.
    pub(crate) begun_ns: Option<u64>,
}

/// What was handed to the device.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) value: u64,
    /// Collects the times, if the recording is profiled.
    pub(crate) ticket: Option<Arc<Ticket>>,
}

/// Carries a graph out. `leases` are those of the tensors it reads. Kept values become tensors.
pub(crate) fn execute(core: &Arc<Core>, mut graph: Graph, leases: Vec<Lease>, wish: Wish) -> Result<Sent> {
    core.open()?;
    let _span = trace::enter("encode");
    let mut probe = Probe::new(core, wish)?;
    if core.fusion {
        fuse(&mut graph);
    }
    lower(core, &mut graph)?;
    let (assignment, blocks) = give_memory(core, &graph, leases)?;
    let block_of = |access: &Access| -> Option<u32> {
        let tensors = (blocks.len() - assignment.slots.len()) as u32;
        match assignment.homes[access.value as usize] {
            Home::Tensor(lease) => Some(lease),
            Home::Slot(slot) => Some(tensors + slot),
            Home::None => None,
        }
    };
    let mut uses: Vec<BlockUse> = blocks.iter().cloned().map(BlockUse::new).collect();
    let mut slot = core.timeline.take_slot()?;
    slot.begin()?;
    name_slot(&slot, &graph);
    let mut hazards = Hazards::default();
    let mut bound_pipeline = None;
    for node in &graph.nodes {
        let mut accesses: SmallVec<[BlockAccess; 4]> = SmallVec::new();
        let mut arguments: SmallVec<[Bound<'_>; 4]> = SmallVec::new();
        for access in &node.accesses {
            let Some(block) = block_of(access) else { continue };
            let Access { offset, bytes, write, .. } = *access;
            accesses.push(BlockAccess { block, offset, bytes, write });
            arguments.push(Bound { buffer: &blocks[block as usize].block().buffer, offset, bytes });
        }
        let conflict = hazards.node(&accesses);
        for access in &accesses {
            uses[access.block as usize].note(access.write, hazards.barriers() == 0 && !probe.isolates());
        }
        begin_dispatch(&mut slot, &mut probe, node, conflict)?;
        encode(core, &mut slot, node, &arguments, &mut bound_pipeline)?;
        end_dispatch(&mut slot, &mut probe)?;
    }
    if probe.isolates() {
        // What is submitted next stays away, too.
        slot.barrier(Barrier::Device);
    }
    slot.barrier(Barrier::Host);
    slot.end()?;

    let dispatches = graph.nodes.len() as u64;
    let kept = graph.nodes.len().saturating_sub(LABELS_KEPT);
    let labels: Vec<Label> = graph.nodes.drain(kept..).map(|node| node.label).collect();
    let has_barrier = hazards.barriers() > 0 || probe.isolates();
    let ticket = probe.finish(core, wish.begun_ns).map(Arc::new);
    let value = core.submit(Job { slot, uses, has_barrier, labels, ticket: ticket.clone() })?;
    core.counters.submissions.fetch_add(1, Ordering::Relaxed);
    core.counters.dispatches.fetch_add(dispatches, Ordering::Relaxed);
    core.counters.barriers.fetch_add(u64::from(hazards.barriers()), Ordering::Relaxed);

    let tensors = blocks.len() - assignment.slots.len();
    for (value_info, home) in graph.values.iter().zip(&assignment.homes) {
        if let Some(storage) = &value_info.kept {
            match *home {
                Home::Slot(slot) => {
                    let lease = blocks[tensors + slot as usize].clone();
                    storage.settle(Some(lease), Contents::Submitted(value));
                }
                Home::Tensor(lease) => {
                    storage.settle(Some(blocks[lease as usize].clone()), Contents::Submitted(value));
                }
                Home::None => {}
            }
        }
    }
    Ok(Sent { value, ticket })
}

/// Turns programs into dispatches.
fn lower(core: &Core, graph: &mut Graph) -> Result<()> {
    let nodes = std::mem::take(&mut graph.nodes);
    let mut lowered = Vec::with_capacity(nodes.len());
    for node in nodes {
        match &node.work {
            Work::Map(map) => map.lower(&node.label, graph, &core.catalog, &mut lowered)?,
            Work::Product(product) => product.lower(&node.label, graph, &core.catalog, &mut lowered)?,
            Work::Dispatch { .. } | Work::Copy | Work::Fill { .. } => lowered.push(node),
        }
    }
    graph.nodes = lowered;
    Ok(())
}

/// Blocks for everything: those of the tensors, then one per slot. When memory is short, values share more.
fn give_memory(core: &Core, graph: &Graph, leases: Vec<Lease>) -> Result<(Assignment, Vec<Lease>)> {
    let attempt = |tight: bool| -> Result<(Assignment, Vec<Lease>)> {
        let assignment = assign(graph, tight);
        let mut blocks = leases.clone();
        for &bytes in &assignment.slots {
            blocks.push(core.acquire(MemoryKind::Device, bytes)?);
        }
        Ok((assignment, blocks))
    };
    match attempt(false) {
        Err(Error::OverCap { .. } | Error::OutOfMemory { .. }) => attempt(true),
        other => other,
    }
}

/// Names the command buffer after what is in it.
fn name_slot(slot: &CommandSlot, graph: &Graph) {
    if let Some(first) = graph.nodes.first().filter(|_| slot.wants_labels()) {
        let more = graph.nodes.len() - 1;
        slot.name(&if more > 0 {
            format!("{} and {more} more", first.label)
        } else {
            first.label.to_string()
        });
    }
}

/// Begins a dispatch: barrier, label and timestamp, in the one place where each is given. So a validation message, a
/// profile's row and a RenderDoc marker can't disagree.
fn begin_dispatch(slot: &mut CommandSlot, probe: &mut Probe, node: &Node, conflict: bool) -> Result<()> {
    if conflict || probe.isolates() {
        slot.barrier(Barrier::Device);
    }
    if slot.wants_labels() {
        slot.begin_label(&node.label.to_string());
    }
    trace::dispatch(&node.label);
    probe.begin(slot, node, conflict)
}

/// Ends what `begin_dispatch` began.
fn end_dispatch(slot: &mut CommandSlot, probe: &mut Probe) -> Result<()> {
    probe.end(slot)?;
    slot.end_label();
    Ok(())
}

/// Encodes one node's work.
fn encode(
    core: &Core,
    slot: &mut CommandSlot,
    node: &Node,
    arguments: &[Bound<'_>],
    bound_pipeline: &mut Option<PipelineKey>,
) -> Result<()> {
    match &node.work {
        Work::Dispatch { pipeline: key, push, groups } => {
            let pipeline = core.pipelines.get(key)?;
            if bound_pipeline.as_ref() != Some(key) {
                slot.bind_pipeline(&pipeline);
                *bound_pipeline = Some(key.clone());
            }
            slot.bind_arguments(&pipeline, arguments)?;
            slot.push_constants(&pipeline, push);
            slot.dispatch(*groups);
        }
        Work::Copy => {
            if let [from, to] = arguments {
                slot.copy(*from, *to);
            }
        }
        Work::Fill { word } => {
            if let [to] = arguments {
                slot.fill(*to, *word);
            }
        }
        Work::Map(_) | Work::Product(_) => unreachable!("lowered before"),
    }
    Ok(())
}

/// Copies a block's contents to the host, once they are there.
pub(crate) fn read_back(core: &Core, lease: &Lease, contents: Contents, into: &mut [u8]) -> Result<()> {
    core.timeline.alive()?;
    if into.is_empty() {
        return Ok(());
    }
    let _span = core.profiler.span("read");
    core.counters.bytes_down.fetch_add(into.len() as u64, Ordering::Relaxed);
    let buffer = &lease.block().buffer;
    if buffer.is_readable() {
        if let Contents::Submitted(value) = contents {
            let _span = core.profiler.span("wait");
            core.timeline.wait(value, u64::MAX)?;
        }
        return buffer.read_bytes(0, into);
    }
    let bytes = into.len() as u64;
    let staging = core.acquire(MemoryKind::Readback, bytes)?;
    let mut slot = core.timeline.take_slot()?;
    let bound = |lease| -> Bound<'_> {
        let lease: &Lease = lease;
        Bound { buffer: &lease.block().buffer, offset: 0, bytes }
    };
    slot.begin()?;
    slot.begin_label("read");
    slot.copy(bound(lease), bound(&staging));
    slot.end_label();
    slot.barrier(Barrier::Host);
    slot.end()?;
    let mut uses = vec![BlockUse::new(lease.clone()), BlockUse::new(staging.clone())];
    uses[0].note(false, true);
    uses[1].note(true, true);
    let value = core.timeline.submit(Job::plain(slot, uses))?;
    let _span = core.profiler.span("wait");
    core.timeline.wait(value, u64::MAX)?;
    staging.block().buffer.read_bytes(0, into)
}

/// Runs a pipeline on nothing, so that drivers that compile at the first dispatch do it now.
pub(crate) fn warm(core: &Core, key: &PipelineKey) -> Result<()> {
    let pipeline = core.pipelines.get(key)?;
    let dummy = core.acquire(MemoryKind::Device, 256)?;
    let mut slot = core.timeline.take_slot()?;
    slot.begin()?;
    slot.bind_pipeline(&pipeline);
    let arguments =
        vec![Bound { buffer: &dummy.block().buffer, offset: 0, bytes: 256 }; pipeline.slots().len()];
    slot.bind_arguments(&pipeline, &arguments)?;
    slot.push_constants(&pipeline, &vec![0; key.kernel.reflection().push_constant_bytes as usize]);
    slot.dispatch([0, 1, 1]);
    slot.end()?;
    let mut block_use = BlockUse::new(dummy);
    block_use.note(true, true);
    let value = core.timeline.submit(Job::plain(slot, vec![block_use]))?;
    core.timeline.wait(value, u64::MAX).map(drop)
}
