//! Planted hazards: the detector works.

use tidemill::{Accelerator, DType, Dispatch, Kernel};

use crate::fixtures::words;
use crate::harness;
use crate::ramp;
use crate::seam::{self, Seam};

/// What validation says of a recording whose barriers were left out.
fn hazards(record: impl FnOnce(&Accelerator)) -> Vec<String> {
    let seam = Seam::take();
    // From the start: the barrier that opens a submission is recorded once, with the queue.
    seam.skip_barriers(true);
    let gpu = harness::gpu_with(seam.config());
    record(&gpu);
    let _ = gpu.synchronize();
    seam.skip_barriers(false);
    gpu.take_messages()
}

fn assert_hazard(kind: &str, messages: &[String]) {
    assert!(
        // Older and newer layers spell it with hyphens and underscores.
        messages.iter().any(|m| m.replace('-', "_").contains(kind)),
        "no {kind} among {} messages:\n{}",
        messages.len(),
        messages.join("\n")
    );
}

#[test]
fn a_missing_barrier_is_seen_when_a_read_follows_a_write() {
    assert_hazard(
        "READ_AFTER_WRITE",
        &hazards(|gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
            gpu.run(|r| {
                let x = r.copy(&a)?;
                r.copy(x)
            })
            .unwrap();
        }),
    );
}

#[test]
fn a_missing_barrier_is_seen_when_a_write_follows_a_write() {
    // Outputs of a guarded kernel are filled with zeros first. This one writes them and reads none of them.
    let lengths = Kernel::from_spirv_guarded("lengths", &words("lengths")).unwrap();
    assert_hazard(
        "WRITE_AFTER_WRITE",
        &hazards(|gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
            let run = Dispatch::new(&lengths).input(&a).output([2], DType::U32).output([64], DType::F32);
            let _ = gpu.run(|r| r.dispatch(run)).unwrap();
        }),
    );
}

#[test]
fn a_missing_barrier_is_seen_when_blocks_are_shared() {
    // x dies with y's birth, and z takes over x's block: its write follows y's read of the same memory.
    assert_hazard(
        "WRITE_AFTER_READ",
        &hazards(|gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
            gpu.run(|r| {
                let x = r.copy(&a)?;
                let y = r.copy(x)?;
                let z = r.copy(y)?;
                let w = r.copy(z)?;
                r.copy(w)
            })
            .unwrap();
        }),
    );
}

#[test]
fn a_missing_barrier_is_seen_across_submissions() {
    let messages = hazards(|gpu| {
        let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
        // The host must not see the first one complete before it hands over the second.
        seam::close_gate();
        let x = gpu.run(|r| r.copy(&a)).unwrap();
        let _ = gpu.run(|r| r.copy(&x)).unwrap();
        seam::open_gate();
    });
    // Debian's layer does not look across submissions; .ci/run repeats this on one that does, and says so.
    if std::env::var_os("TIDEMILL_CURRENT_LAYER").is_some() {
        assert_hazard("READ_AFTER_WRITE", &messages);
    }
}

#[test]
fn every_kind_of_hazard_across_submissions_is_ordered() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config().memory_checks(false));
    let n = 4096;
    let a = gpu.upload(&ramp(n), [n]).unwrap();
    seam.close_gate();
    let before = seam.calls("vkCmdPipelineBarrier2");
    // Read after write.
    let x = gpu.run(|r| r.copy(&a)).unwrap();
    let y = gpu.run(|r| r.add(&x, &a)).unwrap();
    assert_eq!(
        seam.calls("vkCmdPipelineBarrier2") - before,
        2,
        "the opening barrier is recorded once, at the start"
    );
    seam.open_gate();
    // Write after read and write after write: blocks that went back are written by later submissions.
    for _ in 0..20 {
        drop(gpu.run(|r| r.mul(&x, &a)).unwrap());
        drop(gpu.run(|r| r.copy(&y)).unwrap());
        gpu.trim();
    }
    assert_eq!(y.read::<f32>().unwrap(), ramp(n).iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    assert_eq!(x.read::<f32>().unwrap(), ramp(n));
}
