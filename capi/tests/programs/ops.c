// Every operation of the C ABI once, on small operands, against numbers worked out here.

#include "check.h"

static tm_accelerator *gpu;
static tm_recording *r;

static const float XS[4] = {0.5f, -1.5f, 2.0f, 0.25f};
static tm_tensor *x, *y, *ints;

// Keeps a value and compares it, when everything is recorded.
enum { MOST = 256 };
static struct {
    tm_tensor *tensor;
    size_t count;
    double expected[8];
    tm_dtype dtype;
    const char *name;
} kept[MOST];
static size_t kept_count;

static void expect(const char *name, tm_value value, size_t count, const double *expected) {
    CHECK(kept_count < MOST && count <= 8);
    tm_dtype dtype;
    OK(tm_value_dtype(r, value, &dtype));
    OK(tm_keep(r, value, &kept[kept_count].tensor));
    kept[kept_count].count = count;
    memcpy(kept[kept_count].expected, expected, count * sizeof *expected);
    kept[kept_count].dtype = dtype;
    kept[kept_count++].name = name;
}

#define EXPECT(name, value, ...)                                                  \
    do {                                                                          \
        double expected_[] = {__VA_ARGS__};                                       \
        expect(name, value, sizeof expected_ / sizeof *expected_, expected_);     \
    } while (0)

static double sigmoid(double v) { return 1.0 / (1.0 + exp(-v)); }
static double neg(double v) { return -v; }
static double sign(double v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }
static double rsqrt(double v) { return 1 / sqrt(v); }
static double recip(double v) { return 1 / v; }
static double relu(double v) { return fmax(v, 0); }
static double swish(double v) { return v * sigmoid(v); }
static double gelu(double v) { return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))); }
static double gelu_erf(double v) { return 0.5 * v * (1 + erf(v / sqrt(2))); }
static double softplus(double v) { return log1p(exp(v)); }
static double hard_sigmoid(double v) { return fmin(fmax(v + 3, 0), 6) / 6; }
static double hard_swish(double v) { return v * hard_sigmoid(v); }
static double softsign(double v) { return v / (1 + fabs(v)); }
static double mish(double v) { return v * tanh(softplus(v)); }
static double selu(double v) { return 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * expm1(v)); }

static void unary(void) {
    static const struct {
        tm_unary_op op;
        double (*f)(double);
        enum { ANY, POSITIVE, UNIT, FROM_ONE } domain;
    } OPS[] = {
        {TM_NEG, neg, ANY},       {TM_ABS, fabs, ANY},   {TM_SIGN, sign, ANY},       {TM_FLOOR, floor, ANY},
        {TM_CEIL, ceil, ANY},     {TM_ROUND, rint, ANY}, {TM_SQRT, sqrt, POSITIVE},        {TM_RSQRT, rsqrt, POSITIVE},
        {TM_RECIP, recip, ANY},   {TM_EXP, exp, ANY},    {TM_LOG, log, POSITIVE},          {TM_SIN, sin, ANY},
        {TM_COS, cos, ANY},       {TM_RELU, relu, ANY},  {TM_SIGMOID, sigmoid, ANY}, {TM_TANH, tanh, ANY},
        {TM_SWISH, swish, ANY},   {TM_GELU, gelu, ANY},  {TM_GELU_ERF, gelu_erf, ANY},
        {TM_SOFTPLUS, softplus, ANY}, {TM_ERF, erf, ANY},
        {TM_TRUNC, trunc, ANY},     {TM_HARD_SIGMOID, hard_sigmoid, ANY}, {TM_HARD_SWISH, hard_swish, ANY},
        {TM_SOFTSIGN, softsign, ANY}, {TM_EXP2, exp2, ANY},  {TM_EXPM1, expm1, ANY},       {TM_LOG2, log2, POSITIVE},
        {TM_LOG1P, log1p, POSITIVE}, {TM_SINH, sinh, ANY},   {TM_COSH, cosh, ANY},         {TM_ASINH, asinh, ANY},
        {TM_ACOSH, acosh, FROM_ONE}, {TM_ATANH, atanh, UNIT}, {TM_ASIN, asin, UNIT},       {TM_ACOS, acos, UNIT},
        {TM_ATAN, atan, ANY},       {TM_ERFC, erfc, ANY},    {TM_MISH, mish, ANY},         {TM_SELU, selu, ANY},
    };
    CHECK(sizeof OPS / sizeof *OPS == 40);
    tm_value inputs[4] = {tm_of(x)};
    OK(tm_unary(r, TM_ABS, tm_of(x), &inputs[POSITIVE]));
    OK(tm_binary_scalar(r, TM_DIV, tm_of(x), 4.0, &inputs[UNIT]));
    OK(tm_binary_scalar(r, TM_ADD, inputs[POSITIVE], 1.0, &inputs[FROM_ONE]));
    for (size_t i = 0; i < sizeof OPS / sizeof *OPS; i++) {
        tm_value out;
        double expected[4];
        OK(tm_unary(r, OPS[i].op, inputs[OPS[i].domain], &out));
        for (int k = 0; k < 4; k++) {
            double in[4] = {XS[k], fabs(XS[k]), XS[k] / 4, fabs(XS[k]) + 1};
            expected[k] = OPS[i].f(in[OPS[i].domain]);
        }
        expect("unary", out, 4, expected);
    }
    tm_value out;
    OK(tm_leaky_relu(r, tm_of(x), 0.1f, &out));
    EXPECT("leaky_relu", out, 0.5, -0.15, 2, 0.25);
    OK(tm_elu(r, tm_of(x), 2.0f, &out));
    EXPECT("elu", out, 0.5, 2 * expm1(-1.5), 2, 0.25);
    OK(tm_celu(r, tm_of(x), 2.0f, &out));
    EXPECT("celu", out, 0.5, 2 * expm1(-0.75), 2, 0.25);
    tm_value lo;
    OK(tm_unary(r, TM_NEG, tm_of(y), &lo));
    OK(tm_clamp(r, tm_of(x), lo, tm_of(y), &out));
    EXPECT("clamp", out, 0.5, -1.5, 2, 0.25);
    OK(tm_clip(r, tm_of(x), -1.0f, 1.0f, &out));
    EXPECT("clip", out, 0.5, -1, 1, 0.25);
}

