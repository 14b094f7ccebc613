//! How an accelerator is made.

use std::ffi::{CString, c_char, c_void};

use tidemill::device::DeviceKind;
use tidemill::interop::Entry;
use tidemill::profile::Profiling;
use tidemill::{Config, Prewarm};

use crate::arguments::{User, elements, given, text};
use crate::host_device::{entry, tm_vulkan_fn};
use crate::options::{self, Options, options};
use crate::status::{Failure, guard, tm_status};

/// When kernels are compiled: TM_PREWARM_BACKGROUND and so on.
pub type tm_prewarm = u32;
/// By a background thread, while the queue is idle; what is needed now comes first.
pub const TM_PREWARM_BACKGROUND: tm_prewarm = 0;
/// Before tm_accelerator_new returns.
pub const TM_PREWARM_BLOCKING: tm_prewarm = 1;
/// When first used.
pub const TM_PREWARM_OFF: tm_prewarm = 2;

/// A kind of device: TM_DEVICE_DISCRETE and so on.
pub type tm_device_kind = u32;
/// Any.
pub const TM_DEVICE_ANY: tm_device_kind = 0;
/// A card with memory of its own.
pub const TM_DEVICE_DISCRETE: tm_device_kind = 1;
/// A GPU that shares the CPU's memory.
pub const TM_DEVICE_INTEGRATED: tm_device_kind = 2;
/// A GPU of a virtual machine.
pub const TM_DEVICE_VIRTUAL: tm_device_kind = 3;
/// A software driver.
pub const TM_DEVICE_CPU: tm_device_kind = 4;

/// Whether the device takes the time of every dispatch, and how: TM_PROFILING_OFF and so on.
pub type tm_profiling = u32;
/// No timestamps. Costs nothing.
pub const TM_PROFILING_OFF: tm_profiling = 0;
/// Timestamps around every dispatch; the work runs as it always does.
pub const TM_PROFILING_TIMELINE: tm_profiling = 1;
/// Each dispatch alone: the only source of GFLOP/s and GB/s. The whole takes longer than it would.
pub const TM_PROFILING_ISOLATED: tm_profiling = 2;

pub(crate) fn profiling(number: tm_profiling) -> Result<Profiling, Failure> {
    match number {
        TM_PROFILING_OFF => Ok(Profiling::Off),
        TM_PROFILING_TIMELINE => Ok(Profiling::Timeline),
        TM_PROFILING_ISOLATED => Ok(Profiling::Isolated),
        other => Err(Failure::unknown("profiling", other)),
    }
}

/// Gets what the validation layer says, on a thread of the library's own, one message after the other. It must not
/// throw. It has heard everything when the last handle is freed, or when tm_validation_messages_json returns.
pub type tm_message_fn = Option<unsafe extern "C" fn(message: *const c_char, user: *mut c_void)>;

/// How to make an accelerator. Begin with tm_config_defaults(): the defaults are good, change what is to be different.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_config {
    /// sizeof(tm_config), as tm_config_defaults() sets it.
    pub size: usize,
    /// The index of the device to take, or -1.
    pub device_index: i32,
    /// A part of the name of the device to take, or NULL. With neither: what TIDEMILL_DEVICE says, or the best one.
    pub device_name: *const c_char,
    /// Run under the Khronos validation layer, with synchronization validation.
    pub validation: bool,
    /// Name objects and dispatches for tools. On by itself with validation.
    pub labels: bool,
    /// Keep no files between runs.
    pub no_cache: bool,
    /// For those who write kernels: memory reads as NaN until written, and bytes behind tensors are watched.
    pub memory_checks: bool,
    /// Every operation is a dispatch of its own. Same bits, slower.
    pub no_fusion: bool,
    /// Load RenderDoc, before the process makes its first Vulkan instance.
    pub renderdoc: bool,
    /// When kernels are compiled.
    pub prewarm: tm_prewarm,
    /// How every submission is profiled.
    pub profiling: tm_profiling,
    /// The folder for files between runs, or NULL for the platform's.
    pub cache_dir: *const c_char,
    /// The application's name in the history of pipelines in that folder, or NULL for the name of the executable.
    pub application: *const c_char,
    /// The most bytes that the pool of buffers may hold, or 0 for no cap.
    pub pool_cap_bytes: u64,
    /// How many submissions may be in flight before the next one waits, or 0 for the default.
    pub max_in_flight: usize,
    /// Gets what the validation layer says, up to the destruction of the device; or NULL.
    pub on_message: tm_message_fn,
    /// Handed to on_message.
    pub on_message_user: *mut c_void,
    /// The kind of the device to take: TM_DEVICE_ANY, or TM_DEVICE_DISCRETE and so on.
    pub device_kind: tm_device_kind,
    /// Results of tm_tune from an earlier run are not used.
    pub untuned: bool,
    /// Variants of kernel families to use instead of the device's defaults.
    pub variants: *const tm_variant,
    /// How many there are.
    pub variant_count: usize,
    /// vkGetInstanceProcAddr of a loader that is used instead of the system's; or NULL.
    pub get_instance_proc_addr: tm_vulkan_fn,
}

/// A variant of a kernel family, as tm_variants_json names them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_variant {
    /// The family.
    pub family: *const c_char,
    /// The variant.
    pub name: *const c_char,
}

