//! Elementary functions of one float, as `glsl/lib/math.glsl` has them: additions, multiplications, divisions and
//! integer operations in the same order, without branches, so that loops over them become vector code. Results are the
//! same bits as those of a device whose division rounds correctly, and keep the same bounds. Polynomials without a note
//! are those of Cephes (single precision).

#![allow(clippy::excessive_precision, reason = "the digits that the sources of the polynomials give")]

pub(super) mod rare;

const INF_BITS: u32 = 0x7f80_0000;
const ONE_BITS: u32 = 0x3f80_0000;
const NAN_BITS: u32 = 0x7fc0_0000;
const SIGN: u32 = 0x8000_0000;

#[inline(always)]
fn magnitude(x: f32) -> u32 {
    x.to_bits() & !SIGN
}

#[inline(always)]
fn choose<T>(condition: bool, yes: T, no: T) -> T {
    if condition { yes } else { no }
}

/// The larger of two, NaN if one is, and −0 below +0.
#[inline(always)]
pub(super) fn max(a: f32, b: f32) -> f32 {
    let r = choose(strictly_ordered(a) > strictly_ordered(b), a, b);
    choose(a.is_nan(), a, choose(b.is_nan(), b, r))
}

/// The smaller of two, NaN if one is, and −0 below +0.
#[inline(always)]
pub(super) fn min(a: f32, b: f32) -> f32 {
    let r = choose(strictly_ordered(a) < strictly_ordered(b), a, b);
    choose(a.is_nan(), a, choose(b.is_nan(), b, r))
}