static void binary(void) {
    // y is all 2 but for its last element, 0.25, where x and y are equal.
    static const double EXPECTED[][4] = {
        {2.5, 0.5, 4, 0.5},       {-1.5, -3.5, 0, 0}, {1, -3, 4, 0.0625}, {0.25, -0.75, 1, 1},
        {0.25, 2.25, 4, 0.70710678118}, {0.5, -1.5, 2, 0.25}, {2, 2, 2, 0.25},
        {0, 0, 1, 1}, {1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 1, 1},
    };
    static const double WITH_2[][4] = {
        {2.5, 0.5, 4, 2.25}, {-1.5, -3.5, 0, -1.75}, {1, -3, 4, 0.5}, {0.25, -0.75, 1, 0.125},
        {0.25, 2.25, 4, 0.0625}, {0.5, -1.5, 2, 0.25}, {2, 2, 2, 2},
        {0, 0, 1, 0}, {1, 1, 0, 1}, {1, 1, 0, 1}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 1, 0},
    };
    for (tm_binary_op op = TM_ADD; op <= TM_GE; op++) {
        tm_value out;
        OK(tm_binary(r, op, tm_of(x), tm_of(y), &out));
        expect("binary", out, 4, EXPECTED[op]);
        OK(tm_binary_scalar(r, op, tm_of(x), 2.0, &out));
        expect("binary_scalar", out, 4, WITH_2[op]);
    }
    static const double MORE[][4] = {
        {0.5, -1.5, 0, 0}, {0.5, 0.5, 0, 0}, {0.2449786631, -0.6435011088, 0.7853981634, 0.7853981634},
        {2.0615528128, 2.5, 2.8284271247, 0.3535533906}, {0.5, 1.5, 2, 0.25}, {0.5, -3, 2, 0.25},
    };
    for (tm_binary_op op = TM_FMOD; op <= TM_PRELU; op++) {
        tm_value out;
        OK(tm_binary(r, op, tm_of(x), tm_of(y), &out));
        expect("binary", out, 4, MORE[op - TM_FMOD]);
    }
    tm_value mask, out;
    OK(tm_binary_scalar(r, TM_GT, tm_of(x), 0.3, &mask));
    tm_value second;
    OK(tm_binary_scalar(r, TM_LT, tm_of(x), 1.0, &second));
    OK(tm_binary(r, TM_LOGICAL_AND, mask, second, &out));
    EXPECT("and", out, 1, 0, 0, 0);
    OK(tm_binary(r, TM_LOGICAL_OR, mask, second, &out));
    EXPECT("or", out, 1, 1, 1, 1);
    OK(tm_binary(r, TM_LOGICAL_XOR, mask, second, &out));
    EXPECT("xor", out, 0, 1, 1, 1);
    OK(tm_test(r, TM_LOGICAL_NOT, mask, &out));
    EXPECT("not", out, 0, 1, 0, 1);
    tm_value zero, quotient;
    OK(tm_binary_scalar(r, TM_SUB, tm_of(x), 0.5, &zero));
    OK(tm_binary(r, TM_DIV, tm_of(x), zero, &quotient));
    OK(tm_test(r, TM_IS_INF, quotient, &out));
    EXPECT("is_inf", out, 1, 0, 0, 0);
    OK(tm_binary(r, TM_DIV, zero, zero, &quotient));
    OK(tm_test(r, TM_IS_NAN, quotient, &out));
    EXPECT("is_nan", out, 1, 0, 0, 0);
    OK(tm_binary_scalar(r, TM_GT, tm_of(ints), -1.0, &mask));
    OK(tm_select(r, mask, tm_of(x), tm_of(y), &out));
    EXPECT("select", out, 2, -1.5, 2, 0.25);
    OK(tm_binary_scalar(r, TM_MUL, tm_of(ints), -3.0, &out));
    EXPECT("integers", out, 6, -3, -21, 0);
    FAILS(tm_binary_scalar(r, TM_MUL, tm_of(ints), 0.5, &out), TM_PARAMETER, "the number is 0.5, which is no i32");
    OK(tm_cast(r, tm_of(ints), TM_F32, &out));
    EXPECT("cast", out, -2, 1, 7, 0);
    OK(tm_cast(r, tm_of(x), TM_F16, &out));
    OK(tm_binary_scalar(r, TM_ADD, out, 1.0, &out));
    OK(tm_cast(r, out, TM_F32, &out));
    EXPECT("halves", out, 1.5, -0.5, 3, 1.25);
    OK(tm_bitcast(r, tm_of(x), TM_U32, &out));
    OK(tm_binary_scalar(r, TM_SHIFT_RIGHT, out, 23, &out));
    EXPECT("bitcast", out, 126, 383, 128, 125);
    OK(tm_cast(r, tm_of(ints), TM_I8, &out));
    OK(tm_binary_scalar(r, TM_MUL, out, 100, &out));
    tm_value low, high;
    OK(tm_binary_scalar(r, TM_BIT_AND, out, 15, &low));
    OK(tm_cast(r, low, TM_I32, &low));
    EXPECT("bit_and of i8", low, 8, 4, 12, 0);
    OK(tm_binary_scalar(r, TM_BIT_OR, out, 1, &high));
    OK(tm_cast(r, high, TM_I32, &high));
    EXPECT("bit_or of i8", high, 57, 101, -67, 1);
    OK(tm_test(r, TM_BIT_NOT, out, &low));
    OK(tm_binary_scalar(r, TM_SHIFT_LEFT, low, 1, &low));
    OK(tm_binary(r, TM_BIT_XOR, low, out, &low));
    OK(tm_cast(r, low, TM_I32, &low));
    EXPECT("bits of i8", low, -74, 82, 58, -2);
    OK(tm_test(r, TM_COUNT_ONES, out, &out));
    EXPECT("count_ones of i8", out, 3, 3, 5, 0);
    const tm_dtype packed[] = {TM_BF16, TM_I16, TM_U16, TM_U8, TM_BOOL};
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        OK(tm_binary(r, TM_MAX, tm_of(x), tm_of(y), &out));
        OK(tm_cast(r, out, packed[i], &out));
        OK(tm_cast(r, out, TM_F32, &out));
        bool whole = packed[i] != TM_BF16, truth = packed[i] == TM_BOOL;
        EXPECT("packed", out, truth ? 1 : 2, truth ? 1 : 2, truth ? 1 : 2, !whole ? 0.25 : truth);
    }
    FAILS(tm_binary_scalar(r, TM_ADD, out, 1e300, &out), TM_PARAMETER, "which no f32 can hold");
}

