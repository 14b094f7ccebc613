//! The logical device.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ash::vk;
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use parking_lot::Mutex;

use super::clock::{self, Calibration, ClockSample};
use super::describe::describe;
use super::instance::Instance;
use super::physical::DeviceInfo;
use super::raw::{FeatureChain, HostDevice, QueueLock, wanted_extensions};
use super::room::{FIRST_SHARED_BYTES, MemoryRoom};
use super::{check, loader, process};
use crate::error::{Error, HostError, Result};

/// The logical device with the allocator of its memory.
pub(crate) struct Device {
    pub(crate) raw: ash::Device,
    pub(crate) info: DeviceInfo,
    pub(crate) memory_types: Vec<vk::MemoryType>,
    pub(crate) heaps: Vec<vk::MemoryHeap>,
    pub(crate) push_descriptor: Option<ash::khr::push_descriptor::Device>,
    /// Asks about memory of the application, where that can be imported.
    pub(super) host_pointers: Option<ash::ext::external_memory_host::Device>,
    /// Asks why the device was lost, where the driver tells.
    pub(super) device_fault: Option<ash::ext::device_fault::Device>,
    /// `None` once the device is being destroyed.
    pub(crate) allocator: Mutex<Option<Allocator>>,
    /// Where blocks go in memory objects.
    pub(super) room: MemoryRoom,
    debug_utils: Option<ash::ext::debug_utils::Device>,
    /// Objects get names; labels go without.
    pub(super) names_objects: bool,
    /// The functions of Vulkan 1.3 under their names of 1.2, where the device is shown as such.
    synchronization2: Option<ash::khr::synchronization2::Device>,
    /// Tells what pipelines were compiled to, if the device was made for that.
    pub(crate) executables: Option<ash::khr::pipeline_executable_properties::Device>,
    /// Reads the device's clock, where that can be done.
    pub(crate) calibration: Option<Calibration>,
    /// Objects that command slots have grown by.
    pub(crate) grown: Growth,
    /// The queue, if the device is the host's; then it is not ours to destroy.
    pub(crate) host_queue: Option<HostQueue>,
    /// Dropped after the device.
    pub(crate) instance: Arc<Instance>,
}

/// A queue that the host shares.
pub(crate) struct HostQueue {
    pub(crate) raw: vk::Queue,
    /// Held around every call that uses the queue.
    pub(crate) lock: Arc<dyn QueueLock>,
}

/// Additional purposes of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uses {
    /// Dispatches have labels, for tools that look.
    pub(crate) labels: bool,
    /// Objects have names, for the same tools.
    pub(crate) names: bool,
    /// Pipelines keep what they were compiled to. Only where the device offers that.
    pub(crate) executables: bool,
    /// The most bytes that tensors will have, if anybody said so.
    pub(crate) cap_bytes: Option<u64>,
}

/// How many pools were made for command slots: none are, once every slot has seen the most it is used for.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    pub(crate) command_pools: AtomicU64,
    pub(crate) descriptor_pools: AtomicU64,
    pub(crate) query_pools: AtomicU64,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.info.name).finish_non_exhaustive()
    }
}

