//! Tidemill: a low-level Vulkan compute engine.

mod engine;
mod error;
mod ops;
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
pub use engine::recording::{Operand, Outputs, Recording, Value};
pub use engine::submission::Submission;
pub use engine::tensor::{Filler, Tensor};
pub use error::{Error, KernelMismatch, RefusedDevice, Result};
pub use shape::{DType, Element, MAX_RANK, Shape};
pub use vk::kernel::Kernel;
pub use vk::physical::{DeviceChoice, DeviceInfo, DeviceKind, Features, Limits};
pub use vk::raw;
