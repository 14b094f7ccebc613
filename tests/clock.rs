//! A device whose clock lies, or that has none: planted between the engine and the driver. The plant is
//! process-wide, so these tests are a program of their own and take turns.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]
#![allow(unsafe_code, clippy::multiple_unsafe_ops_per_block, reason = "a driver's function table is wrapped")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, RwLock};

use ash::vk;
use tidemill::error::MeasurementError;
use tidemill::profile::{Clock, Figure, Profiling};
use tidemill::{Accelerator, Config, Prewarm};

/// The driver's stated period is multiplied by this (bits of an f32).
static PERIOD_FACTOR: AtomicU32 = AtomicU32::new(0);
/// Query results are divided by this, counted from the first.
static SHRINK: AtomicU64 = AtomicU64::new(1);
/// What the queues say of their timestamps; more than 64: the truth.
static VALID_BITS: AtomicU32 = AtomicU32::new(99);
/// Only this many low bits of a query result are right; above them is noise.
static NOISE_ABOVE: AtomicU32 = AtomicU32::new(64);
/// No `hostQueryReset`, and no calibrated timestamps.
static POOR: AtomicU32 = AtomicU32::new(0);

static LOADER: OnceLock<ash::Entry> = OnceLock::new();
static TURN: Mutex<()> = Mutex::new(());

fn entry() -> &'static ash::Entry {
    // SAFETY: the loader's initialisation has no preconditions.
    LOADER.get_or_init(|| unsafe { ash::Entry::load() }.expect("a Vulkan loader"))
}

type Function = unsafe extern "system" fn();
/// The driver's own function. It may move: layers are unloaded with the last instance.
type True<F> = RwLock<Option<F>>;

fn truth<F: Copy>(function: &True<F>) -> F {
    function.read().unwrap().expect("planted when it was asked for")
}

static PROPERTIES2: True<vk::PFN_vkGetPhysicalDeviceProperties2> = True::new(None);
static FEATURES2: True<vk::PFN_vkGetPhysicalDeviceFeatures2> = True::new(None);
static FAMILIES: True<vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties> = True::new(None);
static EXTENSIONS: True<vk::PFN_vkEnumerateDeviceExtensionProperties> = True::new(None);
static DEVICE_PROC: True<vk::PFN_vkGetDeviceProcAddr> = True::new(None);
static RESULTS: True<vk::PFN_vkGetQueryPoolResults> = True::new(None);
static FIRST: AtomicU64 = AtomicU64::new(0);

unsafe extern "system" fn properties2(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    // SAFETY: the caller's arguments are passed on.
    unsafe { truth(&PROPERTIES2)(device, out) };
    let factor = f32::from_bits(PERIOD_FACTOR.load(Ordering::Relaxed));
    // SAFETY: the caller gave a valid structure.
    unsafe { (*out).properties.limits.timestamp_period *= factor };
}

