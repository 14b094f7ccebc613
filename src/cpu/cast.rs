//! Casts between element types.

use super::elementwise::unary;
use super::parallel::{HEAVY, LIGHT};
use super::view::View;
use crate::error::Result;
use crate::shape::{DType, Element, Shape};

/// Element types that elements of type `A` can become, by the rules of Rust's `as`.
pub trait Cast<A>: Element {
    #[doc(hidden)]
    fn cast(a: A) -> Self;
}

macro_rules! casts {
    ($($from:ty => $($to:ty),*;)*) => {$($(
        impl Cast<$from> for $to {
            #[inline(always)]
            #[allow(trivial_numeric_casts, clippy::unnecessary_cast, reason = "one rule for all pairs")]
            fn cast(a: $from) -> $to {
                a as $to
            }
        }
    )*)*};
}

casts! {
    f32 => f32, i32, u32;
    i32 => f32, i32, u32;
    u32 => f32, i32, u32;
}

/// [`Recording::cast`](crate::Recording::cast): to the type of the output.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let mut out = [0i32; 4];
/// tidemill::cpu::cast(&[-1.5f32, 2.9, 1e20, f32::NAN], &mut out)?;
/// assert_eq!(out, [-1, 2, i32::MAX, 0]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
pub fn cast<'a, A: Element, B: Cast<A>>(x: impl Into<View<'a, A>>, out: &mut [B]) -> Result<Shape> {
    // Floats become integers one by one.
    let grain = if A::DTYPE == DType::F32 && B::DTYPE != DType::F32 { HEAVY } else { LIGHT };
    unary("cast", x, out, grain, B::cast)
}
