//! Functions of `glsl/lib/rare.glsl`, operation for operation: inverse and hyperbolic functions, exponentials and
//! logarithms of other bases, and the remainder of a division.

use super::{
    INF_BITS, NAN_BITS, ONE_BITS, SIGN, at_least, at_most, choose, exp_parts, exp_tail, expm1_of_negative,
    log_parts, log2_parts, magnitude, nearest, power_of_two, reduce_by_ln2, scale_by_power, split_exponent,
};

/// Below this magnitude, 2^−13, the cube of a number does not count beside the number.
const NO_CUBE: u32 = 0x3900_0000;

#[inline(always)]
fn signed(bits: u32, of: f32) -> f32 {
    f32::from_bits(bits | (of.to_bits() & SIGN))
}

// ---- exponentials and logarithms ----

#[inline(always)]
pub(in crate::cpu) fn exp2(x: f32) -> f32 {
    let bounded = at_least(at_most(x, 160.0), -160.0);
    let (k, n) = nearest(bounded);
    let f = (bounded - k) * std::f32::consts::LN_2;
    choose(x.is_nan(), x, scale_by_power(1.0 + (f + exp_tail(f)), n))
}

#[inline(always)]
pub(in crate::cpu) fn expm1(x: f32) -> f32 {
    let (r, n) = reduce_by_ln2(at_least(at_most(x, 89.0), -26.0), 0.0);
    // By halves: 2^128 is no float.
    let half = power_of_two(n.wrapping_sub(1));
    let p = 2.0 * (half * (r + exp_tail(r)) + (half - 0.5));
    choose(magnitude(x) < 0x3300_0000 || x.is_nan(), x, p)
}

#[inline(always)]
pub(in crate::cpu) fn log2(x: f32) -> f32 {
    let bits = x.to_bits();
    let (r, _) = log2_parts(bits);
    of_logarithm(r, x)
}

/// A logarithm of x, where x is infinite, NaN, zero or negative, too.
#[inline(always)]
fn of_logarithm(r: f32, x: f32) -> f32 {
    let r = choose(x.to_bits() >= INF_BITS, x.to_bits(), r.to_bits()); // infinity, NaN
    let r = choose(x.is_sign_negative() && !x.is_nan(), NAN_BITS, r);
    f32::from_bits(choose(magnitude(x) == 0, f32::NEG_INFINITY.to_bits(), r))
}

/// f and e with 1 + x = (1 + f) · 2^e, for x above −1 and finite.
#[inline(always)]
fn split_one_plus(x: f32) -> (f32, f32) {
    let sum = 1.0 + x;
    let other = sum - 1.0;
    let low = (1.0 - (sum - other)) + (x - other);
    let (m, e) = split_exponent(sum.to_bits());
    ((m - 1.0) + low * power_of_two(-(at_most(e, 126.0) as i32)), e)
}

#[inline(always)]
pub(in crate::cpu) fn log1p(x: f32) -> f32 {
    let (f, e) = split_one_plus(x);
    let r = log_parts(f, e).to_bits();
    let r = choose(magnitude(x) < 0x3300_0000 || x.to_bits() == INF_BITS, x.to_bits(), r);
    let r = choose(x.to_bits() == SIGN | ONE_BITS, f32::NEG_INFINITY.to_bits(), r);
    let r = choose(x.to_bits() > SIGN | ONE_BITS, NAN_BITS, r);
    choose(x.is_nan(), x, f32::from_bits(r))
}

// ---- hyperbolic functions ----

/// e^z / 2 and e^−z / 2, for z from 0 to 90.
#[inline(always)]
fn half_exponentials(z: f32) -> (f32, f32) {
    let (p, n) = exp_parts(z, 0.0);
    let falling = choose(n > 100, -101, -1 - n);
    (scale_by_power(p, n - 1), 1.0 / p * power_of_two(falling))
}

