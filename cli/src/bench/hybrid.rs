//! Group `hybrid`: the CPU's side beside the best there is, and what the choice between the sides costs.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tidemill::Accelerator;
use tidemill::cpu;
use tidemill::hybrid::{Hybrid, Op, Policy, Side, Work as Call};

use super::baseline::gemm::Gemm;
use super::baseline::stream::Stream;
use super::benchmark::{Benchmark, Make, Result, Target, Unit, expect};
use crate::crossover::table::{self, Cell, Table};
use tidemill_cases::crossover::{self as cells, OPS};

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("cpu_add_16m", cpu_add_16m),
    ("cpu_matmul_1024", cpu_matmul_1024),
    ("auto_overhead", auto_overhead),
    ("regret_median", regret_median),
    ("regret_worst", regret_worst),
];

fn cpu_add_16m(_: &Accelerator) -> Result<Benchmark> {
    let n = 1 << 24;
    let (a, b): (Vec<f32>, Vec<f32>) = ((0..n).map(|i| (i % 4096) as f32).collect(), vec![0.5; n]);
    let sum = |i: usize| (i % 4096) as f32 + 0.5;
    let mut stream = Stream::new(&a, &b)?;
    let anchor_name = stream.name();
    let mut out = vec![0.0; n];
    Ok(Benchmark {
        n,
        unit: Unit::GigabytesPerSecond,
        amount: 12.0 * n as f64,
        target: Target::Ratio(0.9),
        ours: Box::new(move |check| {
            let begun = Instant::now();
            cpu::add(&a, &b, &mut out)?;
            let time = begun.elapsed();
            if check {
                expect("cpu_add_16m", &out, sum)?;
            }
            Ok(time)
        }),
        baseline: Some((
            anchor_name,
            Box::new(move |check| {
                let time = stream.run()?;
                if check {
                    expect("the baseline of cpu_add_16m", &stream.result(), sum)?;
                }
                Ok(time)
            }),
        )),
    })
}

fn cpu_matmul_1024(_: &Accelerator) -> Result<Benchmark> {
    let n = 1024;
    // Small whole numbers: every order of summation gives the same exact result.
    let operand = |salt: usize| -> Vec<f32> {
        (0..n * n).map(|i| ((i * 7 + i / 11 + salt) % 5) as f32 - 2.0).collect()
    };
    let (a, b) = (operand(0), operand(3));
    let mut gemm = Gemm::new([n; 3], a.clone(), b.clone())?;
    gemm.run();
    let expected = gemm.result().to_vec();
    let mut out = vec![0.0; n * n];
    Ok(Benchmark {
        n,
        unit: Unit::GigaflopsPerSecond,
        amount: 2.0 * (n as f64).powi(3),
        target: Target::Ratio(0.9),
        ours: Box::new(move |check| {
            let begun = Instant::now();
            cpu::matmul((&a, [n; 2]), (&b, [n; 2]), &mut out)?;
            let time = begun.elapsed();
            if check {
                expect("cpu_matmul_1024", &out, |i| expected[i])?;
            }
            Ok(time)
        }),
        baseline: Some(("gemm, 2 threads", Box::new(move |_| Ok(gemm.run())))),
    })
}

/// Deciding, looking at the clock twice, and learning.
fn auto_overhead(gpu: &Accelerator) -> Result<Benchmark> {
    const CALLS: usize = 1000;
    let hybrid = Hybrid::with_accelerator(gpu.clone(), Policy::Auto)?;
    Ok(Benchmark {
        n: CALLS,
        unit: Unit::Micros,
        amount: CALLS as f64,
        target: Target::AtMost(0.3),
        ours: Box::new(move |_| {
            let placement = hybrid.placement();
            let begun = Instant::now();
            for i in 0..CALLS {
                let call = black_box(Call::on_host(Op::Tanh, 1000 + i, 1000 + i, 0.0));
                let decision = placement.decide(&call);
                let begun = Instant::now();
                // As long as it was priced, so that nothing changes sides.
                let price_us = match decision.side {
                    Side::Cpu => decision.cpu_us,
                    _ => decision.gpu_us.unwrap_or_default(),
                };
                placement.learn(&call, &decision, black_box(begun.elapsed().as_secs_f64() + price_us));
            }
            Ok(begun.elapsed())
        }),
        baseline: None,
    })
}

/// The table of crossovers, measured once for both benchmarks.
fn measured(gpu: &Accelerator) -> Result<Vec<Cell>> {
    static CELLS: Mutex<Vec<Cell>> = Mutex::new(Vec::new());
    let mut cells = CELLS.lock().map_err(|_| "an earlier measurement failed")?;
    if cells.is_empty() {
        let mut table = Table::new(gpu)?;
        for op in OPS {
            for n in cells::sizes() {
                cells.push(table.measure(op, n)?);
            }
        }
    }
    Ok(cells.clone())
}

fn factor(n: usize, most: f64, ours: impl FnMut(bool) -> Result<Duration> + 'static) -> Benchmark {
    Benchmark {
        n,
        unit: Unit::Factor,
        amount: 1.0,
        target: Target::AtMost(most),
        ours: Box::new(ours),
        baseline: None,
    }
}

fn regret_median(gpu: &Accelerator) -> Result<Benchmark> {
    let cells = measured(gpu)?;
    let (median, _) = table::regret(&cells);
    Ok(factor(cells.len(), 1.05, move |_| Ok(Duration::from_secs_f64(median))))
}

fn regret_worst(gpu: &Accelerator) -> Result<Benchmark> {
    let cells = measured(gpu)?;
    let (_, worst) = table::regret(&cells);
    Ok(factor(cells.len(), 1.25, move |_| Ok(Duration::from_secs_f64(worst))))
}
