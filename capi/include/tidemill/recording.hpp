// Submissions, plans, kernels and recordings. Part of tidemill.hpp.

#ifndef TIDEMILL_RECORDING_HPP
#define TIDEMILL_RECORDING_HPP

#include <tidemill/values.hpp>

namespace tidemill {

// --- Submissions, plans, kernels -----------------------------------------------------------------------------------

// Work that was handed to the device. Destroying it waits for nothing and loses nothing.
class Submission {
public:
    explicit Submission(tm_submission *handle) : handle_(handle) {}
    tm_submission *get() const noexcept { return handle_.get(); }
    void wait() const { check(tm_submission_wait(get(), TM_FOREVER)); }
    // Whether it was done in time.
    bool wait_for(std::uint64_t nanoseconds) const {
        tm_status status = tm_submission_wait(get(), nanoseconds);
        if (status == TM_TIMEOUT) return false;
        check(status);
        return true;
    }
    bool is_complete() const {
        bool complete = false;
        check(tm_submission_is_complete(get(), &complete));
        return complete;
    }
    std::uint64_t number() const noexcept { return tm_submission_number(get()); }
    std::string profile_json() const {
        return detail::text([&](auto **out) { return tm_submission_profile_json(get(), out); });
    }
    // The timeline semaphore (VkSemaphore) and the value that it has when the work is done.
    std::pair<std::uint64_t, std::uint64_t> raw_point() const {
        std::pair<std::uint64_t, std::uint64_t> point;
        check(tm_submission_raw_point(get(), &point.first, &point.second));
        return point;
    }

private:
    detail::Handle<tm_submission, tm_submission_free> handle_;
};

// A recording that is kept, to be submitted again and again.
class Plan {
public:
    explicit Plan(tm_plan *handle) : handle_(handle) {}
    tm_plan *get() const noexcept { return handle_.get(); }
    // Compiles what is left to compile. `progress` gets a tm_progress, and may give false to end it: TM_CANCELLED.
    template <typename F>
    void prepare(F &&progress) {
        detail::watched(progress, [&](auto call, void *user) { return tm_plan_prepare(get(), call, user); });
    }
    Submission submit() {
        return Submission(detail::made<tm_submission>([&](auto **out) { return tm_plan_submit(get(), out); }));
    }
    void bind(const Tensor &recorded, const Tensor &tensor) {
        check(tm_plan_bind(get(), recorded.get(), tensor.get()));
    }
    // For the submissions from now on.
    void set_argument(const char *name, double number) { check(tm_plan_set_argument(get(), name, number)); }
    void profiling(tm_profiling mode) { check(tm_plan_profiling(get(), mode)); }
    void wait_semaphore(std::uint64_t semaphore, std::uint64_t value) {
        check(tm_plan_wait_semaphore(get(), semaphore, value));
    }
    void signal_semaphore(std::uint64_t semaphore, std::uint64_t value) {
        check(tm_plan_signal_semaphore(get(), semaphore, value));
    }

private:
    detail::Handle<tm_plan, tm_plan_free> handle_;
};

// A compute shader from SPIR-V that describes itself.
class Kernel {
public:
    explicit Kernel(tm_kernel *handle) : handle_(handle) {}
    // SPIR-V that may come from anywhere: its accesses are kept inside its bindings.
    static Kernel from_spirv_guarded(const std::string &name, const std::vector<std::uint32_t> &words) {
        return Kernel(detail::made<tm_kernel>([&](auto **out) {
            return tm_kernel_from_spirv_guarded(name.c_str(), words.data(), words.size(), out);
        }));
    }
    // SPIR-V as it is: tidemill.h says what the caller vouches for.
    static Kernel from_spirv(const std::string &name, const std::vector<std::uint32_t> &words) {
        return Kernel(detail::made<tm_kernel>(
            [&](auto **out) { return tm_kernel_from_spirv(name.c_str(), words.data(), words.size(), out); }));
    }
    // GLSL, where the library was built with a compiler for it: tm_has_glsl().
    static Kernel from_glsl(const tm_glsl &glsl) {
        return Kernel(detail::made<tm_kernel>([&](auto **out) { return tm_kernel_from_glsl(&glsl, out); }));
    }
    tm_kernel *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<tm_kernel, tm_kernel_free> handle_;
};

// One run of a kernel.
class Dispatch {
public:
    explicit Dispatch(const Kernel &kernel) { info_.kernel = kernel.get(); }
    Dispatch &input(const Operand &operand) { return argument(tm_input(operand.get())); }
    // Read and written in place. The tensor must outlive the dispatch.
    Dispatch &inout(const Tensor &tensor) { return argument(tm_inout(tensor.get())); }
    Dispatch &output(tm_dtype dtype, const Shape &shape) {
        return argument(tm_output(dtype, shape.data(), shape.rank()));
    }
    template <typename T>
    Dispatch &push(const T &constants) {
        static_assert(std::is_trivially_copyable_v<T>, "push constants are bytes");
        const auto *bytes = reinterpret_cast<const unsigned char *>(&constants);
        push_.assign(bytes, bytes + sizeof constants);
        return *this;
    }
    Dispatch &specialize(std::uint32_t id, std::uint32_t bits) {
        constants_.push_back(tm_specialization{id, bits});
        return *this;
    }
    Dispatch &groups(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) {
        info_.groups[0] = x, info_.groups[1] = y, info_.groups[2] = z;
        return *this;
    }
    std::size_t outputs() const {
        std::size_t n = 0;
        for (const tm_argument &a : arguments_) n += a.input.tensor == nullptr && a.input.id == 0;
        return n;
    }
    // Good until the dispatch is changed.
    tm_dispatch_info info() const {
        tm_dispatch_info info = info_;
        info.size = sizeof info;
        info.arguments = arguments_.data();
        info.argument_count = arguments_.size();
        info.push = push_.data();
        info.push_bytes = push_.size();
        info.specializations = constants_.data();
        info.specialization_count = constants_.size();
        return info;
    }

private:
    Dispatch &argument(tm_argument argument) {
        arguments_.push_back(argument);
        return *this;
    }

