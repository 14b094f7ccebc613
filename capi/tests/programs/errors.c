// Bad input gives a code and a sentence, and leaves everything as it was.

#include "check.h"

int main(void) {
    CHECK(tm_abi_version() == TM_ABI_VERSION);
    CHECK(strcmp(tm_version(), VERSION) == 0);
    CHECK(strcmp(tm_last_error_message(), "") == 0);
    OK(tm_check_abi(TM_ABI_VERSION));
    FAILS(tm_check_abi(TM_ABI_VERSION + 1), TM_ABI_MISMATCH, "the program was compiled against ABI 3, this library (" VERSION ") has 2");
    tm_config config;
    memset(&config, 0xff, sizeof config);
    FAILS(tm_config_init(&config, 1), TM_ABI_MISMATCH, "the size of tm_config is 1, and this library has ");
    CHECK(config.size == SIZE_MAX);
    CHECK(strcmp(tm_status_name(TM_SHAPE), "TM_SHAPE") == 0);
    CHECK(strcmp(tm_status_name(1234), "unknown") == 0);

    // Freeing NULL does nothing.
    tm_accelerator_free(NULL);
    tm_tensor_free(NULL);
    tm_recording_free(NULL);
    tm_submission_free(NULL);
    tm_kernel_free(NULL);
    tm_weights_free(NULL);
    tm_plan_free(NULL);
    tm_stream_free(NULL);
    tm_batch_free(NULL);
    tm_session_free(NULL);
    tm_run_free(NULL);
    tm_string_free(NULL);

    tm_accelerator *gpu = make_gpu(), *none = gpu;
    OK(tm_config_init(&config, sizeof config));
    config.device_name = "no such device";
    FAILS(tm_accelerator_new(&config, &none), TM_NO_DEVICE, "no device matches");
    CHECK(none == NULL);
    config.device_index = 0;
    FAILS(tm_accelerator_new(&config, &none), TM_INVALID_ARGUMENT, "device_index and device_name are both set");
    OK(tm_config_init(&config, sizeof config));
    config.prewarm = 77;
    FAILS(tm_accelerator_new(&config, &none), TM_INVALID_ARGUMENT, "prewarm is 77, which is none of the header's");
    config.size = 0;
    FAILS(tm_accelerator_new(&config, &none), TM_ABI_MISMATCH, "the size of tm_config is 0, and this library has ");
    OK(tm_config_init(&config, sizeof config));
    config.device_kind = 9;
    FAILS(tm_accelerator_new(&config, &none), TM_INVALID_ARGUMENT, "device_kind is 9, which is none of the header's");
    config.device_kind = TM_DEVICE_CPU;
    config.device_index = 0;
    FAILS(tm_accelerator_new(&config, &none), TM_INVALID_ARGUMENT, "device_kind is set beside device_index or device_name");
    config.device_index = -1;
    tm_variant variant = {.family = "matmul", .name = "no such variant"};
    config.variants = &variant;
    config.variant_count = 1;
    config.untuned = true;
    FAILS(tm_accelerator_new(&config, &none), TM_KERNEL, "no such variant");
    OK(tm_config_init(&config, sizeof config));
    config.device_name = "\xff\xfe";
    FAILS(tm_accelerator_new(&config, &none), TM_INVALID_ARGUMENT, "device_name is not UTF-8");
    FAILS(tm_accelerator_new(NULL, NULL), TM_INVALID_ARGUMENT, "tm_accelerator_new: gpu is NULL");

    // Tensors.
    float data[6] = {1, 2, 3, 4, 5, 6};
    size_t dims[2] = {2, 3}, many[TM_MAX_RANK + 1] = {1};
    tm_tensor *x = NULL, *y = NULL;
    FAILS(tm_upload(NULL, TM_F32, dims, 2, data, sizeof data, &x), TM_INVALID_ARGUMENT, "tm_upload: gpu is NULL");
    FAILS(tm_upload(gpu, TM_F32, dims, 2, data, sizeof data, NULL), TM_INVALID_ARGUMENT, "tm_upload: tensor is NULL");
    FAILS(tm_upload(gpu, TM_F32, NULL, 2, data, sizeof data, &x), TM_INVALID_ARGUMENT, "dims is NULL");
    FAILS(tm_upload(gpu, TM_F32, dims, 2, NULL, sizeof data, &x), TM_INVALID_ARGUMENT, "data is NULL, and 6 elements are to be there");
    FAILS(tm_upload(gpu, 99, dims, 2, data, sizeof data, &x), TM_INVALID_ARGUMENT, "dtype is 99");
    FAILS(tm_upload(gpu, TM_F32, dims, 2, data, 23, &x), TM_INVALID_ARGUMENT, "data has 23 bytes, and elements have 4");
    FAILS(tm_upload(gpu, TM_F32, dims, 2, (char *)data + 1, 20, &x), TM_INVALID_ARGUMENT, "data is not aligned to 4 bytes");
    FAILS(tm_upload(gpu, TM_F32, dims, 2, data, 20, &x), TM_SHAPE, "upload: shape [2, 3] holds 6 elements, the data has 5");
    FAILS(tm_upload(gpu, TM_F32, many, TM_MAX_RANK + 1, data, 4, &x), TM_SHAPE, "rank 9 is above the maximum of 8; merge dimensions");
    CHECK(x == NULL);
    size_t huge[2] = {SIZE_MAX, SIZE_MAX};
    FAILS(tm_zeros(gpu, TM_F32, huge, 2, &x), TM_TOO_LARGE, "the device allows");
    OK(tm_upload(gpu, TM_F32, dims, 2, data, sizeof data, &x));
    FAILS(tm_tensor_read(x, data, 20), TM_SHAPE, "read: shape [2, 3] holds 6 elements, the data has 5");
    FAILS(tm_tensor_read(x, NULL, sizeof data), TM_INVALID_ARGUMENT, "data is NULL");
    FAILS(tm_tensor_read(NULL, data, sizeof data), TM_INVALID_ARGUMENT, "tensor is NULL");
    FAILS(tm_tensor_write(x, data, 4), TM_SHAPE, "write");
    FAILS(tm_tensor_reshape(x, dims, 1, &y), TM_SHAPE, "reshape");
    FAILS(tm_tensor_clone(NULL, &y), TM_INVALID_ARGUMENT, "tensor is NULL");
    FAILS(tm_tensor_shape(x, NULL, NULL), TM_INVALID_ARGUMENT, "dims is NULL");
    OK(tm_empty(gpu, TM_F32, dims, 2, &y));
    FAILS(tm_tensor_read(y, data, sizeof data), TM_NO_CONTENTS, "was never written");
    tm_tensor_free(y);
    CHECK(tm_tensor_size_bytes(x) == sizeof data && tm_tensor_size_bytes(NULL) == 0);

    // Recordings: an operation that fails leaves nothing behind, and says which numbers disagree.
    tm_recording *r = NULL, *other = NULL;
    FAILS(tm_begin_recording(NULL, &r), TM_INVALID_ARGUMENT, "gpu is NULL");
    OK(tm_begin_recording(gpu, &r));
    OK(tm_begin_recording(gpu, &other));
    tm_value v = {0}, w = {.id = 5};
    FAILS(tm_matmul(r, tm_of(x), tm_of(x), NULL, &v), TM_SHAPE, "matmul: lhs [2, 3] x rhs [2, 3]: inner 3 != 2");
    CHECK(v.id == 0 && v.tensor == NULL);
    FAILS(tm_unary(r, TM_EXP, tm_of(NULL), &v), TM_INVALID_ARGUMENT, "tm_unary: x is no value and no tensor");
    FAILS(tm_unary(r, 1000, tm_of(x), &v), TM_INVALID_ARGUMENT, "tm_unary: op is 1000");
    FAILS(tm_binary(r, 1000, tm_of(x), tm_of(x), &v), TM_INVALID_ARGUMENT, "op is 1000");
    FAILS(tm_binary_scalar(r, TM_MUL, tm_of(x), 1e300, &v), TM_PARAMETER, "the number is 1e300, which no f32 can hold");
    FAILS(tm_reduce(r, 1000, tm_of(x), 0, false, &v), TM_INVALID_ARGUMENT, "op is 1000");
    FAILS(tm_reduce(r, TM_SUM, tm_of(x), 2, false, &v), TM_SHAPE, "axis 2 is out of range for rank 2");
    FAILS(tm_unary(NULL, TM_EXP, tm_of(x), &v), TM_INVALID_ARGUMENT, "recording is NULL");
    FAILS(tm_unary(r, TM_EXP, tm_of(x), NULL), TM_INVALID_ARGUMENT, "out is NULL");
    FAILS(tm_unary(r, TM_EXP, w, &v), TM_FOREIGN, "x belongs to another recording");
    FAILS(tm_concat(r, NULL, 0, 0, &v), TM_SHAPE, "no operands");
    OK(tm_unary(r, TM_EXP, tm_of(x), &v));
    FAILS(tm_unary(other, TM_EXP, v, &w), TM_FOREIGN, "x belongs to another recording");
    w = (tm_value){.id = v.id + 1};
    FAILS(tm_unary(r, TM_EXP, w, &w), TM_INVALID_ARGUMENT, "x has an id that was not given out");
    tm_matmul_options how = tm_matmul_defaults();
    tm_step steps[2] = {{.op = TM_STEP_RELU}, {.op = TM_STEP_BIAS}};
    how.steps = steps;
    how.step_count = 2;
    how.transpose_rhs = true;
    FAILS(tm_matmul(r, tm_of(x), tm_of(x), &how, &w), TM_INVALID_ARGUMENT, "step 1 is a bias, which only the first can be");
    steps[1].op = 1000;
    FAILS(tm_matmul(r, tm_of(x), tm_of(x), &how, &w), TM_INVALID_ARGUMENT, "the op of a step is 1000");
    how.steps = NULL;
    FAILS(tm_matmul(r, tm_of(x), tm_of(x), &how, &w), TM_INVALID_ARGUMENT, "steps is NULL");
    FAILS(tm_keep(r, (tm_value){0}, &y), TM_INVALID_ARGUMENT, "x is no value and no tensor");

    // What was kept has no contents until the recording ends.
    OK(tm_keep(r, v, &y));
    FAILS(tm_tensor_read(y, data, sizeof data), TM_NO_CONTENTS, "not submitted");
    tm_submission *done;
    OK(tm_end_recording(r, &done));
    OK(tm_submission_wait(done, 10000000000u));
    bool complete = false;
    OK(tm_submission_is_complete(done, &complete));
    CHECK(complete && tm_submission_number(done) > 0 && tm_submission_number(NULL) == 0);
    char *json = (char *)data;
    FAILS(tm_submission_profile_json(done, &json), TM_PROFILE, "was not profiled");
    CHECK(json == NULL);
    OK(tm_tensor_read(y, data, sizeof data));
    CHECK(fabsf(data[1] - expf(2)) < 1e-5f);
    FAILS(tm_unary(r, TM_EXP, v, &v), TM_CLOSED, "tm_unary: the recording has ended");
    tm_submission *again = done;
    FAILS(tm_end_recording(r, &again), TM_CLOSED, "the recording has ended");
    CHECK(again == NULL);
    tm_tensor_free(y);
    OK(tm_unary(other, TM_EXP, tm_of(x), &v));
    OK(tm_keep(other, v, &y));
    tm_recording_free(other);
    FAILS(tm_tensor_read(y, data, sizeof data), TM_NO_CONTENTS, "dropped or failed");

    // Kernels.
    uint32_t nonsense[4] = {1, 2, 3, 4};
    tm_kernel *kernel = NULL;
    FAILS(tm_kernel_from_spirv("nonsense", nonsense, 4, &kernel), TM_KERNEL, "kernel: ");
    FAILS(tm_kernel_from_spirv(NULL, nonsense, 4, &kernel), TM_INVALID_ARGUMENT, "name is NULL");
    FAILS(tm_kernel_from_spirv("nothing", NULL, 4, &kernel), TM_INVALID_ARGUMENT, "words is NULL");
    FAILS(tm_kernel_from_spirv_guarded("nonsense", nonsense, 4, &kernel), TM_KERNEL, "kernel: ");
    FAILS(tm_kernel_from_spirv_guarded(NULL, nonsense, 4, &kernel), TM_INVALID_ARGUMENT, "name is NULL");
    CHECK(kernel == NULL);

    // What is left is counted when the accelerator is closed, which it is in any case.
    FAILS(tm_accelerator_close(gpu), TM_STILL_IN_USE, "2 tensors alive, 1 other handles");
    FAILS(tm_accelerator_close(gpu), TM_CLOSED, "the accelerator is closed");
    FAILS(tm_begin_recording(gpu, &other), TM_CLOSED, "the accelerator is closed");
    tm_tensor_free(x);
    tm_tensor_free(y);
    tm_submission_free(done);
    tm_recording_free(r);
    tm_accelerator_free(gpu);
    CHECK(complaints == 0);
    printf("ok\n");
    return 0;
}