static void reductions(void) {
    // x as 2 rows: 0.5 -1.5 / 2 0.25
    size_t dims[2] = {2, 2};
    tm_value m, out;
    OK(tm_reshape(r, tm_of(x), dims, 2, &m));
    OK(tm_reduce(r, TM_SUM, m, 1, false, &out));
    EXPECT("sum", out, -1, 2.25);
    OK(tm_reduce(r, TM_MEAN, m, 0, false, &out));
    EXPECT("mean", out, 1.25, -0.625);
    OK(tm_reduce(r, TM_PROD, m, TM_ALL_AXES, false, &out));
    EXPECT("prod", out, -0.375);
    OK(tm_reduce(r, TM_AMAX, m, -1, true, &out));
    size_t shape[TM_MAX_RANK], rank;
    OK(tm_value_shape(r, out, &shape, &rank));
    CHECK(rank == 2 && shape[0] == 2 && shape[1] == 1);
    EXPECT("amax", out, 0.5, 2);
    OK(tm_reduce(r, TM_AMIN, m, 1, false, &out));
    EXPECT("amin", out, -1.5, 0.25);
    OK(tm_reduce(r, TM_ARGMAX, m, 1, false, &out));
    EXPECT("argmax", out, 0, 0);
    OK(tm_reduce(r, TM_ARGMIN, m, 1, false, &out));
    EXPECT("argmin", out, 1, 1);
    OK(tm_reduce(r, TM_NORM, m, TM_ALL_AXES, false, &out));
    EXPECT("norm", out, sqrt(0.25 + 2.25 + 4 + 0.0625));
    OK(tm_reduce(r, TM_VARIANCE, m, 1, false, &out));
    EXPECT("variance", out, 1, 0.765625);
    int32_t both[2] = {-1, 0};
    OK(tm_reduce_axes(r, TM_SUM, m, both, 2, false, &out));
    EXPECT("sum over two axes", out, 1.25);
    FAILS(tm_reduce_axes(r, TM_SUM, m, (int32_t[2]){1, -1}, 2, false, &out), TM_SHAPE, "axis 1 is named twice");
    tm_value variance;
    OK(tm_moments(r, m, both, 1, true, &out, &variance));
    EXPECT("means", out, -0.5, 1.125);
    EXPECT("variances", variance, 1, 0.765625);
    OK(tm_dot(r, tm_of(x), tm_of(y), &out));
    EXPECT("dot", out, 1 - 3 + 4 + 0.0625);
    OK(tm_softmax(r, m, 1, &out));
    EXPECT("softmax", out, sigmoid(2), sigmoid(-2), sigmoid(1.75), sigmoid(-1.75));
    OK(tm_log_softmax(r, m, -1, &out));
    EXPECT("log_softmax", out, log(sigmoid(2)), log(sigmoid(-2)), log(sigmoid(1.75)), log(sigmoid(-1.75)));
}

