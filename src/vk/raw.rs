//! The one door to Vulkan's own types, for hosts that share a device and for tests that wrap the driver.

use std::fmt;

/// A Vulkan entry point from outside, to be used instead of the system's loader
/// ([`Config::entry`](crate::Config::entry)). A wrapped function table sees every Vulkan call of the engine and of its
/// allocator.
#[derive(Clone)]
pub struct Entry(pub(crate) ash::Entry);

impl Entry {
    /// Takes an `ash::Entry`.
    ///
    /// # Safety
    ///
    /// The entry's functions must behave as Vulkan's do, faults that Vulkan allows included, and stay callable as
    /// long as anything of the accelerator lives.
    pub unsafe fn new(entry: ash::Entry) -> Entry {
        Entry(entry)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entry")
    }
}
