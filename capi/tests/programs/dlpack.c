// Tensors from and to another library of the process, by DLPack: its structs are written down here as dlpack.h has them.

#include "check.h"

typedef struct {
    int32_t type, id;
} DLDevice;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

enum { CPU = 1, CUDA = 2, FLOAT = 2, ROWS = 64, COLUMNS = 32 };

static int released = 0;

static void release(DLManagedTensor *self) {
    free(self->manager_ctx);
    free(self);
    ++released;
}

// The other library's tensor of 64 x 32 floats that count up; its data begin 64 bytes into its memory.
static DLManagedTensor *theirs(const int64_t *strides) {
    static int64_t shape[2] = {ROWS, COLUMNS};
    DLManagedTensor *managed = calloc(1, sizeof *managed);
    char *memory = aligned_alloc(65536, 65536);
    float *data = (float *)(memory + 64);
    for (int i = 0; i < ROWS * COLUMNS; ++i) data[i] = (float)i;
    DLTensor tensor = {memory, {CPU, 0}, 2, {FLOAT, 32, 1}, shape, (int64_t *)strides, 64};
    managed->dl_tensor = tensor;
    managed->manager_ctx = memory;
    managed->deleter = release;
    return managed;
}

static void imports(tm_accelerator *gpu) {
    static const int64_t dense[2] = {COLUMNS, 1}, transposed[2] = {1, ROWS};
    const int64_t *accepted[] = {NULL, dense};
    tm_tensor *x;
    for (int i = 0; i < 2; ++i) {
        float got[ROWS * COLUMNS];
        OK(tm_tensor_from_dlpack(gpu, theirs(accepted[i]), &x));
        CHECK(released == i);
        OK(tm_tensor_read(x, got, sizeof got));
        CHECK(got[0] == 0 && got[ROWS * COLUMNS - 1] == ROWS * COLUMNS - 1);
        tm_tensor_free(x);
        OK(tm_synchronize(gpu));
        OK(tm_trim(gpu, NULL));
        CHECK(released == i + 1);
    }
    // What can't be taken is given back, too.
    FAILS(tm_tensor_from_dlpack(gpu, theirs(transposed), &x), TM_SHAPE, "stride 64, and 1");
    CHECK(x == NULL && released == 3);
    DLManagedTensor *managed = theirs(NULL);
    managed->dl_tensor.device.type = CUDA;
    FAILS(tm_tensor_from_dlpack(gpu, managed, &x), TM_INVALID_ARGUMENT, "device of type 2");
    managed = theirs(NULL);
    managed->dl_tensor.dtype.bits = 64;
    FAILS(tm_tensor_from_dlpack(gpu, managed, &x), TM_TYPE, "code 2, 64 bits");
    managed = theirs(NULL);
    managed->dl_tensor.ndim = 9;
    FAILS(tm_tensor_from_dlpack(gpu, managed, &x), TM_SHAPE, "rank 9");
    int64_t negative[2] = {2, -3};
    managed = theirs(NULL);
    managed->dl_tensor.shape = negative;
    FAILS(tm_tensor_from_dlpack(gpu, managed, &x), TM_SHAPE, "-3");
    FAILS(tm_tensor_from_dlpack(NULL, theirs(NULL), &x), TM_INVALID_ARGUMENT, "gpu is NULL");
    CHECK(released == 8);
}

static void exports(tm_accelerator *gpu) {
    const uint32_t data[3] = {7, 8, 9};
    size_t dims[2] = {3, 1};
    tm_tensor *x, *empty, *back;
    DLManagedTensor *managed;
    OK(tm_upload(gpu, TM_U32, dims, 2, data, sizeof data, &x));
    OK(tm_tensor_to_dlpack(x, (void **)&managed));
    // It stays when the tensor changes.
    const uint32_t other[3] = {0, 0, 0};
    OK(tm_tensor_write(x, other, sizeof other));
    const DLTensor *tensor = &managed->dl_tensor;
    CHECK(tensor->device.type == CPU && tensor->ndim == 2 && tensor->shape[0] == 3 && tensor->shape[1] == 1);
    CHECK(tensor->dtype.code == 1 && tensor->dtype.bits == 32 && tensor->dtype.lanes == 1);
    CHECK(tensor->strides == NULL && tensor->byte_offset == 0);
    CHECK(memcmp(tensor->data, data, sizeof data) == 0);
    // And back, which gives it to the library.
    uint32_t got[3];
    OK(tm_tensor_from_dlpack(gpu, managed, &back));
    OK(tm_tensor_read(back, got, sizeof got));
    CHECK(memcmp(got, data, sizeof data) == 0);
    OK(tm_empty(gpu, TM_F16, dims, 2, &empty));
    FAILS(tm_tensor_to_dlpack(empty, (void **)&managed), TM_NO_CONTENTS, "[3, 1]");
    CHECK(managed == NULL);
    OK(tm_tensor_to_dlpack(x, (void **)&managed));
    managed->deleter(managed);
    tm_tensor_free(x);
    tm_tensor_free(back);
    tm_tensor_free(empty);
}

int main(void) {
    tm_accelerator *gpu = make_gpu();
    imports(gpu);
    exports(gpu);
    finish(gpu);
    return 0;
}
