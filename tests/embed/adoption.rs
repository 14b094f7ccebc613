//! The device, its needs, the queue's lock, and who destroys what.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ash::vk;
use tidemill::error::HostError;
use tidemill::interop::{FEATURES_NEEDED, FEATURES_USED, QueueLock};
use tidemill::profile::Profiling;
use tidemill::{Accelerator, Error, Prewarm};

use crate::host::{Host, Made, config};

/// `x + x`, by a recording and by a plan.
fn works(gpu: &Accelerator) {
    let x = gpu.upload(&[1.5f32; 1000], [1000]).unwrap();
    let y = gpu.run(|r| r.add(&x, &x)).unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [3.0; 1000]);
    let r = gpu.begin_recording().unwrap();
    let square = r.matmul(&x.reshape([1, 1000]).unwrap(), &x.reshape([1000, 1]).unwrap()).unwrap();
    let square = r.keep(square).unwrap();
    r.profiling(Profiling::Timeline);
    let mut plan = r.into_plan().unwrap();
    let done = plan.submit().unwrap();
    assert_eq!(square.read::<f32>().unwrap(), [2250.0]);
    assert!(!done.profile().unwrap().rows.is_empty());
}

/// The host's device still does what the host wants.
fn still_the_hosts(host: &Host) {
    let buffer = host.buffer(256, vk::BufferUsageFlags::TRANSFER_DST);
    host.run(&[], |commands| {
        // SAFETY: valid handles.
        unsafe { host.device.cmd_fill_buffer(commands, buffer.raw, 0, 256, 2.5f32.to_bits()) };
    });
    assert_eq!(buffer.read(), [2.5; 64]);
}

#[test]
fn nothing_of_the_hosts_is_destroyed() {
    let host = Host::new(Made::Full);
    for _ in 0..2 {
        let gpu = host.accelerator();
        works(&gpu);
        assert_eq!(gpu.device().name, host.accelerator().device().name);
        // `Ok` says that nothing is left: the host's own teardown, with validation on, says so too.
        gpu.close().unwrap();
        still_the_hosts(&host);
    }
}

#[test]
fn handles_may_be_dropped_in_any_order() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let x = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    let y = gpu.run(|r| r.exp(&x)).unwrap();
    assert!(matches!(gpu.close(), Err(Error::StillInUse { tensors: 2, .. })));
    drop(x);
    assert_eq!(y.read::<f32>().unwrap().len(), 64);
    drop(y);
    still_the_hosts(&host);

    // The last handle goes while its work is in flight.
    let gpu = host.accelerator();
    let x = gpu.upload(&[1.0f32; 1 << 16], [1 << 16]).unwrap();
    drop(gpu.run(|r| r.exp(&x)).unwrap());
    drop((x, gpu));
    still_the_hosts(&host);
}

#[test]
fn a_device_with_no_more_than_what_is_needed_will_do() {
    for debug_utils in [true, false] {
        let host = Host::with(Made::Needed, debug_utils);
        let gpu = host.accelerator();
        let features = gpu.device().features;
        assert!(!features.push_descriptors && !features.calibrated_timestamps && !features.host_query_reset);
        assert!(!features.float16 && !features.int64);
        works(&gpu);
        assert!(gpu.stats().commands.descriptor_pools > 0);
        gpu.close().unwrap();
    }
}

#[test]
fn pipelines_are_warmed_on_the_hosts_queue_too() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator_with(&config().prewarm(Prewarm::Background));
    works(&gpu);
    still_the_hosts(&host);
    gpu.close().unwrap();
}

#[test]
fn what_is_needed_is_published() {
    let host = Host::new(Made::Full);
    let needs = host.needs();
    assert!(FEATURES_NEEDED.iter().all(|name| needs.features().contains(name)));
    let known = |name: &&'static str| FEATURES_NEEDED.contains(name) || FEATURES_USED.contains(name);
    assert!(needs.features().iter().all(known));
    // Only what the device has: enabling all of it makes a device, which `Made::Full` has shown.
    assert!(needs.extensions().contains(&ash::khr::push_descriptor::NAME));
    let mut core = vk::PhysicalDeviceFeatures::default().wide_lines(true);
    let (mut v11, mut v12, mut v13) = Default::default();
    needs.enable(&mut core, &mut v11, &mut v12, &mut v13);
    assert_eq!((core.wide_lines, v12.timeline_semaphore, v13.maintenance4), (1, 1, 1));
}

