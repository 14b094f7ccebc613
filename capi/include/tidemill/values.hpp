// Errors, shapes, tensors and the values of a recording. Part of tidemill.hpp.

#ifndef TIDEMILL_VALUES_HPP
#define TIDEMILL_VALUES_HPP

#include <tidemill.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
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

// The upper half of a 32-bit float. Operations compute in f32.
struct BFloat {
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
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
        return TM_U32;
    } else if constexpr (std::is_same_v<T, BFloat>) {
        return TM_BF16;
    } else if constexpr (std::is_same_v<T, std::int16_t>) {
        return TM_I16;
    } else if constexpr (std::is_same_v<T, std::int8_t>) {
        return TM_I8;
    } else if constexpr (std::is_same_v<T, std::uint16_t>) {
        return TM_U16;
    } else if constexpr (std::is_same_v<T, std::uint8_t>) {
        return TM_U8;
    } else {
        static_assert(std::is_same_v<T, bool>, "elements are float, Half, BFloat, bool, or integers of 8 to 32 bits");
        return TM_BOOL;
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
    // The contents as a DLManagedTensor, which the caller owns and frees by its deleter.
    void *to_dlpack() const {
        void *managed = nullptr;
        check(tm_tensor_to_dlpack(get(), &managed));
        return managed;
    }
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

// Operations on a matmul or a convolution before it is stored, in the same dispatch. Operands live until it is used.
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

}  // namespace tidemill

#endif
