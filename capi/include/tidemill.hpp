// Tidemill for C++17: the C ABI (tidemill.h) as values that free themselves, exceptions and operators. Header only.
//
// Results.    A call that fails throws tidemill::Error, with the status of C and the library's sentence.
// Ownership.  Objects own their handles. Tensors can be copied: copies are the same tensor. Everything else moves. What
//             was moved from may be destroyed and assigned to, nothing else.
// Values.     The result of an operation is a Value: small, copied freely, without memory of its own, good as long as
//             its recording. +, -, *, / on values, tensors and numbers record operations. Comparisons are
//             r.binary(TM_LT, a, b).
// Callbacks.  A callback may throw: the exception goes through the library and comes out of the call that waits for it.
// Threads.    As in C: any object from any thread; but what changes the object itself (move, assignment, destruction)
//             excludes all other use of it.
//
// get() gives the handle of C, which stays the object's: functions of tidemill.h that have no method here take it.

#ifndef TIDEMILL_HPP
#define TIDEMILL_HPP

#include <tidemill.h>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tidemill {

// --- Errors --------------------------------------------------------------------------------------------------------

// Why a call failed.
class Error : public std::runtime_error {
public:
    Error(tm_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    tm_status status() const noexcept { return status_; }

private:
    tm_status status_;
};

// Throws what a call of C says.
inline void check(tm_status status) {
    if (status != TM_OK) throw Error(status, tm_last_error_message());
}

namespace detail {

template <auto free>
struct Free {
    template <typename T>
    void operator()(T *handle) const noexcept {
        free(handle);
    }
};

// As Free, or not at all.
template <auto free>
struct FreeOwned {
    bool owned = false;
    template <typename T>
    void operator()(T *handle) const noexcept {
        if (owned) free(handle);
    }
};

// A handle of C.
template <typename T, auto free>
using Handle = std::unique_ptr<T, Free<free>>;

// The handle that a call gives through its last parameter.
template <typename T, typename Call>
T *made(Call &&call) {
    T *handle = nullptr;
    check(call(&handle));
    return handle;
}

// A text that a call gives through its last parameter.
template <typename Call>
std::string text(Call &&call) {
    Handle<char, tm_string_free> owned(made<char>(std::forward<Call>(call)));
    return std::string(owned.get());
}

// A function of C++ that C calls. What it throws is thrown again once the library has returned.
template <typename F>
struct Callback {
    F &function;
    std::exception_ptr thrown = nullptr;

    template <typename... Arguments>
    std::int32_t call(Arguments &&...arguments) noexcept {
        try {
            if constexpr (std::is_same_v<std::invoke_result_t<F &, Arguments...>, bool>) {
                return function(std::forward<Arguments>(arguments)...) ? 0 : 1;
            } else {
                function(std::forward<Arguments>(arguments)...);
                return 0;
            }
        } catch (...) {
            thrown = std::current_exception();
            return 1;
        }
    }

