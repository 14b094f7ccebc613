//! Who holds a block: what is in flight moves no tensor, takes no memory and has nothing encoded again.

use tidemill::stats::Stats;
use tidemill::{Accelerator, DType, Error, Plan, Tensor};

use crate::harness::{self, Gpu};
use crate::seam::{self, FakeMemory, Seam};

/// The memory of a software driver, of a graphics card, and of one whose memory is mapped but slow to read.
fn memories() -> [Option<FakeMemory>; 3] {
    [None, Some(FakeMemory::discrete()), Some(FakeMemory::write_combined())]
}

/// An accelerator on which hundreds of submissions may be in flight.
fn gpu_on(seam: &Seam, memory: Option<FakeMemory>) -> Gpu {
    if let Some(memory) = memory {
        seam.fake_memory(memory);
    }
    harness::gpu_with(seam.config().max_in_flight(1000))
}

/// `x + 1`.
fn adding(gpu: &Accelerator, x: &Tensor) -> (Plan, Tensor) {
    let r = gpu.begin_recording().unwrap();
    let y = r.add_scalar(x, 1.0f32).unwrap();
    let y = r.keep(y).unwrap();
    (r.into_plan().unwrap(), y)
}

/// What grows if a tensor moves: blocks that are referred to, the most bytes that ever were, command buffers that were
/// encoded.
fn growth(stats: Stats) -> (usize, u64, u64) {
    (stats.pool.live_blocks, stats.pool.peak_bytes, stats.commands.encoded)
}

/// Opens the gate when a test has failed, before its accelerator waits for what is held back.
pub struct OpenAtEnd;

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        seam::open_gate();
    }
}

#[test]
fn an_output_of_4_mb_keeps_one_block_however_often_it_is_submitted() {
    for memory in memories() {
        let seam = Seam::take();
        let gpu = gpu_on(&seam, memory);
        let n = 1 << 20;
        let x = gpu.upload(&vec![1.0f32; n], [n]).unwrap();
        let (mut plan, y) = adding(&gpu, &x);
        plan.submit().unwrap().wait().unwrap();
        let before = growth(gpu.stats());
        let _open = OpenAtEnd;
        seam.close_gate();
        for _ in 0..100 {
            let _ = plan.submit().unwrap();
        }
        let stats = gpu.stats();
        assert_eq!((stats.in_flight, growth(stats)), (100, before));
        seam.open_gate();
        assert_eq!(y.read::<f32>().unwrap(), vec![2.0; n]);
    }
}

#[test]
fn a_training_loop_that_never_waits_is_encoded_once() {
    for memory in memories() {
        let seam = Seam::take();
        let gpu = gpu_on(&seam, memory);
        // The weights go round: a step makes new ones of the old, and a copy puts them in their place.
        let weights = gpu.upload(&[0.0f32; 500], [500]).unwrap();
        let (mut step, stepped) = adding(&gpu, &weights);
        let r = gpu.begin_recording().unwrap();
        let copied = r.copy(&stepped);
        assert!(
            matches!(copied, Err(Error::NotSubmitted { .. })),
            "a plan's output has contents when it was submitted"
        );
        drop(r);
        let _ = step.submit().unwrap();
        let r = gpu.begin_recording().unwrap();
        let copied = r.copy(&stepped).unwrap();
        let copied = r.keep(copied).unwrap();
        let mut update = r.into_plan().unwrap();
        update.bind(&copied, &weights).unwrap();
        let _ = update.submit().unwrap();
        let before = growth(gpu.stats());
        let _open = OpenAtEnd;
        seam.close_gate();
        for _ in 0..299 {
            let _ = step.submit().unwrap();
            let _ = update.submit().unwrap();
        }
        assert_eq!(growth(gpu.stats()), before);
        seam.open_gate();
        assert_eq!(weights.read::<f32>().unwrap(), [300.0; 500]);
    }
}

