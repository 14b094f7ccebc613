//! The wrapped functions. What is not listed goes straight to the driver, uncounted.

#![allow(clippy::too_many_arguments, reason = "Vulkan's own signatures")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};

use ash::vk;
use ash::vk::AllocationCallbacks as Callbacks;
use parking_lot::RwLock;

use super::enter;
use super::hooks::{
    vkAllocateDescriptorSets, vkAllocateMemory, vkCmdCopyBuffer, vkCmdDispatch, vkCmdPipelineBarrier2,
    vkCmdPushDescriptorSetKHR, vkCreateComputePipelines, vkCreateDescriptorPool, vkCreateDevice,
    vkCreateInstance, vkDestroyBuffer, vkDestroyDevice, vkDestroyInstance, vkDestroyPipeline,
    vkFlushMappedMemoryRanges, vkFreeMemory, vkGetBufferMemoryRequirements,
    vkGetMemoryHostPointerPropertiesEXT, vkInvalidateMappedMemoryRanges, vkMapMemory, vkQueueSubmit2,
    vkQueueWaitIdle, vkResetDescriptorPool,
};
use super::told::{
    vkEnumerateDeviceExtensionProperties, vkGetPhysicalDeviceFeatures2, vkGetPhysicalDeviceMemoryProperties,
    vkGetPhysicalDeviceMemoryProperties2, vkGetPhysicalDeviceProperties, vkGetPhysicalDeviceProperties2,
    vkGetPhysicalDeviceQueueFamilyProperties,
};
use super::watch::{
    vkBeginCommandBuffer, vkCmdBindPipeline, vkCmdFillBuffer, vkCreateBufferView, vkCreateShaderModule,
};

static REAL: RwLock<Option<HashMap<&'static str, unsafe extern "system" fn()>>> = RwLock::new(None);

/// Declares functions, as `real` ones; `wrapped` ones pass on what is not failed, `hooked` ones have code of their own.
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

