// A host with a VkDevice of its own lets the library compute on it: shared buffers, semaphores in both directions, and operations in the
// host's own command buffers.

#include "host.h"

enum { N = 1024, BYTES = N * sizeof(float) };

static const size_t n_elements = N;

static uint32_t bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static tm_tensor *wrap(tm_accelerator *gpu, Shared shared) {
    tm_host_buffer buffer = {
        .size = sizeof buffer, .buffer = (uint64_t)shared.buffer, .size_bytes = BYTES, .usage = TM_BUFFER_USAGE};
    tm_tensor *tensor, *none;
    OK(tm_wrap_buffer(gpu, &buffer, TM_F32, &n_elements, 1, &tensor));
    buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    FAILS(tm_wrap_buffer(gpu, &buffer, TM_F32, &n_elements, 1, &none), TM_HOST, "TRANSFER_SRC");
    buffer.usage = TM_BUFFER_USAGE;
    buffer.size_bytes = BYTES - 4;
    FAILS(tm_wrap_buffer(gpu, &buffer, TM_F32, &n_elements, 1, &none), TM_HOST, "4096");
    buffer.buffer = 0;
    FAILS(tm_wrap_buffer(gpu, &buffer, TM_F32, &n_elements, 1, &none), TM_INVALID_ARGUMENT, "buffer is VK_NULL_HANDLE");
    buffer.size = 3;
    FAILS(tm_wrap_buffer(gpu, &buffer, TM_F32, &n_elements, 1, &none), TM_ABI_MISMATCH, "the size of tm_host_buffer is 3");
    CHECK(none == NULL);
    return tensor;
}

// The host fills its buffer (1), the library doubles it behind that (2), and the host copies the result behind that (3).
static void semaphores(Host *host, tm_accelerator *gpu, tm_tensor *x, Shared shared, Shared result) {
    VkCommandBuffer fill = begin_commands(host);
    vkCmdFillBuffer(fill, shared.buffer, 0, BYTES, bits(21));
    submit_commands(host, fill, VK_NULL_HANDLE, 0, 1);

    tm_recording *r;
    tm_value doubled;
    tm_tensor *y;
    tm_submission *submission;
    OK(tm_begin_recording(gpu, &r));
    OK(tm_binary(r, TM_ADD, tm_of(x), tm_of(x), &doubled));
    OK(tm_keep(r, doubled, &y));
    FAILS(tm_wait_semaphore(r, 0, 1), TM_INVALID_ARGUMENT, "semaphore is VK_NULL_HANDLE");
    OK(tm_wait_semaphore(r, (uint64_t)host->timeline, 1));
    OK(tm_signal_semaphore(r, (uint64_t)host->timeline, 2));
    OK(tm_end_recording(r, &submission));
    tm_recording_free(r);

    uint64_t semaphore, value;
    OK(tm_submission_raw_point(submission, &semaphore, &value));
    tm_buffer_range range = {.size = sizeof range};
    tm_buffer_hold *hold;
    OK(tm_tensor_raw_buffer(y, &range, &hold));
    CHECK(range.size_bytes == BYTES && range.ready_semaphore == semaphore && range.ready_value == value);
    CHECK(tm_submission_number(submission) == value);
    VkBufferCopy region = {.srcOffset = range.offset_bytes, .size = BYTES};
    VkCommandBuffer copy = begin_commands(host);
    vkCmdCopyBuffer(copy, (VkBuffer)range.buffer, result.buffer, 1, &region);
    submit_commands(host, copy, (VkSemaphore)range.ready_semaphore, range.ready_value, 3);
    wait_host(host, 3);
    CHECK(result.mapped[0] == 42 && result.mapped[N - 1] == 42);
    tm_buffer_hold_free(hold);
    tm_tensor_free(y);
    tm_submission_free(submission);
}