unsafe extern "system" fn features2(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceFeatures2<'_>) {
    // SAFETY: the caller's arguments are passed on.
    unsafe { truth(&FEATURES2)(device, out) };
    if POOR.load(Ordering::Relaxed) == 0 {
        return;
    }
    // SAFETY: the caller gave a valid chain.
    let mut next = unsafe { (*out).p_next }.cast::<vk::BaseOutStructure<'_>>();
    while !next.is_null() {
        // SAFETY: as above.
        let base = unsafe { &mut *next };
        if base.s_type == vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES {
            // SAFETY: the tag says what it is.
            unsafe { (*next.cast::<vk::PhysicalDeviceVulkan12Features<'_>>()).host_query_reset = vk::FALSE };
        }
        next = base.p_next;
    }
}

unsafe extern "system" fn families(
    device: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties,
) {
    // SAFETY: the caller's arguments are passed on.
    unsafe { truth(&FAMILIES)(device, count, out) };
    let bits = VALID_BITS.load(Ordering::Relaxed);
    if !out.is_null() && bits <= 64 {
        // SAFETY: the driver has written this many.
        let families = unsafe { std::slice::from_raw_parts_mut(out, *count as usize) };
        families.iter_mut().for_each(|family| family.timestamp_valid_bits = bits);
    }
}

unsafe extern "system" fn extensions(
    device: vk::PhysicalDevice,
    layer: *const c_char,
    count: *mut u32,
    out: *mut vk::ExtensionProperties,
) -> vk::Result {
    // SAFETY: the caller's arguments are passed on.
    let result = unsafe { truth(&EXTENSIONS)(device, layer, count, out) };
    if POOR.load(Ordering::Relaxed) > 0 && !out.is_null() {
        // SAFETY: the driver has written this many.
        let listed = unsafe { std::slice::from_raw_parts_mut(out, *count as usize) };
        for extension in listed {
            if extension.extension_name_as_c_str().is_ok_and(|n| n.to_string_lossy().contains("calibrated")) {
                extension.extension_name[0] = b'X' as c_char;
            }
        }
    }
    result
}

unsafe extern "system" fn results(
    device: vk::Device,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    size: usize,
    data: *mut c_void,
    stride: vk::DeviceSize,
    flags: vk::QueryResultFlags,
) -> vk::Result {
    // SAFETY: the caller's arguments are passed on.
    let result = unsafe { truth(&RESULTS)(device, pool, first, count, size, data, stride, flags) };
    assert_eq!((stride, flags), (8, vk::QueryResultFlags::TYPE_64));
    // SAFETY: the driver has written this many.
    let ticks = unsafe { std::slice::from_raw_parts_mut(data.cast::<u64>(), count as usize) };
    let _ = FIRST.compare_exchange(0, ticks[0], Ordering::Relaxed, Ordering::Relaxed);
    let (origin, shrink, bits) =
        (FIRST.load(Ordering::Relaxed), SHRINK.load(Ordering::Relaxed), NOISE_ABOVE.load(Ordering::Relaxed));
    for tick in ticks {
        *tick = origin + (*tick - origin) / shrink;
        if bits < 64 {
            *tick = (*tick & ((1 << bits) - 1)) | (0x5a5a_5a5a_5a5a_5a5a << bits);
        }
    }
    result
}

/// Keeps the true function, and gives the planted one.
macro_rules! plant {
    ($store:ident, $found:expr, $ours:expr, $kind:ty) => {{
        // SAFETY: the function of that name has this type.
        let theirs = unsafe { std::mem::transmute::<Function, $kind>($found) };
        *$store.write().unwrap() = Some(theirs);
        // SAFETY: a function pointer, to be called by its own type again.
        Some(unsafe { std::mem::transmute::<$kind, Function>($ours) })
    }};
}

unsafe extern "system" fn device_proc(device: vk::Device, name: *const c_char) -> Option<Function> {
    // SAFETY: the caller's arguments are passed on.
    let found = unsafe { truth(&DEVICE_PROC)(device, name) }?;
    // SAFETY: the caller gave a string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"vkGetQueryPoolResults" => plant!(RESULTS, found, results, vk::PFN_vkGetQueryPoolResults),
        _ => Some(found),
    }
}

unsafe extern "system" fn instance_proc(instance: vk::Instance, name: *const c_char) -> Option<Function> {
    // SAFETY: the caller's arguments are passed on.
    let found = unsafe { entry().get_instance_proc_addr(instance, name) }?;
    // SAFETY: the caller gave a string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"vkGetPhysicalDeviceProperties2" => {
            plant!(PROPERTIES2, found, properties2, vk::PFN_vkGetPhysicalDeviceProperties2)
        }
        b"vkGetPhysicalDeviceFeatures2" => {
            plant!(FEATURES2, found, features2, vk::PFN_vkGetPhysicalDeviceFeatures2)
        }
        b"vkGetPhysicalDeviceQueueFamilyProperties" => {
            plant!(FAMILIES, found, families, vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties)
        }
        b"vkEnumerateDeviceExtensionProperties" => {
            plant!(EXTENSIONS, found, extensions, vk::PFN_vkEnumerateDeviceExtensionProperties)
        }
        b"vkGetDeviceProcAddr" => plant!(DEVICE_PROC, found, device_proc, vk::PFN_vkGetDeviceProcAddr),
        _ => Some(found),
    }
}

/// An accelerator on the wrapped driver, alone in the process until the guard goes.
fn planted(
    period: f32,
    shrink: u64,
    valid_bits: u32,
    noise_above: u32,
    poor: bool,
) -> (Accelerator, MutexGuard<'static, ()>) {
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    PERIOD_FACTOR.store(period.to_bits(), Ordering::Relaxed);
    SHRINK.store(shrink, Ordering::Relaxed);
    VALID_BITS.store(valid_bits, Ordering::Relaxed);
    NOISE_ABOVE.store(noise_above, Ordering::Relaxed);
    POOR.store(u32::from(poor), Ordering::Relaxed);
    FIRST.store(0, Ordering::Relaxed);
    let functions = ash::StaticFn { get_instance_proc_addr: instance_proc };
    // SAFETY: the functions are the loader's, or pass on to it.
    let wrapped = unsafe { ash::Entry::from_static_fn(functions) };
    // SAFETY: as above; they live as long as the process.
    let wrapped = unsafe { tidemill::interop::Entry::new(wrapped) };
    let config = Config::new().entry(wrapped).validation(true).no_cache().prewarm(Prewarm::Off);
    (Accelerator::new(&config).expect("the tests need a Vulkan device and the validation layer"), turn)
}

/// A few sums, profiled alone.
fn sums(gpu: &Accelerator) -> tidemill::Result<tidemill::profile::Run> {
    let a = gpu.upload(&vec![1.0f32; 1 << 20], [1 << 20])?;
    let warm = gpu.run(|r| r.add(&a, &a))?;
    assert_eq!(warm.read::<f32>()?[0], 2.0);
    let session = gpu.begin_profiling("sums", Profiling::Isolated)?;
    let mut last = warm;
    for _ in 0..8 {
        last = gpu.run(|r| r.add(&a, &last))?;
    }
    assert_eq!(last.read::<f32>()?[7], 10.0);
    let run = session.finish();
    assert_eq!(gpu.validation_messages(), Vec::<String>::new());
    run
}