#[test]
fn a_tensor_of_a_plan_is_written_behind_what_is_in_flight_and_stays() {
    for memory in memories() {
        let seam = Seam::take();
        let gpu = gpu_on(&seam, memory);
        let x = gpu.upload(&[0.0f32; 500], [500]).unwrap();
        let (mut plan, y) = adding(&gpu, &x);
        let outputs: Vec<Tensor> = (0..3).map(|_| gpu.empty([500], DType::F32).unwrap()).collect();
        let round = |plan: &mut Plan, values: std::ops::Range<usize>| {
            for i in values {
                if i % 2 == 0 {
                    x.write(&[i as f32; 500]).unwrap();
                } else {
                    x.write_with(|f| f.extend([i as f32; 500])).unwrap();
                }
                plan.bind(&y, &outputs[i % 3]).unwrap();
                let _ = plan.submit().unwrap();
            }
        };
        round(&mut plan, 0..3);
        gpu.synchronize().unwrap();
        let before = growth(gpu.stats());
        let _open = OpenAtEnd;
        seam.close_gate();
        round(&mut plan, 3..60);
        assert_eq!(growth(gpu.stats()), before);
        // The last one is read without anything that would bring it to the device.
        x.write(&[100.0f32; 500]).unwrap();
        seam.open_gate();
        assert_eq!(x.read::<f32>().unwrap(), [100.0; 500]);
        for i in 57..60 {
            assert_eq!(outputs[i % 3].read::<f32>().unwrap(), [(i + 1) as f32; 500]);
        }
        assert_eq!(growth(gpu.stats()), before);
    }
}

#[test]
fn an_output_is_written_behind_what_is_in_flight_too() {
    let seam = Seam::take();
    let gpu = gpu_on(&seam, None);
    let x = gpu.upload(&[0.0f32; 500], [500]).unwrap();
    let (mut plan, y) = adding(&gpu, &x);
    let _open = OpenAtEnd;
    seam.close_gate();
    let _ = plan.submit().unwrap();
    let before = growth(gpu.stats());
    y.write(&[7.0f32; 500]).unwrap();
    assert_eq!(growth(gpu.stats()), before);
    let sum = gpu.run(|r| r.add(&y, &y)).unwrap();
    let _ = plan.submit().unwrap();
    seam.open_gate();
    assert_eq!(sum.read::<f32>().unwrap(), [14.0; 500]);
    assert_eq!(y.read::<f32>().unwrap(), [1.0; 500]);
}

#[test]
fn a_tensor_of_no_plan_takes_other_memory_when_it_is_written_in_flight() {
    for memory in memories() {
        let seam = Seam::take();
        let gpu = gpu_on(&seam, memory);
        let x = gpu.upload(&[1.0f32; 500], [500]).unwrap();
        let (plan, _y) = adding(&gpu, &x);
        // It stood in a plan, and does no longer.
        drop(plan);
        let _open = OpenAtEnd;
        seam.close_gate();
        let old = gpu.run(|r| r.neg(&x)).unwrap();
        let before = gpu.stats().pool.live_blocks;
        x.write(&[2.0f32; 500]).unwrap();
        assert_eq!(gpu.stats().pool.live_blocks, before + 1);
        seam.open_gate();
        assert_eq!(old.read::<f32>().unwrap(), [-1.0; 500]);
        assert_eq!(x.read::<f32>().unwrap(), [2.0; 500]);
    }
}

#[test]
fn a_read_under_way_gets_the_version_of_its_call() {
    for memory in memories() {
        let seam = Seam::take();
        let gpu = gpu_on(&seam, memory);
        let x = gpu.upload(&[1.0f32; 500], [500]).unwrap();
        let (mut plan, y) = adding(&gpu, &x);
        let _open = OpenAtEnd;
        seam.close_gate();
        let _ = plan.submit().unwrap();
        let waits = seam.calls("vkWaitSemaphores");
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| y.read::<f32>().unwrap());
            while seam.calls("vkWaitSemaphores") == waits {
                std::thread::yield_now();
            }
            x.write(&[5.0f32; 500]).unwrap();
            let _ = plan.submit().unwrap();
            let _ = plan.submit().unwrap();
            seam::open_gate();
            assert_eq!(reader.join().unwrap(), [2.0; 500]);
        });
        assert_eq!(y.read::<f32>().unwrap(), [6.0; 500]);
        assert_eq!(x.read::<f32>().unwrap(), [5.0; 500]);
    }
}

