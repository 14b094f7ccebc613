//! Memory that runs out, and what is left behind.

use std::time::Instant;

use ash::vk;
use tidemill::{Accelerator, DType, Error};

use crate::harness;
use crate::seam::{FakeMemory, Seam};
use crate::{SHORT, open_later, ramp};

#[test]
fn a_pool_hit_makes_no_vulkan_call() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config().memory_checks(false));
    let data = ramp(1000);
    drop(gpu.upload(&data, [1000]).unwrap());
    let (calls, hits) = (seam.all_calls(), gpu.stats().pool.hits);
    for _ in 0..100 {
        drop(gpu.upload(&data, [1000]).unwrap());
    }
    assert_eq!(gpu.stats().pool.hits, hits + 100);
    assert_eq!(seam.all_calls(), calls);
    let (buffers, submits) = (seam.calls("vkCreateBuffer"), seam.calls("vkQueueSubmit2"));
    let a = gpu.upload(&data, [1000]).unwrap();
    for _ in 0..10 {
        drop(gpu.run(|r| r.add(&a, &a)).unwrap().read::<f32>().unwrap());
    }
    assert_eq!(seam.calls("vkQueueSubmit2") - submits, 10, "one submission per recording");
    assert!(seam.calls("vkCreateBuffer") - buffers <= 1);
    let pools = seam.calls("vkCreateCommandPool");
    drop(gpu.run(|r| r.add(&a, &a)).unwrap().read::<f32>().unwrap());
    assert_eq!(seam.calls("vkCreateCommandPool"), pools, "command buffers are used again");
}

