// Tidemill, a low-level Vulkan compute engine: the C ABI.
//
// Results.    Functions that can fail return tm_status: TM_OK (0) or why not. tm_last_error_message() then has a sentence.
//             What was to be given is NULL or zero after a failure.
// Ownership.  Whatever a function gives through a `tm_x **` is the caller's, who frees it with tm_x_free, once. No other
//             function frees a handle. Handles may be freed in any order: what they need of each other is kept alive.
//             Strings given through a `char **` are freed with tm_string_free. Freeing NULL does nothing. Pointers that
//             are handed in (data, names, dims, options) are read or written during the call only.
// Threads.    Any function may be called from any thread, with the same handles too; calls on one recording, plan or end
//             of a stream wait for each other. Only freeing a handle that another thread still uses is an error.
// Duties.     A pointer is NULL or valid: a live handle, or as many elements as are said. Strings are UTF-8 and end with 0.


#ifndef TIDEMILL_H
#define TIDEMILL_H

// Made from capi/src by cbindgen (`./dev header`). Do not edit.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Counts changes that break programs compiled against an older header. tm_check_abi compares it.
#define TM_ABI_VERSION 2

// The most dimensions that a tensor may have.
#define TM_MAX_RANK 8

// A timeout that never comes.
#define TM_FOREVER UINT64_MAX

// In the place of an axis: all of them.
#define TM_ALL_AXES INT32_MIN

// A flag of tm_pool: a last window that reaches beyond the padding counts.
#define TM_POOL_CEIL 1

// A flag of tm_pool: means divide by the elements of the padding, too.
#define TM_POOL_COUNT_PADDING 2

// The VkBufferUsageFlags that a host's buffer must have been made for to become a tensor. Tidemill's own have the
// same.
#define TM_BUFFER_USAGE 63

// The result of a call. tm_last_error_message has the details.
typedef enum {
    // It was done.
    TM_OK = 0,
    // The time was over before it was done. Nothing has changed.
    TM_TIMEOUT = 1,
    // Every slot of the stream holds a batch: pop one first.
    TM_STREAM_FULL = 2,
    // A pointer is NULL, or a number, string or size can't be what it stands for.
    TM_INVALID_ARGUMENT = 3,
    // Header and library do not belong together.
    TM_ABI_MISMATCH = 4,
    // A panic inside the library, caught: a defect of Tidemill. The handle of the call may be unusable.
    TM_INTERNAL = 5,
    // A function of the caller's own said that it failed.
    TM_CALLBACK = 6,
    // No Vulkan loader or no driver on this machine.
    TM_NO_VULKAN = 10,
    // No device that can be used, or none that was asked for.
    TM_NO_DEVICE = 11,
    // The validation layer was asked for and is not installed.
    TM_LAYER_MISSING = 12,
    // The cache folder can't be used.
    TM_CACHE_FOLDER = 13,
    // A Vulkan call failed.
    TM_VULKAN = 14,
    // The device is gone, for good. A new accelerator may work.
    TM_DEVICE_LOST = 15,
    // The accelerator, or the stream's other end, is closed; or the recording, or the stream, has ended.
    TM_CLOSED = 16,
    // Closed, but others still hold on to the accelerator.
    TM_STILL_IN_USE = 17,
    // The process was forked after its parent had used a device. Nothing works in it, and tm_x_free does nothing.
    TM_FORKED = 18,
    // Out of device memory, or over the pool's cap.
    TM_OUT_OF_MEMORY = 20,
    // Larger than the device can address.
    TM_TOO_LARGE = 21,
    // Shapes, axes, ranges or lengths do not fit.
    TM_SHAPE = 30,
    // The element type does not fit.
    TM_TYPE = 31,
    // A parameter is out of range.
    TM_PARAMETER = 32,
    // A tensor without contents: never written, not submitted yet, or discarded.
    TM_NO_CONTENTS = 40,
    // A tensor has no place in the plan, or has one already.
    TM_BINDING = 41,
    // A value of another recording, or a tensor of another accelerator.
    TM_FOREIGN = 42,
    // SPIR-V that can't be used, or arguments that do not fit the kernel.
    TM_KERNEL = 50,
    // There is no profile.
    TM_PROFILE = 60,
    // A stream's inputs or outputs do not fit.
    TM_STREAM = 61,
    // Something of the host can't be used: its device, a buffer, its lock or its memory.
    TM_HOST = 70,
    // The caller's function ended it. Nothing is lost.
    TM_CANCELLED = 71,
    // An error that this version of the ABI has no code for.
    TM_OTHER = 99,
} tm_status;

// The device and all that is owned once: compiled kernels, the pool of buffers, the queue.
typedef struct tm_accelerator tm_accelerator;

// A batch that is done. It holds its slot until it is freed.
typedef struct tm_batch tm_batch;

// Keeps a tensor's contents where tm_tensor_raw_buffer said that they are: as long as it lives, nothing overwrites
// them.
typedef struct tm_buffer_hold tm_buffer_hold;

// Operations that are carried out together on one side, while tm_hybrid_chain records them. Elements are f32, i32 or
// u32.
typedef struct tm_chain tm_chain;

// Features and extensions that Tidemill needs of a physical device, and those that it uses where the device has them.
typedef struct tm_device_needs tm_device_needs;

// Memory of the application that tensors may lie in: a mapped file of weights, say.
typedef struct tm_host_memory tm_host_memory;

// Operations on the CPU or the device, whichever is predicted to be faster.
typedef struct tm_hybrid tm_hybrid;

// A compute shader: SPIR-V that describes itself. Immutable, and independent of any device.
typedef struct tm_kernel tm_kernel;

// A recording kept to be submitted again and again with no re-recording. It reads its tensors when it is submitted:
// what was written to them since is seen.
typedef struct tm_plan tm_plan;

// A list of operations between tm_begin_recording and tm_end_recording, which become one submission. An
// operation that fails leaves it as it was.
typedef struct tm_recording tm_recording;

// Everything that was submitted between two moments, with times.
typedef struct tm_run tm_run;

// A run that is being profiled.
typedef struct tm_session tm_session;

// The same work on batch after batch, with slots in rotation: while the device works on one batch, the host prepares
// the next and consumes the last. One thread may push while another one pops.
typedef struct tm_stream tm_stream;

// Work that was handed to the device. Freeing it waits for nothing and loses nothing.
typedef struct tm_submission tm_submission;

// A dense, row-major tensor in device memory. Operations never change one; tm_tensor_write does, and what was recorded
// before sees the old contents.
typedef struct tm_tensor tm_tensor;

// A convolution's weights in the order in which kernels read them.
typedef struct tm_weights tm_weights;

// When kernels are compiled: TM_PREWARM_BACKGROUND and so on.
typedef uint32_t tm_prewarm;

// Whether the device takes the time of every dispatch, and how: TM_PROFILING_OFF and so on.
typedef uint32_t tm_profiling;

// Gets what the validation layer says, on a thread of the library's own, one message after the other. It must not
// throw. It has heard everything when the last handle is freed, or when tm_validation_messages_json returns.
typedef void (*tm_message_fn)(const char *message, void *user);

// A kind of device: TM_DEVICE_DISCRETE and so on.
typedef uint32_t tm_device_kind;

// A variant of a kernel family, as tm_variants_json names them.
typedef struct {
    // The family.
    const char *family;
    // The variant.
    const char *name;
} tm_variant;

// A function of Vulkan's, as PFN_vkVoidFunction: cast vkGetInstanceProcAddr to it.
typedef void (*tm_vulkan_fn)(void);

// How to make an accelerator. Begin with tm_config_defaults(): the defaults are good, change what is to be different.
typedef struct {
    // sizeof(tm_config), as tm_config_defaults() sets it.
    size_t size;
    // The index of the device to take, or -1.
    int32_t device_index;
    // A part of the name of the device to take, or NULL. With neither: what TIDEMILL_DEVICE says, or the best one.
    const char *device_name;
    // Run under the Khronos validation layer, with synchronization validation.
    bool validation;
    // Name objects and dispatches for tools. On by itself with validation.
    bool labels;
    // Keep no files between runs.
    bool no_cache;
    // For those who write kernels: memory reads as NaN until written, and bytes behind tensors are watched.
    bool memory_checks;
    // Every operation is a dispatch of its own. Same bits, slower.
    bool no_fusion;
    // Load RenderDoc, before the process makes its first Vulkan instance.
    bool renderdoc;
    // When kernels are compiled.
    tm_prewarm prewarm;
    // How every submission is profiled.
    tm_profiling profiling;
    // The folder for files between runs, or NULL for the platform's.
    const char *cache_dir;
    // The application's name in the history of pipelines in that folder, or NULL for the name of the executable.
    const char *application;
    // The most bytes that the pool of buffers may hold, or 0 for no cap.
    uint64_t pool_cap_bytes;
    // How many submissions may be in flight before the next one waits, or 0 for the default.
    size_t max_in_flight;
    // Gets what the validation layer says, up to the destruction of the device; or NULL.
    tm_message_fn on_message;
    // Handed to on_message.
    void *on_message_user;
    // The kind of the device to take: TM_DEVICE_ANY, or TM_DEVICE_DISCRETE and so on.
    tm_device_kind device_kind;
    // Results of tm_tune from an earlier run are not used.
    bool untuned;
    // Variants of kernel families to use instead of the device's defaults.
    const tm_variant *variants;
    // How many there are.
    size_t variant_count;
    // vkGetInstanceProcAddr of a loader that is used instead of the system's; or NULL.
    tm_vulkan_fn get_instance_proc_addr;
} tm_config;

// Something that is done alone at the loader: 0 says that it worked.
typedef int32_t (*tm_call_fn)(void *user);

// Takes the host's lock around the queue, or gives it back; on the thread that is about to use the queue. It must
// not throw, and must not call the library.
typedef void (*tm_lock_fn)(void *user);

// A device of the host. All zeros but `size` is none: the handles are to be set.
//
// By handing it over the host vouches for this:
// - The handles are valid, belong together, and stay so until tm_accelerator_close gave TM_OK.
// - `made_with` is what the device was made with, and its chain and lists can be read during the call.
// - While Tidemill holds the lock, no other thread uses the queue, nor waits for the device to be idle. No thread
//   holds the lock while it calls the library.
typedef struct {
    // sizeof(tm_host_device).
    size_t size;
    // vkGetInstanceProcAddr, or NULL for that of the system's loader.
    tm_vulkan_fn get_instance_proc_addr;
    // The VkInstance.
    void *instance;
    // The VkPhysicalDevice.
    void *physical_device;
    // The VkDevice.
    void *device;
    // The VkQueue that Tidemill submits to.
    void *queue;
    // The VkDeviceCreateInfo that the device was made with.
    const void *made_with;
    // The instance's VkApplicationInfo::apiVersion: 1.3 or later.
    uint32_t api_version;
    // The queue's family, which must be able to compute.
    uint32_t queue_family;
    // Takes the host's lock. NULL, as unlock_queue, if no other thread uses the queue while Tidemill may: prewarming
    // in the background uses it, too.
    tm_lock_fn lock_queue;
    // Gives the host's lock back.
    tm_lock_fn unlock_queue;
    // Handed to both, as long as the accelerator lives.
    void *lock_user;
    // The instance has VK_EXT_debug_utils enabled: dispatches get labels.
    bool debug_utils;
    // While the accelerator lives, no thread makes or destroys an instance or a device, or lists an instance's
    // physical devices for the first time, except in tm_alone_at_the_loader. With debug_utils, objects then get
    // names. Vulkan's loader (up to 1.4.340) searches its list of devices for each name, without a lock.
    bool quiet;
} tm_host_device;

