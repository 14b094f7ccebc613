//! Group `elementwise`: memory-bound work on large tensors that stay on the device.

use std::time::Instant;

use tidemill::Accelerator;

use super::anchor::stream::Stream;
use super::work::{Bar, Make, Result, Unit, Work, expect};

/// The group's works; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static WORKS: &[(&str, Make)] = &[("add_16m", add_16m), ("gelu_16m", gelu_16m)];

/// Two operands whose sum is exact.
fn operands(n: usize) -> (Vec<f32>, Vec<f32>) {
    ((0..n).map(|i| (i % 4096) as f32).collect(), vec![0.5; n])
}

fn sum(i: usize) -> f32 {
    (i % 4096) as f32 + 0.5
}

fn add_16m(gpu: &Accelerator) -> Result<Work> {
    let n = 1 << 24;
    let (a, b) = operands(n);
    let mut stream = Stream::new(&a, &b)?;
    let anchor_name = stream.name();
    let (gpu, a, b) = (gpu.clone(), gpu.upload(&a, [n])?, gpu.upload(&b, [n])?);
    Ok(Work {
        n,
        unit: Unit::GigabytesPerSecond,
        // Two loads and a store.
        amount: 12.0 * n as f64,
        bar: Bar::Ratio(0.37),
        ours: Box::new(move |check| {
            let begun = Instant::now();
            let mut r = gpu.begin_recording()?;
            let value = r.add(&a, &b)?;
            let kept = r.keep(value)?;
            r.end_recording()?.wait()?;
            let time = begun.elapsed();
            if check {
                expect("add_16m", &kept.read()?, sum)?;
            }
            Ok(time)
        }),
        anchor: Some((
            anchor_name,
            Box::new(move |check| {
                let time = stream.run()?;
                if check {
                    expect("the anchor of add_16m", &stream.result(), sum)?;
                }
                Ok(time)
            }),
        )),
    })
}

/// Against our own add on the same device, by elements: what the function costs beyond the memory it moves.
fn gelu_16m(gpu: &Accelerator) -> Result<Work> {
    let n = 1 << 24;
    let (a, b) = operands(n);
    let (a, b) = (gpu.upload(&a, [n])?, gpu.upload(&b, [n])?);
    let (ours, anchor, x) = (gpu.clone(), gpu.clone(), a.clone());
    let reference = |x: f64| 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x.powi(3))).tanh());
    Ok(Work {
        n,
        unit: Unit::GigabytesPerSecond,
        // Elements, as the add counts them.
        amount: 12.0 * n as f64,
        bar: Bar::Ratio(0.6),
        ours: Box::new(move |check| {
            let begun = Instant::now();
            let mut r = ours.begin_recording()?;
            let value = r.gelu(&x)?;
            let kept = r.keep(value)?;
            r.end_recording()?.wait()?;
            let time = begun.elapsed();
            if check {
                let got = kept.read::<f32>()?;
                let off = |i: usize| {
                    let e = reference((i % 4096) as f64);
                    (f64::from(got[i]) - e).abs() > 1e-5 * e.abs()
                };
                if let Some(i) = (0..n).find(|&i| off(i)) {
                    return Err(format!("gelu_16m is wrong: [{i}] is {}", got[i]).into());
                }
            }
            Ok(time)
        }),
        anchor: Some((
            "our own add_16m",
            Box::new(move |check| {
                let begun = Instant::now();
                let mut r = anchor.begin_recording()?;
                let value = r.add(&a, &b)?;
                let kept = r.keep(value)?;
                r.end_recording()?.wait()?;
                let time = begun.elapsed();
                if check {
                    expect("the anchor of gelu_16m", &kept.read()?, sum)?;
                }
                Ok(time)
            }),
        )),
    })
}
