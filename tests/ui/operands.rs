//! What is no operand.

use tidemill::{Recording, Result, Tensor, Value};

pub fn by_value(r: &Recording, x: Tensor) -> Result<Value> {
    r.relu(x)
    //~ `tidemill::Tensor` is not an operand of a recording's operations
    //~ a tensor is given by reference: `&tensor`
}

pub fn double(r: &Recording, x: &Tensor) -> Result<Value> {
    r.mul(x, 2.0f64)
    //~ `f64` is not an operand of a recording's operations
    //~ write `x as f32` for an `f64`
}

pub fn slice(r: &Recording, x: &Tensor, y: &[f32]) -> Result<Value> {
    r.add(x, y)
    //~ slices and vectors go to the device first: `gpu.upload(&data, shape)?`
}
