//! What is submitted is ordered. Hazards are found in the commands themselves, through the seam: the distribution's
//! validation layer sees none across submissions, and no layer sees whether a result was right by luck.

use tidemill::{Accelerator, Axes, Config, Plan, Tensor};

use crate::harness;
use crate::seam::{FakeMemory, Seam};

/// Some work in which commands meet, and how they would if barriers were left out.
struct Scenario {
    name: &'static str,
    /// A card with memory of its own, so that uploads are copies.
    discrete: bool,
    /// Of the hazards without barriers, one is of this kind.
    hazard: [&'static str; 2],
    work: fn(&Accelerator) -> tidemill::Result<()>,
}

const SCENARIOS: [Scenario; 12] = [
    Scenario {
        name: "a few bytes",
        discrete: false,
        hazard: ["read by copy of 0..16", "write by copy of 0..16"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32; 4], [4])?;
            let twice = gpu.run(|r| {
                let x = r.copy(&a)?;
                r.copy(x)
            })?;
            assert_eq!(twice.read::<f32>()?, [1.0; 4]);
            Ok(())
        },
    },
    Scenario {
        name: "one element",
        discrete: false,
        hazard: ["read by copy of 0..4", "write by copy of 0..4"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32], [1])?;
            let twice = gpu.run(|r| {
                let x = r.copy(&a)?;
                r.copy(x)
            })?;
            assert_eq!(twice.read::<f32>()?, [1.0]);
            Ok(())
        },
    },
    Scenario {
        name: "a read of what an earlier submission wrote",
        discrete: false,
        hazard: ["read by dispatch", "write by dispatch"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64])?;
            let x = gpu.run(|r| r.add(&a, &a))?;
            let y = gpu.run(|r| r.mul(&x, &x))?;
            assert_eq!(y.read::<f32>()?, [4.0; 64]);
            Ok(())
        },
    },
    Scenario {
        name: "a block that an earlier submission used",
        discrete: false,
        hazard: ["write by dispatch", "write by dispatch"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64])?;
            for _ in 0..8 {
                drop(gpu.run(|r| r.add(&a, &a))?);
                gpu.synchronize()?;
            }
            Ok(())
        },
    },
    Scenario {
        // The barrier that opens the second submission orders the first; what the second writes is not ordered by it.
        name: "a read of what was written behind an opening barrier",
        discrete: false,
        hazard: ["read by dispatch", "write by dispatch"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64])?;
            let mut x = gpu.run(|r| r.add(&a, &a))?;
            for _ in 0..4 {
                x = gpu.run(|r| r.sub(&x, &a))?;
            }
            assert_eq!(x.read::<f32>()?, [-2.0; 64]);
            Ok(())
        },
    },
    Scenario {
        // Nothing in the second submission orders the first.
        name: "a read of what was written two submissions before",
        discrete: false,
        hazard: ["read by dispatch", "write by dispatch"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64])?;
            let x = gpu.run(|r| r.add(&a, &a))?;
            let _other = gpu.run(|r| r.neg(&a))?;
            assert_eq!(gpu.run(|r| r.mul(&x, &x))?.read::<f32>()?, [4.0; 64]);
            Ok(())
        },
    },
    Scenario {
        name: "a read of what was written before a plan's submission",
        discrete: false,
        hazard: ["read by dispatch", "write by dispatch"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64])?;
            let (mut plan, _y) = doubling(gpu, &a)?;
            let x = gpu.run(|r| r.add(&a, &a))?;
            let _ = plan.submit()?;
            assert_eq!(gpu.run(|r| r.mul(&x, &x))?.read::<f32>()?, [4.0; 64]);
            Ok(())
        },
    },
    Scenario {
        name: "a write of what an earlier submission read",
        discrete: false,
        hazard: ["write by dispatch", "read by dispatch"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64])?;
            let (mut plan, y) = doubling(gpu, &a)?;
            let _ = plan.submit()?;
            let z = gpu.run(|r| r.mul(&y, &y))?;
            let _ = plan.submit()?;
            assert_eq!(z.read::<f32>()?, [4.0; 64]);
            Ok(())
        },
    },
    Scenario {
        name: "a write of what an earlier submission read behind its own barrier",
        discrete: false,
        hazard: ["write by dispatch", "read by dispatch"],
        work: |gpu| {
            let a = gpu.upload(&[1.0f32; 64], [64])?;
            let (mut plan, y) = doubling(gpu, &a)?;
            let _ = plan.submit()?;
            let z = gpu.run(|r| {
                let x = r.copy(&a)?;
                r.mul(x, &y)
            })?;
            let _ = plan.submit()?;
            assert_eq!(z.read::<f32>()?, [2.0; 64]);
            Ok(())
        },
    },
    Scenario {
        name: "two uploads to the same bytes",
        discrete: true,
        hazard: ["write by copy of 0..256", "write by copy of 0..256"],
        work: |gpu| {
            // Bound in a plan, a tensor stays where it is.
            let x = gpu.upload(&[1.0f32; 64], [64])?;
            let (mut plan, y) = doubling(gpu, &x)?;
            x.write(&[2.0f32; 64])?;
            x.write(&[3.0f32; 64])?;
            let _ = plan.submit()?;
            assert_eq!(y.read::<f32>()?, [6.0; 64]);
            Ok(())
        },
    },
    Scenario {
        name: "an upload, and what uses it in the same submission",
        discrete: true,
        hazard: ["read by dispatch", "write by copy of 0..256"],
        work: |gpu| {
            let x = gpu.upload(&[1.0f32; 64], [64])?;
            let y = gpu.run(|r| r.add(&x, &x))?;
            assert_eq!(y.read::<f32>()?, [2.0; 64]);
            Ok(())
        },
    },
    Scenario {
        name: "a read-back of what was just written",
        discrete: true,
        hazard: ["read by copy of 0..256", "write by dispatch"],
        work: |gpu| {
            let x = gpu.upload(&[1.0f32; 64], [64])?;
            for _ in 0..3 {
                assert_eq!(gpu.run(|r| r.add(&x, &x))?.read::<f32>()?, [2.0; 64]);
            }
            Ok(())
        },
    },
];

