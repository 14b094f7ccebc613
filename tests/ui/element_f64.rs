//! An element type that tensors do not have.

pub fn upload(gpu: &tidemill::Accelerator) -> tidemill::Result<tidemill::Tensor> {
    gpu.upload(&[1.0f64, 2.0], [2])
    //~ `f64` is not an element type of tensors
    //~ for `f64`, convert to `f32`
}
