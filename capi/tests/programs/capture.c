// A capture with the real RenderDoc.
//
// usage: capture NAME; leaves NAME.rdc.

#include "check.h"

typedef struct {
    tm_accelerator *gpu;
    tm_tensor *x;
    int32_t fails;
} Work;

static int32_t work(void *user) {
    Work *work = user;
    if (work->fails) return work->fails;
    tm_recording *r;
    tm_value sum;
    tm_tensor *kept;
    OK(tm_begin_recording(work->gpu, &r));
    OK(tm_binary(r, TM_ADD, tm_of(work->x), tm_of(work->x), &sum));
    OK(tm_keep(r, sum, &kept));
    OK(tm_end_recording(r, NULL));
    tm_recording_free(r);
    tm_tensor_free(kept);
    return 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    tm_config config = tm_config_defaults();
    config.renderdoc = config.no_cache = true;
    config.prewarm = TM_PREWARM_OFF;
    tm_accelerator *gpu;
    OK(tm_accelerator_new(&config, &gpu));
    float data[3] = {1, 2, 3};
    Work job = {.gpu = gpu, .x = vector_f32(gpu, data, 3)};
    char *file, expected[4096];
    OK(tm_capture(gpu, argv[1], work, &job, &file));
    CHECK(snprintf(expected, sizeof expected, "%s.rdc", argv[1]) < (int)sizeof expected);
    CHECK(strcmp(file, expected) == 0);
    tm_string_free(file);
    job.fails = 5;
    FAILS(tm_capture(gpu, argv[1], work, &job, &file), TM_CALLBACK, "work gave 5");
    CHECK(file == NULL);
    tm_tensor_free(job.x);
    finish(gpu);
    return 0;
}
