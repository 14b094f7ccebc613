// Forgets to free a tensor, so that the tests know that a leak is found.

#include "check.h"

int main(void) {
    tm_accelerator *gpu = make_gpu();
    float one = 1;
    tm_tensor *forgotten = vector_f32(gpu, &one, 1);
    forgotten = NULL;
    (void)forgotten;
    tm_accelerator_free(gpu);
    return 0;
}
