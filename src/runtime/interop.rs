//! Life on a host's own device: adopting it, sharing buffers, semaphores and command buffers. `crate::vk::raw` has the
//! types, and what the host vouches for.

use std::sync::Arc;

use crate::error::{Error, HostError, Result};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::config::Config;
use crate::runtime::core::{Core, OnShortage, check_size, foreign_tensor};
use crate::runtime::execute::{Outside, encode_commands, give_memory, settle};
use crate::runtime::external::ExternalCommands;
use crate::runtime::plan::{Plan, make_pipelines};
use crate::runtime::pool::Lease;
use crate::runtime::profile::Profiling;
use crate::runtime::profile::probe::{Probe, ProfileRequest};
use crate::runtime::recording::{Recording, Value, discard};
use crate::runtime::submission::Submission;
use crate::runtime::tensor::{Contents, Storage, Tensor};
use crate::runtime::updated::LockedStates;
use crate::schedule::compiled_graph::{CompiledGraph, Usage};
use crate::shape::{DType, Shape};
use crate::vk::command::{Barrier, CommandSlot};
use crate::vk::raw::{HostBuffer, HostCommands, HostDevice, SemaphorePoint, TensorBuffer, TimelinePoint};

impl Accelerator {
    /// An accelerator on a device of the host's: it submits to the host's queue under the host's lock, and destroys
    /// nothing of the host's. [`raw`](crate::interop) has the way to a [`HostDevice`], and the contract.
    ///
    /// ```no_run
    /// # use ash::vk;
    /// # use tidemill::interop::{HostDevice, HostHandles};
    /// # fn adopt(handles: HostHandles, made_with: &vk::DeviceCreateInfo<'_>) -> tidemill::Result<()> {
    /// use std::sync::{Arc, Mutex};
    /// use tidemill::{Accelerator, Config};
    /// let lock = Arc::new(Mutex::new(()));
    /// // SAFETY: the handles live longer than the accelerator, the device was made with that, and this program takes
    /// // the lock around its own calls with the queue.
    /// let host = unsafe { HostDevice::new(handles, made_with, lock.clone()) };
    /// let gpu = Accelerator::from_raw(host, &Config::new())?;
    /// // ...
    /// gpu.close()?; // nothing of it is left on the device
    /// # Ok(()) }
    /// ```
    ///
    /// Of the configuration, `device`, `entry`, `validation`, `on_message`, `labels` and `renderdoc` are the host's own
    /// affair and not looked at: what a validation layer says goes to the host's messenger.
    ///
    /// # Errors
    ///
    /// [`HostError::DeviceLacks`] names what the device was made without; [`Error::CacheFolder`]; what the driver says.
    pub fn from_raw(host: HostDevice, config: &Config) -> Result<Accelerator> {
        Accelerator::start(Core::adopt(host, config)?, config)
    }

    /// A tensor in a buffer of the host's, with what the host has in it. The buffer stays the host's.
    ///
    /// It is an operand like any other. Unlike others it stays in its place when it is written, so it is the host's
    /// memory that changes: by [`write`](Tensor::write), through [`Recording::keep_in`], or as a plan's output
    /// ([`Plan::bind`]). A recording reads what is in it when it is submitted.
    ///
    /// ```no_run
    /// # use ash::vk;
    /// # fn wrap(gpu: &tidemill::Accelerator, vertices: vk::Buffer) -> tidemill::Result<()> {
    /// use tidemill::DType;
    /// use tidemill::interop::{BUFFER_USAGE, HostBuffer};
    /// let usage = BUFFER_USAGE | vk::BufferUsageFlags::VERTEX_BUFFER;
    /// // SAFETY: a buffer of 1024 * 16 bytes that was made with this usage, and is destroyed after the accelerator.
    /// let shared = unsafe { HostBuffer::new(vertices, usage, 0, 1024 * 16) };
    /// let positions = gpu.wrap(shared, [1024, 4], DType::F32)?;
    /// let r = gpu.begin_recording()?;
    /// let positions_now = r.random_uniform([1024, 4], 7)?;
    /// r.keep_in(positions_now, &positions)?;
    /// r.end_recording()?.wait()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`HostError::BufferUsage`], [`HostError::BufferSize`], [`HostError::BufferOffset`]; [`Error::TooLarge`].
    pub fn wrap(&self, buffer: HostBuffer, shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
        let shape = shape.into();
        let core = self.core();
        core.open()?;
        check_size(core, "wrap", shape, dtype)?;
        let missing = buffer.missing_usage();
        if !missing.is_empty() {
            return Err(HostError::BufferUsage { missing }.into());
        }
        let needs = dtype.storage_bytes(shape.elements()).max(1).next_multiple_of(16);
        if buffer.size_bytes < needs {
            return Err(HostError::BufferSize { needs, got: buffer.size_bytes }.into());
        }
        let (offset, alignment) = (buffer.offset_bytes, core.device.info.limits.offset_alignment);
        if !offset.is_multiple_of(alignment) {
            return Err(HostError::BufferOffset { offset, alignment }.into());
        }
        let lease = core.pool.pin(buffer);
        Ok(Tensor::from_parts(Storage::new(core, dtype, Some(lease), Contents::Host), shape))
    }

