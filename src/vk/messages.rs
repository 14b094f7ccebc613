//! Messages of the validation layer, on their way to the sink.
//!
//! The layer speaks inside of Vulkan calls, under whatever locks their callers hold. So a function of the host's is not
//! called there, but on a thread of its own: it may call into the engine, panic, or end the process.

use std::collections::VecDeque;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use ash::vk;
use parking_lot::{Condvar, Mutex};

use super::process;

/// The sink of the validation layer's messages.
pub(crate) type MessageSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Messages of the validation layer, in the order in which they came; or passed on to somebody.
#[derive(Debug, Default)]
pub(crate) struct MessageLog {
    kept: Mutex<Vec<String>>,
    delivery: Option<Delivery>,
}

impl MessageLog {
    /// For a function of the host's. Where there can be no thread for it, messages are kept.
    pub(crate) fn new(sink: Option<MessageSink>) -> MessageLog {
        MessageLog { kept: Mutex::default(), delivery: sink.and_then(Delivery::start) }
    }

    /// The messages that were kept. Returns when the host's function has received all earlier ones.
    pub(crate) fn take(&self) -> Vec<String> {
        self.flush(None);
        std::mem::take(&mut *self.kept.lock())
    }

    /// Waits until the host has heard all that was said before, but no longer than this. The host's own function waits
    /// for nothing.
    pub(crate) fn flush(&self, patience: Option<Duration>) {
        if let Some(delivery) = &self.delivery {
            delivery.flush(patience);
        }
    }

    /// Called inside of Vulkan calls.
    pub(super) fn push(&self, message: String) {
        match &self.delivery {
            Some(delivery) => delivery.push(message),
            None => self.kept.lock().push(message),
        }
    }
}

/// The thread that calls the host.
struct Delivery {
    shared: Arc<Shared>,
    /// `None` only inside `drop`.
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Delivery")
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<String>,
    /// How many were said, and how many the host has heard.
    said: u64,
    heard: u64,
    over: bool,
}

impl Delivery {
    fn start(sink: MessageSink) -> Option<Delivery> {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let work = move || deliver(&theirs, &sink);
        let thread = Builder::new().name("tidemill messages".to_owned()).spawn(work).ok()?;
        Some(Delivery { shared, thread: Some(thread) })
    }

    fn push(&self, message: String) {
        let mut state = self.shared.state.lock();
        state.waiting.push_back(message);
        state.said += 1;
        drop(state);
        self.shared.changed.notify_all();
    }

    fn is_this_thread(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.thread().id() == std::thread::current().id())
    }

    fn flush(&self, patience: Option<Duration>) {
        if self.is_this_thread() {
            return;
        }
        let mut state = self.shared.state.lock();
        let said = state.said;
        let waits = |state: &mut State| state.heard < said;
        match patience {
            None => self.shared.changed.wait_while(&mut state, waits),
            Some(patience) => drop(self.shared.changed.wait_while_for(&mut state, waits, patience)),
        }
    }
}

impl Drop for Delivery {
    /// The instance is gone, so all is said. The host hears it before this returns, unless it is the host's function
    /// that is here.
    fn drop(&mut self) {
        if process::is_forked() {
            std::mem::forget(self.thread.take());
            return;
        }
        self.shared.state.lock().over = true;
        self.shared.changed.notify_all();
        let this = self.is_this_thread();
        if let Some(thread) = self.thread.take().filter(|_| !this) {
            let _ = thread.join();
        }
    }
}

fn deliver(shared: &Shared, sink: &MessageSink) {
    let mut state = shared.state.lock();
    loop {
        shared.changed.wait_while(&mut state, |state| state.waiting.is_empty() && !state.over);
        let Some(message) = state.waiting.pop_front() else { return };
        drop(state);
        // What the host's function throws is reported by the panic hook, and concerns no one else.
        let _ = catch_unwind(AssertUnwindSafe(|| sink(&message)));
        state = shared.state.lock();
        state.heard += 1;
        shared.changed.notify_all();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_heard_in_order_also_after_a_panic_and_before_the_end() {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = heard.clone();
        let log = MessageLog::new(Some(Arc::new(move |message: &str| {
            sink.lock().push(message.to_owned());
            assert_ne!(message, "1", "a sink that panics");
        })));
        (0..3).for_each(|i| log.push(i.to_string()));
        assert_eq!(log.take(), Vec::<String>::new());
        assert_eq!(*heard.lock(), ["0", "1", "2"]);
        log.push("3".to_owned());
        drop(log);
        assert_eq!(heard.lock().len(), 4);
    }

    #[test]
    fn a_sink_may_hold_the_last_of_what_it_listens_to() {
        let slot: Arc<Mutex<Option<MessageLog>>> = Arc::default();
        let (theirs, done) = (slot.clone(), Arc::new(Mutex::new(false)));
        let told = done.clone();
        let log = MessageLog::new(Some(Arc::new(move |_: &str| {
            let log = theirs.lock().take();
            if let Some(log) = &log {
                log.flush(None);
            }
            drop(log);
            *told.lock() = true;
        })));
        let mut place = slot.lock();
        log.push("the end".to_owned());
        *place = Some(log);
        drop(place);
        while !*done.lock() {
            std::thread::yield_now();
        }
    }
}
