//! Group `reduce`: sums, dot products and softmax of tensors that stay on the device.

use std::time::Instant;

use tidemill::Accelerator;

use super::baseline::reduce::Reduction;
use super::benchmark::{Benchmark, Make, Result, Unit};
use super::timed::Timed;
use crate::cases::Bound;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("sum_4m", |gpu| reduction(gpu, "sum_4m")),
    ("dot_4m", |gpu| reduction(gpu, "dot_4m")),
    ("softmax_4096x1024", |gpu| softmax(gpu, "softmax_4096x1024")),
    ("softmax_1m", |gpu| softmax(gpu, "softmax_1m")),
];

/// One number from 4M elements, against two threads of the CPU.
fn reduction(gpu: &Accelerator, name: &'static str) -> Result<Benchmark> {
    let timed = Timed::new(name)?;
    let operand = |k: usize| timed.operands.get(k).map(|x| x.of::<f32>().to_vec());
    let first = operand(0).ok_or("a reduction has an operand")?;
    let (n, cpu) = (first.len(), Reduction::new(first, operand(1))?);
    // It adds up in f32.
    let baseline = timed.baseline(Bound::Scaled(1e-5), move |_, _, out| {
        let (time, sum) = cpu.run()?;
        out.of_mut()[0] = sum;
        Ok(time)
    });
    timed.benchmark(gpu, n, Unit::GigabytesPerSecond, 0.2, ("AVX2, 2 threads, 8 accumulators", baseline))
}

/// What people write by hand: a scalar loop with the library's `exp`.
pub(super) fn scalar_softmax(x: &[f32], width: usize, out: &mut [f32]) {
    for (row, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0;
        for (x, out) in row.iter().zip(&mut *out) {
            *out = (x - largest).exp();
            sum += *out;
        }
        out.iter_mut().for_each(|out| *out /= sum);
    }
}

fn softmax(gpu: &Accelerator, name: &'static str) -> Result<Benchmark> {
    let timed = Timed::new(name)?;
    let shape = timed.case.result.shape;
    let width = shape.dims()[shape.rank() - 1];
    // It adds up in f32, one after the other: of a million, a thousandth is lost.
    let baseline = timed.baseline(Bound::Scaled(1e-2), move |_, x, out| {
        let (x, out) = (x[0].of(), out.of_mut());
        let begun = Instant::now();
        scalar_softmax(x, width, out);
        std::hint::black_box(out);
        Ok(begun.elapsed())
    });
    let baseline = ("a scalar loop with the library's exp", baseline);
    timed.benchmark(gpu, shape.elements(), Unit::GigabytesPerSecond, 3.0, baseline)
}
