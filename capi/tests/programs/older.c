// A program that was compiled against the first header of this ABI, whose structs may be shorter than the library's. They lie at the end
// of allocations, so that an access behind them is seen.

#include "check.h"

int main(void) {
    OK(tm_check_abi(TM_ABI_VERSION));
    tm_config *config = malloc(sizeof *config);
    OK(tm_config_init(config, sizeof *config));
    CHECK(config->size == sizeof *config && config->device_index == -1 && config->prewarm == TM_PREWARM_BACKGROUND);
    config->validation = getenv("NO_VALIDATION") == NULL;
    config->no_cache = true;
    config->prewarm = TM_PREWARM_OFF;
    config->on_message = complain;
    config->on_message_user = &complaints;
    tm_accelerator *gpu;
    OK(tm_accelerator_new(config, &gpu));
    free(config);

    float a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, got[4];
    tm_tensor *lhs = upload_f32(gpu, a, 2, 2), *rhs = upload_f32(gpu, b, 2, 2), *kept;
    tm_conv2d_options *conv = malloc(sizeof *conv);
    OK(tm_conv2d_options_init(conv, sizeof *conv));
    CHECK(conv->stride[0] == 1 && conv->padding[1] == 0 && conv->groups == 0);
    free(conv);
    tm_recording *r;
    tm_value product;
    tm_matmul_options *options = malloc(sizeof *options);
    OK(tm_matmul_options_init(options, sizeof *options));
    CHECK(options->alpha == 1);
    options->alpha = 2;
    OK(tm_begin_recording(gpu, &r));
    OK(tm_matmul(r, tm_of(lhs), tm_of(rhs), options, &product));
    free(options);
    OK(tm_keep(r, product, &kept));
    OK(tm_end_recording(r, NULL));
    OK(tm_tensor_read(kept, got, sizeof got));
    CHECK(got[0] == 2 && got[3] == 8);
    tm_recording_free(r);
    tm_tensor_free(lhs);
    tm_tensor_free(rhs);
    tm_tensor_free(kept);
    finish(gpu);
    return 0;
}
