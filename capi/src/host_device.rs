//! An accelerator on a device of the host.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

use tidemill::Accelerator;
use tidemill::interop::ash::vk::{self, Handle};
use tidemill::interop::{HostDevice, HostHandles, QueueLock, ash};

use crate::accelerator::tm_accelerator;
use crate::arguments::{User, given, handle, place};
use crate::config::{configured, tm_config};
use crate::options::{self, options};
use crate::status::{Failure, guard, tm_status};

/// A function of Vulkan's, as PFN_vkVoidFunction: cast vkGetInstanceProcAddr to it.
pub type tm_vulkan_fn = Option<unsafe extern "system" fn()>;

/// Takes the host's lock around the queue, or gives it back; on the thread that is about to use the queue. It must
/// not throw, and must not call the library.
pub type tm_lock_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// A device of the host. All zeros but `size` is none: the handles are to be set.
///
/// By handing it over the host vouches for this:
/// - The handles are valid, belong together, and stay so until tm_accelerator_close gave TM_OK.
/// - `made_with` is what the device was made with, and its chain and lists can be read during the call.
/// - While Tidemill holds the lock, no other thread uses the queue, nor waits for the device to be idle. No thread
///   holds the lock while it calls the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_host_device {
    /// sizeof(tm_host_device).
    pub size: usize,
    /// vkGetInstanceProcAddr, or NULL for that of the system's loader.
    pub get_instance_proc_addr: tm_vulkan_fn,
    /// The VkInstance.
    pub instance: *mut c_void,
    /// The VkPhysicalDevice.
    pub physical_device: *mut c_void,
    /// The VkDevice.
    pub device: *mut c_void,
    /// The VkQueue that Tidemill submits to.
    pub queue: *mut c_void,
    /// The VkDeviceCreateInfo that the device was made with.
    pub made_with: *const c_void,
    /// The instance's VkApplicationInfo::apiVersion: 1.3 or later.
    pub api_version: u32,
    /// The queue's family, which must be able to compute.
    pub queue_family: u32,
    /// Takes the host's lock. NULL, as unlock_queue, if no other thread uses the queue while Tidemill may: prewarming
    /// in the background uses it, too.
    pub lock_queue: tm_lock_fn,
    /// Gives the host's lock back.
    pub unlock_queue: tm_lock_fn,
    /// Handed to both, as long as the accelerator lives.
    pub lock_user: *mut c_void,
    /// The instance has VK_EXT_debug_utils enabled: dispatches get labels.
    pub debug_utils: bool,
    /// While the accelerator lives, no thread makes or destroys an instance or a device, or lists an instance's
    /// physical devices for the first time, except in tm_alone_at_the_loader. With debug_utils, objects then get
    /// names. Vulkan's loader (up to 1.4.340) searches its list of devices for each name, without a lock.
    pub quiet: bool,
}

options!(tm_host_device, least: size_of::<tm_host_device>(), defaults: tm_host_device {
    size: size_of::<tm_host_device>(),
    get_instance_proc_addr: None,
    instance: std::ptr::null_mut(),
    physical_device: std::ptr::null_mut(),
    device: std::ptr::null_mut(),
    queue: std::ptr::null_mut(),
    made_with: std::ptr::null(),
    api_version: 0,
    queue_family: 0,
    lock_queue: None,
    unlock_queue: None,
    lock_user: std::ptr::null_mut(),
    debug_utils: false,
    quiet: false,
});

/// A dispatchable handle from C, which may not be NULL.
pub(crate) fn raw<H: Handle>(pointer: *mut c_void, name: &str) -> Result<H, Failure> {
    given((!pointer.is_null()).then(|| H::from_raw(pointer.expose_provenance() as u64)), name)
}

/// The functions of Vulkan's that depend on no instance.
///
/// # Safety
///
/// The function is vkGetInstanceProcAddr.
pub(crate) unsafe fn entry(get_instance_proc_addr: tm_vulkan_fn) -> Result<ash::Entry, Failure> {
    let Some(function) = get_instance_proc_addr else {
        // SAFETY: the system's loader is a Vulkan loader.
        let loaded = unsafe { ash::Entry::load() };
        return loaded.map_err(|error| Failure::new(tm_status::TM_NO_VULKAN, error.to_string()));
    };
    // SAFETY: it is that function, says the caller, whose type this is.
    let get_instance_proc_addr = unsafe {
        std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetInstanceProcAddr>(function)
    };
    // SAFETY: as above.
    Ok(unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr }) })
}

/// # Safety
///
/// The pointer is NULL or a VkInstance that was made by way of the entry.
pub(crate) unsafe fn instance(entry: &ash::Entry, instance: *mut c_void) -> Result<ash::Instance, Failure> {
    let instance = raw(instance, "instance")?;
    // SAFETY: the caller's handle is valid.
    Ok(unsafe { ash::Instance::load(entry.static_fn(), instance) })
}

