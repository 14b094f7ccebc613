//! Group `nn`: what networks consist of beside products and convolutions.

use std::time::Instant;

use tidemill::Accelerator;

use super::benchmark::{Benchmark, Make, Result, Side, Unit, expect};
use super::timed::Timed;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] =
    &[("max_pool_64x112_3x3s2", |gpu| against_copy(gpu, "max_pool_64x112_3x3s2", 112))];

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