/// Integers in the order of the floats, −0 below +0. Its own inverse, on bits.
#[inline(always)]
pub(super) fn strictly_ordered(x: f32) -> i32 {
    let bits = x.to_bits() as i32;
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

#[inline(always)]
pub(super) fn sign(x: f32) -> f32 {
    let one = f32::from_bits((x.to_bits() & SIGN) | ONE_BITS);
    choose(x.is_nan() || magnitude(x) == 0, x, one)
}

#[inline(always)]
fn at_most(x: f32, limit: f32) -> f32 {
    choose(x > limit, limit, x)
}

#[inline(always)]
fn at_least(x: f32, limit: f32) -> f32 {
    choose(x < limit, limit, x)
}

/// 2^n for n from −127 (which gives 0) to 128 (infinity).
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// x · 2^n for n from −252 to 256, rounded once.
#[inline(always)]
fn scale_by_power(x: f32, n: i32) -> f32 {
    let half = n >> 1;
    x * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// Rounds to the nearest integer, ties to even, for |x| < 2^22: as a float and as an integer. Adding 1.5 · 2^23 leaves
/// no room for a fraction.
#[inline(always)]
fn nearest(x: f32) -> (f32, i32) {
    const SHIFT: f32 = 12_582_912.0;
    let shifted = x + SHIFT;
    (shifted - SHIFT, (shifted.to_bits().wrapping_sub(SHIFT.to_bits())) as i32)
}

/// (x + 3) / 6 between 0 and 1. The sum is exact where it is small.
#[inline(always)]
pub(super) fn hard_sigmoid(x: f32) -> f32 {
    choose(x.is_nan(), x, at_least(at_most(x + 3.0, 6.0), 0.0) * 0.166_666_67)
}

#[inline(always)]
pub(super) fn hard_swish(x: f32) -> f32 {
    let bounded = at_least(x, -4.0);
    choose(x.is_nan(), x, bounded * hard_sigmoid(bounded))
}

#[inline(always)]
pub(super) fn softsign(x: f32) -> f32 {
    let bounded = at_least(at_most(x, 1e30), -1e30);
    choose(x.is_nan(), x, bounded / (1.0 + bounded.abs()))
}

// ---- exp and log ----

/// r and n with x + low = n · ln 2 + r, |r| <= ln 2 / 2.
#[inline(always)]
fn reduce_by_ln2(x: f32, low: f32) -> (f32, i32) {
    let (k, n) = nearest(x * std::f32::consts::LOG2_E);
    // The first part of ln 2 has 10 bits: its product with k is exact.
    ((x - k * 0.693_359_4) + (k * 2.121_944_4e-4 + low), n)
}

/// exp(r) − 1 − r for |r| <= ln 2 / 2.
#[inline(always)]
fn exp_tail(r: f32) -> f32 {
    let mut p = 1.987_569_1e-4 * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 5.000_000_1e-1;
    p * (r * r)
}

/// exp(x + low) = p · 2^n.
#[inline(always)]
fn exp_parts(x: f32, low: f32) -> (f32, i32) {
    let (r, n) = reduce_by_ln2(x, low);
    (1.0 + (r + exp_tail(r)), n)
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let (p, n) = exp_parts(at_least(at_most(x, 89.0), -104.0), 0.0);
    choose(x.is_nan(), x, scale_by_power(p, n))
}

/// exp(x) for x <= 0, and 0 where that is not a normal number.
#[inline(always)]
pub(super) fn exp_of_negative(x: f32) -> f32 {
    let (p, n) = exp_parts(at_least(x, -87.0), 0.0);
    choose(x < -87.0, 0.0, p * power_of_two(n))
}

/// exp(x) − 1 for x <= 0.
#[inline(always)]
pub(super) fn expm1_of_negative(x: f32) -> f32 {
    let (r, n) = reduce_by_ln2(at_least(x, -26.0), 0.0);
    let scale = power_of_two(n);
    let p = scale * (r + exp_tail(r)) + (scale - 1.0);
    // The sum would lose the sign of −0.
    choose(magnitude(x) < 0x3300_0000, x, p)
}

/// log(1 + f) + e · ln 2 for 1 + f in [√½, √2].
#[inline(always)]
fn log_parts(f: f32, e: f32) -> f32 {
    let square = f * f;
    let mut p = 7.037_683_6e-2 * f - 1.151_461e-1;
    p = p * f + 0.116_769_984;
    p = p * f - 1.242_014_1e-1;
    p = p * f + 1.424_932_3e-1;
    p = p * f - 1.666_805_7e-1;
    p = p * f + 0.200_007_14;
    p = p * f - 2.499_999_4e-1;
    p = p * f + 3.333_333e-1;
    p = p * f * square;
    p = (p - e * 2.121_944_4e-4) - 0.5 * square;
    (f + p) + e * 0.693_359_4
}

/// m in [√½, √2) and e with x = m · 2^e, for the positive bits of a finite x.
#[inline(always)]
fn split_exponent(bits: u32) -> (f32, f32) {
    // A denormal's bits are its value as an integer: the conversion is exact.
    let denormal = bits < 0x0080_0000;
    let bits = choose(denormal, ((bits & 0x007f_ffff) as i32 as f32).to_bits(), bits);
    let above = bits.wrapping_sub(0x3f35_04f3);
    let e = ((above as i32) >> 23) + choose(denormal, -149, 0);
    (f32::from_bits((above & 0x007f_ffff).wrapping_add(0x3f35_04f3)), e as f32)
}

#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    let bits = x.to_bits();
    let (m, e) = split_exponent(bits);
    let mut r = log_parts(m - 1.0, e).to_bits();
    r = choose(bits >= INF_BITS, bits, r); // infinity, NaN
    r = choose((bits as i32) < 0, NAN_BITS, r);
    f32::from_bits(choose(magnitude(x) == 0, f32::NEG_INFINITY.to_bits(), r))
}

/// log(1 + z) for z in [0, 1].
#[inline(always)]
fn log1p_of_unit(z: f32) -> f32 {
    let upper = z > 0.414_213_57;
    log_parts(choose(upper, (z - 1.0) * 0.5, z), choose(upper, 1.0, 0.0))
}

/// log(1 + exp(x)).
#[inline(always)]
pub(super) fn softplus(x: f32) -> f32 {
    let r = at_least(x, 0.0) + log1p_of_unit(exp(f32::from_bits(x.to_bits() | SIGN)));
    choose(x.is_nan(), x, r)
}

// ---- the logistic family ----

/// x / (1 + exp(−w)); for x that is bounded below, so that the quotient of infinities doesn't come up.
#[inline(always)]
fn logistic_times(x: f32, w: f32) -> f32 {
    let (p, n) = exp_parts(at_least(at_most(-w, 94.2), -87.0), 0.0);
    // Far down the quotient is still a number when exp(−w) no longer is: there both sides are made smaller.
    let far = w < -64.0;
    let unit = choose(far, 0.003_906_25, 1.0);
    let n = n.wrapping_add(choose(far, -8, 0));
    x * unit / (unit + p * power_of_two(n))
}

#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    choose(x.is_nan(), x, logistic_times(1.0, x))
}

#[inline(always)]
pub(super) fn swish(x: f32) -> f32 {
    let bounded = at_least(x, -200.0);
    logistic_times(bounded, bounded)
}