    void checked(tm_status status) {
        if (thrown) std::rethrow_exception(thrown);
        check(status);
    }
};

// Calls the library with a function that gets progress.
template <typename F, typename Call>
void watched(F &progress, Call &&call) {
    auto tell = [&](const tm_progress &told) { return progress(told); };
    Callback<decltype(tell)> callback{tell};
    tm_progress_fn function = [](const tm_progress *told, void *user) {
        return static_cast<decltype(callback) *>(user)->call(*told);
    };
    callback.checked(call(function, &callback));
}

// Calls the library with a function that writes elements.
template <typename T, typename F, typename Call>
void filled(F &fill, Call &&call) {
    auto write = [&](T *data, std::size_t count) { fill(data, count); };
    Callback<decltype(write)> callback{write};
    tm_fill_fn function = [](void *data, std::size_t size_bytes, void *user) {
        return static_cast<decltype(callback) *>(user)->call(static_cast<T *>(data), size_bytes / sizeof(T));
    };
    callback.checked(call(function, &callback));
}

}  // namespace detail

// --- Types and shapes ----------------------------------------------------------------------------------------------

// The bits of a 16-bit float. Operations compute in f32.
struct Half {
    std::uint16_t bits;
};

// The element type of C for one of C++.
template <typename T>
constexpr tm_dtype dtype_of() {
    if constexpr (std::is_same_v<T, float>) {
        return TM_F32;
    } else if constexpr (std::is_same_v<T, Half>) {
        return TM_F16;
    } else if constexpr (std::is_same_v<T, std::int32_t>) {
        return TM_I32;
    } else {
        static_assert(std::is_same_v<T, std::uint32_t>, "elements are float, Half, int32_t or uint32_t");
        return TM_U32;
    }
}

// Extents. More than TM_MAX_RANK of them are refused by the call that gets them.
class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<std::size_t> dims) : dims_(dims) {}
    explicit Shape(std::vector<std::size_t> dims) : dims_(std::move(dims)) {}
    std::size_t rank() const noexcept { return dims_.size(); }
    const std::size_t *data() const noexcept { return dims_.data(); }
    std::size_t operator[](std::size_t i) const { return dims_.at(i); }
    std::size_t elements() const {
        std::size_t n = 1;
        for (std::size_t dim : dims_) n *= dim;
        return n;
    }
    friend bool operator==(const Shape &a, const Shape &b) { return a.dims_ == b.dims_; }
    friend bool operator!=(const Shape &a, const Shape &b) { return !(a == b); }

private:
    std::vector<std::size_t> dims_;
};

namespace detail {

template <typename Call>
Shape shape(Call &&call) {
    std::size_t dims[TM_MAX_RANK] = {};
    std::size_t rank = 0;
    check(call(&dims, &rank));
    return Shape(std::vector<std::size_t>(dims, dims + rank));
}

}  // namespace detail

// --- Tensors -------------------------------------------------------------------------------------------------------

// A dense, row-major tensor in device memory. Copies are the same tensor.
class Tensor {
public:
    Tensor() = default;
    explicit Tensor(tm_tensor *handle) : handle_(handle) {}
    Tensor(const Tensor &other) : handle_(other ? other.cloned() : nullptr) {}
    Tensor(Tensor &&) noexcept = default;
    Tensor &operator=(const Tensor &other) {
        if (this != &other) handle_.reset(other ? other.cloned() : nullptr);
        return *this;
    }
    Tensor &operator=(Tensor &&) noexcept = default;
    ~Tensor() = default;
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    tm_tensor *get() const noexcept { return handle_.get(); }

    Shape shape() const {
        return detail::shape([&](auto *dims, auto *rank) { return tm_tensor_shape(get(), dims, rank); });
    }
    tm_dtype dtype() const {
        tm_dtype dtype = 0;
        check(tm_tensor_dtype(get(), &dtype));
        return dtype;
    }
    std::uint64_t size_bytes() const noexcept { return tm_tensor_size_bytes(get()); }

    // All elements. Waits for the submission that writes them, and for nothing else.
    template <typename T>
    std::vector<T> read() const {
        require<T>("read");
        std::vector<T> data(static_cast<std::size_t>(size_bytes()) / sizeof(T));
        read_into(data.data(), data.size());
        return data;
    }
    template <typename T>
    void read_into(T *data, std::size_t count) const {
        require<T>("read");
        check(tm_tensor_read(get(), data, count * sizeof(T)));
    }
    template <typename T>
    void write(const T *data, std::size_t count) const {
        require<T>("write");
        check(tm_tensor_write(get(), data, count * sizeof(T)));
    }
    template <typename T>
    void write(const std::vector<T> &data) const {
        write(data.data(), data.size());
    }
    // `fill` gets a T * and the number of elements, which are zeros, and writes them straight into mapped memory.
    template <typename T, typename F>
    void write_with(F &&fill) const {
        require<T>("write_with");
        detail::filled<T>(fill, [&](auto call, void *user) { return tm_tensor_write_with(get(), call, user); });
    }
    bool is_imported() const noexcept { return tm_tensor_is_imported(get()); }
    Tensor reshape(const Shape &shape) const {
        return Tensor(detail::made<tm_tensor>(
            [&](auto **out) { return tm_tensor_reshape(get(), shape.data(), shape.rank(), out); }));
    }

private:
    template <typename T>
    void require(const char *call) const {
        if (get() != nullptr && dtype() != dtype_of<T>())
            throw Error(TM_TYPE, std::string(call) + ": the tensor's elements are of another type");
    }
    tm_tensor *cloned() const {
        return detail::made<tm_tensor>([&](auto **out) { return tm_tensor_clone(get(), out); });
    }