#[test]
fn recordings_and_views_keep_what_they_captured() {
    for memory in memories() {
        let seam = Seam::take();
        let gpu = gpu_on(&seam, memory);
        let x = gpu.upload(&[1.0f32; 500], [500]).unwrap();
        let (mut plan, y) = adding(&gpu, &x);
        let _open = OpenAtEnd;
        seam.close_gate();
        let _ = plan.submit().unwrap();
        let r = gpu.begin_recording().unwrap();
        let captured = r.add(&y, &x).unwrap();
        let captured = r.keep(captured).unwrap();
        let view = gpu.run(|r| r.reshape(&y, [5, 100])).unwrap();
        x.write(&[10.0f32; 500]).unwrap();
        let _ = plan.submit().unwrap();
        let _ = r.end_recording().unwrap();
        let _ = plan.submit().unwrap();
        seam.open_gate();
        assert_eq!(captured.read::<f32>().unwrap(), [3.0; 500]);
        assert_eq!(view.read::<f32>().unwrap(), [2.0; 500]);
        assert_eq!(y.read::<f32>().unwrap(), [11.0; 500]);
    }
}

#[test]
fn copies_made_for_profiles_in_flight_go_when_they_are_done() {
    let seam = Seam::take();
    let gpu = gpu_on(&seam, None);
    let x = gpu.upload(&[1.0f32; 500], [500]).unwrap();
    let (mut plan, _y) = adding(&gpu, &x);
    plan.profiling(tidemill::profile::Profiling::Timeline);
    let _open = OpenAtEnd;
    seam.close_gate();
    let submissions: Vec<_> = (0..20).map(|_| plan.submit().unwrap()).collect();
    assert!(format!("{plan:?}").contains("copies: 20"), "{plan:?}");
    seam.open_gate();
    for done in submissions {
        assert_eq!(done.profile().unwrap().rows.len(), 1);
    }
    // Other memory, so that one has to be encoded.
    let other = gpu.upload(&[2.0f32; 500], [500]).unwrap();
    plan.bind(&x, &other).unwrap();
    plan.submit().unwrap().wait().unwrap();
    assert!(format!("{plan:?}").contains("copies: 8"), "{plan:?}");
}

#[test]
fn a_stream_of_many_slots_is_encoded_once_for_each() {
    let seam = Seam::take();
    let gpu = gpu_on(&seam, None);
    let mut stream =
        gpu.stream().slots(12).input::<f32>([500]).record(|r, x| Ok([r.add_scalar(&x[0], 1.0f32)?])).unwrap();
    let mut sum = 0.0;
    let mut run = |batches: u8| {
        stream
            .run(
                0..batches,
                |n, slot| slot.fill(0, |f| f.extend([f32::from(n); 500])),
                |batch| {
                    sum += batch.read::<f32>(0)?[499];
                    Ok(())
                },
            )
            .unwrap();
    };
    run(36);
    let before = growth(gpu.stats());
    run(120);
    assert_eq!(growth(gpu.stats()), before);
    assert_eq!(sum, (36 * 37 / 2 + 120 * 121 / 2) as f32);
}

#[test]
fn a_barrier_opens_what_overwrites_or_reads_what_is_in_flight() {
    let seam = Seam::take();
    let gpu = gpu_on(&seam, None);
    let x = gpu.upload(&[1.0f32; 500], [500]).unwrap();
    let (mut plan, y) = adding(&gpu, &x);
    let other = gpu.empty([500], DType::F32).unwrap();
    plan.submit().unwrap().wait().unwrap();
    // What is done is no hazard to anybody, once a barrier has ordered it.
    plan.submit().unwrap().wait().unwrap();
    let _open = OpenAtEnd;
    seam.close_gate();
    plan.bind(&y, &other).unwrap();
    let _ = plan.submit().unwrap();
    assert_eq!(seam.held(), [1], "the input is read again, and the output was never written");
    let _ = plan.submit().unwrap();
    assert_eq!(seam.held(), [1, 2], "the output is written again");
    x.write(&[2.0f32; 500]).unwrap();
    plan.bind(&y, &y).unwrap();
    let _ = plan.submit().unwrap();
    assert_eq!(seam.held(), [1, 2, 3], "the input is copied to behind what reads it, and read behind that");
    let _ = gpu.run(|r| r.add(&y, &other)).unwrap();
    assert_eq!(seam.held(), [1, 2, 3, 2], "results are read");
    seam.open_gate();
    assert_eq!((y.read::<f32>().unwrap(), other.read::<f32>().unwrap()), (vec![3.0; 500], vec![2.0; 500]));
}
