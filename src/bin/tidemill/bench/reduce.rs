//! Group `reduce`: sums, dot products and softmax of tensors that stay on the device.

use std::time::Instant;

use tidemill::{Accelerator, Axes, Recording, Tensor, Value};

use super::anchor::reduce::Reduction;
use super::work::{Bar, Make, Result, Unit, Work};

/// The group's works; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static WORKS: &[(&str, Make)] = &[
    ("sum_4m", sum_4m),
    ("dot_4m", dot_4m),
    ("softmax_4096x1024", |gpu| softmax(gpu, 4096, 1024)),
    ("softmax_1m", |gpu| softmax(gpu, 1, 1 << 20)),
];

/// Small whole numbers: every order of summation gives the same exact sum.
fn exact(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i % 3) as f32).collect()
}

fn sum_4m(gpu: &Accelerator) -> Result<Work> {
    reduction(gpu, 4.0, None, |r, a, _| r.sum(a, Axes::ALL))
}

fn dot_4m(gpu: &Accelerator) -> Result<Work> {
    reduction(gpu, 8.0, Some(()), |r, a, b| r.dot(a, b))
}

/// One number from 4M elements, against two threads of the CPU.
fn reduction(
    gpu: &Accelerator,
    bytes: f64,
    second: Option<()>,
    record: fn(&mut Recording, &Tensor, &Tensor) -> tidemill::Result<Value>,
) -> Result<Work> {
    let n = 1 << 22;
    let host = exact(n);
    let expected: f32 = host.iter().map(|x| if second.is_some() { x * x } else { *x }).sum();
    let cpu = Reduction::new(host.clone(), second.map(|()| host.clone()))?;
    let (gpu, a, b) = (gpu.clone(), gpu.upload(&host, [n])?, gpu.upload(&host, [n])?);
    let check_sum = move |got: f32| -> Result<()> {
        if got == expected { Ok(()) } else { Err(format!("the sum is {got}, should be {expected}").into()) }
    };
    Ok(Work {
        n,
        unit: Unit::GigabytesPerSecond,
        amount: bytes * n as f64,
        bar: Bar::Ratio(0.2),
        ours: Box::new(move |check| {
            let begun = Instant::now();
            let mut r = gpu.begin_recording()?;
            let value = record(&mut r, &a, &b)?;
            let kept = r.keep(value)?;
            r.end_recording()?.wait()?;
            let time = begun.elapsed();
            if check {
                check_sum(kept.read::<f32>()?[0])?;
            }
            Ok(time)
        }),
        anchor: Some((
            "AVX2, 2 threads, 8 accumulators",
            Box::new(move |check| {
                let (time, sum) = cpu.run()?;
                if check {
                    check_sum(sum)?;
                }
                Ok(time)
            }),
        )),
    })
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

fn softmax(gpu: &Accelerator, rows: usize, width: usize) -> Result<Work> {
    let n = rows * width;
    let host: Vec<f32> = (0..n).map(|i| ((i * 37) % 1009) as f32 / 100.0 - 5.0).collect();
    let (gpu, x) = (gpu.clone(), gpu.upload(&host, [rows, width])?);
    let expected: Vec<f64> = host
        .chunks_exact(width)
        .flat_map(|row| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let e: Vec<f64> = row.iter().map(|x| f64::from(x - largest).exp()).collect();
            let sum: f64 = e.iter().sum();
            e.into_iter().map(move |e| e / sum)
        })
        .collect();
    let mut out = vec![0.0; n];
    let right = move |got: &[f32], tolerance: f64| -> Result<()> {
        let mut pairs = got.iter().zip(&expected);
        match pairs.position(|(g, e)| (f64::from(*g) - e).abs() > tolerance * e) {
            Some(i) => Err(format!("[{i}] is {}, should be {}", got[i], expected[i]).into()),
            None => Ok(()),
        }
    };
    let right = std::rc::Rc::new(right);
    let ours_right = right.clone();
    Ok(Work {
        n,
        unit: Unit::GigabytesPerSecond,
        // One load and one store.
        amount: 8.0 * n as f64,
        bar: Bar::Ratio(3.0),
        ours: Box::new(move |check| {
            let begun = Instant::now();
            let mut r = gpu.begin_recording()?;
            let value = r.softmax(&x, -1)?;
            let kept = r.keep(value)?;
            r.end_recording()?.wait()?;
            let time = begun.elapsed();
            if check {
                ours_right(&kept.read::<f32>()?, 1e-5)?;
            }
            Ok(time)
        }),
        anchor: Some((
            "a scalar loop with the library's exp",
            Box::new(move |check| {
                let begun = Instant::now();
                scalar_softmax(&host, width, &mut out);
                std::hint::black_box(&mut out);
                let time = begun.elapsed();
                if check {
                    // It adds up in f32, one after the other: of a million, a thousandth is lost.
                    right(&out, 1e-2)?;
                }
                Ok(time)
            }),
        )),
    })
}
