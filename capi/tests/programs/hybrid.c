// Chains of operations on slices, on the CPU and on the device, with the same results.

#include "check.h"

typedef struct {
    tm_tensor *weights;
    float x[6], rows[4], product[8], sum[2];
    uint32_t above[6];
    int32_t fails;
} Job;

static int32_t record(tm_chain *chain, void *user) {
    Job *job = user;
    if (job->fails) return job->fails;
    size_t dims[2] = {2, 3}, two = 2, order[2] = {1, 0}, begin[2] = {0, 0}, end[2] = {2, 2}, wide[2] = {4, 2};
    size_t none[2] = {0, 0}, one[2] = {1, 0}, shape[TM_MAX_RANK], rank;
    uint32_t numbers[2] = {1, 0};
    static uint32_t kept_numbers[2];
    memcpy(kept_numbers, numbers, sizeof numbers);
    tm_link x, w, n, y, z, s, out;
    tm_dtype dtype;
    OK(tm_chain_input(chain, TM_F32, dims, 2, job->x, sizeof job->x, &x));
    OK(tm_chain_tensor(chain, job->weights, &w));
    OK(tm_chain_input(chain, TM_U32, &two, 1, kept_numbers, sizeof kept_numbers, &n));
    FAILS(tm_chain_unary(chain, TM_EXP, 99, &out), TM_INVALID_ARGUMENT, "x is 99, which this chain did not give");
    FAILS(tm_chain_unary(chain, 1000, x, &out), TM_INVALID_ARGUMENT, "op is 1000");
    FAILS(tm_chain_input(chain, TM_F16, dims, 2, job->x, 12, &out), TM_TYPE, "f32, i32 or u32");
    FAILS(tm_chain_matmul(chain, x, x, NULL, &out), TM_SHAPE, "inner 3 != 2");
    CHECK(out == 0);

    // The product with the weights, and the rows of it in another order.
    tm_matmul_options how = tm_matmul_defaults();
    how.alpha = 2;
    OK(tm_chain_matmul(chain, x, w, &how, &y));
    how.step_count = 1;
    FAILS(tm_chain_matmul(chain, x, w, &how, &out), TM_INVALID_ARGUMENT, "options have 1 steps");
    OK(tm_chain_shape(chain, y, &shape, &rank));
    OK(tm_chain_dtype(chain, y, &dtype));
    CHECK(rank == 2 && shape[0] == 2 && shape[1] == 2 && dtype == TM_F32);
    OK(tm_chain_gather_rows(chain, y, n, &z));
    OK(tm_chain_output(chain, z, job->rows, sizeof job->rows));
    OK(tm_chain_concat(chain, (tm_link[2]){y, z}, 2, 0, &z));
    OK(tm_chain_output(chain, z, job->product, sizeof job->product));
    FAILS(tm_chain_output(chain, z, job->product, 4), TM_SHAPE, "");

    // Every other operation of chains, on small operands.
    OK(tm_chain_unary(chain, TM_RELU, y, &s));
    OK(tm_chain_leaky_relu(chain, s, 0.1f, &s));
    OK(tm_chain_elu(chain, s, 1, &s));
    OK(tm_chain_celu(chain, s, 1, &s));
    OK(tm_chain_clip(chain, s, 0, 100, &s));
    OK(tm_chain_binary(chain, TM_SUB, s, s, &s));
    OK(tm_chain_binary_scalar(chain, TM_ADD, s, 1, &s));
    OK(tm_chain_binary_scalar(chain, TM_POW, s, 2, &s));
    OK(tm_chain_softmax(chain, s, -1, &s));
    OK(tm_chain_log_softmax(chain, s, -1, &s));
    OK(tm_chain_unary(chain, TM_EXP, s, &s));
    OK(tm_chain_transpose(chain, s, &s));
    OK(tm_chain_permute(chain, s, order, 2, &s));
    OK(tm_chain_slice(chain, s, begin, end, 2, &s));
    OK(tm_chain_pad(chain, s, none, one, 2, 0, &s));
    OK(tm_chain_slice(chain, s, begin, end, 2, &s));
    OK(tm_chain_reduce(chain, TM_SUM, s, 1, false, &s));
    OK(tm_chain_dot(chain, s, s, &out));
    OK(tm_chain_stack(chain, (tm_link[2]){s, s}, 2, 0, &out));
    OK(tm_chain_slice(chain, out, (size_t[2]){0, 0}, (size_t[2]){1, 2}, 2, &out));
    OK(tm_chain_broadcast_to(chain, out, wide, 2, &out));
    OK(tm_chain_output(chain, s, job->sum, sizeof job->sum));
    OK(tm_chain_binary_scalar(chain, TM_GT, x, 3, &out));
    OK(tm_chain_select(chain, out, x, x, &s));
    OK(tm_chain_cast(chain, out, TM_I32, &s));
    OK(tm_chain_cast(chain, s, TM_U32, &s));
    OK(tm_chain_output(chain, s, job->above, sizeof job->above));
    return 0;
}

