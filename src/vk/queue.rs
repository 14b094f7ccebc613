//! One queue and its timeline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::check;
use super::command::{Barrier, CommandSlot};
use super::device::Device;
use super::raw::{HostSync, SemaphorePoint, TimelinePoint};
use crate::error::{HostError, Result};

type Points = SmallVec<[vk::SemaphoreSubmitInfo<'static>; 2]>;

/// The queue, and the timeline semaphore that numbers what is submitted to it.
#[derive(Debug)]
pub(crate) struct Queue {
    timeline: vk::Semaphore,
    raw: Mutex<vk::Queue>,
    /// Recorded once: a barrier between what came before and what comes after.
    opening: CommandSlot,
    device: Arc<Device>,
}

impl Queue {
    pub(crate) fn new(device: &Arc<Device>) -> Result<Queue> {
        let mut opening = CommandSlot::new(device)?;
        opening.begin_reusable()?;
        opening.barrier(Barrier::Device);
        opening.end()?;
        opening.name("tidemill opening barrier");
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: contracts 1, 6 and 7.
        let timeline = unsafe { device.raw.create_semaphore(&info, None) };
        let timeline = check("vkCreateSemaphore", timeline)?;
        device.name_object(timeline, "tidemill timeline");
        let raw = match &device.host_queue {
            Some(host) => host.raw,
            None => {
                // SAFETY: contract 1; the device was made with one queue of that family.
                let raw = unsafe { device.raw.get_device_queue(device.info.queue_family, 0) };
                device.name_object(raw, "tidemill queue");
                raw
            }
        };
        Ok(Queue { timeline, raw: Mutex::new(raw), opening, device: device.clone() })
    }

    /// Submits the slots in order, after an opening barrier if there are hazards with earlier work, and signals `value`
    /// when all is done, beside what the host wants waited for and signalled. Values must grow from call to call.
    pub(crate) fn submit<'a>(
        &'a self,
        opening: bool,
        slots: impl Iterator<Item = &'a CommandSlot>,
        value: u64,
        sync: &HostSync,
    ) -> Result<()> {
        let mut commands: SmallVec<[vk::CommandBufferSubmitInfo<'_>; 8]> = SmallVec::new();
        let opening = opening.then_some(&self.opening);
        opening.into_iter().chain(slots).for_each(|slot| {
            commands.push(vk::CommandBufferSubmitInfo::default().command_buffer(slot.raw()));
        });
        let point = |semaphore, value| {
            vk::SemaphoreSubmitInfo::default()
                .semaphore(semaphore)
                .value(value)
                .stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
        };
        let theirs = |points: &[SemaphorePoint]| -> Points {
            points.iter().map(|p| point(p.semaphore, p.value)).collect()
        };
        let waits = theirs(&sync.waits);
        let mut signals = theirs(&sync.signals);
        signals.push(point(self.timeline, value));
        let info = [vk::SubmitInfo2::default()
            .wait_semaphore_infos(&waits)
            .command_buffer_infos(&commands)
            .signal_semaphore_infos(&signals)];
        check("vkQueueSubmit2", self.with_queue(|queue| self.device.queue_submit(queue, &info))?)
    }

    /// Calls with the queue, while no other thread does: no thread of ours, and none of the host's.
    fn with_queue<T>(&self, call: impl FnOnce(vk::Queue) -> T) -> Result<T> {
        let queue = self.raw.lock();
        let Some(host) = &self.device.host_queue else { return Ok(call(*queue)) };
        let (mut call, mut result) = (Some(call), None);
        // A lock that panics after the call would have us forget what the queue has been given.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            host.lock.with_queue(&mut || {
                if let Some(call) = call.take() {
                    result = Some(call(*queue));
                }
            });
        }));
        result.ok_or(HostError::QueueLock.into())
    }

    /// The timeline's own semaphore at a number, for the host to wait for.
    pub(crate) fn point(&self, value: u64) -> TimelinePoint {
        (self.timeline, value)
    }

    /// Whether a point of the host's is reached.
    pub(crate) fn is_reached(&self, point: SemaphorePoint) -> Result<bool> {
        // SAFETY: contract 9.
        let value = unsafe { self.device.raw.get_semaphore_counter_value(point.semaphore) };
        Ok(check("vkGetSemaphoreCounterValue", value)? >= point.value)
    }

    /// Waits for points of the host's.
    pub(crate) fn wait_points(&self, points: &[SemaphorePoint]) -> Result<()> {
        let semaphores: SmallVec<[vk::Semaphore; 2]> = points.iter().map(|p| p.semaphore).collect();
        let values: SmallVec<[u64; 2]> = points.iter().map(|p| p.value).collect();
        if points.is_empty() {
            return Ok(());
        }
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: contracts 6 and 9.
        check("vkWaitSemaphores", unsafe { self.device.raw.wait_semaphores(&info, u64::MAX) })
    }

    /// The highest value reached.
    pub(crate) fn completed(&self) -> Result<u64> {
        // SAFETY: contract 1.
        let value = unsafe { self.device.raw.get_semaphore_counter_value(self.timeline) };
        check("vkGetSemaphoreCounterValue", value)
    }

    /// Waits until the value is reached; `false` if the time is over before.
    pub(crate) fn wait(&self, value: u64, timeout_ns: u64) -> Result<bool> {
        let semaphores = [self.timeline];
        let values = [value];
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: contracts 1 and 6.
        match unsafe { self.device.raw.wait_semaphores(&info, timeout_ns) } {
            Err(vk::Result::TIMEOUT) => Ok(false),
            other => check("vkWaitSemaphores", other).map(|()| true),
        }
    }
}

impl Queue {
    /// Waits until nothing is pending. For teardown only.
    pub(crate) fn wait_idle(&self) {
        let _ = self.with_queue(|queue| {
            // SAFETY: contracts 1 and 3. A lost device answers at once.
            unsafe { self.device.raw.queue_wait_idle(queue) }
        });
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Whatever is still pending must be done before handles go. What a host has in its queue is none of ours, and
        // what was, the timeline has waited for.
        if self.device.host_queue.is_none() {
            self.wait_idle();
        }
        // SAFETY: contracts 1 and 4.
        unsafe { self.device.raw.destroy_semaphore(self.timeline, None) };
    }
}