// A plan that waits for the host (4), writes the host's memory, and signals (5); then a write from the CPU into the same memory.
static void plans(Host *host, tm_accelerator *gpu, tm_tensor *x, tm_tensor *output, Shared shared, Shared written) {
    tm_recording *r;
    tm_value value;
    tm_plan *plan;
    OK(tm_begin_recording(gpu, &r));
    OK(tm_binary_scalar(r, TM_MUL, tm_of(x), 3, &value));
    OK(tm_keep_in_buffer(r, value, output));
    FAILS(tm_keep_in_buffer(r, value, x), TM_BINDING, "");
    OK(tm_into_plan(r, &plan));
    tm_recording_free(r);
    VkCommandBuffer fill = begin_commands(host);
    vkCmdFillBuffer(fill, shared.buffer, 0, BYTES, bits(5));
    OK(tm_plan_wait_semaphore(plan, (uint64_t)host->timeline, 4));
    OK(tm_plan_signal_semaphore(plan, (uint64_t)host->timeline, 5));
    submit_commands(host, fill, VK_NULL_HANDLE, 0, 4);
    OK(tm_plan_submit(plan, NULL));
    wait_host(host, 5);
    CHECK(written.mapped[0] == 15 && written.mapped[N - 1] == 15);
    tm_plan_free(plan);
    float data[N];
    for (int i = 0; i < N; ++i) data[i] = (float)i;
    OK(tm_tensor_write(output, data, sizeof data));
    OK(tm_flush(gpu));
    OK(tm_synchronize(gpu));
    CHECK(written.mapped[0] == 0 && written.mapped[N - 1] == N - 1);
}

// Operations between the host's own commands (6).
static void into_commands(Host *host, tm_accelerator *gpu, tm_tensor *x, Shared shared, Shared result) {
    VkCommandBuffer commands = begin_commands(host);
    vkCmdFillBuffer(commands, shared.buffer, 0, BYTES, bits(2));
    tm_recording *r;
    tm_value negated;
    tm_tensor *y;
    OK(tm_begin_recording(gpu, &r));
    OK(tm_unary(r, TM_NEG, tm_of(x), &negated));
    OK(tm_keep(r, negated, &y));
    FAILS(tm_record_into(r, NULL, (uint64_t)host->timeline, 6), TM_INVALID_ARGUMENT, "command_buffer is NULL");
    FAILS(tm_record_into(r, commands, 0, 6), TM_INVALID_ARGUMENT, "semaphore is VK_NULL_HANDLE");
    OK(tm_record_into(r, commands, (uint64_t)host->timeline, 6));
    FAILS(tm_record_into(r, commands, (uint64_t)host->timeline, 6), TM_CLOSED, "the recording has ended");
    tm_recording_free(r);
    tm_buffer_range range = {.size = sizeof range};
    tm_buffer_hold *hold;
    OK(tm_tensor_raw_buffer(y, &range, &hold));
    CHECK(range.ready_semaphore == 0);  // the host knows when
    VkBufferCopy region = {.srcOffset = range.offset_bytes, .size = BYTES};
    vkCmdCopyBuffer(commands, (VkBuffer)range.buffer, result.buffer, 1, &region);
    submit_commands(host, commands, VK_NULL_HANDLE, 0, 6);
    float got[N];
    OK(tm_tensor_read(y, got, sizeof got));  // waits for the host's semaphore
    CHECK(got[0] == -2 && got[N - 1] == -2);
    CHECK(result.mapped[0] == -2 && result.mapped[N - 1] == -2);
    tm_buffer_hold_free(hold);
    tm_tensor_free(y);
}

int main(void) {
    Host host = {0};
    OK(tm_alone_at_the_loader(make_instance, &host));
    tm_accelerator *gpu;
    FAILS(offer(&host, true, &gpu), TM_HOST, "timelineSemaphore");
    CHECK(gpu == NULL);
    OK(tm_alone_at_the_loader(destroy_device, &host));
    OK(offer(&host, false, &gpu));

    Shared shared = make_shared(&host, N, TM_BUFFER_USAGE), written = make_shared(&host, N, TM_BUFFER_USAGE);
    Shared result = make_shared(&host, N, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    tm_tensor *x = wrap(gpu, shared), *output = wrap(gpu, written);
    semaphores(&host, gpu, x, shared, result);
    plans(&host, gpu, x, output, shared, written);
    into_commands(&host, gpu, x, shared, result);
    CHECK(host.turns > 0 && host.held == 0);

    tm_tensor_free(x);
    tm_tensor_free(output);
    OK(tm_accelerator_close(gpu));
    tm_accelerator_free(gpu);
    destroy_shared(&host, shared);
    destroy_shared(&host, written);
    destroy_shared(&host, result);
    OK(tm_alone_at_the_loader(destroy_device, &host));
    OK(tm_alone_at_the_loader(destroy_instance, &host));
    CHECK(complaints == 0);
    printf("ok\n");
    return 0;
}
