// Sums whose error does not grow with their length: blocks of eight are summed as a tree, and block sums are added
// with their rounding errors collected beside (two-sum). Four sums side by side.

// Repeats are written out: the optimizer's own unrolling forgets that arithmetic is `precise`, and then takes it apart.
#define FOUR_TIMES(STEP) STEP(0) STEP(1) STEP(2) STEP(3)
#define EIGHT_TIMES(STEP) FOUR_TIMES(STEP) STEP(4) STEP(5) STEP(6) STEP(7)

#define F(x) uintBitsToFloat(x)
#define U(x) floatBitsToUint(x)

// sum + rest is what sum + rest + x was, but for the rounding of `rest`.
void add_exactly(inout vec4 sum, inout vec4 rest, vec4 x) {
    precise vec4 total = sum + x;
    precise vec4 part = total - sum;
    precise vec4 error = (sum - (total - part)) + (x - part);
    precise vec4 errors = rest + error;
    sum = total;
    rest = errors;
}

// The same for two sums; both orders give the same bits.
void add_sums(inout vec4 sum, inout vec4 rest, vec4 sum2, vec4 rest2) {
    precise vec4 total = sum + sum2;
    precise vec4 part = total - sum;
    precise vec4 error = (sum - (total - part)) + (sum2 - part);
    precise vec4 errors = (rest + rest2) + error;
    sum = total;
    rest = errors;
}

// An infinite or NaN sum is the result as it is; its errors are noise.
vec4 settle(vec4 sum, vec4 rest) {
    precise vec4 total = sum + rest;
    return mix(sum, total, lessThan(U(sum) & 0x7fffffffu, uvec4(0x7f800000u)));
}

// Integers in the order of the floats, -0 below +0, and NaNs outside of both infinities.
ivec4 total_order(uvec4 bits) {
    ivec4 k = ivec4(bits);
    return k ^ ((k >> 31) & 0x7fffffff);
}

#define INFINITY_KEY 0x7f800000
#define NOT_A_NUMBER 0x7fc00000u
