//! Plans: recordings that are kept and submitted many times.

mod arguments;
mod encoding;

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use self::arguments::PlanArgument;
use self::encoding::{COPIES, Copy, Encoding, Segment};
use crate::error::{Error, Result};
use crate::ir::command::Lowered;
use crate::ir::value::{Label, TensorVersion};
use crate::runtime::argument::Declared;
use crate::runtime::commands::{BlockUse, Commands, Job};
use crate::runtime::core::{Core, OnShortage, foreign_tensor};
use crate::runtime::execute::last_labels;
use crate::runtime::pipelines::PipelineBuildStats;
use crate::runtime::pipelines::parallel::needed;
use crate::runtime::pool::Lease;
use crate::runtime::profile::Profiling;
use crate::runtime::profile::probe::{Probe, ProfileRequest};
use crate::runtime::profile::ticket::RowPlan;
use crate::runtime::recording::{Recording, discard};
use crate::runtime::submission::{Submission, Submitted};
use crate::runtime::tensor::{Contents, LockedOutput, Standing, Storage, Tensor};
use crate::runtime::updated::place;
use crate::schedule::compiled_graph::{Amount, CompiledGraph};
use crate::schedule::memory::Home;
use crate::shape::Shape;
use crate::vk::buffer::MemoryKind;
use crate::vk::pipeline::Pipeline;
use crate::vk::process;
use crate::vk::raw::HostSync;

/// Nodes of one command buffer. When a tensor's memory has changed, only the command buffers that bind it are encoded
/// anew; shorter ones would cost the device more than that saves.
const SEGMENT_COMMANDS: usize = 32;
/// A recording that is kept and submitted many times: it is lowered and encoded once, and [`submit`](Plan::submit)
/// only submits it.
///
/// - **Inputs** are the tensors that were recorded. Each submission reads their contents at the time of `submit`. So a
///   [`write`](Tensor::write) between submissions gives the next one other data, and one in flight keeps its data.
/// - **Outputs** are the tensors that were kept. Each submission replaces their contents: from then on they hold its
///   results, and reading them waits for it. Results of an earlier submission are gone, except for a reader that
///   already works with them (a recording, a read on another thread). To have the results of several submissions side
///   by side, [`bind`](Plan::bind) other tensors in between.
/// - **State**: what the recording [updates](crate::Recording::update) or [assigns](crate::Recording::assign) is
///   changed by each submission in turn, in its own memory. A kept tensor may also be bound as an input: then each
///   submission reads what the one before has kept, in memory that changes from one to the next.
/// - **Arguments**: numbers that were [declared](crate::Recording::argument) are [set](Plan::set) from one submission
///   to the next.
/// - **In flight**: it may be submitted while earlier submissions run, as often as one likes. Temporaries and outputs
///   are the same memory for all, so that submissions of one plan run one after the other.
///
/// Work in flight moves nothing: the queue's order decides when an output of the next submission is overwritten, and so
/// for an input that is [written](Tensor::write) meanwhile. So a submission encodes and allocates nothing, whether or
/// not a thread waits. An output moves to another block, and what binds it is encoded for that one, only if something
/// else still needs its old contents: a read under way, an open recording that uses them, another tensor that is a view
/// of them. (While the plan is profiled, each submission in flight has an encoded copy of its own, for its timestamps.)
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, 2.0], [2])?;
/// let r = gpu.begin_recording()?;
/// let y = r.add(&x, &x)?;
/// let y = r.keep(y)?;
/// let mut plan = r.into_plan()?;
/// let _ = plan.submit()?; // Reading waits for it.
/// assert_eq!(y.read::<f32>()?, [2.0, 4.0]);
/// x.write(&[5.0f32, 6.0])?;
/// let _ = plan.submit()?;
/// assert_eq!(y.read::<f32>()?, [10.0, 12.0]);
/// # Ok(()) }
/// ```
pub struct Plan {
    core: Arc<Core>,
    compiled: CompiledGraph,
    /// By the number of their block.
    inputs: Vec<PlanTensor>,
    /// In the order in which their tensors are locked.
    outputs: Vec<Output>,
    /// Kept values that are an input's contents with another shape.
    aliases: Vec<(Arc<Storage>, usize)>,
    arguments: Vec<PlanArgument>,
    /// The blocks of the plan's own: those of temporaries, by number.
    own: Vec<Option<Lease>>,
    segments: Vec<Segment>,
    /// In the order of their last use.
    copies: Vec<Copy>,
    /// The number of sets of tensors that will be bound in turn.
    sets: usize,
    /// The rows of a profile, with dispatches side by side and alone.
    rows: [Option<Arc<[RowPlan]>>; 2],
    labels: Arc<[Label]>,
    amount: Amount,
    /// How it is profiled, if not as the accelerator is.
    profiling: Option<Profiling>,
    /// The cost of its pipelines, which the profile of the first submission reports.
    built: PipelineBuildStats,
    /// Kept between submissions, so that none allocates it.
    _pipelines: Vec<Arc<Pipeline>>,
    /// Points that the next submission waits for and signals for the host.
    pub(super) sync: HostSync,
}

