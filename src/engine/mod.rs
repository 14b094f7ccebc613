//! The engine: a recording is plain data until it ends; then it gets memory, barriers and one submission.

pub(crate) mod accelerator;
pub(crate) mod catalog;
pub(crate) mod config;
pub(crate) mod core;
pub(crate) mod dispatch;
pub(crate) mod division;
pub(crate) mod execute;
pub(crate) mod fuse;
pub(crate) mod graph;
pub(crate) mod hazard;
pub(crate) mod housekeeping;
pub(crate) mod linear;
pub(crate) mod lower;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod op_code;
pub(crate) mod pipelines;
pub(crate) mod pool;
pub(crate) mod profile;
pub(crate) mod recording;
pub(crate) mod submission;
pub(crate) mod tensor;
pub(crate) mod timeline;
