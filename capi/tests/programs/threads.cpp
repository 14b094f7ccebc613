// C++17: handles in std::unique_ptr, recordings on many threads at once, and a stream from one thread and from two.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

template <auto Free>
struct Deleter {
    template <class T>
    void operator()(T *handle) const { Free(handle); }
};
using Accelerator = std::unique_ptr<tm_accelerator, Deleter<tm_accelerator_free>>;
using Tensor = std::unique_ptr<tm_tensor, Deleter<tm_tensor_free>>;
using Recording = std::unique_ptr<tm_recording, Deleter<tm_recording_free>>;
using Plan = std::unique_ptr<tm_plan, Deleter<tm_plan_free>>;
using Stream = std::unique_ptr<tm_stream, Deleter<tm_stream_free>>;
using Batch = std::unique_ptr<tm_batch, Deleter<tm_batch_free>>;

// Eight threads, each with recordings of its own on tensors that all of them share.
static void recordings(tm_accelerator *gpu) {
    std::vector<float> data(1000, 1.0f);
    Tensor shared(vector_f32(gpu, data.data(), data.size()));
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++) {
        threads.emplace_back([&, t] {
            for (int round = 0; round < 20; round++) {
                tm_recording *raw;
                OK(tm_begin_recording(gpu, &raw));
                Recording r(raw);
                tm_value v = tm_of(shared.get());
                for (int i = 0; i <= t; i++) OK(tm_binary_scalar(r.get(), TM_ADD, v, 1.0, &v));
                tm_tensor *kept;
                OK(tm_keep(r.get(), v, &kept));
                Tensor y(kept);
                OK(tm_end_recording(r.get(), nullptr));
                std::vector<float> got(1000);
                OK(tm_tensor_read(y.get(), got.data(), got.size() * sizeof(float)));
                for (float g : got) CHECK(g == static_cast<float>(t + 2));
                // An error on one thread is not seen on another.
                tm_value out;
                size_t axis = static_cast<size_t>(t);
                FAILS(tm_slice(raw, tm_of(shared.get()), nullptr, nullptr, axis + 1, &out), TM_CLOSED, "has ended");
            }
        });
    }
    for (auto &thread : threads) thread.join();
}

// One recording and one plan that all threads use at once: calls wait for each other.
static void one_recording(tm_accelerator *gpu) {
    float one = 1.0f;
    Tensor x(vector_f32(gpu, &one, 1));
    tm_recording *raw;
    OK(tm_begin_recording(gpu, &raw));
    Recording r(raw);
    std::vector<tm_value> values(8);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++) {
        threads.emplace_back([&, t] {
            values[static_cast<size_t>(t)] = tm_of(x.get());
            for (int i = 0; i < 50; i++) {
                auto &v = values[static_cast<size_t>(t)];
                OK(tm_binary_scalar(r.get(), TM_ADD, v, 1.0, &v));
            }
        });
    }
    for (auto &thread : threads) thread.join();
    tm_value all;
    OK(tm_concat(r.get(), values.data(), values.size(), 0, &all));
    tm_tensor *kept;
    OK(tm_keep(r.get(), all, &kept));
    Tensor y(kept);
    tm_plan *raw_plan;
    OK(tm_into_plan(r.get(), &raw_plan));
    Plan plan(raw_plan);
    threads.clear();
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&] {
            for (int i = 0; i < 10; i++) OK(tm_plan_submit(plan.get(), nullptr));
        });
    }
    for (auto &thread : threads) thread.join();
    float got[8];
    OK(tm_tensor_read(y.get(), got, sizeof got));
    for (float g : got) CHECK(g == 51.0f);
}

// What is done with a batch: inputs[0] times the weights, and its sum.
static int32_t record(tm_recording *r, const tm_tensor *const *inputs, tm_value *outputs, void *user) {
    if (tm_binary(r, TM_MUL, tm_of(inputs[0]), tm_of(static_cast<const tm_tensor *>(user)), &outputs[0]) != TM_OK) return 1;
    if (tm_reduce(r, TM_SUM, outputs[0], 1, false, &outputs[1]) != TM_OK) return 1;
    // A stream's recording is the stream's to end.
    tm_submission *submission;
    return tm_end_recording(r, &submission) == TM_INVALID_ARGUMENT ? 0 : 2;
}

static int32_t refuse(tm_recording *r, const tm_tensor *const *inputs, tm_value *outputs, void *) {
    return tm_matmul(r, tm_of(inputs[0]), tm_of(inputs[0]), nullptr, outputs) == TM_OK ? 0 : 42;
}

static int32_t forget(tm_recording *, const tm_tensor *const *, tm_value *, void *) { return 0; }

