//! Measures the cells.

use std::time::{Duration, Instant};

use tidemill::hybrid::{Hybrid, Op, Policy, Side};
use tidemill::{Accelerator, Conv2d, PreparedWeights, Recording, Result, Tensor, Value};

use tidemill_cases::crossover::{KERNEL, PARAMETERS, WEIGHTS, call, elements, shape};

/// Rounds of a cell: at least this many, and more until this time has passed.
const LEAST: usize = 15;
const MOST: usize = 101;
const TIME: Duration = Duration::from_millis(60);
/// Rounds in which every side takes its turn. In the others it is only Auto and the better one.
const FULL: usize = 5;
/// One operation at one size; times are medians of rounds in which all sides took turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) op: Op,
    pub(crate) n: usize,
    pub(crate) cpu_us: f64,
    /// From slices to a slice.
    pub(crate) gpu_us: f64,
    /// From tensors to a tensor.
    pub(crate) resident_us: f64,
    pub(crate) auto_us: f64,
    /// What Auto did at last.
    pub(crate) chose: Side,
    /// How many times as long as the better side Auto took, after half a microsecond for deciding: the median over the
    /// rounds, so that what disturbs a round meets both. Never below 1.
    pub(crate) regret: f64,
}

/// The median and the worst of the cells' regrets.
pub(crate) fn regret(cells: &[Cell]) -> (f64, f64) {
    let mut all: Vec<f64> = cells.iter().map(|cell| cell.regret).collect();
    all.sort_by(f64::total_cmp);
    (all.get(all.len() / 2).copied().unwrap_or(1.0), all.last().copied().unwrap_or(1.0))
}

/// Who takes turns: the three of [`Table::sides`], and the device with operands that are there.
const CPU: usize = 0;
const GPU: usize = 1;
const AUTO: usize = 2;
const RESIDENT: usize = 3;

/// The sides, and the memory that they work on.
pub(crate) struct Table {
    gpu: Accelerator,
    sides: [Hybrid; 3],
    weights: PreparedWeights,
    x: Vec<f32>,
    out: Vec<f32>,
}

impl Table {
    pub(crate) fn new(gpu: &Accelerator) -> Result<Table> {
        let hybrid = |policy| Hybrid::with_accelerator(gpu.clone(), policy);
        let sides = [hybrid(Policy::Cpu)?, hybrid(Policy::Gpu)?, hybrid(Policy::Auto)?];
        let weights = gpu.prepare_weights(&gpu.upload(&WEIGHTS, KERNEL)?, 1)?;
        Ok(Table { gpu: gpu.clone(), sides, weights, x: Vec::new(), out: Vec::new() })
    }

    pub(crate) fn measure(&mut self, op: Op, n: usize) -> Result<Cell> {
        let n = elements(op, n);
        self.x.resize(self.x.len().max(n), 0.5);
        self.out.resize(self.out.len().max(n), 0.0);
        let (x, out) = (&self.x[..n], &mut self.out[..n]);
        let there = self.gpu.upload(x, shape(op, n))?;
        let mut times: [Vec<f64>; 4] = Default::default();
        let mut chose = Side::Cpu;
        // What is cold, and what Auto does not know yet, does not count.
        for _ in 0..3 {
            call(&self.sides[AUTO], op, x, out)?;
        }
        call(&self.sides[GPU], op, x, out)?;
        // How many times as long as the better side Auto took, round by round.
        let mut ratios = Vec::new();
        let mut better = CPU;
        let begun = Instant::now();
        while ratios.len() < LEAST || (begun.elapsed() < TIME && ratios.len() < MOST) {
            let round = ratios.len();
            if round == FULL {
                better = if median(times[GPU].clone()) < median(times[CPU].clone()) { GPU } else { CPU };
                ratios = times[AUTO].iter().zip(&times[better]).map(regretted).collect();
            }
            let order: &[usize] = if round < FULL { &[RESIDENT, GPU, CPU, AUTO] } else { &[better, AUTO] };
            // Each follows the other as often.
            for turn in 0..order.len() {
                let side = order[if round % 2 == 0 { turn } else { order.len() - 1 - turn }];
                let begun = Instant::now();
                if side == RESIDENT {
                    let r = self.gpu.begin_recording()?;
                    let value = record(&r, op, &there, &self.weights)?;
                    r.keep(value)?;
                    r.end_recording()?.wait()?;
                } else {
                    let ran = call(&self.sides[side], op, x, out)?;
                    if side == AUTO {
                        chose = ran.decision.side;
                    }
                }
                times[side].push(begun.elapsed().as_secs_f64() * 1e6);
            }
            let last = |side: usize| times[side].last();
            ratios.extend(last(AUTO).zip(last(better)).map(regretted));
        }
        let [cpu_us, gpu_us, auto_us, resident_us] = times.each_ref().map(|times| median(times.clone()));
        let regret = median(ratios).max(1.0);
        Ok(Cell { op, n, cpu_us, gpu_us, resident_us, auto_us, chose, regret })
    }
}

/// Auto's time over the other's, after half a microsecond for deciding.
fn regretted((auto, other): (&f64, &f64)) -> f64 {
    (auto - 0.5) / other
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn record(r: &Recording, op: Op, x: &Tensor, weights: &PreparedWeights) -> Result<Value> {
    let [p, q] = PARAMETERS;
    match op {
        Op::Add => r.add(x, x),
        Op::Dot => r.dot(x, x),
        Op::Matmul => r.matmul(x, x),
        Op::Relu => r.relu(x),
        Op::LeakyRelu => r.leaky_relu(x, p),
        Op::Elu => r.elu(x, p),
        Op::Clip => r.clip(x, p, q),
        Op::Sigmoid => r.sigmoid(x),
        Op::Tanh => r.tanh(x),
        Op::Swish => r.swish(x),
        Op::Softmax => r.softmax(x, -1),
        Op::LogSoftmax => r.log_softmax(x, -1),
        Op::Conv2d => r.conv2d_with(x, weights, Conv2d::new().padding([1, 1])),
        _ => r.gelu(x),
    }
}
