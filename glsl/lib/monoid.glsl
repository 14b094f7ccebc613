// Every reduction, once: how an element becomes a term, how terms combine, what becomes of the total.
// The numbers are those of src/kernels/axis/reduction.rs.

layout(constant_id = 2) const uint MONOID = 0;
#define SUM 0         // a: the sum, b: its rounding errors
#define DEVIATIONS 1  // the sum of squares as above, c: the plain sum
#define PRODUCT 2     // a
#define WRAPPING 3    // a: the sum of integers
#define LARGEST 4     // a: the largest key, b: the smallest
#define FIRST 5       // a: the largest key, b: the first place it was seen at

layout(constant_id = 3) const uint TERM = 0;
#define AS_IT_IS 0
#define SQUARE 1
#define TIMES_SECOND 2
#define LESS_MEAN 3
#define KEY_F32 4
#define KEY_I32 5
#define KEY_U32 6
#define REVERSED 8  // added to a key: the smallest element has the largest

layout(constant_id = 4) const uint FINISH = 0;
#define STATE 0
#define VALUE 1
#define MEAN 2
#define ROOT 3

#define NOWHERE 0xffffffffu
#define LOWEST 0x80000000u  // as a key

// Four states side by side, as bits.
struct State { uvec4 a, b, c; };

State identity() {
    if (MONOID == PRODUCT) return State(U(vec4(1)), uvec4(0), uvec4(0));
    if (MONOID == LARGEST) return State(uvec4(LOWEST), uvec4(0x7fffffffu), uvec4(0));
    if (MONOID == FIRST) return State(uvec4(LOWEST), uvec4(NOWHERE), uvec4(0));
    return State(uvec4(0), uvec4(0), uvec4(0));
}

// Keys compare as signed integers like the elements do. Where places are looked for, zeros are equal and every NaN is
// above all else.
uvec4 key(uvec4 x) {
    bool reversed = (TERM & REVERSED) != 0;
    uint type = TERM & 7u;
    if (type == KEY_U32) x ^= LOWEST;
    if (type != KEY_F32) return reversed ? ~x : x;
    if (MONOID != FIRST) return uvec4(reversed ? ~total_order(x) : total_order(x));
    ivec4 magnitude = ivec4(x & 0x7fffffffu), sign = ivec4(x) >> 31;
    ivec4 k = (magnitude ^ sign) - sign;
    return mix(uvec4(reversed ? -k : k), uvec4(0x7fffffffu), greaterThan(magnitude, ivec4(INFINITY_KEY)));
}

uvec4 term(uvec4 x, uvec4 second, vec4 mean) {
    precise vec4 square = F(x) * F(x), product = F(x) * F(second), deviation = F(x) - mean;
    if (TERM == SQUARE) return U(square);
    if (TERM == TIMES_SECOND) return U(product);
    if (TERM == LESS_MEAN) return U(deviation);
    if (TERM >= KEY_F32) return key(x);
    return x;
}

void merge(inout State x, State y) {
    if (MONOID == SUM || MONOID == DEVIATIONS) {
        vec4 sum = F(x.a), rest = F(x.b);
        add_sums(sum, rest, F(y.a), F(y.b));
        precise vec4 plain = F(x.c) + F(y.c);
        x = State(U(sum), U(rest), U(plain));
    } else if (MONOID == PRODUCT) {
        precise vec4 p = F(x.a) * F(y.a);
        x.a = U(p);
    } else if (MONOID == WRAPPING) {
        x.a += y.a;
    } else if (MONOID == LARGEST) {
        x.a = uvec4(max(ivec4(x.a), ivec4(y.a)));
        x.b = uvec4(min(ivec4(x.b), ivec4(y.b)));
    } else {
        bvec4 above = greaterThan(ivec4(y.a), ivec4(x.a)), same = equal(y.a, x.a), before = lessThan(y.b, x.b);
        x.b = mix(mix(x.b, y.b, above), y.b, bvec4(uvec4(same) & uvec4(before)));
        x.a = uvec4(max(ivec4(x.a), ivec4(y.a)));
    }
}

