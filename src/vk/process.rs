//! Detection of forked processes. The child of a `fork` has its parent's memory but none of its threads: the driver's
//! are gone, whatever they held is locked for good, and the device is the parent's. So a child calls nothing of
//! Vulkan's, waits for no thread and no lock, and destroys nothing. A child that was forked before the first use, or
//! that runs another program by `exec`, is a process like any other.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use crate::error::{Error, Result};

/// The process that [`claim`] was called in first; 0 before that.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// A byte that is 1 in the owner and 0 in its children; null where the system has no such thing.
static MARK: AtomicPtr<AtomicU8> = AtomicPtr::new(ptr::null_mut());

/// A byte that the kernel sets to zero in every child, however it was made: handlers of `pthread_atfork` are not called
/// for `_Fork` and `clone`. Linux has it from 4.14 on.
#[cfg(target_os = "linux")]
fn mark() -> *mut AtomicU8 {
    use std::ffi::{c_int, c_long, c_void};
    const PAGE: usize = 4096;
    const READ_WRITE: c_int = 3;
    const PRIVATE: c_int = 2;
    // Everywhere but on MIPS, Alpha, PA-RISC and Xtensa, where mapping no file fails, and process ids are compared.
    const ANONYMOUS: c_int = 0x20;
    const WIPE_ON_FORK: c_int = 18;
    unsafe extern "C" {
        fn mmap(
            at: *mut c_void,
            length: usize,
            access: c_int,
            flags: c_int,
            file: c_int,
            offset: c_long,
        ) -> *mut c_void;
        fn madvise(at: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    // SAFETY: new memory, wherever the system puts it. It is kept for good.
    let page = unsafe { mmap(ptr::null_mut(), PAGE, READ_WRITE, PRIVATE | ANONYMOUS, -1, 0) };
    if page.addr() == usize::MAX {
        return ptr::null_mut();
    }
    // SAFETY: the memory from above.
    if unsafe { madvise(page, PAGE, WIPE_ON_FORK) } != 0 {
        return ptr::null_mut();
    }
    let mark: *mut AtomicU8 = page.cast();
    // SAFETY: zeros are an atomic byte, and nothing else knows it yet.
    unsafe { &*mark }.store(1, Ordering::Relaxed);
    mark
}

#[cfg(not(target_os = "linux"))]
fn mark() -> *mut AtomicU8 {
    ptr::null_mut()
}

/// To be called before anything of Vulkan's is: children that are forked from now on know that they are.
///
/// # Errors
///
/// [`Error::Forked`] if this is such a child.
pub(crate) fn claim() -> Result<()> {
    let process = std::process::id();
    match OWNER.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => MARK.store(mark(), Ordering::Release),
        // Here where it costs nothing, the number itself.
        Err(owner) if owner != process => return Err(Error::Forked { owner, process }),
        Err(_) => {}
    }
    check()
}

/// Whether this is a child that was forked after the first use. Asked before every lock and every wait: two loads where
/// there is a mark, and elsewhere the process's number, which may take a system call.
pub(crate) fn is_forked() -> bool {
    // SAFETY: it is never unmapped, and shared by reference alone.
    match unsafe { MARK.load(Ordering::Acquire).as_ref() } {
        Some(mark) => mark.load(Ordering::Relaxed) == 0,
        None => is_another(),
    }
}

#[cold]
fn is_another() -> bool {
    let owner = OWNER.load(Ordering::Relaxed);
    owner != 0 && owner != std::process::id()
}

/// An error in a process that was forked after its parent had used a device: every call is this error there, and what
/// is dropped is left as it is. For libraries that hold locks of their own around calls, which such a process may find
/// locked for good.
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

/// A value that is dropped only in the process that made it.
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
