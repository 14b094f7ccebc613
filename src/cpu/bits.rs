//! Operations on the bits of integers.

use super::elementwise::{binary, unary};
use super::parallel::LIGHT;
use super::view::View;
use crate::error::Result;
use crate::shape::{Element, Shape};

/// Element types with bits to work on: `i32`, `i16`, `i8`, `u32`, `u16` and `u8`.
pub trait Integer: Element {
    #[doc(hidden)]
    fn and(self, other: Self) -> Self;
    #[doc(hidden)]
    fn or(self, other: Self) -> Self;
    #[doc(hidden)]
    fn xor(self, other: Self) -> Self;
    #[doc(hidden)]
    fn left_by(self, count: Self) -> Self;
    #[doc(hidden)]
    fn right_by(self, count: Self) -> Self;
    #[doc(hidden)]
    fn not(self) -> Self;
    #[doc(hidden)]
    fn ones(self) -> u32;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            #[inline(always)]
            fn and(self, other: $type) -> $type {
                self & other
            }

            #[inline(always)]
            fn or(self, other: $type) -> $type {
                self | other
            }

            #[inline(always)]
            fn xor(self, other: $type) -> $type {
                self ^ other
            }

            // A negative count is a large one.
            #[inline(always)]
            fn left_by(self, count: $type) -> $type {
                self.checked_shl(count as u32).unwrap_or(0)
            }

            #[inline(always)]
            fn right_by(self, count: $type) -> $type {
                self >> (count as u32).min(<$type>::BITS - 1) >> u32::from(count as u32 >= <$type>::BITS)
            }

            #[inline(always)]
            fn not(self) -> $type {
                !self
            }

            #[inline(always)]
            fn ones(self) -> u32 {
                self.count_ones()
            }
        }
    )*};
}
integers!(i32, i16, i8, u32, u16, u8);

macro_rules! of_two {
    ($($name:ident: $f:ident;)*) => {$(
        #[doc = concat!("[`Recording::", stringify!($name), "`](crate::Recording::", stringify!($name), ");")]
        /// integers of any size. Shapes broadcast.
        ///
        /// # Errors
        ///
        /// [`Error::Shapes`](crate::Error::Shapes) with the extents that disagree,
        /// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
        pub fn $name<'a, T: Integer>(
            lhs: impl Into<View<'a, T>>,
            rhs: impl Into<View<'a, T>>,
            out: &mut [T],
        ) -> Result<Shape> {
            binary(stringify!($name), lhs.into(), rhs.into(), out, LIGHT, T::$f)
        }
    )*};
}

of_two! {
    bit_and: and;
    bit_or: or;
    bit_xor: xor;
    shift_left: left_by;
    shift_right: right_by;
}

/// [`Recording::bit_not`](crate::Recording::bit_not); integers of any size.
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
pub fn bit_not<'a, T: Integer>(x: impl Into<View<'a, T>>, out: &mut [T]) -> Result<Shape> {
    unary("bit_not", x, out, LIGHT, T::not)
}

/// [`Recording::count_ones`](crate::Recording::count_ones); integers of any size.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let mut out = [0u32; 3];
/// tidemill::cpu::count_ones(&[0i8, -1, 5], &mut out)?;
/// assert_eq!(out, [0, 8, 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do not fit.
pub fn count_ones<'a, T: Integer>(x: impl Into<View<'a, T>>, out: &mut [u32]) -> Result<Shape> {
    unary("count_ones", x, out, LIGHT, T::ones)
}
