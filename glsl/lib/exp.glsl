// exp and log where softmax needs them, alike on every driver: Vulkan allows a native exp(t) to be off by 3 + 2|t| ULP.

// exp(t) for t <= 0, to 0.99 ULP (over every f32); 0 below -87, where results would become denormal.
vec4 exp_not_above_one(vec4 t) {
    // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits, too. Below -87 all of this is noise.
    // The polynomial is the best of its degree for |r| <= log(2) / 2: 3e-9, so that rounding is all that is left.
    precise vec4 shifted = t * 1.44269504 + 12582912.0;
    precise vec4 n = shifted - 12582912.0;
    precise vec4 r = (t - n * 0.693359375) + n * 2.12194440e-4;
    precise vec4 p = r * 1.3814580900e-3 + 8.3687253844e-3;
    p = p * r + 4.1668388872e-2;
    p = p * r + 1.6666520562e-1;
    p = p * r + 4.9999993443e-1;
    precise vec4 e = (p * (r * r) + r) + 1.0;
    uvec4 scaled = floatBitsToUint(e) + (floatBitsToUint(shifted) << 23);
    return mix(vec4(0), uintBitsToFloat(scaled), greaterThanEqual(t, vec4(-87.0)));
}

// The same where it is only summed up: 1 for 0, and else to 1.5e-7 (1 + |t|) of itself (over every third f32), in a
// fifth fewer instructions.
vec4 rough_exp_not_above_one(vec4 t) {
    precise vec4 y = t * 1.44269504;
    precise vec4 shifted = y + 12582912.0;
    precise vec4 f = y - (shifted - 12582912.0);
    precise vec4 p = f * 1.3264724439e-3 + 9.6715147681e-3;
    p = p * f + 5.5507337691e-2;
    p = p * f + 2.4022242053e-1;
    p = p * f + 6.9314697757e-1;
    p = p * f + 1.0;
    uvec4 scaled = floatBitsToUint(p) + (floatBitsToUint(shifted) << 23);
    return mix(vec4(0), uintBitsToFloat(scaled), greaterThanEqual(t, vec4(-87.0)));
}

// log(x) for finite x >= 1, to 0.81 ULP (over every seventh f32 up to 2^32).
vec4 log_not_below_one(vec4 x) {
    // x = m * 2^k with m from sqrt(1/2) to sqrt(2).
    uvec4 bits = floatBitsToUint(x);
    uvec4 k = (bits - 0x3f3504f3u) >> 23;
    precise vec4 f = uintBitsToFloat(bits - (k << 23)) - 1.0, n = vec4(k), square = f * f;
    precise vec4 p = 7.0376836292e-2 * f - 1.1514610310e-1;
    p = p * f + 1.1676998740e-1;
    p = p * f - 1.2420140846e-1;
    p = p * f + 1.4249322787e-1;
    p = p * f - 1.6668057665e-1;
    p = p * f + 2.0000714765e-1;
    p = p * f - 2.4999993993e-1;
    p = p * f + 3.3333331174e-1;
    precise vec4 r = (f + (f * square * p - 2.12194440e-4 * n - 0.5 * square)) + 0.693359375 * n;
    return r;
}
