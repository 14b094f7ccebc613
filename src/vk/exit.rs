//! Work that must end before the process tears its libraries down.
//!
//! A driver's own exit handlers destroy its compiler; a thread still inside that compiler then crashes the process on
//! its way out. Handlers run in the reverse order of registration, and the compiler registers some of them only when
//! it is first at work. So ours registers once more whenever the driver may have done so, to run before them; only the
//! first run does anything.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

type Hook = Arc<dyn Fn() + Send + Sync>;

static HOOKS: Mutex<Vec<(u64, Hook)>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn atexit(callback: extern "C" fn()) -> c_int;
}

extern "C" fn run_hooks() {
    let hooks = std::mem::take(&mut *HOOKS.lock());
    for (_, hook) in hooks {
        hook();
    }
}

/// Lets the hooks run before everything that was registered until now.
pub(crate) fn run_first() {
    // The list of handlers only grows, and after so many kernels the compiler has registered all it has.
    const MOST: u64 = 2000;
    static TIMES: AtomicU64 = AtomicU64::new(0);
    if TIMES.fetch_add(1, Ordering::Relaxed) < MOST {
        // SAFETY: a plain C function with a callback that never unwinds. A failure leaves us without hooks.
        let _ = unsafe { atexit(run_hooks) };
    }
}

/// Removes its hook when dropped.
#[derive(Debug)]
pub(crate) struct ExitHook(u64);

impl ExitHook {
    /// Runs `hook` when the process exits, unless this is dropped before.
    pub(crate) fn new(hook: Hook) -> ExitHook {
        run_first();
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        HOOKS.lock().push((id, hook));
        ExitHook(id)
    }
}

impl Drop for ExitHook {
    fn drop(&mut self) {
        HOOKS.lock().retain(|(id, _)| *id != self.0);
    }
}
