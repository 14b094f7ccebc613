//! What the driver tells of itself, as the test wants it.

use std::ffi::c_char;

use ash::vk;

use super::table::real;
use super::{Narrow, device_fault, enter, memory, state, subgroups};

/// Answers a question of the kind that is asked twice: how many there are, then which. The driver never gets to see the
/// caller's array: its room is for what the caller was told, and drivers may write as many as they have.
unsafe fn answer<T: Copy>(all: &[T], count: *mut u32, out: *mut T) -> vk::Result {
    if out.is_null() {
        unsafe { *count = all.len() as u32 };
        return vk::Result::SUCCESS;
    }
    let given = all.len().min(unsafe { *count } as usize);
    if given > 0 {
        unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), out, given) };
    }
    unsafe { *count = given as u32 };
    if given < all.len() { vk::Result::INCOMPLETE } else { vk::Result::SUCCESS }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkEnumerateDeviceExtensionProperties(
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
    if result != vk::Result::SUCCESS {
        return result;
    }
    all.truncate(n as usize);
    state(|s| {
        all.retain(|e| !s.hidden_extensions.iter().any(|h| e.extension_name_as_c_str() == Ok(h)));
        let faked = [
            (s.budget.is_some(), ash::ext::memory_budget::NAME),
            (s.device_fault, ash::ext::device_fault::NAME),
        ];
        for (_, name) in faked.into_iter().filter(|(on, _)| *on) {
            if !all.iter().any(|e| e.extension_name_as_c_str() == Ok(name)) {
                let mut extension = vk::ExtensionProperties::default();
                let name = name.to_bytes_with_nul().iter().map(|byte| *byte as c_char);
                extension.extension_name.iter_mut().zip(name).for_each(|(to, byte)| *to = byte);
                all.push(extension);
            }
        }
    });
    unsafe { answer(&all, count, out) }
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

/// Who the driver is, as the test wants it.
unsafe fn driver(out: &mut vk::PhysicalDeviceProperties2<'_>) {
    let kind = vk::StructureType::PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    let found = unsafe { subgroups::find(out.p_next.cast(), kind) };
    if let (Some(driver), Some(found)) = (state(|s| s.driver), found) {
        let found: &mut vk::PhysicalDeviceDriverProperties<'_> = unsafe { &mut *found };
        found.driver_id = driver;
    }
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkGetPhysicalDeviceProperties(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties,
) {
    enter("vkGetPhysicalDeviceProperties", false);
    unsafe { real::vkGetPhysicalDeviceProperties(physical, out) };
    edit(unsafe { &mut *out });
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkGetPhysicalDeviceProperties2(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    enter("vkGetPhysicalDeviceProperties2", false);
    unsafe { real::vkGetPhysicalDeviceProperties2(physical, out) };
    edit(unsafe { &mut (*out).properties });
    unsafe { subgroups::properties(&mut *out) };
    unsafe { memory::host_pages(&mut *out) };
    unsafe { driver(&mut *out) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkGetPhysicalDeviceFeatures2(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceFeatures2<'_>,
) {
    enter("vkGetPhysicalDeviceFeatures2", false);
    unsafe { device_fault::features(&mut *out) };
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
pub(super) unsafe extern "system" fn vkGetPhysicalDeviceQueueFamilyProperties(
    physical: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties,
) {
    enter("vkGetPhysicalDeviceQueueFamilyProperties", false);
    let mut n = 0;
    unsafe { real::vkGetPhysicalDeviceQueueFamilyProperties(physical, &mut n, std::ptr::null_mut()) };
    let mut all = vec![vk::QueueFamilyProperties::default(); n as usize];
    unsafe { real::vkGetPhysicalDeviceQueueFamilyProperties(physical, &mut n, all.as_mut_ptr()) };
    all.truncate(if state(|s| s.no_queues) { 0 } else { n as usize });
    // It has no result to give.
    let _ = unsafe { answer(&all, count, out) };
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkGetPhysicalDeviceMemoryProperties(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties,
) {
    enter("vkGetPhysicalDeviceMemoryProperties", false);
    unsafe { real::vkGetPhysicalDeviceMemoryProperties(physical, out) };
    memory::properties(unsafe { &mut *out });
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkGetPhysicalDeviceMemoryProperties2(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    enter("vkGetPhysicalDeviceMemoryProperties2", false);
    unsafe { memory::properties2(physical, &mut *out) };
}
