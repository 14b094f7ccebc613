// What softmax kernels have in common. Four rows or columns side by side.

layout(constant_id = 3) const bool LOGARITHM = false;

#define MINUS_INFINITY 0xff800000u

// The largest and the smallest element, as ordered integers.
struct Range { ivec4 high, low; };

Range nothing() { return Range(ivec4(0x80000000), ivec4(0x7fffffff)); }

void widen(inout Range range, uvec4 bits) {
    ivec4 k = total_order(bits);
    range.high = max(range.high, k);
    range.low = min(range.low, k);
}

void widen(inout Range range, Range other) {
    range.high = max(range.high, other.high);
    range.low = min(range.low, other.low);
}

// No distribution: there is a NaN or +infinity, or nothing but -infinity.
bvec4 is_lost(Range range) {
    return bvec4(uvec4(greaterThanEqual(range.high, ivec4(INFINITY_KEY))) |
                 uvec4(lessThanEqual(range.high, ivec4(~INFINITY_KEY))) |
                 uvec4(lessThan(range.low, ivec4(~INFINITY_KEY))));
}

// The largest element; 0 where it is not finite, so that no infinity meets another.
vec4 peak(Range range) {
    return mix(F(uvec4(total_order(uvec4(range.high)))), vec4(0), is_lost(range));
}

vec4 weight(uvec4 bits, vec4 top) {
    precise vec4 t = F(bits) - top;
    return exp_not_above_one(t);
}

// Scales a sum of weights from one largest element to another one, which is not below it unless there was nothing to sum.
void rescale(inout vec4 sum, inout vec4 rest, inout vec4 top, vec4 risen) {
    vec4 scale = weight(U(min(top, risen)), risen);
    precise vec4 scaled = sum * scale, scaled_rest = rest * scale;
    sum = scaled;
    rest = scaled_rest;
    top = risen;
}

// What the results are made with: the reciprocal of the sum, or its logarithm.
vec4 divisor(vec4 sum, vec4 rest) {
    precise vec4 total = sum + rest;
    precise vec4 reciprocal = 1.0 / total;
    return LOGARITHM ? log_not_below_one(total) : reciprocal;
}

uvec4 outcome(uvec4 bits, vec4 top, vec4 divisor, bvec4 lost) {
    precise vec4 t = F(bits) - top;
    precise vec4 logarithm = t - divisor, share = exp_not_above_one(t) * divisor;
    return mix(LOGARITHM ? U(logarithm) : U(share), uvec4(NOT_A_NUMBER), lost);
}
