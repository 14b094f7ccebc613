//! The accelerator that tests run on. A validation message fails the test that caused it.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tidemill::{Accelerator, Config, Prewarm};

/// An accelerator of the test's own, checked for messages and touched guard bytes when it goes.
pub struct Gpu {
    /// `None` only inside `drop`.
    accelerator: Option<Accelerator>,
    messages: Arc<Mutex<Vec<String>>>,
    /// Guard bytes that a test touched on purpose.
    touched: AtomicU64,
}

/// With validation, memory checks, and without files or background work.
pub fn config() -> Config {
    Config::new().validation(true).memory_checks(true).no_cache().prewarm(Prewarm::Off)
}

#[allow(dead_code, reason = "not every test binary that includes this uses it")]
pub fn gpu() -> Gpu {
    gpu_with(config())
}

pub fn gpu_with(config: Config) -> Gpu {
    let messages: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = messages.clone();
    let config = config.on_message(move |message| sink.lock().unwrap().push(message.to_owned()));
    let accelerator =
        Accelerator::new(&config).expect("the tests need a Vulkan device and the validation layer");
    Gpu { accelerator: Some(accelerator), messages, touched: AtomicU64::new(0) }
}

impl Deref for Gpu {
    type Target = Accelerator;

    fn deref(&self) -> &Accelerator {
        self.accelerator.as_ref().expect("there until drop")
    }
}

impl Gpu {
    /// What the validation layer has said so far; for tests that provoke it.
    #[allow(dead_code, reason = "only some test binaries provoke messages")]
    pub fn take_messages(&self) -> Vec<String> {
        // Until all was heard.
        let kept = self.accelerator.as_ref().map(Accelerator::validation_messages);
        assert!(kept.is_none_or(|kept| kept.is_empty()), "they go to the sink");
        std::mem::take(&mut *self.messages.lock().unwrap())
    }

    /// How many bytes behind tensors were written so far; for tests that provoke it.
    #[allow(dead_code, reason = "only some test binaries provoke it")]
    pub fn take_guard_bytes_touched(&self) -> u64 {
        let now = self.stats().pool.guard_bytes_touched;
        now - self.touched.swap(now, Ordering::Relaxed)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let accelerator = self.accelerator.take().expect("there until drop");
        if std::thread::panicking() {
            return;
        }
        let _ = accelerator.synchronize();
        let touched = accelerator.stats().pool.guard_bytes_touched;
        assert_eq!(touched, self.touched.load(Ordering::Relaxed), "bytes behind a tensor were written");
        // With the last handle goes the device, and the layer says what was left behind.
        drop(accelerator);
        let messages = self.take_messages();
        assert!(messages.is_empty(), "validation says:\n{}", messages.join("\n\n"));
    }
}
