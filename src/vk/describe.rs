//! The driver's description of its devices, queried once and kept as plain data.

use std::ffi::CStr;

use ash::vk;

use super::check;
use super::instance::Instance;
use super::loader;
use super::physical::{DeviceInfo, DeviceKind, Features, Limits, TimestampClock};
use super::usage::{BUFFER_USAGE, TEXEL_FORMAT};
use super::workarounds::Workarounds;
use crate::error::Result;

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

/// The description of a device; with a queue family that was chosen already, or one of ours.
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

    // RenderDoc hides Vulkan 1.3 where it can't replay buffer addresses, which nothing here uses; the same functions
    // are there as extensions of 1.2.
    let needed_extensions = [ash::khr::synchronization2::NAME, ash::khr::maintenance4::NAME];
    let clamped = (vk::API_VERSION_1_2..vk::API_VERSION_1_3).contains(&version)
        && super::renderdoc::is_loaded()
        && needed_extensions.iter().all(|name| has(name));
    let properties = Properties::new(instance, raw, version, has);
    let supported = SupportedFeatures::new(instance, raw, version, clamped, has);

    // SAFETY: contract 1.
    let memory = unsafe { instance.get_physical_device_memory_properties(raw) };
    // SAFETY: contract 1.
    let format = unsafe { instance.get_physical_device_format_properties(raw, TEXEL_FORMAT) };
    // SAFETY: contract 1.
    let families = unsafe { instance.get_physical_device_queue_family_properties(raw) };
    let family = compute_family(&families, queue_family);

    // Renamed when it was promoted; the functions are the same.
    let calibration = [ash::khr::calibrated_timestamps::NAME, ash::ext::calibrated_timestamps::NAME];
    let calibration = calibration.into_iter().find(|name| has(name));
    let valid_bits = family.map_or(0, |family| families[family].timestamp_valid_bits);
    let period_ns = f64::from(properties.core.limits.timestamp_period);
    let timestamps = (valid_bits > 0 && period_ns > 0.0).then_some(TimestampClock { valid_bits, period_ns });

    let mut refused = supported.missing(version, clamped);
    refused.extend(extensions.as_ref().err().map(ToString::to_string));
    refused.extend(family.is_none().then(|| no_family(queue_family)));

    let kind = DeviceKind::of(properties.core.device_type);
    let driver_info = text(properties.driver.driver_info_as_c_str());
    let driver = format!("{} {driver_info}", text(properties.driver.driver_name_as_c_str()));
    DeviceInfo {
        index,
        name: text(properties.core.device_name_as_c_str()),
        kind,
        driver: driver.trim().to_owned(),
        api_version: (
            vk::api_version_major(version),
            vk::api_version_minor(version),
            vk::api_version_patch(version),
        ),
        limits: properties.limits(),
        features: Features {
            push_descriptors: has(ash::khr::push_descriptor::NAME),
            memory_budget: has(ash::ext::memory_budget::NAME),
            host_pointers: properties.host_pointers.min_imported_host_pointer_alignment > 0
                && imports_host_pointers(instance, raw),
            portability_subset: has(c"VK_KHR_portability_subset"),
            storage_texel: format.buffer_features.contains(vk::FormatFeatureFlags::STORAGE_TEXEL_BUFFER),
            calibrated_timestamps: calibration.is_some(),
            ..features(&supported, &properties)
        },
        memory_bytes: device_local_bytes(&memory),
        timestamps,
        refused,
        raw,
        queue_family: family.unwrap_or(0) as u32,
        calibration,
        clamped,
        cache_key: properties.cache_key(&driver),
        vendor: properties.core.vendor_id,
        cores: properties.cores(),
        workarounds: Workarounds::new(kind, properties.driver.driver_id, &driver_info),
    }
}

/// Why there is no queue to compute on; with a family that was chosen already.
fn no_family(queue_family: Option<u32>) -> String {
    match queue_family {
        Some(chosen) => format!("the queue's family {chosen} can't compute"),
        None => "has no queue for compute".to_owned(),
    }
}

/// The size of what lies on the device.
fn device_local_bytes(memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    let heaps = memory.memory_heaps_as_slice().iter();
    heaps.filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL)).map(|heap| heap.size).sum()
}

/// Whether buffers like the engine's own can have memory of the application behind them.
fn imports_host_pointers(instance: &ash::Instance, raw: vk::PhysicalDevice) -> bool {
    use vk::ExternalMemoryFeatureFlags as Flags;
    let info = vk::PhysicalDeviceExternalBufferInfo::default()
        .usage(BUFFER_USAGE)
        .handle_type(vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT);
    let mut found = vk::ExternalBufferProperties::default();
    // SAFETY: contracts 1, 6 and 7: Vulkan 1.1 has it, and so has every device with the extension.
    unsafe { instance.get_physical_device_external_buffer_properties(raw, &info, &mut found) };
    let flags = found.external_memory_properties.external_memory_features;
    flags.contains(Flags::IMPORTABLE) && !flags.contains(Flags::DEDICATED_ONLY)
}