#[test]
fn a_device_that_lacks_something_is_refused_by_name() {
    let host = Host::new(Made::Bare);
    let error = Accelerator::from_raw(host.offer(host.handles(), host.lock.clone()), &config()).unwrap_err();
    let text = error.to_string();
    for name in FEATURES_NEEDED {
        assert!(text.contains(&format!("the feature {name}")), "{text}");
    }
    assert!(text.contains("DeviceNeeds"), "{text}");
    assert!(matches!(error, Error::Host(HostError::DeviceLacks { missing, .. }) if missing.len() == 3));

    let mut handles = host.handles();
    handles.api_version = vk::API_VERSION_1_1;
    handles.queue_family = 77;
    let error = Accelerator::from_raw(host.offer(handles, host.lock.clone()), &config()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("an instance of Vulkan 1.3 (it is 1.1)"), "{text}");
    assert!(text.contains("the queue's family 77 can't compute"), "{text}");
}

/// Counts, and sees whether two are inside at once.
#[derive(Default)]
struct CountingLock {
    inner: std::sync::Mutex<()>,
    inside: AtomicBool,
    calls: AtomicU64,
}

impl QueueLock for CountingLock {
    fn with_queue(&self, call: &mut dyn FnMut()) {
        let _guard = self.inner.lock().unwrap();
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two at once");
        call();
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.inside.store(false, Ordering::SeqCst);
    }
}

#[test]
fn every_submission_is_made_under_the_hosts_lock() {
    let host = Host::new(Made::Full);
    let lock = Arc::new(CountingLock::default());
    let gpu = Accelerator::from_raw(host.offer(host.handles(), lock.clone()), &config()).unwrap();
    let x = gpu.upload(&[1.0f32; 100], [100]).unwrap();
    for n in 1..=5 {
        drop(gpu.run(|r| r.neg(&x)).unwrap());
        assert_eq!(lock.calls.load(Ordering::SeqCst), n);
    }
}

#[test]
fn host_and_engine_share_the_queue_from_several_threads() {
    let host = Host::new(Made::Full);
    let gpu = host.accelerator();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The host's own thread; the layer watches who uses the queue when.
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                still_the_hosts(&host);
            }
        });
        let workers: Vec<_> = (0..2)
            .map(|n| {
                let gpu = gpu.clone();
                scope.spawn(move || {
                    let x = gpu.upload(&[n as f32; 500], [500]).unwrap();
                    for _ in 0..50 {
                        let y = gpu.run(|r| r.add_scalar(&x, 1.0)).unwrap();
                        assert_eq!(y.read::<f32>().unwrap(), [n as f32 + 1.0; 500]);
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        stop.store(true, Ordering::Relaxed);
    });
    gpu.close().unwrap();
}

/// Panics before or after the call, or not at all.
struct PanickingLock(AtomicU64);

impl QueueLock for PanickingLock {
    fn with_queue(&self, call: &mut dyn FnMut()) {
        let when = self.0.swap(0, Ordering::Relaxed);
        assert_ne!(when, 1, "before the call");
        call();
        assert_ne!(when, 2, "after the call");
    }
}

#[test]
fn a_lock_that_panics_loses_no_submission() {
    let host = Host::new(Made::Full);
    let lock = Arc::new(PanickingLock(AtomicU64::new(0)));
    let gpu = Accelerator::from_raw(host.offer(host.handles(), lock.clone()), &config()).unwrap();
    let x = gpu.upload(&[1.0f32; 100], [100]).unwrap();
    for _ in 0..3 {
        lock.0.store(1, Ordering::Relaxed);
        let error = gpu.run(|r| r.neg(&x)).unwrap_err();
        assert!(matches!(error, Error::Host(HostError::QueueLock)), "{error}");
        lock.0.store(2, Ordering::Relaxed);
        let y = gpu.run(|r| r.add(&x, &x)).unwrap();
        assert_eq!(y.read::<f32>().unwrap(), [2.0; 100], "the queue has it");
    }
    drop(x);
    gpu.close().unwrap();
}

/// Forgets what it was given.
struct LazyLock(AtomicBool);

impl QueueLock for LazyLock {
    fn with_queue(&self, call: &mut dyn FnMut()) {
        if !self.0.load(Ordering::Relaxed) {
            call();
        }
    }
}

#[test]
fn a_lock_that_makes_no_call_is_an_error() {
    let host = Host::new(Made::Full);
    let lock = Arc::new(LazyLock(AtomicBool::new(true)));
    let gpu = Accelerator::from_raw(host.offer(host.handles(), lock.clone()), &config()).unwrap();
    let x = gpu.upload(&[1.0f32; 100], [100]).unwrap();
    let error = gpu.run(|r| r.neg(&x)).unwrap_err();
    assert!(matches!(error, Error::Host(HostError::QueueLock)), "{error}");
    assert!(error.to_string().contains("QueueLock::with_queue did not make the call"));
    lock.0.store(false, Ordering::Relaxed);
    let r = gpu.begin_recording().unwrap();
    let y = r.neg(&x).unwrap();
    let y = r.keep(y).unwrap();
    assert!(r.end_recording().unwrap().wait_timeout(Duration::from_secs(20)).unwrap());
    assert_eq!(y.read::<f32>().unwrap(), [-1.0; 100]);
}