// The element type of a tensor: TM_F32 and so on.
typedef uint32_t tm_dtype;

// Writes the contents of a tensor: all `size_bytes` bytes at `data`, which are zeros before. 0 says that it worked.
// It must not throw.
typedef int32_t (*tm_fill_fn)(void *data, size_t size_bytes, void *user);

// Takes memory back: nothing reads it any more. It is called once, on any thread, and must not throw.
typedef void (*tm_release_fn)(void *user);

// An operand: a tensor (tm_of makes one), or what an operation of the same recording gave. It owns nothing and is not
// freed; that of a tensor is good as long as the tensor's handle. All zeros is no value.
typedef struct {
    // The tensor, or NULL.
    const tm_tensor *tensor;
    // Names a result of an operation; 0 if it is a tensor.
    uint64_t id;
} tm_value;

// A test of each element, which gives u32, 1 where it holds: TM_IS_NAN and so on. And what is made of the bits of one
// integer.
typedef uint32_t tm_test_op;

// An operation of one operand: TM_NEG and so on.
typedef uint32_t tm_unary_op;

// An operation of two operands, or of one and a number: TM_ADD and so on. Comparisons give u32: 1 where they hold.
typedef uint32_t tm_binary_op;

// A reduction: TM_SUM and so on.
typedef uint32_t tm_reduce_op;

// The result for each window: TM_POOL_MAX and so on.
typedef uint32_t tm_pool_op;

// How tm_resize makes an element: TM_NEAREST and so on.
typedef uint32_t tm_interpolation;

// Where elements of a resized image lie: TM_HALF_PIXEL and so on.
typedef uint32_t tm_coordinates;

// A step of an epilogue: TM_STEP_BIAS and so on.
typedef uint32_t tm_step_op;

// A step of an epilogue: it runs on the elements of a matmul or a convolution before they are stored. At most six
// steps with two operands and four numbers.
typedef struct {
    // The operation.
    tm_step_op op;
    // The operand of steps that have one; f32.
    tm_value operand;
    // The first number of steps that have one.
    float a;
    // The second number.
    float b;
} tm_step;

// Options of a matmul. Begin with tm_matmul_defaults().
typedef struct {
    // sizeof(tm_matmul_options), as tm_matmul_defaults() sets it.
    size_t size;
    // The left operand is stored with its last two dimensions exchanged.
    bool transpose_lhs;
    // The right operand is stored with its last two dimensions exchanged.
    bool transpose_rhs;
    // The factor on the matmul's result.
    float alpha;
    // Then `beta` times `accumulate`, broadcast, is added, if that is a value.
    float beta;
    // The operand that is added, or all zeros.
    tm_value accumulate;
    // And at last these are done, in their order.
    const tm_step *steps;
    // How many there are.
    size_t step_count;
} tm_matmul_options;

// How attention is taken. Begin with tm_attention_defaults().
typedef struct {
    // sizeof(tm_attention_options), as tm_attention_defaults() sets it.
    size_t size;
    // A query sees no key behind its own place. Queries are the last ones of the keys.
    bool causal;
    // A query sees keys less than so many places away only; 0 is no window.
    uint32_t window;
    // The factor of scores; 0 is 1 / sqrt(depth).
    float scale;
    // Scores become soft_cap * tanh(score / soft_cap); 0 is no cap.
    float soft_cap;
    // Floats that are added to scores, or u32 of which a 0 hides a key; or all zeros.
    tm_value mask;
    // One u32: how many of the keys there are; or all zeros, which is all of them.
    tm_value length;
} tm_attention_options;

// Which columns tm_rotary turns together: TM_ROTARY_HALVES and so on.
typedef uint32_t tm_rotary_pairs;

// How a convolution is taken. Begin with tm_conv2d_defaults(). Pairs are height, width.
typedef struct {
    // sizeof(tm_conv2d_options), as tm_conv2d_defaults() sets it.
    size_t size;
    // Steps between the kernel's places.
    size_t stride[2];
    // Rows of zeros above and below, and columns of zeros left and right.
    size_t padding[2];
    // Steps between the kernel's taps.
    size_t dilation[2];
    // Groups of channels; 0 is one group, or as many as prepared weights have.
    size_t groups;
    // And at last these are done, in their order.
    const tm_step *steps;
    // How many there are.
    size_t step_count;
} tm_conv2d_options;

// How an update is combined with the element that its index names: TM_SCATTER_SET and so on.
typedef uint32_t tm_scatter_op;

// A scan: TM_CUMSUM and so on.
typedef uint32_t tm_scan_op;

// The argument of a kernel's binding: an input (tm_input makes it), a tensor that it reads and writes in place
// (tm_inout makes it), or a new output (tm_output makes it).
typedef struct {
    // The input, or the tensor that is updated; all zeros for an output.
    tm_value input;
    // An output's element type,
    tm_dtype dtype;
    // its extents,
    size_t dims[TM_MAX_RANK];
    // and how many of them there are. Of a tensor that is updated 1, of an input 0.
    size_t rank;
} tm_argument;

// A macro that is defined in front of the first line.
typedef struct {
    // Its name.
    const char *name;
    // Its value; NULL for an empty one.
    const char *value;
} tm_define;

// A compute shader in GLSL. Set `size`, and either `file` or `name` and `text`.
typedef struct {
    // sizeof(tm_glsl).
    size_t size;
    // The file, after which the kernel is named; or NULL.
    const char *file;
    // The name of a text in labels, profiles and messages.
    const char *name;
    // The text.
    const char *text;
    // Macros.
    const tm_define *defines;
    // How many there are.
    size_t define_count;
    // Folders where included files are looked for, after the folder of the including file.
    const char *const *include_dirs;
    // How many there are.
    size_t include_dir_count;
} tm_glsl;

// A value for a 32-bit specialization constant.
typedef struct {
    // The constant's id.
    uint32_t id;
    // Its bits.
    uint32_t bits;
} tm_specialization;

// One run of a kernel. All zeros but `size` and `kernel` is one workgroup without arguments.
typedef struct {
    // sizeof(tm_dispatch_info).
    size_t size;
    // The kernel.
    const tm_kernel *kernel;
    // Arguments of its bindings, in their order.
    const tm_argument *arguments;
    // How many there are.
    size_t argument_count;
    // Push constants, or NULL.
    const void *push;
    // How many bytes they have.
    size_t push_bytes;
    // Values for specialization constants.
    const tm_specialization *specializations;
    // How many there are.
    size_t specialization_count;
    // Workgroups; 0 counts as 1.
    uint32_t groups[3];
    // Floating-point operations, for profiles; 0 if not known.
    uint64_t flops;
    // Bytes read and written at the least, for profiles; 0 if not known.
    uint64_t bytes;
} tm_dispatch_info;

// A range of a buffer of the host.
//
// By handing it over the host vouches for this:
// - The buffer is valid, of the accelerator's device, bound to memory, was made with this usage, reaches as far as
//   the range does, and the queue's family may use it. It stays so until every tensor, recording and plan that uses
//   it was freed and tm_synchronize has returned after that.
// - No two tensors wrap ranges that overlap.
// - The host uses the range only where that is ordered with Tidemill's submissions: by barriers on the same queue,
//   or by semaphores. What it wrote before is made visible to compute shaders and transfers by the same means.
typedef struct {
    // sizeof(tm_host_buffer).
    size_t size;
    // The VkBuffer, cast to uint64_t.
    uint64_t buffer;
    // Where the range begins: at a multiple of the device's minStorageBufferOffsetAlignment.
    uint64_t offset_bytes;
    // How long it is: all elements, in whole groups of 16 bytes.
    uint64_t size_bytes;
    // The VkBufferUsageFlags that the buffer was made with: at least TM_BUFFER_USAGE.
    uint32_t usage;
} tm_host_buffer;

// Where a tensor's contents are, for the host's own commands. Set `size` before the call.
typedef struct {
    // sizeof(tm_buffer_range).
    size_t size;
    // The VkBuffer, to be cast from uint64_t.
    uint64_t buffer;
    // Where the contents begin.
    uint64_t offset_bytes;
    // How long they are.
    uint64_t size_bytes;
    // The contents are there when this timeline semaphore (VkSemaphore) has reached ready_value. A submission of the
    // host needs no barrier if it waits for it. 0 if they were there before, or if a command buffer of the host
    // writes them.
    uint64_t ready_semaphore;
    // The value; 0 without a semaphore.
    uint64_t ready_value;
} tm_buffer_range;

// An input of every batch. Its first dimension counts the rows of a batch.
typedef struct {
    // Its element type,
    tm_dtype dtype;
    // its extents,
    const size_t *dims;
    // and how many of them there are.
    size_t rank;
} tm_stream_input;

// Records what is done with a batch: gets a recording and the inputs, which are the library's, and writes as many
// outputs as were announced. 0 says that it worked. It must not throw, and must not end or free the recording.
typedef int32_t (*tm_record_fn)(tm_recording *recording,
                                const tm_tensor *const *inputs,
                                tm_value *outputs,
                                void *user);

// The contents of an input.
typedef struct {
    // Where they are,
    const void *data;
    // and how many.
    size_t size_bytes;
} tm_bytes;

// How far something has come.
typedef struct {
    // sizeof(tm_progress) of the library.
    size_t size;
    // What is done: pipelines that are ready, those that were there before among them, or candidates that were
    // tried.
    size_t done;
    // The total.
    size_t total;
    // Time since the call.
    uint64_t elapsed_ns;
    // When tuning, the candidate that was just tried, as JSON; NULL otherwise. Good during the call.
    const char *trial;
} tm_progress;

// Gets progress, on the thread that waits for it. 0 goes on, any other number ends it. It must not throw.
typedef int32_t (*tm_progress_fn)(const tm_progress *progress, void *user);

// How far prewarming has come. Set `size` before the call.
typedef struct {
    // sizeof(tm_prewarming).
    size_t size;
    // Pipelines that are wanted warm: the catalog's, and those that earlier processes of the application have used.
    size_t catalog;
    // Those that are. Where there were such processes, the rest is made when it is used.
    size_t warmed;
    // The time spent on them.
    uint64_t elapsed_us;
    // Whether all that can be done is done.
    bool finished;
} tm_prewarming;

// Options of tuning: families, and time. All zeros but `size` is every family, for a minute at the most.
typedef struct {
    // sizeof(tm_tune_options).
    size_t size;
    // Nothing new is begun after this time; 0 is a minute.
    uint64_t budget_ns;
    // The families to tune, by the names that tm_variants_json has; none for all.
    const char *const *families;
    // How many there are.
    size_t family_count;
} tm_tune_options;

// How the side of operations is chosen: TM_POLICY_AUTO and so on.
typedef uint32_t tm_policy;

// Records a chain. 0 says that it worked. It must not throw.
typedef int32_t (*tm_chain_fn)(tm_chain *chain, void *user);

// Where a chain went: TM_SIDE_CPU or TM_SIDE_GPU.
typedef uint32_t tm_side;

