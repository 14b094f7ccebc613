//! What devices there are, and what they can do.

use std::ffi::CStr;
use std::fmt;

use ash::vk;

use super::check;
use super::instance::Instance;
use super::loader;
use super::workarounds::Workarounds;
use crate::error::{RefusedDevice, Result};

/// What kind of device it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A card with memory of its own.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU of a virtual machine.
    Virtual,
    /// A software driver.
    Cpu,
    /// Something else.
    Other,
}

impl DeviceKind {
    pub(super) fn score(self) -> u32 {
        match self {
            DeviceKind::Discrete => 4,
            DeviceKind::Integrated => 3,
            DeviceKind::Virtual => 2,
            DeviceKind::Cpu => 1,
            DeviceKind::Other => 0,
        }
    }

    pub(super) fn from_name(name: &str) -> Option<DeviceKind> {
        [DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Virtual, DeviceKind::Cpu]
            .into_iter()
            .find(|kind| kind.to_string().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Discrete => "discrete",
            DeviceKind::Integrated => "integrated",
            DeviceKind::Virtual => "virtual",
            DeviceKind::Cpu => "cpu",
            DeviceKind::Other => "other",
        })
    }
}

/// The limits that the engine plans by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes that one storage binding may span.
    pub storage_range_bytes: u64,
    /// Bytes that one uniform binding may span.
    pub uniform_range_bytes: u64,
    /// Storage buffer bindings that one shader may have.
    pub storage_bindings: u32,
    /// Uniform buffer bindings that one shader may have.
    pub uniform_bindings: u32,
    /// Elements that a texel view may have.
    pub texel_elements: u64,
    /// Storage texel bindings that one shader may have.
    pub texel_bindings: u32,
    /// Alignment of a binding's offset, good for storage and texel bindings.
    pub offset_alignment: u64,
    /// Bytes that one buffer may have.
    pub buffer_bytes: u64,
    /// Workgroups per dimension of one dispatch.
    pub groups: [u32; 3],
    /// Invocations per dimension of one workgroup.
    pub local_size: [u32; 3],
    /// Invocations of one workgroup.
    pub invocations: u32,
    /// Bytes of push constants.
    pub push_constant_bytes: u32,
    /// Bytes of shared memory per workgroup.
    pub shared_bytes: u32,
    /// Invocations of one subgroup, as the device tells it.
    pub subgroup_size: u32,
    /// The fewest and the most invocations that a subgroup may really have. Where they differ, a shader's subgroups are of
    /// `subgroup_size` only if that is asked for.
    pub subgroup_sizes: [u32; 2],
    /// Subgroups of one workgroup whose subgroup size is asked for.
    pub subgroups: u32,
    /// Granularity of flushes of memory that is not coherent.
    pub(crate) non_coherent_atom: u64,
}

/// What the device can do beyond the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features {
    /// `VK_KHR_push_descriptor`.
    pub push_descriptors: bool,
    /// `VK_EXT_memory_budget`.
    pub memory_budget: bool,
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
    /// What kind it is.
    pub kind: DeviceKind,
    /// The driver's name and version text.
    pub driver: String,
    /// The Vulkan version it speaks.
    pub api_version: (u32, u32, u32),
    /// What the engine plans by.
    pub limits: Limits,
    /// What it can do beyond the baseline.
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
    /// What its driver needs.
    pub(crate) workarounds: Workarounds,
}

impl DeviceInfo {
    /// Whether Tidemill can use it.
    pub fn is_usable(&self) -> bool {
        self.refused.is_empty()
    }

