// Random numbers from a counter: Philox 4x32 with 10 rounds. No state, so any element can be had alone, and integer
// arithmetic only, so the bits are the same on every device.

uvec4 philox(uvec4 counter, uvec2 key) {
    for (int round = 0; round < 10; round++) {
        uint high0, low0, high1, low1;
        umulExtended(counter.x, 0xD2511F53u, high0, low0);
        umulExtended(counter.z, 0xCD9E8D57u, high1, low1);
        counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

// Numbers in [0, 1): the upper 24 bits, which a float holds exactly.
vec4 unit(uvec4 bits) {
    precise vec4 r = vec4(bits >> 8) * (1.0 / 16777216.0);
    return r;
}

// ln(u) for u in (0, 1] that is a multiple of 2^-24: exponent apart, then the series of atanh.
vec2 log_of_unit(vec2 u) {
    uvec2 bits = floatBitsToUint(u);
    // The mantissa in [sqrt(1/2), sqrt(2)), so that numbers just below 1 keep all their digits.
    ivec2 exponent = ivec2(bits - 0x3f3504f3u) >> 23;
    vec2 mantissa = uintBitsToFloat(bits - uvec2(exponent << 23));
    precise vec2 z = (mantissa - 1.0) / (mantissa + 1.0);
    precise vec2 y = z * z;
    precise vec2 p = ((((y * (2.0 / 11.0) + 2.0 / 9.0) * y + 2.0 / 7.0) * y + 2.0 / 5.0) * y + 2.0 / 3.0) * y;
    precise vec2 r = vec2(exponent) * 0.6931471805599453 + (z * p + 2.0 * z);
    return r;
}

// sin and cos of a whole turn's fraction t in [0, 1): the nearest quarter exactly, then polynomials on an eighth.
void sin_cos_of_turn(vec2 t, precise out vec2 s, precise out vec2 c) {
    vec2 quarter = floor(t * 4.0 + 0.5);
    precise vec2 x = (t - quarter * 0.25) * 6.283185307179586;
    precise vec2 y = x * x;
    precise vec2 sine = x + x * y * (((y * 2.7557319e-6 - 1.98412698e-4) * y + 8.3333333e-3) * y - 0.16666667);
    precise vec2 cosine = 1.0 + y * ((((y * -2.7557319e-7 + 2.48015873e-5) * y - 1.38888889e-3) * y + 4.16666667e-2) * y - 0.5);
    uvec2 q = uvec2(quarter) & 3u;
    bvec2 odd = equal(q & 1u, uvec2(1));
    vec2 a = mix(sine, cosine, odd), b = mix(cosine, sine, odd);
    s = mix(a, -a, greaterThan(q, uvec2(1)));
    c = mix(b, -b, bvec2(q.x == 1 || q.x == 2, q.y == 1 || q.y == 2));
}

// Two pairs of independent normal numbers (Box and Muller).
vec4 normal(uvec4 bits) {
    precise vec2 u = vec2((bits.xz >> 8) + 1u) * (1.0 / 16777216.0);
    precise vec2 radius = sqrt(-2.0 * log_of_unit(u));
    precise vec2 turn = vec2(bits.yw >> 8) * (1.0 / 16777216.0), s, c;
    sin_cos_of_turn(turn, s, c);
    precise vec4 r = vec4(radius.x * c.x, radius.x * s.x, radius.y * c.y, radius.y * s.y);
    return r;
}
