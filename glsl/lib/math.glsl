// Elementary functions of four floats, made of additions, multiplications, divisions and integer operations only.
// Vulkan leaves the built-in ones loose (sin and cos outside [-pi, pi] altogether), and drivers differ; these are good
// to a few units in the last place over the whole range, and give the same bits wherever `/` rounds correctly.
// Everything is `precise`. NaN, zeros and signs are told by their bits: a driver may assume that there is no NaN, and
// may take denormals for zeros. Polynomials without a note are those of Cephes (single precision).

#define F(x) uintBitsToFloat(x)
#define U(x) floatBitsToUint(x)

#define NAN_BITS 0x7fc00000u
#define INF_BITS 0x7f800000u
#define ONE_BITS 0x3f800000u

uvec4 magnitude(uvec4 a) { return a & 0x7fffffffu; }

uvec4 sign_bit(uvec4 a) { return a & 0x80000000u; }

bvec4 is_nan(uvec4 a) { return greaterThan(magnitude(a), uvec4(INF_BITS)); }

bvec4 is_negative(uvec4 a) { return lessThan(ivec4(a), ivec4(0)); }

// Plain selections: min, max and clamp say nothing of NaN and cost more on software drivers.
vec4 at_most(vec4 x, float limit) { return mix(x, vec4(limit), greaterThan(x, vec4(limit))); }

vec4 at_least(vec4 x, float limit) { return mix(x, vec4(limit), lessThan(x, vec4(limit))); }

// 2^n for n from -127 (which gives 0) to 128 (infinity).
vec4 power_of_two(ivec4 n) { return intBitsToFloat((n + 127) << 23); }

// x * 2^n for n from -252 to 256, rounded once.
vec4 scale_by_power(vec4 x, ivec4 n) {
    ivec4 half_n = n >> 1;
    precise vec4 r = x * power_of_two(half_n) * power_of_two(n - half_n);
    return r;
}

// ---- exp and log ----

// n and r with x + low = n * ln 2 + r, |r| <= ln 2 / 2.
vec4 reduce_by_ln2(vec4 x, vec4 low, out ivec4 n) {
    precise vec4 k = roundEven(x * 1.44269504);
    n = ivec4(k);
    // The first part of ln 2 has 10 bits: its product with k is exact.
    precise vec4 r = (x - k * 0.693359375) + (k * 2.12194440e-4 + low);
    return r;
}

// exp(r) - 1 - r for |r| <= ln 2 / 2.
vec4 exp_tail(vec4 r) {
    precise vec4 p = 1.9875691500e-4 * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 5.0000001201e-1;
    p = p * (r * r);
    return p;
}

// The same with half as many results that wait for each other, which software drivers gain by (`bench gelu_16m`); 0.02
// ULP less exact.
vec4 exp_tail_in_pairs(vec4 r) {
    precise vec4 square = r * r;
    precise vec4 p = (1.9875691500e-4 * r + 1.3981999507e-3) * square + (8.3334519073e-3 * r + 4.1665795894e-2);
    p = p * square + (1.6666665459e-1 * r + 5.0000001201e-1);
    p = p * square;
    return p;
}

// exp(x + low) = p * 2^n.
vec4 exp_parts(vec4 x, vec4 low, out ivec4 n) {
    vec4 r = reduce_by_ln2(x, low, n);
    precise vec4 p = 1.0 + (r + exp_tail(r));
    return p;
}

vec4 exp_f32(vec4 x) {
    ivec4 n;
    vec4 p = exp_parts(at_least(at_most(x, 89.0), -104.0), vec4(0.0), n);
    return mix(scale_by_power(p, n), x, is_nan(U(x)));
}

// exp(x) - 1 for x <= 0.
vec4 expm1_of_negative(vec4 x) {
    ivec4 n;
    vec4 r = reduce_by_ln2(at_least(x, -26.0), vec4(0.0), n), scale = power_of_two(n);
    precise vec4 p = scale * (r + exp_tail(r)) + (scale - 1.0);
    // The sum would lose the sign of -0, and a driver the denormals.
    return mix(p, x, lessThan(magnitude(U(x)), uvec4(0x33000000u)));
}

// log(1 + f) + e * ln 2 for 1 + f in [sqrt(1/2), sqrt(2)].
vec4 log_parts(vec4 f, vec4 e) {
    precise vec4 square = f * f;
    precise vec4 p = 7.0376836292e-2 * f - 1.1514610310e-1;
    p = p * f + 1.1676998740e-1;
    p = p * f - 1.2420140846e-1;
    p = p * f + 1.4249322787e-1;
    p = p * f - 1.6668057665e-1;
    p = p * f + 2.0000714765e-1;
    p = p * f - 2.4999993993e-1;
    p = p * f + 3.3333331174e-1;
    p = p * f * square;
    p = (p - e * 2.12194440e-4) - 0.5 * square;
    p = (f + p) + e * 0.693359375;
    return p;
}

