//! The description of a device: plain data.

use std::ffi::CStr;

use ash::vk;

use super::architecture::Architecture;
pub use super::kind::DeviceKind;
pub use super::limits::Limits;
use super::workarounds::Workarounds;
use crate::error::RefusedDevice;

/// Optional features of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features {
    /// `VK_KHR_push_descriptor`.
    pub push_descriptors: bool,
    /// `VK_EXT_memory_budget`.
    pub memory_budget: bool,
    /// `VK_EXT_external_memory_host`: the device can read the application's own memory
    /// ([`Accelerator::import`](crate::Accelerator::import)).
    pub host_pointers: bool,
    /// `VK_EXT_device_fault`: when the device is lost, the driver tells why.
    pub device_fault: bool,
    /// `VK_KHR_portability_subset` is there (and so must be enabled).
    pub portability_subset: bool,
    /// Shuffles among the invocations of a subgroup in compute shaders.
    pub subgroup_shuffle: bool,
    /// Shuffles by a distance.
    pub subgroup_shuffle_relative: bool,
    /// Arithmetic among the invocations of a subgroup in compute shaders.
    pub subgroup_arithmetic: bool,
    /// The same among neighbours, some of a subgroup at a time.
    pub subgroup_clustered: bool,
    /// Whether all or any invocations of a subgroup agree, in compute shaders.
    pub subgroup_vote: bool,
    /// Ballots and broadcasts in a subgroup in compute shaders.
    pub subgroup_ballot: bool,
    /// Exchange among four neighbours of a subgroup in compute shaders.
    pub subgroup_quad: bool,
    /// Formatted loads from storage texel buffers of the format that the engine uses.
    pub storage_texel: bool,
    /// Storage texel formats beyond the basic ones, `rg32f` and the like.
    pub extended_formats: bool,
    /// Subgroup operations on 8-, 16- and 64-bit types, where shaders have those.
    pub subgroup_extended_types: bool,
    /// The size of subgroups can be asked for in compute shaders.
    pub subgroup_size_control: bool,
    /// Subgroups without idle invocations can be asked for in compute shaders.
    pub full_subgroups: bool,
    /// Shaders can ask that f32 denormals are kept, apart from what they ask of other floats
    /// (`shaderDenormPreserveFloat32`). The engine's own ask for it; elsewhere a denormal may be a zero.
    pub preserves_denormals: bool,
    /// 64-bit integers in shaders.
    pub int64: bool,
    /// 64-bit floats in shaders.
    pub float64: bool,
    /// 16-bit floats in shaders.
    pub float16: bool,
    /// 16-bit integers in shaders.
    pub int16: bool,
    /// 8-bit integers in shaders.
    pub int8: bool,
    /// 16-bit values in storage buffers.
    pub storage16: bool,
    /// 8-bit values in storage buffers.
    pub storage8: bool,
    /// Queries can be reset by the host.
    pub host_query_reset: bool,
    /// The device's clock can be read by the host (`VK_EXT_calibrated_timestamps` or its KHR successor).
    pub calibrated_timestamps: bool,
}

/// The clock behind a queue's timestamps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimestampClock {
    /// How many of a timestamp's low bits count; it wraps around beyond them.
    pub valid_bits: u32,
    /// Nanoseconds per tick, not always a whole number.
    pub period_ns: f64,
}

/// Invocations of the largest workgroup in which the engine's kernels shuffle.
const MOST_SHUFFLING: u32 = 64;

/// A Vulkan device, and whether Tidemill can use it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its place in the loader's list.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// The driver's name and version text.
    pub driver: String,
    /// The Vulkan version it speaks.
    pub api_version: (u32, u32, u32),
    /// Limits that the engine plans by.
    pub limits: Limits,
    /// Optional features.
    pub features: Features,
    /// Bytes of memory that the device calls its own.
    pub memory_bytes: u64,
    /// The clock of the queue that the engine uses; `None` if it has no timestamps, and so no profiles.
    pub timestamps: Option<TimestampClock>,
    /// Why it can't be used; empty if it can.
    pub refused: Vec<String>,
    pub(crate) raw: vk::PhysicalDevice,
    pub(crate) queue_family: u32,
    /// The extension by which the host reads the device's clock.
    pub(crate) calibration: Option<&'static CStr>,
    /// A 1.3 device that RenderDoc shows as 1.2.
    pub(crate) clamped: bool,
    /// Names this device and driver in cache files.
    pub(crate) cache_key: String,
    /// The vendor's PCI id, or Khronos' number for it.
    pub(crate) vendor: u32,
    /// Compute units or multiprocessors, where an extension tells them.
    pub(crate) cores: Option<u32>,
    /// Workarounds for its driver.
    pub(crate) workarounds: Workarounds,
}

impl DeviceInfo {
    /// Whether Tidemill can use it.
    pub fn is_usable(&self) -> bool {
        self.refused.is_empty()
    }

    /// Whether kernels run in subgroups of a known size, since there are no others or since a size can be asked for.
    /// Otherwise nothing of the engine's may count on it.
    pub(crate) fn has_known_subgroups(&self) -> bool {
        let Limits { subgroup_size, subgroup_sizes: [least, most], subgroups, .. } = self.limits;
        let enough = self.architecture().lanes.saturating_mul(subgroups) >= MOST_SHUFFLING;
        (least == most && most == subgroup_size) || (self.features.subgroup_size_control && enough)
    }

    /// Parameters that shape the kernels.
    pub(crate) fn architecture(&self) -> Architecture {
        Architecture::new(self.vendor, self.kind, self.cores, &self.limits)
    }

    /// Whether the engine's kernels may shuffle.
    pub(crate) fn shuffles(&self) -> bool {
        self.features.subgroup_shuffle && self.has_known_subgroups()
    }

    pub(super) fn refusal(&self, otherwise: &str) -> RefusedDevice {
        let why = if self.is_usable() { otherwise.to_owned() } else { self.refused.join(", ") };
        RefusedDevice { name: self.name.clone(), why }
    }
}

#[cfg(test)]
impl DeviceInfo {
    /// A card with the limits that Vulkan 1.3 asks for at least, for tests of what is planned by them.
    pub(crate) fn example(kind: DeviceKind) -> DeviceInfo {
        DeviceInfo {
            index: 0,
            name: "Example".to_owned(),
            kind,
            driver: "driver 1.2".to_owned(),
            api_version: (1, 3, 0),
            limits: Limits {
                storage_range_bytes: 1 << 27,
                uniform_range_bytes: 1 << 14,
                storage_bindings: 8,
                uniform_bindings: 12,
                texel_elements: 1 << 16,
                texel_bindings: 4,
                offset_alignment: 256,
                buffer_bytes: 1 << 30,
                groups: [65_535; 3],
                local_size: [128, 128, 64],
                invocations: 128,
                push_constant_bytes: 128,
                shared_bytes: 1 << 14,
                subgroup_size: 32,
                subgroup_sizes: [32; 2],
                subgroups: 4,
                host_pointer_alignment: 0,
                non_coherent_atom: 256,
            },
            features: Features { subgroup_shuffle: true, storage_texel: true, ..Features::default() },
            memory_bytes: 1 << 30,
            timestamps: None,
            refused: Vec::new(),
            raw: vk::PhysicalDevice::null(),
            queue_family: 0,
            calibration: None,
            clamped: false,
            cache_key: "Example|driver 1.2|0000:0000:0000|00".to_owned(),
            vendor: 0x10005,
            cores: None,
            workarounds: Workarounds::new(kind, vk::DriverId::MESA_LLVMPIPE, "Mesa 22.3.6"),
        }
    }
}
