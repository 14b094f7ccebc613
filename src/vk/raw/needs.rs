//! Features and extensions that Tidemill uses. This list is the only one: devices of its own are made by it, too.

use std::ffi::{CStr, CString, c_void};

use ash::vk;

use crate::vk::describe::describe;
use crate::vk::physical::{DeviceInfo, Features};

/// The features of Vulkan 1.3 that every device must have enabled, by their names in the specification.
pub const FEATURES_NEEDED: [&str; 3] = ["timelineSemaphore", "synchronization2", "maintenance4"];

/// The features that are used where they are enabled: some for speed, some for users' own kernels.
pub const FEATURES_USED: [&str; 13] = [
    "subgroupSizeControl",
    "computeFullSubgroups",
    "hostQueryReset",
    "shaderStorageImageExtendedFormats",
    "shaderSubgroupExtendedTypes",
    "shaderInt64",
    "shaderFloat64",
    "shaderInt16",
    "shaderFloat16",
    "shaderInt8",
    "storageBuffer16BitAccess",
    "storageBuffer8BitAccess",
    "deviceFault",
];

/// The structs that features are in, without their chain.
#[derive(Default)]
pub(crate) struct FeatureChain<'a> {
    pub(crate) core: vk::PhysicalDeviceFeatures,
    pub(crate) v11: vk::PhysicalDeviceVulkan11Features<'a>,
    pub(crate) v12: vk::PhysicalDeviceVulkan12Features<'a>,
    pub(crate) v13: vk::PhysicalDeviceVulkan13Features<'a>,
    pub(crate) fault: vk::PhysicalDeviceFaultFeaturesEXT<'a>,
}

impl FeatureChain<'_> {
    /// Where a feature is switched on; `None` for a name that is in neither list.
    fn bit(&mut self, name: &str) -> Option<&mut vk::Bool32> {
        Some(match name {
            "timelineSemaphore" => &mut self.v12.timeline_semaphore,
            "synchronization2" => &mut self.v13.synchronization2,
            "maintenance4" => &mut self.v13.maintenance4,
            "subgroupSizeControl" => &mut self.v13.subgroup_size_control,
            "computeFullSubgroups" => &mut self.v13.compute_full_subgroups,
            "hostQueryReset" => &mut self.v12.host_query_reset,
            "shaderStorageImageExtendedFormats" => &mut self.core.shader_storage_image_extended_formats,
            "shaderSubgroupExtendedTypes" => &mut self.v12.shader_subgroup_extended_types,
            "shaderInt64" => &mut self.core.shader_int64,
            "shaderFloat64" => &mut self.core.shader_float64,
            "shaderInt16" => &mut self.core.shader_int16,
            "shaderFloat16" => &mut self.v12.shader_float16,
            "shaderInt8" => &mut self.v12.shader_int8,
            "storageBuffer16BitAccess" => &mut self.v11.storage_buffer16_bit_access,
            "storageBuffer8BitAccess" => &mut self.v12.storage_buffer8_bit_access,
            "deviceFault" => &mut self.fault.device_fault,
            _ => return None,
        })
    }

    /// Switches on what is needed, and what is used and there.
    pub(crate) fn enable(&mut self, mut there: Features) {
        for name in FEATURES_NEEDED {
            self.bit(name).into_iter().for_each(|bit| *bit = vk::TRUE);
        }
        for name in FEATURES_USED {
            if found(&mut there, name).is_some_and(|found| *found) {
                self.bit(name).into_iter().for_each(|bit| *bit = vk::TRUE);
            }
        }
    }
}

/// Whether a device was found to have a feature of [`FEATURES_USED`].
fn found<'f>(features: &'f mut Features, name: &str) -> Option<&'f mut bool> {
    Some(match name {
        "subgroupSizeControl" => &mut features.subgroup_size_control,
        "computeFullSubgroups" => &mut features.full_subgroups,
        "hostQueryReset" => &mut features.host_query_reset,
        "shaderStorageImageExtendedFormats" => &mut features.extended_formats,
        "shaderSubgroupExtendedTypes" => &mut features.subgroup_extended_types,
        "shaderInt64" => &mut features.int64,
        "shaderFloat64" => &mut features.float64,
        "shaderInt16" => &mut features.int16,
        "shaderFloat16" => &mut features.float16,
        "shaderInt8" => &mut features.int8,
        "storageBuffer16BitAccess" => &mut features.storage16,
        "storageBuffer8BitAccess" => &mut features.storage8,
        "deviceFault" => &mut features.device_fault,
        _ => return None,
    })
}

