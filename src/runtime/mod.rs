//! Objects on a device: memory, pipelines, submissions, and the types that users hold.
//!
//! This module owns the accelerator, its pool and its timeline. It takes what the schedule has decided, gives it
//! memory, encodes and submits it, and gives back tensors, submissions, plans and profiles.

pub(crate) mod accelerator;
pub(crate) mod argument;
pub(crate) mod background;
pub(crate) mod commands;
pub(crate) mod config;
pub(crate) mod core;
mod declare;
pub(crate) mod disk_cache;
pub(crate) mod dispatch;
pub(crate) mod execute;
pub(crate) mod external;
mod import;
pub(crate) mod inspect;
mod interop;
mod losses;
pub(crate) mod measure;
pub(crate) mod operand;
pub(crate) mod outputs;
pub(crate) mod pipeline_history;
pub(crate) mod pipelines;
pub(crate) mod plan;
pub(crate) mod pool;
mod prepare;
pub(crate) mod profile;
mod quiet;
pub(crate) mod recording;
mod staging;
pub(crate) mod state;
pub(crate) mod submission;
pub(crate) mod tensor;
pub(crate) mod timeline;
mod updated;
mod uploads;
pub(crate) mod wakers;

/// For the layers above, whose locks may be held for good in a forked process, too.
pub(crate) use crate::vk::process;