// Why a side was chosen: TM_WHY_CHEAPER and so on.
typedef uint32_t tm_why;

// The largest part of a predicted time: TM_PART_COMPUTE and so on.
typedef uint32_t tm_part;

// Where a chain went, and why. Set `size` before the call.
typedef struct {
    // sizeof(tm_decision).
    size_t size;
    // The side that did the work.
    tm_side side;
    // Why that one.
    tm_why why;
    // The largest part of the device's predicted time; without a device, of the CPU's.
    tm_part dominant;
    // The predicted time on the CPU.
    double cpu_us;
    // The predicted time on the device, with transfers; negative if no device was measured.
    double gpu_us;
} tm_decision;

// An operand or a result of a chain: a number that a function gave, which is good in that chain. 0 is none.
typedef uint32_t tm_link;

// 32-bit IEEE 754 float.
#define TM_F32 0

// 16-bit IEEE 754 float, for storage: operations compute in f32.
#define TM_F16 1

// 32-bit signed integer.
#define TM_I32 2

// 32-bit unsigned integer; also what comparisons (0 or 1) and indices are.
#define TM_U32 3

// The upper half of a 32-bit float, for storage: operations compute in f32.
#define TM_BF16 4

// 16-bit signed integer, for storage, as all that follow: operations compute in 32 bits and wrap.
#define TM_I16 5

// 8-bit signed integer.
#define TM_I8 6

// 16-bit unsigned integer.
#define TM_U16 7

// 8-bit unsigned integer.
#define TM_U8 8

// A truth value in a byte: 0 or 1; every byte but 0 is true.
#define TM_BOOL 9

// By a background thread, while the queue is idle; what is needed now comes first.
#define TM_PREWARM_BACKGROUND 0

// Before tm_accelerator_new returns.
#define TM_PREWARM_BLOCKING 1

// When first used.
#define TM_PREWARM_OFF 2

// Any.
#define TM_DEVICE_ANY 0

// A card with memory of its own.
#define TM_DEVICE_DISCRETE 1

// A GPU that shares the CPU's memory.
#define TM_DEVICE_INTEGRATED 2

// A GPU of a virtual machine.
#define TM_DEVICE_VIRTUAL 3

// A software driver.
#define TM_DEVICE_CPU 4

// No timestamps. Costs nothing.
#define TM_PROFILING_OFF 0

// Timestamps around every dispatch; the work runs as it always does.
#define TM_PROFILING_TIMELINE 1

// Each dispatch alone: the only source of GFLOP/s and GB/s. The whole takes longer than it would.
#define TM_PROFILING_ISOLATED 2

// -x; floats and i32.
#define TM_NEG 0

// The magnitude; floats and i32.
#define TM_ABS 1

// -1, 0 or 1; floats and i32.
#define TM_SIGN 2

// The largest whole number that is not above; floats, as all that follow.
#define TM_FLOOR 3

// The smallest whole number that is not below.
#define TM_CEIL 4

// The nearest whole number.
#define TM_ROUND 5

// The square root.
#define TM_SQRT 6

// 1 / sqrt(x).
#define TM_RSQRT 7

// 1 / x.
#define TM_RECIP 8

// e to the power of x.
#define TM_EXP 9

// The natural logarithm.
#define TM_LOG 10

// The sine.
#define TM_SIN 11

// The cosine.
#define TM_COS 12

// The larger of x and 0.
#define TM_RELU 13

// 1 / (1 + exp(-x)).
#define TM_SIGMOID 14

// The hyperbolic tangent.
#define TM_TANH 15

// x * sigmoid(x).
#define TM_SWISH 16

// The Gaussian error linear unit, by tanh.
#define TM_GELU 17

// The Gaussian error linear unit, by erf.
#define TM_GELU_ERF 18

// log(1 + exp(x)).
#define TM_SOFTPLUS 19

// The error function.
#define TM_ERF 20

// The whole number towards 0.
#define TM_TRUNC 21

// x / 6 + 1/2, between 0 and 1.
#define TM_HARD_SIGMOID 22

// x * hard_sigmoid(x).
#define TM_HARD_SWISH 23

// x / (1 + |x|).
#define TM_SOFTSIGN 24

// 2 to the power of x.
#define TM_EXP2 25

// e to the power of x, less 1.
#define TM_EXPM1 26

// The logarithm to base 2.
#define TM_LOG2 27

// The natural logarithm of 1 + x.
#define TM_LOG1P 28

// The hyperbolic sine.
#define TM_SINH 29

// The hyperbolic cosine.
#define TM_COSH 30

// The inverse hyperbolic sine.
#define TM_ASINH 31

// The inverse hyperbolic cosine.
#define TM_ACOSH 32

// The inverse hyperbolic tangent.
#define TM_ATANH 33

// The inverse sine.
#define TM_ASIN 34

// The inverse cosine.
#define TM_ACOS 35

// The inverse tangent.
#define TM_ATAN 36

// 1 less the error function.
#define TM_ERFC 37

// x * tanh(log(1 + exp(x))).
#define TM_MISH 38

// elu(x) with the constants of self-normalising networks.
#define TM_SELU 39

// a + b.
#define TM_ADD 0

// a - b.
#define TM_SUB 1

// a * b.
#define TM_MUL 2

// a / b; integers are cut towards zero.
#define TM_DIV 3

// a to the power of b; floats.
#define TM_POW 4

// The smaller one.
#define TM_MIN 5

// The larger one.
#define TM_MAX 6

// a == b.
#define TM_EQ 7

// a != b.
#define TM_NE 8

// a < b.
#define TM_LT 9

// a <= b.
#define TM_LE 10

// a > b.
#define TM_GT 11

// a >= b.
#define TM_GE 12

// The remainder of a / b with the sign of a.
#define TM_FMOD 13

// The remainder of a / b with the sign of b.
#define TM_MODULO 14

// The angle of the point (b, a), as atan2(a, b); floats, without a number in the place of b, as all that follow.
#define TM_ATAN2 15

// The square root of a * a + b * b.
#define TM_HYPOT 16

// The magnitude of a with the sign of b.
#define TM_COPYSIGN 17

// a where it is above 0, a * b elsewhere.
#define TM_PRELU 18

// Whether both are true (not 0); u32 or bool, as the two that follow.
#define TM_LOGICAL_AND 19

// Whether at least one is true.
#define TM_LOGICAL_OR 20

// Whether one is true and the other is not.
#define TM_LOGICAL_XOR 21

// The bits that both have; integers, as all that follow.
#define TM_BIT_AND 22

// The bits that at least one has.
#define TM_BIT_OR 23

// The bits that one has and the other has not.
#define TM_BIT_XOR 24

// a * 2^b.
#define TM_SHIFT_LEFT 25

// a / 2^b, rounded down.
#define TM_SHIFT_RIGHT 26

// Is it NaN? Floats.
#define TM_IS_NAN 0

// Is it infinite? Floats.
#define TM_IS_INF 1

// Is it false (0)? u32 or bool, which the result is of.
#define TM_LOGICAL_NOT 2

// The bits that an integer has not; the result is of its type.
#define TM_BIT_NOT 3

// How many bits of an integer are 1.
#define TM_COUNT_ONES 4

// The sum.
#define TM_SUM 0

// The mean.
#define TM_MEAN 1

// The product.
#define TM_PROD 2

// The largest element.
#define TM_AMAX 3

// The smallest element.
#define TM_AMIN 4

// The place of the largest element, the first if there are several; u32.
#define TM_ARGMAX 5

// The place of the smallest element, the first if there are several; u32.
#define TM_ARGMIN 6

// The square root of the sum of squares.
#define TM_NORM 7

// The mean square distance from the mean.
#define TM_VARIANCE 8

// The largest element.
#define TM_POOL_MAX 0

// The place of the largest element, counted through the dimensions of the windows; u32.
#define TM_POOL_MAX_PLACE 1

// The mean of the elements inside.
#define TM_POOL_AVERAGE 2

// (sum of |x|^p)^(1/p).
#define TM_POOL_NORM 3

// The nearest one, of two the lower.
#define TM_NEAREST 0

// The one below.
#define TM_BELOW 1

// Of the two around it, in each dimension.
#define TM_LINEAR 2

// Of four, in each dimension.
#define TM_CUBIC 3

// (x + 1/2) * from / to - 1/2.
#define TM_HALF_PIXEL 0

// x * (from - 1) / (to - 1).
#define TM_ALIGN_CORNERS 1

// x * from / to.
#define TM_ASYMMETRIC 2

// Plus an element of `operand` for each column of a matmul, or channel of a convolution. As the first step only.
#define TM_STEP_BIAS 0

// Plus an element of `operand` for each row of a matmul, or channel of a convolution. As the first step only.
#define TM_STEP_COLUMN_BIAS 1

// Plus `operand`, broadcast.
#define TM_STEP_PLUS 2

// Minus `operand`, broadcast.
#define TM_STEP_MINUS 3

// Times `operand`, broadcast.
#define TM_STEP_TIMES 4

// Times `a`.
#define TM_STEP_SCALE 5

// Plus `a`.
#define TM_STEP_ADD_SCALAR 6

// As TM_RELU.
#define TM_STEP_RELU 7

// As TM_SIGMOID.
#define TM_STEP_SIGMOID 8

// As TM_TANH.
#define TM_STEP_TANH 9

// As TM_SWISH.
#define TM_STEP_SWISH 10

// As TM_GELU.
#define TM_STEP_GELU 11

// As TM_GELU_ERF.
#define TM_STEP_GELU_ERF 12

// As TM_SOFTPLUS.
#define TM_STEP_SOFTPLUS 13

// As TM_EXP.
#define TM_STEP_EXP 14

// As TM_SQRT.
#define TM_STEP_SQRT 15

// As TM_ABS.
#define TM_STEP_ABS 16

// As TM_NEG.
#define TM_STEP_NEG 17

// As TM_ERF.
#define TM_STEP_ERF 21

// As TM_HARD_SIGMOID.
#define TM_STEP_HARD_SIGMOID 22

// As TM_HARD_SWISH.
#define TM_STEP_HARD_SWISH 23

// As tm_leaky_relu, with `a` for alpha.
#define TM_STEP_LEAKY_RELU 18

// As tm_elu, with `a` for alpha.
#define TM_STEP_ELU 19

// As tm_clip, from `a` to `b`.
#define TM_STEP_CLIP 20

// i and i + depth / 2.
#define TM_ROTARY_HALVES 0

// 2 * i and 2 * i + 1.
#define TM_ROTARY_NEIGHBOURS 1

// Replaces it; of several updates of one place the last one counts.
#define TM_SCATTER_SET 0

// Is added to it; i32 and u32.
#define TM_SCATTER_ADD 1

// The larger of the two.
#define TM_SCATTER_MAX 2

// The smaller of the two.
#define TM_SCATTER_MIN 3

// Running sums.
#define TM_CUMSUM 0

// Running products.
#define TM_CUMPROD 1

// The largest element so far.
#define TM_CUMMAX 2

// The smallest element so far.
#define TM_CUMMIN 3

// By predicted times of both sides.
#define TM_POLICY_AUTO 0

// Always the CPU.
#define TM_POLICY_CPU 1

// Always the device.
#define TM_POLICY_GPU 2