/// The extensions that are wanted of a device which has them, and whether it can't do without.
pub(crate) fn wanted_extensions(info: &DeviceInfo) -> Vec<(&'static CStr, bool)> {
    let has = &info.features;
    let wanted = [
        (has.push_descriptors, ash::khr::push_descriptor::NAME, false),
        (has.memory_budget, ash::ext::memory_budget::NAME, false),
        (has.host_pointers, ash::ext::external_memory_host::NAME, false),
        (has.device_fault, ash::ext::device_fault::NAME, false),
        (has.portability_subset, ash::khr::portability_subset::NAME, true),
        (info.clamped, ash::khr::synchronization2::NAME, true),
        (info.clamped, ash::khr::maintenance4::NAME, true),
    ];
    let wanted = wanted.into_iter().filter_map(|(there, name, needed)| there.then_some((name, needed)));
    wanted.chain(info.calibration.map(|name| (name, false))).collect()
}

/// Features and extensions that Tidemill needs of a physical device, and those that it can use. A host queries them
/// before it makes its device.
///
/// ```no_run
/// # fn make(instance: &ash::Instance, physical: ash::vk::PhysicalDevice, queues: &[ash::vk::DeviceQueueCreateInfo<'_>]) {
/// use ash::vk;
/// // SAFETY: both handles are valid.
/// let needs = unsafe { tidemill::interop::DeviceNeeds::of(instance, physical) };
/// assert!(needs.missing().is_empty(), "{:?}", needs.missing());
/// // The host's own wishes first, then Tidemill's.
/// let mut core = vk::PhysicalDeviceFeatures::default().sampler_anisotropy(true);
/// let (mut v11, mut v12, mut v13) = Default::default();
/// needs.enable(&mut core, &mut v11, &mut v12, &mut v13);
/// let mut extensions = vec![ash::khr::swapchain::NAME.as_ptr()];
/// extensions.extend(needs.extensions().iter().map(|name| name.as_ptr()));
/// let made_with = vk::DeviceCreateInfo::default()
///     .queue_create_infos(queues)
///     .enabled_extension_names(&extensions)
///     .enabled_features(&core)
///     .push_next(&mut v11)
///     .push_next(&mut v12)
///     .push_next(&mut v13);
/// # let _ = made_with; }
/// ```
#[derive(Clone, Debug)]
pub struct DeviceNeeds {
    features: Features,
    names: Vec<&'static str>,
    extensions: Vec<&'static CStr>,
    missing: Vec<String>,
}

impl DeviceNeeds {
    /// Asks a physical device.
    ///
    /// # Safety
    ///
    /// Both handles are valid and belong together.
    pub unsafe fn of(instance: &ash::Instance, physical_device: vk::PhysicalDevice) -> DeviceNeeds {
        let info = describe(instance, 0, physical_device, None);
        let mut features = info.features;
        let used = FEATURES_USED.into_iter();
        let used = used.filter(|name| found(&mut features, name).is_some_and(|found| *found));
        DeviceNeeds {
            names: FEATURES_NEEDED.into_iter().chain(used).collect(),
            features: info.features,
            extensions: wanted_extensions(&info).into_iter().map(|(name, _)| name).collect(),
            missing: info.refused,
        }
    }

    /// Why this device can't be used at all, each reason in words; empty if it can.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The device extensions to enable: those the device has that Tidemill uses. All but `VK_KHR_portability_subset`
    /// may be left out; what they bring is then done without.
    pub fn extensions(&self) -> &[&'static CStr] {
        &self.extensions
    }

    /// The features to enable, by their names in the specification: [`FEATURES_NEEDED`], and of [`FEATURES_USED`] what
    /// the device has.
    pub fn features(&self) -> &[&'static str] {
        &self.names
    }

    /// Switches the features on in the host's own structs; what else is in them stays as it is. `deviceFault` has a
    /// struct of its own, `VkPhysicalDeviceFaultFeaturesEXT`, which a host chains itself if it wants to know why a
    /// device was lost.
    pub fn enable(
        &self,
        core: &mut vk::PhysicalDeviceFeatures,
        v11: &mut vk::PhysicalDeviceVulkan11Features<'_>,
        v12: &mut vk::PhysicalDeviceVulkan12Features<'_>,
        v13: &mut vk::PhysicalDeviceVulkan13Features<'_>,
    ) {
        let mut chain = FeatureChain::default();
        chain.enable(self.features);
        let c = &chain.core;
        core.shader_storage_image_extended_formats |= c.shader_storage_image_extended_formats;
        core.shader_int64 |= c.shader_int64;
        core.shader_float64 |= c.shader_float64;
        core.shader_int16 |= c.shader_int16;
        v11.storage_buffer16_bit_access |= chain.v11.storage_buffer16_bit_access;
        v12.timeline_semaphore |= chain.v12.timeline_semaphore;
        v12.host_query_reset |= chain.v12.host_query_reset;
        v12.shader_subgroup_extended_types |= chain.v12.shader_subgroup_extended_types;
        v12.shader_float16 |= chain.v12.shader_float16;
        v12.shader_int8 |= chain.v12.shader_int8;
        v12.storage_buffer8_bit_access |= chain.v12.storage_buffer8_bit_access;
        v13.synchronization2 |= chain.v13.synchronization2;
        v13.maintenance4 |= chain.v13.maintenance4;
        v13.subgroup_size_control |= chain.v13.subgroup_size_control;
        v13.compute_full_subgroups |= chain.v13.compute_full_subgroups;
    }
}

