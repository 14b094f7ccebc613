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
//! - [`Kernel`] and [`Dispatch`]: shaders of your own.
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
//! let mut r = gpu.begin_recording()?;
//! let sum = r.add(&a, &b)?;
//! let scaled = r.mul(sum, &a)?;
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
//! - `shaderc`: compiles `glsl/` while building, instead of embedding the SPIR-V that comes with the crate.
//! - `cli`: the command line `tidemill`.
//! - `tracing`: spans and events for the host application's own subscriber.

mod engine;
mod error;
mod ops;
mod report;
mod shape;
pub mod spirv;
mod vk;

pub use engine::accelerator::{Accelerator, Stats};
pub use engine::catalog::VariantInfo;
pub use engine::config::{Config, Prewarm};
pub use engine::dispatch::Dispatch;
pub use engine::housekeeping::PrewarmStatus;
pub use engine::pipelines::PipelineStats;
pub use engine::pool::PoolStats;
pub use engine::profile::Profiling;
pub use engine::profile::guard::{Bandwidth, Figure, Peaks, Throughput};
pub use engine::profile::measurement::{Measurement, Pace, checksum};
pub use engine::profile::row::{HostTime, Profile, Row};
pub use engine::profile::run::{Clock, CpuSpan, DeviceTime, Run, Session};
pub use engine::recording::{Operand, Outputs, Recording, Value};
pub use engine::submission::Submission;
pub use engine::tensor::{Filler, Tensor};
pub use error::{Error, KernelMismatch, MeasurementError, ProfileError, RefusedDevice, Result};
pub use ops::axes::Axes;
pub use ops::epilogue::Epilogue;
pub use ops::layout::Ranges;
pub use ops::matmul::Matmul;
pub use report::html_report;
pub use shape::{DType, Element, MAX_RANK, Shape};
pub use vk::kernel::Kernel;
pub use vk::physical::{DeviceChoice, DeviceInfo, DeviceKind, Features, Limits, TimestampClock};
pub use vk::raw;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Accelerator>();
    shared::<Tensor>();
    shared::<Recording>();
    shared::<Submission>();
    shared::<Kernel>();
};
