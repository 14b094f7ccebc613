//! Memory that the host can't reach, or that is not coherent: a wrapped loader makes the driver look like that.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "gpu/fixtures.rs"]
mod fixtures;
#[path = "gpu/harness.rs"]
mod harness;
mod seam;

use seam::{FakeMemory, Seam};
use tidemill::{Accelerator, DType, Dispatch, Error};

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

/// Everything that moves data, in one go.
fn tour(gpu: &Accelerator) -> Vec<Vec<f32>> {
    let mut seen = Vec::new();
    for n in [0usize, 1, 255, 256, 257, 5000, 70_001] {
        let a = gpu.upload(&ramp(n), [n]).unwrap();
        let b = gpu.upload_with([n], |f| f.extend((0..n).map(|i| 0.5 * i as f32))).unwrap();
        seen.push(a.read::<f32>().unwrap());
        let sum = gpu.run(|r| r.add(&a, &b)).unwrap();
        // In flight, as far as anybody knows: the sum sees the old contents.
        a.write(&vec![-1.0f32; n]).unwrap();
        a.write(&vec![-2.0f32; n]).unwrap();
        let old_and_new = gpu.run(|r| r.add(&sum, &a)).unwrap();
        // Nothing uses it any more: in place, staged or not.
        gpu.synchronize().unwrap();
        b.write_with(|f| f.extend((0..n).map(|i| i as f32 * 3.0))).unwrap();
        b.write(&vec![9.0f32; n]).unwrap();
        let last = gpu.run(|r| r.mul(&b, &old_and_new)).unwrap();
        for t in [&sum, &old_and_new, &a, &b, &last] {
            seen.push(t.read::<f32>().unwrap());
        }
        // Read twice, and after other work was done on the same memory.
        seen.push(sum.read::<f32>().unwrap());
    }
    let incomplete = gpu.upload_with([4], |f| f.extend([1.0f32])).unwrap_err();
    assert!(matches!(incomplete, tidemill::Error::Incomplete { written: 1, expected: 4, .. }));
    let scale = fixtures::kernel("scale");
    let x = gpu.upload(&ramp(100), [100]).unwrap();
    let run = Dispatch::new(&scale).input(&x).output([100], DType::F32).push(&[3.0f32]).specialize(0, 64u32);
    seen.push(gpu.run(|r| Ok(r.dispatch(run.groups([2, 1, 1]))?[0])).unwrap().read().unwrap());
    seen
}

/// What the driver gives with its own memory.
fn plain() -> Vec<Vec<f32>> {
    tour(&harness::gpu())
}

#[test]
fn a_discrete_card_stages_and_gives_the_same() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete());
    let gpu = seam.gpu();
    assert!(tour(&gpu) == plain());
    assert!(seam.calls("vkCmdCopyBuffer") > 20, "data went through staging");
    drop(gpu);
    assert_eq!(seam.violations(), [""; 0]);
}

#[test]
fn memory_that_is_not_coherent_is_flushed_and_invalidated() {
    for memory in [FakeMemory::discrete_not_coherent(), FakeMemory::integrated_not_coherent()] {
        let seam = Seam::take();
        seam.fake_memory(memory);
        let gpu = seam.gpu();
        assert!(tour(&gpu) == plain());
        assert!(
            seam.calls("vkFlushMappedMemoryRanges") > 0 && seam.calls("vkInvalidateMappedMemoryRanges") > 0
        );
        // A memory object of its own, of no round size.
        let n = (65 << 20) / 4 + 3;
        let a = gpu.upload_with([n], |f| f.extend((0..n).map(|i| (i % 127) as f32))).unwrap();
        assert!(a.read::<f32>().unwrap().iter().enumerate().all(|(i, x)| *x == (i % 127) as f32));
        drop(a);
        drop(gpu);
        assert_eq!(seam.violations(), [""; 0]);
    }
}

#[test]
fn write_combined_memory_is_written_in_place_and_read_through_staging() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::write_combined());
    let gpu = seam.gpu();
    let copies = seam.calls("vkCmdCopyBuffer");
    let a = gpu.upload(&ramp(100), [100]).unwrap();
    gpu.synchronize().unwrap();
    assert_eq!(seam.calls("vkCmdCopyBuffer"), copies);
    assert_eq!(a.read::<f32>().unwrap(), ramp(100));
    assert_eq!(seam.calls("vkCmdCopyBuffer"), copies + 1);
    assert!(tour(&gpu) == plain());
}