/// A tensor's place in a plan.
struct PlanTensor {
    /// The tensor that was recorded, which names the place.
    named: Arc<Storage>,
    /// The tensor that stands there.
    tensor: Standing,
    shape: Shape,
}

/// A tensor that a plan writes.
struct Output {
    binding: PlanTensor,
    block: usize,
    bytes: u64,
    /// Of a tensor that is updated; one that was kept has none.
    state: Option<StatePlace>,
}

struct StatePlace {
    /// The blocks of the versions that were captured before.
    captured: SmallVec<[TensorVersion; 1]>,
    /// A submission reads the old contents, or keeps a part of them.
    reads_old: bool,
}

/// The blocks of a submission.
struct Gathered<'a> {
    uses: Vec<BlockUse>,
    /// By their numbers, but for the plan's own.
    blocks: SmallVec<[Option<Lease>; 16]>,
    outputs: SmallVec<[(LockedOutput<'a>, usize); 4]>,
    /// What is to be copied first: from the old memory of a tensor to the new.
    moved: SmallVec<[(Lease, Lease, u64); 1]>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("commands", &self.compiled.lowered.commands.len())
            .field("inputs", &self.inputs.len())
            .field("outputs", &self.outputs.len())
            .field("copies", &self.copies.len())
            .finish_non_exhaustive()
    }
}

/// A tensor that was recorded, and its shape there.
type Recorded = (Arc<Storage>, Shape);

/// # Plans
impl Recording {
    /// Ends the recording without handing it to the device: a [`Plan`] submits it as often as it is wanted, with no
    /// re-recording. What was kept has contents once the plan was submitted.
    ///
    /// A plan reads its tensors when it is submitted: what was written to them after they were recorded is seen.
    ///
    /// # Errors
    ///
    /// Errors of memory and of the device. What was kept is then [`Error::Discarded`].
    pub fn into_plan(mut self) -> Result<Plan> {
        let state = self.state_mut();
        let (graph, profiling) = (std::mem::take(&mut state.graph), state.profiling);
        let kept = std::mem::take(&mut state.kept);
        let (tensors, sync) = (std::mem::take(&mut state.tensors), std::mem::take(&mut state.sync));
        let updated = std::mem::take(&mut state.updated);
        let updated = updated.into_iter().map(|updated| (updated.storage, updated.shape)).collect();
        let arguments = std::mem::take(&mut state.arguments);
        let plan =
            CompiledGraph::new(self.catalog(), self.core.fusion, graph, tensors.len()).and_then(|compiled| {
                Plan::new(&self.core, compiled, &kept, (tensors, updated, arguments), profiling, sync)
            });
        if plan.is_err() {
            discard(&kept);
        }
        plan
    }
}

