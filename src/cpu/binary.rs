//! Operations of two operands, and of an operand and a scalar.

use super::elementwise::{binary, broadcast_map, unary};
use super::math::{self, rare};
use super::number::Number;
use super::parallel::{HEAVY, LIGHT};
use super::simd;
use super::view::View;
use crate::error::Result;
use crate::error::parameters::{finite, not_nan};
use crate::shape::Shape;

macro_rules! arithmetic {
    ($($name:ident, $with_scalar:ident($parameter:ident: $rule:ident): $f:ident;)*) => {$(
        #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), ");")]
        /// f32, i32, u32. Shapes broadcast.
        ///
        /// # Errors
        ///
        /// [`Error::Shapes`](crate::Error::Shapes) with the extents that disagree,
        /// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
        pub fn $name<'a, T: Number>(
            lhs: impl Into<View<'a, T>>,
            rhs: impl Into<View<'a, T>>,
            out: &mut [T],
        ) -> Result<Shape> {
            binary(stringify!($name), lhs.into(), rhs.into(), out, LIGHT, T::$f)
        }

        #[doc = concat!(
            "[`Recording::", stringify!($with_scalar), "`](crate::Recording::", stringify!($with_scalar), ");"
        )]
        /// f32, i32, u32.
        ///
        /// # Errors
        ///
        /// [`Error::Parameter`](crate::Error::Parameter), [`Error::Length`](crate::Error::Length).
        pub fn $with_scalar<'a, T: Number>(
            x: impl Into<View<'a, T>>,
            $parameter: T,
            out: &mut [T],
        ) -> Result<Shape> {
            let op = stringify!($with_scalar);
            $parameter.float().map_or(Ok(()), |float| $rule(op, stringify!($parameter), float))?;
            unary(op, x, out, LIGHT, move |x: T| x.$f($parameter))
        }
    )*};
}

arithmetic! {
    add, add_scalar(scalar: finite): plus;
    sub, sub_scalar(scalar: finite): minus;
    mul, scale(factor: finite): times;
    div, div_scalar(scalar: finite): over;
    min, min_scalar(scalar: not_nan): smaller;
    max, max_scalar(scalar: not_nan): larger;
}

macro_rules! remainders {
    ($($name:ident: $f:ident;)*) => {$(
        #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), ");")]
        /// f32, i32, u32. Shapes broadcast.
        ///
        /// # Errors
        ///
        /// Those of [`add`].
        pub fn $name<'a, T: Number>(
            lhs: impl Into<View<'a, T>>,
            rhs: impl Into<View<'a, T>>,
            out: &mut [T],
        ) -> Result<Shape> {
            binary(stringify!($name), lhs.into(), rhs.into(), out, HEAVY, T::$f)
        }
    )*};
}

remainders! {
    fmod: remainder;
    modulo: modulo;
}

macro_rules! of_floats {
    ($($name:ident: $grain:expr, $f:expr;)*) => {$(
        #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), ");")]
        /// f32. Shapes broadcast.
        ///
        /// # Errors
        ///
        /// Those of [`add`].
        pub fn $name<'a>(
            lhs: impl Into<View<'a, f32>>,
            rhs: impl Into<View<'a, f32>>,
            out: &mut [f32],
        ) -> Result<Shape> {
            binary(stringify!($name), lhs.into(), rhs.into(), out, $grain, $f)
        }
    )*};
}

of_floats! {
    atan2: HEAVY, rare::atan2;
    hypot: HEAVY, rare::hypot;
    copysign: LIGHT, f32::copysign;
    prelu: LIGHT, |x: f32, slope: f32| if x.is_sign_negative() { x * slope } else { x };
}

/// [`Recording::clamp`](crate::Recording::clamp); f32. Shapes broadcast.
///
/// # Errors
///
/// Those of [`add`].
pub fn clamp<'a>(
    x: impl Into<View<'a, f32>>,
    lo: impl Into<View<'a, f32>>,
    hi: impl Into<View<'a, f32>>,
    out: &mut [f32],
) -> Result<Shape> {
    let clamped = |x, lo, hi| math::max(math::min(x, hi), lo);
    broadcast_map("clamp", [x.into(), lo.into(), hi.into()], out, LIGHT, |x, out, stores| {
        simd::map3(x, out, stores, clamped);
    })
}

/// [`Recording::pow`](crate::Recording::pow); f32. Shapes broadcast.
///
/// # Errors
///
/// Those of [`add`].
pub fn pow<'a>(
    lhs: impl Into<View<'a, f32>>,
    rhs: impl Into<View<'a, f32>>,
    out: &mut [f32],
) -> Result<Shape> {
    binary("pow", lhs.into(), rhs.into(), out, HEAVY, math::pow)
}

/// [`Recording::pow_scalar`](crate::Recording::pow_scalar); f32.
///
/// # Errors
///
/// Those of [`add_scalar`].
pub fn pow_scalar<'a>(x: impl Into<View<'a, f32>>, exponent: f32, out: &mut [f32]) -> Result<Shape> {
    let op = "pow_scalar";
    finite(op, "exponent", exponent)?;
    // As an operand: with an exponent that it knows to stay the same, the compiler makes no vector code.
    let exponent = View::new(std::slice::from_ref(&exponent), []);
    binary(op, x.into(), exponent, out, HEAVY, math::pow)
}