#[inline(always)]
pub(in crate::cpu) fn sinh(x: f32) -> f32 {
    let z = f32::from_bits(magnitude(x));
    let (rising, falling) = half_exponentials(at_most(z, 90.0));
    let square = z * z;
    let mut small = 2.037_219_1e-4 * square + 8.330_283_8e-3;
    small = small * square + 1.666_671_6e-1;
    small = small * square * z + z;
    let r = choose(z < 1.0, small, rising - falling).to_bits();
    let r = choose(magnitude(x) < NO_CUBE, magnitude(x), r);
    choose(x.is_nan(), x, signed(r, x))
}

#[inline(always)]
pub(in crate::cpu) fn cosh(x: f32) -> f32 {
    let (rising, falling) = half_exponentials(at_most(f32::from_bits(magnitude(x)), 90.0));
    choose(x.is_nan(), x, rising + falling)
}

/// log(1 + t), or log(z) + log(2) where z is large.
#[inline(always)]
fn log_of_area(t: f32, z: f32) -> f32 {
    let large = z > 4096.0;
    let (f, e) = split_one_plus(t);
    let (m, e_large) = split_exponent(z.to_bits());
    log_parts(choose(large, m - 1.0, f), choose(large, e_large + 1.0, e))
}

#[inline(always)]
pub(in crate::cpu) fn asinh(x: f32) -> f32 {
    let z = f32::from_bits(magnitude(x));
    let bounded = at_most(z, 4096.0);
    let square = bounded * bounded;
    let r = log_of_area(bounded + square / (1.0 + (square + 1.0).sqrt()), z).to_bits();
    let r = choose(magnitude(x) < NO_CUBE || magnitude(x) >= INF_BITS, magnitude(x), r);
    signed(r, x)
}

#[inline(always)]
pub(in crate::cpu) fn acosh(x: f32) -> f32 {
    let t = at_most(at_least(x, 1.0), 4096.0) - 1.0;
    let r = log_of_area(t + (t * (t + 2.0)).sqrt(), at_least(x, 1.0)).to_bits();
    let r = choose(x.to_bits() == INF_BITS, INF_BITS, r);
    let r = choose(x < 1.0, NAN_BITS, r);
    choose(x.is_nan(), x, f32::from_bits(r))
}

#[inline(always)]
pub(in crate::cpu) fn atanh(x: f32) -> f32 {
    let z = f32::from_bits(magnitude(x));
    let bounded = at_most(z, 0.999_999_94);
    let (f, e) = split_one_plus(2.0 * bounded / (1.0 - bounded));
    let r = (0.5 * log_parts(f, e)).to_bits();
    let r = choose(magnitude(x) < NO_CUBE, magnitude(x), r);
    let r = choose(magnitude(x) == ONE_BITS, INF_BITS, r);
    let r = choose(magnitude(x) > ONE_BITS, NAN_BITS, r);
    choose(x.is_nan(), x, signed(r, x))
}

// ---- inverse circular functions ----

/// π / 4 in two parts, of which the first has 22 bits: its multiples up to 4 are exact.
const QUARTER: f32 = 0.785_398_006_439_208_984_375;
const QUARTER_LOW: f32 = 1.569_582_388_340_519_9e-7;

/// asin(√s) less √s, over √s, for s from 0 to ¼.
#[inline(always)]
fn asin_tail(s: f32) -> f32 {
    let mut p = 4.216_319_9e-2 * s + 2.418_131_1e-2;
    p = p * s + 4.547_002_6e-2;
    p = p * s + 7.495_300_3e-2;
    p = p * s + 1.666_675_2e-1;
    p * s
}

/// asin(w), with z itself, or from ½ on the arc of which the result is the rest: asin(z) = π/2 − 2 asin(√((1 − z) /
/// 2)).
#[inline(always)]
fn asin_parts(z: f32) -> (f32, bool) {
    let upper = z > 0.5;
    let s = choose(upper, 0.5 * (1.0 - at_most(z, 1.0)), z * z);
    let w = choose(upper, s.sqrt(), z);
    (asin_tail(s) * w + w, upper)
}

