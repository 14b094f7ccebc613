//! `VK_EXT_device_fault` of a driver that has it: the tests' own has not, and never gets to see it.

use std::ffi::{c_char, c_void};

use ash::vk;

use super::{Seam, enter, state};

/// What the driver tells when it is asked why the device was lost.
pub const DESCRIPTION: &str = "the tests' own fault";
pub const ADDRESS: u64 = 0xdead_0000;
pub const PRECISION: u64 = 0x1000;
pub const CODE: (&str, u64, u64) = ("wave 3 hung", 0x17, 0x2a);

impl Seam {
    /// The device has `VK_EXT_device_fault`.
    pub fn fake_device_fault(&self) {
        state(|s| s.device_fault = true);
    }
}

/// Takes a struct out of a chain.
unsafe fn unlink<T>(chain: &mut *const c_void, kind: vk::StructureType) -> Option<*mut T> {
    let mut link: *mut *const c_void = chain;
    while !unsafe { *link }.is_null() {
        let item = unsafe { *link }.cast::<vk::BaseInStructure<'_>>().cast_mut();
        if unsafe { (*item).s_type } == kind {
            unsafe { *link = (*item).p_next.cast() };
            return Some(item.cast());
        }
        link = unsafe { &raw mut (*item).p_next }.cast();
    }
    None
}

const FEATURES: vk::StructureType = vk::StructureType::PHYSICAL_DEVICE_FAULT_FEATURES_EXT;

/// Before the driver is asked for its features: takes the struct, and fills it.
pub(super) unsafe fn features(out: &mut vk::PhysicalDeviceFeatures2<'_>) {
    if !state(|s| s.device_fault) {
        return;
    }
    let mut chain = out.p_next.cast_const();
    let found = unsafe { unlink::<vk::PhysicalDeviceFaultFeaturesEXT<'_>>(&mut chain, FEATURES) };
    out.p_next = chain.cast_mut();
    if let Some(found) = found {
        unsafe { (*found).device_fault = vk::TRUE };
    }
}

/// Before a device is made: takes the struct away; says whether it switched the feature on.
pub(super) unsafe fn enabled(info: &mut vk::DeviceCreateInfo<'_>) -> bool {
    if !state(|s| s.device_fault) {
        return false;
    }
    let found = unsafe { unlink::<vk::PhysicalDeviceFaultFeaturesEXT<'_>>(&mut info.p_next, FEATURES) };
    found.is_some_and(|found| unsafe { (*found).device_fault } == vk::TRUE)
}

fn write(to: &mut [c_char], text: &str) {
    to.iter_mut().zip(text.bytes().chain([0])).for_each(|(to, byte)| *to = byte as c_char);
}

#[allow(non_snake_case, reason = "Vulkan's own names")]
pub(super) unsafe extern "system" fn vkGetDeviceFaultInfoEXT(
    _: vk::Device,
    counts: *mut vk::DeviceFaultCountsEXT<'_>,
    info: *mut vk::DeviceFaultInfoEXT<'_>,
) -> vk::Result {
    enter!("vkGetDeviceFaultInfoEXT");
    let counts = unsafe { &mut *counts };
    if info.is_null() {
        (counts.address_info_count, counts.vendor_info_count, counts.vendor_binary_size) = (1, 1, 64);
        return vk::Result::SUCCESS;
    }
    let info = unsafe { &mut *info };
    write(&mut info.description, DESCRIPTION);
    if counts.address_info_count > 0 {
        let address = unsafe { &mut *info.p_address_infos };
        address.address_type = vk::DeviceFaultAddressTypeEXT::WRITE_INVALID;
        (address.reported_address, address.address_precision) = (ADDRESS, PRECISION);
    }
    if counts.vendor_info_count > 0 {
        let vendor = unsafe { &mut *info.p_vendor_infos };
        write(&mut vendor.description, CODE.0);
        (vendor.vendor_fault_code, vendor.vendor_fault_data) = (CODE.1, CODE.2);
    }
    // It could have told more: the binary, for which there was no room.
    vk::Result::INCOMPLETE
}