    /// Whether kernels run in subgroups of [`Limits::subgroup_size`], since there are no others or since those can be asked
    /// for. Otherwise nothing of the engine's may count on it.
    pub(crate) fn has_known_subgroups(&self) -> bool {
        let Limits { subgroup_size, subgroup_sizes: [least, most], subgroups, .. } = self.limits;
        let enough = subgroup_size.saturating_mul(subgroups) >= MOST_SHUFFLING;
        (least == most && most == subgroup_size) || (self.features.subgroup_size_control && enough)
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

/// Every device there is, usable or not.
pub(crate) fn enumerate(instance: &Instance) -> Result<Vec<DeviceInfo>> {
    // SAFETY: contracts 1 and 10.
    let devices = loader::changing(|| unsafe { instance.raw.enumerate_physical_devices() });
    let devices = match devices {
        // What the loader answers where there are drivers but no hardware for any of them.
        Err(vk::Result::ERROR_INITIALIZATION_FAILED) => Vec::new(),
        other => check("vkEnumeratePhysicalDevices", other)?,
    };
    Ok(devices
        .into_iter()
        .enumerate()
        .map(|(index, raw)| describe(&instance.raw, index, raw, None))
        .collect())
}

fn text(chars: std::result::Result<&CStr, std::ffi::FromBytesUntilNulError>) -> String {
    chars.map(|c| c.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What there is to know about a device; with a queue family that was chosen already, or one of ours.
pub(crate) fn describe(
    instance: &ash::Instance,
    index: usize,
    raw: vk::PhysicalDevice,
    queue_family: Option<u32>,
) -> DeviceInfo {
    // SAFETY: contract 1; needs no more than Vulkan 1.0.
    let version = unsafe { instance.get_physical_device_properties(raw) }.api_version;
    // SAFETY: contract 1.
    let extensions = unsafe { instance.enumerate_device_extension_properties(raw) };
    let extensions = check("vkEnumerateDeviceExtensionProperties", extensions);
    let has = |name: &CStr| extensions.iter().flatten().any(|e| e.extension_name_as_c_str() == Ok(name));

    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
    let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup);
    if version >= vk::API_VERSION_1_2 {
        properties = properties.push_next(&mut driver);
    }
    if version >= vk::API_VERSION_1_3 {
        properties = properties.push_next(&mut maintenance4);
    }
    if version >= vk::API_VERSION_1_3 || has(ash::ext::subgroup_size_control::NAME) {
        properties = properties.push_next(&mut sizes);
    }
    // SAFETY: contracts 1 and 6; the chain holds only structs of the device's version and extensions.
    unsafe { instance.get_physical_device_properties2(raw, &mut properties) };
    let properties = properties.properties;
    let limits = &properties.limits;

    // RenderDoc hides Vulkan 1.3 where it can't replay buffer addresses, which nothing here uses; the same functions
    // are there as extensions of 1.2.
    let needed_extensions = [ash::khr::synchronization2::NAME, ash::khr::maintenance4::NAME];
    let clamped = (vk::API_VERSION_1_2..vk::API_VERSION_1_3).contains(&version)
        && super::renderdoc::is_loaded()
        && needed_extensions.iter().all(|name| has(name));

    let mut v11 = vk::PhysicalDeviceVulkan11Features::default();
    let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut v13 = vk::PhysicalDeviceVulkan13Features::default();
    let mut features = vk::PhysicalDeviceFeatures2::default();
    let mut synchronization2 = vk::PhysicalDeviceSynchronization2Features::default();
    let mut maintenance4_feature = vk::PhysicalDeviceMaintenance4Features::default();
    if clamped || version >= vk::API_VERSION_1_3 {
        features = features.push_next(&mut v11).push_next(&mut v12);
    }
    if clamped {
        features = features.push_next(&mut synchronization2).push_next(&mut maintenance4_feature);
    } else if version >= vk::API_VERSION_1_3 {
        features = features.push_next(&mut v13);
    }
    // SAFETY: contracts 1 and 6.
    unsafe { instance.get_physical_device_features2(raw, &mut features) };
    let core = features.features;
    if clamped {
        v13.synchronization2 = synchronization2.synchronization2;
        v13.maintenance4 = maintenance4_feature.maintenance4;
    }

    // SAFETY: contract 1.
    let memory = unsafe { instance.get_physical_device_memory_properties(raw) };
    let memory_bytes = memory
        .memory_heaps_as_slice()
        .iter()
        .filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
        .map(|heap| heap.size)
        .sum();
    // SAFETY: contract 1.
    let format = unsafe { instance.get_physical_device_format_properties(raw, super::buffer::TEXEL_FORMAT) };
    // SAFETY: contract 1.
    let families = unsafe { instance.get_physical_device_queue_family_properties(raw) };
    // The universal queue where there is one: the best trodden path of every driver, and what RenderDoc knows.
    let family_with =
        |flags| families.iter().position(|f| f.queue_flags.contains(flags) && f.queue_count > 0);
    let family = match queue_family {
        Some(chosen) => Some(chosen as usize)
            .filter(|&i| families.get(i).is_some_and(|f| f.queue_flags.contains(vk::QueueFlags::COMPUTE))),
        None => family_with(vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS)
            .or_else(|| family_with(vk::QueueFlags::COMPUTE)),
    };

    // Renamed when it was promoted; the functions are the same.
    let calibration = [ash::khr::calibrated_timestamps::NAME, ash::ext::calibrated_timestamps::NAME];
    let calibration = calibration.into_iter().find(|name| has(name));
    let valid_bits = family.map_or(0, |family| families[family].timestamp_valid_bits);
    let period_ns = f64::from(limits.timestamp_period);
    let timestamps = (valid_bits > 0 && period_ns > 0.0).then_some(TimestampClock { valid_bits, period_ns });

    let mut refused = Vec::new();
    let api_version =
        (vk::api_version_major(version), vk::api_version_minor(version), vk::api_version_patch(version));
    if version < vk::API_VERSION_1_3 && !clamped {
        refused.push(format!("speaks Vulkan {}.{}, 1.3 is needed", api_version.0, api_version.1));
    } else {
        let needed = [
            (v12.timeline_semaphore, "timelineSemaphore"),
            (v13.synchronization2, "synchronization2"),
            (v13.maintenance4, "maintenance4"),
        ];
        let missing = needed.iter().filter(|(there, _)| *there == vk::FALSE);
        refused.extend(missing.map(|(_, name)| format!("lacks the feature {name}")));
    }
    if let Err(error) = &extensions {
        refused.push(error.to_string());
    }
    if family.is_none() {
        refused.push(match queue_family {
            Some(chosen) => format!("the queue's family {chosen} can't compute"),
            None => "has no queue for compute".to_owned(),
        });
    }

    let in_compute = subgroup.supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
    let subgroup_op = |op| in_compute && subgroup.supported_operations.contains(op);
    let name = text(properties.device_name_as_c_str());
    let kind = match properties.device_type {
        vk::PhysicalDeviceType::DISCRETE_GPU => DeviceKind::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceKind::Integrated,
        vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceKind::Virtual,
        vk::PhysicalDeviceType::CPU => DeviceKind::Cpu,
        _ => DeviceKind::Other,
    };
    let driver_info = text(driver.driver_info_as_c_str());
    let workarounds = Workarounds::new(kind, driver.driver_id, &driver_info);
    let driver = format!("{} {driver_info}", text(driver.driver_name_as_c_str()));
    let cache_key = format!(
        "{name}|{driver}|{:08x}:{:08x}:{:08x}|{}",
        properties.vendor_id,
        properties.device_id,
        properties.driver_version,
        properties.pipeline_cache_uuid.iter().map(|b| format!("{b:02x}")).collect::<String>()
    );
    DeviceInfo {
        index,
        name,
        kind,
        driver: driver.trim().to_owned(),
        api_version,
        limits: Limits {
            storage_range_bytes: u64::from(limits.max_storage_buffer_range),
            uniform_range_bytes: u64::from(limits.max_uniform_buffer_range),
            storage_bindings: limits
                .max_per_stage_descriptor_storage_buffers
                .min(limits.max_descriptor_set_storage_buffers),
            uniform_bindings: limits
                .max_per_stage_descriptor_uniform_buffers
                .min(limits.max_descriptor_set_uniform_buffers),
            texel_elements: u64::from(limits.max_texel_buffer_elements),
            texel_bindings: limits
                .max_per_stage_descriptor_storage_images
                .min(limits.max_descriptor_set_storage_images),
            offset_alignment: limits
                .min_storage_buffer_offset_alignment
                .max(limits.min_texel_buffer_offset_alignment)
                .max(16),
            buffer_bytes: if maintenance4.max_buffer_size == 0 {
                u64::MAX
            } else {
                maintenance4.max_buffer_size
            },
            groups: limits.max_compute_work_group_count,
            local_size: limits.max_compute_work_group_size,
            invocations: limits.max_compute_work_group_invocations,
            push_constant_bytes: limits.max_push_constants_size,
            shared_bytes: limits.max_compute_shared_memory_size,
            subgroup_size: subgroup.subgroup_size,
            subgroup_sizes: [sizes.min_subgroup_size, sizes.max_subgroup_size],
            subgroups: sizes.max_compute_workgroup_subgroups,
            non_coherent_atom: limits.non_coherent_atom_size.max(1),
        },
        features: Features {
            push_descriptors: has(ash::khr::push_descriptor::NAME),
            memory_budget: has(ash::ext::memory_budget::NAME),
            portability_subset: has(c"VK_KHR_portability_subset"),
            subgroup_shuffle: subgroup_op(vk::SubgroupFeatureFlags::SHUFFLE),
            subgroup_shuffle_relative: subgroup_op(vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE),
            subgroup_arithmetic: subgroup_op(vk::SubgroupFeatureFlags::ARITHMETIC),
            subgroup_clustered: subgroup_op(vk::SubgroupFeatureFlags::CLUSTERED),
            subgroup_vote: subgroup_op(vk::SubgroupFeatureFlags::VOTE),
            subgroup_ballot: subgroup_op(vk::SubgroupFeatureFlags::BALLOT),
            subgroup_quad: subgroup_op(vk::SubgroupFeatureFlags::QUAD),
            storage_texel: format.buffer_features.contains(vk::FormatFeatureFlags::STORAGE_TEXEL_BUFFER),
            extended_formats: core.shader_storage_image_extended_formats == vk::TRUE,
            subgroup_extended_types: v12.shader_subgroup_extended_types == vk::TRUE,
            subgroup_size_control: v13.subgroup_size_control == vk::TRUE
                && sizes.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE),
            full_subgroups: v13.compute_full_subgroups == vk::TRUE,
            int64: core.shader_int64 == vk::TRUE,
            float64: core.shader_float64 == vk::TRUE,
            float16: v12.shader_float16 == vk::TRUE,
            int16: core.shader_int16 == vk::TRUE,
            int8: v12.shader_int8 == vk::TRUE,
            storage16: v11.storage_buffer16_bit_access == vk::TRUE,
            storage8: v12.storage_buffer8_bit_access == vk::TRUE,
            host_query_reset: v12.host_query_reset == vk::TRUE,
            calibrated_timestamps: calibration.is_some(),
        },
        memory_bytes,
        timestamps,
        refused,
        raw,
        queue_family: family.unwrap_or(0) as u32,
        calibration,
        clamped,
        cache_key,
        workarounds,
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
            workarounds: Workarounds::new(kind, vk::DriverId::MESA_LLVMPIPE, "Mesa 22.3.6"),
        }
    }
}
