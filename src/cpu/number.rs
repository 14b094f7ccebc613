//! Arithmetic that the element types have in common.

use super::math::{self, rare};
use crate::shape::Element;

/// Element types with arithmetic: `f32`, `i32` and `u32`, by the rules of the operations of the same names.
pub trait Number: Element {
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
    #[doc(hidden)]
    fn minus(self, other: Self) -> Self;
    #[doc(hidden)]
    fn times(self, other: Self) -> Self;
    #[doc(hidden)]
    fn over(self, other: Self) -> Self;
    #[doc(hidden)]
    fn smaller(self, other: Self) -> Self;
    #[doc(hidden)]
    fn larger(self, other: Self) -> Self;
    #[doc(hidden)]
    fn remainder(self, other: Self) -> Self;
    #[doc(hidden)]
    fn modulo(self, other: Self) -> Self;
    #[doc(hidden)]
    fn equal(self, other: Self) -> bool;
    #[doc(hidden)]
    fn below(self, other: Self) -> bool;
    #[doc(hidden)]
    fn not_above(self, other: Self) -> bool;
    /// As a float, if it is one.
    #[doc(hidden)]
    fn float(self) -> Option<f32>;
    /// An integer that orders elements as `amax` does; NaN is the largest.
    #[doc(hidden)]
    fn key_for_max(self) -> i32;
    /// An integer that orders elements as `amin` does; NaN is the smallest.
    #[doc(hidden)]
    fn key_for_min(self) -> i32;
    /// The element of a key.
    #[doc(hidden)]
    fn from_key(key: i32) -> Self;
    /// The key that equal elements share, where a zero's sign does not count.
    #[doc(hidden)]
    fn without_sign_of_zero(self) -> Self;
}

/// Element types with a sign: `f32` and `i32`.
pub trait Signed: Number {
    #[doc(hidden)]
    fn negated(self) -> Self;
    #[doc(hidden)]
    fn magnitude(self) -> Self;
    #[doc(hidden)]
    fn sign(self) -> Self;
}

impl Number for f32 {
    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn minus(self, other: f32) -> f32 {
        self - other
    }

    #[inline(always)]
    fn times(self, other: f32) -> f32 {
        self * other
    }

    #[inline(always)]
    fn over(self, other: f32) -> f32 {
        self / other
    }

    #[inline(always)]
    fn smaller(self, other: f32) -> f32 {
        math::min(self, other)
    }

    #[inline(always)]
    fn larger(self, other: f32) -> f32 {
        math::max(self, other)
    }

    #[inline(always)]
    fn remainder(self, other: f32) -> f32 {
        self % other
    }

    #[inline(always)]
    fn modulo(self, other: f32) -> f32 {
        rare::modulo(self, other)
    }

    #[inline(always)]
    fn equal(self, other: f32) -> bool {
        self == other
    }

    #[inline(always)]
    fn below(self, other: f32) -> bool {
        self < other
    }

    #[inline(always)]
    fn not_above(self, other: f32) -> bool {
        self <= other
    }

    #[inline(always)]
    fn float(self) -> Option<f32> {
        Some(self)
    }

    #[inline(always)]
    fn key_for_max(self) -> i32 {
        if self.is_nan() { i32::MAX } else { math::strictly_ordered(self) }
    }

    #[inline(always)]
    fn key_for_min(self) -> i32 {
        if self.is_nan() { i32::MIN } else { math::strictly_ordered(self) }
    }

    // The extremes, as bits, are NaNs.
    #[inline(always)]
    fn from_key(key: i32) -> f32 {
        f32::from_bits(math::strictly_ordered(f32::from_bits(key as u32)) as u32)
    }

    #[inline(always)]
    fn without_sign_of_zero(self) -> f32 {
        self + 0.0
    }
}

impl Signed for f32 {
    #[inline(always)]
    fn negated(self) -> f32 {
        -self
    }

    #[inline(always)]
    fn magnitude(self) -> f32 {
        self.abs()
    }

    #[inline(always)]
    fn sign(self) -> f32 {
        math::sign(self)
    }
}

macro_rules! integer {
    ($type:ty, $to_key:expr, $from_key:expr, $other_side:expr) => {
        impl Number for $type {
            #[inline(always)]
            fn plus(self, other: $type) -> $type {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: $type) -> $type {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn times(self, other: $type) -> $type {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn over(self, other: $type) -> $type {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }

            #[inline(always)]
            fn smaller(self, other: $type) -> $type {
                self.min(other)
            }

            #[inline(always)]
            fn larger(self, other: $type) -> $type {
                self.max(other)
            }

            #[inline(always)]
            fn remainder(self, other: $type) -> $type {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }

            #[inline(always)]
            fn modulo(self, other: $type) -> $type {
                let r = self.remainder(other);
                if r != 0 && $other_side(r, other) { r.wrapping_add(other) } else { r }
            }

            #[inline(always)]
            fn equal(self, other: $type) -> bool {
                self == other
            }

            #[inline(always)]
            fn below(self, other: $type) -> bool {
                self < other
            }

            #[inline(always)]
            fn not_above(self, other: $type) -> bool {
                self <= other
            }

            #[inline(always)]
            fn float(self) -> Option<f32> {
                None
            }

            #[inline(always)]
            fn key_for_max(self) -> i32 {
                $to_key(self)
            }

            #[inline(always)]
            fn key_for_min(self) -> i32 {
                $to_key(self)
            }

            #[inline(always)]
            fn from_key(key: i32) -> $type {
                $from_key(key)
            }

            #[inline(always)]
            fn without_sign_of_zero(self) -> $type {
                self
            }
        }
    };
}

integer!(i32, |x: i32| x, |key: i32| key, |r: i32, divisor: i32| (r ^ divisor) < 0);
integer!(u32, |x: u32| (x ^ 0x8000_0000) as i32, |key: i32| key as u32 ^ 0x8000_0000, |_, _| false);

impl Signed for i32 {
    #[inline(always)]
    fn negated(self) -> i32 {
        self.wrapping_neg()
    }

    #[inline(always)]
    fn magnitude(self) -> i32 {
        self.wrapping_abs()
    }

    #[inline(always)]
    fn sign(self) -> i32 {
        self.signum()
    }
}
