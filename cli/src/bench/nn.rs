//! Group `nn`: what networks consist of beside products and convolutions.

use std::time::Instant;

use tidemill::Accelerator;

use super::benchmark::{Benchmark, Make, Result, Side, Unit, expect};
use super::timed::Timed;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("max_pool_64x112_3x3s2", |gpu| against_copy(gpu, "max_pool_64x112_3x3s2", 112)),
    ("layer_norm_4096x1024", |gpu| beside_add(gpu, "layer_norm_4096x1024", 0.55)),
    ("rms_norm_4096x1024", |gpu| beside_add(gpu, "rms_norm_4096x1024", 0.55)),
    ("resize_linear_3x512_1024", |gpu| against_copy(gpu, "resize_linear_3x512_1024", 1024)),
];

/// Against our own copy of as many bytes.
fn against_copy(gpu: &Accelerator, name: &'static str, n: usize) -> Result<Benchmark> {
    let timed = Timed::new(name)?;
    // A copy reads and writes each of them.
    let elements = timed.case.size_bytes() as usize / 8;
    let (gpu_of_copy, x) = (gpu.clone(), gpu.upload(&vec![1.0f32; elements], [elements])?);
    let copy: Side = Box::new(move |check| {
        let begun = Instant::now();
        let r = gpu_of_copy.begin_recording()?;
        let kept = r.keep(r.copy(&x)?)?;
        r.end_recording()?.wait()?;
        let time = begun.elapsed();
        if check {
            expect("the copy", &kept.read::<f32>()?, |_| 1.0)?;
        }
        Ok(time)
    });
    timed.benchmark(gpu, n, Unit::GigabytesPerSecond, 0.3, ("our own copy of as many bytes", copy))
}

/// Against our own add of 16M elements on the same device, by bytes.
fn beside_add(gpu: &Accelerator, name: &'static str, ratio: f64) -> Result<Benchmark> {
    let (timed, add) = (Timed::new(name)?, Timed::new("add_16m")?);
    let (n, unit) = (timed.case.result.shape.elements(), Unit::GigabytesPerSecond);
    // For each byte that we move the add may have its time.
    let (ours, theirs) = (timed.amount(unit), add.amount(unit));
    let mut run = add.ours(gpu)?;
    let baseline = Box::new(move |check| Ok(run(check)?.mul_f64(ours / theirs)));
    timed.benchmark(gpu, n, unit, ratio, ("our own add_16m, by bytes", baseline))
}