#[inline(always)]
pub(in crate::cpu) fn asin(x: f32) -> f32 {
    let (p, upper) = asin_parts(f32::from_bits(magnitude(x)));
    let rest = 2.0 * QUARTER - (2.0 * p - 2.0 * QUARTER_LOW);
    let r = choose(upper, rest, p).to_bits();
    let r = choose(magnitude(x) < NO_CUBE, magnitude(x), r);
    let r = choose(magnitude(x) > ONE_BITS, NAN_BITS, r);
    choose(x.is_nan(), x, signed(r, x))
}

#[inline(always)]
pub(in crate::cpu) fn acos(x: f32) -> f32 {
    let (p, upper) = asin_parts(f32::from_bits(magnitude(x)));
    let p = f32::from_bits(p.to_bits() ^ (x.to_bits() & SIGN));
    // π/2 − asin(x); from ½ on the arc itself, and from −½ down what is left of π.
    let middle = 2.0 * QUARTER + (2.0 * QUARTER_LOW - p);
    let outer = choose(x < 0.0, 4.0 * QUARTER + (4.0 * QUARTER_LOW + 2.0 * p), 2.0 * p);
    let r = choose(upper, outer, middle);
    let r = choose(magnitude(x) > ONE_BITS, f32::from_bits(NAN_BITS), r);
    choose(x.is_nan(), x, r)
}

/// The angle of a point from its smaller and its larger coordinate: less than π/4 of it, mirrored at the diagonal
/// (`steep`) and at the vertical axis (`behind`).
#[inline(always)]
fn angle(small: f32, large: f32, steep: bool, behind: bool) -> f32 {
    let upper = small > 0.414_213_57 * large;
    let t = choose(upper, small - large, small) / choose(upper, small + large, large);
    let square = t * t;
    let mut p = 8.053_744_5e-2 * square - 1.387_768_6e-1;
    p = p * square + 1.997_771_1e-1;
    p = p * square - 3.333_295e-1;
    p = p * square * t + t;
    // Eighths of a turn, and what is added to them.
    let k = choose(upper, 1.0, 0.0);
    let (p, k) = (choose(steep, -p, p), choose(steep, 2.0 - k, k));
    let (p, k) = (choose(behind, -p, p), choose(behind, 4.0 - k, k));
    k * QUARTER + (p + k * QUARTER_LOW)
}

#[inline(always)]
pub(in crate::cpu) fn atan(x: f32) -> f32 {
    let z = at_most(f32::from_bits(magnitude(x)), 1e30);
    let steep = z > 1.0;
    let r = angle(choose(steep, 1.0, z), choose(steep, z, 1.0), steep, false).to_bits();
    let r = choose(magnitude(x) < NO_CUBE, magnitude(x), r);
    choose(x.is_nan(), x, signed(r, x))
}

#[inline(always)]
pub(in crate::cpu) fn atan2(y: f32, x: f32) -> f32 {
    let (a, b) = (magnitude(y), magnitude(x));
    let steep = a > b;
    let (small, large) = (choose(steep, b, a), choose(steep, a, b));
    let infinite = large == INF_BITS;
    // Neither the sum nor the divisor may leave the range.
    let scale = choose(large > 0x7e00_0000, 0.25, 1.0); // above 2^125
    let scale = choose(large < 0x2180_0000, 1.267_650_6e30, scale); // below 2^-60: 2^100
    let to_one = choose(small == INF_BITS, 1.0, 0.0);
    let small_scaled = choose(infinite, to_one, f32::from_bits(small) * scale);
    let large_scaled = choose(infinite || large == 0, 1.0, f32::from_bits(large) * scale);
    let r = angle(small_scaled, large_scaled, steep, x.is_sign_negative());
    let r = signed(r.to_bits(), y);
    choose(x.is_nan(), x, choose(y.is_nan(), y, r))
}