static void attention(void) {
    size_t dims[2] = {2, 2}, cache_dims[2] = {3, 2}, mask_dims[2] = {2, 1}, length_dims[1] = {1};
    float data[4] = {0}, cache_data[6] = {2, 4, 4, 8, 99, 99};
    uint32_t mask_data[2] = {0, 1}, length_data[1] = {2};
    tm_tensor *q = NULL, *cache = NULL, *mask = NULL, *length = NULL;
    OK(tm_upload(gpu, TM_F32, dims, 2, data, sizeof data, &q));
    OK(tm_upload(gpu, TM_F32, cache_dims, 2, cache_data, sizeof cache_data, &cache));
    OK(tm_upload(gpu, TM_U32, mask_dims, 2, mask_data, sizeof mask_data, &mask));
    OK(tm_upload(gpu, TM_U32, length_dims, 1, length_data, sizeof length_data, &length));
    tm_value out, kv = tm_of(cache);
    OK(tm_attention(r, tm_of(q), kv, kv, NULL, &out));
    EXPECT("attention", out, 35, 37, 35, 37);
    tm_attention_options how;
    OK(tm_attention_options_init(&how, sizeof how));
    how.length = tm_of(length);
    OK(tm_attention(r, tm_of(q), kv, kv, &how, &out));
    EXPECT("attention of two keys", out, 3, 6, 3, 6);
    how.causal = true;
    OK(tm_attention(r, tm_of(q), kv, kv, &how, &out));
    EXPECT("causal attention", out, 2, 4, 3, 6);
    how.window = 1;
    how.scale = 3;
    how.soft_cap = 5;
    how.mask = tm_of(mask);
    OK(tm_attention(r, tm_of(q), kv, kv, &how, &out));
    EXPECT("attention with a window and a mask", out, 0, 0, 4, 8);
    // 2 and 4 at the position 2.
    size_t one_row[2] = {1, 2};
    tm_value row;
    OK(tm_slice(r, kv, (size_t[]){0, 0}, one_row, 2, &row));
    OK(tm_rotary(r, row, tm_of(length), 10000, TM_ROTARY_HALVES, &out));
    EXPECT("rotary", out, 2 * cos(2) - 4 * sin(2), 4 * cos(2) + 2 * sin(2));
    FAILS(tm_rotary(r, row, tm_of(length), 10000, 7, &out), TM_INVALID_ARGUMENT, "pairs");
    how.soft_cap = -1;
    FAILS(tm_attention(r, tm_of(q), kv, kv, &how, &out), TM_PARAMETER, "it must be above 0");
    FAILS(tm_attention(r, tm_of(x), kv, kv, NULL, &out), TM_SHAPE, "[4]");
    tm_tensor_free(q);
    tm_tensor_free(cache);
    tm_tensor_free(mask);
    tm_tensor_free(length);
}

static void norms(void) {
    // x as 2 rows: 0.5 -1.5 / 2 0.25: with means -0.5 and 1.125, variances 1 and 0.765625
    size_t dims[2] = {2, 2}, image_dims[3] = {1, 2, 2};
    float gamma_data[2] = {2, 10}, beta_data[2] = {1, -1};
    tm_tensor *gamma = vector_f32(gpu, gamma_data, 2), *beta = vector_f32(gpu, beta_data, 2);
    tm_value g = tm_of(gamma), b = tm_of(beta), m, image, sum, out;
    OK(tm_reshape(r, tm_of(x), dims, 2, &m));
    OK(tm_reshape(r, tm_of(x), image_dims, 3, &image));
    OK(tm_layer_norm(r, m, g, b, 0, &out));
    EXPECT("layer_norm", out, 3, -11, 3, -11);
    OK(tm_add_layer_norm(r, m, m, g, b, 0, &sum, &out));
    EXPECT("the sum before layer_norm", sum, 1, -3, 4, 0.5);
    EXPECT("add_layer_norm", out, 3, -11, 3, -11);
    double first = sqrt(1.25), second = sqrt(2.03125);
    OK(tm_rms_norm(r, m, g, 0, &out));
    EXPECT("rms_norm", out, 1 / first, -15 / first, 4 / second, 2.5 / second);
    OK(tm_add_rms_norm(r, m, m, g, 0, &sum, &out));
    EXPECT("the sum before rms_norm", sum, 1, -3, 4, 0.5);
    EXPECT("add_rms_norm", out, 1 / first, -15 / first, 4 / second, 2.5 / second);
    OK(tm_instance_norm(r, image, g, b, 0, &out));
    EXPECT("instance_norm", out, 3, -1, 9, -11);
    OK(tm_group_norm(r, image, 2, g, b, 0, &out));
    EXPECT("group_norm", out, 3, -1, 9, -11);
    FAILS(tm_group_norm(r, image, 3, g, b, 0, &out), TM_PARAMETER, "it must divide the 2 channels");
    OK(tm_batch_norm(r, image, b, g, g, b, 0, &out));
    EXPECT("batch_norm", out, 1 - 0.5 * sqrt(2), 1 - 2.5 * sqrt(2), 3 * sqrt(10) - 1, 1.25 * sqrt(10) - 1);
    tm_tensor_free(gamma);
    tm_tensor_free(beta);
}

