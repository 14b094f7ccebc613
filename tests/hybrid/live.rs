//! The real device beside a CPU that is made slow, so that a real crossover exists on a software driver.

use std::time::Instant;

use tidemill::Accelerator;
use tidemill::hybrid::{Hybrid, Op, Policy, Side};

use crate::{calibration, cells, harness};

/// Calls take so many times as long on the CPU.
const SLOWED: f64 = 10.0;
/// A side is the better one if the other takes so many times as long; other cells decide nothing.
const CLEARLY: f64 = 3.0;
/// Calls after which Auto should know.
const CALLS: usize = 8;

#[test]
fn with_a_slow_cpu_auto_is_right_more_often_than_either_side_alone() {
    let gpu = harness::gpu();
    let calibration = calibration(&gpu);
    let hybrid = |policy| {
        Hybrid::with_calibration(Accelerator::clone(&gpu), calibration.clone(), policy).slow_cpu(SLOWED)
    };
    let [on_cpu, on_gpu, auto] = [Policy::Cpu, Policy::Gpu, Policy::Auto].map(hybrid);
    let (mut right, mut better) = (Vec::new(), Vec::new());
    for op in [Op::Dot, Op::Relu, Op::Elu, Op::Tanh, Op::Gelu, Op::Softmax, Op::Matmul, Op::Conv2d] {
        for n in [1 << 10, 1 << 12, 1 << 18] {
            let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.001).collect();
            let mut out = [vec![0.0; n], vec![0.0; n], vec![0.0; n]];
            // The least of some: whatever disturbs a call makes it longer.
            let least = |hybrid: &Hybrid, out: &mut [f32]| {
                let times = (0..5).map(|_| {
                    let begun = Instant::now();
                    cells::call(hybrid, op, &x, out).unwrap();
                    begun.elapsed().as_secs_f64()
                });
                times.fold(f64::INFINITY, f64::min)
            };
            let (cpu, gpu) = (least(&on_cpu, &mut out[0]), least(&on_gpu, &mut out[1]));
            let mut decision = None;
            for _ in 0..CALLS {
                decision = Some(cells::call(&auto, op, &x, &mut out[2]).unwrap().decision);
            }
            let [a, b, c] = &out;
            let near =
                |x: &[f32], y: &[f32]| x.iter().zip(y).all(|(x, y)| (x - y).abs() <= 1e-3 * x.abs().max(1.0));
            assert!(near(a, b) && near(a, c), "{op:?} of {n}: the sides disagree");
            let side = match (cpu * CLEARLY < gpu, gpu * CLEARLY < cpu) {
                (true, _) => Side::Cpu,
                (_, true) => Side::Gpu,
                _ => continue,
            };
            better.push(side);
            right.push(decision.unwrap().side == side);
        }
    }
    let wins = |side| better.iter().filter(|better| **better == side).count();
    let (cpu_right, gpu_right) = (wins(Side::Cpu), wins(Side::Gpu));
    assert!(
        cpu_right >= 3 && gpu_right >= 3,
        "no crossover: the CPU wins {cpu_right} cells, the device {gpu_right}"
    );
    let auto_right = right.iter().filter(|right| **right).count();
    assert!(
        auto_right > cpu_right.max(gpu_right),
        "of {} cells, Auto is right in {auto_right}, the CPU in {cpu_right}, the device in {gpu_right}",
        better.len()
    );
}
