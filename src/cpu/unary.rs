//! Operations of one operand, activation functions among them.

use super::elementwise::unary;
use super::math;
use super::number::Signed;
use super::parallel::{Grain, HEAVY, LIGHT};
use super::view::View;
use crate::error::Result;
use crate::error::parameters::{finite, not_nan, parameter};
use crate::shape::Shape;

macro_rules! float {
    ($($name:ident: $grain:expr, $f:expr;)*) => {$(
        #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), "); f32.")]
        ///
        /// # Errors
        ///
        /// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
        pub fn $name<'a>(x: impl Into<View<'a, f32>>, out: &mut [f32]) -> Result<Shape> {
            const GRAIN: Grain = $grain;
            unary(stringify!($name), x, out, GRAIN, |x| $f(x))
        }
    )*};
}

float! {
    floor: LIGHT, f32::floor;
    ceil: LIGHT, f32::ceil;
    round: LIGHT, f32::round_ties_even;
    sqrt: LIGHT, f32::sqrt;
    rsqrt: LIGHT, |x: f32| 1.0 / x.sqrt();
    recip: LIGHT, f32::recip;
    exp: HEAVY, math::exp;
    log: HEAVY, math::log;
    sin: HEAVY, math::sin;
    cos: HEAVY, math::cos;
    relu: LIGHT, |x| math::max(x, 0.0);
    sigmoid: HEAVY, math::sigmoid;
    tanh: HEAVY, math::tanh;
    swish: HEAVY, math::swish;
    gelu: HEAVY, math::gelu;
    gelu_erf: HEAVY, math::gelu_erf;
    softplus: HEAVY, math::softplus;
}

macro_rules! signed {
    ($($name:ident: $f:ident;)*) => {$(
        #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), "); f32, i32.")]
        ///
        /// # Errors
        ///
        /// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
        pub fn $name<'a, T: Signed>(x: impl Into<View<'a, T>>, out: &mut [T]) -> Result<Shape> {
            unary(stringify!($name), x, out, LIGHT, T::$f)
        }
    )*};
}

signed! {
    neg: negated;
    abs: magnitude;
    sign: sign;
}

/// [`Recording::leaky_relu`](crate::Recording::leaky_relu); f32.
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length), [`Error::Parameter`](crate::Error::Parameter) unless `alpha` is finite.
pub fn leaky_relu<'a>(x: impl Into<View<'a, f32>>, alpha: f32, out: &mut [f32]) -> Result<Shape> {
    let op = "leaky_relu";
    finite(op, "alpha", alpha)?;
    unary(op, x, out, LIGHT, move |x| if x.is_sign_negative() { x * alpha } else { x })
}

/// [`Recording::elu`](crate::Recording::elu); f32.
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length), [`Error::Parameter`](crate::Error::Parameter) unless `alpha` is finite.
pub fn elu<'a>(x: impl Into<View<'a, f32>>, alpha: f32, out: &mut [f32]) -> Result<Shape> {
    let op = "elu";
    finite(op, "alpha", alpha)?;
    unary(op, x, out, HEAVY, move |x: f32| {
        let below = alpha * math::expm1_of_negative(x);
        if x.is_sign_negative() && !x.is_nan() { below } else { x }
    })
}

/// [`Recording::clip`](crate::Recording::clip); f32.
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length), [`Error::Parameter`](crate::Error::Parameter) if a bound is NaN or `lo` is
/// above `hi`.
pub fn clip<'a>(x: impl Into<View<'a, f32>>, lo: f32, hi: f32, out: &mut [f32]) -> Result<Shape> {
    let op = "clip";
    not_nan(op, "lo", lo)?;
    not_nan(op, "hi", hi)?;
    if lo > hi {
        return Err(parameter(op, "lo", lo, &format!("not be above hi, which is {hi}")));
    }
    unary(op, x, out, LIGHT, move |x| math::max(math::min(x, hi), lo))
}
