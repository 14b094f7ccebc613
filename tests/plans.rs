//! Plans on a queue that is held back, and on poorer devices: through a wrapped loader, with validation on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "plans/arguments.rs"]
mod arguments;
#[path = "gpu/harness.rs"]
mod harness;
#[path = "plans/in_flight.rs"]
mod in_flight;
#[path = "plans/random.rs"]
mod random;
mod seam;
#[path = "plans/state.rs"]
mod state;

use ash::vk;
use harness::Gpu;
use seam::{FakeMemory, Seam};
use tidemill::profile::Profiling;
use tidemill::{Accelerator, DType, Error, Plan, Submission, Tensor};

/// `x + x`, copied a few times so that there are temporaries.
fn doubling(gpu: &Accelerator, x: &Tensor) -> (Plan, Tensor) {
    let r = gpu.begin_recording().unwrap();
    let mut v = r.add(x, x).unwrap();
    for _ in 0..40 {
        v = r.copy(v).unwrap();
    }
    let y = r.keep(v).unwrap();
    (r.into_plan().unwrap(), y)
}

/// Three submissions that are all in flight, and the results they have when the gate is opened.
fn three_in_flight(seam: &Seam, gpu: &Gpu, profiled: bool) {
    let x = gpu.upload(&[0.0f32; 500], [500]).unwrap();
    let (mut plan, y) = doubling(gpu, &x);
    if profiled {
        plan.profiling(Profiling::Timeline);
    }
    let outputs = [(); 3].map(|()| gpu.empty([500], DType::F32).unwrap());
    for round in 0..3 {
        seam.close_gate();
        let submissions: Vec<Submission> = outputs
            .iter()
            .enumerate()
            .map(|(i, output)| {
                x.write(&[(10 * round + i) as f32; 500]).unwrap();
                plan.bind(&y, output).unwrap();
                plan.submit().unwrap()
            })
            .collect();
        assert_eq!(gpu.stats().in_flight, 3);
        seam.open_gate();
        if profiled {
            let profiles: Vec<_> = submissions.iter().map(|done| done.profile().unwrap()).collect();
            // Each has times of its own: those of shared queries would be the same.
            for pair in profiles.windows(2) {
                assert!(pair[1].ns_since(&pair[0]) >= pair[0].span_ns() as i64, "{pair:?}");
            }
        }
        for (i, (done, output)) in submissions.iter().zip(&outputs).enumerate() {
            assert_eq!(output.read::<f32>().unwrap(), [(2 * (10 * round + i)) as f32; 500]);
            let profile = done.profile();
            if !profiled {
                assert!(profile.is_err());
                continue;
            }
            let profile = profile.unwrap();
            let rows = profile.rows.iter().filter(|row| row.label != "upload").count();
            assert_eq!((profile.submission, rows), (done.number(), 41));
            assert!(profile.rows.iter().all(|row| row.end_ns >= row.start_ns));
        }
    }
}

#[test]
fn three_in_flight_have_their_own_results_and_profiles() {
    let seam = Seam::take();
    three_in_flight(&seam, &seam.gpu(), true);
    three_in_flight(&seam, &seam.gpu(), false);
}

#[test]
fn three_in_flight_on_a_poor_device() {
    let seam = Seam::take();
    seam.hide_extension(c"VK_KHR_push_descriptor");
    seam.hide_feature("hostQueryReset");
    seam.fake_memory(FakeMemory::discrete_not_coherent());
    let gpu = seam.gpu();
    three_in_flight(&seam, &gpu, true);
    assert!(gpu.stats().commands.descriptor_pools > 0);
    drop(gpu);
    assert_eq!(seam.violations(), [""; 0]);
}

