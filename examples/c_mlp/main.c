// The network of `./dev tour` through the C ABI: matmul + bias + relu, matmul, softmax, checked against the CPU.
//
//     ./dev c_mlp
//
// usage: c_mlp [FILE]; with FILE it runs under the validation layer and leaves the result there, as raw floats.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tidemill.h>

enum { BATCH = 64, WIDE = 784, HIDDEN = 256, CLASSES = 10 };

// How far the device may be from the CPU: sums of 784 products in f32, against f64.
static const double TOLERANCE = 1e-5;

static float x[BATCH * WIDE], w1[WIDE * HIDDEN], b1[HIDDEN], w2[HIDDEN * CLASSES];
static float result[BATCH * CLASSES];

// Every call is checked; what went wrong is said in a sentence.
#define TRY(call)                                                                                     \
    do {                                                                                              \
        tm_status status_ = (call);                                                                   \
        if (status_ != TM_OK) {                                                                       \
            fprintf(stderr, "%s: %s\n", tm_status_name((int)status_), tm_last_error_message());       \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

static void wave(float *out, size_t n, float step, float scale) {
    for (size_t i = 0; i < n; i++) out[i] = scale * sinf((float)i * step);
}

static tm_tensor *upload(tm_accelerator *gpu, const float *data, size_t rows, size_t columns) {
    size_t dims[2] = {rows, columns};
    tm_tensor *tensor;
    // A vector has one dimension.
    TRY(tm_upload(gpu, TM_F32, rows == 1 ? dims + 1 : dims, rows == 1 ? 1 : 2, data, rows * columns * sizeof *data,
                  &tensor));
    return tensor;
}

static void run(tm_accelerator *gpu) {
    tm_tensor *tx = upload(gpu, x, BATCH, WIDE), *tw1 = upload(gpu, w1, WIDE, HIDDEN);
    tm_tensor *tb1 = upload(gpu, b1, 1, HIDDEN), *tw2 = upload(gpu, w2, HIDDEN, CLASSES);

    tm_recording *r;
    TRY(tm_begin_recording(gpu, &r));
    tm_step steps[2] = {{.op = TM_STEP_BIAS, .operand = tm_of(tb1)}, {.op = TM_STEP_RELU}};
    tm_matmul_options with_bias_and_relu = tm_matmul_defaults();
    with_bias_and_relu.steps = steps;
    with_bias_and_relu.step_count = 2;
    tm_value h, y, p;
    TRY(tm_matmul(r, tm_of(tx), tm_of(tw1), &with_bias_and_relu, &h));
    TRY(tm_matmul(r, h, tm_of(tw2), NULL, &y));
    TRY(tm_softmax(r, y, -1, &p));
    tm_tensor *kept;
    TRY(tm_keep(r, p, &kept));  // the one value that outlives the recording
    tm_submission *done;
    TRY(tm_end_recording(r, &done));  // one submission; nothing is waited for
    TRY(tm_submission_wait(done, TM_FOREVER));
    TRY(tm_tensor_read(kept, result, sizeof result));

    // Every object is freed once, in any order.
    tm_submission_free(done);
    tm_recording_free(r);
    tm_tensor_free(kept);
    tm_tensor_free(tx);
    tm_tensor_free(tw1);
    tm_tensor_free(tb1);
    tm_tensor_free(tw2);
}

// The same on the CPU, in f64: the worst difference.
static double worst_error(void) {
    double worst = 0.0;
    for (int row = 0; row < BATCH; row++) {
        double h[HIDDEN], y[CLASSES], largest = -INFINITY, sum = 0.0;
        for (int j = 0; j < HIDDEN; j++) {
            h[j] = b1[j];
            for (int i = 0; i < WIDE; i++) h[j] += (double)x[row * WIDE + i] * w1[i * HIDDEN + j];
            h[j] = fmax(h[j], 0.0);
        }
        for (int j = 0; j < CLASSES; j++) {
            y[j] = 0.0;
            for (int i = 0; i < HIDDEN; i++) y[j] += h[i] * w2[i * CLASSES + j];
            largest = fmax(largest, y[j]);
        }
        for (int j = 0; j < CLASSES; j++) sum += y[j] = exp(y[j] - largest);
        for (int j = 0; j < CLASSES; j++) {
            double error = fabs(result[row * CLASSES + j] - y[j] / sum);
            // NaN is not small, either.
            if (!(error <= worst)) worst = error;
        }
    }
    return worst;
}

static void complain(const char *message, void *user) {
    fprintf(stderr, "validation: %s\n", message);
    *(int *)user = 1;
}

int main(int argc, char **argv) {
    int complaints = 0;
    tm_config config;
    TRY(tm_config_init(&config, sizeof config));
    if (argc > 1) {
        config.validation = config.memory_checks = config.no_cache = true;
        config.prewarm = TM_PREWARM_OFF;
        config.on_message = complain;
        config.on_message_user = &complaints;
    }
    tm_accelerator *gpu;
    TRY(tm_accelerator_new(&config, &gpu));
    wave(x, BATCH * WIDE, 0.37f, 1.0f);
    wave(w1, WIDE * HIDDEN, 0.11f, 0.1f);
    wave(b1, HIDDEN, 0.73f, 0.5f);
    wave(w2, HIDDEN * CLASSES, 0.53f, 0.2f);
    run(gpu);
    TRY(tm_accelerator_close(gpu));  // says so if anything was not freed
    tm_accelerator_free(gpu);

    double error = worst_error();
    printf("tidemill %s: %d-%d-%d, a batch of %d: worst error %.1e, %s\n", tm_version(), WIDE, HIDDEN, CLASSES, BATCH,
           error, error <= TOLERANCE ? "equal to the CPU's" : "WRONG");
    if (argc > 1) {
        FILE *file = fopen(argv[1], "wb");
        if (file == NULL || fwrite(result, sizeof result, 1, file) != 1 || fclose(file) != 0) {
            perror(argv[1]);
            return 1;
        }
    }
    return error <= TOLERANCE && complaints == 0 ? 0 : 1;
}
