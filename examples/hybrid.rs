//! Slices in, slices out, on the CPU or on the device: whichever is predicted to be faster by times measured here.
//!
//! cargo run --release --example hybrid

use tidemill::Result;
use tidemill::hybrid::{Hybrid, Policy, Side};

fn main() -> Result<()> {
    let hybrid = Hybrid::new(Policy::Auto)?;
    for n in [1_000, 1_000_000] {
        let (a, b) = (vec![1.5f32; n], vec![2.0f32; n]);
        let mut sum = vec![0.0; n];
        let ran = hybrid.add(&a, &b, &mut sum)?;
        assert!(sum.iter().all(|&x| x == 3.5));
        println!("add of {n}: {}", ran.decision);
        // A submission alone takes longer than that.
        assert!(n > 1_000 || ran.decision.side == Side::Cpu);
    }
    Ok(())
}