// m in [sqrt(1/2), sqrt(2)) and e with x = m * 2^e, for positive bits of a finite x.
vec4 split_exponent(uvec4 a, out vec4 e) {
    // A denormal's bits are its value as an integer: the conversion is exact.
    bvec4 denormal = lessThan(a, uvec4(0x00800000u));
    a = mix(a, U(vec4(a)), denormal);
    uvec4 above = a - 0x3f3504f3u;
    e = vec4((ivec4(above) >> 23) + mix(ivec4(0), ivec4(-149), denormal));
    return F((above & 0x007fffffu) + 0x3f3504f3u);
}

vec4 log_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 e;
    precise vec4 f = split_exponent(a, e) - 1.0;
    uvec4 r = U(log_parts(f, e));
    r = mix(r, a, greaterThanEqual(a, uvec4(INF_BITS)));                     // infinity, NaN
    r = mix(r, uvec4(NAN_BITS), is_negative(a));
    r = mix(r, uvec4(0xff800000u), equal(magnitude(a), uvec4(0)));           // -infinity
    return F(r);
}

// log(1 + z) for z in [0, 1].
vec4 log1p_of_unit(vec4 z) {
    bvec4 upper = greaterThan(z, vec4(0.41421356));
    precise vec4 halved = (z - 1.0) * 0.5;
    return log_parts(mix(z, halved, upper), mix(vec4(0.0), vec4(1.0), upper));
}

// log(1 + exp(x)).
vec4 softplus_f32(vec4 x) {
    precise vec4 r = at_least(x, 0.0) + log1p_of_unit(exp_f32(F(U(x) | 0x80000000u)));
    return mix(r, x, is_nan(U(x)));
}

// ---- the logistic family ----

// x / (1 + exp(-w)); for x that is bounded below, so that the quotient of infinities doesn't come up.
vec4 logistic_times(vec4 x, vec4 w) {
    ivec4 n;
    vec4 e = reduce_by_ln2(at_least(at_most(-w, 94.2), -87.0), vec4(0.0), n);
    precise vec4 p = 1.0 + (e + exp_tail_in_pairs(e));
    // Far down the quotient is still a number when exp(-w) no longer is: there both sides are made smaller.
    bvec4 far = lessThan(w, vec4(-64.0));
    vec4 unit = mix(vec4(1.0), vec4(0.00390625), far);
    n += mix(ivec4(0), ivec4(-8), far);
    precise vec4 r = x * unit / (unit + p * power_of_two(n));
    return r;
}

vec4 sigmoid_f32(vec4 x) { return mix(logistic_times(vec4(1.0), x), x, is_nan(U(x))); }

vec4 swish_f32(vec4 x) {
    vec4 bounded = at_least(x, -200.0);
    return logistic_times(bounded, bounded);
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), written with exp.
vec4 gelu_f32(vec4 x) {
    vec4 bounded = at_least(x, -100.0);
    precise vec4 w = bounded * (1.5957691 + 0.071354814 * (bounded * bounded));
    return logistic_times(bounded, w);
}

vec4 tanh_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 z = F(magnitude(a));
    ivec4 n;
    precise vec4 doubled = 2.0 * at_most(z, 10.0);
    vec4 p = exp_parts(doubled, vec4(0.0), n);
    precise vec4 large = 1.0 - 2.0 / (p * power_of_two(n) + 1.0);
    precise vec4 square = z * z;
    precise vec4 small = -5.70498872745e-3 * square + 2.06390887954e-2;
    small = small * square - 5.37397155531e-2;
    small = small * square + 1.33314422036e-1;
    small = small * square - 3.33332819422e-1;
    small = small * square * z + z;
    uvec4 r = mix(U(large), U(small), lessThan(z, vec4(0.625)));
    // Where the cube does not count, neither may a driver's denormals.
    r = mix(r, magnitude(a), lessThan(magnitude(a), uvec4(0x39000000u)));
    return F(mix(r | sign_bit(a), a, is_nan(a)));
}

