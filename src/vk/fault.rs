//! The driver's report on the fault that lost the device (`VK_EXT_device_fault`).

use std::ffi::CStr;

use ash::vk;

use super::device::Device;
use crate::error::{DeviceFault, FaultAddress, FaultCode};

/// The most entries of a kind that are taken.
const MOST: u32 = 64;

fn text(chars: std::result::Result<&CStr, std::ffi::FromBytesUntilNulError>) -> String {
    chars.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

fn kind(address: vk::DeviceFaultAddressTypeEXT) -> &'static str {
    use vk::DeviceFaultAddressTypeEXT as Type;
    match address {
        Type::READ_INVALID => "invalid read",
        Type::WRITE_INVALID => "invalid write",
        Type::EXECUTE_INVALID => "invalid execution",
        Type::INSTRUCTION_POINTER_UNKNOWN => "instruction, at fault or not",
        Type::INSTRUCTION_POINTER_INVALID => "invalid instruction pointer",
        Type::INSTRUCTION_POINTER_FAULT => "instruction at fault",
        _ => "unknown",
    }
}

impl Device {
    /// The driver's report, where it has one; only for a device that is lost.
    pub(crate) fn fault(&self) -> Option<DeviceFault> {
        let ask = self.device_fault.as_ref()?.fp().get_device_fault_info_ext;
        let mut counts = vk::DeviceFaultCountsEXT::default();
        // SAFETY: contracts 1, 6 and 7.
        let counted = unsafe { ask(self.raw.handle(), &mut counts, std::ptr::null_mut()) };
        counted.result().ok()?;
        let room = |count: u32| count.min(MOST) as usize;
        let mut addresses = vec![vk::DeviceFaultAddressInfoEXT::default(); room(counts.address_info_count)];
        let mut codes = vec![vk::DeviceFaultVendorInfoEXT::default(); room(counts.vendor_info_count)];
        (counts.address_info_count, counts.vendor_info_count) = (addresses.len() as u32, codes.len() as u32);
        counts.vendor_binary_size = 0;
        let mut info = vk::DeviceFaultInfoEXT {
            p_address_infos: addresses.as_mut_ptr(),
            p_vendor_infos: codes.as_mut_ptr(),
            ..Default::default()
        };
        // SAFETY: contracts 1, 6 and 7; the counts are those of the arrays.
        let told = unsafe { ask(self.raw.handle(), &mut counts, &mut info) };
        if !matches!(told, vk::Result::SUCCESS | vk::Result::INCOMPLETE) {
            return None;
        }
        let address = |a: &vk::DeviceFaultAddressInfoEXT| FaultAddress {
            kind: kind(a.address_type),
            address: a.reported_address,
            precision: a.address_precision,
        };
        let code = |v: &vk::DeviceFaultVendorInfoEXT| FaultCode {
            description: text(v.description_as_c_str()),
            code: v.vendor_fault_code,
            data: v.vendor_fault_data,
        };
        Some(DeviceFault {
            description: text(info.description_as_c_str()),
            addresses: addresses.iter().take(counts.address_info_count as usize).map(address).collect(),
            codes: codes.iter().take(counts.vendor_info_count as usize).map(code).collect(),
        })
    }
}
