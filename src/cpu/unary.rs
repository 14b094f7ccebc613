//! Operations of one operand, activation functions among them.

use super::elementwise::unary;
use super::math;
use super::math::rare;
use super::number::Signed;
use super::parallel::{Grain, HEAVY, LIGHT};
use super::view::View;
use crate::elementwise_ops::Cost;
use crate::error::Result;
use crate::error::parameters::{finite, not_nan, parameter, positive};
use crate::shape::Shape;

impl Grain {
    /// That of an operation of this cost.
    const fn of(cost: Cost) -> Grain {
        match cost {
            Cost::Plain | Cost::Light => LIGHT,
            Cost::Heavy | Cost::Rare => HEAVY,
        }
    }
}

macro_rules! unary_functions {
    (
        one_operand {
        signed { $($(#[$signed_doc:meta])* $signed:ident($s:ident) {
            cost: $signed_cost:ident, codes: $signed_codes:tt, cpu: $signed_f:expr, $($signed_row:tt)*
        })* }
        $($section:ident { $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: [$code:ident = $number:literal], cpu: $f:expr, $($row:tt)*
        })* })*
        }
        other_codes $codes:tt
    ) => {
        $(
            #[doc = concat!("[`Recording::", stringify!($signed), "`](crate::Recording::", stringify!($signed), ");")]
            /// f32, i32.
            ///
            /// # Errors
            ///
            /// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
            pub fn $signed<'a, T: Signed>(x: impl Into<View<'a, T>>, out: &mut [T]) -> Result<Shape> {
                unary(stringify!($signed), x, out, Grain::of(Cost::$signed_cost), $signed_f)
            }
        )*
        $($(
            #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), "); f32.")]
            ///
            /// # Errors
            ///
            /// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
            pub fn $name<'a>(x: impl Into<View<'a, f32>>, out: &mut [f32]) -> Result<Shape> {
                const GRAIN: Grain = Grain::of(Cost::$cost);
                unary(stringify!($name), x, out, GRAIN, |x: f32| ($f)(x))
            }
        )*)*
    };
}

crate::elementwise_ops!(unary_functions);

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

/// [`Recording::celu`](crate::Recording::celu); f32.
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length), [`Error::Parameter`](crate::Error::Parameter) unless `alpha` is finite and
/// above 0.
pub fn celu<'a>(x: impl Into<View<'a, f32>>, alpha: f32, out: &mut [f32]) -> Result<Shape> {
    let op = "celu";
    positive(op, "alpha", alpha)?;
    unary(op, x, out, HEAVY, move |x| rare::celu(x, alpha))
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
