//! The buffer pool: classes, hits, the cap, trimming, guards.

use std::thread;

use tidemill::{DType, Dispatch, Error};

use crate::fixtures::kernel;
use crate::harness::{config, gpu, gpu_with};

#[test]
fn statistics_say_what_is_live_cached_and_wasted() {
    let gpu = gpu_with(config().memory_checks(false));
    let start = gpu.stats().pool;
    assert_eq!((start.live_bytes, start.cached_bytes, start.hits, start.misses), (0, 0, 0, 0));
    let a = gpu.upload(&[0.0f32; 100], [100]).unwrap();
    let b = gpu.upload(&[0.0f32; 128], [128]).unwrap();
    let both = gpu.stats().pool;
    assert_eq!((both.live_blocks, both.live_bytes, both.misses), (2, 1024, 2));
    assert_eq!(both.waste_bytes, 112, "400 bytes in a block of 512, 512 in another");
    drop(a);
    let one = gpu.stats().pool;
    assert_eq!((one.live_blocks, one.live_bytes, one.cached_blocks, one.cached_bytes), (1, 512, 1, 512));
    assert_eq!((one.waste_bytes, one.peak_bytes), (0, 1024));
    let c = gpu.upload(&[0.0f32; 65], [65]).unwrap();
    let hit = gpu.stats().pool;
    assert_eq!((hit.hits, hit.misses, hit.cached_blocks, hit.waste_bytes), (1, 2, 0, 252));
    drop((b, c));
    assert_eq!(gpu.trim(), 1024);
    let end = gpu.stats().pool;
    assert_eq!((end.live_bytes, end.cached_bytes, end.cached_blocks, end.peak_bytes), (0, 0, 0, 1024));
    assert_eq!(gpu.trim(), 0);
}