#[test]
fn replaying_grows_no_descriptor_pool() {
    let seam = Seam::take();
    seam.hide_extension(c"VK_KHR_push_descriptor");
    let gpu = seam.gpu();
    let x = gpu.upload(&[1.0f32; 500], [500]).unwrap();
    let (mut plan, y) = doubling(&gpu, &x);
    let inputs = [(); 12].map(|()| gpu.upload(&[3.0f32; 500], [500]).unwrap());
    let mut round = |i: usize| {
        plan.bind(&x, &inputs[i % 12]).unwrap();
        plan.submit().unwrap().wait().unwrap();
        assert_eq!(y.read::<f32>().unwrap(), [6.0; 500]);
    };
    (0..24).for_each(&mut round);
    let before = gpu.stats();
    (0..48).for_each(&mut round);
    let after = gpu.stats();
    assert!(after.commands.encoded > before.commands.encoded, "more sets of tensors than copies");
    assert_eq!(after.commands.descriptor_pools, before.commands.descriptor_pools);
    assert_eq!(after.commands.command_pools, before.commands.command_pools);
    assert_eq!(after.pool.misses, before.pool.misses);
}

#[test]
fn a_submission_that_fails_changes_nothing() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let x = gpu.upload(&[1.0f32; 500], [500]).unwrap();
    let (mut plan, y) = doubling(&gpu, &x);
    let _ = plan.submit().unwrap();
    x.write(&[2.0f32; 500]).unwrap();
    for call in ["vkQueueSubmit2", "vkEndCommandBuffer", "vkAllocateCommandBuffers"] {
        // An output that others hold moves, so that something is to be encoded.
        let r = gpu.begin_recording().unwrap();
        let _held = r.add(&y, &y).unwrap();
        seam.fail(call, 0, 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        assert!(plan.submit().is_err(), "{call}");
        assert_eq!(y.read::<f32>().unwrap(), [2.0; 500]);
        drop(r);
    }
    let _ = plan.submit().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [4.0; 500]);
}

#[test]
fn a_lost_device_is_named_with_what_the_plan_ran() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let x = gpu.upload(&[1.0f32; 500], [500]).unwrap();
    let (mut plan, _y) = doubling(&gpu, &x);
    let done = plan.submit().unwrap();
    seam.fail("vkWaitSemaphores", 0, 1, vk::Result::ERROR_DEVICE_LOST);
    let Err(Error::DeviceLost { in_flight, .. }) = done.wait() else { panic!("not lost") };
    assert_eq!(in_flight.last().map(String::as_str), Some("copy 500 f32"));
    assert!(matches!(plan.submit(), Err(Error::DeviceLost { .. })));
}

/// What `./dev counters` goes by.
#[test]
fn stats_tell_what_recordings_and_plans_move_and_take() {
    let gpu = harness::gpu();
    let x = gpu.upload(&[0.5f32; 64 * 64], [64, 64]).unwrap();
    let record = || {
        let r = gpu.begin_recording().unwrap();
        let matmul = r.matmul(&x, &x).unwrap();
        let shares = r.softmax(matmul, -1).unwrap();
        let kept = r.keep(shares).unwrap();
        (r, kept)
    };
    let explained = record().0.explain().unwrap();
    let moved: u64 = explained.run.iter().filter_map(|step| step.bytes).sum();
    assert!(moved > 0 && explained.temporary_bytes > 0);

    let before = gpu.stats();
    let (r, _kept) = record();
    r.end_recording().unwrap().wait().unwrap();
    let recorded = gpu.stats();
    assert_eq!(recorded.bytes_moved - before.bytes_moved, moved);
    assert_eq!(recorded.temporaries - before.temporaries, 1);
    assert_eq!(recorded.temporary_bytes - before.temporary_bytes, explained.temporary_bytes);
    assert_eq!((recorded.commands.plan_copies, recorded.commands.plan_encoded), (0, 0));

    let (r, _kept) = record();
    let mut plan = r.into_plan().unwrap();
    for _ in 0..3 {
        plan.submit().unwrap().wait().unwrap();
    }
    let planned = gpu.stats();
    assert_eq!(planned.bytes_moved - recorded.bytes_moved, 3 * moved);
    assert_eq!(planned.temporaries - recorded.temporaries, 1, "once for all submissions");
    assert_eq!((planned.commands.plan_copies, planned.commands.plan_encoded), (1, 1));
    assert_eq!(planned.commands.encoded - recorded.commands.encoded, 1);
}
