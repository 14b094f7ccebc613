//! The accuracy that the rustdoc states, measured over far more points than the table of cases has time for:
//! `cargo test --test gpu -- --ignored --nocapture accuracy`.

use std::time::Instant;

use tidemill::{Accelerator, Result, Tensor};

use super::cases::table::elementwise::{PARAMETERS, UNARY, apply};
use super::cases::table::{Bound, compare, reference};
use crate::harness::gpu;

#[test]
#[ignore = "takes minutes"]
fn accuracy_over_the_bit_patterns_of_all_floats() {
    let gpu = gpu();
    let points: u64 =
        std::env::var("TIDEMILL_SWEEP_POINTS").ok().and_then(|n| n.parse().ok()).unwrap_or(1 << 24);
    let stride = (1u64 << 32) / points;
    let only = std::env::var("TIDEMILL_SWEEP_OP").ok();
    for op in UNARY.map(|row| row.name).into_iter().filter(|op| only.as_ref().is_none_or(|only| only == op)) {
        let begun = Instant::now();
        let (mut worst, mut at) = (0.0, String::new());
        for chunk in 0..points.div_ceil(1 << 20) {
            let x: Vec<f32> = (0..1u64 << 20)
                .map(|i| f32::from_bits(((((chunk << 20) + i) * stride) as u32).wrapping_add(12_345)))
                .collect();
            let expected: Vec<f64> =
                x.iter().map(|x| reference::unary(op, f64::from(*x), PARAMETERS)).collect();
            let check = compare(&expected, &run(&gpu, op, &x).unwrap(), Bound::Ulp(0.5));
            if check.worst > worst {
                let i: usize = check.at[1..].split(']').next().unwrap().parse().unwrap();
                (worst, at) = (check.worst, format!("x = {:e} {:#x} {}", x[i], x[i].to_bits(), check.at));
            }
        }
        println!("{op:12} {worst:10.3} ulp  {at}  ({:.1} s)", begun.elapsed().as_secs_f64());
    }
}

fn run(gpu: &Accelerator, op: &'static str, x: &[f32]) -> Result<Vec<f32>> {
    let t: Tensor = gpu.upload(x, [x.len()])?;
    gpu.run(|r| apply(r, op, &t))?.read::<f32>()
}