#[test]
fn blocks_come_back_when_the_work_is_done() {
    let gpu = gpu();
    let a = gpu.upload(&[1.0f32; 5000], [5000]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let x = r.add(&a, &a).unwrap();
    let y = r.mul(x, &a).unwrap();
    let kept = r.keep(y).unwrap();
    let done = r.end_recording().unwrap();
    done.wait().unwrap();
    assert_eq!(gpu.stats().pool.live_blocks, 2, "the input and the kept output");
    drop((a, kept));
    let stats = gpu.stats().pool;
    assert_eq!((stats.live_blocks, stats.live_bytes), (0, 0));
    assert!(stats.cached_bytes > 0);
}

#[test]
fn over_the_cap_is_an_error_with_numbers() {
    let gpu = gpu_with(config().memory_checks(false).pool_cap(10 << 10));
    let a = gpu.upload(&[0.0f32; 2048], [2048]).unwrap();
    let error = gpu.upload(&[0.0f32; 1024], [1024]).unwrap_err();
    assert!(matches!(error, Error::OverCap { requested: 4096, in_use: 8192, cap: 10_240 }));
    assert_eq!(
        error.to_string(),
        "over the pool's cap: 4096 bytes requested, 8192 in use, the cap is 10240; \
         raise it with Config::pool_cap, or drop tensors"
    );
    let error = gpu.run(|r| r.add(&a, &a)).unwrap_err();
    assert!(matches!(error, Error::OverCap { .. }), "{error}");
    // What is cached makes room by itself.
    drop(a);
    assert_eq!(gpu.stats().pool.cached_bytes, 8192);
    let b = gpu.upload(&[1.0f32; 1024], [1024]).unwrap();
    assert_eq!(gpu.stats().pool.cached_bytes, 0, "the old block went: both together are over the cap");
    assert_eq!(b.read::<f32>().unwrap(), [1.0; 1024]);
}

#[test]
fn at_the_cap_work_in_flight_is_waited_for() {
    // Room for the input and two outputs.
    let gpu = gpu_with(config().memory_checks(false).pool_cap(3 << 20));
    let a = gpu.upload(&[2.0f32; 1 << 18], [1 << 18]).unwrap();
    for _ in 0..20 {
        // Nothing waits for it and nothing keeps it, but it is in flight.
        drop(gpu.run(|r| r.mul(&a, &a)).unwrap());
    }
    assert!(gpu.stats().pool.peak_bytes <= 3 << 20);
    let last = gpu.run(|r| r.mul(&a, &a)).unwrap();
    assert_eq!(last.read::<f32>().unwrap()[12_345], 4.0);
}

#[test]
fn at_the_cap_branches_share_memory() {
    // Two of the four branches may run at a time, each with a temporary of 1 MiB. The cap leaves room for one.
    let (n, cap) = (1 << 18, 6 << 20);
    let record = |gpu: &tidemill::Accelerator| {
        let a = gpu.upload(&vec![3.0f32; n], [n]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let kept: Vec<_> = (0..4)
            .map(|_| {
                let branch = r.copy(&a).unwrap();
                let branch = r.copy(branch).unwrap();
                r.keep(branch).unwrap()
            })
            .collect();
        let _ = r.end_recording().unwrap();
        assert!(kept.iter().all(|kept| kept.read::<f32>().unwrap() == vec![3.0; n]));
        gpu.stats().pool.peak_bytes
    };
    let loose = gpu_with(config().memory_checks(false).fusion(false));
    let tight = gpu_with(config().memory_checks(false).fusion(false).pool_cap(cap));
    assert!(record(&loose) > cap, "branches do not wait for each other if there is room");
    assert!(record(&tight) <= cap);
}

#[test]
fn the_cap_holds_among_threads() {
    let gpu = gpu_with(config().memory_checks(false).pool_cap(1 << 20));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..200usize {
                    let elements = 1 << (10 + n % 7);
                    match gpu.upload(&vec![0.0f32; elements], [elements]) {
                        Ok(_) | Err(Error::OverCap { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    let stats = gpu.stats().pool;
    assert!(stats.peak_bytes <= 1 << 20, "{stats:?}");
    assert_eq!((stats.live_blocks, stats.live_bytes, stats.waste_bytes), (0, 0, 0));
}

#[test]
fn more_than_a_buffer_may_have_is_refused() {
    let gpu = gpu();
    let error = gpu.empty([usize::MAX, 3], DType::F32).unwrap_err();
    assert!(matches!(error, Error::TooLarge { op: "empty", .. }));
    let text = error.to_string();
    assert!(text.starts_with(&format!("empty: shape [{}, 3] needs ", usize::MAX)), "{text}");
    assert!(text.contains(" bytes, the device allows "), "{text}");
    let r = gpu.begin_recording().unwrap();
    assert!(matches!(r.fill([1 << 20, 1 << 20], 1.0f32), Err(Error::TooLarge { op: "fill", .. })));
    let fine = r.fill([4], 1.0f32).unwrap();
    let fine = r.keep(fine).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(fine.read::<f32>().unwrap(), [1.0; 4]);
}

#[test]
fn with_memory_checks_there_is_a_guard_behind_every_tensor() {
    let gpu = gpu();
    // Also where tensors are as large as a class of blocks, or nearly.
    for n in [1, 48, 49, 63, 64, 128, 512, 1024, 1 << 20] {
        let before = gpu.stats().pool.waste_bytes;
        let _tensor = gpu.upload(&vec![0.0f32; n], [n]).unwrap();
        let behind = gpu.stats().pool.waste_bytes - before;
        assert!(behind >= 64, "{behind} bytes behind {n} elements");
    }
}

#[test]
fn a_kernel_that_writes_behind_its_output_is_caught() {
    let gpu = gpu();
    let overrun = kernel("overrun");
    let run = |n: usize| {
        let run = Dispatch::new(&overrun).output([n], DType::F32).groups([1, 1, 1]);
        let t = gpu.run(|r| Ok(r.dispatch(run)?[0])).unwrap();
        assert_eq!(t.read::<f32>().unwrap(), vec![1.0; n]);
    };
    run(8);
    assert_eq!(gpu.stats().pool.guard_bytes_touched, 0);
    run(5);
    assert_eq!(gpu.take_guard_bytes_touched(), 12, "three floats behind the fifth");
}

#[test]
fn fresh_memory_reads_as_nan() {
    let gpu = gpu();
    // A recycled block, full of ones.
    drop(gpu.upload(&[1.0f32; 1000], [1000]).unwrap());
    // This output is `writeonly`, and one group writes 64 of its elements only.
    let (scale, x) = (kernel("scale"), gpu.upload(&[1.0f32; 1000], [1000]).unwrap());
    let run = Dispatch::new(&scale).input(&x).output([1000], DType::F32).push(&[2.0f32]).specialize(0, 64u32);
    let y = gpu.run(|r| Ok(r.dispatch(run)?[0])).unwrap().read::<f32>().unwrap();
    assert!(y[..64].iter().all(|&y| y == 2.0));
    assert!(y[64..].iter().all(|y| y.is_nan()), "{:?}", &y[64..70]);
}