#[test]
fn the_true_clock_is_believed() {
    let (gpu, _turn) = planted(1.0, 1, 99, 64, false);
    let run = sums(&gpu).unwrap();
    run.check().unwrap_or_else(|error| panic!("{error}\n{run}"));
    assert_eq!(run.rows().filter(|row| row.figure.throughput().is_some()).count(), 8);
}

#[test]
fn a_period_that_is_a_tenth_of_the_truth_is_found_out() {
    let (gpu, _turn) = planted(0.1, 1, 99, 64, false);
    let run = sums(&gpu).unwrap();
    assert!(run.rows().all(|row| row.figure.throughput().is_none()), "{run}");
    if matches!(run.clock, Clock::Calibrated { .. }) {
        assert!(
            matches!(run.gpu, Some(Err(MeasurementError::Clock { rate })) if (rate - 0.1).abs() < 0.02),
            "{run}"
        );
    }
    let refused = run.check().unwrap_err().to_string();
    assert!(refused.starts_with("measurement error in"), "{refused}");
    assert!(run.to_string().contains("measurement error"), "{run}");
    assert!(run.html().contains("the device's clock counts"), "{run}");
}

#[test]
fn a_device_that_says_it_was_two_thousand_times_faster_is_not_believed() {
    // The clock itself is right, only what the dispatches say is not: the device's peaks find it out. By so much that a
    // dispatch which a busy machine held up for a tenth of a second is found out, too.
    let (gpu, _turn) = planted(1.0, 2000, 99, 64, false);
    let run = sums(&gpu).unwrap();
    for row in run.rows() {
        match &row.figure {
            Figure::Impossible(MeasurementError::Memory { gbytes_per_s: figure, peak })
            | Figure::Impossible(MeasurementError::Compute { gflops: figure, peak }) => {
                assert!(figure > peak)
            }
            other => panic!("{other:?}\n{run}"),
        }
    }
    assert!(run.check().is_err());
}

#[test]
fn the_same_without_calibration() {
    let (gpu, _turn) = planted(0.0005, 1, 99, 64, true);
    let run = sums(&gpu).unwrap();
    assert_eq!(run.clock, Clock::Uncalibrated);
    assert!(run.rows().all(|row| row.figure.throughput().is_none()), "{run}");
    assert!(run.check().is_err());
    // Nor can a run be busy for longer than it took.
    drop(gpu);
    drop(_turn);
    let (gpu, _turn) = planted(1000.0, 1, 99, 64, true);
    let run = sums(&gpu).unwrap();
    assert!(matches!(run.gpu, Some(Err(MeasurementError::Busy { .. }))), "{run}");
}

#[test]
fn a_poor_device_resets_its_queries_itself_and_says_nothing_that_needs_both_clocks() {
    let (gpu, _turn) = planted(1.0, 1, 99, 64, true);
    assert!(!gpu.device().features.host_query_reset && !gpu.device().features.calibrated_timestamps);
    let run = sums(&gpu).unwrap();
    run.check().unwrap_or_else(|error| panic!("{error}\n{run}"));
    let time = run.gpu.unwrap().unwrap();
    assert!(time.busy_ns > 0 && time.idle_ns.is_none() && time.utilisation.is_none());
    assert!(run.to_string().contains("uncalibrated") && !run.to_string().contains("utilisation"));
    // No axis that is not there: the trace has the device's track alone.
    assert!(!run.trace_json().contains("\"name\":\"submit\""));
    assert!(run.trace_json().contains("add 1048576 f32"));
}

#[test]
fn only_valid_bits_count_and_the_clock_may_wrap() {
    // 28 bits of a nanosecond clock wrap every 0.27 s.
    let (gpu, _turn) = planted(1.0, 1, 28, 28, true);
    for _ in 0..3 {
        let run = sums(&gpu).unwrap();
        run.check().unwrap_or_else(|error| panic!("{error}\n{run}"));
        assert!(run.rows().all(|row| row.duration_ns() < 200_000_000), "{run}");
        std::thread::sleep(std::time::Duration::from_millis(90));
    }
}

#[test]
fn a_queue_without_timestamps_says_so_and_everything_else_works() {
    let (gpu, _turn) = planted(1.0, 1, 0, 64, false);
    assert_eq!(gpu.device().timestamps, None);
    let run = sums(&gpu).unwrap();
    assert_eq!((run.clock, run.gpu), (Clock::NoTimestamps, None));
    assert_eq!((run.submissions, run.dispatches), (8, 8));
    assert!(run.wall_ns > 0 && run.to_string().contains("no timestamps"));
    let a = gpu.upload(&[1.0f32], [1]).unwrap();
    let r = gpu.begin_recording().unwrap();
    r.profiling(Profiling::Timeline);
    let sum = r.add(&a, &a).unwrap();
    let kept = r.keep(sum).unwrap();
    let refused = r.end_recording().unwrap().profile().unwrap_err();
    let without = "has no timestamps on its compute queue, so there are no profiles; everything else works";
    assert!(refused.to_string().ends_with(without), "{refused}");
    assert_eq!(kept.read::<f32>().unwrap(), [2.0]);
}