    detail::Handle<tm_tensor, tm_tensor_free> handle_;
};

// Memory of the program's that tensors may lie in. It owns what it is given until nothing reads it any more.
class HostMemory {
public:
    template <typename T>
    explicit HostMemory(std::vector<T> data) {
        auto owner = std::make_unique<std::vector<T>>(std::move(data));
        handle_.reset(detail::made<tm_host_memory>([&](auto **out) {
            return tm_host_memory_new(
                owner->data(), owner->size() * sizeof(T),
                [](void *user) { delete static_cast<std::vector<T> *>(user); }, owner.get(), out);
        }));
        static_cast<void>(owner.release());
    }
    tm_host_memory *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<tm_host_memory, tm_host_memory_free> handle_;
};

// --- Values and operands -------------------------------------------------------------------------------------------

// The result of an operation, good as long as its recording.
class Value {
public:
    Value(tm_recording *recording, tm_value value) noexcept : recording_(recording), value_(value) {}
    tm_value get() const noexcept { return value_; }
    tm_recording *recording() const noexcept { return recording_; }

private:
    tm_recording *recording_;
    tm_value value_;
};

// What an operation takes: a value, or a tensor that lives as long as the call.
class Operand {
public:
    Operand(const Value &value) noexcept : value_(value.get()) {}
    Operand(const Tensor &tensor) noexcept : value_(tm_of(tensor.get())) {}
    tm_value get() const noexcept { return value_; }

private:
    tm_value value_;
};

namespace detail {

// The value that an operation of C gives through its last parameter.
template <typename Call>
Value recorded(tm_recording *recording, Call &&call) {
    tm_value value{};
    check(call(&value));
    return Value(recording, value);
}

inline Value binary(tm_recording *r, tm_binary_op op, tm_value a, tm_value b) {
    return recorded(r, [&](auto *out) { return tm_binary(r, op, a, b, out); });
}

inline Value binary(tm_recording *r, tm_binary_op op, tm_value a, double b) {
    return recorded(r, [&](auto *out) { return tm_binary_scalar(r, op, a, b, out); });
}

inline Value unary(tm_recording *r, tm_unary_op op, tm_value x) {
    return recorded(r, [&](auto *out) { return tm_unary(r, op, x, out); });
}

}  // namespace detail

