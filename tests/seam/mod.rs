//! A Vulkan loader with a wrapped function table: counts calls, fails them, holds the queue back, and makes the driver
//! look like another one. Everything goes in above the validation layer, which sees only what the driver sees.
//!
//! State is process-wide: a test holds a [`Seam`] while it runs, so tests take turns.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(unsafe_code, reason = "it stands in for the driver")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "one reason for all: arguments are the caller's own, passed on to the function that they were meant for"
)]

/// Leaves a wrapped function with its error if the call must fail.
macro_rules! enter {
    ($name:literal) => {
        if let Some(error) = enter($name, true) {
            return error;
        }
    };
}

pub mod device_fault;
mod faults;
mod hooks;
mod memory;
mod subgroups;
mod table;
mod told;
mod watch;

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ash::vk;
use parking_lot::{Mutex, MutexGuard};
use tidemill::Config;

use faults::enter;
pub use memory::FakeMemory;

use crate::harness::{self, Gpu};

static TURN: Mutex<()> = Mutex::new(());
static STATE: Mutex<Option<State>> = Mutex::new(None);

/// What dispatches may span.
#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    pub groups: [u32; 3],
    pub storage_range_bytes: u32,
}

/// A submission that is held back.
struct Held {
    queue: vk::Queue,
    commands: Vec<vk::CommandBuffer>,
    signals: Vec<(vk::Semaphore, u64)>,
}

/// Vulkan wants one at a time at the queue, and the gate may be opened from any thread.
static QUEUE: Mutex<()> = Mutex::new(());

#[derive(Default)]
struct State {
    calls: HashMap<&'static str, u64>,
    faults: faults::Faults,
    gate_closed: bool,
    held: Vec<Held>,
    live_instances: i64,
    live_devices: i64,
    skip_barriers: bool,
    skip_dispatches: bool,
    hidden_extensions: Vec<&'static CStr>,
    missing_features: Vec<&'static str>,
    edit_properties: Option<fn(&mut vk::PhysicalDeviceProperties)>,
    narrow: Option<Narrow>,
    /// Dispatches of more than one row of workgroups.
    wrapped: u64,
    no_queues: bool,
    subgroup_sizes: Option<[u32; 2]>,
    no_subgroup_operations: vk::SubgroupFeatureFlags,
    /// Of each pipeline made, the subgroup size that it asks for, and whether subgroups must be full.
    subgroups_asked: Vec<(Option<u32>, bool)>,
    memory: Option<FakeMemory>,
    /// What `VK_EXT_memory_budget` tells of each heap; the driver may not have it.
    budget: Option<u64>,
    /// Calls that make pipelines right now, the most that there were at once, and how many must meet before any of them
    /// returns.
    compiling: u64,
    most_compiling: u64,
    compile_together: u64,
    compile_slowly: Duration,
    driver: Option<vk::DriverId>,
    /// The device has `VK_EXT_device_fault`; the driver may not.
    device_fault: bool,
    /// What the device imports of the application's memory at a time.
    host_pages: Option<u64>,
    /// The size of every memory object.
    memory_bytes: HashMap<vk::DeviceMemory, u64>,
    /// The most that all of them had together.
    peak_memory_bytes: u64,
    allocations: HashMap<vk::DeviceMemory, memory::Allocation>,
    violations: Vec<String>,
    watch: Option<watch::Watch>,
    /// Of each descriptor pool, how many sets it has and how many are given out.
    descriptor_sets: HashMap<vk::DescriptorPool, (u32, u32)>,
}

/// The test's turn. What it arranges ends with it.
pub struct Seam {
    _turn: MutexGuard<'static, ()>,
}

fn state<R>(work: impl FnOnce(&mut State) -> R) -> R {
    work(STATE.lock().get_or_insert_with(State::default))
}

impl Seam {
    pub fn take() -> Seam {
        let turn = TURN.lock();
        *STATE.lock() = None;
        Seam { _turn: turn }
    }

    /// The tests' usual configuration, on this loader.
    pub fn config(&self) -> Config {
        harness::config().entry(entry())
    }

    /// The tests' usual accelerator, on this loader.
    pub fn gpu(&self) -> Gpu {
        harness::gpu_with(self.config())
    }

    /// How often a function was called.
    pub fn calls(&self, call: &str) -> u64 {
        state(|s| s.calls.get(call).copied().unwrap_or(0))
    }

    /// How often any of the wrapped functions was called.
    pub fn all_calls(&self) -> u64 {
        state(|s| s.calls.values().sum())
    }