typedef struct {
    float image[9], taps[4], out[4];
} Filter;

static int32_t filter(tm_chain *chain, void *user) {
    Filter *f = user;
    size_t image[4] = {1, 1, 3, 3}, taps[4] = {1, 1, 2, 2};
    tm_link x, w, y;
    OK(tm_chain_input(chain, TM_F32, image, 4, f->image, sizeof f->image, &x));
    OK(tm_chain_input(chain, TM_F32, taps, 4, f->taps, sizeof f->taps, &w));
    OK(tm_chain_conv2d(chain, x, w, NULL, &y));
    return tm_chain_output(chain, y, f->out, sizeof f->out) != TM_OK;
}

int main(void) {
    // What the machine was measured to take is kept between runs.
    tm_accelerator *gpu = make_gpu_with(true);
    if (getenv("NO_VALIDATION") == NULL) OK(tm_hybrid_calibrate(gpu));
    float weights[6] = {1, 0, 0, 1, 1, 1};
    tm_tensor *w = upload_f32(gpu, weights, 3, 2);
    for (tm_policy policy = TM_POLICY_CPU; policy <= TM_POLICY_GPU; ++policy) {
        tm_hybrid *hybrid;
        OK(tm_hybrid_with_accelerator(gpu, policy, &hybrid));
        Job job = {.weights = w, .x = {1, 2, 3, 4, 5, 6}};
        tm_decision decision = {.size = sizeof decision};
        OK(tm_hybrid_chain(hybrid, record, &job, &decision));
        CHECK(decision.side == (policy == TM_POLICY_CPU ? TM_SIDE_CPU : TM_SIDE_GPU));
        CHECK(decision.why == TM_WHY_POLICY && decision.cpu_us > 0 && decision.gpu_us > 0);
        // 2 * x @ w is [8, 10; 20, 22].
        const float rows[4] = {20, 22, 8, 10}, product[8] = {8, 10, 20, 22, 20, 22, 8, 10};
        CHECK(memcmp(job.rows, rows, sizeof rows) == 0 && memcmp(job.product, product, sizeof product) == 0);
        CHECK(fabsf(job.sum[0] - 1) < 1e-5f && fabsf(job.sum[1] - 1) < 1e-5f);
        for (int i = 0; i < 6; ++i) CHECK(job.above[i] == (i >= 3));
        Filter f = {.image = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .taps = {1, 0, 0, 1}};
        OK(tm_hybrid_chain(hybrid, filter, &f, NULL));
        CHECK(f.out[0] == 6 && f.out[3] == 14);
        job.fails = 3;
        FAILS(tm_hybrid_chain(hybrid, record, &job, NULL), TM_CALLBACK, "record gave 3");
        char *text;
        OK(tm_hybrid_calibration(hybrid, &text));
        tm_hybrid *same;
        OK(tm_hybrid_with_calibration(gpu, text, policy, &same));
        tm_hybrid_free(same);
        FAILS(tm_hybrid_with_calibration(gpu, "nonsense", policy, &same), TM_INVALID_ARGUMENT, "no calibration");
        CHECK(same == NULL);
        tm_string_free(text);
        tm_hybrid_free(hybrid);
    }
    tm_hybrid *none;
    FAILS(tm_hybrid_new(7, &none), TM_INVALID_ARGUMENT, "policy is 7");
    tm_tensor_free(w);
    finish(gpu);
    return 0;
}