inline Value operator+(const Value &a, const Operand &b) {
    return detail::binary(a.recording(), TM_ADD, a.get(), b.get());
}
inline Value operator-(const Value &a, const Operand &b) {
    return detail::binary(a.recording(), TM_SUB, a.get(), b.get());
}
inline Value operator*(const Value &a, const Operand &b) {
    return detail::binary(a.recording(), TM_MUL, a.get(), b.get());
}
inline Value operator/(const Value &a, const Operand &b) {
    return detail::binary(a.recording(), TM_DIV, a.get(), b.get());
}
inline Value operator+(const Tensor &a, const Value &b) {
    return detail::binary(b.recording(), TM_ADD, tm_of(a.get()), b.get());
}
inline Value operator-(const Tensor &a, const Value &b) {
    return detail::binary(b.recording(), TM_SUB, tm_of(a.get()), b.get());
}
inline Value operator*(const Tensor &a, const Value &b) {
    return detail::binary(b.recording(), TM_MUL, tm_of(a.get()), b.get());
}
inline Value operator/(const Tensor &a, const Value &b) {
    return detail::binary(b.recording(), TM_DIV, tm_of(a.get()), b.get());
}
inline Value operator+(const Value &a, double b) { return detail::binary(a.recording(), TM_ADD, a.get(), b); }
inline Value operator-(const Value &a, double b) { return detail::binary(a.recording(), TM_SUB, a.get(), b); }
inline Value operator*(const Value &a, double b) { return detail::binary(a.recording(), TM_MUL, a.get(), b); }
inline Value operator/(const Value &a, double b) { return detail::binary(a.recording(), TM_DIV, a.get(), b); }
inline Value operator+(double a, const Value &b) { return b + a; }
inline Value operator*(double a, const Value &b) { return b * a; }
inline Value operator-(const Value &x) { return detail::unary(x.recording(), TM_NEG, x.get()); }
inline Value operator-(double a, const Value &b) { return -b + a; }

// What is done to a product or a convolution before it is stored, in the same dispatch. Operands live until it is used.
class Epilogue {
public:
    static Epilogue bias(const Operand &operand) { return Epilogue().step(TM_STEP_BIAS, operand.get()); }
    static Epilogue column_bias(const Operand &operand) {
        return Epilogue().step(TM_STEP_COLUMN_BIAS, operand.get());
    }
    Epilogue &&plus(const Operand &operand) && { return std::move(step(TM_STEP_PLUS, operand.get())); }
    Epilogue &&minus(const Operand &operand) && { return std::move(step(TM_STEP_MINUS, operand.get())); }
    Epilogue &&times(const Operand &operand) && { return std::move(step(TM_STEP_TIMES, operand.get())); }
    Epilogue &&scale(float a) && { return std::move(step(TM_STEP_SCALE, {}, a)); }
    Epilogue &&add_scalar(float a) && { return std::move(step(TM_STEP_ADD_SCALAR, {}, a)); }
    Epilogue &&relu() && { return std::move(step(TM_STEP_RELU)); }
    // Any other step: TM_STEP_GELU and so on.
    Epilogue &&then(tm_step_op op, float a = 0, float b = 0) && { return std::move(step(op, {}, a, b)); }
    const std::vector<tm_step> &steps() const noexcept { return steps_; }

private:
    Epilogue &step(tm_step_op op, tm_value operand = {}, float a = 0, float b = 0) {
        steps_.push_back(tm_step{op, operand, a, b});
        return *this;
    }

    std::vector<tm_step> steps_;
};

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

// --- Streams -------------------------------------------------------------------------------------------------------

// A batch that is done. It holds its slot until it is destroyed.
class Batch {
public:
    explicit Batch(tm_batch *handle) : handle_(handle) {}
    tm_batch *get() const noexcept { return handle_.get(); }
    std::uint64_t number() const noexcept { return tm_batch_number(get()); }
    std::size_t rows() const noexcept { return tm_batch_rows(get()); }
    Tensor output(std::size_t i) const {
        return Tensor(detail::made<tm_tensor>([&](auto **out) { return tm_batch_output(get(), i, out); }));
    }
    // An output's elements; of a partial batch, those of its rows.
    template <typename T>
    void read_into(std::size_t output, T *data, std::size_t count) const {
        check(tm_batch_read(get(), output, data, count * sizeof(T)));
    }

private:
    detail::Handle<tm_batch, tm_batch_free> handle_;
};