static void products(void) {
    float a_data[4] = {1, 2, 3, 4}, b_data[4] = {1, 0, 1, 1}, bias_data[2] = {0.5f, -10};
    tm_tensor *a = upload_f32(gpu, a_data, 2, 2), *b = upload_f32(gpu, b_data, 2, 2);
    tm_tensor *bias = vector_f32(gpu, bias_data, 2);
    tm_value out;
    OK(tm_matmul(r, tm_of(a), tm_of(b), NULL, &out));
    EXPECT("matmul", out, 3, 2, 7, 4);
    tm_matmul_options how = tm_matmul_defaults();
    how.transpose_lhs = how.transpose_rhs = true;
    how.alpha = 2;
    how.beta = 10;
    how.accumulate = tm_of(b);
    tm_step steps[2] = {{.op = TM_STEP_SCALE, .a = 0.5f}, {.op = TM_STEP_CLIP, .a = 0, .b = 8}};
    how.steps = steps;
    how.step_count = 2;
    // 2 (at bt) + 10 b, halved, at most 8: at bt = 1 4 / 2 6
    OK(tm_matmul(r, tm_of(a), tm_of(b), &how, &out));
    EXPECT("matmul with everything", out, 6, 4, 7, 8);
    how = tm_matmul_defaults();
    for (tm_step_op op = TM_STEP_BIAS; op <= TM_STEP_HARD_SWISH; op++) {
        bool biased = op == TM_STEP_BIAS || op == TM_STEP_COLUMN_BIAS;
        tm_step step = {.op = op, .operand = biased ? tm_of(bias) : tm_of(b), .a = 0.5f, .b = 2.5f};
        static const double P[4] = {3, 2, 7, 4}, B[4] = {1, 0, 1, 1}, BIAS[2] = {0.5, -10};
        double expected[4];
        for (int i = 0; i < 4; i++) {
            double p = P[i];
            double all[] = {p + BIAS[i % 2], p + BIAS[i / 2], p + B[i], p - B[i], p * B[i], p * 0.5, p + 0.5, p, sigmoid(p),
                            tanh(p), swish(p), gelu(p), gelu_erf(p), softplus(p), exp(p), sqrt(p), p, -p, p, p, fmin(p, 2.5),
                            erf(p), hard_sigmoid(p), hard_swish(p)};
            CHECK(sizeof all / sizeof *all == TM_STEP_HARD_SWISH + 1);
            expected[i] = all[op];
        }
        how.steps = &step;
        how.step_count = 1;
        OK(tm_matmul(r, tm_of(a), tm_of(b), &how, &out));
        expect("a step", out, 4, expected);
    }

    // One image of 3x3 pixels, one kernel of 2x2 ones.
    size_t image_dims[4] = {1, 1, 3, 3}, kernel_dims[4] = {1, 1, 2, 2};
    float pixels[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, ones[4] = {1, 1, 1, 1};
    tm_tensor *image, *kernel;
    OK(tm_upload(gpu, TM_F32, image_dims, 4, pixels, sizeof pixels, &image));
    OK(tm_upload(gpu, TM_F32, kernel_dims, 4, ones, sizeof ones, &kernel));
    OK(tm_conv2d(r, tm_of(image), tm_of(kernel), NULL, &out));
    EXPECT("conv2d", out, 12, 16, 24, 28);
    tm_weights *weights;
    OK(tm_prepare_weights(gpu, kernel, 1, &weights));
    tm_conv2d_options conv = tm_conv2d_defaults();
    conv.stride[0] = conv.stride[1] = 2;
    conv.padding[0] = conv.padding[1] = 1;
    tm_step minus = {.op = TM_STEP_ADD_SCALAR, .a = -1};
    conv.steps = &minus;
    conv.step_count = 1;
    OK(tm_conv2d_prepared(r, tm_of(image), weights, &conv, &out));
    EXPECT("conv2d prepared", out, 0, 4, 10, 27);
    tm_weights_free(weights);
    tm_tensor_free(image);
    tm_tensor_free(kernel);
    tm_tensor_free(a);
    tm_tensor_free(b);
    tm_tensor_free(bias);
}

static void pooling(void) {
    // 0.5 -1.5 / 2 0.25
    size_t dims[2] = {2, 2}, window[2] = {2, 2}, stride[2] = {1, 1}, padding[4] = {0, 0, 1, 0}, one[2] = {1, 1};
    size_t parts[2] = {1, 2};
    tm_value m, out;
    OK(tm_reshape(r, tm_of(x), dims, 2, &m));
    OK(tm_pool(r, TM_POOL_MAX, m, window, stride, padding, one, 2, 0, 0, &out));
    EXPECT("max_pool", out, 2, 2);
    OK(tm_pool(r, TM_POOL_MAX_PLACE, m, window, stride, padding, NULL, 2, 0, 0, &out));
    EXPECT("max_pool places", out, 2, 2);
    OK(tm_pool(r, TM_POOL_AVERAGE, m, window, NULL, NULL, NULL, 2, TM_POOL_CEIL, 0, &out));
    EXPECT("average_pool", out, 0.3125);
    OK(tm_pool(r, TM_POOL_AVERAGE, m, window, stride, padding, NULL, 2, TM_POOL_COUNT_PADDING, 0, &out));
    EXPECT("average_pool with padding", out, 0.625, 0.3125);
    OK(tm_pool(r, TM_POOL_NORM, m, window, NULL, NULL, NULL, 2, 0, 1, &out));
    EXPECT("norm_pool", out, 4.25);
    size_t deep[3] = {4, 1, 1};
    tm_value channels, wide_again;
    OK(tm_reshape(r, tm_of(x), deep, 3, &channels));
    OK(tm_pixel_shuffle(r, channels, 2, &wide_again));
    EXPECT("pixel_shuffle", wide_again, 0.5, -1.5, 2, 0.25);
    OK(tm_pixel_unshuffle(r, wide_again, 2, &out));
    EXPECT("pixel_unshuffle", out, 0.5, -1.5, 2, 0.25);
    size_t four_columns = 4, three_columns = 3;
    OK(tm_resize(r, m, &four_columns, 1, TM_LINEAR, TM_HALF_PIXEL, &out));
    EXPECT("resize", out, 0.5, 0, -1, -1.5, 2, 1.5625, 0.6875, 0.25);
    OK(tm_resize(r, m, &three_columns, 1, TM_NEAREST, TM_ALIGN_CORNERS, &out));
    EXPECT("resize to the nearest", out, 0.5, 0.5, -1.5, 2, 2, 0.25);
    OK(tm_adaptive_pool(r, TM_POOL_MAX, m, parts, 2, &out));
    EXPECT("adaptive_max_pool", out, 2, 0.25);
    OK(tm_adaptive_pool(r, TM_POOL_AVERAGE, m, parts, 2, &out));
    EXPECT("adaptive_average_pool", out, 1.25, -0.625);
    FAILS(tm_pool(r, TM_POOL_MAX, m, window, NULL, NULL, NULL, 2, 4, 0, &out), TM_INVALID_ARGUMENT, "flags");
}

static void layouts(void) {
    size_t dims[2] = {2, 2}, order[2] = {1, 0}, four = 4;
    tm_value m, out;
    OK(tm_reshape(r, tm_of(x), dims, 2, &m));
    OK(tm_permute(r, m, order, 2, &out));
    EXPECT("permute", out, 0.5, 2, -1.5, 0.25);
    OK(tm_transpose(r, m, &out));
    EXPECT("transpose", out, 0.5, 2, -1.5, 0.25);
    size_t begin[2] = {0, 1}, end[2] = {2, 2};
    OK(tm_slice(r, m, begin, end, 2, &out));
    EXPECT("slice", out, -1.5, 0.25);
    size_t first = 0;
    ptrdiff_t back = -2;
    OK(tm_slice_step(r, tm_of(x), &first, &four, &back, 1, &out));
    EXPECT("slice_step", out, 0.25, -1.5);
    tm_value pair[2] = {tm_of(x), tm_of(y)};
    size_t wide[2] = {2, 4};
    OK(tm_concat(r, pair, 2, 0, &out));
    EXPECT("concat", out, 0.5, -1.5, 2, 0.25, 2, 2, 2, 0.25);
    OK(tm_stack(r, pair, 2, 1, &out));
    EXPECT("stack", out, 0.5, 2, -1.5, 2, 2, 2, 0.25, 0.25);
    OK(tm_broadcast_to(r, tm_of(x), wide, 2, &out));
    EXPECT("broadcast_to", out, 0.5, -1.5, 2, 0.25, 0.5, -1.5, 2, 0.25);
    size_t before = 1, after = 2;
    OK(tm_pad(r, tm_of(x), &before, &after, 1, 9.0, &out));
    EXPECT("pad", out, 9, 0.5, -1.5, 2, 0.25, 9, 9);
    uint32_t numbers[3] = {1, 0, 5};
    size_t three = 3;
    tm_tensor *rows;
    OK(tm_upload(gpu, TM_U32, &three, 1, numbers, sizeof numbers, &rows));
    OK(tm_gather_rows(r, m, tm_of(rows), &out));
    EXPECT("gather_rows", out, 2, 0.25, 0.5, -1.5, 0, 0);
    OK(tm_gather(r, m, tm_of(rows), 1, &out));
    EXPECT("gather", out, -1.5, 0.5, 0, 0.25, 2, 0);
    OK(tm_count_outside(r, tm_of(rows), 2, &out));
    EXPECT("count_outside", out, 1);
    OK(tm_one_hot(r, tm_of(rows), 2, &out));
    EXPECT("one_hot", out, 0, 1, 1, 0, 0, 0);
    OK(tm_bincount(r, tm_of(rows), 3, &out));
    EXPECT("bincount", out, 1, 1, 0);
    OK(tm_bincount_weighted(r, tm_of(rows), tm_of(rows), 2, &out));
    EXPECT("bincount_weighted", out, 0, 1);
    OK(tm_segment_sum(r, tm_of(rows), tm_of(rows), 2, &out));
    EXPECT("segment_sum", out, 0, 1);
    OK(tm_scatter(r, TM_SCATTER_SET, tm_of(rows), tm_of(rows), tm_of(rows), 0, &out));
    EXPECT("scatter", out, 0, 1, 5);
    OK(tm_scatter(r, TM_SCATTER_ADD, tm_of(rows), tm_of(rows), tm_of(rows), 0, &out));
    EXPECT("scatter_add", out, 1, 1, 5);
    OK(tm_scatter(r, TM_SCATTER_MAX, tm_of(rows), tm_of(rows), tm_of(rows), 0, &out));
    EXPECT("scatter_max", out, 1, 1, 5);
    OK(tm_scatter(r, TM_SCATTER_MIN, tm_of(rows), tm_of(rows), tm_of(rows), 0, &out));
    EXPECT("scatter_min", out, 0, 0, 5);
    // Of 1, 0, 5.
    tm_value second, third, fourth;
    OK(tm_scan(r, TM_CUMSUM, tm_of(rows), 0, false, false, &out));
    EXPECT("cumsum", out, 1, 1, 6);
    OK(tm_scan(r, TM_CUMPROD, tm_of(rows), 0, true, false, &out));
    EXPECT("cumprod", out, 1, 1, 0);
    OK(tm_scan(r, TM_CUMMAX, tm_of(rows), 0, false, false, &out));
    EXPECT("cummax", out, 1, 1, 5);
    OK(tm_scan(r, TM_CUMMIN, tm_of(rows), 0, false, true, &out));
    EXPECT("cummin", out, 0, 0, 5);
    OK(tm_sort(r, tm_of(rows), 0, true, &out));
    EXPECT("sort", out, 5, 1, 0);
    OK(tm_argsort(r, tm_of(rows), 0, false, &out));
    EXPECT("argsort", out, 1, 0, 2);
    OK(tm_sort_by_key(r, tm_of(rows), tm_of(rows), 0, false, &out, &second));
    EXPECT("sort_by_key", second, 0, 1, 5);
    OK(tm_topk(r, tm_of(rows), 2, 0, &out, &second));
    EXPECT("topk", out, 5, 1);
    EXPECT("places of topk", second, 2, 0);
    OK(tm_compact(r, tm_of(rows), tm_of(rows), &out, &second));
    EXPECT("compact", out, 1, 5, 0);
    EXPECT("count of compact", second, 2);
    OK(tm_nonzero(r, tm_of(rows), &out, &second));
    EXPECT("nonzero", out, 0, 2, 0);
    OK(tm_unique(r, tm_of(rows), &out, &second, &third, &fourth));
    EXPECT("unique", out, 0, 1, 5);
    EXPECT("inverse of unique", third, 1, 0, 2);
    OK(tm_searchsorted(r, out, tm_of(rows), true, &second));
    EXPECT("searchsorted", second, 2, 1, 3);
    size_t pair_of_rows[2] = {1, 2};
    tm_tensor *place;
    OK(tm_upload(gpu, TM_U32, pair_of_rows, 2, numbers, 2 * sizeof *numbers, &place));
    OK(tm_gather_nd(r, m, tm_of(place), &out));
    EXPECT("gather_nd", out, 2);
    OK(tm_gather_elements(r, m, tm_of(place), 0, &out));
    EXPECT("gather_elements", out, 2, -1.5);
    tm_tensor_free(place);
    tm_tensor_free(rows);
    // In place: what was recorded before sees the old contents.
    tm_tensor *state;
    OK(tm_upload(gpu, TM_U32, &three, 1, numbers, sizeof numbers, &state));
    tm_value before_update;
    OK(tm_copy(r, tm_of(state), &before_update));
    size_t from = 1, to = 2, one = 1;
    OK(tm_fill(r, TM_U32, &one, 1, 9.0, &out));
    OK(tm_update(r, state, &from, &to, 1, out));
    OK(tm_copy(r, tm_of(state), &out));
    EXPECT("update", out, 1, 9, 5);
    EXPECT("before the update", before_update, 1, 0, 5);
    OK(tm_binary(r, TM_ADD, tm_of(state), tm_of(state), &out));
    OK(tm_assign(r, state, out));
    OK(tm_copy(r, tm_of(state), &out));
    EXPECT("assign", out, 2, 18, 10);
    OK(tm_fill(r, TM_U32, &three, 1, 9.0, &out));
    CHECK(tm_update(r, state, &from, &to, 1, out) == TM_SHAPE);
    tm_tensor_free(state);
    OK(tm_copy(r, tm_of(x), &out));
    EXPECT("copy", out, 0.5, -1.5, 2, 0.25);
    OK(tm_fill(r, TM_I32, &four, 1, -7.0, &out));
    EXPECT("fill", out, -7, -7, -7, -7);
    OK(tm_iota(r, TM_U32, dims, 2, &out));
    EXPECT("iota", out, 0, 1, 2, 3);
    // By seed and place alone: all in [0, 1), and normal ones with the same seed are those of the same numbers.
    tm_value a, b, same;
    OK(tm_random_uniform(r, &four, 1, 7, &a));
    OK(tm_random_uniform(r, &four, 1, 7, &b));
    OK(tm_binary(r, TM_EQ, a, b, &same));
    EXPECT("random_uniform", same, 1, 1, 1, 1);
    OK(tm_binary_scalar(r, TM_LT, a, 1.0, &out));
    EXPECT("random_uniform below 1", out, 1, 1, 1, 1);
    OK(tm_random_normal(r, &four, 1, 7, &a));
    OK(tm_binary(r, TM_NE, a, b, &out));
    EXPECT("random_normal", out, 1, 1, 1, 1);
}

// What can be done with tensors without an operation.
static void tensors(void) {
    size_t dims[2] = {2, 3}, flat = 6, shape[TM_MAX_RANK], rank;
    uint16_t halves[6] = {0x3c00, 0xc000, 0, 0x3800, 0x7bff, 1}, got[6];  // 1, -2, 0, 0.5, 65504, 2^-24
    tm_tensor *t, *same, *zeros;
    OK(tm_upload(gpu, TM_F16, dims, 2, halves, sizeof halves, &t));
    OK(tm_tensor_reshape(t, &flat, 1, &same));
    OK(tm_tensor_shape(same, &shape, &rank));
    CHECK(rank == 1 && shape[0] == 6);
    OK(tm_tensor_shape(t, &shape, &rank));
    CHECK(rank == 2 && shape[0] == 2 && shape[1] == 3);
    tm_tensor_free(same);
    OK(tm_tensor_clone(t, &same));
    tm_tensor_free(t);
    tm_dtype dtype;
    OK(tm_tensor_dtype(same, &dtype));
    CHECK(dtype == TM_F16 && tm_tensor_size_bytes(same) == 12);
    OK(tm_tensor_read(same, got, sizeof got));
    CHECK(memcmp(got, halves, sizeof got) == 0);
    tm_tensor_free(same);
    uint32_t none[6];
    OK(tm_zeros(gpu, TM_U32, dims, 2, &zeros));
    OK(tm_tensor_read(zeros, none, sizeof none));
    for (int i = 0; i < 6; i++) CHECK(none[i] == 0);
    tm_tensor_free(zeros);
    const int64_t indices[3] = {2, -1, 2147483647}, far = 2147483648;
    size_t three = 3, single = 1;
    int32_t narrow[3];
    OK(tm_upload_indices(gpu, &three, 1, indices, 3, &t));
    OK(tm_tensor_read(t, narrow, sizeof narrow));
    for (int i = 0; i < 3; i++) CHECK(narrow[i] == indices[i]);
    tm_tensor_free(t);
    FAILS(tm_upload_indices(gpu, &single, 1, &far, 1, &t), TM_PARAMETER, "element 0 is 2147483648");
    // A tensor of no elements, and a scalar.
    size_t nothing = 0;
    float one = 1, back = 0;
    OK(tm_upload(gpu, TM_F32, &nothing, 1, NULL, 0, &t));
    OK(tm_tensor_read(t, NULL, 0));
    tm_tensor_free(t);
    OK(tm_upload(gpu, TM_F32, NULL, 0, &one, sizeof one, &t));
    OK(tm_tensor_read(t, &back, sizeof back));
    CHECK(back == 1);
    // What is kept of a tensor as it is has its contents.
    tm_recording *again;
    OK(tm_begin_recording(gpu, &again));
    OK(tm_keep(again, tm_of(t), &same));
    OK(tm_end_recording(again, NULL));
    tm_recording_free(again);
    OK(tm_tensor_read(same, &back, sizeof back));
    CHECK(back == 1);
    tm_tensor_free(same);
    tm_tensor_free(t);
}

// The process's own accelerator: two handles of one, which can be closed.
static void global(void) {
    tm_accelerator *first, *second;
    OK(tm_accelerator_global(&first));
    OK(tm_accelerator_global(&second));
    float one = 1;
    tm_tensor *t = vector_f32(first, &one, 1), *u;
    tm_recording *both;
    tm_value sum;
    OK(tm_begin_recording(second, &both));
    OK(tm_binary(both, TM_ADD, tm_of(t), tm_of(t), &sum));
    // Tensors of another accelerator are refused.
    FAILS(tm_binary(both, TM_ADD, tm_of(x), tm_of(x), &sum), TM_FOREIGN, "the tensor belongs to");
    OK(tm_binary(both, TM_ADD, tm_of(t), tm_of(t), &sum));
    OK(tm_keep(both, sum, &u));
    OK(tm_end_recording(both, NULL));
    OK(tm_tensor_read(u, &one, sizeof one));
    CHECK(one == 2);
    tm_recording_free(both);
    tm_tensor_free(t);
    tm_tensor_free(u);
    tm_accelerator_free(second);
    OK(tm_accelerator_close(first));
    tm_accelerator_free(first);
}

static double element(const void *data, size_t i, tm_dtype dtype) {
    switch (dtype) {
        case TM_F32: return ((const float *)data)[i];
        case TM_I32: return ((const int32_t *)data)[i];
        default: return ((const uint32_t *)data)[i];
    }
}

int main(void) {
    gpu = make_gpu();
    float ys[4] = {2, 2, 2, 0.25f};
    int32_t whole[4] = {-2, 1, 7, 0};
    size_t four = 4;
    x = vector_f32(gpu, XS, 4);
    y = vector_f32(gpu, ys, 4);
    OK(tm_upload(gpu, TM_I32, &four, 1, whole, sizeof whole, &ints));
    tensors();
    global();
    OK(tm_begin_recording(gpu, &r));
    unary();
    binary();
    reductions();
    norms();
    attention();
    products();
    pooling();
    layouts();
    char *text;
    OK(tm_explain(r, &text));
    CHECK(strstr(text, "matmul") != NULL);
    tm_string_free(text);
    OK(tm_end_recording(r, NULL));
    tm_recording_free(r);
    for (size_t k = 0; k < kept_count; k++) {
        uint32_t data[8];
        OK(tm_tensor_read(kept[k].tensor, data, 4 * kept[k].count));
        for (size_t i = 0; i < kept[k].count; i++) {
            double got = element(data, i, kept[k].dtype), expected = kept[k].expected[i];
            if (!(fabs(got - expected) <= 2e-6 * fmax(1, fabs(expected))))
                FAIL("%s (number %zu): [%zu] is %g, should be %g", kept[k].name, k, i, got, expected);
        }
        tm_tensor_free(kept[k].tensor);
    }
    tm_tensor_free(x);
    tm_tensor_free(y);
    tm_tensor_free(ints);
    finish(gpu);
    return 0;
}