// Takes in four terms, those that are valid. `place` is that of each.
void absorb(inout State s, uvec4 t, bvec4 valid, uvec4 place) {
    State one = identity();
    t = mix(one.a, t, valid);
    if (MONOID == SUM) {
        one.a = t;
    } else if (MONOID == DEVIATIONS) {
        precise vec4 square = F(t) * F(t);
        one = State(U(square), uvec4(0), t);
    } else if (MONOID == LARGEST) {
        one = State(t, mix(one.b, t, valid), uvec4(0));
    } else if (MONOID == FIRST) {
        one = State(t, mix(one.b, place, valid), uvec4(0));
    } else {
        one.a = t;
    }
    merge(s, one);
}

// Takes in eight times four terms; their places are `step` apart and ascend.
void absorb_block(inout State s, uvec4 t[BLOCK], uvec4 place, uint step) {
    if (MONOID == SUM || MONOID == DEVIATIONS) {
        vec4 x[BLOCK];
#define TAKE(j) { \
        precise vec4 square = F(t[j]) * F(t[j]); \
        x[j] = MONOID == SUM ? F(t[j]) : square; \
    }
        EIGHT_TIMES(TAKE)
#undef TAKE
        vec4 sum = F(s.a), rest = F(s.b);
        precise vec4 tree = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
        add_exactly(sum, rest, tree);
        precise vec4 plain = ((F(t[0]) + F(t[1])) + (F(t[2]) + F(t[3]))) + ((F(t[4]) + F(t[5])) + (F(t[6]) + F(t[7])));
        precise vec4 plainly = F(s.c) + plain;
        s = State(U(sum), U(rest), MONOID == SUM ? uvec4(0) : U(plainly));
        return;
    }
    if (MONOID == PRODUCT) {
        precise vec4 p = ((F(t[0]) * F(t[1])) * (F(t[2]) * F(t[3]))) * ((F(t[4]) * F(t[5])) * (F(t[6]) * F(t[7])));
        precise vec4 product = F(s.a) * p;
        s.a = U(product);
        return;
    }
    [[unroll]] for (uint j = 0; j < BLOCK; j++) {
        if (MONOID == WRAPPING) {
            s.a += t[j];
        } else if (MONOID == LARGEST) {
            s.a = uvec4(max(ivec4(s.a), ivec4(t[j])));
            s.b = uvec4(min(ivec4(s.b), ivec4(t[j])));
        } else {
            s.b = mix(s.b, place + j * step, greaterThan(ivec4(t[j]), ivec4(s.a)));
            s.a = uvec4(max(ivec4(s.a), ivec4(t[j])));
        }
    }
}

// The four states as one, in .x.
void fold(inout State s) {
    merge(s, State(s.a.zwzw, s.b.zwzw, s.c.zwzw));
    merge(s, State(s.a.yyyy, s.b.yyyy, s.c.yyyy));
}

uvec4 finish(State s, uint count) {
    if (MONOID == FIRST) {
        // Nothing was above the lowest key: all elements have it.
        return mix(s.b, uvec4(0), equal(s.b, uvec4(NOWHERE)));
    }
    if (MONOID == LARGEST) {
        ivec4 k = (TERM & REVERSED) != 0 ? ~ivec4(s.a) : ivec4(s.a);
        if ((TERM & 7u) == KEY_I32) return uvec4(k);
        if ((TERM & 7u) == KEY_U32) return uvec4(k) ^ LOWEST;
        // Positive NaNs are above the infinities, negative ones below; reversed or not.
        uvec4 nan = uvec4(greaterThan(ivec4(s.a), ivec4(INFINITY_KEY))) |
                    uvec4(lessThan(ivec4(s.b), ivec4(~INFINITY_KEY)));
        return mix(uvec4(total_order(uvec4(k))), uvec4(NOT_A_NUMBER), bvec4(nan));
    }
    if (MONOID == PRODUCT || MONOID == WRAPPING) return s.a;
    vec4 total = settle(F(s.a), F(s.b));
    float n = float(count);
    if (MONOID == DEVIATIONS) {
        // The mean was rounded; what that added is taken away.
        precise vec4 corrected = total - F(s.c) * F(s.c) / n;
        total = mix(corrected, vec4(0), lessThan(corrected, vec4(0)));
    }
    precise vec4 mean = total / n;
    if (FINISH == MEAN) return U(mean);
    if (FINISH == ROOT) return U(sqrt(total));
    return U(total);
}