// The CPU.
#define TM_SIDE_CPU 0

// The device.
#define TM_SIDE_GPU 1

// It is the cheaper one.
#define TM_WHY_CHEAPER 0

// Its price is not known yet.
#define TM_WHY_UNTRIED 1

// Its price is measured again.
#define TM_WHY_CHECKED 2

// The policy says so.
#define TM_WHY_POLICY 3

// There is no device, or nothing was measured of it.
#define TM_WHY_NO_DEVICE 4

// The operations.
#define TM_PART_COMPUTE 0

// Moving operands and results.
#define TM_PART_TRANSFER 1

// The submission.
#define TM_PART_SUBMISSION 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The library's version, such as "0.1.0". Static: not to be freed.
const char *tm_version(void);

// The TM_ABI_VERSION that the library was built with.
uint32_t tm_abi_version(void);

// Call it as tm_check_abi(TM_ABI_VERSION) before anything else: TM_ABI_MISMATCH if the program was compiled against a
// header that does not belong to this library.
tm_status tm_check_abi(uint32_t header_abi_version);

// The message of this thread's last call that failed; "" if none has. It stays valid until the thread's next call
// that fails: copy it to keep it.
const char *tm_last_error_message(void);

// The name of a code, such as "TM_SHAPE". Static: not to be freed.
const char *tm_status_name(int32_t status);

// Frees a string that this library gave. NULL is allowed.
void tm_string_free(char *string);

// Sets the defaults. Call it as tm_config_init(&config, sizeof config): TM_ABI_MISMATCH, and nothing is written, if
// header and library do not belong together. tm_config_defaults() does so.
tm_status tm_config_init(tm_config *config,
                         size_t size);

// The process's own accelerator, on the best device there is; made by the first call. After a loss of the device the
// next call makes a new one. Each call gives a handle to free; the accelerator itself stays.
tm_status tm_accelerator_global(tm_accelerator **gpu);

// An accelerator of your own. NULL for `config` means the defaults.
tm_status tm_accelerator_new(const tm_config *config, tm_accelerator **gpu);

// Waits for all work, and closes: calls on it give TM_CLOSED from then on. TM_STILL_IN_USE, with how many, if tensors,
// recordings, submissions or other handles of the same accelerator are still there; it is closed then, too. The handle
// still has to be freed. Only needed by those who must know that nothing is left on the device.
tm_status tm_accelerator_close(const tm_accelerator *gpu);

// Waits until everything submitted is done.
tm_status tm_synchronize(const tm_accelerator *gpu);

// Frees the memory that the pool keeps for later; `freed_bytes`, if not NULL, gets how much that was.
tm_status tm_trim(const tm_accelerator *gpu, uint64_t *freed_bytes);

// Every Vulkan device of the machine as a JSON array, with why it can't be used if so.
tm_status tm_devices_json(char **json);

// The accelerator's device as JSON: name, kind, driver, limits.
tm_status tm_device_json(const tm_accelerator *gpu, char **json);

// Statistics of the accelerator, as JSON: submissions, dispatches, barriers, bytes, pool, pipelines.
tm_status tm_stats_json(const tm_accelerator *gpu, char **json);

// Where files are kept between runs, as JSON: the pipeline cache's `file`, whether an earlier process's was taken up
// (`loaded`), and the `problem` if the default folder can't be used.
tm_status tm_cache_json(const tm_accelerator *gpu,
                        char **json);

// Peaks of the device, as JSON: GFLOP/s, GB/s by working set, and the time of an empty dispatch. Measured when first
// asked for (some tenths of a second), then kept, on disk too.
tm_status tm_peaks_json(const tm_accelerator *gpu,
                        char **json);

// Lets RenderDoc record what `work` submits. `file`, if not NULL, gets the path: `name` with ".rdc" behind it. Work
// before is waited for, and so is work inside. TM_PROFILE says what is missing, before `work` is called; TM_CALLBACK,
// without a file, if it gives another number than 0.
tm_status tm_capture(const tm_accelerator *gpu,
                     const char *name,
                     tm_call_fn work,
                     void *user,
                     char **file);

// Messages of the validation layer since the last call, as a JSON array of strings.
tm_status tm_validation_messages_json(const tm_accelerator *gpu, char **json);

// Frees the handle. The device goes with the last handle of anything on it. NULL is allowed.
void tm_accelerator_free(tm_accelerator *gpu);

// Asks a physical device (VkPhysicalDevice) of an instance (VkInstance) of Vulkan 1.3. `get_instance_proc_addr` is
// vkGetInstanceProcAddr, or NULL for that of the system's loader.
tm_status tm_device_needs_of(tm_vulkan_fn get_instance_proc_addr,
                             void *instance,
                             void *physical_device,
                             tm_device_needs **needs);

// Why this device can't be used at all, each reason in words: `count` strings, which are good as long as the handle.
// None if it can. NULL and 0 for NULL.
const char *const *tm_device_needs_missing(const tm_device_needs *needs,
                                           uint32_t *count);

// The device extensions to enable, for ppEnabledExtensionNames: those the device has that Tidemill uses. All but
// VK_KHR_portability_subset may be left out; what they bring is then done without. As tm_device_needs_missing.
const char *const *tm_device_needs_extensions(const tm_device_needs *needs,
                                              uint32_t *count);

// The features to enable, by their names in the specification. tm_device_needs_enable does it. As
// tm_device_needs_missing.
const char *const *tm_device_needs_features(const tm_device_needs *needs, uint32_t *count);

// Switches the features on in the host's own structs: VkPhysicalDeviceFeatures, and those of Vulkan 1.1, 1.2 and 1.3
// (VkPhysicalDeviceVulkan11Features and so on). What else is in them stays as it is. `deviceFault` has a struct of
// its own, VkPhysicalDeviceFaultFeaturesEXT, which a host chains itself if it wants to know why a device was lost.
tm_status tm_device_needs_enable(const tm_device_needs *needs,
                                 void *core,
                                 void *v11,
                                 void *v12,
                                 void *v13);

// Frees the handle, and the strings that it gave. NULL is allowed.
void tm_device_needs_free(tm_device_needs *needs);

// An accelerator on a device of the host: it submits to the host's queue under the host's lock, and destroys
// nothing of the host. NULL for `config` means the defaults. Of the configuration, the choice of the device,
// `validation`, `labels`, `renderdoc` and `on_message` are the host's own affair and not looked at. TM_HOST says
// what the device was made without.
tm_status tm_accelerator_from_raw(const tm_host_device *host,
                                  const tm_config *config,
                                  tm_accelerator **gpu);

// Calls `change` while Tidemill, on any of its devices, neither names an object nor makes or destroys an instance or
// a device. A process in which an accelerator has names (`validation`, `labels`, `quiet`) makes and destroys its own
// instances and devices like this, and lists physical devices. Keep it short: other threads' use of Tidemill waits
// meanwhile. TM_CALLBACK if it gives another number than 0.
tm_status tm_alone_at_the_loader(tm_call_fn change,
                                 void *user);

// A tensor with a copy of `size_bytes` bytes at `data`, which must be all elements of its shape.
tm_status tm_upload(const tm_accelerator *gpu,
                    tm_dtype dtype,
                    const size_t *dims,
                    size_t rank,
                    const void *data,
                    size_t size_bytes,
                    tm_tensor **tensor);

// A tensor of indices, of TM_I32, from `count` 64-bit ones, which must be all elements of its shape. TM_PARAMETER if
// one does not fit; the message has the first.
tm_status tm_upload_indices(const tm_accelerator *gpu,
                            const size_t *dims,
                            size_t rank,
                            const int64_t *data,
                            size_t count,
                            tm_tensor **tensor);

// A tensor of zeros.
tm_status tm_zeros(const tm_accelerator *gpu,
                   tm_dtype dtype,
                   const size_t *dims,
                   size_t rank,
                   tm_tensor **tensor);

// A tensor without contents: to be written, or to be bound as a plan's output.
tm_status tm_empty(const tm_accelerator *gpu,
                   tm_dtype dtype,
                   const size_t *dims,
                   size_t rank,
                   tm_tensor **tensor);

// Overwrites the contents. Never waits for the device: what still uses the old contents keeps them.
tm_status tm_tensor_write(const tm_tensor *tensor, const void *data, size_t size_bytes);

// Copies the contents to `data`, which has room for exactly `size_bytes` bytes: all elements. Waits for the submission
// that writes them, and for nothing else.
tm_status tm_tensor_read(const tm_tensor *tensor,
                         void *data,
                         size_t size_bytes);

// The extents: `dims` has room for TM_MAX_RANK of them, and `rank` gets how many there are.
tm_status tm_tensor_shape(const tm_tensor *tensor, size_t (*dims)[TM_MAX_RANK], size_t *rank);

// The element type.
tm_status tm_tensor_dtype(const tm_tensor *tensor, tm_dtype *dtype);

// The size of the contents; 0 for NULL.
uint64_t tm_tensor_size_bytes(const tm_tensor *tensor);

// The same contents with another shape of as many elements, as a handle of its own; nothing is copied.
tm_status tm_tensor_reshape(const tm_tensor *tensor, const size_t *dims, size_t rank, tm_tensor **reshaped);

// A handle of the accelerator that the tensor is on, to be freed.
tm_status tm_tensor_accelerator(const tm_tensor *tensor, tm_accelerator **gpu);

// One more handle of the same tensor.
tm_status tm_tensor_clone(const tm_tensor *tensor, tm_tensor **clone);

// Frees the handle. The memory goes back to the pool with the last handle and the last submission that uses it. NULL
// is allowed.
void tm_tensor_free(tm_tensor *tensor);

// A tensor whose contents a function writes straight into mapped memory, with no copy in between. (Where the host
// can't reach the device's memory, that is staging memory up to 8 MiB, and ordinary memory for more.) TM_CALLBACK,
// and no tensor, if it gives another number than 0.
tm_status tm_upload_with(const tm_accelerator *gpu,
                         tm_dtype dtype,
                         const size_t *dims,
                         size_t rank,
                         tm_fill_fn fill,
                         void *user,
                         tm_tensor **tensor);

// Overwrites the contents as tm_upload_with makes them. What still uses the old contents keeps them. TM_CALLBACK if
// the function gives another number than 0: the contents are then what it left, and zeros.
tm_status tm_tensor_write_with(const tm_tensor *tensor,
                               tm_fill_fn fill,
                               void *user);

// Says that `size_bytes` bytes at `data` stay as they are, and readable, until `release` is called: when the handle
// was freed, and the last tensor on it and the last submission that reads it are gone. `release` may be NULL for
// memory that is there until the process ends.
tm_status tm_host_memory_new(const void *data,
                             size_t size_bytes,
                             tm_release_fn release,
                             void *user,
                             tm_host_memory **memory);

// Frees the handle. Tensors on the memory keep it. NULL is allowed.
void tm_host_memory_free(tm_host_memory *memory);

// A tensor on memory of the application, from a byte of it on, without a copy. The device reads the memory where it
// is; nothing writes it: tm_tensor_write and a plan's output give the tensor memory of its own instead. It takes
// none of the pool.
//
// TM_HOST says why it can't be done: the device has no VK_EXT_external_memory_host, the driver refuses, or the
// tensor does not begin at a multiple of the device's minStorageBufferOffsetAlignment. tm_import_or_upload copies
// then.
tm_status tm_import(const tm_accelerator *gpu,
                    const tm_host_memory *memory,
                    size_t offset_bytes,
                    tm_dtype dtype,
                    const size_t *dims,
                    size_t rank,
                    tm_tensor **tensor);