// The first header of ABI 2 ends before device_kind.
options!(tm_config, least: std::mem::offset_of!(tm_config, device_kind), defaults: tm_config {
    size: size_of::<tm_config>(),
    device_index: -1,
    device_name: std::ptr::null(),
    validation: false,
    labels: false,
    no_cache: false,
    memory_checks: false,
    no_fusion: false,
    renderdoc: false,
    prewarm: TM_PREWARM_BACKGROUND,
    profiling: TM_PROFILING_OFF,
    cache_dir: std::ptr::null(),
    application: std::ptr::null(),
    pool_cap_bytes: 0,
    max_in_flight: 0,
    on_message: None,
    on_message_user: std::ptr::null_mut(),
    device_kind: TM_DEVICE_ANY,
    untuned: false,
    variants: std::ptr::null(),
    variant_count: 0,
    get_instance_proc_addr: None,
});

/// Sets the defaults. Call it as tm_config_init(&config, sizeof config): TM_ABI_MISMATCH, and nothing is written, if
/// header and library do not belong together. tm_config_defaults() does so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_config_init(config: *mut tm_config, size: usize) -> tm_status {
    // SAFETY: contract 1: this many bytes are there.
    guard("tm_config_init", || unsafe { options::write(config, size, "config", tm_config::DEFAULTS) })
}

/// The configuration that C gives; NULL means the defaults.
///
/// # Safety
///
/// Contracts 1, 3 and 4.
pub(crate) unsafe fn configured(config: *const tm_config) -> Result<Config, Failure> {
    if config.is_null() {
        return Ok(Config::new());
    }
    // SAFETY: contract 1.
    let config = unsafe { options::read(config, "config") }?;
    // SAFETY: contracts 1, 3 and 4.
    unsafe { config.read() }
}

impl tm_config {
    /// The device.
    ///
    /// # Safety
    ///
    /// Contracts 1 and 3.
    unsafe fn choose(&self, config: Config) -> Result<Config, Failure> {
        // SAFETY: contracts 1 and 3.
        let name = unsafe { text(self.device_name, "device_name") }?;
        let kind = match self.device_kind {
            TM_DEVICE_ANY => None,
            TM_DEVICE_DISCRETE => Some(DeviceKind::Discrete),
            TM_DEVICE_INTEGRATED => Some(DeviceKind::Integrated),
            TM_DEVICE_VIRTUAL => Some(DeviceKind::Virtual),
            TM_DEVICE_CPU => Some(DeviceKind::Cpu),
            other => return Err(Failure::unknown("device_kind", other)),
        };
        match (usize::try_from(self.device_index), name, kind) {
            (Ok(index), None, None) => Ok(config.device_index(index)),
            (Err(_), Some(name), None) => Ok(config.device_name(name)),
            (Err(_), None, Some(kind)) => Ok(config.device_kind(kind)),
            (Err(_), None, None) => Ok(config),
            (Ok(_), Some(_), _) => {
                Err(Failure::argument("device_index and device_name are both set".to_owned()))
            }
            (_, _, Some(_)) => {
                Err(Failure::argument("device_kind is set beside device_index or device_name".to_owned()))
            }
        }
    }

    /// Where functions come from, and which kernels are used.
    ///
    /// # Safety
    ///
    /// Contracts 1 and 3.
    unsafe fn kernels(&self, mut config: Config) -> Result<Config, Failure> {
        // SAFETY: contract 1.
        for variant in unsafe { elements(self.variants, self.variant_count, "variants") }? {
            // SAFETY: contracts 1 and 3.
            let family = given(unsafe { text(variant.family, "a variant's family") }?, "a variant's family")?;
            // SAFETY: as above.
            let name = given(unsafe { text(variant.name, "a variant's name") }?, "a variant's name")?;
            config = config.variant(family, name);
        }
        if self.get_instance_proc_addr.is_some() {
            // SAFETY: the caller's function is Vulkan's.
            let entry = unsafe { entry(self.get_instance_proc_addr) }?;
            // SAFETY: as above.
            config = config.entry(unsafe { Entry::new(entry) });
        }
        Ok(config)
    }

    /// # Safety
    ///
    /// Contracts 1, 3 and 4.
    unsafe fn read(&self) -> Result<Config, Failure> {
        let mut config = Config::new()
            .validation(self.validation)
            .labels(self.labels)
            .memory_checks(self.memory_checks)
            .fusion(!self.no_fusion)
            .renderdoc(self.renderdoc)
            .profiling(profiling(self.profiling)?)
            .tuned(!self.untuned)
            .prewarm(match self.prewarm {
                TM_PREWARM_BACKGROUND => Prewarm::Background,
                TM_PREWARM_BLOCKING => Prewarm::Blocking,
                TM_PREWARM_OFF => Prewarm::Off,
                other => return Err(Failure::unknown("prewarm", other)),
            });
        // SAFETY: contracts 1 and 3.
        config = unsafe { self.choose(config) }?;
        // SAFETY: contracts 1 and 3.
        let folder = unsafe { text(self.cache_dir, "cache_dir") }?;
        if let Some(folder) = folder {
            config = config.cache_dir(folder);
        }
        // SAFETY: contracts 1 and 3.
        let application = unsafe { text(self.application, "application") }?;
        if let Some(application) = application {
            config = config.application(application);
        }
        if self.no_cache {
            config = config.no_cache();
        }
        if self.pool_cap_bytes > 0 {
            config = config.pool_cap(self.pool_cap_bytes);
        }
        if self.max_in_flight > 0 {
            config = config.max_in_flight(self.max_in_flight);
        }
        // SAFETY: contracts 1 and 3.
        config = unsafe { self.kernels(config) }?;
        if let Some(function) = self.on_message {
            let user = User(self.on_message_user);
            config = config.on_message(move |message| {
                let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
                // SAFETY: contract 4.
                unsafe { function(message.as_ptr(), user.pointer()) }
            });
        }
        Ok(config)
    }
}
