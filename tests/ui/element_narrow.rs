//! Element types that tensors do not have.

use tidemill::{Accelerator, Result, Tensor};

pub fn bytes(gpu: &Accelerator) -> Result<Tensor> {
    gpu.upload(&[1u8, 2], [2])
    //~ `u8` is not an element type of tensors
    //~ for bytes as they are, use `bytemuck::cast_slice` to `u32`, four in each
}

pub fn wide(gpu: &Accelerator) -> Result<Tensor> {
    gpu.upload(&[1i64, 2], [2])
    //~ `i64` is not an element type of tensors
    //~ for `i64`, `usize` and other wide integers, convert to `i32` or `u32`
}
