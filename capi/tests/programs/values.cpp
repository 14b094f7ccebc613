// tidemill.hpp: objects that free themselves, operators, exceptions through the library, streams, plans and kernels.
//
// usage: values SCALE.SPV

#include <tidemill.hpp>

#include <cstring>
#include <fstream>
#include <iterator>

#include "check.h"

using tidemill::Shape, tidemill::Tensor, tidemill::Value;
using Floats = std::vector<float>;

// A call that must throw with this status.
template <typename F>
static void throws(tm_status status, const std::string &text, F &&call) {
    try {
        call();
    } catch (const tidemill::Error &error) {
        if (error.status() != status || std::string(error.what()).find(text) == std::string::npos)
            FAIL("%s: %s", tm_status_name(error.status()), error.what());
        return;
    }
    FAIL("nothing was thrown, not \"%s\"", text.c_str());
}

static void dlpack(const tidemill::Accelerator &gpu) {
    Tensor x = gpu.upload(Floats{1, 2, 3, 4}, {2, 2});
    Tensor back = gpu.from_dlpack(x.to_dlpack());
    CHECK((back.shape() == Shape{2, 2}) && (back.read<float>() == Floats{1, 2, 3, 4}));
    throws(TM_INVALID_ARGUMENT, "managed is NULL", [&] { gpu.from_dlpack(nullptr); });
}

static void operators(const tidemill::Accelerator &gpu) {
    Tensor x = gpu.upload(Floats{1, 2, 3, 4}, {2, 2}), y = gpu.upload(Floats{10, 20}, {2});
    auto r = gpu.begin_recording();
    Value a = r.of(x);
    Value sum = a + y, mixed = 2.0 * (x - a / 2.0) + 1.0 - a * x / y, negated = -(5.0 - a);
    CHECK((r.shape(sum) == Shape{2, 2}));
    std::vector<Tensor> kept = {r.keep(sum), r.keep(mixed), r.keep(negated), r.keep(r.sum(a)), r.keep(r.transpose(x))};
    CHECK(r.explain().find("add") != std::string::npos && r.explain_json().front() == '{');
    auto done = r.end_recording();
    done.wait();
    CHECK(done.is_complete() && done.wait_for(0) && done.number() > 0);
    CHECK((kept[0].read<float>() == Floats{11, 22, 13, 24}));
    CHECK((kept[1].read<float>() == Floats{2 - 0.1f, 3 - 0.2f, 4 - 0.9f, 5 - 0.8f}));
    CHECK((kept[2].read<float>() == Floats{-4, -3, -2, -1}));
    CHECK((kept[3].read<float>() == Floats{10}));
    CHECK((kept[4].read<float>() == Floats{1, 3, 2, 4}));
    throws(TM_CLOSED, "the recording has ended", [&] { r.keep(sum); });
    throws(TM_TYPE, "another type", [&] { kept[0].read<std::int32_t>(); });
    auto s = gpu.begin_recording();
    throws(TM_FOREIGN, "another recording", [&] { s.exp(sum); });
    throws(TM_SHAPE, "inner 2 != 3", [&] { s.matmul(x, gpu.zeros<float>({3, 1})); });
    throws(TM_PARAMETER, "no f32 can hold", [&] { s.of(x) * 1e300; });
}

static void tensors(const tidemill::Accelerator &gpu) {
    Tensor none, x = gpu.upload(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}, {2, 3}), same = x;
    CHECK(!none && x && (x.shape() == Shape{2, 3}) && x.dtype() == TM_I32 && x.size_bytes() == 24);
    same.write(std::vector<std::int32_t>{6, 5, 4, 3, 2, 1});
    CHECK(x.read<std::int32_t>().front() == 6);
    none = same;
    same = Tensor();
    same = std::move(none);
    CHECK((same.reshape({6}).shape() == Shape{6}));
    Tensor counted = gpu.upload_with<float>({4}, [](float *data, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<float>(i);
    });
    counted.write_with<float>([](float *data, std::size_t n) { data[n - 1] = 7; });
    CHECK((counted.read<float>() == Floats{0, 0, 0, 7}));
    // An exception goes through the library.
    try {
        gpu.upload_with<float>({4}, [](float *, std::size_t) { throw std::runtime_error("mine"); });
        FAIL("nothing was thrown");
    } catch (const std::runtime_error &error) {
        CHECK(std::string(error.what()) == "mine");
    }
    tidemill::HostMemory memory(Floats(4096, 2.5f));
    Tensor imported = gpu.import_or_upload<float>(memory, 0, {4096});
    CHECK(imported.read<float>().back() == 2.5f);
    CHECK((gpu.run([&](auto &r) { return r.mean(imported); }).read<float>() == Floats{2.5f}));
}

