//! The Khronos mock driver, which does nothing, with what the engine needs beside: a timeline whose numbers are reached
//! when they are submitted, and features and limits that it does not tell.

#![allow(unsafe_code, reason = "it stands in for the driver")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "one reason for all: arguments are the caller's own, passed on to the function that they were meant for"
)]

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use tidemill::interop::Entry;

/// The loader, and those of its functions that are called from here.
static LOADER: OnceLock<ash::Entry> = OnceLock::new();
static FEATURES: OnceLock<vk::PFN_vkGetPhysicalDeviceFeatures2> = OnceLock::new();
static PROPERTIES: OnceLock<vk::PFN_vkGetPhysicalDeviceProperties2> = OnceLock::new();
static OF_DEVICE: OnceLock<vk::PFN_vkGetDeviceProcAddr> = OnceLock::new();

/// The last number that was submitted.
static REACHED: AtomicU64 = AtomicU64::new(0);

type Function = unsafe extern "system" fn();

/// The way in: the system's loader, on the mock driver if `VK_DRIVER_FILES` says so.
pub(crate) fn entry() -> Result<Entry, ash::LoadingError> {
    let loader = unsafe { ash::Entry::load() }?;
    let _ = LOADER.set(loader);
    let table = ash::StaticFn { get_instance_proc_addr: of_instance };
    Ok(unsafe { Entry::new(ash::Entry::from_static_fn(table)) })
}

/// A function as the kind of pointer that Vulkan hands round.
macro_rules! void {
    ($function:expr, $kind:ty) => {{
        let function: $kind = $function;
        unsafe { std::mem::transmute::<$kind, Function>(function) }
    }};
}

unsafe extern "system" fn of_instance(instance: vk::Instance, name: *const c_char) -> vk::PFN_vkVoidFunction {
    let real = unsafe { (LOADER.get()?.static_fn().get_instance_proc_addr)(instance, name) }?;
    let name = unsafe { CStr::from_ptr(name) };
    Some(match name.to_bytes() {
        b"vkGetPhysicalDeviceFeatures2" => {
            let _ = FEATURES
                .set(unsafe { std::mem::transmute::<Function, vk::PFN_vkGetPhysicalDeviceFeatures2>(real) });
            void!(features, vk::PFN_vkGetPhysicalDeviceFeatures2)
        }
        b"vkGetPhysicalDeviceProperties2" => {
            let real =
                unsafe { std::mem::transmute::<Function, vk::PFN_vkGetPhysicalDeviceProperties2>(real) };
            let _ = PROPERTIES.set(real);
            void!(properties, vk::PFN_vkGetPhysicalDeviceProperties2)
        }
        b"vkGetDeviceProcAddr" => {
            let _ =
                OF_DEVICE.set(unsafe { std::mem::transmute::<Function, vk::PFN_vkGetDeviceProcAddr>(real) });
            void!(of_device, vk::PFN_vkGetDeviceProcAddr)
        }
        _ => own(name).unwrap_or(real),
    })
}

unsafe extern "system" fn of_device(device: vk::Device, name: *const c_char) -> vk::PFN_vkVoidFunction {
    let real = unsafe { OF_DEVICE.get()?(device, name) }?;
    Some(own(unsafe { CStr::from_ptr(name) }).unwrap_or(real))
}

/// What stands in for the driver's.
fn own(name: &CStr) -> Option<Function> {
    Some(match name.to_bytes() {
        b"vkQueueSubmit2" | b"vkQueueSubmit2KHR" => void!(submit, vk::PFN_vkQueueSubmit2),
        b"vkGetSemaphoreCounterValue" => void!(reached, vk::PFN_vkGetSemaphoreCounterValue),
        b"vkWaitSemaphores" => void!(wait, vk::PFN_vkWaitSemaphores),
        _ => return None,
    })
}

/// Goes along a chain of structures.
unsafe fn chain(mut next: *mut c_void, mut visit: impl FnMut(*mut vk::BaseOutStructure<'_>)) {
    while !next.is_null() {
        let structure = next.cast::<vk::BaseOutStructure<'_>>();
        visit(structure);
        next = unsafe { (*structure).p_next }.cast();
    }
}

unsafe extern "system" fn features(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceFeatures2<'_>) {
    if let Some(real) = FEATURES.get() {
        unsafe { real(device, out) };
    }
    unsafe {
        chain((*out).p_next, |structure| match (*structure).s_type {
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => {
                (*structure.cast::<vk::PhysicalDeviceVulkan12Features<'_>>()).timeline_semaphore = vk::TRUE;
            }
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_3_FEATURES => {
                let features = structure.cast::<vk::PhysicalDeviceVulkan13Features<'_>>();
                (*features).synchronization2 = vk::TRUE;
                (*features).maintenance4 = vk::TRUE;
            }
            _ => {}
        });
    }
}

unsafe extern "system" fn properties(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    if let Some(real) = PROPERTIES.get() {
        unsafe { real(device, out) };
    }
    unsafe {
        // It tells the least that Vulkan asks for.
        (*out).properties.limits.max_per_stage_descriptor_storage_buffers = 16;
        (*out).properties.limits.max_descriptor_set_storage_buffers = 16;
        chain((*out).p_next, |structure| {
            if (*structure).s_type == vk::StructureType::PHYSICAL_DEVICE_SUBGROUP_PROPERTIES {
                (*structure.cast::<vk::PhysicalDeviceSubgroupProperties<'_>>()).subgroup_size = 32;
            }
        });
    }
}

unsafe extern "system" fn submit(
    _: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo2<'_>,
    _: vk::Fence,
) -> vk::Result {
    for info in unsafe { std::slice::from_raw_parts(infos, count as usize) } {
        let count = info.signal_semaphore_info_count as usize;
        for signal in unsafe { std::slice::from_raw_parts(info.p_signal_semaphore_infos, count) } {
            REACHED.fetch_max(signal.value, Ordering::Relaxed);
        }
    }
    vk::Result::SUCCESS
}

unsafe extern "system" fn reached(_: vk::Device, _: vk::Semaphore, value: *mut u64) -> vk::Result {
    unsafe { *value = REACHED.load(Ordering::Relaxed) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn wait(_: vk::Device, _: *const vk::SemaphoreWaitInfo<'_>, _: u64) -> vk::Result {
    vk::Result::SUCCESS
}
