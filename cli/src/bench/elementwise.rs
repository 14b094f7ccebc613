//! Group `elementwise`: memory-bound work on large tensors that stay on the device.

use tidemill::Accelerator;

use super::baseline::stream::Stream;
use super::benchmark::{Benchmark, Make, Result, Unit};
use super::timed::Timed;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[("add_16m", add_16m), ("gelu_16m", gelu_16m)];

fn add_16m(gpu: &Accelerator) -> Result<Benchmark> {
    let timed = Timed::new("add_16m")?;
    let [a, b] = [0, 1].map(|k| timed.operands[k].of::<f32>());
    let (n, mut stream) = (a.len(), Stream::new(a, b)?);
    let name = stream.name();
    let baseline = timed.baseline(timed.case.bound, move |check, _, out| {
        let time = stream.run()?;
        if check {
            out.of_mut().copy_from_slice(&stream.result());
        }
        Ok(time)
    });
    timed.benchmark(gpu, n, Unit::GigabytesPerSecond, 0.37, (name, baseline))
}

/// Against our own add on the same device, by elements: what the function costs beyond the memory it moves.
fn gelu_16m(gpu: &Accelerator) -> Result<Benchmark> {
    let (gelu, add) = (Timed::new("gelu_16m")?, Timed::new("add_16m")?);
    let (n, unit) = (gelu.case.result.shape.elements(), Unit::GigabytesPerSecond);
    let benchmark = gelu.benchmark(gpu, n, unit, 0.6, ("our own add_16m", add.ours(gpu)?))?;
    // Elements, as the add counts them.
    Ok(Benchmark { amount: add.amount(unit), ..benchmark })
}