impl Device {
    /// Makes the logical device.
    pub(crate) fn new(instance: Arc<Instance>, mut info: DeviceInfo, uses: Uses) -> Result<Arc<Device>> {
        info.calibration = clock::readable(&instance, &info)?;
        let priorities = [1.0];
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(info.queue_family)
            .queue_priorities(&priorities)];
        let mut extensions: Vec<_> = wanted_extensions(&info).iter().map(|(name, _)| name.as_ptr()).collect();
        if uses.executables {
            extensions.push(ash::khr::pipeline_executable_properties::NAME.as_ptr());
        }
        let mut features = FeatureChain::default();
        features.enable(info.features);
        let mut synchronization2 =
            vk::PhysicalDeviceSynchronization2Features::default().synchronization2(true);
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Features::default().maintenance4(true);
        let create = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .enabled_features(&features.core)
            .push_next(&mut features.v11)
            .push_next(&mut features.v12);
        let create = if info.clamped {
            create.push_next(&mut synchronization2).push_next(&mut maintenance4)
        } else {
            create.push_next(&mut features.v13)
        };
        let create = if info.features.device_fault { create.push_next(&mut features.fault) } else { create };
        let mut executables = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
            .pipeline_executable_info(true);
        let create = if uses.executables { create.push_next(&mut executables) } else { create };
        // SAFETY: contracts 1, 6, 7 and 10.
        let raw = loader::changing(|| unsafe { instance.raw.create_device(info.raw, &create, None) });
        let raw = check("vkCreateDevice", raw)?;
        let room = MemoryRoom::new(uses.cap_bytes);
        let allocator = match new_allocator(&instance, &info, &raw, &room) {
            Ok(allocator) => allocator,
            Err(e) => {
                // SAFETY: contracts 1 and 10: nothing was made from it yet.
                loader::changing(|| unsafe { raw.destroy_device(None) });
                return Err(e);
            }
        };
        Ok(Device::around(instance, info, raw, (allocator, room), uses, None))
    }

    /// Lives on a device of the host's, if that has what is needed.
    pub(crate) fn adopt(host: HostDevice, cap_bytes: Option<u64>) -> Result<Arc<Device>> {
        process::claim()?;
        let HostDevice { handles, lock, enabled, debug_utils, quiet } = host;
        let mut info = describe(&handles.instance, 0, handles.physical_device, Some(handles.queue_family));
        let mut missing = std::mem::take(&mut info.refused);
        if handles.api_version < vk::API_VERSION_1_3 {
            let (major, minor) =
                (vk::api_version_major(handles.api_version), vk::api_version_minor(handles.api_version));
            missing.push(format!("an instance of Vulkan 1.3 (it is {major}.{minor})"));
        }
        missing.extend(enabled.restrict(&mut info));
        if !missing.is_empty() {
            return Err(HostError::DeviceLacks { device: info.name, missing }.into());
        }
        let instance = Instance::adopt(handles.entry, handles.instance, debug_utils);
        info.calibration = clock::readable(&instance, &info)?;
        let room = MemoryRoom::new(cap_bytes);
        let allocator = new_allocator(&instance, &info, &handles.device, &room)?;
        let uses = Uses { labels: debug_utils, names: debug_utils && quiet, executables: false, cap_bytes };
        let queue = HostQueue { raw: handles.queue, lock };
        Ok(Device::around(instance, info, handles.device, (allocator, room), uses, Some(queue)))
    }

    fn around(
        instance: Arc<Instance>,
        info: DeviceInfo,
        raw: ash::Device,
        (allocator, room): (Allocator, MemoryRoom),
        uses: Uses,
        host_queue: Option<HostQueue>,
    ) -> Arc<Device> {
        // SAFETY: contract 1.
        let memory = unsafe { instance.raw.get_physical_device_memory_properties(info.raw) };
        // Looks its functions up by the device, contract 10.
        loader::searching(|| {
            Arc::new(Device {
                memory_types: memory.memory_types_as_slice().to_vec(),
                heaps: memory.memory_heaps_as_slice().to_vec(),
                push_descriptor: info
                    .features
                    .push_descriptors
                    .then(|| ash::khr::push_descriptor::Device::new(&instance.raw, &raw)),
                host_pointers: info
                    .features
                    .host_pointers
                    .then(|| ash::ext::external_memory_host::Device::new(&instance.raw, &raw)),
                device_fault: info
                    .features
                    .device_fault
                    .then(|| ash::ext::device_fault::Device::new(&instance.raw, &raw)),
                debug_utils: (uses.labels && instance.debug_utils)
                    .then(|| ash::ext::debug_utils::Device::new(&instance.raw, &raw)),
                names_objects: uses.names,
                synchronization2: info
                    .clamped
                    .then(|| ash::khr::synchronization2::Device::new(&instance.raw, &raw)),
                executables: uses
                    .executables
                    .then(|| ash::khr::pipeline_executable_properties::Device::new(&instance.raw, &raw)),
                grown: Growth::default(),
                calibration: Calibration::new(&instance, &raw, info.calibration),
                allocator: Mutex::new(Some(allocator)),
                room,
                host_queue,
                info,
                raw,
                instance,
            })
        })
    }

    /// Whether the budget that the system gives this process has room for this many bytes more of a memory type. Only
    /// large requests are worth the question: smaller ones come out of memory objects that are shared. Without
    /// `VK_EXT_memory_budget`, there is room.
    pub(crate) fn has_room(&self, memory_type: u32, bytes: u64) -> bool {
        if !self.info.features.memory_budget || bytes < FIRST_SHARED_BYTES {
            return true;
        }
        let Some(heap) = self.memory_types.get(memory_type as usize).map(|t| t.heap_index as usize) else {
            return true;
        };
        let (budget, usage) = self.budget(heap);
        let heap_bytes = self.heaps.get(heap).map_or(0, |heap| heap.size);
        within_budget(budget, usage, heap_bytes, bytes)
    }

    /// The bytes of a memory type's heap, and what the system grants this process of them, where it says.
    pub(crate) fn heap_and_budget(&self, memory_type: u32) -> (u64, Option<u64>) {
        let heap = self.memory_types.get(memory_type as usize).map_or(0, |t| t.heap_index as usize);
        let bytes = self.heaps.get(heap).map_or(0, |heap| heap.size);
        let budget = self.info.features.memory_budget.then(|| self.budget(heap).0);
        (bytes, budget.filter(|budget| *budget > 0))
    }

    /// A heap's budget, and what is in use of it, as the driver tells by `VK_EXT_memory_budget`.
    fn budget(&self, heap: usize) -> (u64, u64) {
        let mut told = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut told);
        // SAFETY: contracts 1 and 7.
        unsafe {
            self.instance.raw.get_physical_device_memory_properties2(self.info.raw, &mut properties);
        }
        (told.heap_budget[heap], told.heap_usage[heap])
    }

    /// The device's clock and the host's at one moment; `None` where the host can't read the device's.
    pub(crate) fn sample_clock(&self) -> Result<Option<ClockSample>> {
        self.calibration.as_ref().map(Calibration::sample).transpose()
    }

    pub(crate) fn pipeline_barrier(&self, commands: vk::CommandBuffer, info: &vk::DependencyInfo<'_>) {
        match &self.synchronization2 {
            // SAFETY: contracts 3, 6 and 7.
            None => unsafe { self.raw.cmd_pipeline_barrier2(commands, info) },
            // SAFETY: contracts 3, 6 and 7.
            Some(khr) => unsafe { khr.cmd_pipeline_barrier2(commands, info) },
        }
    }

    pub(crate) fn write_timestamp(
        &self,
        commands: vk::CommandBuffer,
        stage: vk::PipelineStageFlags2,
        pool: vk::QueryPool,
        query: u32,
    ) {
        match &self.synchronization2 {
            // SAFETY: contracts 2, 3 and 7.
            None => unsafe { self.raw.cmd_write_timestamp2(commands, stage, pool, query) },
            // SAFETY: contracts 2, 3 and 7.
            Some(khr) => unsafe { khr.cmd_write_timestamp2(commands, stage, pool, query) },
        }
    }

    pub(crate) fn queue_submit(
        &self,
        queue: vk::Queue,
        info: &[vk::SubmitInfo2<'_>],
    ) -> ash::prelude::VkResult<()> {
        match &self.synchronization2 {
            // SAFETY: contracts 2, 3, 4 and 6.
            None => unsafe { self.raw.queue_submit2(queue, info, vk::Fence::null()) },
            // SAFETY: contracts 2, 3, 4 and 6.
            Some(khr) => unsafe { khr.queue_submit2(queue, info, vk::Fence::null()) },
        }
    }

    /// Where to send labels, and names if `names_objects`, if anybody looks.
    pub(crate) fn debug_utils(&self) -> Option<&ash::ext::debug_utils::Device> {
        self.debug_utils.as_ref()
    }

    /// Messages of the validation layer since the last call.
    pub(crate) fn take_messages(&self) -> Vec<String> {
        self.instance.log.take()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The allocator frees its memory blocks, so it goes before the device.
        drop(self.allocator.lock().take());
        if self.host_queue.is_none() {
            // SAFETY: contracts 1, 4 and 10: every child holds an Arc of this and so is gone, and the queue's owner has
            // waited.
            loader::changing(|| unsafe { self.raw.destroy_device(None) });
        }
    }
}