/// What a pointer and a count mean. With a count of 0 the pointer means nothing, and may dangle or be null.
pub(super) unsafe fn array<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count as usize) } }
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
        fn vkCreateDescriptorSetLayout(device: vk::Device, info: *const vk::DescriptorSetLayoutCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::DescriptorSetLayout);
        fn vkCreatePipelineLayout(device: vk::Device, info: *const vk::PipelineLayoutCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::PipelineLayout);
        fn vkCreatePipelineCache(device: vk::Device, info: *const vk::PipelineCacheCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::PipelineCache);
        fn vkGetPipelineCacheData(device: vk::Device, cache: vk::PipelineCache, size: *mut usize, data: *mut c_void);
        fn vkGetPipelineExecutablePropertiesKHR(device: vk::Device, info: *const vk::PipelineInfoKHR<'_>, count: *mut u32, out: *mut vk::PipelineExecutablePropertiesKHR<'_>);
        fn vkGetPipelineExecutableStatisticsKHR(device: vk::Device, info: *const vk::PipelineExecutableInfoKHR<'_>, count: *mut u32, out: *mut vk::PipelineExecutableStatisticKHR<'_>);
        fn vkGetPipelineExecutableInternalRepresentationsKHR(device: vk::Device, info: *const vk::PipelineExecutableInfoKHR<'_>, count: *mut u32, out: *mut vk::PipelineExecutableInternalRepresentationKHR<'_>);
        fn vkCreateCommandPool(device: vk::Device, info: *const vk::CommandPoolCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::CommandPool);
        fn vkAllocateCommandBuffers(device: vk::Device, info: *const vk::CommandBufferAllocateInfo<'_>, out: *mut vk::CommandBuffer);
        fn vkResetCommandPool(device: vk::Device, pool: vk::CommandPool, flags: vk::CommandPoolResetFlags);
        fn vkEndCommandBuffer(buffer: vk::CommandBuffer);
        fn vkCreateSemaphore(device: vk::Device, info: *const vk::SemaphoreCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::Semaphore);
        fn vkCreateQueryPool(device: vk::Device, info: *const vk::QueryPoolCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::QueryPool);
        fn vkGetQueryPoolResults(device: vk::Device, pool: vk::QueryPool, first: u32, count: u32, size: usize, data: *mut c_void, stride: u64, flags: vk::QueryResultFlags);
        fn vkGetSemaphoreCounterValue(device: vk::Device, semaphore: vk::Semaphore, value: *mut u64);
        fn vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(physical: vk::PhysicalDevice, count: *mut u32, out: *mut vk::TimeDomainKHR);
        fn vkGetPhysicalDeviceCalibrateableTimeDomainsKHR(physical: vk::PhysicalDevice, count: *mut u32, out: *mut vk::TimeDomainKHR);
        fn vkGetCalibratedTimestampsEXT(device: vk::Device, count: u32, infos: *const vk::CalibratedTimestampInfoKHR<'_>, ticks: *mut u64, deviation: *mut u64);
        fn vkGetCalibratedTimestampsKHR(device: vk::Device, count: u32, infos: *const vk::CalibratedTimestampInfoKHR<'_>, ticks: *mut u64, deviation: *mut u64);
        fn vkWaitSemaphores(device: vk::Device, info: *const vk::SemaphoreWaitInfo<'_>, timeout: u64);
    }
    hooked {
        fn vkBeginCommandBuffer(buffer: vk::CommandBuffer, info: *const vk::CommandBufferBeginInfo<'_>) -> vk::Result;
        fn vkCmdBindPipeline(buffer: vk::CommandBuffer, point: vk::PipelineBindPoint, pipeline: vk::Pipeline);
        fn vkCmdFillBuffer(buffer: vk::CommandBuffer, to: vk::Buffer, offset: u64, bytes: u64, word: u32);
        fn vkCreateBufferView(device: vk::Device, info: *const vk::BufferViewCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::BufferView) -> vk::Result;
        fn vkCreateShaderModule(device: vk::Device, info: *const vk::ShaderModuleCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::ShaderModule) -> vk::Result;
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
        fn vkGetMemoryHostPointerPropertiesEXT(device: vk::Device, kind: vk::ExternalMemoryHandleTypeFlags, pointer: *const c_void, out: *mut vk::MemoryHostPointerPropertiesEXT<'_>) -> vk::Result;
        fn vkMapMemory(device: vk::Device, memory: vk::DeviceMemory, offset: u64, size: u64, flags: vk::MemoryMapFlags, out: *mut *mut c_void) -> vk::Result;
        fn vkFlushMappedMemoryRanges(device: vk::Device, count: u32, ranges: *const vk::MappedMemoryRange<'_>) -> vk::Result;
        fn vkInvalidateMappedMemoryRanges(device: vk::Device, count: u32, ranges: *const vk::MappedMemoryRange<'_>) -> vk::Result;
        fn vkQueueSubmit2(queue: vk::Queue, count: u32, infos: *const vk::SubmitInfo2<'_>, fence: vk::Fence) -> vk::Result;
        fn vkCmdPipelineBarrier2(buffer: vk::CommandBuffer, info: *const vk::DependencyInfo<'_>);
        fn vkCreateComputePipelines(device: vk::Device, cache: vk::PipelineCache, count: u32, info: *const vk::ComputePipelineCreateInfo<'_>, c: *const Callbacks<'_>, out: *mut vk::Pipeline) -> vk::Result;
        fn vkCmdDispatch(buffer: vk::CommandBuffer, x: u32, y: u32, z: u32);
        fn vkDestroyBuffer(device: vk::Device, buffer: vk::Buffer, c: *const Callbacks<'_>);
        fn vkDestroyPipeline(device: vk::Device, pipeline: vk::Pipeline, c: *const Callbacks<'_>);
        fn vkCmdPushDescriptorSetKHR(buffer: vk::CommandBuffer, point: vk::PipelineBindPoint, layout: vk::PipelineLayout, set: u32, count: u32, writes: *const vk::WriteDescriptorSet<'_>);
        fn vkCmdCopyBuffer(buffer: vk::CommandBuffer, from: vk::Buffer, to: vk::Buffer, count: u32, regions: *const vk::BufferCopy);
    }
}
