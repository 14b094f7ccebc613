//! Checks of parameters that operations have in common.

use super::{Error, Result};

/// A parameter that must be a number, and not infinite.
pub(crate) fn finite(op: &'static str, name: &'static str, value: f32) -> Result<()> {
    if value.is_finite() { Ok(()) } else { Err(parameter(op, name, value, "be finite")) }
}

/// A parameter that must be a number.
pub(crate) fn not_nan(op: &'static str, name: &'static str, value: f32) -> Result<()> {
    if value.is_nan() { Err(parameter(op, name, value, "be a number")) } else { Ok(()) }
}

/// A parameter that must be a number above 0, and not infinite.
pub(crate) fn positive(op: &'static str, name: &'static str, value: f32) -> Result<()> {
    finite(op, name, value)?;
    if value > 0.0 { Ok(()) } else { Err(parameter(op, name, value, "be above 0")) }
}

pub(crate) fn parameter(op: &'static str, name: &'static str, value: f32, rule: &str) -> Error {
    Error::Parameter { op, name, value: f64::from(value), rule: rule.to_owned() }
}
