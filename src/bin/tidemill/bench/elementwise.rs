//! Group `elementwise`: memory-bound work on large tensors that stay on the device.

use std::time::Instant;

use tidemill::Accelerator;

use super::anchor::stream::Stream;
use super::work::{Bar, Make, Result, Unit, Work, expect};

/// The group's works; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static WORKS: &[(&str, Make)] = &[("add_16m", add_16m)];

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
        bar: Bar::Ratio(0.35),
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