static void check_batch(const tm_batch *batch, size_t rows) {
    float product[8], sum[4];
    auto n = static_cast<float>(tm_batch_number(batch));
    OK(tm_batch_read(batch, 0, product, rows * 2 * sizeof(float)));
    OK(tm_batch_read(batch, 1, sum, rows * sizeof(float)));
    for (size_t i = 0; i < rows; i++) CHECK(product[2 * i] == 2 * n && product[2 * i + 1] == 3 * n && sum[i] == 5 * n);
}

static void streams(tm_accelerator *gpu) {
    float w[2] = {2, 3};
    Tensor weights(vector_f32(gpu, w, 2));
    size_t dims[2] = {4, 2};
    tm_stream_input input = {TM_F32, dims, 2};
    tm_stream *raw;
    FAILS(tm_stream_new(gpu, 3, &input, 1, 1, refuse, nullptr, &raw), TM_CALLBACK, "gave 42; the last message is: matmul: lhs [4, 2]");
    FAILS(tm_stream_new(gpu, 3, &input, 1, 1, forget, nullptr, &raw), TM_INVALID_ARGUMENT, "an output is no value and no tensor");
    FAILS(tm_stream_new(gpu, 3, &input, 1, 1, nullptr, nullptr, &raw), TM_INVALID_ARGUMENT, "record is NULL");
    FAILS(tm_stream_new(gpu, 0, &input, 1, 2, record, weights.get(), &raw), TM_STREAM, "1 slot or more");
    FAILS(tm_stream_new(gpu, 3, nullptr, 0, 2, record, weights.get(), &raw), TM_INVALID_ARGUMENT, "there are no inputs");
    FAILS(tm_stream_new(gpu, SIZE_MAX, &input, 1, 2, record, weights.get(), &raw), TM_STREAM, "at most 1024 slots");
    FAILS(tm_stream_new(gpu, size_t(1) << 40, &input, 1, 2, record, weights.get(), &raw), TM_STREAM, "at most 1024 slots");
    FAILS(tm_stream_new(gpu, 3, &input, 1, SIZE_MAX, record, weights.get(), &raw), TM_INVALID_ARGUMENT, "the maximum is 1024");
    FAILS(tm_stream_new(gpu, 3, &input, SIZE_MAX, 2, record, weights.get(), &raw), TM_INVALID_ARGUMENT, "the maximum is 1024");
    CHECK(raw == nullptr);

    // One thread: push until it is full, then pop.
    OK(tm_stream_new(gpu, 3, &input, 1, 2, record, weights.get(), &raw));
    Stream one(raw);
    float data[8];
    tm_bytes bytes = {data, sizeof data};
    tm_batch *popped;
    FAILS(tm_stream_pop(one.get(), 1000, &popped), TM_TIMEOUT, "not done after 1000 ns");
    bytes.size_bytes = 12;
    FAILS(tm_stream_try_push(one.get(), &bytes, 0), TM_SHAPE, "batch 0, input 0: Slot::write: shape [4, 2] holds 8 elements, the data has 3");
    FAILS(tm_stream_try_push(one.get(), nullptr, 0), TM_INVALID_ARGUMENT, "inputs is NULL");
    bytes.size_bytes = sizeof data;
    FAILS(tm_stream_try_push(one.get(), &bytes, 5), TM_STREAM, "a batch of 5 rows does not fit, the stream's first input has 4");
    uint64_t checked = 0;
    for (int n = 0; n < 20; n++) {
        for (float &d : data) d = static_cast<float>(n);
        // The last one is partial.
        size_t rows = n == 19 ? 3 : 0;
        bytes.size_bytes = n == 19 ? 6 * sizeof(float) : sizeof data;
        tm_status status = tm_stream_try_push(one.get(), &bytes, rows);
        if (status == TM_STREAM_FULL) {
            CHECK(std::string(tm_last_error_message()).find("all 3 slots hold batches") != std::string::npos);
            OK(tm_stream_pop(one.get(), TM_FOREVER, &popped));
            Batch batch(popped);
            CHECK(tm_batch_number(batch.get()) == checked++);
            check_batch(batch.get(), 4);
            batch.reset();
            status = tm_stream_try_push(one.get(), &bytes, rows);
        }
        CHECK(status == TM_OK);
    }
    OK(tm_stream_finish(one.get()));
    FAILS(tm_stream_push(one.get(), &bytes, 0), TM_CLOSED, "the stream was finished");
    for (;;) {
        OK(tm_stream_pop(one.get(), 60u * 1000 * 1000 * 1000, &popped));
        if (popped == nullptr) break;
        Batch batch(popped);
        bool last = checked++ == 19;
        CHECK(tm_batch_rows(batch.get()) == (last ? 3u : 0u));
        check_batch(batch.get(), last ? 3 : 4);
        tm_tensor *output;
        FAILS(tm_batch_output(batch.get(), 2, &output), TM_STREAM, "output 2 does not exist, the stream has 2");
        OK(tm_batch_output(batch.get(), 1, &output));
        CHECK(tm_tensor_size_bytes(output) == 4 * sizeof(float));
        tm_tensor_free(output);
    }
    CHECK(checked == 20);

    // Two threads.
    OK(tm_stream_new(gpu, 3, &input, 1, 2, record, weights.get(), &raw));
    Stream two(raw);
    tm_session *session;
    OK(tm_begin_profiling(gpu, "a stream from C++", TM_PROFILING_TIMELINE, &session));
    std::thread producer([&] {
        for (int n = 0; n < 200; n++) {
            std::vector<float> batch(8, static_cast<float>(n));
            tm_bytes input_bytes = {batch.data(), batch.size() * sizeof(float)};
            OK(tm_stream_push(two.get(), &input_bytes, 0));
        }
        OK(tm_stream_finish(two.get()));
    });
    checked = 0;
    for (;;) {
        OK(tm_stream_pop(two.get(), TM_FOREVER, &popped));
        if (popped == nullptr) break;
        Batch batch(popped);
        CHECK(tm_batch_number(batch.get()) == checked++);
        check_batch(batch.get(), 4);
        char *profile;
        OK(tm_batch_profile_json(batch.get(), &profile));
        CHECK(std::string(profile).find("\"label\":\"mul 4x2 f32\"") != std::string::npos);
        tm_string_free(profile);
    }
    producer.join();
    CHECK(checked == 200);
    tm_run *run;
    OK(tm_session_finish(session, &run));
    tm_session_free(session);
    char *json;
    OK(tm_stream_report_json(two.get(), run, &json));
    CHECK(std::string(json).find("\"batches\":200") != std::string::npos);
    tm_string_free(json);
    tm_run_free(run);
    OK(tm_stream_stats_json(two.get(), &json));
    CHECK(std::string(json).find("\"popped\":200") != std::string::npos);
    tm_string_free(json);
}

