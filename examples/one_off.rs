//! One operation on slices: upload, run, read.
//!
//! cargo run --release --example one_off

use tidemill::{Accelerator, Result};

fn main() -> Result<()> {
    let gpu = Accelerator::global()?;
    let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    let b = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], [3, 2])?;
    let product = gpu.run(|r| r.matmul(&a, &b))?.read::<f32>()?;
    assert_eq!(product, [4.0, 5.0, 10.0, 11.0]);
    println!("{}: {} x {} = {product:?}", gpu.device().name, a.shape(), b.shape());
    Ok(())
}
