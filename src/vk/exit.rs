//! Work that must end before the process tears its libraries down.
//!
//! A driver's own exit handlers destroy its compiler; a background thread still inside that compiler then crashes
//! the process on its way out, or never comes back (seen with lavapipe 22.3 and LLVM 15). Handlers run in the reverse
//! order of registration, and a compiler registers some only while it compiles: a handler of ours can't be sure to
//! come first. The thread-local destructors of the thread that calls `exit` run before all handlers, so that is where
//! ours hang, if the main thread ever came by here. [`is_certain`] tells.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};

use parking_lot::Mutex;

use super::process;

type Hook = Arc<dyn Fn() + Send + Sync>;

static HOOKS: Mutex<Vec<(u64, Hook)>> = Mutex::new(Vec::new());
static REGISTER: Once = Once::new();
static NEXT: AtomicU64 = AtomicU64::new(0);
static CERTAIN: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn atexit(callback: extern "C" fn()) -> c_int;
}

extern "C" fn run_hooks() {
    // The parent's threads are not there to be waited for, and the lock may be held for good.
    if process::is_forked() {
        return;
    }
    let hooks = std::mem::take(&mut *HOOKS.lock());
    for (_, hook) in hooks {
        hook();
    }
}

/// Runs the hooks when the main thread's locals go.
struct MainThread;

impl Drop for MainThread {
    fn drop(&mut self) {
        run_hooks();
    }
}

thread_local! {
    static MAIN_THREAD: MainThread = const { MainThread };
}

/// Whether this is the main thread, on a platform whose `exit` runs its thread-local destructors first.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn on_main_thread() -> bool {
    unsafe extern "C" {
        safe fn getpid() -> c_int;
        safe fn gettid() -> c_int;
    }
    getpid() == gettid()
}

/// Whether this is the main thread, on a platform whose `exit` runs its thread-local destructors first.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn on_main_thread() -> bool {
    false
}

/// Whether hooks run before anything of the driver's is torn down. Without that, nothing may go on in the background
/// that can't be torn down at any moment.
pub(crate) fn is_certain() -> bool {
    CERTAIN.load(Ordering::Acquire)
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
        if on_main_thread() && MAIN_THREAD.try_with(|_| ()).is_ok() {
            CERTAIN.store(true, Ordering::Release);
        }
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