/// x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), written with exp.
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let bounded = at_least(x, -100.0);
    logistic_times(bounded, bounded * (1.595_769_1 + 0.071_354_814 * (bounded * bounded)))
}

#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let z = f32::from_bits(magnitude(x));
    let (p, n) = exp_parts(2.0 * at_most(z, 10.0), 0.0);
    let large = 1.0 - 2.0 / (p * power_of_two(n) + 1.0);
    let square = z * z;
    let mut small = -5.704_988_7e-3 * square + 2.063_908_8e-2;
    small = small * square - 5.373_971_6e-2;
    small = small * square + 1.333_144_2e-1;
    small = small * square - 3.333_328_2e-1;
    small = small * square * z + z;
    let r = choose(z < 0.625, small, large);
    // Where the cube does not count.
    let r = choose(magnitude(x) < 0x3900_0000, magnitude(x), r.to_bits());
    choose(x.is_nan(), x, f32::from_bits(r | (x.to_bits() & SIGN)))
}

/// q of t = (z − 2.5) / (z + 2.5), for z >= 0; interpolated at Chebyshev points, 2e-8 off at most.
#[inline(always)]
fn tail_polynomial(t: f32) -> f32 {
    let mut q = -1.583_049_9e-4 * t - 3.135_571_6e-4;
    q = q * t + 6.836_188_4e-4;
    q = q * t + 2.525_805_1e-3;
    q = q * t - 1.599_684_6e-3;
    q = q * t - 1.638_675_4e-2;
    q = q * t + 9.235_530_1e-3;
    q = q * t + 1.319_870_4e-1;
    q = q * t - 4.336_919_9e-1;
    q = q * t + 7.066_566_6e-1;
    q
}

/// x times the normal distribution function: x / 2 · (1 + erf(x / √2)).
#[inline(always)]
pub(super) fn gelu_erf(x: f32) -> f32 {
    let z = at_most(f32::from_bits(magnitude(x)), 14.6);
    // x² / 2 in two parts: the square of the first 12 bits is exact.
    let top = f32::from_bits(z.to_bits() & 0xffff_f000);
    let rest = -0.5 * ((z - top) * (z + top));
    let (p, n) = exp_parts(-0.5 * (top * top), rest);
    // exp(z² / 2) times the upper tail is q(t) / (z + 2.5).
    let mut q = tail_polynomial((z - 2.5) / (z + 2.5));
    q = q * p / (z + 2.5);
    // Below zero the power of two comes last: the product may be a number where the tail is a denormal.
    let above = x * (1.0 - q * power_of_two(choose(n < -127, -127, n)));
    let below = scale_by_power(-z * q, n);
    // Near zero the function less ½ is odd and has a series.
    let s = z * z;
    let mut series = 1.072_748_6e-4 * s - 1.184_791_6e-3;
    series = series * s + 9.973_233e-3;
    series = series * s - 6.649_036_6e-2;
    series = series * s + 3.989_422_8e-1;
    series = x * (0.5 + x * series);
    let r = choose(z < 0.6, series, choose(x < 0.0, below, above));
    choose(x.is_nan(), x, r)
}

// ---- the error function ----

/// Both polynomials are fitted to the smallest relative error of the result, which is 2e-9 at most.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let z = f32::from_bits(magnitude(x));
    let square = z * z;
    let mut near = 8.513_102_265e-5 * square - 8.175_638_855e-4;
    near = near * square + 5.203_859_120e-3;
    near = near * square - 2.686_050_845e-2;
    near = near * square + 1.128_371_503e-1;
    near = near * square - 3.761_263_498e-1;
    near = near * square + 1.283_791_668e-1;
    near = near * z + z;
    // 1 − exp(−g(z)), which rounds to 1 long before 4. The constant of g comes last: it is the small part.
    let bounded = at_most(z, 4.0);
    let mut g = -1.982_207_079e-4 * bounded + 3.065_499_829e-3;
    g = g * bounded - 2.231_524_806e-2;
    g = g * bounded + 1.041_137_456e-1;
    g = g * bounded + 6.369_760_131e-1;
    g = g * bounded + 1.127_797_281;
    let (p, n) = exp_parts(-(g * bounded), -1.664_390_695e-4);
    let far = 1.0 - p * power_of_two(n);
    let r = choose(z < 0.9, near, far).to_bits() | (x.to_bits() & SIGN);
    choose(x.is_nan(), x, f32::from_bits(r))
}