/// A plan of one dispatch, `x + x`, and its result.
fn doubling(gpu: &Accelerator, x: &Tensor) -> tidemill::Result<(Plan, Tensor)> {
    let r = gpu.begin_recording()?;
    let y = r.add(x, x)?;
    let y = r.keep(y)?;
    Ok((r.into_plan()?, y))
}

/// Does some work while the seam watches; the hazards that were submitted.
fn watched(
    discrete: bool,
    barriers: bool,
    config: impl FnOnce(Config) -> Config,
    work: impl FnOnce(&Accelerator) -> tidemill::Result<()>,
) -> Vec<String> {
    let seam = Seam::take();
    // From the start: the barrier that opens submissions is recorded with the queue.
    seam.watch();
    seam.skip_barriers(!barriers);
    if discrete {
        seam.fake_memory(FakeMemory::discrete());
    }
    let gpu = harness::gpu_with(config(seam.config()));
    work(&gpu).unwrap();
    gpu.synchronize().unwrap();
    let (commands, mut hazards, unready) = seam.watched();
    assert!(commands > 0, "nothing was seen");
    if !discrete {
        // All memory is the host's, too.
        hazards.extend(unready);
    }
    if !hazards.is_empty() {
        // The layer sees some of them, too.
        drop(gpu.take_messages());
    }
    hazards
}

#[test]
fn what_meets_is_ordered_by_a_barrier() {
    for Scenario { name, discrete, work, .. } in SCENARIOS {
        let hazards = watched(discrete, true, |config| config, work);
        assert!(hazards.is_empty(), "{name}:\n{}", hazards.join("\n"));
    }
}

#[test]
fn what_meets_is_seen_where_barriers_are_left_out() {
    for Scenario { name, discrete, hazard: [later, earlier], work } in SCENARIOS {
        let hazards = watched(discrete, false, |config| config, work);
        let meant = |hazard: &&String| {
            hazard.split_once(" after ").is_some_and(|(l, e)| l.starts_with(later) && e.starts_with(earlier))
        };
        assert!(hazards.iter().any(|hazard| meant(&hazard)), "{name}:\n{}", hazards.join("\n"));
    }
}

/// Matmuls, convolutions, reductions, plans and writes in between, fused and not.
fn a_bit_of_everything(gpu: &Accelerator) -> tidemill::Result<()> {
    let a = gpu.upload(&[0.5f32; 48 * 33], [48, 33])?;
    let b = gpu.upload(&[0.25f32; 33 * 21], [33, 21])?;
    let r = gpu.begin_recording()?;
    let matmul = r.matmul(&a, &b)?;
    let soft = r.softmax(matmul, -1)?;
    let total = r.sum(soft, Axes::ALL)?;
    let low = r.slice(soft, [0..24, 0..21])?;
    let high = r.slice(soft, [24..48, 0..21])?;
    let joined = r.concat([high, low], 0)?;
    let scaled = r.mul(joined, total)?;
    let (scaled, total) = (r.keep(scaled)?, r.keep(total)?);
    let mut plan = r.into_plan()?;
    for round in 0..4 {
        a.write(&[round as f32; 48 * 33])?;
        let _ = plan.submit()?;
        let next = gpu.run(|r| r.add(&scaled, &total))?;
        assert!((total.read::<f32>()?[0] - 48.0).abs() < 1e-3);
        drop(next);
    }
    Ok(())
}

#[test]
fn a_bit_of_everything_is_ordered() {
    for (discrete, fusion) in [(false, true), (false, false), (true, true), (true, false)] {
        let hazards = watched(discrete, true, |config| config.fusion(fusion), a_bit_of_everything);
        assert!(hazards.is_empty(), "discrete {discrete}, fusion {fusion}:\n{}", hazards.join("\n"));
    }
}