impl Plan {
    /// Makes the pipelines and takes memory for temporaries.
    pub(crate) fn new(
        core: &Arc<Core>,
        mut compiled: CompiledGraph,
        kept: &[Arc<Storage>],
        (tensors, states, declared): (Vec<Recorded>, Vec<Recorded>, Vec<Declared>),
        profiling: Option<Profiling>,
        sync: HostSync,
    ) -> Result<Plan> {
        core.open()?;
        let (built, pipelines) = make_pipelines(core, &compiled.lowered)?;
        let own = match own_blocks(core, &compiled) {
            Err(Error::OverCap { .. } | Error::OutOfMemory { .. }) => {
                compiled.place(true);
                own_blocks(core, &compiled)?
            }
            other => other?,
        };
        core.counters.took(&compiled.temporaries());
        let (mut outputs, mut aliases) = (Vec::new(), Vec::new());
        for (id, value) in compiled.lowered.values.iter().enumerate() {
            let Some(tensor) = value.kept else { continue };
            let storage = &kept[tensor as usize];
            match compiled.assignment.homes[id] {
                Home::Slot(slot) => {
                    let binding = PlanTensor::new(storage.clone(), value.shape);
                    let (block, bytes) =
                        (compiled.tensors + slot as usize, compiled.lowered.values.bytes(id as u32));
                    outputs.push(Output { binding, block, bytes, state: None });
                }
                Home::Tensor(tensor) => aliases.push((storage.clone(), tensor as usize)),
                // No tensor is a view of one that is updated.
                Home::State(_) | Home::None => {}
            }
            storage.promise();
        }
        let captured = compiled.lowered.values.states().iter().cloned().zip(&compiled.reads_old);
        for (i, ((storage, shape), (captured, &reads_old))) in states.into_iter().zip(captured).enumerate() {
            let bytes = storage.dtype.storage_bytes(shape.elements());
            let state = Some(StatePlace { captured, reads_old });
            let binding = PlanTensor::new(storage, shape);
            outputs.push(Output { binding, block: compiled.captured + i, bytes, state });
        }
        sort(&mut outputs);
        let commands = compiled.lowered.commands.len();
        let segments = (0..commands.div_ceil(SEGMENT_COMMANDS).max(1))
            .map(|i| {
                let commands = SEGMENT_COMMANDS * i..commands.min(SEGMENT_COMMANDS * (i + 1));
                let accesses =
                    compiled.lowered.commands[commands.clone()].iter().flat_map(|command| &command.accesses);
                let mut binds: Vec<usize> = accesses.filter_map(|access| compiled.block_of(access)).collect();
                binds.retain(|&block| own[block].is_none());
                binds.sort_unstable();
                binds.dedup();
                Segment { commands, binds }
            })
            .collect();
        Ok(Plan {
            core: core.clone(),
            inputs: tensors.into_iter().map(|(storage, shape)| PlanTensor::new(storage, shape)).collect(),
            outputs,
            aliases,
            arguments: arguments::of_plan(declared),
            own,
            segments,
            copies: Vec::new(),
            sets: COPIES,
            rows: [None, None],
            labels: last_labels(&compiled.lowered),
            amount: compiled.amount(),
            profiling,
            built,
            _pipelines: pipelines,
            sync,
            compiled,
        })
    }

