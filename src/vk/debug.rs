//! Validation messages in, object names and labels out.

use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;

use ash::vk;

use super::device::Device;
use super::loader;
use super::messages::MessageLog;

/// The messages that the instance reports, and their sink.
pub(crate) fn messenger_info(log: &Arc<MessageLog>) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::WARNING | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
        )
        // Not GENERAL: that is the loader talking about drivers it could not open.
        .message_type(
            vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE,
        )
        .pfn_user_callback(Some(on_message))
        .user_data(Arc::as_ptr(log).cast::<c_void>().cast_mut())
}

unsafe extern "system" fn on_message(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    log: *mut c_void,
) -> vk::Bool32 {
    // No code of the host's runs below, and nothing here panics: the caller is a driver.
    // SAFETY: contract 1: the instance that owns the messenger holds the log's Arc.
    let log = unsafe { &*log.cast::<MessageLog>() };
    // SAFETY: the layer passes a valid structure for the length of the call.
    let text = unsafe { (*data).p_message };
    if !text.is_null() {
        // SAFETY: the layer passes a NUL-terminated string for the length of the call.
        let text = unsafe { CStr::from_ptr(text) };
        log.push(text.to_string_lossy().into_owned());
    }
    vk::FALSE
}

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