fn text(chars: std::result::Result<&CStr, std::ffi::FromBytesUntilNulError>) -> String {
    chars.map(|c| c.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The family that was chosen, if it can compute. Otherwise the universal queue where there is one: the best trodden
/// path of every driver, and what RenderDoc knows.
fn compute_family(families: &[vk::QueueFamilyProperties], chosen: Option<u32>) -> Option<usize> {
    let family_with =
        |flags| families.iter().position(|f| f.queue_flags.contains(flags) && f.queue_count > 0);
    match chosen {
        Some(chosen) => Some(chosen as usize)
            .filter(|&i| families.get(i).is_some_and(|f| f.queue_flags.contains(vk::QueueFlags::COMPUTE))),
        None => family_with(vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS)
            .or_else(|| family_with(vk::QueueFlags::COMPUTE)),
    }
}

/// The driver's answer about properties. The structs' own chains are over.
struct Properties {
    core: vk::PhysicalDeviceProperties,
    subgroup: vk::PhysicalDeviceSubgroupProperties<'static>,
    driver: vk::PhysicalDeviceDriverProperties<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Properties<'static>,
    sizes: vk::PhysicalDeviceSubgroupSizeControlProperties<'static>,
    host_pointers: vk::PhysicalDeviceExternalMemoryHostPropertiesEXT<'static>,
    floats: vk::PhysicalDeviceFloatControlsProperties<'static>,
    amd: vk::PhysicalDeviceShaderCoreProperties2AMD<'static>,
    nvidia: vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV<'static>,
    arm: vk::PhysicalDeviceShaderCoreBuiltinsPropertiesARM<'static>,
}

impl Properties {
    fn new(
        instance: &ash::Instance,
        raw: vk::PhysicalDevice,
        version: u32,
        has: impl Fn(&CStr) -> bool,
    ) -> Properties {
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
        let mut host_pointers = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut floats = vk::PhysicalDeviceFloatControlsProperties::default();
        let mut amd = vk::PhysicalDeviceShaderCoreProperties2AMD::default();
        let mut nvidia = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
        let mut arm = vk::PhysicalDeviceShaderCoreBuiltinsPropertiesARM::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup);
        if version >= vk::API_VERSION_1_2 {
            properties = properties.push_next(&mut driver).push_next(&mut floats);
        }
        if version >= vk::API_VERSION_1_3 {
            properties = properties.push_next(&mut maintenance4);
        }
        if version >= vk::API_VERSION_1_3 || has(ash::ext::subgroup_size_control::NAME) {
            properties = properties.push_next(&mut sizes);
        }
        if has(ash::ext::external_memory_host::NAME) {
            properties = properties.push_next(&mut host_pointers);
        }
        if has(ash::amd::shader_core_properties2::NAME) {
            properties = properties.push_next(&mut amd);
        }
        if has(ash::nv::shader_sm_builtins::NAME) {
            properties = properties.push_next(&mut nvidia);
        }
        if has(ash::arm::shader_core_builtins::NAME) {
            properties = properties.push_next(&mut arm);
        }
        // SAFETY: contracts 1 and 6; the chain holds only structs of the device's version and extensions.
        unsafe { instance.get_physical_device_properties2(raw, &mut properties) };
        let core = properties.properties;
        Properties { core, subgroup, driver, maintenance4, sizes, host_pointers, floats, amd, nvidia, arm }
    }

    /// Whether shaders can ask for f32 denormals without a word on other floats.
    fn preserves_denormals(&self) -> bool {
        use vk::ShaderFloatControlsIndependence as Independence;
        let floats = &self.floats;
        floats.shader_denorm_preserve_float32 == vk::TRUE
            && floats.denorm_behavior_independence != Independence::NONE
    }

    /// Values of vendors' extensions. Each is 0 where there is no such extension.
    fn cores(&self) -> Option<u32> {
        let told =
            [self.amd.active_compute_unit_count, self.nvidia.shader_sm_count, self.arm.shader_core_count];
        told.into_iter().find(|cores| *cores > 0)
    }

    fn limits(&self) -> Limits {
        let limits = &self.core.limits;
        Limits {
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
            buffer_bytes: match self.maintenance4.max_buffer_size {
                0 => u64::MAX,
                most => most,
            },
            groups: limits.max_compute_work_group_count,
            local_size: limits.max_compute_work_group_size,
            invocations: limits.max_compute_work_group_invocations,
            push_constant_bytes: limits.max_push_constants_size,
            shared_bytes: limits.max_compute_shared_memory_size,
            subgroup_size: self.subgroup.subgroup_size,
            subgroup_sizes: [self.sizes.min_subgroup_size, self.sizes.max_subgroup_size],
            subgroups: self.sizes.max_compute_workgroup_subgroups,
            host_pointer_alignment: self.host_pointers.min_imported_host_pointer_alignment,
            non_coherent_atom: limits.non_coherent_atom_size.max(1),
        }
    }

    /// Names the device and its driver, for files.
    fn cache_key(&self, driver: &str) -> String {
        format!(
            "{}|{driver}|{:08x}:{:08x}:{:08x}|{}",
            text(self.core.device_name_as_c_str()),
            self.core.vendor_id,
            self.core.device_id,
            self.core.driver_version,
            self.core.pipeline_cache_uuid.iter().map(|b| format!("{b:02x}")).collect::<String>()
        )
    }
}

/// The driver's answer about features, without those of versions that the device does not support. The structs' own
/// chains are over.
struct SupportedFeatures {
    core: vk::PhysicalDeviceFeatures,
    v11: vk::PhysicalDeviceVulkan11Features<'static>,
    v12: vk::PhysicalDeviceVulkan12Features<'static>,
    v13: vk::PhysicalDeviceVulkan13Features<'static>,
    fault: vk::PhysicalDeviceFaultFeaturesEXT<'static>,
}

impl SupportedFeatures {
    fn new(
        instance: &ash::Instance,
        raw: vk::PhysicalDevice,
        version: u32,
        clamped: bool,
        has: impl Fn(&CStr) -> bool,
    ) -> SupportedFeatures {
        let mut v11 = vk::PhysicalDeviceVulkan11Features::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
        let mut v13 = vk::PhysicalDeviceVulkan13Features::default();
        let mut features = vk::PhysicalDeviceFeatures2::default();
        let mut synchronization2 = vk::PhysicalDeviceSynchronization2Features::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Features::default();
        let mut fault = vk::PhysicalDeviceFaultFeaturesEXT::default();
        if has(ash::ext::device_fault::NAME) {
            features = features.push_next(&mut fault);
        }
        if clamped || version >= vk::API_VERSION_1_3 {
            features = features.push_next(&mut v11).push_next(&mut v12);
        }
        if clamped {
            features = features.push_next(&mut synchronization2).push_next(&mut maintenance4);
        } else if version >= vk::API_VERSION_1_3 {
            features = features.push_next(&mut v13);
        }
        // SAFETY: contracts 1 and 6.
        unsafe { instance.get_physical_device_features2(raw, &mut features) };
        let core = features.features;
        if clamped {
            v13.synchronization2 = synchronization2.synchronization2;
            v13.maintenance4 = maintenance4.maintenance4;
        }
        SupportedFeatures { core, v11, v12, v13, fault }
    }

    /// The parts of the version and the features that Tidemill needs and the device lacks.
    fn missing(&self, version: u32, clamped: bool) -> Vec<String> {
        if version < vk::API_VERSION_1_3 && !clamped {
            let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
            return vec![format!("speaks Vulkan {major}.{minor}, 1.3 is needed")];
        }
        let needed = [
            (self.v12.timeline_semaphore, "timelineSemaphore"),
            (self.v13.synchronization2, "synchronization2"),
            (self.v13.maintenance4, "maintenance4"),
        ];
        let missing = needed.iter().filter(|(there, _)| *there == vk::FALSE);
        missing.map(|(_, name)| format!("lacks the feature {name}")).collect()
    }
}

/// The features that structs of Vulkan's tell; the others are off.
fn features(supported: &SupportedFeatures, properties: &Properties) -> Features {
    let SupportedFeatures { core, v11, v12, v13, fault } = supported;
    let Properties { subgroup, sizes, .. } = properties;
    let in_compute = subgroup.supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
    let subgroup_op = |op| in_compute && subgroup.supported_operations.contains(op);
    Features {
        subgroup_shuffle: subgroup_op(vk::SubgroupFeatureFlags::SHUFFLE),
        subgroup_shuffle_relative: subgroup_op(vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE),
        subgroup_arithmetic: subgroup_op(vk::SubgroupFeatureFlags::ARITHMETIC),
        subgroup_clustered: subgroup_op(vk::SubgroupFeatureFlags::CLUSTERED),
        subgroup_vote: subgroup_op(vk::SubgroupFeatureFlags::VOTE),
        subgroup_ballot: subgroup_op(vk::SubgroupFeatureFlags::BALLOT),
        subgroup_quad: subgroup_op(vk::SubgroupFeatureFlags::QUAD),
        extended_formats: core.shader_storage_image_extended_formats == vk::TRUE,
        subgroup_extended_types: v12.shader_subgroup_extended_types == vk::TRUE,
        subgroup_size_control: v13.subgroup_size_control == vk::TRUE
            && sizes.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE),
        full_subgroups: v13.compute_full_subgroups == vk::TRUE,
        preserves_denormals: properties.preserves_denormals(),
        int64: core.shader_int64 == vk::TRUE,
        float64: core.shader_float64 == vk::TRUE,
        float16: v12.shader_float16 == vk::TRUE,
        int16: core.shader_int16 == vk::TRUE,
        int8: v12.shader_int8 == vk::TRUE,
        storage16: v11.storage_buffer16_bit_access == vk::TRUE,
        storage8: v12.storage_buffer8_bit_access == vk::TRUE,
        host_query_reset: v12.host_query_reset == vk::TRUE,
        device_fault: fault.device_fault == vk::TRUE,
        ..Features::default()
    }
}