#[test]
fn uploads_ride_on_the_next_submission_or_are_sent_at_a_bound() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete());
    let gpu = seam.gpu();
    let submits = || seam.calls("vkQueueSubmit2");
    let before = submits();
    let a = gpu.upload(&ramp(100), [100]).unwrap();
    let b = gpu.upload(&ramp(100), [100]).unwrap();
    assert_eq!(submits(), before, "nothing to be sent yet");
    let sum = gpu.run(|r| r.add(&a, &b)).unwrap();
    assert_eq!(submits(), before + 1, "uploads and the sum are one submission");
    assert_eq!(sum.read::<f32>().unwrap()[7], 14.0);

    // Many small ones: each holds a staging block until it is sent.
    let before = submits();
    let many: Vec<_> = (0..2000).map(|i| gpu.upload(&[i as f32], [1]).unwrap()).collect();
    let sent = submits() - before;
    assert!((4..=20).contains(&sent), "{sent} submissions");
    for i in [0, 999, 1999] {
        assert_eq!(many[i].read::<f32>().unwrap(), [i as f32]);
    }
    // Few large ones, of which 16 MiB are enough to be sent.
    gpu.synchronize().unwrap();
    let before = submits();
    let n = (7 << 20) / 4;
    let large: Vec<_> = (0..3).map(|i| gpu.upload(&vec![i as f32; n], [n]).unwrap()).collect();
    assert_eq!(submits(), before + 1);
    assert_eq!(large[2].read::<f32>().unwrap()[n - 1], 2.0);
    // synchronize sends what is left.
    let c = gpu.upload(&[1.0f32], [1]).unwrap();
    let before = submits();
    gpu.synchronize().unwrap();
    assert_eq!(submits(), before + 1);
    drop(c);
}

#[test]
fn a_tensor_as_large_as_the_cap_can_be_uploaded_written_and_read() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete());
    let gpu = harness::gpu_with(seam.config().memory_checks(false).pool_cap(32 << 20));
    let n = (30 << 20) / 4;
    let t = gpu.upload(&ramp(n), [n]).unwrap();
    assert!(t.read::<f32>().unwrap() == ramp(n));
    t.write(&vec![7.0f32; n]).unwrap();
    assert!(t.read::<f32>().unwrap().iter().all(|x| *x == 7.0));
    t.write_with(|f| f.extend((0..n).map(|i| (n - i) as f32))).unwrap();
    assert!(t.read::<f32>().unwrap().iter().enumerate().all(|(i, x)| *x == (n - i) as f32));
    let pool = gpu.stats().pool;
    assert_eq!((pool.live_blocks, pool.live_bytes, pool.peak_bytes), (1, 30 << 20, 30 << 20));
    assert_eq!(seam.violations(), [""; 0]);
}

#[test]
fn staging_is_bounded_however_large_a_tensor_is() {
    for memory in [FakeMemory::discrete(), FakeMemory::discrete_not_coherent()] {
        let seam = Seam::take();
        seam.fake_memory(memory);
        let gpu = seam.gpu();
        // Neither whole pieces nor whole vectors.
        let n = (90 << 20) / 4 + 3;
        let t = gpu.upload(&ramp(n), [n]).unwrap();
        let twice = gpu.run(|r| r.add(&t, &t)).unwrap();
        // In flight: the sum sees the old contents.
        t.write(&vec![-1.0f32; n]).unwrap();
        let wrong = |t: &tidemill::Tensor, of: &dyn Fn(usize) -> f32| {
            t.read::<f32>().unwrap().iter().enumerate().position(|(i, x)| *x != of(i))
        };
        assert_eq!(wrong(&twice, &|i| 2.0 * i as f32), None);
        assert_eq!(wrong(&t, &|_| -1.0), None);
        // Several threads at once have to share.
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let (gpu, n) = (&gpu, (20 << 20) / 4);
                scope.spawn(move || {
                    for round in 0..2 {
                        let x = (10 * thread + round) as f32;
                        let t = gpu.upload(&vec![x; n], [n]).unwrap();
                        assert!(t.read::<f32>().unwrap().iter().all(|got| *got == x));
                    }
                });
            }
        });
        let pool = gpu.stats().pool;
        // Each piece has some bytes behind it that are watched, and so is of the next class.
        assert!((16 << 20..=(64 << 20) + 4 * (9 << 20)).contains(&pool.peak_staging_bytes), "{pool:?}");
        assert!(pool.staging_bytes <= pool.peak_staging_bytes);
        gpu.synchronize().unwrap();
        gpu.trim();
        assert_eq!(gpu.stats().pool.staging_bytes, 0);
        drop((t, twice));
        drop(gpu);
        assert_eq!(seam.violations(), [""; 0]);
    }
}

