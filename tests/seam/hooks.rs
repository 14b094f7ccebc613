//! Functions that do more than to fail or to go through: what is made and destroyed, memory, the queue, and commands.

#![allow(clippy::too_many_arguments, reason = "Vulkan's own signatures")]

use std::ffi::{CStr, c_void};

use ash::vk;
use ash::vk::AllocationCallbacks as Callbacks;

use super::table::{array, real};
use super::{
    Held, Narrow, QUEUE, begin_compiling, device_fault, end_compiling, enter, memory, state, subgroups, watch,
};

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCreateInstance(
    info: *const vk::InstanceCreateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::Instance,
) -> vk::Result {
    enter!("vkCreateInstance");
    let result = unsafe { real::vkCreateInstance(info, c, out) };
    state(|s| s.live_instances += i64::from(result == vk::Result::SUCCESS));
    result
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkDestroyInstance(instance: vk::Instance, c: *const Callbacks<'_>) {
    enter("vkDestroyInstance", false);
    unsafe { real::vkDestroyInstance(instance, c) };
    state(|s| s.live_instances -= 1);
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCreateDevice(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::Device,
) -> vk::Result {
    enter!("vkCreateDevice");
    let mut info = unsafe { *info };
    let names = unsafe { array(info.pp_enabled_extension_names, info.enabled_extension_count) };
    // Faked, it is not the driver's business.
    let fault = unsafe { device_fault::enabled(&mut info) };
    let hidden = |name: &CStr| {
        (name == ash::ext::memory_budget::NAME && state(|s| s.budget.is_some()))
            || (name == ash::ext::device_fault::NAME && fault)
    };
    let names: Vec<_> =
        names.iter().copied().filter(|name| !hidden(unsafe { CStr::from_ptr(*name) })).collect();
    info.enabled_extension_count = names.len() as u32;
    info.pp_enabled_extension_names = names.as_ptr();
    let result = unsafe { real::vkCreateDevice(physical, &info, c, out) };
    if result == vk::Result::SUCCESS {
        state(|s| {
            s.live_devices += 1;
        });
    }
    result
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkDestroyDevice(device: vk::Device, c: *const Callbacks<'_>) {
    enter("vkDestroyDevice", false);
    unsafe { real::vkDestroyDevice(device, c) };
    state(|s| s.live_devices -= 1);
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkGetBufferMemoryRequirements(
    device: vk::Device,
    buffer: vk::Buffer,
    out: *mut vk::MemoryRequirements,
) {
    enter("vkGetBufferMemoryRequirements", false);
    unsafe { real::vkGetBufferMemoryRequirements(device, buffer, out) };
    memory::requirements(unsafe { &mut *out });
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkAllocateMemory(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    enter!("vkAllocateMemory");
    unsafe { memory::allocate(device, &*info, c, out) }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkGetMemoryHostPointerPropertiesEXT(
    device: vk::Device,
    kind: vk::ExternalMemoryHandleTypeFlags,
    pointer: *const c_void,
    out: *mut vk::MemoryHostPointerPropertiesEXT<'_>,
) -> vk::Result {
    enter!("vkGetMemoryHostPointerPropertiesEXT");
    let result = unsafe { real::vkGetMemoryHostPointerPropertiesEXT(device, kind, pointer, out) };
    memory::host_pointer(unsafe { &mut *out });
    result
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkFreeMemory(
    device: vk::Device,
    memory: vk::DeviceMemory,
    c: *const Callbacks<'_>,
) {
    enter("vkFreeMemory", false);
    state(|s| {
        s.allocations.remove(&memory);
        s.memory_bytes.remove(&memory);
    });
    unsafe { real::vkFreeMemory(device, memory, c) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkDestroyPipeline(
    device: vk::Device,
    pipeline: vk::Pipeline,
    c: *const Callbacks<'_>,
) {
    enter("vkDestroyPipeline", false);
    unsafe { real::vkDestroyPipeline(device, pipeline, c) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkMapMemory(
    device: vk::Device,
    memory: vk::DeviceMemory,
    offset: u64,
    size: u64,
    flags: vk::MemoryMapFlags,
    out: *mut *mut c_void,
) -> vk::Result {
    enter!("vkMapMemory");
    let result = unsafe { real::vkMapMemory(device, memory, offset, size, flags, out) };
    if result == vk::Result::SUCCESS { unsafe { memory::map(memory, &mut *out) } } else { result }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkFlushMappedMemoryRanges(
    _device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    enter!("vkFlushMappedMemoryRanges");
    memory::flush(unsafe { array(ranges, count) })
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkInvalidateMappedMemoryRanges(
    _device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    enter!("vkInvalidateMappedMemoryRanges");
    memory::invalidate(unsafe { array(ranges, count) })
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkQueueSubmit2(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    enter!("vkQueueSubmit2");
    let _one_at_a_time = QUEUE.lock();
    unsafe { watch::submit(array(infos, count)) };
    if !state(|s| s.gate_closed) {
        return unsafe { real::vkQueueSubmit2(queue, count, infos, fence) };
    }
    for info in unsafe { array(infos, count) } {
        let (commands, signals) = unsafe {
            (
                array(info.p_command_buffer_infos, info.command_buffer_info_count),
                array(info.p_signal_semaphore_infos, info.signal_semaphore_info_count),
            )
        };
        let commands = commands.iter().map(|info| info.command_buffer).collect();
        let signals = signals.iter().map(|info| (info.semaphore, info.value)).collect();
        state(|s| s.held.push(Held { queue, commands, signals }));
    }
    vk::Result::SUCCESS
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkQueueWaitIdle(queue: vk::Queue) -> vk::Result {
    enter!("vkQueueWaitIdle");
    let _one_at_a_time = QUEUE.lock();
    unsafe { real::vkQueueWaitIdle(queue) }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCmdPipelineBarrier2(
    buffer: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    enter("vkCmdPipelineBarrier2", false);
    if !state(|s| s.skip_barriers) {
        unsafe { watch::barrier(buffer, &*info) };
        unsafe { real::vkCmdPipelineBarrier2(buffer, info) };
    }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCmdDispatch(buffer: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    enter("vkCmdDispatch", false);
    state(|s| {
        s.wrapped += u64::from(y > 1);
        let Some(Narrow { groups, .. }) = s.narrow else { return };
        if [x, y, z].iter().zip(groups).any(|(n, most)| *n > most) {
            s.violations.push(format!("vkCmdDispatch: {x} x {y} x {z} workgroups of {groups:?}"));
        }
    });
    watch::dispatch(buffer, [x, y, z]);
    if !state(|s| s.skip_dispatches) {
        unsafe { real::vkCmdDispatch(buffer, x, y, z) };
    }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCreateComputePipelines(
    device: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    enter!("vkCreateComputePipelines");
    unsafe { subgroups::note(array(infos, count)) };
    begin_compiling();
    let result = unsafe { real::vkCreateComputePipelines(device, cache, count, infos, c, out) };
    end_compiling();
    if result == vk::Result::SUCCESS {
        unsafe { watch::pipelines(array(infos, count), array(out, count)) };
    }
    result
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkDestroyBuffer(
    device: vk::Device,
    buffer: vk::Buffer,
    c: *const Callbacks<'_>,
) {
    enter("vkDestroyBuffer", false);
    watch::forget(buffer);
    unsafe { real::vkDestroyBuffer(device, buffer, c) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCmdPushDescriptorSetKHR(
    buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    set: u32,
    count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
) {
    enter("vkCmdPushDescriptorSetKHR", false);
    state(|s| {
        let Some(Narrow { storage_range_bytes, .. }) = s.narrow else { return };
        for write in unsafe { array(writes, count) } {
            if write.descriptor_type != vk::DescriptorType::STORAGE_BUFFER {
                continue;
            }
            let infos = unsafe { array(write.p_buffer_info, write.descriptor_count) };
            for info in infos.iter().filter(|info| info.range > u64::from(storage_range_bytes)) {
                let (binding, range) = (write.dst_binding, info.range);
                s.violations.push(format!("binding {binding} spans {range} bytes of {storage_range_bytes}"));
            }
        }
    });
    unsafe { watch::bind(buffer, array(writes, count)) };
    unsafe { real::vkCmdPushDescriptorSetKHR(buffer, point, layout, set, count, writes) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCmdCopyBuffer(
    buffer: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    enter("vkCmdCopyBuffer", false);
    unsafe { watch::copy(buffer, from, to, array(regions, count)) };
    unsafe { real::vkCmdCopyBuffer(buffer, from, to, count, regions) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkCreateDescriptorPool(
    device: vk::Device,
    info: *const vk::DescriptorPoolCreateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::DescriptorPool,
) -> vk::Result {
    enter!("vkCreateDescriptorPool");
    let result = unsafe { real::vkCreateDescriptorPool(device, info, c, out) };
    if result == vk::Result::SUCCESS {
        let (pool, sets) = unsafe { (*out, (*info).max_sets) };
        state(|s| s.descriptor_sets.insert(pool, (sets, 0)));
    }
    result
}

/// Software drivers give more sets than a pool was made for; others do not.
#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkAllocateDescriptorSets(
    device: vk::Device,
    info: *const vk::DescriptorSetAllocateInfo<'_>,
    out: *mut vk::DescriptorSet,
) -> vk::Result {
    enter!("vkAllocateDescriptorSets");
    let (pool, wanted) = unsafe { ((*info).descriptor_pool, (*info).descriptor_set_count) };
    let fits = state(|s| match s.descriptor_sets.get_mut(&pool) {
        Some((most, used)) if *used + wanted <= *most => {
            *used += wanted;
            true
        }
        _ => false,
    });
    if !fits {
        return vk::Result::ERROR_OUT_OF_POOL_MEMORY;
    }
    unsafe { real::vkAllocateDescriptorSets(device, info, out) }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkResetDescriptorPool(
    device: vk::Device,
    pool: vk::DescriptorPool,
    flags: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    enter!("vkResetDescriptorPool");
    state(|s| {
        s.descriptor_sets.entry(pool).and_modify(|(_, used)| *used = 0);
    });
    unsafe { real::vkResetDescriptorPool(device, pool, flags) }
}