#[test]
fn out_of_memory_is_survived_where_it_can_be() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    // More than the allocator takes at a time, so that each is an allocation of its own.
    let n = (65 << 20) / 4;
    let data = vec![1.0f32; n];
    let small = gpu.upload(&[5.0f32; 16], [16]).unwrap();
    drop(gpu.upload(&data, [n]).unwrap());
    assert!(gpu.stats().pool.cached_bytes > 0);
    // The block that is cached makes room for one of another class, or of no class at all.
    seam.fail("vkAllocateMemory", 0, 4, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let larger = (80 << 20) / 4;
    let a = gpu.upload(&vec![2.0f32; larger], [larger]).unwrap();
    assert_eq!(gpu.stats().pool.cached_blocks, 0, "it was trimmed");
    assert_eq!(a.read::<f32>().unwrap()[larger - 1], 2.0);

    // Work in flight is waited for before it is an error.
    seam.close_gate();
    let b = gpu.run(|r| r.copy(&a)).unwrap();
    drop((a, b));
    // As a part of a larger piece and alone, in its class and as it is.
    seam.fail("vkAllocateMemory", 0, 4, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let opener = open_later();
    let begun = Instant::now();
    let a = gpu.upload(&data, [n]).unwrap();
    assert!(begun.elapsed() >= SHORT / 2);
    opener.join().unwrap();
    drop(a);

    gpu.trim();
    seam.fail("vkAllocateMemory", 0, u64::MAX / 2, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let kept = gpu.stats().pool.live_bytes;
    let error = gpu.upload(&data, [n]).unwrap_err();
    let Error::OutOfMemory { requested, in_use, cached, heap, budget } = error else { panic!("{error}") };
    assert!(requested >= 65 << 20 && in_use == kept && cached == 0 && heap > requested, "{error}");
    let granted = budget.map_or(String::new(), |b| format!(", of which the system grants this process {b}"));
    assert_eq!(
        error.to_string(),
        format!(
            "out of device memory: {requested} bytes requested, {in_use} in use, 0 cached by the pool; \
             the heap has {heap}{granted}; drop tensors, or work in smaller pieces"
        )
    );
    // A recording that gets no memory is an error; what it promised is discarded; nothing else is lost.
    let r = gpu.begin_recording().unwrap();
    let big = r.fill([n], 0.0f32).unwrap();
    let kept = r.keep(big).unwrap();
    assert!(matches!(r.end_recording(), Err(Error::OutOfMemory { .. })));
    assert!(matches!(kept.read::<f32>(), Err(Error::Discarded { .. })));
    seam.heal();
    assert_eq!(small.read::<f32>().unwrap(), [5.0; 16]);
    let ok = gpu.upload(&data, [n]).unwrap();
    assert_eq!(ok.read::<f32>().unwrap()[n - 1], 1.0);
    drop((ok, small, kept));
    assert_eq!(gpu.stats().pool.live_bytes, 0);
}

#[test]
fn where_the_class_does_not_fit_the_exact_size_may() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config().memory_checks(false));
    // 17 MiB are rounded up to 18: neither as a part of a larger piece nor alone is there room for that.
    let n = 17 << 18;
    seam.fail("vkAllocateMemory", 0, 2, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let a = gpu.upload(&vec![1.0f32; n], [n]).unwrap();
    assert_eq!(gpu.stats().pool.live_bytes, 17 << 20);
    assert_eq!(gpu.run(|r| r.sum(&a, 0)).unwrap().read::<f32>().unwrap(), [n as f32]);
    drop(a);
    gpu.synchronize().unwrap();
    assert!(gpu.trim() >= 17 << 20);
    assert_eq!((gpu.stats().pool.live_bytes, gpu.stats().pool.cached_bytes), (0, 0));
}

#[test]
fn the_last_bit_of_memory_can_be_had() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    // The allocator asks for much at a time, which there is not; what is wanted there is.
    seam.fail("vkAllocateMemory", 0, 1, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let a = gpu.upload(&[1.0f32; 16], [16]).unwrap();
    assert_eq!(seam.calls("vkAllocateMemory"), 2);
    assert_eq!(gpu.run(|r| r.add(&a, &a)).unwrap().read::<f32>().unwrap(), [2.0; 16]);
}

#[test]
fn after_closing_nothing_is_left() {
    let seam = Seam::take();
    let gpu = Accelerator::new(&seam.config()).unwrap();
    let a = gpu.upload(&ramp(5000), [5000]).unwrap();
    let b = gpu.run(|r| r.add(&a, &a)).unwrap();
    assert_eq!(b.read::<f32>().unwrap()[4], 8.0);
    drop((a, b));
    gpu.close().unwrap();
    assert_eq!(seam.live(), (0, 0));
    assert_eq!(seam.calls("vkAllocateMemory"), seam.calls("vkFreeMemory"));
    assert_eq!(seam.calls("vkCreateBuffer"), seam.calls("vkDestroyBuffer"));
}

#[test]
fn close_says_what_is_still_in_use() {
    let seam = Seam::take();
    let gpu = Accelerator::new(&seam.config()).unwrap();
    let a = gpu.upload(&[1.0f32; 4], [4]).unwrap();
    let b = gpu.upload(&[2.0f32; 4], [4]).unwrap();
    let (view, clone, other) = (a.reshape([2, 2]).unwrap(), b.clone(), gpu.clone());
    let open = gpu.begin_recording().unwrap();
    let error = gpu.close().unwrap_err();
    assert!(matches!(error, Error::StillInUse { tensors: 2, handles: 2 }), "{error}");
    assert_eq!(
        error.to_string(),
        "the accelerator is still in use: 2 tensors alive, 2 other handles (accelerators, recordings, submissions); \
         drop them before close()"
    );
    // Nothing was closed: all of them go on.
    a.write(&[3.0f32; 4]).unwrap();
    assert_eq!(view.read::<f32>().unwrap(), [3.0; 4]);
    open.end_recording().unwrap().wait().unwrap();
    let sum = other.run(|r| r.add(&a, &b)).unwrap();
    assert_eq!(sum.read::<f32>().unwrap(), [5.0; 4]);
    assert!(other.empty([1], DType::F32).is_ok());
    assert_eq!(seam.live(), (1, 1));
    drop((a, b, view, clone, sum));
    other.close().unwrap();
    assert_eq!(seam.live(), (0, 0));
}

#[test]
fn a_small_cap_takes_little_from_the_driver() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config().memory_checks(false).pool_cap(10 << 10));
    let a = gpu.upload(&ramp(1000), [1000]).unwrap();
    let b = gpu.run(|r| r.add(&a, &a)).unwrap();
    assert_eq!(b.read::<f32>().unwrap()[999], 1998.0);
    assert!(seam.memory_bytes() <= 16 << 10, "{} bytes", seam.memory_bytes());
    drop((a, b));
    gpu.synchronize().unwrap();
    gpu.trim();
    assert_eq!(seam.memory_bytes(), 0);
    drop(gpu);
    // A little more is shared, in the least that there is.
    let gpu = harness::gpu_with(seam.config().memory_checks(false).pool_cap(5 << 20));
    let many: Vec<_> = (0..1000).map(|_| gpu.upload(&[1.0f32; 64], [64]).unwrap()).collect();
    assert_eq!((seam.memory_bytes(), many.len()), (4 << 20, 1000));
}

#[test]
fn trim_leaves_the_driver_little() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config().memory_checks(false));
    drop(gpu.upload(&[1.0f32], [1]).unwrap());
    assert_eq!(seam.memory_bytes(), 8 << 20, "the first piece is a small one");
    // Some 200 MiB, small and large.
    let all: Vec<_> = (0..150)
        .map(|i| {
            let n = [3 << 10, 1 << 20, 3 << 20][i % 3] / 4;
            gpu.upload(&vec![i as f32; n], [n]).unwrap()
        })
        .collect();
    let calls = seam.calls("vkAllocateMemory");
    assert!(calls < 20, "{calls} memory objects: they have not grown");
    assert!(seam.memory_bytes() > 190 << 20);
    drop(all);
    gpu.trim();
    assert!(seam.memory_bytes() <= 32 << 20, "{} bytes", seam.memory_bytes());
    assert_eq!(gpu.stats().pool.cached_bytes, 0);
}

