//! A low-level Vulkan compute engine: pooled memory, recordings on one timeline, kernels tuned per device.
//!
//! # The primary types
//!
//! - [`Accelerator`]: the device and all that is owned once. [`Accelerator::global`] is the process's own.
//! - [`Tensor`]: device memory with a shape; [`upload`](Accelerator::upload) makes one, [`read`](Tensor::read) brings it
//!   back.
//! - [`Recording`]: a list of operations between [`begin_recording`](Accelerator::begin_recording) and
//!   [`end_recording`](Recording::end_recording), carried out as one [`Submission`]. Its methods are the operations.
//! - [`Value`]: what an operation returns; [`keep`](Recording::keep) makes it a tensor.
//! - [`Kernel`] and [`Dispatch`]: shaders of your own, from SPIR-V (safely by [`Kernel::from_spirv_guarded`]), or by `Glsl` (feature `shaderc`) from GLSL.
//! - [`Hybrid`]: operations on slices, on the CPU or the device, whichever is predicted to be sooner done; [`cpu`] has the
//!   CPU's side alone.
//! - [`raw`]: for applications that have a Vulkan device of their own ([`Accelerator::from_raw`]).
//! - [`Profile`] and [`Run`]: what the device did when, on one clock; [`Measurement`]: a speed that can be believed.
//!
//! # A chain of operations
//!
//! ```
//! # fn main() -> tidemill::Result<()> {
//! let gpu = tidemill::Accelerator::global()?;
//! let a = gpu.upload(&[1.0f32, 2.0, 3.0], [3])?;
//! let b = gpu.upload(&[10.0f32, 20.0, 30.0], [3])?;
//!
//! let r = gpu.begin_recording()?;
//! let scaled = r.mul(r.add(&a, &b)?, &a)?;
//! let kept = r.keep(scaled)?;
//! r.end_recording()?.wait()?;
//! assert_eq!(kept.read::<f32>()?, [11.0, 44.0, 99.0]);
//! # Ok(()) }
//! ```
//!
//! # When not to use it
//!
//! For a few thousand elements once in a while, a loop on the CPU is faster than any submission. The engine pays
//! where work is large, or where many operations go in one recording.
//!
//! # Errors
//!
//! All functions give [`Result`]; [`Error`] says which numbers disagree and what to do. User mistakes are found
//! before anything is recorded, and the recording stays usable.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `shaderc`: `Glsl`, for kernels of your own in GLSL, compiled at run time. Needs shaderc, or a C++ toolchain to build it;
//!   `docs/shaderc.md` says what to do where the system's does not link (Debian 12). Without it,
//!   [`Kernel::from_spirv_guarded`] takes compiled SPIR-V, just as safely.
//! - `compile-kernels`: for work on the crate itself; `glsl/` is compiled while building, instead of embedding the SPIR-V that
//!   comes with the crate.
//! - `async`: the consuming end of a [`Stream`] as a `futures_core::Stream`. Submissions are futures without it.
//! - `tracing`: spans and events for the host application's own subscriber.

// Examples are what users copy: they compile without warnings. The hidden functions around some of them are never called.
#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cpu;
mod disk;
mod elementwise_ops;
mod error;
mod fnv1a;
mod fusion;
pub mod hybrid;
mod ir;
mod kernels;
mod ops;
mod report;
mod runtime;
mod schedule;
mod shape;
pub mod spirv;
mod stream;
mod tune;
mod vk;