static void plans_and_kernels(const tidemill::Accelerator &gpu, const char *spirv) {
    std::ifstream file(spirv, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    auto kernel = tidemill::Kernel::from_spirv_guarded("scale", words);
    Tensor x = gpu.upload(Floats{1, 2, 3}, {3});
    auto r = gpu.begin_recording();
    tidemill::Dispatch run(kernel);
    run.input(x).output(TM_F32, {3}).push(10.0f).specialize(0, 64);
    Tensor y = r.keep(r.dispatch(run).at(0));
    int told = 0;
    throws(TM_CANCELLED, "", [&] { r.prepare([&](const tm_progress &) { return ++told < 0; }); });
    r.prepare([&](const tm_progress &progress) { told += progress.done <= progress.total; });
    CHECK(told > 1);
    auto plan = r.into_plan();
    plan.prepare([](const tm_progress &) {});
    plan.submit();
    CHECK((y.read<float>() == Floats{10, 20, 30}));
    Tensor other = gpu.upload(Floats{4, 5, 6}, {3});
    plan.bind(x, other);
    plan.submit().wait();
    CHECK((y.read<float>() == Floats{40, 50, 60}));
    throws(TM_KERNEL, "", [] { tidemill::Kernel::from_spirv("nothing", {1, 2, 3, 4}); });
    // A plan that is given numbers.
    auto numbered = gpu.begin_recording();
    Value at = numbered.argument("at", TM_U32, 0, 2);
    numbered.update_at(other, 0, at, numbered.slice_at(x, 0, at, 1));
    Tensor seen = numbered.keep(numbered.mask_from(x, 0, at, 9));
    auto by_number = numbered.into_plan();
    by_number.set_argument("at", 2);
    by_number.submit();
    CHECK((other.read<float>() == Floats{4, 5, 3}) && (seen.read<float>() == Floats{1, 2, 9}));
    throws(TM_PARAMETER, "declared from 0 to 2", [&] { by_number.set_argument("at", 3); });
    auto session = gpu.begin_profiling("values", TM_PROFILING_TIMELINE);
    plan.submit();
    CHECK(session.finish().json().find("values") != std::string::npos);
}

static void streams(const tidemill::Accelerator &gpu) {
    Tensor weights = gpu.upload(Floats{2, 3}, {2});
    auto stream = gpu.stream(2, {{TM_F32, {4, 2}}}, 1, [&](auto &r, const auto &inputs) {
        return std::vector<Value>{r.of(inputs[0]) * weights};
    });
    CHECK(stream.try_push(0, Floats(8, 1.0f)) && stream.try_push(0, Floats(8, 2.0f)));
    CHECK(!stream.try_push(0, Floats(8, 3.0f)));
    Floats got(8);
    for (float n : {1.0f, 2.0f}) {
        auto batch = stream.pop();
        CHECK(batch.has_value());
        batch->read_into(0, got.data(), got.size());
        CHECK(got[0] == 2 * n && got[1] == 3 * n);
    }
    stream.push(1, Floats(2, 5.0f));
    stream.finish();
    auto partial = stream.pop();
    CHECK(partial && partial->rows() == 1 && partial->number() == 2 && (partial->output(0).shape() == Shape{4, 2}));
    CHECK(!stream.pop());
    // What the recording function throws comes out of stream().
    try {
        gpu.stream(2, {{TM_F32, {4}}}, 1, [](auto &, const auto &) -> std::vector<Value> { throw 42; });
        FAIL("nothing was thrown");
    } catch (int number) {
        CHECK(number == 42);
    }
}

static void hybrid(const tidemill::Accelerator &gpu) {
    Floats x{1, 2, 3}, out(3);
    std::size_t three = 3;
    for (tm_policy policy : {TM_POLICY_CPU, TM_POLICY_GPU}) {
        tidemill::Hybrid hybrid(gpu, policy);
        tm_decision decision = hybrid.chain([&](tm_chain *chain) {
            tm_link a = 0, b = 0;
            tidemill::check(tm_chain_input(chain, TM_F32, &three, 1, x.data(), 12, &a));
            tidemill::check(tm_chain_binary_scalar(chain, TM_MUL, a, 2, &b));
            tidemill::check(tm_chain_output(chain, b, out.data(), 12));
        });
        CHECK(decision.side == (policy == TM_POLICY_CPU ? TM_SIDE_CPU : TM_SIDE_GPU));
        CHECK((out == Floats{2, 4, 6}));
        throws(TM_INVALID_ARGUMENT, "x is 7", [&] {
            hybrid.chain([](tm_chain *chain) {
                tm_link y = 0;
                tidemill::check(tm_chain_unary(chain, TM_EXP, 7, &y));
            });
        });
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    tm_config config = tm_config_defaults();
    config.validation = std::getenv("NO_VALIDATION") == nullptr;
    config.memory_checks = true;  // and with files between runs: what the machine was measured to take is kept
    config.prewarm = TM_PREWARM_OFF;
    config.on_message = complain;
    config.on_message_user = &complaints;
    tidemill::Accelerator gpu(config);
    operators(gpu);
    dlpack(gpu);
    tensors(gpu);
    plans_and_kernels(gpu, argv[1]);
    streams(gpu);
    hybrid(gpu);
    {
        Tensor held = gpu.upload(Floats{1}, {1});
        tidemill::Accelerator second(config);
        Tensor left = second.upload(Floats{1}, {1});
        throws(TM_STILL_IN_USE, "", [&] { second.close(); });
        throws(TM_FOREIGN, "", [&] { gpu.run([&](auto &r) { return r.of(left) + held; }); });
    }
    gpu.close();
    CHECK(complaints == 0);
    std::printf("ok\n");
    return 0;
}