    /// Hands uploads that wait for a submission to ride on to the device, and waits for nothing.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`].
    pub fn flush(&self) -> Result<()> {
        self.core().timeline.flush_uploads()
    }
}

impl Tensor {
    /// The tensor's memory, for the host's own commands. [`TensorBuffer`] says for how long it stays what it is.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32; 100], [100])?;
    /// let y = gpu.run(|r| r.exp(&x))?;
    /// let memory = y.raw_buffer()?;
    /// assert_eq!(memory.size_bytes, 400);
    /// let (semaphore, value) = memory.ready.expect("a submission writes it");
    /// // ... bind memory.buffer at memory.offset_bytes in a command buffer whose submission waits for that
    /// # let _ = (semaphore, value);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotWritten`], [`Error::NotSubmitted`] or [`Error::Discarded`] if there are no contents;
    /// [`Error::DeviceLost`].
    pub fn raw_buffer(&self) -> Result<TensorBuffer> {
        let (lease, contents) = self.storage.settled("raw_buffer", self.shape())?;
        let timeline = &self.storage.core.timeline;
        let buffer = &lease.block().buffer;
        let ready = match contents {
            Contents::Submitted(value) => Some(timeline.point(Some(value))),
            Contents::External => None,
            Contents::Host if buffer.is_mapped() || buffer.is_imported() => None,
            _ => {
                timeline.flush_uploads()?;
                Some(timeline.point(None))
            }
        };
        // With the accelerator, so that `close` knows of it.
        let hold = Arc::new((lease.clone(), self.storage.core.clone()));
        Ok(TensorBuffer::new(buffer, self.size_bytes(), ready, hold))
    }
}

impl Submission {
    /// When it is done, for submissions of the host's to wait for.
    pub fn raw_point(&self) -> TimelinePoint {
        self.timeline().point(Some(self.number()))
    }
}

impl Recording {
    /// Lets the submission wait for a semaphore of the host's, before anything of it runs.
    ///
    /// ```no_run
    /// # use ash::vk;
    /// # fn record(gpu: &tidemill::Accelerator, x: &tidemill::Tensor, timeline: vk::Semaphore) -> tidemill::Result<()> {
    /// use tidemill::interop::SemaphorePoint;
    /// let r = gpu.begin_recording()?;
    /// let y = r.exp(x)?;
    /// let y = r.keep(y)?;
    /// // SAFETY: a timeline semaphore of the device; work of the host's that was submitted before signals 5.
    /// r.wait_for(unsafe { SemaphorePoint::new(timeline, 5) });
    /// // SAFETY: nothing else signals 6.
    /// r.signal(unsafe { SemaphorePoint::new(timeline, 6) });
    /// let _ = r.end_recording()?;
    /// # drop(y);
    /// # Ok(()) }
    /// ```
    pub fn wait_for(&self, point: SemaphorePoint) {
        self.edit().sync.waits.push(point);
    }

    /// Lets the submission signal a semaphore of the host's when all of it is done.
    pub fn signal(&self, point: SemaphorePoint) {
        self.edit().sync.signals.push(point);
    }

    /// As [`keep`](Recording::keep), but in memory of the host's: the value becomes the contents of a tensor that
    /// [`Accelerator::wrap`] gave.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignValue`], [`Error::ForeignTensor`]; [`Error::Type`] and [`Error::Shapes`] if tensor and value are
    /// not of one kind; [`HostError::NotWrapped`]; [`Error::ReadToo`] if the recording reads the tensor, too;
    /// [`Error::NotSubmitted`] if another one is to write it.
    pub fn keep_in(&self, value: Value, tensor: &Tensor) -> Result<()> {
        let op = "keep_in";
        let (id, storage) = (self.own(op, value)?, &tensor.storage);
        if !Arc::ptr_eq(&storage.core, &self.core) {
            return Err(foreign_tensor(op, &storage.core, &self.core));
        }
        let (shape, dtype) = self.kind(id);
        if dtype != tensor.dtype() {
            return Err(Error::of_type(op, "value", &[tensor.dtype()], dtype));
        }
        if shape != tensor.shape() {
            let why = "a value takes the place of a tensor of its own shape only".to_owned();
            return Err(Error::Shapes { op, lhs: shape, rhs: tensor.shape(), why });
        }
        let _contents = storage.settled(op, shape)?;
        let Some(lease) = storage.wrapped() else {
            return Err(HostError::NotWrapped { op }.into());
        };
        let read = self.state().leases.iter().any(|read| read.address() == lease.address());
        if read || self.known_state(storage).is_some() {
            return Err(Error::ReadToo { op, shape });
        }
        let (root, apart) = self.keepable(id);
        let id = if apart { root } else { self.own(op, self.copy(value)?)? };
        storage.promise_recorded();
        self.edit().promised.push(lease);
        self.keep_as(id, storage.clone());
        Ok(())
    }