/// Whether this many bytes more are within a heap's budget. What can't be is not believed: no budget at all, or more in
/// use than the heap has.
fn within_budget(budget: u64, usage: u64, heap_bytes: u64, bytes: u64) -> bool {
    budget == 0 || usage > heap_bytes || usage.saturating_add(bytes) <= budget
}

fn new_allocator(
    instance: &Instance,
    info: &DeviceInfo,
    device: &ash::Device,
    room: &MemoryRoom,
) -> Result<Allocator> {
    let mut debug_settings = gpu_allocator::AllocatorDebugSettings::default();
    debug_settings.log_leaks_on_shutdown = false;
    let allocator = Allocator::new(&AllocatorCreateDesc {
        instance: instance.raw.clone(),
        device: device.clone(),
        physical_device: info.raw,
        debug_settings,
        buffer_device_address: false,
        allocation_sizes: room.shared_sizes(),
    });
    allocator.map_err(|e| Error::Vulkan { call: "gpu_allocator::Allocator::new", result: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_kept_where_they_make_sense() {
        assert!(within_budget(100, 40, 200, 60));
        assert!(!within_budget(100, 41, 200, 60));
        assert!(!within_budget(100, 150, 200, 1), "others came, and took of what was ours");
        assert!(!within_budget(100, 0, 200, u64::MAX));
        assert!(within_budget(0, 40, 200, 60) && within_budget(100, u64::MAX, 200, 60), "no such budget");
    }
}
