//! Elementwise operations.

use tidemill::{Recording, Result, Tensor, Value};

use super::data::{LENGTHS, SPECIAL, uniform};
use super::{Bound, Case, compare, reference};

/// Operations of one f32 operand.
pub const UNARY: [&str; 24] = [
    "neg", "abs", "sign", "floor", "ceil", "round", "sqrt", "rsqrt", "recip", "exp", "log", "sin", "cos", "relu",
    "leaky_relu", "elu", "clip", "sigmoid", "tanh", "swish", "gelu", "gelu_erf", "softplus", "pow_scalar",
];

/// The parameters of those that have some.
pub const PARAMETERS: [f64; 2] = [0.25, 1.5];

/// Records one of [`UNARY`].
pub fn apply_unary(r: &mut Recording, op: &str, x: &Tensor) -> Result<Value> {
    let [p, q] = PARAMETERS.map(|p| p as f32);
    match op {
        "neg" => r.neg(x),
        "abs" => r.abs(x),
        "sign" => r.sign(x),
        "floor" => r.floor(x),
        "ceil" => r.ceil(x),
        "round" => r.round(x),
        "sqrt" => r.sqrt(x),
        "rsqrt" => r.rsqrt(x),
        "recip" => r.recip(x),
        "exp" => r.exp(x),
        "log" => r.log(x),
        "sin" => r.sin(x),
        "cos" => r.cos(x),
        "relu" => r.relu(x),
        "leaky_relu" => r.leaky_relu(x, p),
        "elu" => r.elu(x, p),
        "clip" => r.clip(x, p, q),
        "sigmoid" => r.sigmoid(x),
        "tanh" => r.tanh(x),
        "swish" => r.swish(x),
        "gelu" => r.gelu(x),
        "gelu_erf" => r.gelu_erf(x),
        "softplus" => r.softplus(x),
        _ => r.pow_scalar(x, q),
    }
}

/// Adds the cases.
pub fn cases(out: &mut Vec<Case>) {
    let _ = (LENGTHS, SPECIAL, uniform, Bound::Exact, compare, reference::erfc, out);
}
