//! Every form of a call that must compile.

use tidemill::{Accelerator, Axes, Operand, Recording, Result, Tensor, Value};

/// Operations nest, and a recording is lent on as it came.
pub fn layer(r: &Recording, x: Value, w: &Tensor) -> Result<Value> {
    r.mul(r.add(x, w)?, r.sub(1.0, r.exp(x)?)?)
}

pub fn all(gpu: &Accelerator, a: &Tensor, b: &Tensor, parts: Vec<Tensor>) -> Result<()> {
    let y = gpu.run(|r| layer(r, r.mul(r.add(a, b)?, a)?, b))?;
    let _ = gpu.run(|r| r.concat([a, b], 0))?;
    let _ = gpu.run(|r| r.concat(&parts, 0))?;
    let _ = gpu.run(|r| r.stack(parts.iter().map(|part| r.relu(part)).collect::<Result<Vec<_>>>()?, 0))?;
    let _ = gpu.run(|r| r.concat([Operand::from(a), r.relu(b)?.into()], 0))?;
    let _ = gpu.run(|r| r.sum(a, [0, 1]))?;
    let _ = gpu.run(|r| r.sum(a, Axes::from([0, 2]).keep()))?;
    let _ = gpu.run(|r| r.permute(a, [1, 0]))?;
    let _ = gpu.run(|r| r.permute(a, vec![1, 0]))?;
    let _ = gpu.run(|r| r.slice(a, (.., 1.., ..2, 1..=2)))?;
    let _ = gpu.run(|r| r.slice(a, [1.., 2..]))?;
    let _ = gpu.run(|r| r.div(2.0, a))?;
    let _ = gpu.run(|r| r.add(a, 1u32))?;
    let _ = gpu.run(|r| r.bit_and(a, 0x0fu8))?;
    let _ = gpu.upload(&[1u8, 2], [2])?;
    let _ = gpu.run(|r| r.conv2d(a, b))?;
    let (kept, done) = gpu.run_submitted(|r| r.add(a, b))?;
    done.wait()?;
    drop((kept, y));
    Ok(())
}

pub fn own_error(gpu: &Accelerator, a: &Tensor, text: &str) -> std::result::Result<Tensor, Box<dyn std::error::Error>> {
    gpu.try_run(|r| Ok::<_, Box<dyn std::error::Error>>(r.pow(a, text.parse::<f32>()?)?))
}

/// A recording may move to another thread.
pub fn moves(r: Recording) {
    std::thread::spawn(move || drop(r));
}
