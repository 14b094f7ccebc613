//! The matrix product that people write by hand, through our own engine: `tiled.comp`.

#![allow(unsafe_code, reason = "a kernel from outside is unsafe to make; its whole tiles are checked here")]

use std::time::{Duration, Instant};

use tidemill::{Accelerator, DType, Dispatch, Kernel, Tensor};

use crate::bench::benchmark::Result;

static TILED: &[u8] = include_bytes!("tiled.spv");

/// The kernel with its operands.
pub(crate) struct Tiled {
    gpu: Accelerator,
    kernel: Kernel,
    n: usize,
    operands: [Tensor; 2],
}

impl Tiled {
    /// For square matrices of whole tiles.
    pub(crate) fn new(gpu: &Accelerator, n: usize, a: &[f32], b: &[f32]) -> Result<Tiled> {
        if !n.is_multiple_of(16) {
            return Err("the kernel takes whole tiles only".into());
        }
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let words: Vec<u32> = TILED.chunks_exact(4).map(word).collect();
        // SAFETY: the module is what shaderc made of tiled.comp; with n a multiple of 16 and a grid of n x n
        // invocations it stays inside its bindings.
        let kernel = unsafe { Kernel::from_spirv("tiled", &words)? };
        let operands = [gpu.upload(a, [n, n])?, gpu.upload(b, [n, n])?];
        Ok(Tiled { gpu: gpu.clone(), kernel, n, operands })
    }

    /// One product.
    pub(crate) fn run(&self) -> Result<(Duration, Tensor)> {
        let groups = (self.n / 16) as u32;
        let begun = Instant::now();
        let r = self.gpu.begin_recording()?;
        let run = Dispatch::new(&self.kernel)
            .input(&self.operands[0])
            .input(&self.operands[1])
            .output([self.n, self.n], DType::F32)
            .push(&[self.n as u32; 3])
            .groups([groups, groups, 1]);
        let values = r.dispatch(run)?;
        let kept = r.keep(values[0])?;
        r.end_recording()?.wait()?;
        Ok((begun.elapsed(), kept))
    }
}