// q of t = (z - 2.5) / (z + 2.5), for z >= 0; interpolated at Chebyshev points, 2e-8 off at most.
vec4 tail_polynomial(vec4 t) {
    precise vec4 q = -1.583049875e-4 * t - 3.135571561e-4;
    q = q * t + 6.836188439e-4;
    q = q * t + 2.525805102e-3;
    q = q * t - 1.599684599e-3;
    q = q * t - 1.638675438e-2;
    q = q * t + 9.235530068e-3;
    q = q * t + 1.319870364e-1;
    q = q * t - 4.336919879e-1;
    q = q * t + 7.066566589e-1;
    return q;
}

// x times the normal distribution function: x / 2 * (1 + erf(x / sqrt(2))).
vec4 gelu_erf_f32(vec4 x) {
    vec4 z = at_most(F(magnitude(U(x))), 14.6);
    // x^2 / 2 in two parts: the square of the first 12 bits is exact.
    vec4 top = F(U(z) & 0xfffff000u);
    precise vec4 rest = -0.5 * ((z - top) * (z + top));
    precise vec4 square = -0.5 * (top * top);
    ivec4 n;
    vec4 p = exp_parts(square, rest, n);
    // exp(z^2 / 2) times the upper tail is q(t) / (z + 2.5).
    precise vec4 t = (z - 2.5) / (z + 2.5);
    precise vec4 q = tail_polynomial(t);
    q = q * p / (z + 2.5);
    // Below zero the power of two comes last: the product may be a number where the tail is a denormal.
    precise vec4 above = x * (1.0 - q * power_of_two(max(n, ivec4(-127))));
    precise vec4 product = -z * q;
    vec4 below = scale_by_power(product, n);
    // Near zero the function less 1/2 is odd and has a series.
    precise vec4 s = z * z;
    precise vec4 series = 1.072748594e-4 * s - 1.184791556e-3;
    series = series * s + 9.973232795e-3;
    series = series * s - 6.649036552e-2;
    series = series * s + 3.989422803e-1;
    series = x * (0.5 + x * series);
    vec4 r = mix(mix(above, below, lessThan(x, vec4(0.0))), series, lessThan(z, vec4(0.6)));
    return mix(r, x, is_nan(U(x)));
}

// ---- the error function ----

// Both polynomials are fitted to the smallest relative error of the result, which is 2e-9 at most.
vec4 erf_f32(vec4 x) {
    uvec4 a = U(x);
    vec4 z = F(magnitude(a));
    precise vec4 square = z * z;
    precise vec4 near = 8.513102265e-5 * square - 8.175638855e-4;
    near = near * square + 5.203859120e-3;
    near = near * square - 2.686050845e-2;
    near = near * square + 1.128371503e-1;
    near = near * square - 3.761263498e-1;
    near = near * square + 1.283791668e-1;
    near = near * z + z;
    // 1 - exp(-g(z)), which rounds to 1 long before 4. The constant of g comes last: it is the small part.
    vec4 bounded = at_most(z, 4.0);
    precise vec4 g = -1.982207079e-4 * bounded + 3.065499829e-3;
    g = g * bounded - 2.231524806e-2;
    g = g * bounded + 1.041137456e-1;
    g = g * bounded + 6.369760131e-1;
    g = g * bounded + 1.127797281;
    g = g * bounded;
    ivec4 n;
    vec4 p = exp_parts(-g, vec4(-1.664390695e-4), n);
    precise vec4 far = 1.0 - p * power_of_two(n);
    vec4 r = mix(far, near, lessThan(z, vec4(0.9)));
    return F(mix(U(r) | sign_bit(a), a, is_nan(a)));
}

// ---- sin and cos ----

// The word of 2 / pi, 32 bits each, with a leading zero word.
uvec4 two_over_pi(ivec4 word) {
    uvec4 r = mix(uvec4(0), uvec4(0x28be60dbu), equal(word, ivec4(1)));
    r = mix(r, uvec4(0x9391054au), equal(word, ivec4(2)));
    r = mix(r, uvec4(0x7f09d5f4u), equal(word, ivec4(3)));
    r = mix(r, uvec4(0x7d4d3770u), equal(word, ivec4(4)));
    r = mix(r, uvec4(0x36d8a566u), equal(word, ivec4(5)));
    return mix(r, uvec4(0x4f10e410u), equal(word, ivec4(6)));
}

