// The accelerator, and what is made on it: streams, sessions, what is shared with the host's own Vulkan, Hybrid. Part of tidemill.hpp.

#ifndef TIDEMILL_ACCELERATOR_HPP
#define TIDEMILL_ACCELERATOR_HPP

#include <tidemill/recording.hpp>

#include <optional>

namespace tidemill {

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
    // Of another library's DLManagedTensor, which is the library's from then on, also if the call fails.
    Tensor from_dlpack(void *managed) const {
        return tensor([&](auto **out) { return tm_tensor_from_dlpack(get(), managed, out); });
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
