//! Queries of a host before it makes its device.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;

use tidemill::interop::DeviceNeeds;
use tidemill::interop::ash::vk;

use crate::arguments::{given, handle, place};
use crate::host_device::{entry, instance, physical_device, tm_vulkan_fn};
use crate::status::{Failure, guard, guarded, tm_status};

/// Features and extensions that Tidemill needs of a physical device, and those that it uses where the device has them.
#[derive(Debug)]
pub struct tm_device_needs {
    needs: DeviceNeeds,
    missing: Names<CString>,
    extensions: Names<&'static CStr>,
    features: Names<CString>,
}

/// Names as C takes lists of them.
#[derive(Debug)]
struct Names<S> {
    /// The memory behind the pointers.
    _names: Vec<S>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are to the names that stand beside them, which never change.
unsafe impl<S: Send> Send for Names<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for Names<S> {}

impl<S: AsRef<CStr>> Names<S> {
    fn new(names: Vec<S>) -> Names<S> {
        let pointers = names.iter().map(|name| name.as_ref().as_ptr()).collect();
        Names { _names: names, pointers }
    }

    fn give(&self, count: Option<&mut MaybeUninit<u32>>) -> *const *const c_char {
        if let Some(count) = count {
            count.write(self.pointers.len() as u32);
        }
        self.pointers.as_ptr()
    }
}

fn owned<'a>(names: impl IntoIterator<Item = &'a str>) -> Names<CString> {
    let name = |name: &str| CString::new(name.replace('\0', " ")).unwrap_or_default();
    Names::new(names.into_iter().map(name).collect())
}

/// Asks a physical device (VkPhysicalDevice) of an instance (VkInstance) of Vulkan 1.3. `get_instance_proc_addr` is
/// vkGetInstanceProcAddr, or NULL for that of the system's loader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_device_needs_of(
    get_instance_proc_addr: tm_vulkan_fn,
    instance: *mut c_void,
    physical_device: *mut c_void,
    needs: Option<&mut MaybeUninit<*mut tm_device_needs>>,
) -> tm_status {
    guard("tm_device_needs_of", || {
        let out = place(needs, "needs")?;
        // SAFETY: the caller's functions and handles are Vulkan's.
        let entry = unsafe { entry(get_instance_proc_addr) }?;
        // SAFETY: as above.
        let instance = unsafe { self::instance(&entry, instance) }?;
        let physical_device = self::physical_device(physical_device)?;
        // SAFETY: the caller's handles belong together.
        let needs = unsafe { DeviceNeeds::of(&instance, physical_device) };
        *out = handle(tm_device_needs {
            missing: owned(needs.missing().iter().map(String::as_str)),
            extensions: Names::new(needs.extensions().to_vec()),
            features: owned(needs.features().iter().copied()),
            needs,
        });
        Ok(())
    })
}

/// Why this device can't be used at all, each reason in words: `count` strings, which are good as long as the handle.
/// None if it can. NULL and 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tm_device_needs_missing(
    needs: Option<&tm_device_needs>,
    count: Option<&mut MaybeUninit<u32>>,
) -> *const *const c_char {
    names(needs, count, |needs, count| needs.missing.give(count))
}

/// The device extensions to enable, for ppEnabledExtensionNames: those the device has that Tidemill uses. All but
/// VK_KHR_portability_subset may be left out; what they bring is then done without. As tm_device_needs_missing.
#[unsafe(no_mangle)]
pub extern "C" fn tm_device_needs_extensions(
    needs: Option<&tm_device_needs>,
    count: Option<&mut MaybeUninit<u32>>,
) -> *const *const c_char {
    names(needs, count, |needs, count| needs.extensions.give(count))
}

/// The features to enable, by their names in the specification. tm_device_needs_enable does it. As
/// tm_device_needs_missing.
#[unsafe(no_mangle)]
pub extern "C" fn tm_device_needs_features(
    needs: Option<&tm_device_needs>,
    count: Option<&mut MaybeUninit<u32>>,
) -> *const *const c_char {
    names(needs, count, |needs, count| needs.features.give(count))
}

fn names(
    needs: Option<&tm_device_needs>,
    count: Option<&mut MaybeUninit<u32>>,
    give: impl FnOnce(&tm_device_needs, Option<&mut MaybeUninit<u32>>) -> *const *const c_char,
) -> *const *const c_char {
    guarded(std::ptr::null(), || match (needs, count) {
        (Some(needs), count) => give(needs, count),
        (None, Some(count)) => {
            count.write(0);
            std::ptr::null()
        }
        (None, None) => std::ptr::null(),
    })
}

/// Switches the features on in the host's own structs: VkPhysicalDeviceFeatures, and those of Vulkan 1.1, 1.2 and 1.3
/// (VkPhysicalDeviceVulkan11Features and so on). What else is in them stays as it is. `deviceFault` has a struct of
/// its own, VkPhysicalDeviceFaultFeaturesEXT, which a host chains itself if it wants to know why a device was lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_device_needs_enable(
    needs: Option<&tm_device_needs>,
    core: *mut c_void,
    v11: *mut c_void,
    v12: *mut c_void,
    v13: *mut c_void,
) -> tm_status {
    guard("tm_device_needs_enable", || {
        let needs = given(needs, "needs")?;
        // SAFETY: contract 1, with the structs that are named.
        let core = given(unsafe { core.cast::<vk::PhysicalDeviceFeatures>().as_mut() }, "core")?;
        // SAFETY: as above.
        let v11 = unsafe { v11.cast::<vk::PhysicalDeviceVulkan11Features<'_>>().as_mut() };
        // SAFETY: as above.
        let v12 = unsafe { v12.cast::<vk::PhysicalDeviceVulkan12Features<'_>>().as_mut() };
        // SAFETY: as above.
        let v13 = unsafe { v13.cast::<vk::PhysicalDeviceVulkan13Features<'_>>().as_mut() };
        let (v11, v12, v13) = (given(v11, "v11")?, given(v12, "v12")?, given(v13, "v13")?);
        let kinds = [
            ("v11", v11.s_type, vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_1_FEATURES),
            ("v12", v12.s_type, vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES),
            ("v13", v13.s_type, vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_3_FEATURES),
        ];
        for (name, is, wanted) in kinds {
            if is != wanted {
                let message = format!("{name} has the sType {}, not {}", is.as_raw(), wanted.as_raw());
                return Err(Failure::argument(message));
            }
        }
        needs.needs.enable(core, v11, v12, v13);
        Ok(())
    })
}

/// Frees the handle, and the strings that it gave. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_device_needs_free(needs: Option<Box<tm_device_needs>>) {
    guarded((), || drop(needs));
}
