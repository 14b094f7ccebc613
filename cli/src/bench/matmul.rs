//! Group `matmul`: products of matrices that stay on the device.

use std::rc::Rc;

use tidemill::Accelerator;

use super::baseline::gemm::Gemm;
use super::baseline::stream::Stream;
use super::baseline::tiled::Tiled;
use super::benchmark::{Benchmark, Make, Result, Side, Unit, expect};
use super::timed::Timed;
use crate::cases::Array;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("matmul_512", |gpu| product(gpu, "matmul_512", 0.35)),
    ("matmul_1000", |gpu| odd(gpu, "matmul_1000")),
    ("matmul_1023", |gpu| odd(gpu, "matmul_1023")),
    ("matmul_1024", |gpu| product(gpu, "matmul_1024", 0.35)),
    ("matmul_2048", |gpu| product(gpu, "matmul_2048", 0.35)),
    ("matmul_64x4096x4096", |gpu| product(gpu, "matmul_64x4096x4096", 0.2)),
    ("matmul_4096x64x4096", |gpu| product(gpu, "matmul_4096x64x4096", 0.2)),
    ("matvec_4096", matvec_4096),
    ("matmul_512_vs_handwritten", handwritten),
];

/// The columns of a product's result.
fn columns(timed: &Timed) -> usize {
    timed.case.result.shape.dims()[1]
}

/// The `gemm` crate on a product of these operands.
pub(super) fn gemm(timed: &Rc<Timed>, extents: [usize; 3], [a, b]: [Vec<f32>; 2]) -> Result<Side> {
    let mut gemm = Gemm::new(extents, a, b)?;
    Ok(timed.baseline(timed.case.bound, move |check, _, out| {
        let time = gemm.run();
        if check {
            out.of_mut().copy_from_slice(gemm.result());
        }
        Ok(time)
    }))
}

/// `m x k` times `k x n`, against the `gemm` crate on two threads.
fn product(gpu: &Accelerator, name: &'static str, target: f64) -> Result<Benchmark> {
    let timed = Timed::new(name)?;
    let dims = |k: usize| timed.operands[k].kind.shape.dims();
    let (extents, factors) =
        ([dims(0)[0], dims(1)[1], dims(0)[1]], [0, 1].map(|k| timed.operands[k].of().to_vec()));
    let baseline = ("gemm, 2 threads", gemm(&timed, extents, factors)?);
    timed.benchmark(gpu, columns(&timed), Unit::GigaflopsPerSecond, target, baseline)
}

/// Square matrices of whatever size, against our own product of those of 1024, by operations.
fn odd(gpu: &Accelerator, name: &'static str) -> Result<Benchmark> {
    let (timed, whole) = (Timed::new(name)?, Timed::new("matmul_1024")?);
    let (share, mut whole) = (timed.case.flops as f64 / whole.case.flops as f64, whole.ours(gpu)?);
    // The time that as many operations take there.
    let baseline: Side = Box::new(move |check| Ok(whole(check)?.mul_f64(share)));
    timed.benchmark(gpu, columns(&timed), Unit::GigaflopsPerSecond, 0.85, ("our own matmul_1024", baseline))
}

/// A square matrix times a vector, against a stream that moves as many bytes.
fn matvec_4096(gpu: &Accelerator) -> Result<Benchmark> {
    let timed = Timed::new("matvec_4096")?;
    let (n, unit) = (timed.case.result.shape.elements(), Unit::GigabytesPerSecond);
    // The stream moves 12 bytes for each of its elements, of which it takes multiples of 16.
    let elements = timed.case.size_bytes() as usize / 12 / 16 * 16;
    let mut stream = Stream::new(&vec![1.0; elements], &vec![2.0; elements])?;
    let name = stream.name();
    let baseline: Side = Box::new(move |check| {
        let time = stream.run()?;
        if check {
            expect("the baseline of matvec_4096", &stream.result(), |_| 3.0)?;
        }
        Ok(time)
    });
    timed.benchmark(gpu, n, unit, 0.4, (name, baseline))
}

/// Against a 16 x 16 tiled kernel on the same device.
fn handwritten(gpu: &Accelerator) -> Result<Benchmark> {
    let timed = Timed::new("matmul_512")?;
    let n = columns(&timed);
    let tiled = Tiled::new(gpu, n, timed.operands[0].of(), timed.operands[1].of())?;
    let baseline = timed.baseline(timed.case.bound, move |check, _, out| {
        let (time, kept) = tiled.run()?;
        if check {
            *out = Array::read(&kept)?;
        }
        Ok(time)
    });
    timed.benchmark(gpu, n, Unit::GigaflopsPerSecond, 100.0, ("16x16 shared tile", baseline))
}
