//! Group `overhead`: what the engine costs beside what the driver costs.

use std::time::{Duration, Instant};

use tidemill::{Accelerator, Config, Prewarm, Tensor};

use super::baseline::clock::Spent;
use super::baseline::vulkan::Bare;
use super::benchmark::{Benchmark, Make, Result, Side, Target, Unit, expect};
use crate::cold_start;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("record_dispatch", record_dispatch),
    ("pool_hit", pool_hit),
    ("add_1k_wait", |gpu| against_bare(gpu, 1, 0.67)),
    ("add_1k_chain100", |gpu| against_bare(gpu, 100, 0.77)),
    ("cold_start_second", cold_start_second),
];

/// Elements of the operands: next to nothing, so that the way there is what counts.
const N: usize = 1024;
const BARE: &str = "bare Vulkan, recorded ahead";

/// Two operands; a chain of `steps` adds of the second to the first is exact.
fn operands() -> (Vec<f32>, Vec<f32>) {
    ((0..N).map(|i| i as f32).collect(), vec![0.5; N])
}

fn chained(steps: usize) -> impl Fn(usize) -> f32 {
    move |i| i as f32 + 0.5 * steps as f32
}

/// The same device without fusion: what one operation costs shows only where each is a dispatch of its own.
fn unfused(gpu: &Accelerator) -> Result<Accelerator> {
    let config = Config::new().device_index(gpu.device().index).fusion(false).prewarm(Prewarm::Off);
    Ok(Accelerator::new(&config)?)
}

/// Records a chain of adds, submits it, and waits: this thread's CPU time until `end_recording` returned, and the wall
/// time until all was done.
fn chain(
    gpu: &Accelerator,
    a: &Tensor,
    b: &Tensor,
    steps: usize,
    check: bool,
) -> Result<(Duration, Duration)> {
    let (begun, spent) = (Instant::now(), Spent::begin());
    let r = gpu.begin_recording()?;
    let mut value = r.add(a, b)?;
    for _ in 1..steps {
        value = r.add(value, b)?;
    }
    let kept = r.keep(value)?;
    let submission = r.end_recording()?;
    let recorded = spent.elapsed();
    submission.wait()?;
    let completed = begun.elapsed();
    if check {
        expect("a chain of adds", &kept.read()?, chained(steps))?;
    }
    Ok((recorded, completed))
}

/// The CPU's time to record and submit an operation.
fn record_dispatch(gpu: &Accelerator) -> Result<Benchmark> {
    const OPS: usize = 1000;
    let gpu = unfused(gpu)?;
    let (a, b) = operands();
    let (a, b) = (gpu.upload(&a, [N])?, gpu.upload(&b, [N])?);
    Ok(Benchmark {
        n: OPS,
        unit: Unit::Micros,
        amount: OPS as f64,
        target: Target::AtMost(2.0),
        ours: Box::new(move |check| Ok(chain(&gpu, &a, &b, OPS, check)?.0)),
        baseline: None,
    })
}

/// A block from the pool and back: the shortest public way is a tensor of one element, made and dropped. That
/// writes the element and makes the tensor's handle, too, so a bare hit costs less.
fn pool_hit(gpu: &Accelerator) -> Result<Benchmark> {
    const HITS: usize = 10_000;
    let gpu = gpu.clone();
    Ok(Benchmark {
        n: HITS,
        unit: Unit::Micros,
        amount: HITS as f64,
        target: Target::AtMost(0.5),
        ours: Box::new(move |check| {
            drop(gpu.upload(&[1.0f32], [1])?);
            let before = gpu.stats().pool;
            let begun = Instant::now();
            for _ in 0..HITS {
                drop(std::hint::black_box(gpu.upload(&[1.0f32], [1])?));
            }
            let time = begun.elapsed();
            let after = gpu.stats().pool;
            if (after.hits - before.hits, after.misses) != (HITS as u64, before.misses) {
                return Err("a request that should hit the pool missed it".into());
            }
            if check {
                expect("a pooled tensor", &gpu.upload(&[1.0f32], [1])?.read()?, |_| 1.0)?;
            }
            Ok(time)
        }),
        baseline: None,
    })
}

/// A chain in one submission with a wait, against the same chain recorded ahead.
fn against_bare(gpu: &Accelerator, steps: usize, target: f64) -> Result<Benchmark> {
    let (a, b) = operands();
    let mut bare = Bare::new(gpu.device().index, &a, &b, steps)?;
    let gpu = unfused(gpu)?;
    let (a, b) = (gpu.upload(&a, [N])?, gpu.upload(&b, [N])?);
    let baseline: Side = Box::new(move |check| {
        let begun = Instant::now();
        bare.run()?;
        let time = begun.elapsed();
        if check {
            expect("the bare chain", bare.result(), chained(steps))?;
        }
        Ok(time)
    });
    Ok(Benchmark {
        n: N,
        unit: Unit::Micros,
        amount: steps as f64,
        target: Target::Ratio(target),
        ours: Box::new(move |check| Ok(chain(&gpu, &a, &b, steps, check)?.1)),
        baseline: Some((BARE, baseline)),
    })
}

/// From the start of a process to its first verified result, when caches on disk are warm.
fn cold_start_second(gpu: &Accelerator) -> Result<Benchmark> {
    let index = gpu.device().index;
    Ok(Benchmark {
        n: N,
        unit: Unit::Millis,
        amount: 1.0,
        target: Target::Ratio(0.67),
        ours: Box::new(|_| cold_start::spawn(None)),
        baseline: Some(("bare Vulkan process", Box::new(move |_| cold_start::spawn(Some(index))))),
    })
}
