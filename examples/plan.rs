//! A small network recorded once and submitted for batch after batch: nothing is recorded or encoded again.
//!
//! cargo run --release --example plan

use std::time::Instant;

use tidemill::{Accelerator, Epilogue, Result};

const BATCH: usize = 64;

fn main() -> Result<()> {
    let gpu = Accelerator::global()?;
    let weights = |n: usize| (0..n).map(|i| ((i * 31) % 17) as f32 / 100.0 - 0.08).collect::<Vec<_>>();
    let (w1, b1) = (gpu.upload(&weights(784 * 128), [784, 128])?, gpu.upload(&weights(128), [128])?);
    let w2 = gpu.upload(&weights(128 * 10), [128, 10])?;
    let x = gpu.zeros::<f32>([BATCH, 784])?;

    let r = gpu.begin_recording()?;
    let hidden = r.matmul_with(&x, &w1, Epilogue::bias(&b1).relu())?;
    let scores = r.matmul(hidden, &w2)?;
    let shares = r.softmax(scores, -1)?;
    let shares = r.keep(shares)?;
    let mut plan = r.into_plan()?;

    let begun = Instant::now();
    for n in 0..20 {
        // Each submission reads what the input holds when it is submitted.
        x.write_with(|f| f.extend((0..BATCH * 784).map(|i| ((i + n) % 29) as f32 / 29.0)))?;
        plan.submit()?.wait()?;
        let shares = shares.read::<f32>()?;
        let sums = shares.chunks_exact(10).map(|row| row.iter().sum::<f32>());
        assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-5), "shares add up to one");
    }
    println!("20 batches of {BATCH} in {:.1?}", begun.elapsed());
    let stats = gpu.stats();
    println!("{} submissions, {} command buffers encoded", stats.submissions, stats.commands.encoded);
    Ok(())
}
