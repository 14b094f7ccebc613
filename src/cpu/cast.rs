//! Casts between element types.

use super::elementwise::unary;
use super::parallel::{HEAVY, LIGHT};
use super::view::View;
use crate::error::Result;
use crate::shape::{Bf16, Bool, DType, Element, F16, Shape};

/// Element types that elements of type `A` can become, by the rules of [`Recording::cast`](crate::Recording::cast):
/// every one.
pub trait Cast<A>: Element {
    #[doc(hidden)]
    fn cast(a: A) -> Self;
}

/// An element as the type that kernels compute with.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Wide {
    F32(f32),
    I32(i32),
    U32(u32),
}

/// Element types with the way to words and back.
#[doc(hidden)]
pub trait Storage: Element {
    fn widen(self) -> Wide;
    fn narrow(wide: Wide) -> Self;
}

impl<A: Storage, B: Storage> Cast<A> for B {
    #[inline(always)]
    fn cast(a: A) -> B {
        B::narrow(a.widen())
    }
}

macro_rules! storage {
    ($($type:ty: $wide:ident, |$x:ident| $widen:expr, |$n:ident| $narrow:expr;)*) => {$(
        impl Storage for $type {
            #[inline(always)]
            #[allow(trivial_numeric_casts, clippy::unnecessary_cast, reason = "one rule for all types")]
            fn widen(self) -> Wide {
                let $x = self;
                Wide::$wide($widen)
            }

            #[inline(always)]
            #[allow(trivial_numeric_casts, clippy::unnecessary_cast, reason = "one rule for all types")]
            fn narrow(wide: Wide) -> $type {
                match wide {
                    Wide::F32($n) => $narrow,
                    Wide::I32($n) => $narrow,
                    Wide::U32($n) => $narrow,
                }
            }
        }
    )*};
}

storage! {
    f32: F32, |x| x, |n| n as f32;
    F16: F32, |x| x.to_f32(), |n| F16::from_f32(n as f32);
    Bf16: F32, |x| x.to_f32(), |n| Bf16::from_f32(n as f32);
    i32: I32, |x| x, |n| n as i32;
    i16: I32, |x| i32::from(x), |n| n as i16;
    i8: I32, |x| i32::from(x), |n| n as i8;
    u32: U32, |x| x, |n| n as u32;
    u16: U32, |x| u32::from(x), |n| n as u16;
    u8: U32, |x| u32::from(x), |n| n as u8;
    Bool: U32, |x| u32::from(bool::from(x)), |n| Bool::from(n as f32 != 0.0);
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
    let grain = if A::DTYPE.is_float() && B::DTYPE != DType::F32 { HEAVY } else { LIGHT };
    unary("cast", x, out, grain, B::cast)
}