// The quadrant of |x|, and what is left, in [-pi/4, pi/4]. Payne and Hanek's reduction in fixed point: the 96 bits of
// 2 / pi that matter for this exponent times the mantissa. One path for all x, and no cancellation near multiples of
// pi / 2.
vec4 reduce_by_half_pi(uvec4 a, out uvec4 quadrant) {
    uvec4 mantissa = ((a & 0x007fffffu) | 0x00800000u) << 8;
    ivec4 exponent = max(ivec4(magnitude(a) >> 23) - 126, ivec4(0));
    ivec4 word = exponent >> 5;
    uvec4 shift = uvec4(exponent & 31);
    uvec4 w0 = two_over_pi(word), w1 = two_over_pi(word + 1), w2 = two_over_pi(word + 2), w3 = two_over_pi(word + 3);
    uvec4 high = (w0 << shift) | ((w1 >> 1) >> (31u - shift));
    uvec4 middle = (w1 << shift) | ((w2 >> 1) >> (31u - shift));
    uvec4 low = (w2 << shift) | ((w3 >> 1) >> (31u - shift));
    // The product modulo 4, with 62 bits behind the point, in p1 and p0.
    uvec4 unused, carry, p0, p1;
    umulExtended(mantissa, low, carry, unused);
    umulExtended(mantissa, middle, p1, p0);
    p0 += carry;
    p1 += mantissa * high + mix(uvec4(0), uvec4(1), lessThan(p0, carry));
    quadrant = (p1 + 0x20000000u) >> 30;
    p1 -= quadrant << 30;
    uvec4 sign = sign_bit(p1);
    bvec4 negative = is_negative(p1);
    p1 = mix(p1, ~p1 + mix(uvec4(0), uvec4(1), equal(p0, uvec4(0))), negative);
    p0 = mix(p0, ~p0 + 1u, negative);
    // As the sum of two floats, then times pi / 2, also in two parts.
    precise vec4 f1 = vec4(p1 >> 8) * 2.384185791015625e-7;
    precise vec4 f0 = vec4(((p1 & 0xffu) << 14) | (p0 >> 18)) * 5.684341886080801e-14
                    + vec4(p0 & 0x3ffffu) * 2.168404344971009e-19;
    precise vec4 f = f1 + f0;
    f0 = f0 - (f - f1);
    // The product of the two first parts is exact.
    vec4 top = F(U(f) & 0xfffff000u);
    precise vec4 rest = (f - top) + f0;
    precise vec4 r = top * 1.5703125 + (top * 4.83826795e-4 + rest * 1.57079637);
    // Below pi / 4 it is the number itself.
    bvec4 small = lessThanEqual(magnitude(a), uvec4(0x3f490fdbu));
    quadrant = mix(quadrant & 3u, uvec4(0), small);
    return mix(F(U(r) ^ sign), F(magnitude(a)), small);
}

// sin(r) for even quadrants and cos(r) for odd ones, with the sign of the quadrant.
uvec4 sin_of_quadrant(vec4 r, uvec4 quadrant) {
    precise vec4 square = r * r;
    precise vec4 s = -1.9515295891e-4 * square + 8.3321608736e-3;
    s = s * square - 1.6666654611e-1;
    s = s * square * r + r;
    precise vec4 c = 2.443315711809948e-5 * square - 1.388731625493765e-3;
    c = c * square + 4.166664568298827e-2;
    c = c * square * square - 0.5 * square + 1.0;
    uvec4 value = mix(U(s), U(c), equal(quadrant & 1u, uvec4(1)));
    return value ^ ((quadrant & 2u) << 30);
}

vec4 sin_f32(vec4 x) {
    uvec4 a = U(x), quadrant;
    vec4 r = reduce_by_half_pi(a, quadrant);
    uvec4 value = sin_of_quadrant(r, quadrant) ^ sign_bit(a);
    // Where the cube does not count, neither may a driver's denormals.
    value = mix(value, a, lessThan(magnitude(a), uvec4(0x39000000u)));
    return F(mix(value, uvec4(NAN_BITS), greaterThanEqual(magnitude(a), uvec4(INF_BITS))));
}

vec4 cos_f32(vec4 x) {
    uvec4 a = U(x), quadrant;
    vec4 r = reduce_by_half_pi(a, quadrant);
    uvec4 value = sin_of_quadrant(r, quadrant + 1u);
    return F(mix(value, uvec4(NAN_BITS), greaterThanEqual(magnitude(a), uvec4(INF_BITS))));
}

// ---- pow ----

// a * b = r + low exactly, without a fused multiplication: by halves of 12 bits.
vec4 exact_product(vec4 a, vec4 b, out vec4 low) {
    vec4 a1 = F(U(a) & 0xfffff000u), b1 = F(U(b) & 0xfffff000u);
    precise vec4 a0 = a - a1;
    precise vec4 b0 = b - b1;
    precise vec4 r = a * b;
    precise vec4 rest = (((a1 * b1 - r) + a1 * b0) + a0 * b1) + a0 * b0;
    low = rest;
    return r;
}