// The same work on batch after batch, with slots in rotation. One thread may push while another one pops.
class Stream {
public:
    explicit Stream(tm_stream *handle) : handle_(handle) {}
    tm_stream *get() const noexcept { return handle_.get(); }
    // Waits for a slot: for two threads. `rows` is 0 for a whole batch.
    template <typename... T>
    void push(std::size_t rows, const std::vector<T> &...inputs) {
        const tm_bytes bytes[] = {tm_bytes{inputs.data(), inputs.size() * sizeof(T)}...};
        check(tm_stream_push(get(), bytes, rows));
    }
    // False if every slot holds a batch: for one thread, which then pops.
    template <typename... T>
    bool try_push(std::size_t rows, const std::vector<T> &...inputs) {
        const tm_bytes bytes[] = {tm_bytes{inputs.data(), inputs.size() * sizeof(T)}...};
        tm_status status = tm_stream_try_push(get(), bytes, rows);
        if (status == TM_STREAM_FULL) return false;
        check(status);
        return true;
    }
    // The next batch, in order; nothing when the stream was finished and everything was popped.
    std::optional<Batch> pop() {
        tm_batch *batch = detail::made<tm_batch>([&](auto **out) { return tm_stream_pop(get(), TM_FOREVER, out); });
        if (batch == nullptr) return std::nullopt;
        return Batch(batch);
    }
    void finish() { check(tm_stream_finish(get())); }
    void cancel() { check(tm_stream_cancel(get())); }

private:
    detail::Handle<tm_stream, tm_stream_free> handle_;
};

// --- Profiles ------------------------------------------------------------------------------------------------------

// Everything that was submitted between two moments, with times.
class Run {
public:
    explicit Run(tm_run *handle) : handle_(handle) {}
    tm_run *get() const noexcept { return handle_.get(); }
    std::string json() const { return detail::text([&](auto **out) { return tm_run_json(get(), out); }); }
    std::string trace_json() const { return detail::text([&](auto **out) {
        return tm_run_trace_json(get(), out); });
    }
    std::string html() const { return detail::text([&](auto **out) { return tm_run_html(get(), out); }); }
    std::string table() const { return detail::text([&](auto **out) { return tm_run_table(get(), out); }); }

private:
    detail::Handle<tm_run, tm_run_free> handle_;
};

// A run that is being profiled.
class Session {
public:
    explicit Session(tm_session *handle) : handle_(handle) {}
    tm_session *get() const noexcept { return handle_.get(); }
    Run finish() {
        return Run(detail::made<tm_run>([&](auto **out) { return tm_session_finish(get(), out); }));
    }

private:
    detail::Handle<tm_session, tm_session_free> handle_;
};

// --- Beside the host's own Vulkan ----------------------------------------------------------------------------------

// What the library needs of a physical device, and what it uses where the device has it.
class DeviceNeeds {
public:
    // Of a VkInstance and a VkPhysicalDevice; the function is vkGetInstanceProcAddr, or nullptr.
    DeviceNeeds(tm_vulkan_fn get_instance_proc_addr, void *instance, void *physical_device)
        : handle_(detail::made<tm_device_needs>([&](auto **out) {
              return tm_device_needs_of(get_instance_proc_addr, instance, physical_device, out);
          })) {}
    tm_device_needs *get() const noexcept { return handle_.get(); }
    std::vector<const char *> missing() const { return names(tm_device_needs_missing); }
    std::vector<const char *> extensions() const { return names(tm_device_needs_extensions); }
    std::vector<const char *> features() const { return names(tm_device_needs_features); }
    // Into VkPhysicalDeviceFeatures, and the structs of Vulkan 1.1, 1.2 and 1.3.
    void enable(void *core, void *v11, void *v12, void *v13) const {
        check(tm_device_needs_enable(get(), core, v11, v12, v13));
    }

private:
    std::vector<const char *> names(const char *const *(*list)(const tm_device_needs *, std::uint32_t *)) const {
        std::uint32_t count = 0;
        const char *const *names = list(get(), &count);
        return std::vector<const char *>(names, names + count);
    }

    detail::Handle<tm_device_needs, tm_device_needs_free> handle_;
};

