//! The wrapped functions. What is not listed goes straight to the driver, uncounted.

#![allow(clippy::too_many_arguments, reason = "Vulkan's own signatures")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};

use ash::vk;
use ash::vk::AllocationCallbacks as Callbacks;
use parking_lot::RwLock;

use super::{Held, Narrow, QUEUE, enter, memory, state, subgroups};

static REAL: RwLock<Option<HashMap<&'static str, unsafe extern "system" fn()>>> = RwLock::new(None);

/// Declares functions, as `real` ones; `wrapped` ones pass on what nobody fails, `hooked` ones have code below.
macro_rules! vulkan {
    (
        wrapped { $(fn $name:ident($($arg:ident: $type:ty),*);)* }
        hooked { $(fn $hooked:ident($($harg:ident: $htype:ty),*) $(-> $hret:ty)?;)* }
    ) => {
        #[allow(non_snake_case, reason = "Vulkan's own names")]
        pub(super) mod real {
            use super::*;
            $(pub(in super::super) unsafe fn $name($($arg: $type),*) -> vk::Result {
                type Function = unsafe extern "system" fn($($type),*) -> vk::Result;
                unsafe { std::mem::transmute::<unsafe extern "system" fn(), Function>(find(stringify!($name)))($($arg),*) }
            })*
            $(pub(in super::super) unsafe fn $hooked($($harg: $htype),*) $(-> $hret)? {
                type Function = unsafe extern "system" fn($($htype),*) $(-> $hret)?;
                unsafe { std::mem::transmute::<unsafe extern "system" fn(), Function>(find(stringify!($hooked)))($($harg),*) }
            })*
        }

        $(#[allow(non_snake_case, reason = "Vulkan's own names")]
        unsafe extern "system" fn $name($($arg: $type),*) -> vk::Result {
            match enter(stringify!($name), true) {
                Some(error) => error,
                None => unsafe { real::$name($($arg),*) },
            }
        })*

        /// Remembers the real function; gives the wrapper, if there is one.
        pub(super) fn wrap(name: &CStr, real: unsafe extern "system" fn()) -> unsafe extern "system" fn() {
            let (name, wrapper) = match name.to_bytes() {
                $(name if name == stringify!($name).as_bytes() => {
                    let wrapper: unsafe extern "system" fn($($type),*) -> vk::Result = $name;
                    (stringify!($name), wrapper as *const c_void)
                })*
                $(name if name == stringify!($hooked).as_bytes() => {
                    let wrapper: unsafe extern "system" fn($($htype),*) $(-> $hret)? = $hooked;
                    (stringify!($hooked), wrapper as *const c_void)
                })*
                _ => return real,
            };
            REAL.write().get_or_insert_with(HashMap::new).insert(name, real);
            unsafe { std::mem::transmute::<*const c_void, unsafe extern "system" fn()>(wrapper) }
        }
    };
}

fn find(name: &'static str) -> unsafe extern "system" fn() {
    *REAL.read().as_ref().and_then(|table| table.get(name)).expect("called only after it was looked up")
}