    tm_dispatch_info info_{};
    std::vector<tm_argument> arguments_;
    std::vector<unsigned char> push_;
    std::vector<tm_specialization> constants_;
};

// --- Recordings ----------------------------------------------------------------------------------------------------

// A list of operations that is carried out as one submission. An operation that fails leaves it as it was.
class Recording {
public:
    explicit Recording(tm_recording *handle) : handle_(handle, detail::FreeOwned<tm_recording_free>{true}) {}
    // One that the library lends to a callback, and frees itself.
    static Recording lent(tm_recording *handle) {
        Recording r(handle);
        r.handle_.get_deleter().owned = false;
        return r;
    }
    tm_recording *get() const noexcept { return handle_.get(); }

    // A tensor as a value, so that operators can begin with it.
    Value of(const Tensor &tensor) const { return Value(get(), tm_of(tensor.get())); }

    Value unary(tm_unary_op op, const Operand &x) { return detail::unary(get(), op, x.get()); }
    Value binary(tm_binary_op op, const Operand &a, const Operand &b) {
        return detail::binary(get(), op, a.get(), b.get());
    }
    Value binary(tm_binary_op op, const Operand &a, double b) {
        return detail::binary(get(), op, a.get(), b);
    }
    Value exp(const Operand &x) { return unary(TM_EXP, x); }
    Value log(const Operand &x) { return unary(TM_LOG, x); }
    Value sqrt(const Operand &x) { return unary(TM_SQRT, x); }
    Value abs(const Operand &x) { return unary(TM_ABS, x); }
    Value tanh(const Operand &x) { return unary(TM_TANH, x); }
    Value sigmoid(const Operand &x) { return unary(TM_SIGMOID, x); }
    Value relu(const Operand &x) { return unary(TM_RELU, x); }
    Value gelu(const Operand &x) { return unary(TM_GELU, x); }
    Value min(const Operand &a, const Operand &b) { return binary(TM_MIN, a, b); }
    Value max(const Operand &a, const Operand &b) { return binary(TM_MAX, a, b); }
    Value pow(const Operand &a, double b) { return binary(TM_POW, a, b); }
    Value clip(const Operand &x, float lo, float hi) {
        return op([&](auto *out) { return tm_clip(get(), x.get(), lo, hi, out); });
    }
    Value select(const Operand &mask, const Operand &a, const Operand &b) {
        return op([&](auto *out) { return tm_select(get(), mask.get(), a.get(), b.get(), out); });
    }
    Value cast(const Operand &x, tm_dtype to) { return op([&](auto *out) {
        return tm_cast(get(), x.get(), to, out); });
    }

