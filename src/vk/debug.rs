//! Names of objects, as validation messages and RenderDoc show them.

use std::ffi::CString;

use ash::vk;

use super::device::Device;
use super::loader;

/// A name as Vulkan wants it; a NUL inside cuts it.
pub(crate) fn c_name(name: &str) -> CString {
    let bytes: Vec<u8> = name.bytes().take_while(|&b| b != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

impl Device {
    /// Gives an object the name that validation messages and RenderDoc show. Costs nothing where names are not used.
    pub(crate) fn name_object<H: vk::Handle>(&self, handle: H, name: &str) {
        let Some(utils) = self.debug_utils().filter(|_| self.names_objects) else { return };
        let name = c_name(name);
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(handle).object_name(&name);
        // SAFETY: contracts 2, 6 and 10. A name that can't be set is no reason to fail.
        let _ = loader::searching(|| unsafe { utils.set_debug_utils_object_name(&info) });
    }
}