// As tm_import where that can be done, and as tm_upload otherwise: `why`, if not NULL, then gets the reason, to be
// freed with tm_string_free, and NULL otherwise.
tm_status tm_import_or_upload(const tm_accelerator *gpu,
                              const tm_host_memory *memory,
                              size_t offset_bytes,
                              tm_dtype dtype,
                              const size_t *dims,
                              size_t rank,
                              char **why,
                              tm_tensor **tensor);

// Whether the contents are still in the application's own memory, as tm_import left them; false for NULL.
bool tm_tensor_is_imported(const tm_tensor *tensor);

// The contents for another library of this process that takes DLPack: `managed` gets a `DLManagedTensor *` of
// dlpack.h, dense and in the CPU's memory. It is a copy, which the caller owns: its deleter
// frees it. Waits for the submission that writes the contents, and for nothing else.
tm_status tm_tensor_to_dlpack(const tm_tensor *tensor, void **managed);

// A tensor of another library of this process: `managed` is a `DLManagedTensor *` of dlpack.h, dense and row-major, in
// the CPU's memory. It is the library's from this call on, whether the call works or fails. Without a copy where that
// can be done, as tm_import; then its deleter is called when the last tensor on it and the last submission that reads
// it are gone, on any thread. Nothing writes the memory until then. It must not throw.
tm_status tm_tensor_from_dlpack(const tm_accelerator *gpu,
                                void *managed,
                                tm_tensor **tensor);

// A tensor as an operand.
tm_value tm_of(const tm_tensor *tensor);

// Begins a recording.
tm_status tm_begin_recording(const tm_accelerator *gpu, tm_recording **recording);

// Makes a value a tensor that outlives the recording. It has contents once the recording was submitted.
tm_status tm_keep(const tm_recording *recording, tm_value x, tm_tensor **tensor);

// The extents of an operand: `dims` has room for TM_MAX_RANK of them, and `rank` gets how many there are.
tm_status tm_value_shape(const tm_recording *recording,
                         tm_value x,
                         size_t (*dims)[TM_MAX_RANK],
                         size_t *rank);

// The element type of an operand.
tm_status tm_value_dtype(const tm_recording *recording, tm_value x, tm_dtype *dtype);

// Ends the recording and hands it to the device as one submission; waits for nothing. `submission` may be NULL:
// reading a kept tensor waits by itself. The recording's handle still has to be freed.
tm_status tm_end_recording(const tm_recording *recording,
                           tm_submission **submission);

// Ends the recording as a plan, which submits it as often as it is wanted. The recording's handle still has to be
// freed.
tm_status tm_into_plan(const tm_recording *recording,
                       tm_plan **plan);

// Profiles this recording in its own way, whatever the accelerator's is.
tm_status tm_recording_profiling(const tm_recording *recording, tm_profiling mode);

// Explains what will run if the recording ends now, as a text: fused operations, barriers, stored values.
tm_status tm_explain(const tm_recording *recording, char **text);

// The same as JSON: values, the operations as they were recorded, and what will run. `reads` and `writes` are places
// in `values`.
tm_status tm_explain_json(const tm_recording *recording,
                          char **text);

// The same as a drawing, an SVG file.
tm_status tm_explain_svg(const tm_recording *recording, char **text);

// The same as a graph for Graphviz.
tm_status tm_explain_dot(const tm_recording *recording, char **text);

// Frees the handle. A recording that has not ended is discarded. NULL is allowed.
void tm_recording_free(tm_recording *recording);

// Waits until the work is done, or for `timeout_ns` at most: TM_TIMEOUT then, and the work goes on. TM_FOREVER waits.
tm_status tm_submission_wait(const tm_submission *submission,
                             uint64_t timeout_ns);

// Whether the work is done. Never waits.
tm_status tm_submission_is_complete(const tm_submission *submission, bool *complete);

// Its number on the accelerator's timeline, from 1; numbers complete in order. 0 for NULL.
uint64_t tm_submission_number(const tm_submission *submission);

// The device's work, dispatch by dispatch, as JSON. Waits until the work is done. TM_PROFILE if it was not profiled.
tm_status tm_submission_profile_json(const tm_submission *submission,
                                     char **json);

// Frees the handle. NULL is allowed.
void tm_submission_free(tm_submission *submission);

// A test of each element.
tm_status tm_test(const tm_recording *recording, tm_test_op op, tm_value x, tm_value *out);

// An operation of one operand.
tm_status tm_unary(const tm_recording *recording, tm_unary_op op, tm_value x, tm_value *out);

// An operation of two operands of one element type. Shapes broadcast as in NumPy.
tm_status tm_binary(const tm_recording *recording, tm_binary_op op, tm_value a, tm_value b, tm_value *out);

// An operation of an operand and a number on the right, which becomes an element of the operand's type: TM_PARAMETER
// if it is none, such as 0.5 for integers.
tm_status tm_binary_scalar(const tm_recording *recording,
                           tm_binary_op op,
                           tm_value a,
                           double b,
                           tm_value *out);

// x where it is above 0, alpha * x elsewhere; floats.
tm_status tm_leaky_relu(const tm_recording *recording, tm_value x, float alpha, tm_value *out);

// x where it is above 0, alpha * (exp(x) - 1) elsewhere; floats.
tm_status tm_elu(const tm_recording *recording, tm_value x, float alpha, tm_value *out);

// x where it is above 0, alpha * (exp(x / alpha) - 1) elsewhere; floats.
tm_status tm_celu(const tm_recording *recording, tm_value x, float alpha, tm_value *out);

// x, but not below the elements of `lo` and not above those of `hi`; floats. All three broadcast.
tm_status tm_clamp(const tm_recording *recording, tm_value x, tm_value lo, tm_value hi, tm_value *out);

// x, but not below `lo` and not above `hi`; floats.
tm_status tm_clip(const tm_recording *recording, tm_value x, float lo, float hi, tm_value *out);

// a where the mask (u32, as comparisons give it) is not 0, b elsewhere; all three broadcast.
tm_status tm_select(const tm_recording *recording, tm_value mask, tm_value a, tm_value b, tm_value *out);

// The same numbers as elements of another type.
tm_status tm_cast(const tm_recording *recording, tm_value x, tm_dtype to, tm_value *out);

// The same bits as another type of four bytes.
tm_status tm_bitcast(const tm_recording *recording, tm_value x, tm_dtype to, tm_value *out);

// Reduces along an axis; negative ones count from the end, and TM_ALL_AXES gives one element. With `keep` the axis
// stays in the shape, with one element.
tm_status tm_reduce(const tm_recording *recording,
                    tm_reduce_op op,
                    tm_value x,
                    int32_t axis,
                    bool keep,
                    tm_value *out);

// Reduces along several axes; negative ones count from the end. With `keep` the axes stay in the shape, with one
// element each.
tm_status tm_reduce_axes(const tm_recording *recording,
                         tm_reduce_op op,
                         tm_value x,
                         const int32_t *axes,
                         size_t axis_count,
                         bool keep,
                         tm_value *out);

// The mean into `mean` and the variance into `variance`, along axes as in tm_reduce_axes; f32.
tm_status tm_moments(const tm_recording *recording,
                     tm_value x,
                     const int32_t *axes,
                     size_t axis_count,
                     bool keep,
                     tm_value *mean,
                     tm_value *variance);

// The sum of products of two vectors.
tm_status tm_dot(const tm_recording *recording, tm_value a, tm_value b, tm_value *out);

// Softmax along an axis; negative ones count from the end; f32.
tm_status tm_softmax(const tm_recording *recording, tm_value x, int32_t axis, tm_value *out);

// The logarithm of softmax.
tm_status tm_log_softmax(const tm_recording *recording, tm_value x, int32_t axis, tm_value *out);

// A number from each window of the last `rank` dimensions, one to three; floats. `window`, `stride` and `dilation`
// have a number for each dimension, `padding` two, before and after it. NULL stands for windows side by side, for no
// padding, for neighbours. `p` is read by TM_POOL_NORM alone.
tm_status tm_pool(const tm_recording *recording,
                  tm_pool_op op,
                  tm_value x,
                  const size_t *window,
                  const size_t *stride,
                  const size_t *padding,
                  const size_t *dilation,
                  size_t rank,
                  uint32_t flags,
                  float p,
                  tm_value *out);

// The last `rank` dimensions, one to three, with other extents; floats.
tm_status tm_resize(const tm_recording *recording,
                    tm_value x,
                    const size_t *extents,
                    size_t rank,
                    tm_interpolation interpolation,
                    tm_coordinates coordinates,
                    tm_value *out);

// Channels to pixels: [..., c * f * f, h, w] to [..., c, h * f, w * f].
tm_status tm_pixel_shuffle(const tm_recording *recording, tm_value x, size_t factor, tm_value *out);

// Pixels to channels: [..., c, h * f, w * f] to [..., c * f * f, h, w].
tm_status tm_pixel_unshuffle(const tm_recording *recording, tm_value x, size_t factor, tm_value *out);

// As tm_pool, TM_POOL_MAX and TM_POOL_AVERAGE, with windows that cut the last `rank` dimensions into this many parts.
tm_status tm_adaptive_pool(const tm_recording *recording,
                           tm_pool_op op,
                           tm_value x,
                           const size_t *parts,
                           size_t rank,
                           tm_value *out);

// Layer normalisation over the last dimensions, as many as `gamma` has:
// (x - mean) / sqrt(variance + epsilon) * gamma + beta.
tm_status tm_layer_norm(const tm_recording *recording,
                        tm_value x,
                        tm_value gamma,
                        tm_value beta,
                        float epsilon,
                        tm_value *out);

// x + residual, and its layer normalisation, in one pass.
tm_status tm_add_layer_norm(const tm_recording *recording,
                            tm_value x,
                            tm_value residual,
                            tm_value gamma,
                            tm_value beta,
                            float epsilon,
                            tm_value *sum,
                            tm_value *out);

// Normalisation by the root mean square over the last dimensions, as many as `gamma` has:
// x / sqrt(mean(x * x) + epsilon) * gamma.
tm_status tm_rms_norm(const tm_recording *recording,
                      tm_value x,
                      tm_value gamma,
                      float epsilon,
                      tm_value *out);

// x + residual, and its normalisation by the root mean square, in one pass.
tm_status tm_add_rms_norm(const tm_recording *recording,
                          tm_value x,
                          tm_value residual,
                          tm_value gamma,
                          float epsilon,
                          tm_value *sum,
                          tm_value *out);

// Group normalisation of [images, channels, ...] in `groups` of channels; `gamma` and `beta` have a number
// for each channel.
tm_status tm_group_norm(const tm_recording *recording,
                        tm_value x,
                        size_t groups,
                        tm_value gamma,
                        tm_value beta,
                        float epsilon,
                        tm_value *out);

// Instance normalisation of [images, channels, ...]: each channel of each image for itself.
tm_status tm_instance_norm(const tm_recording *recording,
                           tm_value x,
                           tm_value gamma,
                           tm_value beta,
                           float epsilon,
                           tm_value *out);