    Value reduce(tm_reduce_op which, const Operand &x, std::int32_t axis = TM_ALL_AXES, bool keep = false) {
        return op([&](auto *out) { return tm_reduce(get(), which, x.get(), axis, keep, out); });
    }
    Value sum(const Operand &x, std::int32_t axis = TM_ALL_AXES, bool keep = false) {
        return reduce(TM_SUM, x, axis, keep);
    }
    Value mean(const Operand &x, std::int32_t axis = TM_ALL_AXES, bool keep = false) {
        return reduce(TM_MEAN, x, axis, keep);
    }
    Value amax(const Operand &x, std::int32_t axis = TM_ALL_AXES, bool keep = false) {
        return reduce(TM_AMAX, x, axis, keep);
    }
    Value softmax(const Operand &x, std::int32_t axis = -1) {
        return op([&](auto *out) { return tm_softmax(get(), x.get(), axis, out); });
    }

    Value matmul(const Operand &lhs, const Operand &rhs, const Epilogue &epilogue = {}) {
        return matmul(lhs, rhs, tm_matmul_defaults(), epilogue);
    }
    // With the options of C; its steps are those of the epilogue.
    Value matmul(const Operand &lhs, const Operand &rhs, tm_matmul_options options, const Epilogue &epilogue = {}) {
        options.steps = epilogue.steps().data();
        options.step_count = epilogue.steps().size();
        return op([&](auto *out) { return tm_matmul(get(), lhs.get(), rhs.get(), &options, out); });
    }
    Value attention(const Operand &q, const Operand &k, const Operand &v,
                    const tm_attention_options &options = tm_attention_defaults()) {
        return op([&](auto *out) { return tm_attention(get(), q.get(), k.get(), v.get(), &options, out); });
    }
    Value rotary(const Operand &x, const Operand &positions, float base = 10000,
                 tm_rotary_pairs pairs = TM_ROTARY_HALVES) {
        return op([&](auto *out) { return tm_rotary(get(), x.get(), positions.get(), base, pairs, out); });
    }
    Value conv2d(const Operand &images, const Operand &weights, tm_conv2d_options options = tm_conv2d_defaults(),
                 const Epilogue &epilogue = {}) {
        options.steps = epilogue.steps().data();
        options.step_count = epilogue.steps().size();
        return op([&](auto *out) { return tm_conv2d(get(), images.get(), weights.get(), &options, out); });
    }

