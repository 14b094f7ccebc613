// Elementary functions that few programs use, so that only a few modules have them. As those of lib/math.glsl, which
// this needs.

// Below this magnitude, 2^-13, the cube of a number does not count beside the number.
#define NO_CUBE 0x39000000u

vec4 magnitude_of(vec4 x) { return F(magnitude(U(x))); }

vec4 signed_as(uvec4 r, vec4 x) { return F(r | sign_bit(U(x))); }

// A magnitude times 2^100, exactly, where a device takes denormals for zeros, too: a denormal is its bits times 2^-149.
vec4 raised(uvec4 bits) {
    precise vec4 normal = F(bits) * 1.2676506e30;
    precise vec4 denormal = vec4(bits) * 1.7763568e-15;
    return mix(normal, denormal, lessThan(bits, uvec4(0x00800000u)));
}

// ---- exponentials and logarithms ----

vec4 exp2_f32(vec4 x) {
    vec4 bounded = at_least(at_most(x, 160.0), -160.0);
    precise vec4 k = roundEven(bounded);
    precise vec4 f = (bounded - k) * 0.693147181;
    precise vec4 p = 1.0 + (f + exp_tail(f));
    return mix(scale_by_power(p, ivec4(k)), x, is_nan(U(x)));
}

vec4 expm1_f32(vec4 x) {
    ivec4 n;
    vec4 r = reduce_by_ln2(at_least(at_most(x, 89.0), -26.0), vec4(0.0), n);
    // By halves: 2^128 is no float.
    vec4 half_scale = power_of_two(n - 1);
    precise vec4 p = 2.0 * (half_scale * (r + exp_tail(r)) + (half_scale - 0.5));
    // The sum would lose the sign of -0, and a driver the denormals.
    p = mix(p, x, lessThan(magnitude(U(x)), uvec4(0x33000000u)));
    return mix(p, x, is_nan(U(x)));
}

vec4 log2_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 low;
    uvec4 r = U(log2_parts(a, low));
    r = mix(r, a, greaterThanEqual(a, uvec4(INF_BITS)));  // infinity, NaN
    r = mix(r, uvec4(NAN_BITS), is_negative(a));
    r = mix(r, a, is_nan(a));
    return F(mix(r, uvec4(0xff800000u), equal(magnitude(a), uvec4(0))));  // -infinity
}

// f and e with 1 + x = (1 + f) * 2^e, for x above -1 and finite.
vec4 split_one_plus(vec4 x, out vec4 e) {
    precise vec4 sum = 1.0 + x;
    precise vec4 other = sum - 1.0;
    precise vec4 low = (1.0 - (sum - other)) + (x - other);
    vec4 exponent, m = split_exponent(U(sum), exponent);
    precise vec4 f = (m - 1.0) + low * power_of_two(-ivec4(at_most(exponent, 126.0)));
    e = exponent;
    return f;
}

vec4 log1p_f32(vec4 x) {
    uvec4 a = U(x), minus_one = uvec4(0xbf800000u);
    vec4 e, f = split_one_plus(x, e);
    uvec4 r = U(log_parts(f, e));
    r = mix(r, a, lessThan(magnitude(a), uvec4(0x33000000u)));
    r = mix(r, a, equal(a, uvec4(INF_BITS)));
    r = mix(r, uvec4(0xff800000u), equal(a, minus_one));  // -infinity
    r = mix(r, uvec4(NAN_BITS), greaterThan(a, minus_one));
    return F(mix(r, a, is_nan(a)));
}

// ---- hyperbolic functions ----

// exp(z) / 2, and exp(-z) / 2, for z from 0 to 90.
vec4 half_exponentials(vec4 z, out vec4 falling) {
    ivec4 n;
    vec4 p = exp_parts(z, vec4(0.0), n);
    precise vec4 r = 1.0 / p * power_of_two(max(-1 - n, ivec4(-101)));
    falling = r;
    return scale_by_power(p, n - 1);
}

vec4 sinh_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 z = magnitude_of(x);
    vec4 falling, rising = half_exponentials(at_most(z, 90.0), falling);
    precise vec4 large = rising - falling;
    precise vec4 square = z * z;
    precise vec4 small = 2.0372191e-4 * square + 8.3302838e-3;
    small = small * square + 1.6666716e-1;
    small = small * square * z + z;
    uvec4 r = mix(U(large), U(small), lessThan(z, vec4(1.0)));
    // Where the cube does not count, neither may a driver's denormals.
    r = mix(r, magnitude(a), lessThan(magnitude(a), uvec4(NO_CUBE)));
    return mix(signed_as(r, x), x, is_nan(a));
}