    /// Instances and devices that were made and not destroyed.
    pub fn live(&self) -> (i64, i64) {
        state(|s| (s.live_instances, s.live_devices))
    }

    /// From now on, the driver does not get what is submitted.
    pub fn close_gate(&self) {
        close_gate();
    }

    /// Lets go of what was held back.
    pub fn open_gate(&self) {
        open_gate();
    }

    /// Of each submission that is held back, how many command buffers it has.
    pub fn held(&self) -> Vec<usize> {
        state(|s| s.held.iter().map(|held| held.commands.len()).collect())
    }

    /// Leaves barriers out of command buffers.
    pub fn skip_barriers(&self, on: bool) {
        state(|s| s.skip_barriers = on);
    }

    /// Dispatches do nothing.
    pub fn skip_dispatches(&self, on: bool) {
        state(|s| s.skip_dispatches = on);
    }

    /// The device's subgroups are of any size between these.
    pub fn vary_subgroups(&self, least: u32, most: u32) {
        state(|s| s.subgroup_sizes = Some([least, most]));
    }

    /// Invocations can't hand each other anything.
    pub fn hide_shuffles(&self) {
        self.hide_subgroup_operations(vk::SubgroupFeatureFlags::SHUFFLE);
    }

    /// Subgroups can't do these.
    pub fn hide_subgroup_operations(&self, operations: vk::SubgroupFeatureFlags) {
        state(|s| s.no_subgroup_operations = operations);
    }

    /// Of each pipeline made so far, the subgroup size that it asks for, and whether subgroups must be full.
    pub fn subgroups_asked(&self) -> Vec<(Option<u32>, bool)> {
        state(|s| s.subgroups_asked.clone())
    }

    /// The device has not this extension.
    pub fn hide_extension(&self, name: &'static CStr) {
        state(|s| s.hidden_extensions.push(name));
    }

    /// The device has not this feature.
    pub fn hide_feature(&self, name: &'static str) {
        state(|s| s.missing_features.push(name));
    }

    /// The device has no queues at all.
    pub fn hide_queues(&self) {
        state(|s| s.no_queues = true);
    }

    /// Changes the device's properties.
    pub fn edit_properties(&self, edit: fn(&mut vk::PhysicalDeviceProperties)) {
        state(|s| s.edit_properties = Some(edit));
    }

    /// The device has grids and storage bindings of this size only; larger ones are [violations](Seam::violations).
    pub fn narrow(&self, narrow: Narrow) {
        state(|s| s.narrow = Some(narrow));
    }

    /// How many dispatches had more than one row of workgroups.
    pub fn wrapped(&self) -> u64 {
        state(|s| s.wrapped)
    }

    /// The device has this memory instead of its own.
    pub fn fake_memory(&self, memory: FakeMemory) {
        state(|s| s.memory = Some(memory));
    }

    /// The device has `VK_EXT_memory_budget`, with this budget for each heap; in use is what was allocated here.
    pub fn fake_budget(&self, bytes: u64) {
        state(|s| s.budget = Some(bytes));
    }

    /// The device imports memory of the application in multiples of this.
    pub fn import_by(&self, bytes: u64) {
        state(|s| s.host_pages = Some(bytes));
    }

    /// From now on, no call that makes pipelines returns before this many of them are under way at once; after twenty
    /// seconds they do.
    pub fn compile_together(&self, calls: u64) {
        state(|s| (s.compile_together, s.most_compiling) = (calls, 0));
    }

    /// Every call that makes pipelines takes so long.
    pub fn compile_slowly(&self, time: Duration) {
        state(|s| s.compile_slowly = time);
    }

    /// The most calls that made pipelines at once.
    pub fn most_compiling(&self) -> u64 {
        state(|s| s.most_compiling)
    }

    /// The driver calls itself another.
    pub fn pretend_driver(&self, driver: vk::DriverId) {
        state(|s| s.driver = Some(driver));
    }

    /// Bytes in memory objects that were not freed.
    pub fn memory_bytes(&self) -> u64 {
        state(|s| s.memory_bytes.values().sum())
    }

    /// From now on, command buffers and submissions are gone through for hazards.
    pub fn watch(&self) {
        state(|s| s.watch = Some(watch::Watch::default()));
    }

    /// How many commands were submitted since [`watch`](Seam::watch), the hazards among them, and what submissions
    /// wrote that was not ready for the host when they ended.
    pub fn watched(&self) -> (usize, Vec<String>, Vec<String>) {
        let watch = state(|s| s.watch.take()).unwrap_or_default();
        (watch.commands, watch.hazards, watch.unready)
    }

