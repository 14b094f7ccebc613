//! Comparisons, and the choice between two operands.

use super::elementwise::{binary, broadcast_map, unary};
use super::number::Number;
use super::parallel::LIGHT;
use super::simd;
use super::view::View;
use crate::error::Result;
use crate::error::parameters::not_nan;
use crate::shape::Shape;

macro_rules! comparisons {
    ($($name:ident, $with_scalar:ident: $f:expr;)*) => {$(
        #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), "): 1 or 0;")]
        /// of f32, i32, u32. Shapes broadcast.
        ///
        /// # Errors
        ///
        /// [`Error::Shapes`](crate::Error::Shapes) with the extents that disagree,
        /// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
        pub fn $name<'a, T: Number>(
            lhs: impl Into<View<'a, T>>,
            rhs: impl Into<View<'a, T>>,
            out: &mut [u32],
        ) -> Result<Shape> {
            binary(stringify!($name), lhs.into(), rhs.into(), out, LIGHT, |a: T, b: T| u32::from($f(a, b)))
        }

        #[doc = concat!("As [`", stringify!($name), "`], with a scalar on the right, which must not be NaN.")]
        ///
        /// # Errors
        ///
        /// [`Error::Parameter`](crate::Error::Parameter), [`Error::Length`](crate::Error::Length).
        pub fn $with_scalar<'a, T: Number>(
            x: impl Into<View<'a, T>>,
            right: T,
            out: &mut [u32],
        ) -> Result<Shape> {
            let op = stringify!($with_scalar);
            right.float().map_or(Ok(()), |float| not_nan(op, "scalar", float))?;
            unary(op, x, out, LIGHT, move |x: T| u32::from($f(x, right)))
        }
    )*};
}

comparisons! {
    eq, eq_scalar: T::equal;
    ne, ne_scalar: |a: T, b: T| !a.equal(b);
    lt, lt_scalar: T::below;
    le, le_scalar: T::not_above;
    gt, gt_scalar: |a: T, b: T| b.below(a);
    ge, ge_scalar: |a: T, b: T| b.not_above(a);
}

macro_rules! logical {
    ($($name:ident: $f:expr;)*) => {$(
        #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), "): 1 or 0;")]
        /// u32. Shapes broadcast.
        ///
        /// # Errors
        ///
        /// Those of [`eq`].
        pub fn $name<'a>(
            lhs: impl Into<View<'a, u32>>,
            rhs: impl Into<View<'a, u32>>,
            out: &mut [u32],
        ) -> Result<Shape> {
            let f = |a: u32, b: u32| u32::from($f(a != 0, b != 0));
            binary(stringify!($name), lhs.into(), rhs.into(), out, LIGHT, f)
        }
    )*};
}

logical! {
    logical_and: |a, b| a & b;
    logical_or: |a, b| a | b;
    logical_xor: |a, b| a ^ b;
}

/// [`Recording::logical_not`](crate::Recording::logical_not): 1 or 0; u32.
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
pub fn logical_not<'a>(x: impl Into<View<'a, u32>>, out: &mut [u32]) -> Result<Shape> {
    unary("logical_not", x, out, LIGHT, |x: u32| u32::from(x == 0))
}

/// [`Recording::is_nan`](crate::Recording::is_nan): 1 or 0; f32.
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
pub fn is_nan<'a>(x: impl Into<View<'a, f32>>, out: &mut [u32]) -> Result<Shape> {
    unary("is_nan", x, out, LIGHT, |x: f32| u32::from(x.is_nan()))
}

/// [`Recording::is_inf`](crate::Recording::is_inf): 1 or 0; f32.
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
pub fn is_inf<'a>(x: impl Into<View<'a, f32>>, out: &mut [u32]) -> Result<Shape> {
    unary("is_inf", x, out, LIGHT, |x: f32| u32::from(x.is_infinite()))
}

/// [`Recording::select`](crate::Recording::select): `a` where the mask is not 0, `b` elsewhere; all three broadcast.
///
/// # Errors
///
/// [`Error::Shapes`](crate::Error::Shapes), [`Error::Length`](crate::Error::Length).
pub fn select<'a, T: Number>(
    mask: impl Into<View<'a, u32>>,
    a: impl Into<View<'a, T>>,
    b: impl Into<View<'a, T>>,
    out: &mut [T],
) -> Result<Shape> {
    // Bits pass unchanged, so all of them are words.
    let words = |view: View<'a, T>| View::<u32>::new(bytemuck::cast_slice(view.data()), view.shape());
    let operands = [mask.into(), words(a.into()), words(b.into())];
    broadcast_map(
        "select",
        operands,
        bytemuck::cast_slice_mut::<T, u32>(out),
        LIGHT,
        |operands, out, stores| {
            simd::map3(operands, out, stores, |mask, a, b| if mask == 0 { b } else { a });
        },
    )
}