    /// Submits it once. Does not wait, unless too many submissions are in flight or memory is short.
    ///
    /// # Errors
    ///
    /// [`Error::NotWritten`], [`Error::NotSubmitted`] or [`Error::Discarded`] if an input has no contents;
    /// [`ArgumentError::NotSet`](crate::error::ArgumentError::NotSet) if an argument was never [set](Plan::set);
    /// [`Error::BoundTwice`] if an input has become a view of a [wrapped](crate::Accelerator::wrap) output;
    /// [`Error::OutOfMemory`]; [`Error::DeviceLost`]; [`Error::Closed`]. Tensors then hold what they held before.
    pub fn submit(&mut self) -> Result<Submission> {
        self.core.open()?;
        self.check_arguments()?;
        if !self.is_ready() {
            self.core.timeline.reclaim()?;
        }
        let mode = self.profiling.unwrap_or_else(|| self.core.profiler.mode());
        let probe = Probe::new(
            &self.core.profiler,
            &self.core.device,
            ProfileRequest { mode, host_only: false, begun_ns: None },
        )?;
        let Gathered { uses, mut blocks, outputs, moved } =
            gather(&self.core, &self.compiled, (&self.inputs, &self.outputs), &probe)?;
        let encoding = Encoding {
            core: &self.core,
            compiled: &self.compiled,
            segments: &self.segments,
            own: &self.own,
            blocks: &blocks,
            probe: &probe,
            mode,
            sets: self.sets,
        };
        let replay = encoding.choose(&mut self.copies)?.clone();
        let rows = &mut self.rows[usize::from(probe.isolates())];
        let ticket = probe.is_on().then(|| {
            let rows = rows.get_or_insert_with(|| RowPlan::all(&self.compiled, probe.isolates()));
            Arc::new(probe.ticket(&self.core.profiler, rows.clone(), None, std::mem::take(&mut self.built)))
        });
        let job = Job {
            commands: Commands::Replay(replay),
            uses,
            words: arguments::changed(&self.arguments, &blocks),
            has_barrier: self.amount.barriers > 0 || probe.isolates(),
            labels: self.labels.clone(),
            ticket: ticket.clone(),
            sync: self.sync.clone(),
        };
        self.core.move_contents(&moved)?;
        let value = self.core.submit(job)?;
        self.sync = HostSync::default();
        arguments::were_submitted(&mut self.arguments);
        self.core.counters.submitted(self.amount);
        for (output, block) in outputs {
            output.settle(blocks[block].take(), Contents::Submitted(value));
        }
        for (storage, tensor) in &self.aliases {
            storage.settle(blocks[*tensor].clone(), Contents::Submitted(value));
        }
        Ok(Submission::new(self.core.clone(), Submitted { value, ticket }))
    }

    /// Whether there is no need to ask the device what it has finished.
    fn is_ready(&self) -> bool {
        self.copies.iter().any(Copy::is_free)
            && self.outputs.iter().all(|output| output.binding.storage().is_replaceable())
    }

    /// Binds `tensor` in place of `recorded`, a tensor that was read or kept when the plan was recorded. Binding
    /// `recorded` itself restores it. Submissions in flight are not affected.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0], [2])?;
    /// let r = gpu.begin_recording()?;
    /// let y = r.neg(&x)?;
    /// let y = r.keep(y)?;
    /// let mut plan = r.into_plan()?;
    /// let _ = plan.submit()?;
    /// let other = gpu.empty([2], tidemill::DType::F32)?;
    /// plan.bind(&x, &gpu.upload(&[3.0f32, 4.0], [2])?)?;
    /// plan.bind(&y, &other)?;
    /// let _ = plan.submit()?;
    /// assert_eq!(y.read::<f32>()?, [-1.0, -2.0]);
    /// assert_eq!(other.read::<f32>()?, [-3.0, -4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotInPlan`] if the plan has no such place; [`Error::Type`] and [`Error::Shapes`] if the tensor is not
    /// of the same kind; [`Error::BoundTwice`] if it stands in another place already, and both are outputs or one is
    /// updated; [`Error::ViewInPlan`] if `recorded` is a kept view of an input, which has no place of its own;
    /// [`Error::ForeignTensor`].
    pub fn bind(&mut self, recorded: &Tensor, tensor: &Tensor) -> Result<()> {
        let op = "bind";
        process::check()?;
        if !Arc::ptr_eq(&tensor.storage.core, &self.core) {
            return Err(foreign_tensor(op, &tensor.storage.core, &self.core));
        }
        let (expected, got) = (recorded.dtype(), tensor.dtype());
        if expected != got {
            return Err(Error::of_type(op, "tensor", &[expected], got));
        }
        if recorded.shape() != tensor.shape() {
            let (lhs, rhs) = (recorded.shape(), tensor.shape());
            let why = "a tensor takes the place of one of its own shape only".to_owned();
            return Err(Error::Shapes { op, lhs, rhs, why });
        }
        let named = |binding: &PlanTensor| Arc::ptr_eq(&binding.named, &recorded.storage);
        let same = |storage: &Arc<Storage>| {
            Arc::ptr_eq(storage, &tensor.storage) || storage.shares_host_memory(&tensor.storage)
        };
        let stands = |binding: &PlanTensor| same(binding.storage()) && !named(binding);
        let place = self.outputs.iter().find(|output| named(&output.binding));
        let (as_output, as_kept) = (place.is_some(), place.is_some_and(|output| output.state.is_none()));
        let is_view =
            |storage: &Arc<Storage>| self.aliases.iter().any(|(view, _)| Arc::ptr_eq(view, storage));
        if is_view(&recorded.storage) {
            return Err(Error::ViewInPlan { op, shape: recorded.shape() });
        }
        if !as_output && !self.inputs.iter().any(named) {
            let inputs = self.inputs.len() - self.arguments.len();
            let outputs = self.outputs.len();
            return Err(Error::NotInPlan { op, shape: recorded.shape(), inputs, outputs });
        }
        // What is kept may be read, too: by then it is what the submission before has kept. The host's memory has no
        // such versions.
        let versions =
            tensor.storage.wrapped().is_none() && !tensor.storage.shares_host_memory(&tensor.storage);
        let clash = self
            .outputs
            .iter()
            .any(|output| stands(&output.binding) && (as_output || output.state.is_some() || !versions))
            || (as_output && is_view(&tensor.storage))
            || (as_output && !(as_kept && versions) && self.inputs.iter().any(stands));
        if clash {
            return Err(Error::BoundTwice { op, shape: tensor.shape() });
        }
        let outputs = self.outputs.iter_mut().map(|output| &mut output.binding);
        for binding in self.inputs.iter_mut().chain(outputs).filter(|binding| named(binding)) {
            let before = std::mem::replace(&mut binding.tensor, Standing::new(tensor.storage.clone()));
            // No longer the plan's to write, until it is bound again.
            if as_kept && !Arc::ptr_eq(before.storage(), &tensor.storage) {
                before.storage().release();
            }
        }
        if as_kept && Arc::ptr_eq(&recorded.storage, &tensor.storage) {
            recorded.storage.promise_again();
        }
        sort(&mut self.outputs);
        Ok(())
    }