    Value reshape(const Operand &x, const Shape &shape) {
        return op([&](auto *out) { return tm_reshape(get(), x.get(), shape.data(), shape.rank(), out); });
    }
    Value transpose(const Operand &x) { return op([&](auto *out) {
        return tm_transpose(get(), x.get(), out); });
    }
    Value permute(const Operand &x, const std::vector<std::size_t> &order) {
        return op([&](auto *out) { return tm_permute(get(), x.get(), order.data(), order.size(), out); });
    }
    // From begin[i] up to but not including end[i].
    Value slice(const Operand &x, const Shape &begin, const Shape &end) {
        if (begin.rank() != end.rank()) throw Error(TM_SHAPE, "slice: as many begins as ends");
        return op([&](auto *out) { return tm_slice(get(), x.get(), begin.data(), end.data(), begin.rank(), out); });
    }
    // Writes a value to a box of an existing tensor, in place: from begin[i] up to but not including end[i].
    void update(const Tensor &tensor, const Shape &begin, const Shape &end, const Operand &x) {
        if (begin.rank() != end.rank()) throw Error(TM_SHAPE, "update: as many begins as ends");
        check(tm_update(get(), tensor.get(), begin.data(), end.data(), begin.rank(), x.get()));
    }
    // A number from least to most that the plan is given by its name.
    Value argument(const char *name, tm_dtype dtype, double least, double most) {
        return op([&](auto *out) { return tm_declare_argument(get(), name, dtype, least, most, out); });
    }
    // So many elements along an axis, from start on: an argument, or another value of one element.
    Value slice_at(const Operand &x, std::int32_t axis, const Operand &start, std::size_t length) {
        return op([&](auto *out) { return tm_slice_at(get(), x.get(), axis, start.get(), length, out); });
    }
    void update_at(const Tensor &tensor, std::int32_t axis, const Operand &start, const Operand &x) {
        check(tm_update_at(get(), tensor.get(), axis, start.get(), x.get()));
    }
    // With `outside` in the place of all elements from the index `length` on.
    Value mask_from(const Operand &x, std::int32_t axis, const Operand &length, double outside) {
        return op([&](auto *out) { return tm_mask_from(get(), x.get(), axis, length.get(), outside, out); });
    }
    // Gives an existing tensor a new value.
    void assign(const Tensor &tensor, const Operand &x) { check(tm_assign(get(), tensor.get(), x.get())); }
    Value concat(const std::vector<Operand> &xs, std::int32_t axis) {
        std::vector<tm_value> values;
        for (const Operand &x : xs) values.push_back(x.get());
        return op([&](auto *out) { return tm_concat(get(), values.data(), values.size(), axis, out); });
    }
    Value copy(const Operand &x) { return op([&](auto *out) { return tm_copy(get(), x.get(), out); }); }
    Value fill(tm_dtype dtype, const Shape &shape, double element) {
        return op([&](auto *out) { return tm_fill(get(), dtype, shape.data(), shape.rank(), element, out); });
    }
    Value iota(tm_dtype dtype, const Shape &shape) {
        return op([&](auto *out) { return tm_iota(get(), dtype, shape.data(), shape.rank(), out); });
    }
    std::vector<Value> dispatch(const Dispatch &run) {
        std::vector<tm_value> outputs(run.outputs());
        tm_dispatch_info info = run.info();
        check(tm_dispatch(get(), &info, outputs.data(), outputs.size()));
        std::vector<Value> values;
        for (tm_value output : outputs) values.emplace_back(get(), output);
        return values;
    }

    Shape shape(const Operand &x) const {
        return detail::shape([&](auto *dims, auto *rank) { return tm_value_shape(get(), x.get(), dims, rank); });
    }
    // Makes a value a tensor that outlives the recording.
    Tensor keep(const Operand &x) {
        return Tensor(detail::made<tm_tensor>([&](auto **out) { return tm_keep(get(), x.get(), out); }));
    }
    // Into the host's memory, which Accelerator::wrap made a tensor.
    void keep_in(const Operand &x, const Tensor &wrapped) {
        check(tm_keep_in_buffer(get(), x.get(), wrapped.get()));
    }
    void wait_semaphore(std::uint64_t semaphore, std::uint64_t value) {
        check(tm_wait_semaphore(get(), semaphore, value));
    }
    void signal_semaphore(std::uint64_t semaphore, std::uint64_t value) {
        check(tm_signal_semaphore(get(), semaphore, value));
    }
    void profiling(tm_profiling mode) { check(tm_recording_profiling(get(), mode)); }
    std::string explain() const {
        return detail::text([&](auto **out) { return tm_explain(get(), out); });
    }
    std::string explain_json() const {
        return detail::text([&](auto **out) { return tm_explain_json(get(), out); });
    }
    // Makes every pipeline ahead. `progress` gets a tm_progress, and may give false to end it: TM_CANCELLED.
    template <typename F>
    void prepare(F &&progress) {
        detail::watched(progress, [&](auto call, void *user) { return tm_prepare(get(), call, user); });
    }

    // One submission; waits for nothing.
    Submission end_recording() {
        return Submission(detail::made<tm_submission>([&](auto **out) { return tm_end_recording(get(), out); }));
    }
    Plan into_plan() {
        return Plan(detail::made<tm_plan>([&](auto **out) { return tm_into_plan(get(), out); }));
    }
    // Into a command buffer of the host's: tidemill.h says what the host vouches for.
    void record_into(void *command_buffer, std::uint64_t done_semaphore, std::uint64_t done_value) {
        check(tm_record_into(get(), command_buffer, done_semaphore, done_value));
    }

private:
    template <typename Call>
    Value op(Call &&call) {
        return detail::recorded(get(), std::forward<Call>(call));
    }

    std::unique_ptr<tm_recording, detail::FreeOwned<tm_recording_free>> handle_;
};

}  // namespace tidemill

#endif
