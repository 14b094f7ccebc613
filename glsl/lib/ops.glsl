// Every elementwise operation, once: alone and fused it is this code that runs.
// Operands and results are raw bits. Bodies are `precise`, so that no driver contracts a multiplication and an
// addition and fused and unfused results are the same bits.

#include "lib/math.glsl"

// OPS says which operations a module has (`OpSet`): every one, or without those that are rare, or also without those
// that take long to compile, or the few that are used most. A driver reads the whole module each time it makes a
// pipeline, and some at each start: 20 ms for the light set, 4 for the plain one on lavapipe.
#define ALL 1
#define LIGHT 2
#define PLAIN 3
#define EVERY 4

#if OPS != PLAIN
#include "lib/packed_store.glsl"
#endif

#define OP_COPY 0

// Two operands.
#define OP_ADD_F32 1
#define OP_SUB_F32 2
#define OP_MUL_F32 3
#define OP_DIV_F32 4
#define OP_POW_F32 5
#define OP_MIN_F32 6
#define OP_MAX_F32 7
#define OP_ADD_INT 8
#define OP_SUB_INT 9
#define OP_MUL_INT 10
#define OP_DIV_I32 11
#define OP_DIV_U32 12
#define OP_MIN_I32 13
#define OP_MAX_I32 14
#define OP_MIN_U32 15
#define OP_MAX_U32 16
#define OP_ATAN2_F32 80
#define OP_HYPOT_F32 81
#define OP_FMOD_F32 82
#define OP_MODULO_F32 83
#define OP_COPYSIGN_F32 84
#define OP_FMOD_I32 85
#define OP_FMOD_U32 86
#define OP_MODULO_I32 87

// Comparisons: 0 or 1.
#define OP_EQ_F32 17
#define OP_NE_F32 18
#define OP_LT_F32 19
#define OP_LE_F32 20
#define OP_EQ_INT 21
#define OP_NE_INT 22
#define OP_LT_I32 23
#define OP_LE_I32 24
#define OP_LT_U32 25
#define OP_LE_U32 26
#define OP_IS_NAN_F32 88
#define OP_IS_INF_F32 89
#define OP_LOGICAL_AND 90
#define OP_LOGICAL_OR 91
#define OP_LOGICAL_XOR 92

// a ? b : c
#define OP_SELECT 27

// One operand; b and c are parameters.
#define OP_NEG_F32 28
#define OP_ABS_F32 29
#define OP_SIGN_F32 30
#define OP_FLOOR_F32 31
#define OP_CEIL_F32 32
#define OP_ROUND_F32 33
#define OP_SQRT_F32 34
#define OP_RSQRT_F32 35
#define OP_RECIP_F32 36
#define OP_EXP_F32 37
#define OP_LOG_F32 38
#define OP_SIN_F32 39
#define OP_COS_F32 40
#define OP_RELU_F32 41
#define OP_LEAKY_RELU_F32 42
#define OP_ELU_F32 43
#define OP_CLIP_F32 44
#define OP_SIGMOID_F32 45
#define OP_TANH_F32 46
#define OP_SWISH_F32 47
#define OP_GELU_F32 48
#define OP_GELU_ERF_F32 49
#define OP_SOFTPLUS_F32 50
#define OP_NEG_I32 51
#define OP_ABS_I32 52
#define OP_SIGN_I32 53
#define OP_ERF_F32 59
#define OP_TRUNC_F32 60
#define OP_HARD_SIGMOID_F32 61
#define OP_HARD_SWISH_F32 62
#define OP_SOFTSIGN_F32 63
#define OP_EXP2_F32 64
#define OP_EXPM1_F32 65
#define OP_LOG2_F32 66
#define OP_LOG1P_F32 67
#define OP_SINH_F32 68
#define OP_COSH_F32 69
#define OP_ASINH_F32 70
#define OP_ACOSH_F32 71
#define OP_ATANH_F32 72
#define OP_ASIN_F32 73
#define OP_ACOS_F32 74
#define OP_ATAN_F32 75
#define OP_ERFC_F32 76
#define OP_MISH_F32 77
#define OP_SELU_F32 78
#define OP_CELU_F32 79

// Casts.
#define OP_F32_TO_I32 54
#define OP_F32_TO_U32 55
#define OP_I32_TO_F32 56
#define OP_U32_TO_F32 57
#define OP_F32_TO_I16 93
#define OP_F32_TO_I8 94
#define OP_F32_TO_U16 95
#define OP_F32_TO_U8 96
// As they would be if they had been stored.
#define OP_ROUND_TO_F16 58
#define OP_ROUND_TO_BF16 97
#define OP_WRAP_I16 98
#define OP_WRAP_I8 99
#define OP_WRAP_U16 100
#define OP_WRAP_U8 101

