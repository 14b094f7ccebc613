// What the test programs share: an accelerator under validation, and checks that say where they fail.

#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemill.h>

#define FAIL(...)                                          \
    do {                                                   \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);    \
        fprintf(stderr, __VA_ARGS__);                      \
        fprintf(stderr, "\n");                             \
        exit(1);                                           \
    } while (0)

#define CHECK(condition) \
    do {                 \
        if (!(condition)) FAIL("%s", #condition); \
    } while (0)

#define OK(call)                                                                                         \
    do {                                                                                                 \
        tm_status status_ = (call);                                                                      \
        if (status_ != TM_OK)                                                                            \
            FAIL("%s: %s: %s", #call, tm_status_name((int)status_), tm_last_error_message());            \
    } while (0)

// A call that must fail, with a message that has this text in it.
#define FAILS(call, code, text)                                                                          \
    do {                                                                                                 \
        tm_status status_ = (call);                                                                      \
        if (status_ != (code))                                                                           \
            FAIL("%s gave %s, not %s", #call, tm_status_name((int)status_), #code);                      \
        if (strstr(tm_last_error_message(), (text)) == NULL)                                             \
            FAIL("%s said \"%s\", not \"%s\"", #call, tm_last_error_message(), (text));                  \
    } while (0)

static int complaints = 0;

static inline void complain(const char *message, void *user) {
    fprintf(stderr, "validation: %s\n", message);
    ++*(int *)user;
}

// Under validation, unless NO_VALIDATION is set: leaks are looked for without the layer, which leaks itself.
static inline tm_accelerator *make_gpu_with(bool cache) {
    tm_config config;
    OK(tm_config_init(&config, sizeof config));
    config.validation = getenv("NO_VALIDATION") == NULL;
    config.memory_checks = true;
    config.no_cache = !cache;
    config.prewarm = TM_PREWARM_OFF;
    config.on_message = complain;
    config.on_message_user = &complaints;
    tm_accelerator *gpu;
    OK(tm_accelerator_new(&config, &gpu));
    return gpu;
}

static inline tm_accelerator *make_gpu(void) {
    return make_gpu_with(false);
}

// Nothing may be left, and the layer must have had nothing to say.
static inline void finish(tm_accelerator *gpu) {
    OK(tm_accelerator_close(gpu));
    tm_accelerator_free(gpu);
    CHECK(complaints == 0);
    printf("ok\n");
}

static inline tm_tensor *upload_f32(tm_accelerator *gpu, const float *data, size_t rows, size_t columns) {
    size_t dims[2] = {rows, columns};
    tm_tensor *tensor;
    OK(tm_upload(gpu, TM_F32, dims, 2, data, rows * columns * sizeof *data, &tensor));
    return tensor;
}

static inline tm_tensor *vector_f32(tm_accelerator *gpu, const float *data, size_t n) {
    tm_tensor *tensor;
    OK(tm_upload(gpu, TM_F32, &n, 1, data, n * sizeof *data, &tensor));
    return tensor;
}

#endif
