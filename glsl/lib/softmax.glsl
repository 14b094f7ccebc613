// What softmax kernels have in common. Four rows or columns side by side.

layout(constant_id = 3) const bool LOGARITHM = false;

#define MINUS_INFINITY 0xff800000u

// What is known of the elements by their bits alone, which costs an instruction each: read as signed numbers, the
// largest is the largest element, unless all are negative; the smallest then is. Read as unsigned, the largest tells of
// negative NaNs.
struct Range {
    ivec4 most, least;
    uvec4 farthest;
};

Range nothing() { return Range(ivec4(0x80000000), ivec4(MINUS_INFINITY), uvec4(0)); }

void widen(inout Range range, uvec4 bits) {
    range.most = max(range.most, ivec4(bits));
    range.least = min(range.least, ivec4(bits));
    range.farthest = max(range.farthest, bits);
}

void widen(inout Range range, Range other) {
    range.most = max(range.most, other.most);
    range.least = min(range.least, other.least);
    range.farthest = max(range.farthest, other.farthest);
}

// The range as a state holds it: the bits of its largest element, and those that tell of negative NaNs.
void widen(inout Range range, uvec4 top, uvec4 farthest) {
    widen(range, top);
    range.farthest = max(range.farthest, farthest);
}

// The bits of the largest element.
uvec4 top_bits(Range range) { return uvec4(mix(range.least, range.most, greaterThanEqual(range.most, ivec4(0)))); }

// The largest element, for others to be subtracted from; the lowest number for -infinity, so that no infinity meets
// another in a row that may still become a distribution.
vec4 peak(Range range) { return F(min(top_bits(range), uvec4(MINUS_INFINITY - 1))); }

// No distribution: there is a NaN or +infinity, or nothing but -infinity.
bvec4 is_lost(Range range) {
    return bvec4(uvec4(greaterThanEqual(range.most, ivec4(INFINITY_KEY))) |
                 uvec4(greaterThan(range.farthest, uvec4(MINUS_INFINITY))) |
                 uvec4(equal(top_bits(range), uvec4(MINUS_INFINITY))));
}

vec4 weight(uvec4 bits, vec4 top) {
    precise vec4 t = F(bits) - top;
    return exp_not_above_one(t);
}

// For sums of many.
vec4 rough_weight(uvec4 bits, vec4 top) {
    precise vec4 t = F(bits) - top;
    return rough_exp_not_above_one(t);
}

// Scales a sum of weights from one largest element to another one, which is not below it unless there was nothing to
// sum.
void rescale(inout vec4 sum, inout vec4 rest, inout vec4 top, vec4 risen) {
    vec4 scale = rough_weight(U(min(top, risen)), risen);
    precise vec4 scaled = sum * scale, scaled_rest = rest * scale;
    sum = scaled;
    rest = scaled_rest;
    top = risen;
}

// What the results are made with: the reciprocal of the sum, or its logarithm. NaN, and so all results, where there is
// no distribution.
vec4 divisor(vec4 sum, vec4 rest, bvec4 lost) {
    precise vec4 total = sum + rest;
    precise vec4 reciprocal = 1.0 / total;
    return F(mix(LOGARITHM ? U(log_not_below_one(total)) : U(reciprocal), uvec4(NOT_A_NUMBER), lost));
}

uvec4 outcome(uvec4 bits, vec4 top, vec4 divisor) {
    precise vec4 t = F(bits) - top;
    precise vec4 logarithm = t - divisor, share = exp_not_above_one(t) * divisor;
    return LOGARITHM ? U(logarithm) : U(share);
}
