//! Whose process this is. The child of a `fork` has its parent's memory but none of its threads: the driver's are gone, whatever they
//! held is locked for good, and the device is the parent's. So a child calls nothing of Vulkan's, waits for no thread and no
//! lock, and destroys nothing. A child that was forked before the first use, or that runs another program by `exec`, is a process like any other.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::error::{Error, Result};

/// Set in a child that was forked after [`claim`].
static FORKED: AtomicBool = AtomicBool::new(false);
static CLAIMED: AtomicBool = AtomicBool::new(false);
/// The process that [`claim`] was called in.
static OWNER: AtomicU32 = AtomicU32::new(0);

#[cfg(unix)]
extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// To be called before anything of Vulkan's is: children that are forked from now on know that they are.
///
/// # Errors
///
/// [`Error::Forked`] if this is such a child.
pub(crate) fn claim() -> Result<()> {
    check()?;
    if !CLAIMED.swap(true, Ordering::AcqRel) {
        OWNER.store(std::process::id(), Ordering::Release);
        #[cfg(unix)]
        {
            use std::ffi::c_int;
            type Handler = Option<extern "C" fn()>;
            unsafe extern "C" {
                fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
            }
            // SAFETY: a plain C function; the handler stores to an atomic, which any child may do. It fails only without memory
            // for an entry, and then children are not told.
            let _ = unsafe { pthread_atfork(None, None, Some(in_child)) };
        }
    }
    Ok(())
}

/// Whether this is a child that was forked after the first use. One relaxed load: asked before every lock and every wait.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// An error in a process that was forked after its parent had used a device: every call is this error there, and what is
/// dropped is left as it is. For libraries that hold locks of their own around calls, which such a process may find locked for good.
///
/// # Errors
///
/// [`Error::Forked`].
pub fn check() -> Result<()> {
    if is_forked() {
        return Err(Error::Forked { owner: OWNER.load(Ordering::Relaxed), process: std::process::id() });
    }
    Ok(())
}

/// What is dropped only in the process that made it.
#[derive(Debug)]
pub(crate) struct Own<T>(ManuallyDrop<T>);

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Own<T> {
        Own(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Own<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !is_forked() {
            // SAFETY: dropped here and nowhere else, and never used again.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
