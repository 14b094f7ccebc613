//! Work that must end before the process tears its libraries down.
//!
//! A driver's own exit handlers destroy its compiler; a background thread still inside that compiler then crashes
//! the process on its way out. Handlers run in the reverse order of registration, and ours registers after the
//! driver was loaded, so it runs before.

use std::ffi::c_int;
use std::sync::{Arc, Once};

use parking_lot::Mutex;

type Hook = Arc<dyn Fn() + Send + Sync>;

static HOOKS: Mutex<Vec<(u64, Hook)>> = Mutex::new(Vec::new());
static REGISTER: Once = Once::new();
static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

unsafe extern "C" {
    fn atexit(callback: extern "C" fn()) -> c_int;
}

extern "C" fn run_hooks() {
    let hooks = std::mem::take(&mut *HOOKS.lock());
    for (_, hook) in hooks {
        hook();
    }
}

/// Removes its hook when dropped.
#[derive(Debug)]
pub(crate) struct ExitHook(u64);

impl ExitHook {
    /// Runs `hook` when the process exits, unless this is dropped before.
    pub(crate) fn new(hook: Hook) -> ExitHook {
        REGISTER.call_once(|| {
            // SAFETY: a plain C function with a callback that never unwinds. A failure leaves us without hooks.
            let _ = unsafe { atexit(run_hooks) };
        });
        let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        HOOKS.lock().push((id, hook));
        ExitHook(id)
    }
}

impl Drop for ExitHook {
    fn drop(&mut self) {
        HOOKS.lock().retain(|(id, _)| *id != self.0);
    }
}
