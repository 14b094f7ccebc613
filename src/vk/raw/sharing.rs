//! Objects that a host and Tidemill share on one device: buffers, points on timelines, command buffers.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use ash::vk;
use smallvec::SmallVec;

use crate::vk::buffer::Buffer;
use crate::vk::usage::BUFFER_USAGE;

/// A range of a buffer of the host's, for [`Accelerator::wrap`](crate::Accelerator::wrap).
#[derive(Clone, Copy, Debug)]
pub struct HostBuffer {
    pub(crate) buffer: vk::Buffer,
    pub(crate) usage: vk::BufferUsageFlags,
    pub(crate) offset_bytes: u64,
    pub(crate) size_bytes: u64,
}

impl HostBuffer {
    /// `size_bytes` of a buffer, from `offset_bytes` on. `usage` is what the buffer was made for.
    ///
    /// # Safety
    ///
    /// - The buffer is valid, of the accelerator's device, bound to memory, has this usage, reaches as far as the range
    ///   does, and the queue's family may use it.
    /// - It stays so until every tensor, recording and plan that uses it is gone and what they submitted is done:
    ///   until `synchronize` has returned after they were dropped.
    /// - No two tensors wrap ranges that overlap.
    /// - The host uses the range only where that is ordered with Tidemill's submissions: by barriers on the same queue,
    ///   or by semaphores. What it wrote before is made visible to compute shaders and transfers by the same means.
    pub unsafe fn new(
        buffer: vk::Buffer,
        usage: vk::BufferUsageFlags,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> HostBuffer {
        HostBuffer { buffer, usage, offset_bytes, size_bytes }
    }

    /// The names of the usages of [`BUFFER_USAGE`] that this one lacks.
    pub(crate) fn missing_usage(&self) -> String {
        let missing = BUFFER_USAGE & !self.usage;
        if missing.is_empty() { String::new() } else { format!("{missing:?}") }
    }
}

/// A timeline semaphore and a value that it reaches.
pub type TimelinePoint = (vk::Semaphore, u64);

/// A tensor's memory, as handed to the host ([`Tensor::raw_buffer`](crate::Tensor::raw_buffer)).
///
/// While it lives, the contents stay where they are: the block serves nothing else, and neither `write` nor a plan
/// overwrites it. (A tensor that wraps a buffer of the host's is always written in place.) Drop it when the host's
/// commands that use the buffer are done. The buffer can be bound as a storage, uniform or texel buffer and copied
/// from; the host does not write to it.
#[derive(Clone)]
#[non_exhaustive]
pub struct TensorBuffer {
    /// The buffer.
    pub buffer: vk::Buffer,
    /// Where the contents begin.
    pub offset_bytes: u64,
    /// How long they are.
    pub size_bytes: u64,
    /// The contents are there when this timeline semaphore has reached this value. A submission of the host's that
    /// waits for it needs no barrier; one to the same queue may have a barrier (from compute shaders and transfers)
    /// instead. `None` if they were there before, or if a command buffer of the host's own writes them.
    pub ready: Option<TimelinePoint>,
    hold: Arc<dyn Any + Send + Sync>,
}

impl TensorBuffer {
    /// The first `size_bytes` of a buffer, which `hold` keeps.
    pub(crate) fn new(
        buffer: &Buffer,
        size_bytes: u64,
        ready: Option<TimelinePoint>,
        hold: Arc<dyn Any + Send + Sync>,
    ) -> TensorBuffer {
        TensorBuffer { buffer: buffer.raw(), offset_bytes: buffer.at(0), size_bytes, ready, hold }
    }
}

impl fmt::Debug for TensorBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorBuffer")
            .field("buffer", &self.buffer)
            .field("offset_bytes", &self.offset_bytes)
            .field("size_bytes", &self.size_bytes)
            .field("ready", &self.ready)
            .field("held", &Arc::strong_count(&self.hold))
            .finish()
    }
}

/// A value of a timeline semaphore of the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphorePoint {
    pub(crate) semaphore: vk::Semaphore,
    pub(crate) value: u64,
}

impl SemaphorePoint {
    /// A value to wait for, or to signal.
    ///
    /// # Safety
    ///
    /// - It is a timeline semaphore of the accelerator's device, valid until every submission that was given the point
    ///   is done.
    /// - A value that is waited for is reached in the end, by work that was submitted before if it is on the same
    ///   queue. Until then, whatever waits for the submission waits, too.
    /// - A value that is signalled is above all that the semaphore has reached or will have reached by then.
    pub unsafe fn new(semaphore: vk::Semaphore, value: u64) -> SemaphorePoint {
        SemaphorePoint { semaphore, value }
    }
}

/// A command buffer of the host's, for [`Recording::record_into`](crate::Recording::record_into).
#[derive(Clone, Copy, Debug)]
pub struct HostCommands {
    pub(crate) buffer: vk::CommandBuffer,
    pub(crate) done: SemaphorePoint,
}

impl HostCommands {
    /// A command buffer that is being recorded, and when its execution is over.
    ///
    /// # Safety
    ///
    /// - The command buffer is of the accelerator's device and of its queue's family (or of one that can compute), is
    ///   being recorded, outside of a render pass, and no one else touches it until `record_into` has returned.
    /// - It is submitted once, to the accelerator's queue, after what was submitted so far and before Tidemill is given
    ///   anything that uses what it reads or writes; or else it is never submitted, and the host signals `done` itself.
    /// - `done` is reached when the command buffer's execution is over, and not before. Its semaphore is valid until
    ///   [`Accelerator::synchronize`](crate::Accelerator::synchronize) has returned after that, or the accelerator is
    ///   gone.
    /// - The host submits it before it waits for the accelerator: `synchronize`, `close`, the drop of the last handle,
    ///   and `read` of what it writes wait for `done`.
    pub unsafe fn new(buffer: vk::CommandBuffer, done: SemaphorePoint) -> HostCommands {
        HostCommands { buffer, done }
    }
}

/// Points that a submission waits for and signals, besides our own timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostSync {
    pub(crate) waits: SmallVec<[SemaphorePoint; 2]>,
    pub(crate) signals: SmallVec<[SemaphorePoint; 2]>,
}
