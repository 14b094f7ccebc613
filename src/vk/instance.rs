//! The loader and the instance.

use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;

use ash::vk;

use super::messages::{MessageLog, MessageSink, messenger_info};
use super::{check, loader, process};
use crate::error::{Error, Result};

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

#[cfg(windows)]
const LOADER: &str = "vulkan-1.dll";
#[cfg(target_vendor = "apple")]
const LOADER: &str = "libvulkan.dylib";
#[cfg(target_os = "android")]
const LOADER: &str = "libvulkan.so";
#[cfg(not(any(windows, target_vendor = "apple", target_os = "android")))]
const LOADER: &str = "libvulkan.so.1";

/// A Vulkan instance and, with validation, its messages.
pub(crate) struct Instance {
    pub(crate) raw: ash::Instance,
    pub(crate) log: Arc<MessageLog>,
    /// `VK_EXT_debug_utils` is enabled: there are names and labels.
    pub(crate) debug_utils: bool,
    messenger: Option<(ash::ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    /// It is the host's, and so not ours to destroy.
    adopted: bool,
    // Holds the loader's library: dropped last.
    entry: ash::Entry,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("raw", &self.raw.handle()).finish_non_exhaustive()
    }
}

/// Loads the system's Vulkan loader.
fn load_entry() -> Result<ash::Entry> {
    // SAFETY: the loader's initialisation has no preconditions.
    let entry = unsafe { ash::Entry::load() };
    entry.map_err(|e| Error::NoLoader { looked_for: LOADER, detail: e.to_string() })
}

/// Where the loader looks for drivers, in a user's words.
pub(super) fn driver_search() -> String {
    let set = |name| std::env::var(name).ok().map(|value| format!("{name} is {value:?}"));
    set("VK_DRIVER_FILES").or_else(|| set("VK_ICD_FILENAMES")).unwrap_or_else(|| {
        "it looks for driver files in vulkan/icd.d below /usr/share, /usr/local/share and /etc".to_owned()
    })
}

impl Instance {
    /// An instance on the system's loader, or on an entry from outside (tests wrap one to inject faults).
    pub(crate) fn new(
        entry: Option<ash::Entry>,
        validation: bool,
        sink: Option<MessageSink>,
    ) -> Result<Arc<Instance>> {
        process::claim()?;
        let entry = entry.map_or_else(load_entry, Ok)?;
        let no_driver = |call: &'static str, code: vk::Result| match code {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
                Error::NoDriver { detail: format!("{call}: {code:?}"), search: driver_search() }
            }
            vk::Result::ERROR_LAYER_NOT_PRESENT => {
                Error::LayerMissing { layer: "VK_LAYER_KHRONOS_validation" }
            }
            code => Error::Vulkan { call, result: format!("{code:?}") },
        };

        let mut layers = Vec::new();
        if validation {
            // SAFETY: contract 1.
            let there = unsafe { entry.enumerate_instance_layer_properties() };
            let there = check("vkEnumerateInstanceLayerProperties", there)?;
            if !there.iter().any(|l| l.layer_name_as_c_str() == Ok(VALIDATION_LAYER)) {
                return Err(Error::LayerMissing { layer: "VK_LAYER_KHRONOS_validation" });
            }
            layers.push(VALIDATION_LAYER.as_ptr());
        }
        // SAFETY: contract 1.
        let there = unsafe { entry.enumerate_instance_extension_properties(None) };
        let there = there.map_err(|e| no_driver("vkEnumerateInstanceExtensionProperties", e))?;
        let has = |name: &CStr| there.iter().any(|e| e.extension_name_as_c_str() == Ok(name));
        let debug_utils = has(ash::ext::debug_utils::NAME);
        let mut extensions = Vec::new();
        if debug_utils {
            extensions.push(ash::ext::debug_utils::NAME.as_ptr());
        }
        let mut flags = vk::InstanceCreateFlags::empty();
        if has(ash::khr::portability_enumeration::NAME) {
            // Without it the loader hides MoltenVK.
            extensions.push(ash::khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }

        let app = vk::ApplicationInfo::default()
            .engine_name(c"tidemill")
            .engine_version(vk::make_api_version(0, 0, 1, 0))
            .api_version(vk::API_VERSION_1_3);
        let log = Arc::new(MessageLog::new(sink));
        let mut during_creation = messenger_info(&log);
        let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
        let mut info = vk::InstanceCreateInfo::default()
            .application_info(&app)
            .flags(flags)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions);
        if validation {
            info = info.push_next(&mut features);
            if debug_utils {
                info = info.push_next(&mut during_creation);
            }
        }
        // SAFETY: contracts 6 and 10.
        let raw = loader::changing(|| unsafe { entry.create_instance(&info, None) });
        let raw = raw.map_err(|e| no_driver("vkCreateInstance", e))?;

        let mut instance = Instance { raw, log, debug_utils, messenger: None, adopted: false, entry };
        if validation && debug_utils {
            let utils = ash::ext::debug_utils::Instance::new(&instance.entry, &instance.raw);
            // SAFETY: contracts 1 and 6; `Drop` destroys it before the log can go.
            let messenger =
                unsafe { utils.create_debug_utils_messenger(&messenger_info(&instance.log), None) };
            let messenger = check("vkCreateDebugUtilsMessengerEXT", messenger)?;
            instance.messenger = Some((utils, messenger));
        }
        Ok(Arc::new(instance))
    }

    /// An instance of the host's. What a layer says of it goes to the host.
    pub(crate) fn adopt(entry: ash::Entry, raw: ash::Instance, debug_utils: bool) -> Arc<Instance> {
        let log = Arc::new(MessageLog::default());
        Arc::new(Instance { raw, log, debug_utils, messenger: None, adopted: true, entry })
    }

    pub(crate) fn entry(&self) -> &ash::Entry {
        &self.entry
    }

    /// Whether calls go through the validation layer, as far as the engine has asked for it.
    pub(crate) fn is_validated(&self) -> bool {
        self.messenger.is_some()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some((utils, messenger)) = self.messenger.take() {
            // SAFETY: contract 1: made from this instance, destroyed once.
            unsafe { utils.destroy_debug_utils_messenger(messenger, None) };
        }
        if !self.adopted {
            // SAFETY: contracts 1 and 10: every child holds an Arc of this and so is gone.
            loader::changing(|| unsafe { self.raw.destroy_instance(None) });
        }
    }
}