// A push that waits while nothing pops: another thread ends it.
static void ends(tm_accelerator *gpu, bool cancel) {
    float w[2] = {2, 3};
    Tensor weights(vector_f32(gpu, w, 2));
    size_t dims[2] = {4, 2};
    tm_stream_input input = {TM_F32, dims, 2};
    tm_stream *raw;
    OK(tm_stream_new(gpu, 1, &input, 1, 2, record, weights.get(), &raw));
    Stream stream(raw);
    float data[8] = {0};
    tm_bytes bytes = {data, sizeof data};
    OK(tm_stream_push(stream.get(), &bytes, 0));
    std::thread producer([&] {
        FAILS(tm_stream_push(stream.get(), &bytes, 0), TM_CLOSED, cancel ? "cancelled" : "finished");
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (cancel) {
        OK(tm_stream_cancel(stream.get()));
    } else {
        OK(tm_stream_finish(stream.get()));
    }
    producer.join();
    tm_batch *popped;
    if (cancel) {
        FAILS(tm_stream_pop(stream.get(), TM_FOREVER, &popped), TM_CLOSED, "cancelled");
        FAILS(tm_stream_try_push(stream.get(), &bytes, 0), TM_CLOSED, "cancelled");
    } else {
        OK(tm_stream_pop(stream.get(), TM_FOREVER, &popped));
        CHECK(popped != nullptr);
        tm_batch_free(popped);
        OK(tm_stream_pop(stream.get(), TM_FOREVER, &popped));
    }
    CHECK(popped == nullptr);
}

// In a forked process every call says so, and nothing hangs.
static void forks(tm_accelerator *gpu) {
    float data[2] = {1, 2};
    tm_tensor *tensor = vector_f32(gpu, data, 2);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        FAILS(tm_tensor_read(tensor, data, sizeof data), TM_FORKED, "was forked from");
        tm_accelerator *another;
        FAILS(tm_accelerator_new(nullptr, &another), TM_FORKED, "was forked from");
        tm_tensor_free(tensor);
        tm_accelerator_free(gpu);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(tm_tensor_read(tensor, data, sizeof data));
    tm_tensor_free(tensor);
}

int main() {
    tm_accelerator *gpu = make_gpu();
    recordings(gpu);
    one_recording(gpu);
    streams(gpu);
    ends(gpu, false);
    ends(gpu, true);
    forks(gpu);
    finish(gpu);
}
