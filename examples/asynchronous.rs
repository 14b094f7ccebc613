//! Submissions as futures: two chains on their way at once, awaited on any executor.
//!
//! cargo run --release --example asynchronous

use tidemill::{Accelerator, Result, Tensor};

async fn powers(gpu: &Accelerator, x: &Tensor, steps: usize) -> Result<Vec<f32>> {
    let r = gpu.begin_recording()?;
    let mut y = r.copy(x)?;
    for _ in 0..steps {
        y = r.mul(y, x)?;
    }
    let y = r.keep(y)?;
    r.end_recording()?.await?;
    y.read()
}

fn main() -> Result<()> {
    pollster::block_on(async {
        let gpu = Accelerator::global()?;
        let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3])?;
        let (squares, cubes) = (powers(&gpu, &x, 1), powers(&gpu, &x, 2));
        assert_eq!(squares.await?, [1.0, 4.0, 9.0]);
        assert_eq!(cubes.await?, [1.0, 8.0, 27.0]);
        println!("squares and cubes, awaited");
        Ok(())
    })
}