    /// Sets how many sets of tensors will be bound in turn: as many encoded copies are kept.
    pub(crate) fn expect_sets(&mut self, sets: usize) {
        self.sets = sets.max(COPIES);
    }

    /// Sets how its submissions are profiled, independently of the accelerator.
    pub fn profiling(&mut self, mode: Profiling) {
        self.profiling = Some(mode);
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The commands that it runs.
    pub(super) fn lowered(&self) -> &Lowered {
        &self.compiled.lowered
    }

    /// The accelerator it runs on.
    pub fn accelerator(&self) -> crate::runtime::accelerator::Accelerator {
        crate::runtime::accelerator::Accelerator::from_core(self.core.clone())
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let kept = self.outputs.iter().filter(|output| output.state.is_none());
        kept.map(|output| &output.binding.named)
            .chain(self.aliases.iter().map(|(storage, _)| storage))
            .for_each(|storage| storage.break_promise());
    }
}

impl PlanTensor {
    fn new(storage: Arc<Storage>, shape: Shape) -> PlanTensor {
        PlanTensor { named: storage.clone(), tensor: Standing::new(storage), shape }
    }

    fn storage(&self) -> &Arc<Storage> {
        self.tensor.storage()
    }
}

/// The blocks of this submission. Outputs and tensors that are updated are locked from here on, so that no one begins
/// to read contents that are about to be overwritten.
fn gather<'a>(
    core: &Core,
    compiled: &CompiledGraph,
    (inputs, outputs): (&[PlanTensor], &'a [Output]),
    probe: &Probe,
) -> Result<Gathered<'a>> {
    let op = "submit";
    let mut uses = Vec::with_capacity(inputs.len() + outputs.len());
    let mut blocks: SmallVec<[Option<Lease>; 16]> = SmallVec::from_elem(None, compiled.usage.len());
    let mut note = |block: usize, lease: Lease| {
        uses.push(BlockUse::new(&lease, probe.usage(compiled.usage[block])));
        blocks[block] = Some(lease);
    };
    for (block, input) in inputs.iter().enumerate() {
        let (lease, _) = input.storage().settled(op, input.shape)?;
        // What is updated, too, is read in the memory that it has when it is locked.
        if !is_updated(compiled, block) {
            note(block, lease);
        }
    }
    let mut moved = SmallVec::new();
    let mut all: SmallVec<[(LockedOutput<'a>, usize); 4]> = SmallVec::new();
    for (output, locked) in outputs.iter().zip(lock_outputs(op, outputs)?) {
        let lease = if let Some(state) = &output.state {
            let wanted = (output.bytes, 0, state.reads_old);
            let (lease, old) = place(core, &locked, wanted, OnShortage::Wait)?;
            moved.extend(old.map(|old| (old, lease.clone(), output.bytes)));
            for &block in &state.captured {
                locked.lease().into_iter().for_each(|lease| note(block as usize, lease.clone()));
            }
            lease
        } else if let Some(lease) = locked.replaceable() {
            lease
        } else {
            core.acquire(MemoryKind::Device, output.bytes)?
        };
        note(output.block, lease);
        all.push((locked, output.block));
    }
    if let Some(output) = outputs.iter().find(|output| is_read_too(&blocks, output)) {
        return Err(Error::BoundTwice { op, shape: output.binding.shape });
    }
    Ok(Gathered { uses, blocks, outputs: all, moved })
}

/// Whether a tensor that was captured is updated, too.
fn is_updated(compiled: &CompiledGraph, block: usize) -> bool {
    let states = compiled.lowered.values.states().iter();
    states.flatten().any(|&version| version as usize == block)
}

/// Locks all outputs. Waits for writes on other threads to tensors that are updated while nothing is locked.
fn lock_outputs<'a>(op: &'static str, outputs: &'a [Output]) -> Result<SmallVec<[LockedOutput<'a>; 4]>> {
    'again: loop {
        let mut locked = SmallVec::new();
        for Output { binding, state, .. } in outputs {
            let storage = binding.storage();
            let Some(state) = state else {
                locked.push(storage.lock_output(op, binding.shape)?);
                continue;
            };
            let reads_old = state.reads_old || !state.captured.is_empty();
            let Some(one) = storage.try_lock_state(op, binding.shape, reads_old)? else {
                drop(locked);
                storage.wait_written();
                continue 'again;
            };
            locked.push(one);
        }
        return Ok(locked);
    }
}