#[inline(always)]
pub(in crate::cpu) fn hypot(x: f32, y: f32) -> f32 {
    let (a, b) = (magnitude(x), magnitude(y));
    let (small, large) = (choose(a > b, b, a), choose(a > b, a, b));
    // Both squares stay in range, as far as they count.
    let scale = choose(large > 0x5d80_0000, 7.888_609e-31, 1.0); // above 2^60: 2^-100
    let scale = choose(large < 0x2680_0000, 1.267_650_6e30, scale); // below 2^-50: 2^100
    let (s, l) = (f32::from_bits(small) * scale, f32::from_bits(large) * scale);
    let back = choose(scale > 1.0, 7.888_609e-31, choose(scale < 1.0, 1.267_650_6e30, 1.0));
    let r = (l * l + s * s).sqrt() * back;
    let r = choose(x.is_nan(), x, choose(y.is_nan(), y, r));
    choose(a == INF_BITS || b == INF_BITS, f32::INFINITY, r)
}

// ---- the rest ----

/// 1 − erf(x), to a relative error far out, too.
#[inline(always)]
pub(in crate::cpu) fn erfc(x: f32) -> f32 {
    let z = at_most(f32::from_bits(magnitude(x)), 10.3);
    // x² in two parts: the square of the first 12 bits is exact.
    let top = f32::from_bits(z.to_bits() & 0xffff_f000);
    let (p, n) = exp_parts(-(top * top), -((z - top) * (z + top)));
    let u = z * std::f32::consts::SQRT_2;
    let q = super::tail_polynomial((u - 2.5) / (u + 2.5)) * p;
    let tail = 2.0 * q / (u + 2.5);
    let below = 2.0 - tail * power_of_two(choose(n < -127, -127, n));
    let far = choose(x < 0.0, below, scale_by_power(tail, n));
    let r = choose(z < 0.47, 1.0 - super::erf(x), far);
    choose(x.is_nan(), x, r)
}

/// x · tanh(log(1 + eˣ)), which is x e (e + 2) / (e (e + 2) + 2) for e = eˣ.
#[inline(always)]
pub(in crate::cpu) fn mish(x: f32) -> f32 {
    let bounded = at_least(x, -200.0);
    let (p, n) = exp_parts(at_most(at_least(bounded, -120.0), 30.0), 0.0);
    let e = p * power_of_two(choose(n < -60, -60, n));
    let w = e * (e + 2.0);
    // Far down it is x eˣ, whose power of two comes last.
    let far = scale_by_power(bounded * p, n);
    let r = choose(bounded < -20.0, far, bounded * (w / (w + 2.0)));
    choose(x.is_nan(), x, r)
}

#[inline(always)]
pub(in crate::cpu) fn selu(x: f32) -> f32 {
    let below = 1.758_099_3 * expm1_of_negative(x);
    let r = choose(x.is_sign_negative(), below, 1.050_701 * x);
    choose(x.is_nan(), x, r)
}

/// `alpha` · (e^(x / `alpha`) − 1) below zero.
#[inline(always)]
pub(in crate::cpu) fn celu(x: f32, alpha: f32) -> f32 {
    choose(x.is_sign_negative() && !x.is_nan(), alpha * expm1_of_negative(x / alpha), x)
}

/// The remainder with the sign of the divisor.
#[inline(always)]
pub(in crate::cpu) fn modulo(x: f32, y: f32) -> f32 {
    let r = x % y;
    let other_side = magnitude(r) != 0 && (r.to_bits() ^ y.to_bits()) & SIGN != 0;
    let zero = signed(0, y);
    choose(r.is_nan(), r, choose(magnitude(r) == 0, zero, choose(other_side, r + y, r)))
}
