//! A low-level Vulkan compute engine: pooled memory, recordings on one timeline, kernels tuned per device.
//!
//! # The primary types
//!
//! - [`Accelerator`]: the device and all that exists once. [`Accelerator::global`] is the process's own.
//! - [`Tensor`]: device memory with a shape; [`upload`](Accelerator::upload) makes one, [`read`](Tensor::read) brings
//!   it back.
//! - [`Recording`]: a list of operations between [`begin_recording`](Accelerator::begin_recording) and
//!   [`end_recording`](Recording::end_recording), carried out as one [`Submission`]. Its methods are the operations.
//! - [`Value`]: the result of an operation; [`keep`](Recording::keep) makes it a tensor.
//! - [`Kernel`] and [`Dispatch`]: shaders of your own, from SPIR-V (safely by [`Kernel::from_spirv_guarded`]), or by
//!   `Glsl` (feature `shaderc`) from GLSL.
//! - [`Hybrid`]: operations on slices, on the CPU or the device, whichever is predicted to be faster; [`cpu`] has the
//!   CPU's side alone.
//!
//! The rest is in modules:
//!
//! - [`args`]: types of arguments; [`device`]: the device's description; [`error`]: the parts of [`Error`].
//! - [`profile`]: times of the device on one clock, and checked speeds; [`explain`]: explanations of recordings;
//!   [`stats`]: statistics of an accelerator.
//! - [`stream`]: batches through slots in rotation; [`tune`]: the fastest kernels for this device.
//! - [`interop`]: for applications that have a Vulkan device of their own ([`Accelerator::from_raw`]).
//! - [`spirv`]: the reflection of a shader.
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
//! - `shaderc`: `Glsl`, for kernels of your own in GLSL, compiled at run time. Needs shaderc, or a C++ toolchain to
//!   build it; `docs/shaderc.md` says what to do where the system's does not link (Debian 12). Without it,
//!   [`Kernel::from_spirv_guarded`] takes compiled SPIR-V, just as safely.
//! - `compile-kernels`: for work on the crate itself; `glsl/` is compiled while building, instead of embedding the
//!   SPIR-V that comes with the crate.
//! - `async`: the consuming end of a [`Stream`] as a `futures_core::Stream`. Submissions are futures without it.
//! - `half`: `half::f16` and `half::bf16` are element types, beside [`F16`] and [`Bf16`].
//! - `tracing`: spans and events for the host application's own subscriber.

// Examples are what users copy: they compile without warnings. The hidden functions around some of them are never
// called.
#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cpu;
mod disk;
mod elementwise_ops;
pub mod error;
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
pub mod stream;
pub mod tune;
mod vk;

pub use error::{Error, Result};
pub use hybrid::Hybrid;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use ir::branches::branches_taken;
pub use ops::attention::Attention;
pub use ops::conv2d::{Conv2d, PreparedWeights};
pub use ops::epilogue::Epilogue;
pub use ops::matmul::Matmul;
pub use runtime::accelerator::Accelerator;
pub use runtime::config::{Config, Prewarm};
pub use runtime::dispatch::Dispatch;
pub use runtime::operand::{Operand, Value};
pub use runtime::plan::Plan;
pub use runtime::recording::Recording;
pub use runtime::submission::Submission;
pub use runtime::tensor::{Tensor, TensorWriter};
pub use shape::attention::RotaryPairs;
pub use shape::axes::Axes;
pub use shape::resize::{Coordinates, Interpolation};
pub use shape::windows::Pool;
pub use shape::{Bf16, Bool, DType, Element, F16, MAX_RANK, Shape};
pub use stream::Stream;
#[cfg(feature = "shaderc")]
pub use vk::glsl::Glsl;
pub use vk::kernel::Kernel;
pub use vk::process::check as check_process;
#[doc(inline)]
pub use vk::raw as interop;

/// Argument types: traits and types that calls convert to. They are seldom named.
pub mod args {
    pub use crate::ops::conv2d::ConvWeights;
    pub use crate::ops::sort::Unique;
    pub use crate::runtime::argument::Argument;
    pub use crate::runtime::operand::{IntoOperand, Scalar};
    pub use crate::runtime::outputs::Outputs;
    pub use crate::shape::along::{Along, Sort};
    pub use crate::shape::ranges::Ranges;
}

/// The device's description, and the choice of a device.
pub mod device {
    pub use crate::vk::choice::DeviceChoice;
    pub use crate::vk::physical::{DeviceInfo, DeviceKind, Features, Limits, TimestampClock};
}

/// The explanation of a recording: [`Recording::explain`](crate::Recording::explain).
pub mod explain {
    pub use crate::schedule::explain::{ExplainedArgument, ExplainedStep, ExplainedValue, Explanation, Role};
}

/// Profiles, and measurements that are checked.
pub mod profile {
    pub use crate::report::html_report;
    pub use crate::runtime::measure::measurement::{Measurement, RoundMode, checksum};
    pub use crate::runtime::measure::run::{Clock, DeviceTime, Run, RunGraph, Session};
    pub use crate::runtime::profile::Profiling;
    pub use crate::runtime::profile::guard::{Bandwidth, Figure, Peaks, Throughput};
    pub use crate::runtime::profile::profiler::CpuSpan;
    pub use crate::runtime::profile::row::{HostTime, Profile, Row};
}

/// Statistics of an accelerator, and the progress of prewarming.
pub mod stats {
    pub use crate::runtime::accelerator::{CommandStats, Stats};
    pub use crate::runtime::background::PrewarmStatus;
    pub use crate::runtime::pipelines::PipelineStats;
    pub use crate::runtime::pipelines::parallel::PrepareProgress;
    pub use crate::runtime::pool::PoolStats;
}

/// The first of two groups of items where the feature `shaderc` is on, the second where it is off: for the C library,
/// which has the same functions either way.
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
    shared::<interop::HostMemory>();
    shared::<Submission>();
    shared::<Hybrid>();
    shared::<Plan>();
    shared::<Stream>();
    shared::<stream::Batch>();
    shared::<Kernel>();
    // Operations have an order, so one thread records at a time.
    const fn moves<T: Send>() {}
    moves::<Recording>();
};