/// Whether what is written to is the host's memory and has another number, too: a tensor that was bound as an input has
/// become a view of it. No barrier stands between the two.
fn is_read_too(blocks: &[Option<Lease>], output: &Output) -> bool {
    let Some(lease) = blocks[output.block].as_ref().filter(|lease| lease.is_pinned()) else { return false };
    // The captured versions of a tensor that is updated are its own.
    let own = output.state.as_ref().map_or(0, |state| state.captured.len());
    let same = |other: &Option<Lease>| other.as_ref().is_some_and(|other| other.address() == lease.address());
    blocks.iter().filter(|other| same(other)).count() > 1 + own
}

/// Two plans that lock the same tensors lock them in the same order.
fn sort(outputs: &mut [Output]) {
    outputs.sort_unstable_by_key(|output| Arc::as_ptr(output.binding.storage()).addr());
}

/// By the number of the block: a block for each slot that is not an output's.
fn own_blocks(core: &Core, compiled: &CompiledGraph) -> Result<Vec<Option<Lease>>> {
    let own = std::iter::repeat_n(None, compiled.tensors).chain(compiled.temporaries());
    let lease = |bytes: Option<u64>| bytes.map(|bytes| core.acquire(MemoryKind::Device, bytes)).transpose();
    own.map(lease).collect()
}

/// All pipelines of some commands; those that are not there yet are made.
pub(super) fn make_pipelines(
    core: &Core,
    lowered: &Lowered,
) -> Result<(PipelineBuildStats, Vec<Arc<Pipeline>>)> {
    let mut built = PipelineBuildStats::default();
    let keys = needed(lowered);
    let pipelines = keys.iter().map(|key| core.pipelines.get(key, &mut built, || keys.clone()));
    let pipelines = pipelines.collect::<Result<_>>()?;
    Ok((built, pipelines))
}
