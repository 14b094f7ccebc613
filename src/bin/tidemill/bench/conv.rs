//! Group `conv`: convolutions of images that stay on the device, with weights that were prepared once.

use std::time::Instant;

use tidemill::{Accelerator, Conv2d};

use super::anchor::gemm::Gemm;
use super::matmul::{equal, operand};
use super::work::{Bar, Make, Result, Unit, Work};

/// The group's works; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static WORKS: &[(&str, Make)] = &[
    ("conv_3x224_64_7x7s2", |gpu| {
        convolution(gpu, Layer { channels: 3, size: 224, rows: 64, taps: 7, stride: 2, padding: 3 })
    }),
    ("conv_64x56_64_3x3", |gpu| {
        convolution(gpu, Layer { channels: 64, size: 56, rows: 64, taps: 3, stride: 1, padding: 1 })
    }),
];

/// A layer on one square image.
#[derive(Clone, Copy)]
struct Layer {
    channels: usize,
    size: usize,
    rows: usize,
    taps: usize,
    stride: usize,
    padding: usize,
}

impl Layer {
    fn result(&self) -> usize {
        (self.size + 2 * self.padding - self.taps) / self.stride + 1
    }

    /// The matrix `[channel, kernel row, tap][pixel]` whose product with the weights is the convolution.
    fn columns(&self, x: &[f32]) -> Vec<f32> {
        let (n, mut out) = (self.result(), Vec::new());
        for c in 0..self.channels {
            for tap in 0..self.taps * self.taps {
                let (tap_y, tap_x) = (tap / self.taps, tap % self.taps);
                for pixel in 0..n * n {
                    let from = |at: usize, tap: usize| {
                        (at * self.stride + tap).checked_sub(self.padding).filter(|at| *at < self.size)
                    };
                    let seen = from(pixel / n, tap_y).zip(from(pixel % n, tap_x));
                    out.push(seen.map_or(0.0, |(y, x_at)| x[(c * self.size + y) * self.size + x_at]));
                }
            }
        }
        out
    }
}

/// Against the `gemm` crate on the product of the same extents alone: the matrix is made ahead and not counted.
fn convolution(gpu: &Accelerator, layer: Layer) -> Result<Work> {
    let Layer { channels, size, rows, taps, stride, padding } = layer;
    let (depth, pixels) = (channels * taps * taps, layer.result() * layer.result());
    let (x, w) = (operand(channels * size * size, 1), operand(rows * depth, 2));
    let mut gemm = Gemm::new([rows, pixels, depth], w.clone(), layer.columns(&x))?;
    gemm.run();
    let expected = gemm.result().to_vec();
    let weights = gpu.prepare_weights(&gpu.upload(&w, [rows, channels, taps, taps])?, 1)?;
    let (gpu, x) = (gpu.clone(), gpu.upload(&x, [1, channels, size, size])?);
    let ours = expected.clone();
    Ok(Work {
        n: size,
        unit: Unit::GigaflopsPerSecond,
        amount: 2.0 * (rows * pixels * depth) as f64,
        bar: Bar::Ratio(0.35),
        ours: Box::new(move |check| {
            let how = Conv2d::new().stride([stride; 2]).padding([padding; 2]);
            let begun = Instant::now();
            let mut r = gpu.begin_recording()?;
            let value = r.conv2d(&x, &weights, how)?;
            let kept = r.keep(value)?;
            r.end_recording()?.wait()?;
            let time = begun.elapsed();
            if check {
                equal("our convolution", &kept.read()?, &ours)?;
            }
            Ok(time)
        }),
        anchor: Some((
            "gemm alone, 2 threads",
            Box::new(move |check| {
                let time = gemm.run();
                if check {
                    equal("the product of gemm", gemm.result(), &expected)?;
                }
                Ok(time)
            }),
        )),
    })
}