// Batch normalisation of [images, channels, ...] as in inference: with a mean, a variance, a gamma and a
// beta for each channel.
tm_status tm_batch_norm(const tm_recording *recording,
                        tm_value x,
                        tm_value mean,
                        tm_value variance,
                        tm_value gamma,
                        tm_value beta,
                        float epsilon,
                        tm_value *out);

// Options of a plain matmul. tm_matmul_defaults() calls it.
tm_status tm_matmul_options_init(tm_matmul_options *options, size_t size);

// The matmul, of batches too, as in NumPy; floats. NULL for `options` is a plain matmul.
tm_status tm_matmul(const tm_recording *recording,
                    tm_value lhs,
                    tm_value rhs,
                    const tm_matmul_options *options,
                    tm_value *out);

// Every query sees every key. tm_attention_defaults() calls it.
tm_status tm_attention_options_init(tm_attention_options *options, size_t size);

// softmax(scale * q * transposed k + mask) * v of [batch, heads, tokens, depth] with [batch, kv_heads, keys, depth]
// and [batch, kv_heads, keys, width]; floats. Scores are never in memory. NULL for `options` means the defaults.
tm_status tm_attention(const tm_recording *recording,
                       tm_value q,
                       tm_value k,
                       tm_value v,
                       const tm_attention_options *options,
                       tm_value *out);

// Rotary embedding of [..., tokens, depth]; floats. `positions` are u32: one for each token, or that of the first. The
// usual base is 10000.
tm_status tm_rotary(const tm_recording *recording,
                    tm_value x,
                    tm_value positions,
                    float base,
                    tm_rotary_pairs pairs,
                    tm_value *out);

// Every pixel, no padding, one group. tm_conv2d_defaults() calls it.
tm_status tm_conv2d_options_init(tm_conv2d_options *options, size_t size);

// The convolution of images [image, channel, y, x] with weights [channel of the result, channel in its group, y, x];
// floats. NULL for `options` means the defaults. Weights that serve more than once are better prepared.
tm_status tm_conv2d(const tm_recording *recording,
                    tm_value images,
                    tm_value weights,
                    const tm_conv2d_options *options,
                    tm_value *out);

// As tm_conv2d, with prepared weights.
tm_status tm_conv2d_prepared(const tm_recording *recording,
                             tm_value images,
                             const tm_weights *weights,
                             const tm_conv2d_options *options,
                             tm_value *out);

// Lays weights out for as many convolutions as there will be. The tensor is not needed any more after this.
tm_status tm_prepare_weights(const tm_accelerator *gpu,
                             const tm_tensor *weights,
                             size_t groups,
                             tm_weights **prepared);

// Frees the handle. NULL is allowed.
void tm_weights_free(tm_weights *weights);

// The same contents with another shape of as many elements; nothing is copied.
tm_status tm_reshape(const tm_recording *recording,
                     tm_value x,
                     const size_t *dims,
                     size_t rank,
                     tm_value *out);

// Another order of the dimensions: `order` has the old number of each new dimension, `rank` of them.
tm_status tm_permute(const tm_recording *recording,
                     tm_value x,
                     const size_t *order,
                     size_t rank,
                     tm_value *out);

// The last two dimensions exchanged.
tm_status tm_transpose(const tm_recording *recording, tm_value x, tm_value *out);

// A box: from `begin[i]` up to but not including `end[i]` in each of the first `count` dimensions.
tm_status tm_slice(const tm_recording *recording,
                   tm_value x,
                   const size_t *begin,
                   const size_t *end,
                   size_t count,
                   tm_value *out);

// As tm_slice, of which every `step[i]`-th element counts; from the last one of the range on where it is negative.
tm_status tm_slice_step(const tm_recording *recording,
                        tm_value x,
                        const size_t *begin,
                        const size_t *end,
                        const ptrdiff_t *step,
                        size_t count,
                        tm_value *out);

// Writes a value to a box of an existing tensor, in place: from `begin[i]` up to but not including `end[i]` in each of
// the first `count` dimensions. What was recorded before reads the old contents.
tm_status tm_update(const tm_recording *recording,
                    const tm_tensor *tensor,
                    const size_t *begin,
                    const size_t *end,
                    size_t count,
                    tm_value x);

// Gives an existing tensor a new value, in its own memory. What was recorded before reads the old contents.
tm_status tm_assign(const tm_recording *recording, const tm_tensor *tensor, tm_value x);

// Repeated to a larger shape by NumPy's rules.
tm_status tm_broadcast_to(const tm_recording *recording,
                          tm_value x,
                          const size_t *dims,
                          size_t rank,
                          tm_value *out);

// Operands one after the other along an axis; negative ones count from the end.
tm_status tm_concat(const tm_recording *recording,
                    const tm_value *xs,
                    size_t count,
                    int32_t axis,
                    tm_value *out);

// Operands of one shape along a new axis.
tm_status tm_stack(const tm_recording *recording,
                   const tm_value *xs,
                   size_t count,
                   int32_t axis,
                   tm_value *out);

// With `before[i]` and `after[i]` more elements around it in each of its `rank` dimensions.
tm_status tm_pad(const tm_recording *recording,
                 tm_value x,
                 const size_t *before,
                 const size_t *after,
                 size_t rank,
                 double element,
                 tm_value *out);

// Rows of a table (its slices along the first dimension) by their numbers, which are u32. A number outside the table
// gives a row of zeros.
tm_status tm_gather_rows(const tm_recording *recording,
                         tm_value table,
                         tm_value rows,
                         tm_value *out);

// A copy in memory of its own.
tm_status tm_copy(const tm_recording *recording, tm_value x, tm_value *out);

// Equal elements.
tm_status tm_fill(const tm_recording *recording,
                  tm_dtype dtype,
                  const size_t *dims,
                  size_t rank,
                  double element,
                  tm_value *out);

// 0, 1, 2 and so on, in row-major order.
tm_status tm_iota(const tm_recording *recording,
                  tm_dtype dtype,
                  const size_t *dims,
                  size_t rank,
                  tm_value *out);

// Random f32 numbers, uniform in [0, 1). Seed and place alone decide an element, with the same bits on every device.
tm_status tm_random_uniform(const tm_recording *recording,
                            const size_t *dims,
                            size_t rank,
                            uint64_t seed,
                            tm_value *out);

// Random f32 numbers, normal with mean 0 and variance 1.
tm_status tm_random_normal(const tm_recording *recording,
                           const size_t *dims,
                           size_t rank,
                           uint64_t seed,
                           tm_value *out);

// Slices along an axis by their indices, which are u32 or i32: the indices' dimensions take the place of the axis. An
// index outside gives zeros. Negative axes count from the end.
tm_status tm_gather(const tm_recording *recording,
                    tm_value x,
                    tm_value indices,
                    int32_t axis,
                    tm_value *out);

// One element for each index, from the index's own place in all dimensions but the axis. The indices have the shape of
// x, but for the axis.
tm_status tm_gather_elements(const tm_recording *recording,
                             tm_value x,
                             tm_value indices,
                             int32_t axis,
                             tm_value *out);

// Slices by rows of indices: the last dimension of the indices has one for each of the first dimensions of x.
tm_status tm_gather_nd(const tm_recording *recording, tm_value x, tm_value indices, tm_value *out);

// Slices of x along an axis updated. The updates have the shape that tm_gather gives with these indices; those with an
// index outside are dropped.
tm_status tm_scatter(const tm_recording *recording,
                     tm_scatter_op op,
                     tm_value x,
                     tm_value indices,
                     tm_value updates,
                     int32_t axis,
                     tm_value *out);

// Sums of slices along the first axis by the ids of their segments; an id that is not below `segments` drops its
// slice.
tm_status tm_segment_sum(const tm_recording *recording,
                         tm_value x,
                         tm_value ids,
                         size_t segments,
                         tm_value *out);

// How often each number below `bins` occurs, as u32.
tm_status tm_bincount(const tm_recording *recording, tm_value x, size_t bins, tm_value *out);

// The sum of the weights of each number below `bins`.
tm_status tm_bincount_weighted(const tm_recording *recording,
                               tm_value x,
                               tm_value weights,
                               size_t bins,
                               tm_value *out);

// A row of `classes` elements for each index, with a one at the index and zeros elsewhere, as u32.
tm_status tm_one_hot(const tm_recording *recording, tm_value indices, size_t classes, tm_value *out);

// How many of the indices lie outside an axis of this extent, as a u32 scalar.
tm_status tm_count_outside(const tm_recording *recording, tm_value indices, size_t extent, tm_value *out);

// Declares a number of type TM_F32, TM_I32 or TM_U32, from `least` to `most`, that the recording's plan is given by
// tm_plan_set_argument, and that may be another one for each submission. It is an operand of shape [], as a scalar is.
// Each has a name of its own. Only a plan has arguments: tm_end_recording refuses a recording that declared one.
tm_status tm_declare_argument(const tm_recording *recording,
                              const char *name,
                              tm_dtype element,
                              double least,
                              double most,
                              tm_value *out);

// Sets an argument of a plan for the submissions from now on, until it is set again; those in flight keep what they
// were given. Nothing is encoded again. A number outside of the range that was declared is TM_PARAMETER, and changes
// nothing.
tm_status tm_plan_set_argument(const tm_plan *plan,
                               const char *name,
                               double number);

// `length` elements along an axis, from `start` on: an argument, or another value of one element, u32 or i32. An
// argument's range must keep the part inside; of any other value, elements outside are zeros.
tm_status tm_slice_at(const tm_recording *recording,
                      tm_value x,
                      int32_t axis,
                      tm_value start,
                      size_t length,
                      tm_value *out);

// Writes a value to a part of an existing tensor, in place: as many elements along the axis as the value has, from
// `start` on, which is as in tm_slice_at. What was recorded before reads the old contents.
tm_status tm_update_at(const tm_recording *recording,
                       const tm_tensor *tensor,
                       int32_t axis,
                       tm_value start,
                       tm_value x);

// With `outside` in the place of all elements whose index along the axis is `length` or more: an argument, or another
// value of one element, u32 or i32. With 0 a sum, with -INFINITY a softmax or a largest element is of the first
// `length` elements alone.
tm_status tm_mask_from(const tm_recording *recording,
                       tm_value x,
                       int32_t axis,
                       tm_value length,
                       double outside,
                       tm_value *out);

// A scan along an axis; negative ones count from the end. An exclusive one leaves the element at each result's own
// place out; a reverse one begins at the end.
tm_status tm_scan(const tm_recording *recording,
                  tm_scan_op op,
                  tm_value x,
                  int32_t axis,
                  bool exclusive,
                  bool reverse,
                  tm_value *out);

// The elements in order along an axis. Equal ones keep their order; a NaN is larger than all numbers.
tm_status tm_sort(const tm_recording *recording, tm_value x, int32_t axis, bool descending, tm_value *out);

// The places along an axis that the elements in order come from, as u32.
tm_status tm_argsort(const tm_recording *recording, tm_value x, int32_t axis, bool descending, tm_value *out);

// The keys in order along an axis, and the values in the order of their keys.
tm_status tm_sort_by_key(const tm_recording *recording,
                         tm_value keys,
                         tm_value values,
                         int32_t axis,
                         bool descending,
                         tm_value *out_keys,
                         tm_value *out_values);

