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

/// Every error of the crate.
///
/// A mistake of the caller is found before anything is recorded: the recording stays usable. Only
/// [`Error::DeviceLost`] is final for an [`Accelerator`](crate::Accelerator).
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No element type has this name.
    #[error("no element type is called {name}; there are {}", List(DType::ALL))]
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
        /// The requested value.
        wanted: String,
        /// All devices, with why each does not fit.
        available: Vec<RefusedDevice>,
    },
    /// `TIDEMILL_DEVICE` is set to something that names no device.
    #[error(
        "TIDEMILL_DEVICE is set to {value:?}, which {why}; set it to an index, a kind or a part of a device's name, or unset it"
    )]
    DeviceVariable {
        /// The variable's value.
        value: String,
        /// Why it is not valid.
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
    /// A Vulkan call failed, and no other variant describes the failure.
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
        /// The purpose of the memory.
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
        /// The driver's report, where it has `VK_EXT_device_fault`.
        fault: Option<Arc<DeviceFault>>,
    },
    /// There is no profile, measurement or capture.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// An error with an argument of a plan.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// An error with a stream.
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
    /// An error with a device of the host, or with what the host and the engine exchange on it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// This process was forked from one that had used a device before. The device, and the driver's threads, stayed
    /// there.
    #[error(
        "process {process} was forked from process {owner}, which had used Vulkan before: accelerators work in process \
         {owner} only; fork before the first use, or exec another program in the child"
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
    /// `close` was called while tensors or other handles of the accelerator are alive.
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

    /// The caller cancelled a long operation.
    #[error(
        "{op}: cancelled by the caller with {ready} of {total} pipelines ready; they are kept, and the next call continues from \
         there"
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
    /// Device memory, or what the system lets this process have of it, is exhausted even after finished work was
    /// reclaimed, the pool trimmed and all work in flight waited for.
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
    #[error(
        "{op}: shape {shape} needs {bytes} bytes, the device allows {limit} in one buffer; split the tensor"
    )]
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

    /// An operation needs more of a tensor in one binding than the device allows.
    #[error(
        "{op}: shape {shape} needs {bytes} bytes in one binding, the device allows {limit}; work in smaller pieces"
    )]
    BindingTooLarge {
        /// The operation.
        op: &'static str,
        /// The operand's shape.
        shape: Shape,
        /// Bytes that one binding would need.
        bytes: u64,
        /// The device's limit.
        limit: u64,
    },

    // ---- shapes, types and parameters ----
    /// More dimensions than a tensor can have.
    #[error("{op}: rank {rank} is above the maximum of {}; merge dimensions", MAX_RANK)]
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
    /// The columns of the left operand and the rows of the right operand differ.
    #[error("{op}: lhs {lhs} x rhs {rhs}: inner {} != {}", .inner[0], .inner[1])]
    InnerDimension {
        /// The operation.
        op: &'static str,
        /// The left operand's shape.
        lhs: Shape,
        /// The right operand's shape.
        rhs: Shape,
        /// The two extents, which must be equal.
        inner: [usize; 2],
    },
    /// An operand of a matmul that is a scalar.
    #[error("{op}: the operand {shape} must have rank 1 or more, got a scalar")]
    NotMatrix {
        /// The operation.
        op: &'static str,
        /// The operand's shape.
        shape: Shape,
    },
    /// The rank of an operand is not the one that the operation takes.
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
        "{op}: the epilogue has {} steps, {} tensors and {} scalars, at most {}, {} and {} fit; \
         record the rest as separate operations",
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
    #[error("{op}: the {operand} is {got}, this needs {}{}", Either(.expected), CastFirst(.got, .expected))]
    Type {
        /// The operation.
        op: &'static str,
        /// Which of its operands.
        operand: String,
        /// Types that the operation takes.
        expected: Vec<DType>,
        /// The given value.
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
    /// The operand does not have this axis.
    #[error("{op}: axis {axis} is out of range for rank {rank}")]
    Axis {
        /// The operation.
        op: &'static str,
        /// The axis asked for.
        axis: isize,
        /// The operand's rank.
        rank: usize,
    },
    /// The largest or smallest of zero elements was requested.
    #[error("{op}: shape {shape} leaves nothing to choose from: the reduced axes hold 0 elements")]
    EmptyReduction {
        /// The operation.
        op: &'static str,
        /// The operand's shape.
        shape: Shape,
    },
    /// The order of dimensions is not a permutation.
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
    #[error("{op}: {pads} pairs were given, shape {shape} has {} dimensions; give one pair per dimension", .shape.rank())]
    PadRank {
        /// The operation.
        op: &'static str,
        /// Pairs given.
        pads: usize,
        /// The operand's shape.
        shape: Shape,
    },
    /// An operation on a list of operands got none.
    #[error("{op}: there are no operands; give one or more")]
    NoOperands {
        /// The operation.
        op: &'static str,
    },
    /// A parameter is out of range.
    #[error("{op}: {name} is {value}; it must {rule}")]
    Parameter {
        /// The operation.
        op: &'static str,
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: f64,
        /// The rule that it breaks.
        rule: String,
    },
    /// A 64-bit index that is too large for a tensor of indices.
    #[error("{op}: element {place} is {value}, which no i32 can hold ({} to {})", i32::MIN, i32::MAX)]
    IndexRange {
        /// The operation.
        op: &'static str,
        /// Which element.
        place: usize,
        /// What it is.
        value: i64,
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
        "{op}: tensor {shape} is not among the plan's {inputs} inputs and {outputs} outputs; use a tensor that was read \
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
    /// A tensor would be bound to an output of a plan and to another place of it.
    #[error("{op}: tensor {shape} already has a place in the plan; an output needs a tensor of its own")]
    BoundTwice {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A recording would write memory of the host that it also reads.
    #[error(
        "{op}: the recording reads tensor {shape}, or a view of it, so its memory can't hold a result of the same recording; \
         keep the value in another buffer, or use a separate recording"
    )]
    ReadToo {
        /// The operation.
        op: &'static str,
        /// The tensor's shape.
        shape: Shape,
    },
    /// A tensor is a kept view of one of the plan's inputs.
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
    #[error(
        "{op}: the tensor belongs to {theirs}, this accelerator is {ours}; read it there and upload it here"
    )]
    ForeignTensor {
        /// The operation.
        op: &'static str,
        /// The tensor's device.
        theirs: String,
        /// This device.
        ours: String,
    },

    // ---- kernels ----
    /// No kernel variant has this name.
    #[error("no kernel variant {wanted}; there are: {}", List(.known))]
    NoSuchVariant {
        /// The requested value.
        wanted: String,
        /// All variants.
        known: Vec<String>,
    },
    /// A SPIR-V module that can't be understood.
    #[error("kernel: {0}")]
    Spirv(#[from] ReflectError),
    /// SPIR-V whose accesses can't be kept inside its bindings.
    #[error(
        "kernel {kernel} {why}; such accesses can't be kept inside the bindings; only `Kernel::from_spirv` accepts it, on \
         the caller's responsibility"
    )]
    Unguardable {
        /// The kernel's name.
        kernel: String,
        /// The reason.
        why: String,
    },
    /// GLSL that did not become a kernel.
    #[error("GLSL: {0}")]
    Glsl(#[from] GlslError),
    /// The driver does not report what it compiles kernels to.
    #[error("{device}: the driver lacks VK_KHR_pipeline_executable_properties, so it shows no instructions")]
    NoDisassembly {
        /// The device.
        device: String,
    },
    /// A kernel needs something that the device does not support.
    #[error("kernel {kernel}: needs {needs}, which {device} does not support")]
    KernelNeeds {
        /// The kernel's name.
        kernel: String,
        /// The capability or limit.
        needs: String,
        /// The device.
        device: String,
    },
    /// A kernel needs a SPIR-V capability that Tidemill never enables.
    #[error(
        "kernel {kernel}: needs the SPIR-V capability {capability}, which Tidemill does not enable; compile it without"
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
        /// The disagreement.
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
    /// A loss, before anything else is known.
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

/// Writes the way out for a packed element where none is taken.
struct CastFirst<'a>(&'a DType, &'a [DType]);

impl fmt::Display for CastFirst<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packed = |dtype: &DType| dtype.is_packed();
        if packed(self.0) && !self.1.iter().any(packed) { f.write_str("; cast it first") } else { Ok(()) }
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
