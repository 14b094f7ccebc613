//! Validation messages in, object names and labels out.

use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;

use super::device::Device;

/// Who hears the messages of the validation layer.
pub(crate) type MessageSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Messages of the validation layer, in the order in which they came; or passed on to somebody.
#[derive(Default)]
pub(crate) struct MessageLog {
    kept: Mutex<Vec<String>>,
    sink: Option<MessageSink>,
}

impl MessageLog {
    pub(crate) fn new(sink: Option<MessageSink>) -> MessageLog {
        MessageLog { kept: Mutex::default(), sink }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.kept.lock())
    }

    fn push(&self, message: String) {
        match &self.sink {
            Some(sink) => sink(&message),
            None => self.kept.lock().push(message),
        }
    }
}

/// What the instance is told to report, and where to.
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
    /// Gives an object the name that validation messages and RenderDoc show. Costs nothing where nobody looks.
    pub(crate) fn name_object<H: vk::Handle>(&self, handle: H, name: &str) {
        let Some(utils) = self.debug_utils() else { return };
        let name = c_name(name);
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(handle).object_name(&name);
        // SAFETY: contracts 2 and 6. A name that can't be set is no reason to fail.
        let _ = unsafe { utils.set_debug_utils_object_name(&info) };
    }
}