pub use error::{
    DeviceFault, Error, FaultAddress, FaultCode, GlslError, GlslMistake, HostError, KernelMismatch,
    MeasurementError, ProfileError, RefusedDevice, Result, StreamError,
};
pub use hybrid::Hybrid;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use ir::branches::branches_taken;
pub use kernels::catalog::VariantInfo;
pub use ops::conv2d::{Conv2d, ConvWeights, PreparedWeights};
pub use ops::epilogue::Epilogue;
pub use ops::matmul::Matmul;
pub use ops::sort::Unique;
pub use report::html_report;
pub use runtime::accelerator::{Accelerator, CommandStats, Stats};
pub use runtime::background::PrewarmStatus;
pub use runtime::config::{Config, Prewarm};
pub use runtime::dispatch::Dispatch;
pub use runtime::inspect::{CompiledKernel, compiled_kernels};
pub use runtime::measure::measurement::{Measurement, RoundMode, checksum};
pub use runtime::measure::run::{Clock, DeviceTime, Run, RunGraph, Session};
pub use runtime::outputs::Outputs;
pub use runtime::pipelines::PipelineStats;
pub use runtime::pipelines::parallel::PrepareProgress;
pub use runtime::plan::Plan;
pub use runtime::pool::PoolStats;
pub use runtime::profile::Profiling;
pub use runtime::profile::guard::{Bandwidth, Figure, Peaks, Throughput};
pub use runtime::profile::profiler::CpuSpan;
pub use runtime::profile::row::{HostTime, Profile, Row};
pub use runtime::recording::{Operand, Recording, Value};
pub use runtime::submission::Submission;
pub use runtime::tensor::{Tensor, TensorWriter};
pub use schedule::explain::{ExplainedStep, ExplainedValue, Explanation, Role};
pub use shape::along::{Along, Sort};
pub use shape::axes::Axes;
pub use shape::ranges::Ranges;
pub use shape::windows::Pool;
pub use shape::{DType, Element, F16, MAX_RANK, Shape};
pub use stream::{
    Batch, Consumer, IdleTime, Producer, Slot, Stream, StreamBuilder, StreamControl, StreamReport,
    StreamStats,
};
pub use tune::{Trial, TrialOutcome, TuneOptions, TuneProgress, Tuning};
pub use vk::buffer::HostMemory;
pub use vk::choice::DeviceChoice;
#[cfg(feature = "shaderc")]
pub use vk::glsl::Glsl;
pub use vk::kernel::Kernel;
pub use vk::physical::{DeviceInfo, DeviceKind, Features, Limits, TimestampClock};
pub use vk::process::check as check_process;
pub use vk::raw;

/// The first of two groups of items where the feature `shaderc` is on, the second where it is off: for the C library, which has
/// the same functions either way.
#[cfg(feature = "shaderc")]
#[doc(hidden)]
#[macro_export]
macro_rules! if_shaderc {
    ({ $($with:item)* } { $($without:item)* }) => { $($with)* };
}

/// As above.
#[cfg(not(feature = "shaderc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! if_shaderc {
    ({ $($with:item)* } { $($without:item)* }) => { $($without)* };
}

/// The snippets of these pages compile and run as doctests; tests/docs.rs finds a page that is missing here.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/recording.md")]
    struct Recording;
    #[doc = include_str!("../docs/plans.md")]
    struct Plans;
    #[doc = include_str!("../docs/streams.md")]
    struct Streams;
    #[cfg(feature = "shaderc")]
    #[doc = include_str!("../docs/kernels.md")]
    struct Kernels;
    #[doc = include_str!("../docs/profiling.md")]
    struct Profiling;
    #[doc = include_str!("../docs/renderdoc.md")]
    struct RenderDoc;
    #[doc = include_str!("../docs/hybrid.md")]
    struct Hybrid;
    #[doc = include_str!("../docs/embedding.md")]
    struct Embedding;
    #[doc = include_str!("../docs/tuning.md")]
    struct Tuning;
    #[doc = include_str!("../docs/errors.md")]
    struct Errors;
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Accelerator>();
    shared::<Tensor>();
    shared::<HostMemory>();
    shared::<Submission>();
    shared::<Hybrid>();
    shared::<Plan>();
    shared::<Stream>();
    shared::<Batch>();
    shared::<Kernel>();
    // Operations have an order, so one thread records at a time.
    const fn moves<T: Send>() {}
    moves::<Recording>();
};