// A tensor's memory for the host's own commands. As long as it lives, nothing overwrites the contents.
class BufferHold {
public:
    explicit BufferHold(const Tensor &tensor) {
        range_.size = sizeof range_;
        handle_.reset(detail::made<tm_buffer_hold>(
            [&](auto **out) { return tm_tensor_raw_buffer(tensor.get(), &range_, out); }));
    }
    const tm_buffer_range &range() const noexcept { return range_; }

private:
    tm_buffer_range range_{};
    detail::Handle<tm_buffer_hold, tm_buffer_hold_free> handle_;
};

// --- The accelerator -----------------------------------------------------------------------------------------------

// The device and all that is owned once.
class Accelerator {
public:
    explicit Accelerator(tm_accelerator *handle) : handle_(handle) {}
    // One of the program's own.
    explicit Accelerator(const tm_config &config)
        : handle_(detail::made<tm_accelerator>([&](auto **out) { return tm_accelerator_new(&config, out); })) {}
    // The process's own, on the best device there is.
    static Accelerator global() {
        check(tm_check_abi(TM_ABI_VERSION));
        return Accelerator(detail::made<tm_accelerator>([](auto **out) { return tm_accelerator_global(out); }));
    }
    // On a device of the host's: tidemill.h says what the host vouches for.
    static Accelerator from_raw(const tm_host_device &host, const tm_config &config) {
        return Accelerator(detail::made<tm_accelerator>(
            [&](auto **out) { return tm_accelerator_from_raw(&host, &config, out); }));
    }
    tm_accelerator *get() const noexcept { return handle_.get(); }

    template <typename T>
    Tensor upload(const T *data, std::size_t count, const Shape &shape) const {
        return tensor([&](auto **out) {
            return tm_upload(get(), dtype_of<T>(), shape.data(), shape.rank(), data, count * sizeof(T), out);
        });
    }
    template <typename T>
    Tensor upload(const std::vector<T> &data, const Shape &shape) const {
        return upload(data.data(), data.size(), shape);
    }
    // `fill` gets a T * and the number of elements, which are zeros, and writes them straight into mapped memory.
    template <typename T, typename F>
    Tensor upload_with(const Shape &shape, F &&fill) const {
        tm_tensor *tensor = nullptr;
        detail::filled<T>(fill, [&](auto call, void *user) {
            return tm_upload_with(get(), dtype_of<T>(), shape.data(), shape.rank(), call, user, &tensor);
        });
        return Tensor(tensor);
    }
    // On memory of the program's, without a copy where that can be done, and with one otherwise.
    template <typename T>
    Tensor import_or_upload(const HostMemory &memory, std::size_t offset_bytes, const Shape &shape) const {
        return tensor([&](auto **out) {
            return tm_import_or_upload(get(), memory.get(), offset_bytes, dtype_of<T>(), shape.data(), shape.rank(),
                                       nullptr, out);
        });
    }
    template <typename T>
    Tensor zeros(const Shape &shape) const {
        return tensor(
            [&](auto **out) { return tm_zeros(get(), dtype_of<T>(), shape.data(), shape.rank(), out); });
    }
    template <typename T>
    Tensor empty(const Shape &shape) const {
        return tensor(
            [&](auto **out) { return tm_empty(get(), dtype_of<T>(), shape.data(), shape.rank(), out); });
    }
    // A buffer of the host's as a tensor: tidemill.h says what the host vouches for.
    template <typename T>
    Tensor wrap(const tm_host_buffer &buffer, const Shape &shape) const {
        return tensor([&](auto **out) {
            return tm_wrap_buffer(get(), &buffer, dtype_of<T>(), shape.data(), shape.rank(), out);
        });
    }

