//! The one door to Vulkan's own types, for hosts that share a device and for tests that wrap the driver.
//!
//! A host that has a `VkDevice` of its own asks [`DeviceNeeds`] what to enable, makes its device, says so in a
//! [`HostDevice`], and gives that to [`Accelerator::from_raw`](crate::Accelerator::from_raw). From then on
//!
//! - a [`HostBuffer`] becomes a tensor ([`Accelerator::wrap`](crate::Accelerator::wrap)), and a tensor's memory is
//!   handed out as a [`TensorBuffer`] ([`Tensor::raw_buffer`](crate::Tensor::raw_buffer));
//! - a submission waits for and signals [`SemaphorePoint`]s ([`Recording::wait_for`](crate::Recording::wait_for),
//!   [`Recording::signal`](crate::Recording::signal));
//! - a recording is encoded into [`HostCommands`] ([`Recording::record_into`](crate::Recording::record_into)).
//!
//! The host guarantees what Tidemill can't check when it makes one of these values: their constructors are `unsafe`
//! and say what is vouched for. Functions that take them are not. Nothing of the host's is ever destroyed.
//!
//! `docs/embedding.md` goes through it step by step.

mod needs;
mod sharing;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The `ash` that these types are of.
pub use ash;
use ash::vk;

pub use crate::vk::buffer::HostMemory;
pub use crate::vk::usage::BUFFER_USAGE;

pub use self::needs::{DeviceNeeds, FEATURES_NEEDED, FEATURES_USED};
pub(crate) use self::needs::{Enabled, FeatureChain, wanted_extensions};
pub(crate) use self::sharing::HostSync;
pub use self::sharing::{HostBuffer, HostCommands, SemaphorePoint, TensorBuffer, TimelinePoint};

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

/// A lock that keeps two threads from using a queue at once. The host holds the same lock around its own `vkQueue*`
/// calls.
///
/// A `std::sync::Mutex` is one, whatever it guards. For another kind of lock, implement it:
///
/// ```
/// # struct HostLock;
/// # impl HostLock { fn lock(&self) {} fn unlock(&self) {} }
/// impl tidemill::interop::QueueLock for HostLock {
///     fn with_queue(&self, call: &mut dyn FnMut()) {
///         self.lock();
///         call();
///         self.unlock();
///     }
/// }
/// ```
pub trait QueueLock: Send + Sync {
    /// Takes the lock, calls `call` once, and gives the lock back. `call` does not panic, and does not come by here
    /// again. A panic here goes no further: what was called stands, and without a call it is
    /// [`HostError::QueueLock`](crate::error::HostError::QueueLock).
    fn with_queue(&self, call: &mut dyn FnMut());
}

impl<T: Send> QueueLock for Mutex<T> {
    fn with_queue(&self, call: &mut dyn FnMut()) {
        let _guard = self.lock().unwrap_or_else(PoisonError::into_inner);
        call();
    }
}

/// Runs `change` while Tidemill, on any of its devices, neither names an object nor makes or destroys an instance or a
/// device. A process in which an accelerator has names ([`Config::validation`](crate::Config::validation),
/// [`Config::labels`](crate::Config::labels), [`HostDevice::quiet`]) makes and destroys its own instances and devices
/// like this, and lists physical devices: Vulkan's loader (up to 1.4.340) searches its list of devices for each name,
/// without a lock.
///
/// Keep it short. Other threads' use of Tidemill waits meanwhile, so `change` must not wait for them; it may use
/// Tidemill itself.
pub fn alone_at_the_loader<R>(change: impl FnOnce() -> R) -> R {
    super::loader::changing(change)
}

/// A host's handles.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "ash's tables of functions have none")]
pub struct HostHandles {
    /// The loader that made the instance.
    pub entry: ash::Entry,
    /// The instance.
    pub instance: ash::Instance,
    /// The instance's `VkApplicationInfo::apiVersion`: 1.3 or later.
    pub api_version: u32,
    /// The physical device.
    pub physical_device: vk::PhysicalDevice,
    /// The device.
    pub device: ash::Device,
    /// The queue's family, which must be able to compute.
    pub queue_family: u32,
    /// The queue that Tidemill submits to.
    pub queue: vk::Queue,
}

/// A device of the host's, for [`Accelerator::from_raw`](crate::Accelerator::from_raw).
#[derive(Clone)]
pub struct HostDevice {
    pub(crate) handles: HostHandles,
    pub(crate) lock: Arc<dyn QueueLock>,
    pub(crate) enabled: Enabled,
    pub(crate) debug_utils: bool,
    pub(crate) quiet: bool,
}

impl HostDevice {
    /// A device that was made with `made_with`, and a queue of it.
    ///
    /// # Safety
    ///
    /// - The handles are valid, belong together, and stay so until the accelerator and everything that was made from it
    ///   is gone: until [`Accelerator::close`](crate::Accelerator::close) gave `Ok`.
    /// - `made_with` is what the device was made with, and its chain and lists are still readable during this call.
    /// - Any other user of the queue holds `lock`. No thread holds it while calling into Tidemill.
    /// - No other thread waits for the device to be idle (`vkDeviceWaitIdle`) while Tidemill may submit, unless it
    ///   holds the lock.
    pub unsafe fn new(
        handles: HostHandles,
        made_with: &vk::DeviceCreateInfo<'_>,
        lock: Arc<dyn QueueLock>,
    ) -> HostDevice {
        // SAFETY: the caller vouches for the chain.
        let enabled = unsafe { Enabled::from_create_info(made_with) };
        HostDevice { handles, lock, enabled, debug_utils: false, quiet: false }
    }

    /// Says that the instance has `VK_EXT_debug_utils` enabled: then dispatches get labels that the host's validation
    /// messages and tools show. Objects get names only if the loader is [`quiet`](HostDevice::quiet), too.
    #[must_use]
    pub fn debug_utils(mut self, enabled: bool) -> HostDevice {
        self.debug_utils = enabled;
        self
    }

    /// Says that naming an object can't meet a thread that changes the loader's lists of instances and devices: then,
    /// with [`debug_utils`](HostDevice::debug_utils), buffers, pipelines and command buffers get names. Vulkan's loader
    /// (up to 1.4.340) searches its list of devices for each name, without a lock.
    ///
    /// # Safety
    ///
    /// As long as anything of the accelerator lives, no instance and no device is made or destroyed in this process,
    /// and the physical devices of no instance are listed for the first time (`vkEnumeratePhysicalDevices`), except by
    /// Tidemill and inside [`alone_at_the_loader`].
    #[must_use]
    pub unsafe fn quiet(mut self) -> HostDevice {
        self.quiet = true;
        self
    }
}

impl fmt::Debug for HostDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostDevice")
            .field("device", &self.handles.device.handle())
            .field("queue", &self.handles.queue)
            .field("enabled", &self.enabled)
            .finish_non_exhaustive()
    }
}
