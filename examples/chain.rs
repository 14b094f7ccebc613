//! Several operations in one recording: one submission, and the elementwise ones become one dispatch.
//!
//! cargo run --release --example chain

use tidemill::{Accelerator, Result};

const N: usize = 100_000;

fn main() -> Result<()> {
    let gpu = Accelerator::global()?;
    let x: Vec<f32> = (0..N).map(|i| (i % 200) as f32 / 100.0 - 1.0).collect();
    let (a, b) = (gpu.upload(&x, [N])?, gpu.upload(&[0.5f32], [1])?);

    let r = gpu.begin_recording()?;
    let square = r.mul(&a, &a)?;
    let shifted = r.sub(square, &b)?;
    let positive = r.relu(shifted)?;
    let total = r.sum(positive, -1)?;
    let (positive, total) = (r.keep(positive)?, r.keep(total)?);
    let dispatches = r.explain()?.run.len();
    let done = r.end_recording()?; // Nothing is waited for: the host could do something else now.
    done.wait()?;

    let expected: Vec<f32> = x.iter().map(|x| (x * x - 0.5).max(0.0)).collect();
    assert_eq!(positive.read::<f32>()?, expected);
    let sum = expected.iter().map(|&x| f64::from(x)).sum::<f64>();
    let got = f64::from(total.read::<f32>()?[0]);
    assert!((got - sum).abs() < 1e-5 * sum, "{got} is not {sum}");
    println!(
        "4 operations on {N} elements in {dispatches} dispatches, one submission; their sum is {got:.2}"
    );
    Ok(())
}