// Bits of integers.
#define OP_BIT_AND 102
#define OP_BIT_OR 103
#define OP_BIT_XOR 104
#define OP_SHIFT_LEFT 105
#define OP_SHIFT_RIGHT_I32 106
#define OP_SHIFT_RIGHT_U32 107
#define OP_COUNT_ONES 108  // of those that are in b

// Integers in the order of the floats; the two zeros are equal.
ivec4 ordered(uvec4 a) {
    ivec4 m = ivec4(magnitude(a));
    return mix(m, -m, is_negative(a));
}

// Likewise, with -0 below +0.
ivec4 strictly_ordered(uvec4 a) { return ivec4(a ^ (uvec4(ivec4(a) >> 31) >> 1)); }

uvec4 truth(bvec4 b) { return mix(uvec4(0), uvec4(1), b); }

// Comparisons with NaN are false.
uvec4 unless_nan(bvec4 b, uvec4 x, uvec4 y) {
    uvec4 larger = max(magnitude(x), magnitude(y));
    return mix(truth(b), uvec4(0), is_nan(larger));
}

uvec4 min_f32(uvec4 a, uvec4 b) {
    uvec4 r = mix(b, a, lessThan(strictly_ordered(a), strictly_ordered(b)));
    return mix(mix(r, b, is_nan(b)), a, is_nan(a));
}

uvec4 max_f32(uvec4 a, uvec4 b) {
    uvec4 r = mix(b, a, greaterThan(strictly_ordered(a), strictly_ordered(b)));
    return mix(mix(r, b, is_nan(b)), a, is_nan(a));
}

// Division by 0 gives 0, and the one quotient that does not fit wraps: neither is left to the driver.
uvec4 div_i32(ivec4 a, ivec4 b) {
    bvec4 zero = equal(b, ivec4(0)), minus_one = equal(b, ivec4(-1));
    ivec4 r = a / mix(mix(b, ivec4(1), zero), ivec4(1), minus_one);
    return uvec4(mix(mix(r, -a, minus_one), ivec4(0), zero));
}

uvec4 div_u32(uvec4 a, uvec4 b) {
    bvec4 zero = equal(b, uvec4(0));
    return mix(a / mix(b, uvec4(1), zero), uvec4(0), zero);
}

uvec4 f32_to_i32(uvec4 a) {
    // 2^31 and beyond, and NaN, must not reach the conversion.
    bvec4 fits = lessThan(magnitude(a), uvec4(0x4f000000u));
    ivec4 r = ivec4(F(mix(uvec4(0), a, fits)));
    uvec4 end = mix(uvec4(0x7fffffffu), uvec4(0x80000000u), is_negative(a));
    return mix(mix(end, uvec4(r), fits), uvec4(0), is_nan(a));
}

uvec4 f32_to_u32(uvec4 a) {
    // From 2^31 on the bits of the mantissa are moved by hand.
    bvec4 fits = lessThan(a, uvec4(0x4f000000u)), large = lessThan(a, uvec4(0x4f800000u));
    uvec4 r = uvec4(ivec4(F(mix(uvec4(0), a, fits))));
    r = mix(mix(uvec4(0xffffffffu), ((a & 0x007fffffu) | 0x00800000u) << 8, large), r, fits);
    return mix(mix(r, uvec4(0), is_negative(a)), uvec4(0), is_nan(a));
}

// Between 0 and 1, from -3 to 3. The sum is exact where it is small.
vec4 hard_sigmoid_f32(vec4 x) {
    precise vec4 r = at_least(at_most(x + 3.0, 6.0), 0.0) * 0.16666667;
    return mix(r, x, is_nan(U(x)));
}

uvec4 u32_to_f32(uvec4 a) {
    // By halves that are exact: the one rounding is that of the sum.
    precise vec4 r = vec4(a >> 16) * 65536.0 + vec4(a & 0xffffu);
    return U(r);
}

#if OPS == EVERY
#include "lib/rare.glsl"
#endif