// The k largest elements along an axis, the largest first, and their places as u32.
tm_status tm_topk(const tm_recording *recording,
                  tm_value x,
                  size_t k,
                  int32_t axis,
                  tm_value *out,
                  tm_value *out_places);

// For each value, how many elements of a sorted list come before it, as u32; with `behind`, how many are not above it.
tm_status tm_searchsorted(const tm_recording *recording,
                          tm_value sorted,
                          tm_value values,
                          bool behind,
                          tm_value *out);

// The slices along the first axis whose mask is not zero, one behind the other and zeros behind them, and how many
// there are as a u32 scalar.
tm_status tm_compact(const tm_recording *recording,
                     tm_value x,
                     tm_value mask,
                     tm_value *out,
                     tm_value *out_count);

// The places of the elements that are not zero, counted through the whole tensor, with zeros behind them, and how many
// there are as a u32 scalar.
tm_status tm_nonzero(const tm_recording *recording,
                     tm_value x,
                     tm_value *out,
                     tm_value *out_count);

// The different elements in ascending order and how often each occurs, with zeros behind them; for each element of x
// its place among them; and how many different ones there are as a u32 scalar.
tm_status tm_unique(const tm_recording *recording,
                    tm_value x,
                    tm_value *out,
                    tm_value *out_counts,
                    tm_value *out_inverse,
                    tm_value *out_count);

// An argument that the kernel reads.
tm_argument tm_input(tm_value x);

// An argument that the kernel reads and writes in place: an existing tensor. What was recorded before reads the old
// contents.
tm_argument tm_inout(const tm_tensor *tensor);

// An argument that the kernel writes: a new value. A rank above TM_MAX_RANK is refused by tm_dispatch.
tm_argument tm_output(tm_dtype dtype, const size_t *dims, size_t rank);

// A kernel from SPIR-V, as it is. `name` is what labels, profiles and errors call it. tm_kernel_from_spirv_guarded
// asks for less.
//
// The words must be a module that is valid by the rules of Vulkan 1.3, and for every set of arguments that it will be
// dispatched with, the shader must access only elements inside its bindings, must not write to one element from
// several invocations without synchronization, and must end.
tm_status tm_kernel_from_spirv(const char *name,
                               const uint32_t *words,
                               size_t word_count,
                               tm_kernel **kernel);

// A kernel from SPIR-V that may come from anywhere. The module is checked, and each index into a binding, an array or
// shared memory is clamped to what is there: whatever the arguments, it reads and writes only what it was given. A
// module that can't be made safe in this way is refused with the reason (TM_KERNEL). Nothing bounds the time that a
// shader takes: it must end.
tm_status tm_kernel_from_spirv_guarded(const char *name,
                                       const uint32_t *words,
                                       size_t word_count,
                                       tm_kernel **kernel);

// Whether the library was built with a compiler for GLSL (the feature `shaderc`).
bool tm_has_glsl(void);

// A kernel from GLSL. As tm_kernel_from_spirv_guarded, it reads and writes only what it was given. TM_KERNEL has the
// mistakes, each with file and line, or says that the library was built without a compiler.
tm_status tm_kernel_from_glsl(const tm_glsl *glsl,
                              tm_kernel **kernel);

// Records one run of a kernel. `outputs` gets a value for each output among the arguments, in their order; it has room
// for `output_count`, which must be as many. An output that the shader reads, too, is all zeros before.
tm_status tm_dispatch(const tm_recording *recording,
                      const tm_dispatch_info *info,
                      tm_value *outputs,
                      size_t output_count);

// As tm_kernel_from_glsl, but as it is: what must be true of the shader stands at tm_kernel_from_spirv.
tm_status tm_kernel_from_glsl_unguarded(const tm_glsl *glsl, tm_kernel **kernel);

// The reflection of the kernel, as JSON: name, bindings, bytes of push constants, local size, specialization
// constants.
tm_status tm_kernel_json(const tm_kernel *kernel, char **json);

// Frees the handle. Recordings and plans that use the kernel keep it. NULL is allowed.
void tm_kernel_free(tm_kernel *kernel);

// Hands it to the device as one submission; waits for nothing. `submission` may be NULL.
tm_status tm_plan_submit(const tm_plan *plan, tm_submission **submission);

// From now on `tensor` stands in the place of `recorded`, which was read or kept when the plan was recorded. The plan
// keeps what it needs of it. Submissions in flight are not affected.
tm_status tm_plan_bind(const tm_plan *plan,
                       const tm_tensor *recorded,
                       const tm_tensor *tensor);

// Profiles its submissions in their own way, whatever the accelerator's is.
tm_status tm_plan_profiling(const tm_plan *plan, tm_profiling mode);

// Frees the handle. Submissions in flight go on. NULL is allowed.
void tm_plan_free(tm_plan *plan);

// A tensor in a buffer of the host, with what the host has in it. The buffer stays the host's.
//
// It is an operand like any other. Unlike others it stays in its place when it is written: by tm_tensor_write, by
// tm_keep_in_buffer, or as a plan's output (tm_plan_bind). A recording reads what is in it when it is submitted.
tm_status tm_wrap_buffer(const tm_accelerator *gpu,
                         const tm_host_buffer *buffer,
                         tm_dtype dtype,
                         const size_t *dims,
                         size_t rank,
                         tm_tensor **tensor);

// As tm_keep, but in memory of the host: the value becomes the contents of a tensor that tm_wrap_buffer gave.
tm_status tm_keep_in_buffer(const tm_recording *recording, tm_value x, const tm_tensor *tensor);

// The tensor's memory, for the host's own commands: it can be bound as a storage, uniform or texel buffer and copied
// from, and is not to be written. Free `hold` when the host's commands that use it are done: until then no write and
// no plan overwrites the contents. (A tensor that wraps a buffer of the host is always written in place.)
tm_status tm_tensor_raw_buffer(const tm_tensor *tensor,
                               tm_buffer_range *range,
                               tm_buffer_hold **hold);

// Lets the memory go. NULL is allowed.
void tm_buffer_hold_free(tm_buffer_hold *hold);

// Hands uploads that wait for a submission to ride on to the device, and waits for nothing. tm_record_into wants it
// for what was just written.
tm_status tm_flush(const tm_accelerator *gpu);

// When the submission is done, for submissions of the host's to wait for: a timeline semaphore (VkSemaphore) and its
// value. The semaphore lives as long as the accelerator.
tm_status tm_submission_raw_point(const tm_submission *submission,
                                  uint64_t *semaphore,
                                  uint64_t *value);

// Lets the recording's submission wait until a timeline semaphore of the host (VkSemaphore, cast to uint64_t) has
// reached `value`, before anything of it runs.
//
// The semaphore is of the accelerator's device and valid until the submission is done. The value is reached in the
// end, by work that was submitted before if it is on the same queue.
tm_status tm_wait_semaphore(const tm_recording *recording,
                            uint64_t semaphore,
                            uint64_t value);

// Lets the recording's submission signal `value` on a timeline semaphore of the host when all of it is done. The
// value is above all that the semaphore has reached or will have reached by then.
tm_status tm_signal_semaphore(const tm_recording *recording,
                              uint64_t semaphore,
                              uint64_t value);

// As tm_wait_semaphore, for the plan's next submission.
tm_status tm_plan_wait_semaphore(const tm_plan *plan, uint64_t semaphore, uint64_t value);

// As tm_signal_semaphore, for the plan's next submission.
tm_status tm_plan_signal_semaphore(const tm_plan *plan, uint64_t semaphore, uint64_t value);

// Ends the recording by encoding it into a command buffer of the host (VkCommandBuffer), which the host submits.
// The commands see the host's earlier commands, and later ones see the results: there are barriers on both sides.
// Nothing is submitted, waited for or uploaded. The command buffer's compute pipeline, descriptor sets and push
// constants are others afterwards. The recording's handle still has to be freed.
//
// By calling it the host vouches for this:
// - The command buffer is of the accelerator's device and of its queue's family, is being recorded, outside of a
//   render pass, and no other thread touches it during the call.
// - It is submitted once, to the accelerator's queue, after what was submitted so far and before Tidemill is given
//   anything that uses what it reads or writes; or else it is never submitted, and the host signals `done_value`
//   itself.
// - The timeline semaphore `done_semaphore` (VkSemaphore, cast to uint64_t) reaches `done_value` when the command
//   buffer's execution is over, and not before. It is valid until tm_synchronize has returned after that.
// - The host submits before it waits for the accelerator: tm_synchronize, tm_accelerator_close and tm_tensor_read of
//   what it writes wait.
//
// TM_HOST if an input waits for its upload (call tm_flush before), or if the recording was told to wait or signal.
// After TM_VULKAN the command buffer may hold a part of it, and is not to be submitted.
tm_status tm_record_into(const tm_recording *recording,
                         void *command_buffer,
                         uint64_t done_semaphore,
                         uint64_t done_value);

// A stream: `slots` batches may be on their way (3 keep the device busy, the maximum is 1024), each with `input_count`
// inputs and `output_count` outputs, 1024 at the most. `record` is called once, before this returns. Other tensors
// that it uses are shared by all batches.
tm_status tm_stream_new(const tm_accelerator *gpu,
                        size_t slots,
                        const tm_stream_input *inputs,
                        size_t input_count,
                        size_t output_count,
                        tm_record_fn record,
                        void *user,
                        tm_stream **stream);

// Copies the inputs of a batch (as many as the stream has) into a slot and hands it to the device. Waits while every
// slot holds a batch: for two threads. `rows` is 0 for a whole batch, or how many rows a partial one has: inputs then
// have so many, and outputs give this many.
tm_status tm_stream_push(const tm_stream *stream,
                         const tm_bytes *inputs,
                         size_t rows);

// As tm_stream_push, but gives TM_STREAM_FULL instead of waiting: for one thread, which then pops.
tm_status tm_stream_try_push(const tm_stream *stream, const tm_bytes *inputs, size_t rows);

// Says that no more batches will be pushed. tm_stream_pop then gives what is left, and NULL after that. A
// tm_stream_push that waits for a slot on another thread is refused with TM_CLOSED, as later ones are.
tm_status tm_stream_finish(const tm_stream *stream);

// Ends the stream at once, from any thread: a tm_stream_push or tm_stream_pop that waits on another one, and every
// later one, gives TM_CLOSED. (A tm_stream_pop that waits for the device returns when the batch is done.) Batches that
// were popped stay good; the others are lost. Waits for nothing. The handle is still to be freed, when no call uses it
// any more.
tm_status tm_stream_cancel(const tm_stream *stream);

// The next batch, in order; waits for it, and for one to be pushed, but no longer than `timeout_ns`: TM_TIMEOUT then,
// and nothing has changed. `batch` gets NULL when the stream was finished and everything was popped.
tm_status tm_stream_pop(const tm_stream *stream,
                        uint64_t timeout_ns,
                        tm_batch **batch);

// The stream in figures, as JSON: batches, and how often and how long each end waited.
tm_status tm_stream_stats_json(const tm_stream *stream, char **json);

// Reports what the device waited for in a profiled run of the stream, as JSON.
tm_status tm_stream_report_json(const tm_stream *stream, const tm_run *run, char **json);

// Frees the handle; waits for nothing. Batches that were popped stay good. NULL is allowed.
void tm_stream_free(tm_stream *stream);