/// Features and extensions that a host enabled when it made its device.
#[derive(Clone, Debug)]
pub(crate) struct Enabled {
    extensions: Vec<CString>,
    features: Vec<&'static str>,
}

impl Enabled {
    /// Reads what a device was made with, features in structs of their own included.
    ///
    /// # Safety
    ///
    /// All that it points to can be read.
    pub(crate) unsafe fn from_create_info(info: &vk::DeviceCreateInfo<'_>) -> Enabled {
        let mut chain = FeatureChain::default();
        // SAFETY: the caller vouches for it; null is none.
        if let Some(core) = unsafe { info.p_enabled_features.as_ref() } {
            chain.core = *core;
        }
        let mut next = info.p_next;
        // SAFETY: the caller vouches for it; every struct of a chain begins like this.
        while let Some(base) = unsafe { next.cast::<vk::BaseInStructure<'_>>().as_ref() } {
            // SAFETY: the caller vouches for it.
            unsafe { read_struct(&mut chain, base.s_type, next) };
            next = base.p_next.cast();
        }
        let mut extensions = Vec::new();
        for i in 0..info.enabled_extension_count as usize {
            // SAFETY: the caller vouches for the list's length.
            let name = unsafe { info.pp_enabled_extension_names.add(i) };
            // SAFETY: as above.
            let name = unsafe { *name };
            // SAFETY: the caller vouches for its items.
            extensions.push(unsafe { CStr::from_ptr(name) }.to_owned());
        }
        let on = |name: &&str| chain.bit(name).is_some_and(|bit| *bit != vk::FALSE);
        let features = FEATURES_NEEDED.into_iter().chain(FEATURES_USED).filter(on).collect();
        Enabled { extensions, features }
    }

    fn has_extension(&self, name: &CStr) -> bool {
        self.extensions.iter().any(|known| known.as_c_str() == name)
    }

    /// Takes from a device's description what is not enabled; gives what can't be done without.
    pub(crate) fn restrict(&self, info: &mut DeviceInfo) -> Vec<String> {
        let lacks = |name: &&str| !self.features.contains(name);
        let mut missing: Vec<String> =
            FEATURES_NEEDED.into_iter().filter(lacks).map(|name| format!("the feature {name}")).collect();
        for name in FEATURES_USED.into_iter().filter(lacks) {
            found(&mut info.features, name).into_iter().for_each(|found| *found = false);
        }
        for (name, needed) in wanted_extensions(info) {
            if self.has_extension(name) {
                continue;
            }
            if needed {
                missing.push(format!("the extension {}", name.to_string_lossy()));
            } else if name == ash::khr::push_descriptor::NAME {
                info.features.push_descriptors = false;
            } else if name == ash::ext::memory_budget::NAME {
                info.features.memory_budget = false;
            } else if name == ash::ext::external_memory_host::NAME {
                info.features.host_pointers = false;
            } else if name == ash::ext::device_fault::NAME {
                info.features.device_fault = false;
            } else {
                // The KHR name of calibrated timestamps comes first; the host may have taken the other.
                let ext = ash::ext::calibrated_timestamps::NAME;
                info.calibration = self.has_extension(ext).then_some(ext);
                info.features.calibrated_timestamps = info.calibration.is_some();
            }
        }
        missing
    }
}

/// Notes the features of one struct of a chain.
///
/// # Safety
///
/// `at` points to a struct of the kind that `kind` says.
unsafe fn read_struct(chain: &mut FeatureChain<'_>, kind: vk::StructureType, at: *const c_void) {
    use vk::StructureType as Kind;
    match kind {
        Kind::PHYSICAL_DEVICE_FEATURES_2 => {
            // SAFETY: the caller vouches for it.
            chain.core = unsafe { &*at.cast::<vk::PhysicalDeviceFeatures2<'_>>() }.features;
        }
        Kind::PHYSICAL_DEVICE_VULKAN_1_1_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceVulkan11Features<'_>>() };
            chain.v11.storage_buffer16_bit_access |= given.storage_buffer16_bit_access;
        }
        Kind::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceVulkan12Features<'_>>() };
            chain.v12.timeline_semaphore |= given.timeline_semaphore;
            chain.v12.host_query_reset |= given.host_query_reset;
            chain.v12.shader_subgroup_extended_types |= given.shader_subgroup_extended_types;
            chain.v12.shader_float16 |= given.shader_float16;
            chain.v12.shader_int8 |= given.shader_int8;
            chain.v12.storage_buffer8_bit_access |= given.storage_buffer8_bit_access;
        }
        Kind::PHYSICAL_DEVICE_VULKAN_1_3_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceVulkan13Features<'_>>() };
            chain.v13.synchronization2 |= given.synchronization2;
            chain.v13.maintenance4 |= given.maintenance4;
            chain.v13.subgroup_size_control |= given.subgroup_size_control;
            chain.v13.compute_full_subgroups |= given.compute_full_subgroups;
        }
        // SAFETY: the caller vouches for it.
        _ => unsafe { read_struct_of_extension(chain, kind, at) },
    }
}

