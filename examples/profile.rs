//! Where the time goes: a row per dispatch, by the device's own clock.
//!
//! cargo run --release --example profile

use tidemill::profile::{Profile, Profiling};
use tidemill::{Accelerator, Result, Tensor};

fn main() -> Result<()> {
    let gpu = Accelerator::global()?;
    let n = 256;
    let x = gpu.upload(&vec![0.01f32; n * n], [n, n])?;

    let run = || -> Result<(Tensor, Profile)> {
        let r = gpu.begin_recording()?;
        r.profiling(Profiling::Isolated);
        let product = r.matmul(&x, &x)?;
        let shares = r.softmax(product, -1)?;
        let shares = r.keep(shares)?;
        let profile = r.end_recording()?.profile()?; // Waits.
        Ok((shares, profile))
    };
    run()?; // Some drivers compile at the first dispatch.
    let (shares, profile) = run()?;

    assert!(shares.read::<f32>()?.iter().all(|share| (share * n as f32 - 1.0).abs() < 1e-4));
    assert!(profile.rows.iter().any(|row| row.label.starts_with("matmul")));
    assert!(profile.busy_ns() > 0 && profile.busy_ns() <= profile.span_ns());
    println!("{profile}");
    Ok(())
}