// Its number, from 0; 0 for NULL, too.
uint64_t tm_batch_number(const tm_batch *batch);

// Its rows, if it is a partial one; 0 if it is whole.
size_t tm_batch_rows(const tm_batch *batch);

// Copies an output to `data`, which has room for exactly `size_bytes` bytes: all its elements, or those of a partial
// batch's rows.
tm_status tm_batch_read(const tm_batch *batch,
                        size_t output,
                        void *data,
                        size_t size_bytes);

// An output as a tensor, for further work on the device: a handle to free. When the batch is freed, a later one may
// replace its contents.
tm_status tm_batch_output(const tm_batch *batch,
                          size_t output,
                          tm_tensor **tensor);

// The device's work for it, as JSON. TM_PROFILE if it was not profiled.
tm_status tm_batch_profile_json(const tm_batch *batch, char **json);

// Frees the handle, and its slot for another batch. NULL is allowed.
void tm_batch_free(tm_batch *batch);

// Makes every pipeline that the recording will need, on several threads, before it ends. `progress`, if not NULL, is
// told of each and can end it: TM_CANCELLED. The recording stays as it was, and the pipelines that were made stay.
tm_status tm_prepare(const tm_recording *recording,
                     tm_progress_fn progress,
                     void *user);

// Has the driver compile what is left to compile before the plan's first submission; some drivers do so at the first
// dispatch. As tm_prepare, which is to be called before tm_into_plan where making pipelines takes the time.
tm_status tm_plan_prepare(const tm_plan *plan,
                          tm_progress_fn progress,
                          void *user);

// How far prewarming has come.
tm_status tm_prewarm_status(const tm_accelerator *gpu, tm_prewarming *status);

// Waits until prewarming in the background is finished.
tm_status tm_wait_prewarmed(const tm_accelerator *gpu, tm_prewarming *status);

// Measures the candidates of every kernel family for every class of shapes on this device, and uses the best from
// now on; the next start uses them, too. NULL for `options` means the defaults. `progress`, if not NULL, is told of
// every candidate and can end it: then nothing is changed, and the JSON says `cancelled`. `json`, if not NULL, gets
// what came of it.
tm_status tm_tune(const tm_accelerator *gpu,
                  const tm_tune_options *options,
                  tm_progress_fn progress,
                  void *user,
                  char **json);

// Every kernel variant, and which ones this accelerator uses, as a JSON array.
tm_status tm_variants_json(const tm_accelerator *gpu, char **json);

// With the process's own accelerator, or without one if the machine has no device that can be used. Measures the
// machine if that was not done before.
tm_status tm_hybrid_new(tm_policy policy,
                        tm_hybrid **hybrid);

// With an accelerator of the caller's.
tm_status tm_hybrid_with_accelerator(const tm_accelerator *gpu, tm_policy policy, tm_hybrid **hybrid);

// The measured times of the machine, as a text for tm_hybrid_with_calibration.
tm_status tm_hybrid_calibration(const tm_hybrid *hybrid, char **text);

// With times that the caller has, as tm_hybrid_calibration gave them.
tm_status tm_hybrid_with_calibration(const tm_accelerator *gpu,
                                     const char *calibration,
                                     tm_policy policy,
                                     tm_hybrid **hybrid);

// Measures the machine again and keeps the result for the next tm_hybrid_new.
tm_status tm_hybrid_calibrate(const tm_accelerator *gpu);

// Frees the handle. NULL is allowed.
void tm_hybrid_free(tm_hybrid *hybrid);

// Records operations by a function, and carries them out on the side where all of them together are predicted to be
// faster: what goes in is moved once, what lies between is not moved at all. Inputs and outputs are read and written
// before this returns. `decision` may be NULL.
tm_status tm_hybrid_chain(const tm_hybrid *hybrid,
                          tm_chain_fn record,
                          void *user,
                          tm_decision *decision);

// An operand: `size_bytes` bytes at `data`, which must be all elements of its shape, and stay there until
// tm_hybrid_chain returns.
tm_status tm_chain_input(const tm_chain *chain,
                         tm_dtype dtype,
                         const size_t *dims,
                         size_t rank,
                         const void *data,
                         size_t size_bytes,
                         tm_link *out);

// An operand that is on the device. The tensor's handle stays until tm_hybrid_chain returns.
tm_status tm_chain_tensor(const tm_chain *chain, const tm_tensor *tensor, tm_link *out);

// A result goes to `data`, which has room for exactly `size_bytes` bytes: all its elements.
tm_status tm_chain_output(const tm_chain *chain, tm_link x, void *data, size_t size_bytes);

// The extents of a link: `dims` has room for TM_MAX_RANK of them, and `rank` gets how many there are.
tm_status tm_chain_shape(const tm_chain *chain, tm_link x, size_t (*dims)[TM_MAX_RANK], size_t *rank);

// The element type of a link.
tm_status tm_chain_dtype(const tm_chain *chain, tm_link x, tm_dtype *dtype);

// As tm_unary.
tm_status tm_chain_unary(const tm_chain *chain, tm_unary_op op, tm_link x, tm_link *out);

// As tm_binary.
tm_status tm_chain_binary(const tm_chain *chain, tm_binary_op op, tm_link a, tm_link b, tm_link *out);

// As tm_binary_scalar.
tm_status tm_chain_binary_scalar(const tm_chain *chain, tm_binary_op op, tm_link a, double b, tm_link *out);

// As tm_leaky_relu.
tm_status tm_chain_leaky_relu(const tm_chain *chain, tm_link x, float alpha, tm_link *out);

// As tm_elu.
tm_status tm_chain_elu(const tm_chain *chain, tm_link x, float alpha, tm_link *out);

// As tm_celu.
tm_status tm_chain_celu(const tm_chain *chain, tm_link x, float alpha, tm_link *out);

// As tm_clip.
tm_status tm_chain_clip(const tm_chain *chain, tm_link x, float lo, float hi, tm_link *out);

// As tm_select.
tm_status tm_chain_select(const tm_chain *chain, tm_link mask, tm_link a, tm_link b, tm_link *out);

// As tm_cast.
tm_status tm_chain_cast(const tm_chain *chain, tm_link x, tm_dtype to, tm_link *out);

// As tm_reduce.
tm_status tm_chain_reduce(const tm_chain *chain,
                          tm_reduce_op op,
                          tm_link x,
                          int32_t axis,
                          bool keep,
                          tm_link *out);

// As tm_dot.
tm_status tm_chain_dot(const tm_chain *chain, tm_link a, tm_link b, tm_link *out);

// As tm_softmax.
tm_status tm_chain_softmax(const tm_chain *chain, tm_link x, int32_t axis, tm_link *out);

// As tm_log_softmax.
tm_status tm_chain_log_softmax(const tm_chain *chain, tm_link x, int32_t axis, tm_link *out);

// As tm_matmul. Options may transpose and scale; an operand that is added is an operation of its own here.
tm_status tm_chain_matmul(const tm_chain *chain,
                          tm_link lhs,
                          tm_link rhs,
                          const tm_matmul_options *options,
                          tm_link *out);

// As tm_conv2d, without steps.
tm_status tm_chain_conv2d(const tm_chain *chain,
                          tm_link images,
                          tm_link weights,
                          const tm_conv2d_options *options,
                          tm_link *out);

// As tm_permute.
tm_status tm_chain_permute(const tm_chain *chain, tm_link x, const size_t *order, size_t rank, tm_link *out);

// As tm_transpose.
tm_status tm_chain_transpose(const tm_chain *chain, tm_link x, tm_link *out);

// As tm_slice.
tm_status tm_chain_slice(const tm_chain *chain,
                         tm_link x,
                         const size_t *begin,
                         const size_t *end,
                         size_t count,
                         tm_link *out);

// As tm_broadcast_to.
tm_status tm_chain_broadcast_to(const tm_chain *chain,
                                tm_link x,
                                const size_t *dims,
                                size_t rank,
                                tm_link *out);

// As tm_concat.
tm_status tm_chain_concat(const tm_chain *chain, const tm_link *xs, size_t count, int32_t axis, tm_link *out);

// As tm_stack.
tm_status tm_chain_stack(const tm_chain *chain, const tm_link *xs, size_t count, int32_t axis, tm_link *out);

// As tm_pad.
tm_status tm_chain_pad(const tm_chain *chain,
                       tm_link x,
                       const size_t *before,
                       const size_t *after,
                       size_t rank,
                       double element,
                       tm_link *out);

// As tm_gather_rows.
tm_status tm_chain_gather_rows(const tm_chain *chain, tm_link table, tm_link rows, tm_link *out);

// Profiles everything that the accelerator does from now on. One session at a time.
tm_status tm_begin_profiling(const tm_accelerator *gpu,
                             const char *name,
                             tm_profiling mode,
                             tm_session **session);

// Waits for everything submitted, ends the session and gives its figures. The session's handle still has to be freed.
tm_status tm_session_finish(const tm_session *session,
                            tm_run **run);

// Adds something of the caller's own to the run, which began and ended so long ago: it gets a lane in traces and
// reports.
tm_status tm_session_note(const tm_session *session,
                          const char *track,
                          const char *name,
                          uint64_t began_ns_ago,
                          uint64_t ended_ns_ago);

// Adds a drawing of what a recording will do to the run's page.
tm_status tm_session_graph(const tm_session *session, const char *name, const tm_recording *recording);

// TM_PROFILE, with the first of them, if the run has figures that can't be true.
tm_status tm_run_check(const tm_run *run);

// Several runs as one page for a browser.
tm_status tm_html_report(const char *title, const tm_run *const *runs, size_t run_count, char **text);

// Frees the handle. A session that was not finished is discarded. NULL is allowed.
void tm_session_free(tm_session *session);

// The run as JSON: totals, and a profile of each submission.
tm_status tm_run_json(const tm_run *run, char **text);

// The run as a trace for ui.perfetto.dev.
tm_status tm_run_trace_json(const tm_run *run, char **text);

// The run as a page for a browser.
tm_status tm_run_html(const tm_run *run, char **text);

// The run as a table for a terminal.
tm_status tm_run_table(const tm_run *run, char **text);

// Frees the handle. NULL is allowed.
void tm_run_free(tm_run *run);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TIDEMILL_H */


#ifndef TIDEMILL_H_DEFAULTS
#define TIDEMILL_H_DEFAULTS

// Structs of options with their defaults. They are compiled into the program, so that `size` is that of its own header. If
// the library does not know such a struct, `size` is 0, and calls that are given it say so.

static inline tm_config tm_config_defaults(void) {
    tm_config config;
    if (tm_config_init(&config, sizeof config) != TM_OK) config.size = 0;
    return config;
}

static inline tm_matmul_options tm_matmul_defaults(void) {
    tm_matmul_options options;
    if (tm_matmul_options_init(&options, sizeof options) != TM_OK) options.size = 0;
    return options;
}

static inline tm_attention_options tm_attention_defaults(void) {
    tm_attention_options options;
    if (tm_attention_options_init(&options, sizeof options) != TM_OK) options.size = 0;
    return options;
}

static inline tm_conv2d_options tm_conv2d_defaults(void) {
    tm_conv2d_options options;
    if (tm_conv2d_options_init(&options, sizeof options) != TM_OK) options.size = 0;
    return options;
}

#endif