#[test]
fn a_budget_is_kept_like_memory_that_is_short() {
    let seam = Seam::take();
    seam.fake_budget(100 << 20);
    let gpu = harness::gpu_with(seam.config().memory_checks(false));
    assert!(gpu.device().features.memory_budget);
    let asked = || seam.calls("vkGetPhysicalDeviceMemoryProperties2");
    let n = (40 << 20) / 4;
    let a = gpu.upload(&vec![1.0f32; n], [n]).unwrap();
    assert_eq!(asked(), 1);
    drop(gpu.upload(&[1.0f32; 100], [100]).unwrap());
    assert_eq!(asked(), 1, "what is small is not worth the question");
    // What is cached makes room.
    drop(gpu.upload(&vec![2.0f32; n], [n]).unwrap());
    assert!(gpu.stats().pool.cached_bytes > 40 << 20);
    let larger = (48 << 20) / 4;
    let b = gpu.upload(&vec![3.0f32; larger], [larger]).unwrap();
    assert!(gpu.stats().pool.cached_bytes < 1 << 20, "it was trimmed");
    // So does work in flight, when it is done.
    seam.close_gate();
    drop(gpu.run(|r| r.add(&b, &b)).unwrap_err());
    let c = gpu.run(|r| r.sum(&b, 0)).unwrap();
    drop(b);
    let opener = open_later();
    let b = gpu.upload(&vec![4.0f32; larger], [larger]).unwrap();
    opener.join().unwrap();
    assert_eq!(c.read::<f32>().unwrap(), [3.0 * larger as f32]);
    assert_eq!(b.read::<f32>().unwrap()[larger - 1], 4.0);
    // And then it is an error, with nothing asked of the driver.
    let allocations = seam.calls("vkAllocateMemory");
    let error = gpu.upload(&vec![5.0f32; n], [n]).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { requested, .. } if requested == 40 << 20), "{error}");
    assert!(error.to_string().contains(", of which the system grants this process 104857600; "), "{error}");
    assert_eq!(seam.calls("vkAllocateMemory"), allocations);
    assert_eq!(a.read::<f32>().unwrap()[n - 1], 1.0);
    assert!(seam.memory_bytes() <= 100 << 20);
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn mixed_sizes_take_a_quarter_more_than_the_cap_from_the_driver() {
    for (cap, memory) in [(256u64 << 20, None), (512 << 20, None), (256 << 20, Some(FakeMemory::discrete()))]
    {
        let seam = Seam::take();
        if let Some(memory) = memory.clone() {
            seam.fake_memory(memory);
        }
        // Nothing is computed, so that no memory is touched.
        seam.skip_dispatches(true);
        let gpu = harness::gpu_with(seam.config().memory_checks(false).pool_cap(cap));
        let most = cap + cap / 4 + (96 << 20);
        let state = &mut cap.clone();
        let (mut live, mut bytes) = (Vec::new(), 0);
        for step in 0..3000u64 {
            // From 1 KiB to 32 MiB, each doubling as likely as any other; small ones and large ones in turn for a
            // while.
            let doublings = if step / 300 % 2 == 0 { random(state) % 15 } else { 8 + random(state) % 7 };
            let n = (256 + random(state) as usize % 256) << doublings;
            while bytes + 4 * n as u64 > cap / 10 * 8 {
                let (tensor, size) = live.swap_remove(random(state) as usize % live.len());
                drop::<tidemill::Tensor>(tensor);
                bytes -= size;
            }
            let tensor = gpu.run(|r| r.random_uniform([n], step)).unwrap();
            live.push((tensor, 4 * n as u64));
            bytes += 4 * n as u64;
            if memory.is_some() && step % 100 == 0 {
                live[0].0.write(&vec![0.0f32; live[0].1 as usize / 4]).unwrap();
            }
        }
        let peak = seam.peak_memory_bytes();
        assert!(peak <= most, "{} of {} MiB under a cap of {}", peak >> 20, most >> 20, cap >> 20);
        // Many small ones of which few are left keep the objects that they share: then a large one is refused.
        live.clear();
        let mut small: Vec<_> =
            (0..cap / (120 << 10)).map(|i| gpu.run(|r| r.random_uniform([30 << 10], i)).unwrap()).collect();
        let mut nth = 0;
        small.retain(|_| {
            nth += 1;
            nth % 60 == 0
        });
        let large: Vec<_> =
            (0..cap >> 24).map_while(|i| gpu.run(|r| r.random_uniform([3 << 20], i)).ok()).collect();
        assert!(!large.is_empty());
        let peak = seam.peak_memory_bytes();
        assert!(peak <= most, "{} of {} MiB under a cap of {}", peak >> 20, most >> 20, cap >> 20);
    }
}
