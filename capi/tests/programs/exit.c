// A host that ends while the library still has work on its device, and makes pipelines ahead in the background: nothing is freed, and the
// process ends as if there were no library. The host is static: its lock is used until then.

#include "host.h"

#include <time.h>

static Host host = {.prewarm = true};

int main(void) {
    OK(tm_alone_at_the_loader(make_instance, &host));
    tm_accelerator *gpu;
    OK(offer(&host, false, &gpu));
    float data[256] = {1};
    tm_tensor *x = upload_f32(gpu, data, 16, 16), *y;
    for (int i = 0; i < 4; ++i) {
        tm_recording *r;
        tm_value product;
        OK(tm_begin_recording(gpu, &r));
        OK(tm_matmul(r, tm_of(x), tm_of(x), NULL, &product));
        OK(tm_keep(r, product, &y));
        OK(tm_end_recording(r, NULL));
    }
    // Long enough for the background to begin.
    struct timespec rest = {.tv_nsec = 100000000};
    nanosleep(&rest, NULL);
    CHECK(complaints == 0);
    printf("ok\n");
    return 0;
}
