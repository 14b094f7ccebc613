//! The oracle: every operation in f64, written to be read.

/// Elementwise operations of two operands.
pub fn binary(op: &str, a: f64, b: f64) -> f64 {
    match op {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / b,
        _ => f64::NAN,
    }
}
