//! One error type for the whole crate. Each variant carries the numbers that disagree and says what to do.

mod argument;
mod glsl;
mod host;
mod kernel;
mod lost;
pub(crate) mod parameters;
mod profiling;
mod refused;
mod stream;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use self::argument::ArgumentError;
pub use self::glsl::{GlslError, GlslMistake};
pub use self::host::HostError;
pub use self::kernel::KernelMismatch;
use self::lost::Causes;
pub use self::lost::{DeviceFault, FaultAddress, FaultCode};
pub use self::profiling::{MeasurementError, ProfileError};
pub use self::refused::RefusedDevice;
use self::refused::{NoDevice, Refusals};
pub use self::stream::StreamError;
use crate::shape::{DType, MAX_RANK, Shape};
use crate::spirv::ReflectError;

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong.
///
/// User mistakes are found before anything is recorded: the recording they were made on stays usable. Only
/// [`Error::DeviceLost`] is final for an [`Accelerator`](crate::Accelerator).
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that no element type has.
    #[error("no element type is called {name}; there are f32, f16, i32 and u32")]
    UnknownType {
        /// The name.
        name: String,
    },
    // ---- the machine ----
    /// There is no Vulkan loader on this machine.
    #[error(
        "no Vulkan loader: looked for {looked_for} on the library path ({detail}); install it: \
         Debian/Ubuntu `libvulkan1`, Fedora `vulkan-loader`, Windows: the GPU vendor's driver, macOS: the Vulkan SDK"
    )]
    NoLoader {
        /// The library's file name.
        looked_for: &'static str,
        /// The system's own words.
        detail: String,
    },
    /// There is a loader, but no driver behind it.
    #[error(
        "no Vulkan driver: the loader found none ({detail}); {search}; install one: the GPU vendor's driver, or Mesa's \
         (Debian/Ubuntu `mesa-vulkan-drivers`, which brings a software driver too)"
    )]
    NoDriver {
        /// The call that said so, and its result.
        detail: String,
        /// Where the loader looked.
        search: String,
    },
    /// There are drivers, but no device that Tidemill can use.
    #[error("{}", NoDevice(.refused, .search))]
    NoUsableDevice {
        /// Every device that was seen, with the reason why it is not usable.
        refused: Vec<RefusedDevice>,
        /// Where the loader looked for drivers.
        search: String,
    },
    /// The device that was asked for (by [`Config`](crate::Config) or `TIDEMILL_DEVICE`) is not there or not usable.
    #[error("no device matches {wanted}; there are: {}", Refusals(.available))]
    DeviceNotFound {
        /// What was asked for.
        wanted: String,
        /// All devices, with why each does not fit.
        available: Vec<RefusedDevice>,
    },
    /// `TIDEMILL_DEVICE` is set and names nothing.
    #[error(
        "TIDEMILL_DEVICE is set to {value:?}, which {why}; set it to an index, a kind or a part of a device's name, or unset it"
    )]
    DeviceVariable {
        /// What it is set to.
        value: String,
        /// What is wrong with that.
        why: &'static str,
    },
    /// Validation was asked for and the layer is not installed.
    #[error(
        "the layer {layer} is not installed; Debian/Ubuntu: `vulkan-validationlayers`, elsewhere: the Vulkan SDK; \
         or turn validation off"
    )]
    LayerMissing {
        /// The layer's name.
        layer: &'static str,
    },
    /// A cache folder given by name can't be used. (The default one is left out silently instead.)
    #[error("cache folder {}: {detail}; choose another with Config::cache_dir, or turn it off", .path.display())]
    CacheFolder {
        /// The folder.
        path: PathBuf,
        /// The system's own words.
        detail: String,
    },
    /// A Vulkan call failed in a way that has no variant of its own.
    #[error("{call} failed with {result}")]
    Vulkan {
        /// The Vulkan function.
        call: &'static str,
        /// The result code's name.
        result: String,
    },
    /// The device has no memory of a kind that Vulkan promises.
    #[error(
        "no memory {purpose}: none of the device's {types} memory types that a buffer may use (mask {allowed:#b}) is; \
         Vulkan demands one, so update the driver"
    )]
    NoMemoryType {
        /// What the memory is for.
        purpose: &'static str,
        /// How many types there are.
        types: usize,
        /// A bit for each type that the buffer allows.
        allowed: u32,
    },
    /// The device is gone: it hung, was reset or was removed. Sticky; build a new accelerator
    /// (`Accelerator::global()` does so by itself).
    #[error("the device was lost in {call}; in flight were: {}{}", List(.in_flight), Causes(.again, .fault.as_deref()))]
    DeviceLost {
        /// The call that found out.
        call: &'static str,
        /// Labels of the last dispatches in flight, oldest first.
        in_flight: Arc<[String]>,
        /// Those of them that were in flight when this process lost the device before: the likely cause.
        again: Arc<[String]>,
        /// What the driver says, where it has `VK_EXT_device_fault`.
        fault: Option<Arc<DeviceFault>>,
    },
    /// There is no profile, measurement or capture.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Something with an argument of a plan.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// Something with a stream.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// An input of a stream's batch could not be written.
    #[error("batch {batch}, input {input}: {error}")]
    Input {
        /// The batch's number.
        batch: u64,
        /// The input's.
        input: usize,
        /// Why.
        #[source]
        error: Box<Error>,
    },
    /// Something with a device of the host's, or with what passes between the host and the engine on it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// This process was forked from one that had used a device before. The device, and the driver's threads, stayed there.
    #[error(
        "process {process} was forked from {owner} after that had used Vulkan: its accelerators, and new ones, work in {owner} \
         only; fork before the first use, or run another program in the child (exec)"
    )]
    Forked {
        /// The process that has the device.
        owner: u32,
        /// This process.
        process: u32,
    },
    /// The accelerator was closed.
    #[error("the accelerator is closed")]
    Closed,
    /// `close` found that others still hold on to the accelerator.
    #[error(
        "the accelerator is still in use: {tensors} tensors alive, {handles} other handles (accelerators, recordings, \
         submissions); drop them before close()"
    )]
    StillInUse {
        /// Tensors not yet dropped; clones of one count once.
        tensors: usize,
        /// Other handles.
        handles: usize,
    },

    /// The caller has ended what takes long.
    #[error(
        "{op}: ended by the caller with {ready} of {total} pipelines ready; they stay, and the next call goes on from there"
    )]
    Cancelled {
        /// The operation.
        op: &'static str,
        /// Pipelines that are ready.
        ready: usize,
        /// Pipelines that are needed.
        total: usize,
    },

    // ---- memory ----
    /// Device memory, or what the system lets this process have of it, is exhausted even after finished work was reclaimed, the
    /// pool trimmed and all work in flight waited for.
    #[error(
        "out of device memory: {requested} bytes requested, {in_use} in use, {cached} cached by the pool; the heap has {heap}\
         {}; drop tensors, or work in smaller pieces", Budget(*.budget)
    )]
    OutOfMemory {
        /// The size of the block that could not be had.
        requested: u64,
        /// Bytes in blocks that are referred to.
        in_use: u64,
        /// Bytes in blocks that the pool keeps.
        cached: u64,
        /// Bytes of the memory heap that tensors live in.
        heap: u64,
        /// Bytes of it that the system grants this process, where it says (`VK_EXT_memory_budget`).
        budget: Option<u64>,
    },
    /// The pool's cap does not allow the block.
    #[error(
        "over the pool's cap: {requested} bytes requested, {in_use} in use, the cap is {cap}; \
         raise it with Config::pool_cap, or drop tensors"
    )]
    OverCap {
        /// The size of the block that was asked for.
        requested: u64,
        /// Bytes in blocks that are referred to.
        in_use: u64,
        /// The cap.
        cap: u64,
    },
    /// A tensor is larger than the device can address in one buffer.
    #[error("{op}: shape {shape} needs {bytes} bytes, the device allows {limit} in one buffer")]
    TooLarge {
        /// The operation.
        op: &'static str,
        /// The shape that was asked for.
        shape: Shape,
        /// Its size.
        bytes: u64,
        /// The device's limit.
        limit: u64,
    },

    /// An operation would have to see more of a tensor at once than the device lets a binding span.
    #[error(
        "{op}: shape {shape} needs {bytes} bytes in one binding, the device allows {limit}; work in smaller pieces"
    )]
    BindingTooLarge {
        /// The operation.
        op: &'static str,
        /// The operand's shape.
        shape: Shape,
        /// What must be seen at once.
        bytes: u64,
        /// The device's limit.
        limit: u64,
    },

    // ---- shapes, types and parameters ----
    /// More dimensions than a tensor can have.
    #[error("{op}: rank {rank} is above the largest, {}", MAX_RANK)]
    Rank {
        /// The operation.
        op: &'static str,
        /// The rank asked for.
        rank: usize,
    },
    /// A slice's length and a shape disagree.
    #[error("{op}: shape {shape} holds {} elements, the data has {got}", .shape.elements())]
    Length {
        /// The operation.
        op: &'static str,
        /// The shape.
        shape: Shape,
        /// The data's length.
        got: usize,
    },
    /// Two operands' shapes do not fit each other.
    #[error("{op}: lhs {lhs} and rhs {rhs}: {why}")]
    Shapes {
        /// The operation.
        op: &'static str,
        /// The left operand's shape.
        lhs: Shape,
        /// The right operand's shape.
        rhs: Shape,
        /// The numbers that disagree.
        why: String,
    },
    /// The left operand's columns and the right one's rows are not as many.
    #[error("{op}: lhs {lhs} x rhs {rhs}: inner {} != {}", .inner[0], .inner[1])]
    InnerDimension {
        /// The operation.
        op: &'static str,
        /// The left operand's shape.
        lhs: Shape,
        /// The right operand's shape.
        rhs: Shape,
        /// What should be equal.
        inner: [usize; 2],
    },
    /// An operand that is no matrix.
    #[error("{op}: the operand {shape} is no matrix and no vector")]
    NotMatrix {
        /// The operation.
        op: &'static str,
        /// The operand's shape.
        shape: Shape,
    },
    /// An operand of another rank than the operation has.
    #[error("{op}: the {what} {shape} must have {expected} dimensions, not {}", .shape.rank())]
    Dimensions {
        /// The operation.
        op: &'static str,
        /// The operand.
        what: &'static str,
        /// Its shape.
        shape: Shape,
        /// How many dimensions it must have.
        expected: usize,
    },
    /// An epilogue that does not fit into one dispatch.
    #[error(
        "{op}: the epilogue has {} steps, {} tensors and {} scalars, of {}, {} and {} that fit; \
         do the rest with operations of their own",
        .got[0], .got[1], .got[2], .most[0], .most[1], .most[2]
    )]
    Epilogue {
        /// The operation.
        op: &'static str,
        /// Steps, tensors and scalars that were asked for.
        got: [usize; 3],
        /// How many fit.
        most: [usize; 3],
    },
    /// An operand's element type does not fit.
    #[error("{op}: the {operand} is {got}, this needs {}", Either(.expected))]
    Type {
        /// The operation.
        op: &'static str,
        /// Which of its operands.
        operand: String,
        /// What would do.
        expected: Vec<DType>,
        /// What was given.
        got: DType,
    },
    /// An axis that is named twice.
    #[error("{op}: axis {axis} is named twice")]
    AxisTwice {
        /// The operation.
        op: &'static str,
        /// The axis, from the front.
        axis: usize,
    },
    /// An axis that the operand has not.
    #[error("{op}: axis {axis} is out of range for rank {rank}")]
    Axis {
        /// The operation.
        op: &'static str,
        /// The axis asked for.
        axis: isize,
        /// The operand's rank.
        rank: usize,
    },
    /// A largest or smallest element was asked for where there is none.
    #[error("{op}: shape {shape} leaves nothing to choose from: the reduced axes hold 0 elements")]
    EmptyReduction {
        /// The operation.
        op: &'static str,
        /// The operand's shape.
        shape: Shape,
    },
    /// An order of dimensions that is none.
    #[error("{op}: the order {order:?} does not name each of the {} dimensions of {shape} once", .shape.rank())]
    Permutation {
        /// The operation.
        op: &'static str,
        /// The order asked for.
        order: Vec<usize>,
        /// The operand's shape.
        shape: Shape,
    },
    /// A range that reaches out of its dimension.
    #[error("{op}: the range {range:?} of dimension {dimension} does not lie in shape {shape}")]
    SliceRange {
        /// The operation.
        op: &'static str,
        /// The dimension.
        dimension: usize,
        /// The range asked for.
        range: std::ops::Range<usize>,
        /// The operand's shape.
        shape: Shape,
    },
    /// A padding that does not fit the operand's rank.
    #[error("{op}: {pads} pairs for shape {shape}, which has {} dimensions", .shape.rank())]
    PadRank {
        /// The operation.
        op: &'static str,
        /// Pairs given.
        pads: usize,
        /// The operand's shape.
        shape: Shape,
    },
    /// An operation on a list of operands got none.
    #[error("{op}: there are no operands")]
    NoOperands {
        /// The operation.
        op: &'static str,
    },
    /// A parameter that makes no sense.
    #[error("{op}: {name} is {value}; it must {rule}")]
    Parameter {
        /// The operation.
        op: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What it must be or do.
        rule: String,
    },
    /// A filling closure left some elements unwritten.
    #[error("{op}: {written} of {expected} elements were written; write them all")]
    Incomplete {
        /// The operation.
        op: &'static str,
        /// Elements written.
        written: usize,
        /// Elements the tensor has.
        expected: usize,
    },

    // ---- order of things ----
    /// A tensor's contents were never written: neither by upload nor by an op.
    #[error(
        "{op}: tensor {shape} was never written; upload to it, or keep it from a recording that is submitted"
    )]
    NotWritten {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A tensor is the result of a recording that has not been submitted.
    #[error(
        "{op}: tensor {shape} comes from a recording that was not submitted; call end_recording, or submit its plan, first"
    )]
    NotSubmitted {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A tensor is the result of a recording that was dropped or failed.
    #[error("{op}: tensor {shape} comes from a recording that was dropped or failed; it has no contents")]
    Discarded {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A tensor has no place in a plan.
    #[error(
        "{op}: tensor {shape} is none of the plan's {inputs} inputs and {outputs} outputs; name a tensor that was read \
         or kept when the plan was recorded"
    )]
    NotInPlan {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
        /// How many inputs the plan has.
        inputs: usize,
        /// How many outputs the plan has.
        outputs: usize,
    },
    /// A tensor would be an output of a plan and something else of it at once.
    #[error("{op}: tensor {shape} already has a place in the plan; an output needs a tensor of its own")]
    BoundTwice {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A recording would write memory of the host's that it reads.
    #[error(
        "{op}: the recording reads tensor {shape}, or a view of it, so that its memory can't take a result of the same recording; \
         keep the value in another buffer, or in a recording of its own"
    )]
    ReadToo {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A tensor is what a plan keeps of one of its inputs as it is.
    #[error(
        "{op}: tensor {shape} is a kept view of one of the plan's inputs and follows that one; bind a tensor to the input"
    )]
    ViewInPlan {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A value belongs to another recording.
    #[error("{op}: the value belongs to another recording; keep() it there and use the tensor here")]
    ForeignValue {
        /// The operation.
        op: &'static str,
    },
    /// A tensor belongs to another accelerator.
    #[error("{op}: the tensor lives on {theirs}, this is {ours}; read it and upload it here")]
    ForeignTensor {
        /// The operation.
        op: &'static str,
        /// The tensor's device.
        theirs: String,
        /// This device.
        ours: String,
    },

    // ---- kernels ----
    /// A kernel variant that the catalog has not.
    #[error("no kernel variant {wanted}; there are: {}", List(.known))]
    NoSuchVariant {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A SPIR-V module that can't be understood.
    #[error("kernel: {0}")]
    Spirv(#[from] ReflectError),
    /// SPIR-V for which there is no way to keep its accesses inside its bindings.
    #[error(
        "kernel {kernel} {why}; this can't be kept inside its bindings, so only `Kernel::from_spirv` takes it, on the caller's word"
    )]
    Unguardable {
        /// The kernel's name.
        kernel: String,
        /// What it does.
        why: String,
    },
    /// GLSL that did not become a kernel.
    #[error("GLSL: {0}")]
    Glsl(#[from] GlslError),
    /// A driver that does not tell what it compiles kernels to.
    #[error("{device}: the driver lacks VK_KHR_pipeline_executable_properties, so it shows no instructions")]
    NoDisassembly {
        /// The device.
        device: String,
    },
    /// A kernel asks for something that the device has not.
    #[error("kernel {kernel}: needs {needs}, which {device} has not")]
    KernelNeeds {
        /// The kernel's name.
        kernel: String,
        /// The capability or limit.
        needs: String,
        /// The device.
        device: String,
    },
    /// A kernel asks for something that is not enabled on any device.
    #[error(
        "kernel {kernel}: needs the SPIR-V capability {capability}, which Tidemill does not enable; do without it"
    )]
    KernelCapability {
        /// The kernel's name.
        kernel: String,
        /// The capability.
        capability: String,
    },
    /// A dispatch's arguments and the kernel's own description disagree.
    #[error("kernel {kernel}: {mismatch}")]
    KernelArguments {
        /// The kernel's name.
        kernel: String,
        /// What disagrees.
        mismatch: KernelMismatch,
    },
}

/// The sentence: it is what `fn main() -> tidemill::Result<()>` shows when it ends with an error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// A loss of which nothing else is known yet.
    pub(crate) fn device_lost(call: &'static str) -> Error {
        Error::DeviceLost { call, in_flight: [].into(), again: [].into(), fault: None }
    }

    /// The error for an operand of another type than an operation takes.
    pub(crate) fn of_type(
        op: &'static str,
        operand: impl Into<String>,
        expected: &[DType],
        got: DType,
    ) -> Error {
        Error::Type { op, operand: operand.into(), expected: expected.to_vec(), got }
    }
}

/// Writes what the system grants of a heap, if it says.
struct Budget(Option<u64>);

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |bytes| write!(f, ", of which the system grants this process {bytes}"))
    }
}

/// Writes the items as `f32, i32 or u32`.
struct Either<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Either<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((last, others)) = self.0.split_last() else { return f.write_str("nothing") };
        for (i, item) in others.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{item}")?;
        }
        write!(f, "{}{last}", if others.is_empty() { "" } else { " or " })
    }
}

/// Writes the items with commas, or `none`.
struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (i, item) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{item}")?;
        }
        Ok(())
    }
}