    Recording begin_recording() const {
        return Recording(detail::made<tm_recording>([&](auto **out) { return tm_begin_recording(get(), out); }));
    }
    // Records, submits, and keeps the value that the function gives.
    template <typename F>
    Tensor run(F &&record) const {
        Recording r = begin_recording();
        Value value = record(r);
        Tensor kept = r.keep(value);
        r.end_recording();
        return kept;
    }
    // A stream: `record` gets a recording and the inputs, and gives the values of the outputs.
    template <typename F>
    Stream stream(std::size_t slots, const std::vector<std::pair<tm_dtype, Shape>> &inputs, std::size_t outputs,
                  F &&record) const {
        std::vector<tm_stream_input> given;
        for (const auto &[dtype, shape] : inputs) given.push_back(tm_stream_input{dtype, shape.data(), shape.rank()});
        auto call = [&](tm_recording *raw, const tm_tensor *const *tensors, tm_value *out) {
            // The library's: neither is freed here.
            Recording r = Recording::lent(raw);
            std::vector<Tensor> views;
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                tm_tensor *clone = nullptr;
                check(tm_tensor_clone(tensors[i], &clone));
                views.emplace_back(clone);
            }
            std::vector<Value> values = record(r, views);
            if (values.size() != outputs) throw Error(TM_STREAM, "stream: another number of outputs was announced");
            for (std::size_t i = 0; i < outputs; ++i) out[i] = values[i].get();
        };
        detail::Callback<decltype(call)> callback{call};
        tm_stream *stream = nullptr;
        callback.checked(tm_stream_new(
            get(), slots, given.data(), given.size(), outputs,
            [](tm_recording *raw, const tm_tensor *const *tensors, tm_value *out, void *user) {
                return static_cast<decltype(callback) *>(user)->call(raw, tensors, out);
            },
            &callback, &stream));
        return Stream(stream);
    }
    Session begin_profiling(const std::string &name, tm_profiling mode) const {
        return Session(detail::made<tm_session>(
            [&](auto **out) { return tm_begin_profiling(get(), name.c_str(), mode, out); }));
    }

    void synchronize() const { check(tm_synchronize(get())); }
    void flush() const { check(tm_flush(get())); }
    std::uint64_t trim() const {
        std::uint64_t freed = 0;
        check(tm_trim(get(), &freed));
        return freed;
    }
    // Throws TM_STILL_IN_USE, with how many, if something of it is still there.
    void close() { check(tm_accelerator_close(get())); }
    std::string device_json() const { return detail::text([&](auto **out) {
        return tm_device_json(get(), out); });
    }
    std::string stats_json() const { return detail::text([&](auto **out) {
        return tm_stats_json(get(), out); });
    }

private:
    template <typename Call>
    static Tensor tensor(Call &&call) {
        return Tensor(detail::made<tm_tensor>(std::forward<Call>(call)));
    }

    detail::Handle<tm_accelerator, tm_accelerator_free> handle_;
};

// --- The CPU or the device -----------------------------------------------------------------------------------------

// Operations on the CPU or the device, whichever is predicted to be faster.
class Hybrid {
public:
    explicit Hybrid(tm_policy policy = TM_POLICY_AUTO)
        : handle_(detail::made<tm_hybrid>([&](auto **out) { return tm_hybrid_new(policy, out); })) {}
    explicit Hybrid(const Accelerator &gpu, tm_policy policy = TM_POLICY_AUTO)
        : handle_(detail::made<tm_hybrid>(
              [&](auto **out) { return tm_hybrid_with_accelerator(gpu.get(), policy, out); })) {}
    tm_hybrid *get() const noexcept { return handle_.get(); }
    // `record` gets a tm_chain *, for the functions tm_chain_*. Says where the operations ran, and why.
    template <typename F>
    tm_decision chain(F &&record) const {
        tm_decision decision{};
        decision.size = sizeof decision;
        detail::Callback<std::remove_reference_t<F>> callback{record};
        callback.checked(tm_hybrid_chain(
            get(),
            [](tm_chain *chain, void *user) { return static_cast<decltype(callback) *>(user)->call(chain); },
            &callback, &decision));
        return decision;
    }

private:
    detail::Handle<tm_hybrid, tm_hybrid_free> handle_;
};

}  // namespace tidemill

#endif