// ---- sin and cos ----

/// A word of 2 / π, 32 bits each, with a leading zero word. Selections, since a table would end the vector code.
#[inline(always)]
fn two_over_pi(word: i32) -> u32 {
    let r = choose(word == 1, 0x28be_60db, 0);
    let r = choose(word == 2, 0x9391_054a, r);
    let r = choose(word == 3, 0x7f09_d5f4, r);
    let r = choose(word == 4, 0x7d4d_3770, r);
    let r = choose(word == 5, 0x36d8_a566, r);
    choose(word == 6, 0x4f10_e410, r)
}

#[inline(always)]
fn multiply_wide(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

/// What is left of |x|, in [−π/4, π/4], and the quadrant. Payne and Hanek's reduction in fixed point: the 96 bits of 2
/// / π that matter for this exponent times the mantissa.
#[inline(always)]
fn reduce_by_half_pi(x: f32) -> (f32, u32) {
    let bits = magnitude(x);
    let mantissa = ((bits & 0x007f_ffff) | 0x0080_0000) << 8;
    let exponent = (bits >> 23) as i32 - 126;
    let exponent = choose(exponent < 0, 0, exponent);
    let (word, shift) = (exponent >> 5, (exponent & 31) as u32);
    let words = [0, 1, 2, 3].map(|i| two_over_pi(word + i));
    let window = |i: usize| (words[i] << shift) | ((words[i + 1] >> 1) >> (31 - shift));
    let (high, middle, low) = (window(0), window(1), window(2));
    // The product modulo 4, with 62 bits behind the point, in p1 and p0.
    let (carry, _) = multiply_wide(mantissa, low);
    let (p1, p0) = multiply_wide(mantissa, middle);
    let p0 = p0.wrapping_add(carry);
    let p1 = p1.wrapping_add(mantissa.wrapping_mul(high)).wrapping_add(choose(p0 < carry, 1, 0));
    let quadrant = p1.wrapping_add(0x2000_0000) >> 30;
    let p1 = p1.wrapping_sub(quadrant << 30);
    let sign = p1 & SIGN;
    let negative = (p1 as i32) < 0;
    let p1 = choose(negative, (!p1).wrapping_add(choose(p0 == 0, 1, 0)), p1);
    let p0 = choose(negative, p0.wrapping_neg(), p0);
    // As the sum of two floats, then times π / 2, also in two parts. Each integer fits an i32.
    let float = |word: u32| word as i32 as f32;
    let f1 = float(p1 >> 8) * 2.384_185_8e-7;
    let f0 = float(((p1 & 0xff) << 14) | (p0 >> 18)) * 5.684_342e-14 + float(p0 & 0x3_ffff) * 2.168_404_3e-19;
    let f = f1 + f0;
    let f0 = f0 - (f - f1);
    // The product of the two first parts is exact.
    let top = f32::from_bits(f.to_bits() & 0xffff_f000);
    let rest = (f - top) + f0;
    let r = top * 1.570_312_5 + (top * 4.838_268e-4 + rest * std::f32::consts::FRAC_PI_2);
    // Below π / 4 it is the number itself.
    let small = bits <= 0x3f49_0fdb;
    (f32::from_bits(choose(small, bits, r.to_bits() ^ sign)), choose(small, 0, quadrant & 3))
}

/// sin(r) for even quadrants and cos(r) for odd ones, with the sign of the quadrant.
#[inline(always)]
fn sin_of_quadrant(r: f32, quadrant: u32) -> u32 {
    let square = r * r;
    let mut s = -1.951_529_6e-4 * square + 8.332_161e-3;
    s = s * square - 1.666_665_5e-1;
    s = s * square * r + r;
    let mut c = 2.443_315_7e-5 * square - 1.388_731_6e-3;
    c = c * square + 4.166_664_6e-2;
    c = c * square * square - 0.5 * square + 1.0;
    choose(quadrant & 1 == 1, c, s).to_bits() ^ ((quadrant & 2) << 30)
}

#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let (r, quadrant) = reduce_by_half_pi(x);
    let value = sin_of_quadrant(r, quadrant) ^ (x.to_bits() & SIGN);
    let value = choose(magnitude(x) < 0x3900_0000, x.to_bits(), value);
    f32::from_bits(choose(magnitude(x) >= INF_BITS, NAN_BITS, value))
}