    /// The most bytes that there were in memory objects at once.
    pub fn peak_memory_bytes(&self) -> u64 {
        state(|s| s.peak_memory_bytes)
    }

    /// Rules of Vulkan that were broken.
    pub fn violations(&self) -> Vec<String> {
        state(|s| std::mem::take(&mut s.violations))
    }
}

impl Drop for Seam {
    fn drop(&mut self) {
        open_gate();
    }
}

/// From now on, the driver does not get what is submitted.
pub fn close_gate() {
    state(|s| s.gate_closed = true);
}

/// Can be called from any thread, while another waits for what is held back.
pub fn open_gate() {
    let _one_at_a_time = QUEUE.lock();
    let held = state(|s| {
        s.gate_closed = false;
        std::mem::take(&mut s.held)
    });
    for Held { queue, commands, signals } in held {
        let commands: Vec<_> =
            commands.into_iter().map(|c| vk::CommandBufferSubmitInfo::default().command_buffer(c)).collect();
        let all = vk::PipelineStageFlags2::ALL_COMMANDS;
        let signals: Vec<_> = signals
            .into_iter()
            .map(|(semaphore, value)| {
                vk::SemaphoreSubmitInfo::default().semaphore(semaphore).value(value).stage_mask(all)
            })
            .collect();
        let info =
            vk::SubmitInfo2::default().command_buffer_infos(&commands).signal_semaphore_infos(&signals);
        let sent = unsafe { table::real::vkQueueSubmit2(queue, 1, &info, vk::Fence::null()) };
        assert_eq!(sent, vk::Result::SUCCESS);
    }
}

/// Takes note of a call that makes pipelines, and holds it as the test wants it.
fn begin_compiling() {
    let time = state(|s| {
        s.compiling += 1;
        s.most_compiling = s.most_compiling.max(s.compiling);
        s.compile_slowly
    });
    let begun = Instant::now();
    let alone =
        || state(|s| s.most_compiling < s.compile_together) && begun.elapsed() < Duration::from_secs(20);
    while alone() || begun.elapsed() < time {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn end_compiling() {
    state(|s| s.compiling -= 1);
}

/// The loader that is wrapped.
fn loader() -> &'static ash::Entry {
    static LOADER: OnceLock<ash::Entry> = OnceLock::new();
    LOADER.get_or_init(|| unsafe { ash::Entry::load() }.expect("the tests need a Vulkan loader"))
}

/// An entry point to the wrapped functions.
pub fn entry() -> tidemill::interop::Entry {
    let table = ash::StaticFn { get_instance_proc_addr };
    unsafe { tidemill::interop::Entry::new(ash::Entry::from_static_fn(table)) }
}

fn real_address(instance: vk::Instance, name: *const c_char) -> vk::PFN_vkVoidFunction {
    unsafe { (loader().static_fn().get_instance_proc_addr)(instance, name) }
}

/// The last instance that anybody asked a function of: where device functions are looked up, because what the loader
/// gives there serves every device.
static INSTANCE: Mutex<vk::Instance> = Mutex::new(vk::Instance::null());

unsafe extern "system" fn get_instance_proc_addr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    let real = real_address(instance, name)?;
    if instance != vk::Instance::null() {
        *INSTANCE.lock() = instance;
    }
    let name = unsafe { CStr::from_ptr(name) };
    if name == c"vkGetDeviceProcAddr" {
        let ours: vk::PFN_vkGetDeviceProcAddr = get_device_proc_addr;
        return Some(unsafe {
            std::mem::transmute::<vk::PFN_vkGetDeviceProcAddr, unsafe extern "system" fn()>(ours)
        });
    }
    Some(table::wrap(name, real))
}

unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    if unsafe { CStr::from_ptr(name) } == c"vkGetDeviceFaultInfoEXT" && state(|s| s.device_fault) {
        let ours: vk::PFN_vkGetDeviceFaultInfoEXT = device_fault::vkGetDeviceFaultInfoEXT;
        return Some(unsafe {
            std::mem::transmute::<vk::PFN_vkGetDeviceFaultInfoEXT, unsafe extern "system" fn()>(ours)
        });
    }
    let instance = *INSTANCE.lock();
    let of_device = real_address(instance, c"vkGetDeviceProcAddr".as_ptr())?;
    let of_device: vk::PFN_vkGetDeviceProcAddr = unsafe { std::mem::transmute(of_device) };
    let direct = unsafe { of_device(device, name) }?;
    let real = real_address(instance, name).unwrap_or(direct);
    let name = unsafe { CStr::from_ptr(name) };
    Some(table::wrap(name, real))
}
