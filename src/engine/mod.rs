//! The engine: a recording is plain data until it ends; then it gets memory, barriers and one submission.

pub(crate) mod accelerator;
mod bounds;
pub(crate) mod branches;
pub(crate) mod catalog;
pub(crate) mod choices;
pub(crate) mod commands;
mod common;
pub(crate) mod config;
pub(crate) mod convolution;
pub(crate) mod core;
pub(crate) mod dispatch;
pub(crate) mod division;
mod embed;
pub(crate) mod epilogue;
pub(crate) mod execute;
pub(crate) mod explain;
pub(crate) mod fuse;
#[cfg(test)]
mod fuse_properties;
pub(crate) mod graph;
pub(crate) mod hazard;
mod head;
mod headed;
pub(crate) mod hosted;
pub(crate) mod housekeeping;
pub(crate) mod inspect;
#[cfg(test)]
mod interpreter;
pub(crate) mod kept;
pub(crate) mod launch;
pub(crate) mod linear;
pub(crate) mod lower;
pub(crate) mod map;
pub(crate) mod map_modules;
pub(crate) mod memory;
pub(crate) mod modules;
mod needed;
pub(crate) mod op_code;
pub(crate) mod outputs;
pub(crate) mod pack;
pub(crate) mod pipelines;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod product;
pub(crate) mod profile;
pub(crate) mod program;
mod quiet;
pub(crate) mod recording;
pub(crate) mod reduce;
pub(crate) mod reduction;
pub(crate) mod seen;
pub(crate) mod softmax;
mod space;
pub(crate) mod span;
mod staging;
pub(crate) mod submission;
pub(crate) mod tail;
pub(crate) mod tensor;
pub(crate) mod timeline;
pub(crate) mod together;
mod uploads;
pub(crate) mod wakers;

/// For the layers above, whose locks may be held for good in a forked process, too.
pub(crate) use crate::vk::process;
