//! Group `matmul`: products of matrices that stay on the device.

use std::time::Instant;

use tidemill::Accelerator;

use super::anchor::gemm::Gemm;
use super::anchor::stream::Stream;
use super::anchor::tiled::Tiled;
use super::work::{Bar, Make, Result, Side, Unit, Work};

/// The group's works; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static WORKS: &[(&str, Make)] = &[
    ("matmul_512", |gpu| product(gpu, [512; 3], 0.35)),
    ("matmul_1000", |gpu| odd(gpu, 1000)),
    ("matmul_1023", |gpu| odd(gpu, 1023)),
    ("matmul_1024", |gpu| product(gpu, [1024; 3], 0.35)),
    ("matmul_2048", |gpu| product(gpu, [2048; 3], 0.35)),
    ("matmul_64x4096x4096", |gpu| product(gpu, [64, 4096, 4096], 0.2)),
    ("matmul_4096x64x4096", |gpu| product(gpu, [4096, 64, 4096], 0.2)),
    ("matvec_4096", matvec_4096),
    ("matmul_512_vs_handwritten", handwritten),
];

/// Small whole numbers: every order of summation gives the same exact result.
pub(super) fn operand(n: usize, salt: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + i / 11 + salt) % 5) as f32 - 2.0).collect()
}

/// An error unless both are the same.
pub(super) fn equal(what: &str, got: &[f32], expected: &[f32]) -> Result<()> {
    match got.iter().zip(expected).position(|(g, e)| g != e) {
        Some(i) => Err(format!("{what} is wrong: [{i}] is {}, should be {}", got[i], expected[i]).into()),
        None if got.len() != expected.len() => Err(format!("{what} has {} elements", got.len()).into()),
        None => Ok(()),
    }
}

/// A product of ours, from begin to completed.
fn ours(gpu: &Accelerator, [m, n, k]: [usize; 3], a: &[f32], b: &[f32], expected: Vec<f32>) -> Result<Side> {
    let (gpu, a, b) = (gpu.clone(), gpu.upload(a, [m, k])?, gpu.upload(b, [k, n])?);
    Ok(Box::new(move |check| {
        let begun = Instant::now();
        let mut r = gpu.begin_recording()?;
        let value = r.matmul(&a, &b)?;
        let kept = r.keep(value)?;
        r.end_recording()?.wait()?;
        let time = begun.elapsed();
        if check {
            equal("our product", &kept.read()?, &expected)?;
        }
        Ok(time)
    }))
}

fn flops([m, n, k]: [usize; 3]) -> f64 {
    2.0 * m as f64 * n as f64 * k as f64
}

/// `m x k` times `k x n`, against the `gemm` crate on two threads.
fn product(gpu: &Accelerator, extents: [usize; 3], bar: f64) -> Result<Work> {
    let [m, n, k] = extents;
    let (a, b) = (operand(m * k, 1), operand(k * n, 2));
    let mut gemm = Gemm::new(extents, a.clone(), b.clone())?;
    gemm.run();
    let expected = gemm.result().to_vec();
    Ok(Work {
        n,
        unit: Unit::GigaflopsPerSecond,
        amount: flops(extents),
        bar: Bar::Ratio(bar),
        ours: ours(gpu, extents, &a, &b, expected.clone())?,
        anchor: Some((
            "gemm, 2 threads",
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

/// Square matrices of whatever size, against our own product of those of 1024, by operations.
fn odd(gpu: &Accelerator, n: usize) -> Result<Work> {
    let side = |n: usize| -> Result<Side> {
        let (a, b) = (operand(n * n, 1), operand(n * n, 2));
        let mut gemm = Gemm::new([n; 3], a.clone(), b.clone())?;
        gemm.run();
        ours(gpu, [n; 3], &a, &b, gemm.result().to_vec())
    };
    let mut whole = side(1024)?;
    let share = flops([n; 3]) / flops([1024; 3]);
    Ok(Work {
        n,
        unit: Unit::GigaflopsPerSecond,
        amount: flops([n; 3]),
        bar: Bar::Ratio(0.85),
        ours: side(n)?,
        // The time that as many operations take there.
        anchor: Some(("our own matmul_1024", Box::new(move |check| Ok(whole(check)?.mul_f64(share))))),
    })
}

/// A square matrix times a vector, against a stream that moves as many bytes.
fn matvec_4096(gpu: &Accelerator) -> Result<Work> {
    let n = 4096;
    let (a, b) = (operand(n * n, 1), operand(n, 2));
    let expected = a.chunks_exact(n).map(|row| row.iter().zip(&b).map(|(x, y)| x * y).sum()).collect();
    let bytes = 4 * n * n;
    // The stream moves 12 bytes for each of its elements.
    let mut stream = Stream::new(&vec![1.0; bytes / 12], &vec![2.0; bytes / 12])?;
    Ok(Work {
        n,
        unit: Unit::GigabytesPerSecond,
        amount: bytes as f64,
        bar: Bar::Ratio(0.4),
        ours: ours(gpu, [n, 1, n], &a, &b, expected)?,
        anchor: Some((stream.name(), Box::new(move |_| stream.run()))),
    })
}

/// Against a 16 x 16 tiled kernel on the same device.
fn handwritten(gpu: &Accelerator) -> Result<Work> {
    let n = 512;
    let (a, b) = (operand(n * n, 1), operand(n * n, 2));
    let mut gemm = Gemm::new([n; 3], a.clone(), b.clone())?;
    gemm.run();
    let expected = gemm.result().to_vec();
    let tiled = Tiled::new(gpu, n, &a, &b)?;
    Ok(Work {
        n,
        unit: Unit::GigaflopsPerSecond,
        amount: flops([n; 3]),
        bar: Bar::Ratio(100.0),
        ours: ours(gpu, [n; 3], &a, &b, expected.clone())?,
        anchor: Some((
            "16x16 shared tile",
            Box::new(move |check| {
                let (time, kept) = tiled.run()?;
                if check {
                    equal("the handwritten product", &kept.read()?, &expected)?;
                }
                Ok(time)
            }),
        )),
    })
}
