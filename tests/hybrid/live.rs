//! The real device beside a CPU that is made slow, so that a real crossover exists on a software driver.
//!
//! It is to hold however fast or busy the machine is: how much the CPU is slowed follows from what the device is
//! measured to take, a cell counts only if the same side was clearly the better one before and after Auto's calls, and
//! what disturbed a round is made good by the next ones.

use std::time::Instant;

use tidemill::Accelerator;
use tidemill::hybrid::{Calibration, Hybrid, Op, Policy, Side};

use crate::harness;
use tidemill_cases::crossover as cells;

const OPS: [Op; 8] = [Op::Dot, Op::Relu, Op::Elu, Op::Tanh, Op::Gelu, Op::Softmax, Op::Matmul, Op::Conv2d];
/// What a submission costs alone makes the CPU the better side of the first size.
const SIZES: [usize; 2] = [1 << 10, 1 << 16];
/// At the second, the CPU is made to take this many times as long as the device.
const SLOWER: f64 = 10.0;
/// A side is the better one if the other takes this many times as long; other cells decide nothing.
const CLEARLY: f64 = 3.0;
/// Auto's calls of a cell, and how many of the last it is judged by.
const CALLS: usize = 15;
const JUDGED: usize = 5;
/// Cells that each side must win clearly, and how often all of them are measured for that at most.
const WINS: usize = 6;
const ROUNDS: usize = 10;

/// The cells that a side wins.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    wins: usize,
    /// Those in which Auto took that side.
    right: usize,
}

impl Tally {
    /// Always taking the other side is always wrong.
    fn is_convincing(self) -> bool {
        self.wins >= WINS && 4 * self.right >= 3 * self.wins
    }
}

struct Operands {
    op: Op,
    x: Vec<f32>,
    /// The CPU's, the device's and Auto's.
    results: [Vec<f32>; 3],
}

impl Operands {
    fn new(op: Op, n: usize) -> Operands {
        let x = (0..n).map(|i| (i % 1000) as f32 * 0.001).collect();
        Operands { op, x, results: std::array::from_fn(|_| vec![0.0; n]) }
    }

    fn call(&mut self, hybrid: &Hybrid, who: usize) -> Side {
        cells::call(hybrid, self.op, &self.x, &mut self.results[who]).unwrap().decision.side
    }

    /// The least of some calls in microseconds: whatever disturbs one makes it longer.
    fn least_us(&mut self, hybrid: &Hybrid, who: usize) -> f64 {
        let times = (0..4).map(|_| {
            let begun = Instant::now();
            self.call(hybrid, who);
            begun.elapsed().as_secs_f64() * 1e6
        });
        times.fold(f64::INFINITY, f64::min)
    }

    /// The side that is clearly the better one now.
    fn better(&mut self, [cpu, gpu]: [&Hybrid; 2]) -> Option<Side> {
        let (cpu_us, gpu_us) = (self.least_us(cpu, 0), self.least_us(gpu, 1));
        match (cpu_us * CLEARLY < gpu_us, gpu_us * CLEARLY < cpu_us) {
            (true, _) => Some(Side::Cpu),
            (_, true) => Some(Side::Gpu),
            _ => None,
        }
    }

    fn agree(&self) -> bool {
        let [cpu, others @ ..] = &self.results;
        let near = |(x, y): (&f32, &f32)| (x - y).abs() <= 1e-3 * x.abs().max(1.0);
        others.iter().all(|other| cpu.iter().zip(other).all(near))
    }
}

/// Both sizes of an operation: what Auto's side was, and which was the better one, where that is clear.
fn measure(gpu: &Accelerator, calibration: &Calibration, op: Op) -> Vec<(Side, Side)> {
    let hybrid = |policy| Hybrid::with_calibration(gpu.clone(), calibration.clone(), policy);
    let (on_cpu, on_gpu) = (hybrid(Policy::Cpu), hybrid(Policy::Gpu));
    let mut both = SIZES.map(|n| Operands::new(op, n));
    let [small_us, large_us] = both.each_mut().map(|operands| {
        cells::call(&on_cpu, op, &operands.x, &mut operands.results[0]).unwrap().decision.cpu_us
    });
    let factor = SLOWER * both[1].least_us(&on_gpu, 1) / large_us;
    let slowed = |hybrid: Hybrid| hybrid.slow_cpu((small_us * large_us).sqrt(), factor);
    let (on_cpu, auto) = (slowed(on_cpu), slowed(hybrid(Policy::Auto)));
    let mut clear = Vec::new();
    for operands in &mut both {
        let before = operands.better([&on_cpu, &on_gpu]);
        let sides: Vec<Side> = (0..CALLS).map(|_| operands.call(&auto, 2)).collect();
        let after = operands.better([&on_cpu, &on_gpu]);
        assert!(operands.agree(), "{op:?} of {}: the sides disagree", operands.x.len());
        let judged = &sides[CALLS - JUDGED..];
        let on_gpu = judged.iter().filter(|side| **side == Side::Gpu).count();
        let took = if 2 * on_gpu > JUDGED { Side::Gpu } else { Side::Cpu };
        clear.extend(before.filter(|_| before == after).map(|better| (took, better)));
    }
    clear
}

#[test]
fn with_a_slow_cpu_auto_takes_whichever_side_is_the_better_one() {
    let gpu = harness::gpu();
    let mut tallies = [Tally::default(); 2];
    for _ in 0..ROUNDS {
        // What has disturbed one may have disturbed all of it.
        let calibration = Hybrid::calibrate(&gpu).unwrap();
        for (took, better) in OPS.iter().flat_map(|op| measure(&gpu, &calibration, *op)) {
            let tally = &mut tallies[better as usize];
            tally.wins += 1;
            tally.right += usize::from(took == better);
        }
        if tallies.iter().all(|tally| tally.is_convincing()) {
            return;
        }
    }
    panic!("Auto is not right often enough where the CPU is the better side, or the device: {tallies:?}");
}