/// The same, of an extension; those that are not known are skipped.
///
/// # Safety
///
/// `at` points to a struct of the kind that `kind` says.
unsafe fn read_struct_of_extension(chain: &mut FeatureChain<'_>, kind: vk::StructureType, at: *const c_void) {
    use vk::StructureType as Kind;
    match kind {
        Kind::PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceSubgroupSizeControlFeatures<'_>>() };
            chain.v13.subgroup_size_control |= given.subgroup_size_control;
            chain.v13.compute_full_subgroups |= given.compute_full_subgroups;
        }
        Kind::PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceTimelineSemaphoreFeatures<'_>>() };
            chain.v12.timeline_semaphore |= given.timeline_semaphore;
        }
        Kind::PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceSynchronization2Features<'_>>() };
            chain.v13.synchronization2 |= given.synchronization2;
        }
        Kind::PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceMaintenance4Features<'_>>() };
            chain.v13.maintenance4 |= given.maintenance4;
        }
        Kind::PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceHostQueryResetFeatures<'_>>() };
            chain.v12.host_query_reset |= given.host_query_reset;
        }
        Kind::PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures<'_>>() };
            chain.v12.shader_subgroup_extended_types |= given.shader_subgroup_extended_types;
        }
        Kind::PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceShaderFloat16Int8Features<'_>>() };
            chain.v12.shader_float16 |= given.shader_float16;
            chain.v12.shader_int8 |= given.shader_int8;
        }
        Kind::PHYSICAL_DEVICE_FAULT_FEATURES_EXT => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDeviceFaultFeaturesEXT<'_>>() };
            chain.fault.device_fault |= given.device_fault;
        }
        Kind::PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDevice16BitStorageFeatures<'_>>() };
            chain.v11.storage_buffer16_bit_access |= given.storage_buffer16_bit_access;
        }
        Kind::PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES => {
            // SAFETY: the caller vouches for it.
            let given = unsafe { &*at.cast::<vk::PhysicalDevice8BitStorageFeatures<'_>>() };
            chain.v12.storage_buffer8_bit_access |= given.storage_buffer8_bit_access;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_feature_has_a_place() {
        let mut chain = FeatureChain::default();
        let mut features = Features::default();
        for name in FEATURES_NEEDED.into_iter().chain(FEATURES_USED) {
            assert!(chain.bit(name).is_some(), "{name}");
        }
        for name in FEATURES_USED {
            assert!(found(&mut features, name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_a_device_was_made_with_is_read_from_any_kind_of_struct() {
        let mut timeline = vk::PhysicalDeviceTimelineSemaphoreFeatures::default().timeline_semaphore(true);
        let mut v13 = vk::PhysicalDeviceVulkan13Features::default().synchronization2(true);
        let mut sizes = vk::PhysicalDeviceSubgroupSizeControlFeatures::default().subgroup_size_control(true);
        let core = vk::PhysicalDeviceFeatures::default().shader_int64(true);
        let names = [ash::khr::push_descriptor::NAME.as_ptr()];
        let info = vk::DeviceCreateInfo::default()
            .enabled_extension_names(&names)
            .enabled_features(&core)
            .push_next(&mut timeline)
            .push_next(&mut v13)
            .push_next(&mut sizes);
        // SAFETY: all of it is alive.
        let enabled = unsafe { Enabled::from_create_info(&info) };
        let expected = ["timelineSemaphore", "synchronization2", "subgroupSizeControl", "shaderInt64"];
        assert_eq!(enabled.features, expected);
        assert!(enabled.has_extension(ash::khr::push_descriptor::NAME));

        let mut features2 = vk::PhysicalDeviceFeatures2 { features: core, ..Default::default() };
        let info = vk::DeviceCreateInfo::default().push_next(&mut features2);
        // SAFETY: as above.
        let enabled = unsafe { Enabled::from_create_info(&info) };
        assert_eq!((enabled.features.as_slice(), enabled.extensions.len()), (&["shaderInt64"][..], 0));
    }
}