#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    let (r, quadrant) = reduce_by_half_pi(x);
    f32::from_bits(choose(magnitude(x) >= INF_BITS, NAN_BITS, sin_of_quadrant(r, quadrant + 1)))
}

// ---- pow ----

/// r and low with a · b = r + low exactly, without a fused multiplication: by halves of 12 bits.
#[inline(always)]
fn exact_product(a: f32, b: f32) -> (f32, f32) {
    let top = |x: f32| f32::from_bits(x.to_bits() & 0xffff_f000);
    let (a1, b1) = (top(a), top(b));
    let (a0, b0) = (a - a1, b - b1);
    let r = a * b;
    (r, (((a1 * b1 - r) + a1 * b0) + a0 * b1) + a0 * b0)
}

/// r and low with a + b = r + low exactly, for |a| >= |b|.
#[inline(always)]
fn exact_sum(a: f32, b: f32) -> (f32, f32) {
    let r = a + b;
    (r, b - (r - a))
}

/// log2(x) = r + low with some 31 bits, for the positive bits of a finite x.
#[inline(always)]
fn log2_parts(bits: u32) -> (f32, f32) {
    let (m, e) = split_exponent(bits);
    let f = m - 1.0;
    // s = f / (2 + f) in two parts; the second repairs the roundings.
    let (sum, below) = exact_sum(2.0, f);
    let s = f / sum;
    let (product, product_low) = exact_product(s, sum);
    let s_low = (((f - product) - product_low) - s * below) / sum;
    // log(1 + f) = 2 s + 2/3 s³ + 2/5 s⁵ …; the first term in two parts, times 2 / ln 2 in two parts.
    let square = s * s;
    let mut tail = 0.181_818_18 * square + 0.222_222_22;
    tail = tail * square + 0.285_714_3;
    tail = tail * square + 0.4;
    tail = tail * square + 0.666_666_7;
    tail = tail * square * s * std::f32::consts::LOG2_E;
    let (main, main_low) = exact_product(s, 2.885_39);
    let rest = main_low + (s * 3.851_959_8e-8 + s_low * 2.885_39) + tail;
    let (r, carry) = exact_sum(e, main);
    // Without an exponent the main part leads.
    let no_exponent = e == 0.0;
    exact_sum(choose(no_exponent, main, r), choose(no_exponent, rest, carry + rest))
}

#[inline(always)]
pub(super) fn pow(x: f32, y: f32) -> f32 {
    let (a, b, ma, mb) = (x.to_bits(), y.to_bits(), magnitude(x), magnitude(y));
    let (log_high, log_low) = log2_parts(ma);
    // Beyond 2^9 in magnitude the product is over or under whatever y is exactly, unless x is 1.
    let bounded = f32::from_bits((b & SIGN) | choose(mb > 0x7149_f2ca, 0x7149_f2ca, mb)); // 1e30
    let (high, low) = exact_product(log_high, bounded);
    let rest = low + log_low * bounded;
    let high = at_least(at_most(high, 160.0), -160.0);
    let rest = choose(high.abs() >= 160.0, 0.0, rest);
    let (k, n) = nearest(high);
    // 2^f as exp(f ln 2).
    let fraction = ((high - k) + rest) * std::f32::consts::LN_2;
    let mut r = scale_by_power(1.0 + (fraction + exp_tail(fraction)), n).to_bits();

    // What the magnitudes alone decide.
    let at_zero = choose((b as i32) < 0, INF_BITS, 0);
    let at_infinity = INF_BITS ^ at_zero;
    r = choose(ma == 0, at_zero, r);
    r = choose(ma == INF_BITS, at_infinity, r);
    let beyond = choose(ma > ONE_BITS, at_infinity, at_zero);
    r = choose(mb == INF_BITS, choose(ma == ONE_BITS, ONE_BITS, beyond), r);

    // The sign of a negative x: y is even, odd or no integer at all.
    let size = f32::from_bits(mb);
    let whole = size.floor() == size;
    let even = (size * 0.5).floor() == size * 0.5;
    let signed = choose(even, r, r | SIGN);
    // Zero and infinity have a root for every y; other negative numbers have not.
    let no_root = choose(ma == 0 || ma == INF_BITS, r, NAN_BITS);
    r = choose((a as i32) < 0, choose(whole, signed, no_root), r);

    r = choose(x.is_nan(), a, choose(y.is_nan(), b, r));
    f32::from_bits(choose(a == ONE_BITS || mb == 0, ONE_BITS, r))
}
