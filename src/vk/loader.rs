//! The loader's lists of instances and devices, which it does not guard (1.3.239 to 1.4.340).
//!
//! `vkSetDebugUtilsObjectNameEXT` finds the driver by a search through all devices of all drivers of all instances of
//! the process, and so does `vkGetDeviceProcAddr` for functions that the loader does not know. The search takes no lock
//! that those hold who make or destroy a device, or who list an instance's physical devices for the first time, which
//! drops the drivers that have none (1.4.309): it reads what another thread has just freed, and the process dies.
//! Labels in command buffers go by the command buffer's own table and search nothing.
//!
//! So here is the lock that is missing there. A search shares it; a change of the lists takes it exclusively. Nothing
//! but Vulkan calls happens under it: what the validation layer says meanwhile waits for a thread of its own
//! (`messages.rs`), so a sink that makes an accelerator, drops one or names something waits for the lock like anyone
//! else.

use std::cell::Cell;

use parking_lot::RwLock;

use super::process;

static LISTS: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether this thread has the lock.
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// Runs Vulkan calls that search the loader's lists.
pub(super) fn searching<R>(call: impl FnOnce() -> R) -> R {
    under(|| LISTS.read(), call)
}

/// Runs Vulkan calls that make or destroy an instance or a device, or list an instance's physical devices.
pub(super) fn changing<R>(call: impl FnOnce() -> R) -> R {
    under(|| LISTS.write(), call)
}

/// This thread has the lock until this goes, also where a call of the host's panics.
struct Held;

impl Held {
    fn begin() -> Held {
        // A thread that is ending has no such mark any more, and nests nothing.
        let _ = HELD.try_with(|held| held.set(true));
        Held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| held.set(false));
    }
}

fn under<G, R>(lock: impl FnOnce() -> G, call: impl FnOnce() -> R) -> R {
    // A host that makes its device under the lock may make an accelerator as well. Only `changing` calls what is not
    // ours. In a forked process the lock may be held for good, and there is no other thread.
    if HELD.try_with(Cell::get).unwrap_or(false) || process::is_forked() {
        return call();
    }
    let _guard = lock();
    let _held = Held::begin();
    call()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};

    use super::super::messages::MessageLog;
    use super::*;

    #[test]
    fn a_sink_may_want_the_lock_that_is_held_when_it_is_told() {
        let heard = Arc::new(AtomicUsize::new(0));
        let count = heard.clone();
        let sink = move |_: &str| {
            // As if it made an accelerator.
            changing(|| count.fetch_add(1, Ordering::Relaxed));
        };
        let log = MessageLog::new(Some(Arc::new(sink)));
        searching(|| log.push("one".to_owned()));
        changing(|| {
            log.push("two".to_owned());
            assert!(heard.load(Ordering::Relaxed) <= 1, "not while the lock is held");
        });
        log.flush(None);
        assert_eq!(heard.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_change_has_the_lists_alone() {
        let (inside, told) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let changer = std::thread::spawn(move || {
            changing(|| {
                // Nested, it goes on.
                searching(|| changing(|| inside.send(()).unwrap()));
                wait.recv().unwrap();
            });
        });
        told.recv().unwrap();
        assert!(LISTS.try_read().is_none());
        go.send(()).unwrap();
        changer.join().unwrap();
    }

    #[test]
    fn a_panic_inside_leaves_the_lock_free() {
        let panicked = std::panic::catch_unwind(|| changing(|| panic!("the host's")));
        assert!(panicked.is_err());
        changing(|| ());
        assert!(!HELD.get());
    }
}
