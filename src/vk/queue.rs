//! One queue and its timeline.

use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;

use super::check;
use super::command::{Barrier, CommandSlot};
use super::device::Device;
use crate::error::Result;

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
        // SAFETY: contract 1; the device was made with one queue of that family.
        let raw = unsafe { device.raw.get_device_queue(device.info.queue_family, 0) };
        device.name_object(raw, "tidemill queue");
        Ok(Queue { timeline, raw: Mutex::new(raw), opening, device: device.clone() })
    }

    /// Submits the slots in order, after an opening barrier if there are hazards with earlier work, and signals
    /// `value` when all is done. Values must grow from call to call.
    pub(crate) fn submit<'a>(
        &'a self,
        opening: bool,
        slots: impl Iterator<Item = &'a CommandSlot>,
        value: u64,
    ) -> Result<()> {
        let opening = opening.then_some(&self.opening);
        let commands: smallvec::SmallVec<[vk::CommandBufferSubmitInfo<'_>; 3]> = opening
            .into_iter()
            .chain(slots)
            .map(|slot| vk::CommandBufferSubmitInfo::default().command_buffer(slot.raw()))
            .collect();
        let signal = [vk::SemaphoreSubmitInfo::default()
            .semaphore(self.timeline)
            .value(value)
            .stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)];
        let info =
            [vk::SubmitInfo2::default().command_buffer_infos(&commands).signal_semaphore_infos(&signal)];
        let queue = self.raw.lock();
        check("vkQueueSubmit2", self.device.queue_submit(*queue, &info))
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
        let queue = self.raw.lock();
        // SAFETY: contracts 1 and 3. A lost device answers at once.
        let _ = unsafe { self.device.raw.queue_wait_idle(*queue) };
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Whatever is still pending must be done before handles go.
        self.wait_idle();
        // SAFETY: contracts 1 and 4.
        unsafe { self.device.raw.destroy_semaphore(self.timeline, None) };
    }
}