    /// Ends the recording by encoding it into a command buffer of the host's, which the host submits. What the host
    /// recorded before is seen, and what it records after sees the results: barriers stand on both sides. Nothing is
    /// submitted, waited for or uploaded. Blocks come back when the host's semaphore has reached its value.
    ///
    /// ```no_run
    /// # use ash::vk;
    /// # use tidemill::Tensor;
    /// # fn record(gpu: &tidemill::Accelerator, x: &Tensor, frame: vk::CommandBuffer, timeline: vk::Semaphore, number: u64)
    /// #     -> tidemill::Result<Tensor> {
    /// use tidemill::interop::{HostCommands, SemaphorePoint};
    /// // SAFETY: the command buffer is being recorded; the frame's submission to the same queue signals its number.
    /// let commands = unsafe { HostCommands::new(frame, SemaphorePoint::new(timeline, number)) };
    /// let r = gpu.begin_recording()?;
    /// let y = r.exp(x)?;
    /// let y = r.keep(y)?;
    /// r.record_into(commands)?;
    /// // ... the rest of the frame may use y.raw_buffer()
    /// # Ok(y) }
    /// ```
    ///
    /// The command buffer's compute pipeline, descriptor sets and push constants are others afterwards. It is not
    /// profiled.
    ///
    /// # Errors
    ///
    /// [`ArgumentError::NoPlan`](crate::error::ArgumentError::NoPlan) if it has arguments;
    /// [`HostError::UploadsPending`]: call [`Accelerator::flush`] before; [`HostError::NoSubmission`] if it was told to
    /// wait or signal; [`Error::OutOfMemory`] and [`Error::OverCap`], without anything having been waited for; errors
    /// of the device. What was kept is then [`Error::Discarded`]. After [`Error::Vulkan`] the command buffer may hold a
    /// part of it, and is not to be submitted.
    pub fn record_into(mut self, commands: HostCommands) -> Result<()> {
        self.refuse_arguments("record_into")?;
        let state = self.state_mut();
        let graph = std::mem::take(&mut state.graph);
        let (kept, leases) = (std::mem::take(&mut state.kept), std::mem::take(&mut state.leases));
        let (waits, signals) = (state.sync.waits.len(), state.sync.signals.len());
        let updated = std::mem::take(&mut state.updated);
        let recorded = if waits + signals > 0 {
            Err(HostError::NoSubmission { waits, signals }.into())
        } else {
            let outside = Outside { leases, states: &updated };
            CompiledGraph::new(self.catalog(), self.core.fusion, graph, outside.leases.len())
                .and_then(|compiled| encode_into(&self.core, compiled, &kept, outside, commands))
        };
        if recorded.is_err() {
            discard(&kept);
        }
        recorded
    }
}

fn encode_into(
    core: &Arc<Core>,
    mut compiled: CompiledGraph,
    kept: &[Arc<Storage>],
    outside: Outside<'_>,
    commands: HostCommands,
) -> Result<()> {
    core.open()?;
    // Whatever can fail comes before anything is put into the host's command buffer.
    let (_, _pipelines) = make_pipelines(core, &compiled.lowered)?;
    let Outside { leases, states } = outside;
    let states = LockedStates::of_recording(core, &compiled, states, &leases, OnShortage::Fail)?;
    let leases = leases.into_iter().chain(states.tensors.iter().map(|(_, lease)| lease.clone())).collect();
    let blocks = give_memory(core, &mut compiled, kept, leases, OnShortage::Fail)?;
    core.timeline.check_uploaded(&blocks)?;
    let old: Vec<Lease> = states.moved.iter().map(|(old, _, _)| old.clone()).collect();
    core.timeline.check_uploaded(&old)?;
    let probe = Probe::new(
        &core.profiler,
        &core.device,
        ProfileRequest { mode: Profiling::Off, host_only: false, begun_ns: None },
    )?;
    let mut slot = CommandSlot::adopt(&core.device, commands);
    slot.barrier(Barrier::Enter);
    states.encode_moves(&mut slot);
    let range = 0..compiled.lowered.commands.len();
    let _ =
        encode_commands(core, &mut slot, &compiled, range, |block| &blocks[block].block().buffer, &probe)?;
    slot.barrier(Barrier::Leave);
    let old = old.into_iter().map(|old| (old, Usage { reads: true, ..Usage::default() }));
    let uses = blocks.iter().cloned().zip(compiled.usage.iter().copied()).chain(old).collect();
    core.timeline.host_submits(ExternalCommands { done: commands.done, uses, _commands: slot });
    core.counters.submitted(compiled.amount());
    core.counters.took(&compiled.temporaries());
    for (locked, lease) in states.tensors {
        locked.settle(Some(lease), Contents::External);
    }
    settle(&compiled, kept, &blocks, Contents::External);
    Ok(())
}

impl Plan {
    /// Lets the next submission wait for a semaphore of the host's, before anything of it runs.
    pub fn wait_for(&mut self, point: SemaphorePoint) {
        self.sync.waits.push(point);
    }

    /// Lets the next submission signal a semaphore of the host's when all of it is done.
    pub fn signal(&mut self, point: SemaphorePoint) {
        self.sync.signals.push(point);
    }
}