vec4 cosh_f32(vec4 x) {
    vec4 falling, rising = half_exponentials(at_most(magnitude_of(x), 90.0), falling);
    precise vec4 r = rising + falling;
    return mix(r, x, is_nan(U(x)));
}

// log(1 + t), or log(z) + log(2) where z is large.
vec4 log_of_area(vec4 t, vec4 z) {
    bvec4 large = greaterThan(z, vec4(4096.0));
    vec4 e, f = split_one_plus(t, e);
    vec4 e_large, m = split_exponent(U(z), e_large);
    precise vec4 f_large = m - 1.0;
    precise vec4 e_doubled = e_large + 1.0;
    return log_parts(mix(f, f_large, large), mix(e, e_doubled, large));
}

vec4 asinh_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 z = magnitude_of(x), bounded = at_most(z, 4096.0);
    precise vec4 square = bounded * bounded;
    precise vec4 t = bounded + square / (1.0 + sqrt(square + 1.0));
    uvec4 r = U(log_of_area(t, z));
    r = mix(r, magnitude(a), lessThan(magnitude(a), uvec4(NO_CUBE)));
    r = mix(r, magnitude(a), greaterThanEqual(magnitude(a), uvec4(INF_BITS)));
    return signed_as(r, x);
}

vec4 acosh_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 from_one = at_least(x, 1.0);
    precise vec4 t = at_most(from_one, 4096.0) - 1.0;
    precise vec4 sum = t + sqrt(t * (t + 2.0));
    uvec4 r = U(log_of_area(sum, from_one));
    r = mix(r, a, equal(a, uvec4(INF_BITS)));
    r = mix(r, uvec4(NAN_BITS), lessThan(ivec4(a), ivec4(ONE_BITS)));
    return F(mix(r, a, is_nan(a)));
}

vec4 atanh_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 z = at_most(magnitude_of(x), 0.99999994);
    precise vec4 quotient = 2.0 * z / (1.0 - z);
    vec4 e, f = split_one_plus(quotient, e);
    precise vec4 halved = 0.5 * log_parts(f, e);
    uvec4 r = mix(U(halved), magnitude(a), lessThan(magnitude(a), uvec4(NO_CUBE)));
    r = mix(r, uvec4(INF_BITS), equal(magnitude(a), uvec4(ONE_BITS)));
    r = mix(r, uvec4(NAN_BITS), greaterThan(magnitude(a), uvec4(ONE_BITS)));
    return mix(signed_as(r, x), x, is_nan(a));
}

// ---- inverse circular functions ----

// pi / 4 in two parts, of which the first has 22 bits: its multiples up to 4 are exact.
#define QUARTER 0.785398006439208984375
#define QUARTER_LOW 1.5695823883405199e-7

// The arc to z, or where z is above 1/2 half of the arc that the result lacks: asin(z) = pi/2 - 2 asin(sqrt((1 - z) /
// 2)).
vec4 asin_parts(vec4 z, out bvec4 upper) {
    upper = greaterThan(z, vec4(0.5));
    precise vec4 rest = 0.5 * (1.0 - at_most(z, 1.0));
    precise vec4 square = z * z;
    vec4 s = mix(square, rest, upper), w = mix(z, sqrt(s), upper);
    precise vec4 p = 4.2163199e-2 * s + 2.4181311e-2;
    p = p * s + 4.5470026e-2;
    p = p * s + 7.4953003e-2;
    p = p * s + 1.6666752e-1;
    p = p * s * w + w;
    return p;
}

vec4 asin_f32(vec4 x) {
    uvec4 a = U(x);
    bvec4 upper;
    vec4 p = asin_parts(magnitude_of(x), upper);
    precise vec4 rest = 2.0 * QUARTER - (2.0 * p - 2.0 * QUARTER_LOW);
    uvec4 r = mix(U(p), U(rest), upper);
    r = mix(r, magnitude(a), lessThan(magnitude(a), uvec4(NO_CUBE)));
    r = mix(r, uvec4(NAN_BITS), greaterThan(magnitude(a), uvec4(ONE_BITS)));
    return mix(signed_as(r, x), x, is_nan(a));
}

vec4 acos_f32(vec4 x) {
    uvec4 a = U(x);
    bvec4 upper;
    vec4 p = F(U(asin_parts(magnitude_of(x), upper)) ^ sign_bit(a));
    precise vec4 middle = 2.0 * QUARTER + (2.0 * QUARTER_LOW - p);
    precise vec4 twice = 2.0 * p;
    precise vec4 behind = 4.0 * QUARTER + (4.0 * QUARTER_LOW + twice);
    vec4 r = mix(middle, mix(twice, behind, is_negative(a)), upper);
    r = mix(r, F(uvec4(NAN_BITS)), greaterThan(magnitude(a), uvec4(ONE_BITS)));
    return mix(r, x, is_nan(a));
}

