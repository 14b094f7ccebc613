//! Group `primitives`: scans, sorts and selections of tensors that stay on the device, against our own copies and sums
//! by bytes, and against the standard library.

use std::time::Instant;

use tidemill::Accelerator;

use super::benchmark::{Benchmark, Make, Result, Side, Unit};
use super::timed::Timed;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] =
    &[("cumsum_16m", cumsum_16m), ("sort_1m_u32", sort_1m_u32), ("topk_1m_100", topk_1m_100)];

/// One of ours against another one, each by its bytes: the baseline's time is that for as many bytes as ours moves.
fn by_bytes(
    gpu: &Accelerator,
    name: &'static str,
    other: &'static str,
    label: &'static str,
    ratio: f64,
) -> Result<Benchmark> {
    let (timed, other) = (Timed::new(name)?, Timed::new(other)?);
    let unit = Unit::GigabytesPerSecond;
    let share = timed.amount(unit) / other.amount(unit);
    let mut theirs = other.ours(gpu)?;
    let baseline: Side = Box::new(move |check| Ok(theirs(check)?.mul_f64(share)));
    let elements = timed.operands.first().map_or(0, |x| x.kind.shape.elements());
    timed.benchmark(gpu, elements, unit, ratio, (label, baseline))
}

fn cumsum_16m(gpu: &Accelerator) -> Result<Benchmark> {
    by_bytes(gpu, "cumsum_16m", "add_16m", "our own add_16m, by bytes", 0.4)
}

fn topk_1m_100(gpu: &Accelerator) -> Result<Benchmark> {
    by_bytes(gpu, "topk_1m_100", "op_copy", "our own copy, by bytes", 0.15)
}

fn sort_1m_u32(gpu: &Accelerator) -> Result<Benchmark> {
    let timed = Timed::new("sort_1m_u32")?;
    let baseline = timed.baseline(timed.case.bound, |_, x, out| {
        let (x, out): (&[u32], &mut [u32]) = (x[0].of(), out.of_mut());
        let begun = Instant::now();
        out.copy_from_slice(x);
        out.sort_unstable();
        Ok(begun.elapsed())
    });
    let elements = timed.case.result.shape.elements();
    timed.benchmark(gpu, elements, Unit::Millis, 0.5, ("slice::sort_unstable, one thread", baseline))
}
