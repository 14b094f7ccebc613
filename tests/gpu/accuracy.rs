//! The accuracy that the rustdoc states, measured over other points than the table of cases has: some by default, and
//! far more than that has time for by `cargo test --test gpu -- --ignored --nocapture accuracy`.

use std::time::Instant;

use tidemill::{Accelerator, Result, Tensor};

use crate::harness::gpu;
use tidemill_cases::compare::compare;
use tidemill_cases::elementwise::{UNARY, Unary, apply};
use tidemill_cases::reference;

/// Points of one dispatch.
const CHUNK: u64 = 1 << 18;

#[test]
fn accuracy_over_some_bit_patterns() {
    sweep(CHUNK, UNARY);
}

/// `TIDEMILL_SWEEP_POINTS` and `TIDEMILL_SWEEP_OP` ask for other than 2^27 points and all operations.
#[test]
#[ignore = "takes minutes"]
fn accuracy_over_the_bit_patterns_of_all_floats() {
    let set = |name| std::env::var(name).ok();
    let points = set("TIDEMILL_SWEEP_POINTS").map_or(1 << 27, |n| n.parse().unwrap());
    let only = set("TIDEMILL_SWEEP_OP");
    let ops: Vec<Unary> =
        UNARY.iter().copied().filter(|op| only.as_ref().is_none_or(|only| only == op.name)).collect();
    assert!(!ops.is_empty(), "there is no {only:?}");
    sweep(points, &ops);
}

/// Floats of every sign and exponent, evenly over the bit patterns.
fn sweep(points: u64, ops: &[Unary]) {
    let gpu = gpu();
    let stride = (1u64 << 32) / points;
    let mut failures = Vec::new();
    for op in ops {
        let begun = Instant::now();
        let (mut worst, mut at) = (0.0, String::new());
        for chunk in 0..points.div_ceil(CHUNK) {
            let x: Vec<f32> = (0..CHUNK)
                .map(|i| f32::from_bits((((chunk * CHUNK + i) * stride) as u32).wrapping_add(12_345)))
                .collect();
            let expected: Vec<f64> = x
                .iter()
                .map(|x| reference::unary(op.name, f64::from(*x), op.parameters.map(f64::from)))
                .collect();
            let check = compare(&expected, &run(&gpu, op, &x).unwrap(), op.bound);
            if !check.passed() {
                failures.push(format!("{}: {} {} {}", op.name, check.worst, op.bound.unit(), check.at));
            }
            if check.worst > worst {
                (worst, at) = (check.worst, check.at);
            }
        }
        println!(
            "{:12} {worst:10.3} {}  {at}  ({:.1} s)",
            op.name,
            op.bound.unit(),
            begun.elapsed().as_secs_f64()
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run(gpu: &Accelerator, op: &Unary, x: &[f32]) -> Result<Vec<f32>> {
    let t: Tensor = gpu.upload(x, [x.len()])?;
    gpu.run(|r| apply(r, op, &t))?.read::<f32>()
}