// The angle of a point from its smaller and its larger coordinate: less than pi/4, then mirrored at the diagonal
// (`steep`) and at the vertical axis (`behind`).
vec4 angle(vec4 small, vec4 large, bvec4 steep, bvec4 behind) {
    precise vec4 limit = 0.41421357 * large;
    bvec4 upper = greaterThan(small, limit);
    precise vec4 difference = small - large;
    precise vec4 sum = small + large;
    precise vec4 t = mix(small, difference, upper) / mix(large, sum, upper);
    precise vec4 square = t * t;
    precise vec4 p = 8.0537445e-2 * square - 1.3877686e-1;
    p = p * square + 1.9977711e-1;
    p = p * square - 3.333295e-1;
    p = p * square * t + t;
    // Eighths of a turn, and what is added to them.
    precise vec4 k = mix(vec4(0.0), vec4(1.0), upper);
    p = F(U(p) ^ mix(uvec4(0), uvec4(0x80000000u), steep));
    k = mix(k, 2.0 - k, steep);
    p = F(U(p) ^ mix(uvec4(0), uvec4(0x80000000u), behind));
    k = mix(k, 4.0 - k, behind);
    precise vec4 r = k * QUARTER + (p + k * QUARTER_LOW);
    return r;
}

vec4 atan_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 z = at_most(magnitude_of(x), 1e30), one = vec4(1.0);
    bvec4 steep = greaterThan(z, one);
    uvec4 r = U(angle(mix(z, one, steep), mix(one, z, steep), steep, bvec4(false)));
    r = mix(r, magnitude(a), lessThan(magnitude(a), uvec4(NO_CUBE)));
    return mix(signed_as(r, x), x, is_nan(a));
}

// The angle of the point (x, y).
vec4 atan2_f32(vec4 y, vec4 x) {
    uvec4 a = magnitude(U(y)), b = magnitude(U(x)), small_bits = min(a, b), large_bits = max(a, b);
    // Neither the sum nor the divisor may leave the range: from 2^125 up and 2^-60 down both are scaled.
    vec4 scale = mix(vec4(1.0), vec4(0.25), greaterThan(large_bits, uvec4(0x7e000000u)));
    bvec4 low = lessThan(large_bits, uvec4(0x21800000u));
    precise vec4 small = F(small_bits) * scale;
    precise vec4 large = F(large_bits) * scale;
    small = mix(small, raised(small_bits), low);
    large = mix(large, raised(large_bits), low);
    // Of infinities only their being there counts.
    vec4 to_infinity = mix(vec4(0.0), vec4(1.0), equal(small_bits, uvec4(INF_BITS)));
    bvec4 infinite = equal(large_bits, uvec4(INF_BITS));
    small = mix(small, to_infinity, infinite);
    large = mix(mix(large, vec4(1.0), infinite), vec4(1.0), equal(large_bits, uvec4(0)));
    vec4 r = signed_as(U(angle(small, large, greaterThan(a, b), is_negative(U(x)))), y);
    return mix(mix(r, y, is_nan(U(y))), x, is_nan(U(x)));
}

// ---- the rest ----

vec4 hypot_f32(vec4 x, vec4 y) {
    uvec4 a = magnitude(U(x)), b = magnitude(U(y)), large = max(a, b);
    // Both squares stay in range, as far as they count: from 2^60 up and 2^-50 down both are scaled by 2^-100 and
    // 2^100.
    bvec4 high = greaterThan(large, uvec4(0x5d800000u)), low = lessThan(large, uvec4(0x26800000u));
    vec4 scale = mix(vec4(1.0), vec4(7.888609e-31), high);
    vec4 back = mix(mix(vec4(1.0), vec4(1.2676506e30), high), vec4(7.888609e-31), low);
    precise vec4 l = F(large) * scale;
    precise vec4 s = F(min(a, b)) * scale;
    l = mix(l, raised(large), low);
    s = mix(s, raised(min(a, b)), low);
    precise vec4 r = sqrt(l * l + s * s) * back;
    r = mix(mix(r, y, is_nan(U(y))), x, is_nan(U(x)));
    bvec4 infinite = bvec4(truth(equal(a, uvec4(INF_BITS))) | truth(equal(b, uvec4(INF_BITS))));
    return mix(r, F(uvec4(INF_BITS)), infinite);
}