uvec4 apply(uint op, uvec4 a, uvec4 b, uvec4 c) {
    precise vec4 r;
    switch (op) {
    case OP_ADD_F32: r = F(a) + F(b); break;
    case OP_SUB_F32: r = F(a) - F(b); break;
    case OP_MUL_F32: r = F(a) * F(b); break;
    case OP_DIV_F32: r = F(a) / F(b); break;
    case OP_RELU_F32: return max_f32(a, uvec4(0));
#if OPS != PLAIN
    case OP_MIN_F32: return min_f32(a, b);
    case OP_MAX_F32: return max_f32(a, b);
    case OP_ADD_INT: return a + b;
    case OP_SUB_INT: return a - b;
    case OP_MUL_INT: return a * b;
    case OP_DIV_I32: return div_i32(ivec4(a), ivec4(b));
    case OP_DIV_U32: return div_u32(a, b);
    case OP_MIN_I32: return uvec4(min(ivec4(a), ivec4(b)));
    case OP_MAX_I32: return uvec4(max(ivec4(a), ivec4(b)));
    case OP_MIN_U32: return min(a, b);
    case OP_MAX_U32: return max(a, b);
    case OP_COPYSIGN_F32: return magnitude(a) | sign_bit(b);
    case OP_EQ_F32: return unless_nan(equal(ordered(a), ordered(b)), a, b);
    case OP_NE_F32: return 1u - unless_nan(equal(ordered(a), ordered(b)), a, b);
    case OP_LT_F32: return unless_nan(lessThan(ordered(a), ordered(b)), a, b);
    case OP_LE_F32: return unless_nan(lessThanEqual(ordered(a), ordered(b)), a, b);
    case OP_EQ_INT: return truth(equal(a, b));
    case OP_NE_INT: return truth(notEqual(a, b));
    case OP_LT_I32: return truth(lessThan(ivec4(a), ivec4(b)));
    case OP_LE_I32: return truth(lessThanEqual(ivec4(a), ivec4(b)));
    case OP_LT_U32: return truth(lessThan(a, b));
    case OP_LE_U32: return truth(lessThanEqual(a, b));
    case OP_IS_NAN_F32: return truth(is_nan(a));
    case OP_IS_INF_F32: return truth(equal(magnitude(a), uvec4(INF_BITS)));
    case OP_LOGICAL_AND: return truth(notEqual(a, uvec4(0))) & truth(notEqual(b, uvec4(0)));
    case OP_LOGICAL_OR: return truth(notEqual(a | b, uvec4(0)));
    case OP_LOGICAL_XOR: return truth(notEqual(a, uvec4(0))) ^ truth(notEqual(b, uvec4(0)));
    case OP_SELECT: return mix(b, c, equal(a, uvec4(0)));
    case OP_NEG_F32: return a ^ 0x80000000u;
    case OP_ABS_F32: return magnitude(a);
    case OP_SIGN_F32:
        return mix(sign_bit(a) | ONE_BITS, a, bvec4(truth(is_nan(a)) | truth(equal(magnitude(a), uvec4(0)))));
    case OP_FLOOR_F32: r = floor(F(a)); break;
    case OP_CEIL_F32: r = ceil(F(a)); break;
    case OP_ROUND_F32: r = roundEven(F(a)); break;
    case OP_SQRT_F32: r = sqrt(F(a)); break;
    case OP_RSQRT_F32: r = inversesqrt(F(a)); break;
    case OP_RECIP_F32: r = 1.0 / F(a); break;
    case OP_TRUNC_F32: r = trunc(F(a)); break;
    case OP_HARD_SIGMOID_F32: r = hard_sigmoid_f32(F(a)); break;
    case OP_HARD_SWISH_F32: {
        vec4 x = at_least(F(a), -4.0);
        r = x * hard_sigmoid_f32(x);
        return mix(U(r), a, is_nan(a));
    }
    case OP_SOFTSIGN_F32: {
        vec4 bounded = at_least(at_most(F(a), 1e30), -1e30);
        r = bounded / (1.0 + F(magnitude(U(bounded))));
        return mix(U(r), a, is_nan(a));
    }
    case OP_LEAKY_RELU_F32: {
        precise vec4 below = F(a) * F(b);
        return mix(a, U(below), is_negative(a));
    }
    case OP_CLIP_F32: return max_f32(min_f32(a, c), b);
    case OP_NEG_I32: return 0u - a;
    case OP_ABS_I32: return mix(a, 0u - a, is_negative(a));
    case OP_SIGN_I32: return uvec4(sign(ivec4(a)));
    case OP_F32_TO_I32: return f32_to_i32(a);
    case OP_F32_TO_U32: return f32_to_u32(a);
    case OP_I32_TO_F32: r = vec4(ivec4(a)); break;
    case OP_U32_TO_F32: return u32_to_f32(a);
    case OP_F32_TO_I16: return uvec4(clamp(ivec4(f32_to_i32(a)), -32768, 32767));
    case OP_F32_TO_I8: return uvec4(clamp(ivec4(f32_to_i32(a)), -128, 127));
    case OP_F32_TO_U16: return min(f32_to_u32(a), uvec4(0xffffu));
    case OP_F32_TO_U8: return min(f32_to_u32(a), uvec4(0xffu));
    case OP_ROUND_TO_F16: return rounded(FORMAT_F16, a);
    case OP_ROUND_TO_BF16: return rounded(FORMAT_BF16, a);
    case OP_WRAP_I16: return signed_bits(a, 16);
    case OP_WRAP_I8: return signed_bits(a, 8);
    case OP_WRAP_U16: return a & 0xffffu;
    case OP_WRAP_U8: return a & 0xffu;
    case OP_BIT_AND: return a & b;
    case OP_BIT_OR: return a | b;
    case OP_BIT_XOR: return a ^ b;
    case OP_SHIFT_LEFT: return mix(a << (b & 31u), uvec4(0), greaterThan(b, uvec4(31)));
    case OP_SHIFT_RIGHT_I32: return uvec4(ivec4(a) >> min(b, uvec4(31)));
    case OP_SHIFT_RIGHT_U32: return mix(a >> (b & 31u), uvec4(0), greaterThan(b, uvec4(31)));
    case OP_COUNT_ONES: return uvec4(bitCount(a & b));
#endif
#if OPS == ALL || OPS == EVERY
    case OP_POW_F32: r = pow_f32(F(a), F(b)); break;
    case OP_EXP_F32: r = exp_f32(F(a)); break;
    case OP_LOG_F32: r = log_f32(F(a)); break;
    case OP_SIN_F32: r = sin_f32(F(a)); break;
    case OP_COS_F32: r = cos_f32(F(a)); break;
    case OP_ELU_F32: {
        precise vec4 below = F(b) * expm1_of_negative(F(a));
        return mix(mix(a, U(below), is_negative(a)), a, is_nan(a));
    }
    case OP_SIGMOID_F32: r = sigmoid_f32(F(a)); break;
    case OP_TANH_F32: r = tanh_f32(F(a)); break;
    case OP_SWISH_F32: r = swish_f32(F(a)); break;
    case OP_GELU_F32: r = gelu_f32(F(a)); break;
    case OP_GELU_ERF_F32: r = gelu_erf_f32(F(a)); break;
    case OP_SOFTPLUS_F32: r = softplus_f32(F(a)); break;
    case OP_ERF_F32: r = erf_f32(F(a)); break;
#endif
#if OPS == EVERY
    case OP_EXP2_F32: r = exp2_f32(F(a)); break;
    case OP_EXPM1_F32: r = expm1_f32(F(a)); break;
    case OP_LOG2_F32: r = log2_f32(F(a)); break;
    case OP_LOG1P_F32: r = log1p_f32(F(a)); break;
    case OP_SINH_F32: r = sinh_f32(F(a)); break;
    case OP_COSH_F32: r = cosh_f32(F(a)); break;
    case OP_ASINH_F32: r = asinh_f32(F(a)); break;
    case OP_ACOSH_F32: r = acosh_f32(F(a)); break;
    case OP_ATANH_F32: r = atanh_f32(F(a)); break;
    case OP_ASIN_F32: r = asin_f32(F(a)); break;
    case OP_ACOS_F32: r = acos_f32(F(a)); break;
    case OP_ATAN_F32: r = atan_f32(F(a)); break;
    case OP_ERFC_F32: r = erfc_f32(F(a)); break;
    case OP_MISH_F32: r = mish_f32(F(a)); break;
    case OP_SELU_F32: r = selu_f32(F(a)); break;
    case OP_CELU_F32: {
        precise vec4 below = F(b) * expm1_of_negative(F(a) / F(b));
        return mix(mix(a, U(below), is_negative(a)), a, is_nan(a));
    }
    case OP_ATAN2_F32: r = atan2_f32(F(a), F(b)); break;
    case OP_HYPOT_F32: r = hypot_f32(F(a), F(b)); break;
    case OP_FMOD_F32: return fmod_f32(a, b);
    case OP_MODULO_F32: return modulo_f32(a, b);
    case OP_FMOD_I32: return uvec4(fmod_i32(ivec4(a), ivec4(b)));
    case OP_FMOD_U32: return fmod_u32(a, b);
    case OP_MODULO_I32: return modulo_i32(ivec4(a), ivec4(b));
#endif
    default: return a;
    }
    return U(r);
}