// a + b = r + low exactly, for |a| >= |b|.
vec4 exact_sum(vec4 a, vec4 b, out vec4 low) {
    precise vec4 r = a + b;
    precise vec4 rest = b - (r - a);
    low = rest;
    return r;
}

// log2(x) = r + low with some 31 bits, for positive bits of a finite x.
vec4 log2_parts(uvec4 a, out vec4 low) {
    vec4 e;
    precise vec4 f = split_exponent(a, e) - 1.0;
    // s = f / (2 + f) in two parts; the second repairs the rounding of the sum and a sloppy division.
    vec4 below;
    vec4 sum = exact_sum(vec4(2.0), f, below);
    precise vec4 s = f / sum;
    vec4 product_low, product = exact_product(s, sum, product_low);
    precise vec4 s_low = (((f - product) - product_low) - s * below) / sum;
    // log(1 + f) = 2 s + 2/3 s^3 + 2/5 s^5 ...; the first term in two parts, times 2 / ln 2 in two parts.
    precise vec4 square = s * s;
    precise vec4 tail = 0.18181818 * square + 0.22222222;
    tail = tail * square + 0.28571429;
    tail = tail * square + 0.4;
    tail = tail * square + 0.66666669;
    tail = tail * square * s * 1.44269504;
    vec4 main_low, main_part = exact_product(s, vec4(2.88539004), main_low);
    precise vec4 rest = main_low + (s * 3.85195977e-8 + s_low * 2.88539004) + tail;
    vec4 carry, r = exact_sum(e, main_part, carry);
    precise vec4 lows = carry + rest;
    // Without an exponent the main part leads.
    bvec4 no_exponent = equal(e, vec4(0.0));
    r = mix(r, main_part, no_exponent);
    lows = mix(lows, rest, no_exponent);
    r = exact_sum(r, lows, low);
    return r;
}

vec4 pow_f32(vec4 x, vec4 y) {
    uvec4 a = U(x), b = U(y), ma = magnitude(a), mb = magnitude(b);
    vec4 log_low, log_high = log2_parts(ma, log_low);
    // Beyond 2^9 in magnitude the product is over or under whatever y is exactly, unless x is 1.
    vec4 bounded = F(sign_bit(b) | min(mb, uvec4(0x7149f2cau)));  // 1e30
    vec4 low, high = exact_product(log_high, bounded, low);
    precise vec4 rest = low + log_low * bounded;
    bvec4 over = greaterThan(high, vec4(160.0)), under = lessThan(high, vec4(-160.0));
    high = mix(mix(high, vec4(160.0), over), vec4(-160.0), under);
    rest = mix(rest, vec4(0.0), greaterThanEqual(abs(high), vec4(160.0)));
    precise vec4 k = roundEven(high);
    // 2^f as exp(f ln 2).
    precise vec4 fraction = ((high - k) + rest) * 0.693147181;
    precise vec4 p = 1.0 + (fraction + exp_tail(fraction));
    uvec4 r = U(scale_by_power(p, ivec4(k)));

    // What the magnitudes alone decide.
    bvec4 y_negative = is_negative(b);
    uvec4 at_zero = mix(uvec4(0), uvec4(INF_BITS), y_negative), at_infinity = uvec4(INF_BITS) ^ at_zero;
    r = mix(r, at_zero, equal(ma, uvec4(0)));
    r = mix(r, at_infinity, equal(ma, uvec4(INF_BITS)));
    bvec4 y_infinite = equal(mb, uvec4(INF_BITS));
    uvec4 beyond = mix(at_zero, at_infinity, greaterThan(ma, uvec4(ONE_BITS)));
    beyond = mix(beyond, uvec4(ONE_BITS), equal(ma, uvec4(ONE_BITS)));
    r = mix(r, beyond, y_infinite);

    // The sign of a negative x: y is even, odd or no integer at all.
    vec4 size = F(mb);
    bvec4 whole = equal(floor(size), size);
    precise vec4 halved = size * 0.5;
    bvec4 even = equal(floor(halved), halved);
    uvec4 signed_r = mix(r | 0x80000000u, r, even);
    // Zero and infinity have a root for every y; other negative numbers have not.
    uvec4 no_root = mix(uvec4(NAN_BITS), r, equal(ma, uvec4(0)));
    no_root = mix(no_root, r, equal(ma, uvec4(INF_BITS)));
    r = mix(r, mix(no_root, signed_r, whole), is_negative(a));

    r = mix(mix(r, b, is_nan(b)), a, is_nan(a));
    r = mix(r, uvec4(ONE_BITS), equal(a, uvec4(ONE_BITS)));
    r = mix(r, uvec4(ONE_BITS), equal(mb, uvec4(0)));
    return F(r);
}