// What is left of a after whole multiples of b, exactly: a long division of the mantissas, eight bits at a time.
uvec4 fmod_f32(uvec4 a, uvec4 b) {
    uvec4 ma = magnitude(a), mb = magnitude(b);
    // Denormals have the exponent of the smallest normal numbers, and no leading one.
    ivec4 ea = max(ivec4(ma >> 23), ivec4(1)), eb = max(ivec4(mb >> 23), ivec4(1));
    uvec4 r = ma - (uvec4(ea - 1) << 23), divisor = max(mb - (uvec4(eb - 1) << 23), uvec4(1));
    r %= divisor;
    ivec4 left = ea - eb;
    while (any(greaterThan(left, ivec4(0)))) {
        ivec4 bits = clamp(left, ivec4(0), ivec4(8));
        r = (r << uvec4(bits)) % divisor;
        left -= bits;
    }
    // The leading one goes where it belongs, as far as the exponent allows.
    ivec4 shift = clamp(23 - findMSB(ivec4(r)), ivec4(0), eb - 1);
    uvec4 result = (r << uvec4(shift)) + (uvec4(eb - 1 - shift) << 23);
    result = mix(result, uvec4(0), equal(r, uvec4(0)));
    result = mix(result, ma, lessThan(ma, mb)) | sign_bit(a);
    bvec4 undefined = bvec4(truth(equal(mb, uvec4(0))) | truth(greaterThanEqual(ma, uvec4(INF_BITS))));
    result = mix(result, uvec4(NAN_BITS), undefined);
    return mix(result, b, is_nan(b));
}

// With the sign of the divisor.
uvec4 modulo_f32(uvec4 a, uvec4 b) {
    uvec4 r = fmod_f32(a, b);
    precise vec4 moved = F(r) + F(b);
    bvec4 zero = equal(magnitude(r), uvec4(0)), other_side = is_negative(r ^ b);
    uvec4 result = mix(mix(r, U(moved), other_side), sign_bit(b), zero);
    return mix(result, r, is_nan(r));
}

// 1 - erf(x), to a relative error far out, too.
vec4 erfc_f32(vec4 x) {
    vec4 z = at_most(magnitude_of(x), 10.3);
    // x^2 in two parts: the square of the first 12 bits is exact.
    vec4 top = F(U(z) & 0xfffff000u);
    precise vec4 rest = -((z - top) * (z + top));
    precise vec4 square = -(top * top);
    ivec4 n;
    vec4 p = exp_parts(square, rest, n);
    precise vec4 u = z * 1.41421356;
    precise vec4 t = (u - 2.5) / (u + 2.5);
    precise vec4 q = tail_polynomial(t) * p;
    precise vec4 tail = 2.0 * q / (u + 2.5);
    precise vec4 below = 2.0 - tail * power_of_two(max(n, ivec4(-127)));
    precise vec4 near = 1.0 - erf_f32(x);
    vec4 r = mix(scale_by_power(tail, n), below, lessThan(x, vec4(0.0)));
    r = mix(r, near, lessThan(z, vec4(0.47)));
    return mix(r, x, is_nan(U(x)));
}

// x * tanh(log(1 + exp(x))), which is x e (e + 2) / (e (e + 2) + 2) for e = exp(x).
vec4 mish_f32(vec4 x) {
    vec4 bounded = at_least(x, -200.0);
    ivec4 n;
    vec4 p = exp_parts(at_most(at_least(bounded, -120.0), 30.0), vec4(0.0), n);
    precise vec4 e = p * power_of_two(max(n, ivec4(-60)));
    precise vec4 w = e * (e + 2.0);
    precise vec4 near = bounded * (w / (w + 2.0));
    // Far down it is x exp(x), whose power of two comes last.
    precise vec4 product = bounded * p;
    vec4 r = mix(near, scale_by_power(product, n), lessThan(bounded, vec4(-20.0)));
    return mix(r, x, is_nan(U(x)));
}

vec4 selu_f32(vec4 x) {
    precise vec4 below = 1.7580993 * expm1_of_negative(x);
    precise vec4 above = 1.050701 * x;
    return mix(mix(above, below, is_negative(U(x))), x, is_nan(U(x)));
}

// Remainders with the sign of the dividend; by 0 they are 0.
ivec4 fmod_i32(ivec4 a, ivec4 b) {
    return mix(a - ivec4(div_i32(a, b)) * b, ivec4(0), equal(b, ivec4(0)));
}

uvec4 fmod_u32(uvec4 a, uvec4 b) { return mix(a - div_u32(a, b) * b, uvec4(0), equal(b, uvec4(0))); }

// With the sign of the divisor.
uvec4 modulo_i32(ivec4 a, ivec4 b) {
    ivec4 r = fmod_i32(a, b);
    bvec4 moves = bvec4(truth(notEqual(r, ivec4(0))) & truth(lessThan(r ^ b, ivec4(0))));
    return uvec4(mix(r, r + b, moves));
}
