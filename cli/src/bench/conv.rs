//! Group `conv`: convolutions of images that stay on the device, with weights that were prepared once.

use tidemill::Accelerator;

use super::benchmark::{Benchmark, Make, Result, Unit};
use super::matmul::gemm;
use super::timed::Timed;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("conv_3x224_64_7x7s2", |gpu| convolution(gpu, "conv_3x224_64_7x7s2", 2, 3)),
    ("conv_64x56_64_3x3", |gpu| convolution(gpu, "conv_64x56_64_3x3", 1, 1)),
];

/// The matrix `[channel, kernel row, tap][pixel]` whose product with the weights is the convolution of one square
/// image.
fn patches(x: &[f32], [channels, size, taps, result]: [usize; 4], stride: usize, padding: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for c in 0..channels {
        for tap in 0..taps * taps {
            let (tap_y, tap_x) = (tap / taps, tap % taps);
            for pixel in 0..result * result {
                let from =
                    |at: usize, tap: usize| (at * stride + tap).checked_sub(padding).filter(|at| *at < size);
                let seen = from(pixel / result, tap_y).zip(from(pixel % result, tap_x));
                out.push(seen.map_or(0.0, |(y, x_at)| x[(c * size + y) * size + x_at]));
            }
        }
    }
    out
}

/// Against the `gemm` crate on the product of the same extents alone: the matrix is made ahead and not counted.
fn convolution(gpu: &Accelerator, name: &'static str, stride: usize, padding: usize) -> Result<Benchmark> {
    let timed = Timed::new(name)?;
    let (x, w) = (&timed.operands[0], &timed.operands[1]);
    let (&[_, channels, size, _], &[rows, _, taps, _], &[_, _, result, _]) =
        (x.kind.shape.dims(), w.kind.shape.dims(), timed.case.result.shape.dims())
    else {
        return Err(format!("{name} is no convolution").into());
    };
    let matrix = patches(x.of(), [channels, size, taps, result], stride, padding);
    let extents = [rows, result * result, channels * taps * taps];
    let baseline = ("gemm alone, 2 threads", gemm(&timed, extents, [w.of().to_vec(), matrix])?);
    timed.benchmark(gpu, size, Unit::GigaflopsPerSecond, 0.35, baseline)
}