pub(crate) fn physical_device(physical_device: *mut c_void) -> Result<vk::PhysicalDevice, Failure> {
    raw(physical_device, "physical_device")
}

/// The host's lock.
struct Callbacks {
    lock: unsafe extern "C" fn(*mut c_void),
    unlock: unsafe extern "C" fn(*mut c_void),
    user: User,
}

impl QueueLock for Callbacks {
    fn with_queue(&self, call: &mut dyn FnMut()) {
        // SAFETY: contract 4.
        unsafe { (self.lock)(self.user.pointer()) };
        call();
        // SAFETY: contract 4.
        unsafe { (self.unlock)(self.user.pointer()) };
    }
}

impl tm_host_device {
    fn lock(&self) -> Result<Arc<dyn QueueLock>, Failure> {
        match (self.lock_queue, self.unlock_queue) {
            (Some(lock), Some(unlock)) => {
                Ok(Arc::new(Callbacks { lock, unlock, user: User(self.lock_user) }))
            }
            (None, None) => Ok(Arc::new(Mutex::new(()))),
            _ => Err(Failure::argument("of lock_queue and unlock_queue, one is NULL".to_owned())),
        }
    }

    /// # Safety
    ///
    /// As described at the struct.
    unsafe fn read(&self) -> Result<HostDevice, Failure> {
        let lock = self.lock()?;
        // SAFETY: the struct says so.
        let made_with = unsafe { self.made_with.cast::<vk::DeviceCreateInfo<'_>>().as_ref() };
        let made_with = given(made_with, "made_with")?;
        if made_with.s_type != vk::StructureType::DEVICE_CREATE_INFO {
            let message = format!("made_with has the sType {}, not 3", made_with.s_type.as_raw());
            return Err(Failure::argument(message));
        }
        // SAFETY: the struct says so.
        let entry = unsafe { entry(self.get_instance_proc_addr) }?;
        // SAFETY: as above.
        let instance = unsafe { instance(&entry, self.instance) }?;
        let physical_device = physical_device(self.physical_device)?;
        let (device, queue) = (raw(self.device, "device")?, raw(self.queue, "queue")?);
        // SAFETY: as above.
        let device = unsafe { ash::Device::load(instance.fp_v1_0(), device) };
        let (api_version, queue_family) = (self.api_version, self.queue_family);
        let handles =
            HostHandles { entry, instance, api_version, physical_device, device, queue_family, queue };
        // SAFETY: the struct says what the host vouches for.
        let host = unsafe { HostDevice::new(handles, made_with, lock) }.debug_utils(self.debug_utils);
        if !self.quiet {
            return Ok(host);
        }
        // SAFETY: as above.
        Ok(unsafe { host.quiet() })
    }
}

/// An accelerator on a device of the host: it submits to the host's queue under the host's lock, and destroys
/// nothing of the host. NULL for `config` means the defaults. Of the configuration, the choice of the device,
/// `validation`, `labels`, `renderdoc` and `on_message` are the host's own affair and not looked at. TM_HOST says
/// what the device was made without.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_accelerator_from_raw(
    host: *const tm_host_device,
    config: *const tm_config,
    gpu: Option<&mut MaybeUninit<*mut tm_accelerator>>,
) -> tm_status {
    guard("tm_accelerator_from_raw", || {
        let out = place(gpu, "gpu")?;
        // SAFETY: contract 1.
        let host = unsafe { options::read(host, "host") }?;
        // SAFETY: what the host vouches for stands at the struct.
        let host = unsafe { host.read() }?;
        // SAFETY: the caller keeps the contract.
        let config = unsafe { configured(config) }?;
        *out = handle(tm_accelerator::new(Accelerator::from_raw(host, &config)?));
        Ok(())
    })
}

/// Something that is done alone at the loader: 0 says that it worked.
pub type tm_call_fn = Option<unsafe extern "C" fn(user: *mut c_void) -> i32>;

/// Calls `change` while Tidemill, on any of its devices, neither names an object nor makes or destroys an instance or
/// a device. A process in which an accelerator has names (`validation`, `labels`, `quiet`) makes and destroys its own
/// instances and devices like this, and lists physical devices. Keep it short: other threads' use of Tidemill waits
/// meanwhile. TM_CALLBACK if it gives another number than 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_alone_at_the_loader(change: tm_call_fn, user: *mut c_void) -> tm_status {
    guard("tm_alone_at_the_loader", || {
        let change = given(change, "change")?;
        // SAFETY: contract 4.
        let said = tidemill::interop::alone_at_the_loader(|| unsafe { change(user) });
        called("change", said)
    })
}

/// The meaning of a callback's number.
pub(crate) fn called(name: &str, said: i32) -> Result<(), Failure> {
    if said == 0 {
        return Ok(());
    }
    let message = format!("{name} gave {said}; the last message is: {}", crate::status::last_message());
    Err(Failure::new(tm_status::TM_CALLBACK, message))
}
