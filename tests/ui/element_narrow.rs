//! Element types that tensors do not have.

use tidemill::{Accelerator, Result, Tensor};

pub fn truths(gpu: &Accelerator) -> Result<Tensor> {
    gpu.upload(&[true, false], [2])
    //~ `bool` is not an element type of tensors
    //~ for `bool`, use `Bool`
}

pub fn wide(gpu: &Accelerator) -> Result<Tensor> {
    gpu.upload(&[1i64, 2], [2])
    //~ `i64` is not an element type of tensors
    //~ for `i64`, `usize` and other wide integers, convert to `i32` or `u32`
}