vulkan! {
    wrapped {
        fn vkEnumerateInstanceExtensionProperties(layer: *const c_char, count: *mut u32, out: *mut vk::ExtensionProperties);
        fn vkEnumerateInstanceLayerProperties(count: *mut u32, out: *mut vk::LayerProperties);
        fn vkEnumeratePhysicalDevices(instance: vk::Instance, count: *mut u32, out: *mut vk::PhysicalDevice);
        fn vkCreateDebugUtilsMessengerEXT(instance: vk::Instance, info: *const vk::DebugUtilsMessengerCreateInfoEXT<'_>, c: *const Callbacks<'_>, out: *mut vk::DebugUtilsMessengerEXT);
        fn vkSetDebugUtilsObjectNameEXT(device: vk::Device, info: *const vk::DebugUtilsObjectNameInfoEXT<'_>);
        fn vkBindBufferMemory(device: vk::Device, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64);
        fn vkCreateBuffer(device: vk::Device, info: *const vk::BufferCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::Buffer);
        fn vkCreateBufferView(device: vk::Device, info: *const vk::BufferViewCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::BufferView);
        fn vkCreateDescriptorSetLayout(device: vk::Device, info: *const vk::DescriptorSetLayoutCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::DescriptorSetLayout);
        fn vkCreatePipelineLayout(device: vk::Device, info: *const vk::PipelineLayoutCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::PipelineLayout);
        fn vkCreateShaderModule(device: vk::Device, info: *const vk::ShaderModuleCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::ShaderModule);
        fn vkCreatePipelineCache(device: vk::Device, info: *const vk::PipelineCacheCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::PipelineCache);
        fn vkGetPipelineCacheData(device: vk::Device, cache: vk::PipelineCache, size: *mut usize, data: *mut c_void);
        fn vkGetPipelineExecutablePropertiesKHR(device: vk::Device, info: *const vk::PipelineInfoKHR<'_>, count: *mut u32, out: *mut vk::PipelineExecutablePropertiesKHR<'_>);
        fn vkGetPipelineExecutableStatisticsKHR(device: vk::Device, info: *const vk::PipelineExecutableInfoKHR<'_>, count: *mut u32, out: *mut vk::PipelineExecutableStatisticKHR<'_>);
        fn vkGetPipelineExecutableInternalRepresentationsKHR(device: vk::Device, info: *const vk::PipelineExecutableInfoKHR<'_>, count: *mut u32, out: *mut vk::PipelineExecutableInternalRepresentationKHR<'_>);
        fn vkCreateCommandPool(device: vk::Device, info: *const vk::CommandPoolCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::CommandPool);
        fn vkAllocateCommandBuffers(device: vk::Device, info: *const vk::CommandBufferAllocateInfo<'_>, out: *mut vk::CommandBuffer);
        fn vkResetCommandPool(device: vk::Device, pool: vk::CommandPool, flags: vk::CommandPoolResetFlags);
        fn vkBeginCommandBuffer(buffer: vk::CommandBuffer, info: *const vk::CommandBufferBeginInfo<'_>);
        fn vkEndCommandBuffer(buffer: vk::CommandBuffer);
        fn vkCreateSemaphore(device: vk::Device, info: *const vk::SemaphoreCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::Semaphore);
        fn vkCreateQueryPool(device: vk::Device, info: *const vk::QueryPoolCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::QueryPool);
        fn vkGetQueryPoolResults(device: vk::Device, pool: vk::QueryPool, first: u32, count: u32, size: usize, data: *mut c_void, stride: u64, flags: vk::QueryResultFlags);
        fn vkGetSemaphoreCounterValue(device: vk::Device, semaphore: vk::Semaphore, value: *mut u64);
        fn vkWaitSemaphores(device: vk::Device, info: *const vk::SemaphoreWaitInfo<'_>, timeout: u64);
    }
    hooked {
        fn vkQueueWaitIdle(queue: vk::Queue) -> vk::Result;
        fn vkCreateDescriptorPool(device: vk::Device, info: *const vk::DescriptorPoolCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::DescriptorPool) -> vk::Result;
        fn vkAllocateDescriptorSets(device: vk::Device, info: *const vk::DescriptorSetAllocateInfo<'_>, out: *mut vk::DescriptorSet) -> vk::Result;
        fn vkResetDescriptorPool(device: vk::Device, pool: vk::DescriptorPool, flags: vk::DescriptorPoolResetFlags) -> vk::Result;
        fn vkCreateInstance(info: *const vk::InstanceCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::Instance) -> vk::Result;
        fn vkDestroyInstance(instance: vk::Instance, c: *const Callbacks<'_>);
        fn vkCreateDevice(physical: vk::PhysicalDevice, info: *const vk::DeviceCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::Device) -> vk::Result;
        fn vkDestroyDevice(device: vk::Device, c: *const Callbacks<'_>);
        fn vkEnumerateDeviceExtensionProperties(physical: vk::PhysicalDevice, layer: *const c_char, count: *mut u32, out: *mut vk::ExtensionProperties) -> vk::Result;
        fn vkGetPhysicalDeviceProperties(physical: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceProperties);
        fn vkGetPhysicalDeviceProperties2(physical: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceProperties2<'_>);
        fn vkGetPhysicalDeviceFeatures2(physical: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceFeatures2<'_>);
        fn vkGetPhysicalDeviceQueueFamilyProperties(physical: vk::PhysicalDevice, count: *mut u32, out: *mut vk::QueueFamilyProperties);
        fn vkGetPhysicalDeviceMemoryProperties(physical: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceMemoryProperties);
        fn vkGetPhysicalDeviceMemoryProperties2(physical: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceMemoryProperties2<'_>);
        fn vkGetBufferMemoryRequirements(device: vk::Device, buffer: vk::Buffer, out: *mut vk::MemoryRequirements);
        fn vkAllocateMemory(device: vk::Device, info: *const vk::MemoryAllocateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::DeviceMemory) -> vk::Result;
        fn vkFreeMemory(device: vk::Device, memory: vk::DeviceMemory, c: *const Callbacks<'_>);
        fn vkMapMemory(device: vk::Device, memory: vk::DeviceMemory, offset: u64, size: u64, flags: vk::MemoryMapFlags, out: *mut *mut c_void) -> vk::Result;
        fn vkFlushMappedMemoryRanges(device: vk::Device, count: u32, ranges: *const vk::MappedMemoryRange<'_>) -> vk::Result;
        fn vkInvalidateMappedMemoryRanges(device: vk::Device, count: u32, ranges: *const vk::MappedMemoryRange<'_>) -> vk::Result;
        fn vkQueueSubmit2(queue: vk::Queue, count: u32, infos: *const vk::SubmitInfo2<'_>, fence: vk::Fence) -> vk::Result;
        fn vkCmdPipelineBarrier2(buffer: vk::CommandBuffer, info: *const vk::DependencyInfo<'_>);
        fn vkCreateComputePipelines(device: vk::Device, cache: vk::PipelineCache, count: u32, info: *const vk::ComputePipelineCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::Pipeline) -> vk::Result;
        fn vkCmdDispatch(buffer: vk::CommandBuffer, x: u32, y: u32, z: u32);
        fn vkDestroyBuffer(device: vk::Device, buffer: vk::Buffer, c: *const Callbacks<'_>);
        fn vkCmdPushDescriptorSetKHR(buffer: vk::CommandBuffer, point: vk::PipelineBindPoint, layout: vk::PipelineLayout, set: u32, count: u32, writes: *const vk::WriteDescriptorSet<'_>);
        fn vkCmdCopyBuffer(buffer: vk::CommandBuffer, from: vk::Buffer, to: vk::Buffer, count: u32, regions: *const vk::BufferCopy);
    }
}

/// Leaves the function with its error if the call must fail.
macro_rules! enter {
    ($name:literal) => {
        if let Some(error) = enter($name, true) {
            return error;
        }
    };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkCreateInstance(
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
unsafe extern "system" fn vkDestroyInstance(instance: vk::Instance, c: *const Callbacks<'_>) {
    enter("vkDestroyInstance", false);
    unsafe { real::vkDestroyInstance(instance, c) };
    state(|s| s.live_instances -= 1);
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkCreateDevice(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::Device,
) -> vk::Result {
    enter!("vkCreateDevice");
    let mut info = unsafe { *info };
    let names = unsafe {
        std::slice::from_raw_parts(info.pp_enabled_extension_names, info.enabled_extension_count as usize)
    };
    // Faked, it is not the driver's business.
    let hidden = |name: &CStr| name == ash::ext::memory_budget::NAME && state(|s| s.budget.is_some());
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
unsafe extern "system" fn vkDestroyDevice(device: vk::Device, c: *const Callbacks<'_>) {
    enter("vkDestroyDevice", false);
    unsafe { real::vkDestroyDevice(device, c) };
    state(|s| s.live_devices -= 1);
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkEnumerateDeviceExtensionProperties(
    physical: vk::PhysicalDevice,
    layer: *const c_char,
    count: *mut u32,
    out: *mut vk::ExtensionProperties,
) -> vk::Result {
    enter!("vkEnumerateDeviceExtensionProperties");
    let mut n = 0;
    let null = std::ptr::null_mut();
    let result = unsafe { real::vkEnumerateDeviceExtensionProperties(physical, layer, &mut n, null) };
    if result != vk::Result::SUCCESS {
        return result;
    }
    let mut all = vec![vk::ExtensionProperties::default(); n as usize];
    let result =
        unsafe { real::vkEnumerateDeviceExtensionProperties(physical, layer, &mut n, all.as_mut_ptr()) };
    all.truncate(n as usize);
    state(|s| {
        all.retain(|e| !s.hidden_extensions.iter().any(|h| e.extension_name_as_c_str() == Ok(h)));
        let budget = ash::ext::memory_budget::NAME;
        if s.budget.is_some() && !all.iter().any(|e| e.extension_name_as_c_str() == Ok(budget)) {
            let mut extension = vk::ExtensionProperties::default();
            let name = budget.to_bytes_with_nul().iter().map(|byte| *byte as c_char);
            extension.extension_name.iter_mut().zip(name).for_each(|(to, byte)| *to = byte);
            all.push(extension);
        }
    });
    if !out.is_null() {
        let room = unsafe { *count } as usize;
        unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), out, all.len().min(room)) };
    }
    unsafe { *count = all.len() as u32 };
    result
}

fn edit(properties: &mut vk::PhysicalDeviceProperties) {
    state(|s| {
        if let Some(memory) = &s.memory {
            properties.limits.non_coherent_atom_size = memory.atom;
        }
        if let Some(Narrow { groups, storage_range_bytes }) = s.narrow {
            properties.limits.max_compute_work_group_count = groups;
            properties.limits.max_storage_buffer_range = storage_range_bytes;
        }
        if let Some(edit) = s.edit_properties {
            edit(properties);
        }
    });
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkGetPhysicalDeviceProperties(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties,
) {
    enter("vkGetPhysicalDeviceProperties", false);
    unsafe { real::vkGetPhysicalDeviceProperties(physical, out) };
    edit(unsafe { &mut *out });
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkGetPhysicalDeviceProperties2(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    enter("vkGetPhysicalDeviceProperties2", false);
    unsafe { real::vkGetPhysicalDeviceProperties2(physical, out) };
    edit(unsafe { &mut (*out).properties });
    unsafe { subgroups::properties(&mut *out) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkGetPhysicalDeviceFeatures2(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceFeatures2<'_>,
) {
    enter("vkGetPhysicalDeviceFeatures2", false);
    unsafe { real::vkGetPhysicalDeviceFeatures2(physical, out) };
    let missing = state(|s| s.missing_features.clone());
    let has = |name| if missing.contains(&name) { vk::FALSE } else { vk::TRUE };
    let mut next = unsafe { (*out).p_next }.cast::<vk::BaseOutStructure<'_>>();
    while !next.is_null() {
        match unsafe { (*next).s_type } {
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => {
                let features = unsafe { &mut *next.cast::<vk::PhysicalDeviceVulkan12Features<'_>>() };
                features.timeline_semaphore &= has("timelineSemaphore");
            }
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_3_FEATURES => {
                let features = unsafe { &mut *next.cast::<vk::PhysicalDeviceVulkan13Features<'_>>() };
                features.synchronization2 &= has("synchronization2");
                features.maintenance4 &= has("maintenance4");
                features.subgroup_size_control &= has("subgroupSizeControl");
                features.compute_full_subgroups &= has("computeFullSubgroups");
            }
            _ => {}
        }
        next = unsafe { (*next).p_next };
    }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkGetPhysicalDeviceQueueFamilyProperties(
    physical: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties,
) {
    enter("vkGetPhysicalDeviceQueueFamilyProperties", false);
    unsafe { real::vkGetPhysicalDeviceQueueFamilyProperties(physical, count, out) };
    if state(|s| s.no_queues) {
        unsafe { *count = 0 };
    }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkGetPhysicalDeviceMemoryProperties(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties,
) {
    enter("vkGetPhysicalDeviceMemoryProperties", false);
    unsafe { real::vkGetPhysicalDeviceMemoryProperties(physical, out) };
    memory::properties(unsafe { &mut *out });
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkGetPhysicalDeviceMemoryProperties2(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    enter("vkGetPhysicalDeviceMemoryProperties2", false);
    unsafe { memory::properties2(physical, &mut *out) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkGetBufferMemoryRequirements(
    device: vk::Device,
    buffer: vk::Buffer,
    out: *mut vk::MemoryRequirements,
) {
    enter("vkGetBufferMemoryRequirements", false);
    unsafe { real::vkGetBufferMemoryRequirements(device, buffer, out) };
    memory::requirements(unsafe { &mut *out });
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkAllocateMemory(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    enter!("vkAllocateMemory");
    unsafe { memory::allocate(device, &*info, c, out) }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkFreeMemory(
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
unsafe extern "system" fn vkMapMemory(
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
unsafe extern "system" fn vkFlushMappedMemoryRanges(
    _device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    enter!("vkFlushMappedMemoryRanges");
    memory::flush(unsafe { std::slice::from_raw_parts(ranges, count as usize) })
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkInvalidateMappedMemoryRanges(
    _device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    enter!("vkInvalidateMappedMemoryRanges");
    memory::invalidate(unsafe { std::slice::from_raw_parts(ranges, count as usize) })
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkQueueSubmit2(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    enter!("vkQueueSubmit2");
    let _one_at_a_time = QUEUE.lock();
    if !state(|s| s.gate_closed) {
        return unsafe { real::vkQueueSubmit2(queue, count, infos, fence) };
    }
    for info in unsafe { std::slice::from_raw_parts(infos, count as usize) } {
        let (commands, signals) = unsafe {
            (
                std::slice::from_raw_parts(
                    info.p_command_buffer_infos,
                    info.command_buffer_info_count as usize,
                ),
                std::slice::from_raw_parts(
                    info.p_signal_semaphore_infos,
                    info.signal_semaphore_info_count as usize,
                ),
            )
        };
        let commands = commands.iter().map(|info| info.command_buffer).collect();
        let signals = signals.iter().map(|info| (info.semaphore, info.value)).collect();
        state(|s| s.held.push(Held { queue, commands, signals }));
    }
    vk::Result::SUCCESS
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkQueueWaitIdle(queue: vk::Queue) -> vk::Result {
    enter!("vkQueueWaitIdle");
    let _one_at_a_time = QUEUE.lock();
    unsafe { real::vkQueueWaitIdle(queue) }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkCmdPipelineBarrier2(
    buffer: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    enter("vkCmdPipelineBarrier2", false);
    if !state(|s| s.skip_barriers) {
        unsafe { real::vkCmdPipelineBarrier2(buffer, info) };
    }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkCmdDispatch(buffer: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    enter("vkCmdDispatch", false);
    state(|s| {
        s.wrapped += u64::from(y > 1);
        let Some(Narrow { groups, .. }) = s.narrow else { return };
        if [x, y, z].iter().zip(groups).any(|(n, most)| *n > most) {
            s.violations.push(format!("vkCmdDispatch: {x} x {y} x {z} workgroups of {groups:?}"));
        }
    });
    if !state(|s| s.skip_dispatches) {
        unsafe { real::vkCmdDispatch(buffer, x, y, z) };
    }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkCreateComputePipelines(
    device: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    c: *const Callbacks<'_>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    enter!("vkCreateComputePipelines");
    unsafe { subgroups::note(std::slice::from_raw_parts(infos, count as usize)) };
    unsafe { real::vkCreateComputePipelines(device, cache, count, infos, c, out) }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkDestroyBuffer(device: vk::Device, buffer: vk::Buffer, c: *const Callbacks<'_>) {
    enter("vkDestroyBuffer", false);
    unsafe { real::vkDestroyBuffer(device, buffer, c) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkCmdPushDescriptorSetKHR(
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
        for write in unsafe { std::slice::from_raw_parts(writes, count as usize) } {
            if write.descriptor_type != vk::DescriptorType::STORAGE_BUFFER {
                continue;
            }
            let infos =
                unsafe { std::slice::from_raw_parts(write.p_buffer_info, write.descriptor_count as usize) };
            for info in infos.iter().filter(|info| info.range > u64::from(storage_range_bytes)) {
                let (binding, range) = (write.dst_binding, info.range);
                s.violations.push(format!("binding {binding} spans {range} bytes of {storage_range_bytes}"));
            }
        }
    });
    unsafe { real::vkCmdPushDescriptorSetKHR(buffer, point, layout, set, count, writes) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkCmdCopyBuffer(
    buffer: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    enter("vkCmdCopyBuffer", false);
    unsafe { real::vkCmdCopyBuffer(buffer, from, to, count, regions) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
unsafe extern "system" fn vkCreateDescriptorPool(
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
unsafe extern "system" fn vkAllocateDescriptorSets(
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
unsafe extern "system" fn vkResetDescriptorPool(
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