#[test]
fn an_upload_waits_only_for_staging_that_is_all_under_way() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete());
    let gpu = harness::gpu_with(seam.config().memory_checks(false));
    let n = (64 << 20) / 4;
    let t = gpu.empty([n], DType::F32).unwrap();
    let last = gpu.empty([1], DType::F32).unwrap();
    seam.close_gate();
    t.write(&vec![1.0f32; n]).unwrap();
    assert!(gpu.stats().in_flight > 0);
    let opener = std::thread::spawn(|| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        seam::open_gate();
    });
    let begun = std::time::Instant::now();
    last.write(&[2.0f32]).unwrap();
    assert!(begun.elapsed() >= std::time::Duration::from_millis(25), "nothing had to be waited for");
    opener.join().unwrap();
    assert_eq!(gpu.stats().pool.peak_staging_bytes, 64 << 20);
    assert!(t.read::<f32>().unwrap().iter().all(|x| *x == 1.0));
    assert_eq!(last.read::<f32>().unwrap(), [2.0]);
}

#[test]
fn a_large_write_that_fails_half_way_leaves_no_mixture() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete());
    let gpu = harness::gpu_with(seam.config().memory_checks(false));
    let n = (40 << 20) / 4;
    let t = gpu.upload(&vec![1.0f32; n], [n]).unwrap();
    gpu.synchronize().unwrap();
    gpu.trim();
    // Nothing is written yet: the old contents stay.
    seam.fail("vkCreateBuffer", 0, u64::from(u32::MAX), ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let error = t.write(&vec![2.0f32; n]).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    seam.heal();
    assert!(t.read::<f32>().unwrap().iter().all(|x| *x == 1.0));
    // The first piece is all the staging memory that there is: it serves for all.
    gpu.trim();
    seam.fail("vkCreateBuffer", 1, u64::from(u32::MAX), ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    t.write(&vec![3.0f32; n]).unwrap();
    seam.heal();
    assert!(t.read::<f32>().unwrap().iter().all(|x| *x == 3.0));
    gpu.synchronize().unwrap();
    // Some of it was sent: neither the old contents nor the new ones.
    seam.fail("vkQueueSubmit2", 1, u64::from(u32::MAX), ash::vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    t.write(&vec![4.0f32; n]).unwrap_err();
    seam.heal();
    assert!(matches!(t.read::<f32>(), Err(Error::NotWritten { .. })));
}

#[test]
fn writes_in_flight_never_wait() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete());
    let gpu = seam.gpu();
    let t = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    seam.close_gate();
    let old = gpu.run(|r| r.add(&t, &t)).unwrap();
    t.write(&[10.0f32; 64]).unwrap();
    let new = gpu.run(|r| r.add(&t, &t)).unwrap();
    t.write(&[100.0f32; 64]).unwrap();
    assert_eq!(gpu.stats().in_flight, 2);
    seam.open_gate();
    assert_eq!(old.read::<f32>().unwrap(), [2.0; 64]);
    assert_eq!(new.read::<f32>().unwrap(), [20.0; 64]);
    assert_eq!(t.read::<f32>().unwrap(), [100.0; 64]);
}

#[test]
fn a_write_that_gets_no_memory_leaves_the_old_contents() {
    let seam = Seam::take();
    seam.fake_memory(FakeMemory::discrete());
    let gpu = seam.gpu();
    let t = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [1.0; 64]);
    gpu.synchronize().unwrap();
    gpu.trim();
    seam.fail("vkCreateBuffer", 0, u64::from(u32::MAX), ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let error = t.write(&[2.0f32; 64]).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    seam.heal();
    assert_eq!(t.read::<f32>().unwrap(), [1.0; 64]);
    t.write(&[3.0f32; 64]).unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [3.0; 64]);
}

#[test]
fn a_device_with_no_memory_for_the_host_is_an_error() {
    let seam = Seam::take();
    let types = vec![(ash::vk::MemoryPropertyFlags::DEVICE_LOCAL, 0)];
    seam.fake_memory(FakeMemory { types, ..FakeMemory::discrete() });
    let gpu = seam.gpu();
    let error = gpu.upload(&[1.0f32], [1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no memory that the host can write: none of the device's 1 memory types that a buffer may use (mask 0b1) is; \
         Vulkan demands one, so update the driver"
    );
}
