//! Vulkan, and nothing but: the only layer that names `ash` and the only one with `unsafe`.
//!
//! This module owns the handles: instance, device, queue, buffers, pipelines, command buffers, queries. It takes sizes,
//! SPIR-V and commands that are in order, and gives safe types around Vulkan's, errors that name the call, and what a
//! device is as plain data. It knows no tensor and no operation. It orders nothing by itself: the layers above place
//! barriers.
//!
//! # The contract
//!
//! Every `// SAFETY:` comment in this folder cites one of these by number. What the layer above must do is listed
//! with the item; it can't break memory safety of the host process otherwise, since it never sees a raw handle.
//!
//! 1. **Parents outlive children.** Whatever is made from a device holds an `Arc<Device>`, a device holds an
//!    `Arc<Instance>`, an instance holds the `ash::Entry` and so the loader's library. Handles are destroyed in
//!    `Drop`, once, by the struct that made them.
//! 2. **Handles come from the same device.** The layer above gives objects of one device to each other only.
//!    The engine keeps one device per accelerator and checks tensors for it.
//! 3. **External synchronization** is by `&mut` or by a lock inside the struct: command pools are reached through
//!    `&mut CommandSlot`, the queue through its mutex, the allocator through its mutex.
//! 4. **Nothing pending is destroyed or rewritten.** The submitter keeps everything that the command buffer uses
//!    (buffers, views, pipelines, the slot itself) until the timeline has reached the submission's value.
//! 5. **Mapped memory** is touched by the host only while no pending submission uses that buffer, or where the
//!    submission only reads and the host only reads; the layer above says so by calling
//!    `Buffer::write_bytes`/`read_bytes`.
//! 6. **Create-info structs** point to locals that live to the end of the call.
//! 7. **Limits and features.** Only features that were found on the physical device are enabled, and only enabled
//!    ones are used; sizes were checked against the device's limits.
//! 8. **Shaders** come from our own `glsl/`, from an `unsafe fn` whose caller vouches for them, or from users' GLSL by
//!    way of `spirv/guard.rs`, which keeps every access inside its binding; the layer above binds no empty tensor to
//!    those.
//! 9. **What is the host's** (instance, device, queue, buffers, semaphores, command buffers) is as the host vouched for
//!    in the `unsafe` constructors of [`raw`]: valid for as long as it is used here. It is never destroyed here.
//! 10. **The loader's lists** of instances and devices are changed under `loader::changing` and searched under
//!     `loader::searching`; on a host's device they are searched only if the host keeps to that, too.
//! 11. **A forked child** calls nothing of Vulkan's: [`process`] says why, and what can be dropped by itself asks it.
//! 12. **Imported memory** is the application's: its buffer keeps the owner, which lends the bytes for reading only.
//!     The host never writes them through the buffer (`Buffer::is_mapped`), and the layer above gives the buffer to no
//!     command that writes.

#![allow(unsafe_code, reason = "this is the layer for it; the contract is above")]

pub(crate) mod architecture;
pub(crate) mod buffer;
pub(crate) mod choice;
pub(crate) mod clock;
pub(crate) mod command;
pub(crate) mod debug;
pub(crate) mod describe;
pub(crate) mod device;
pub(crate) mod executable;
pub(crate) mod exit;
mod fault;
#[cfg(feature = "shaderc")]
pub(crate) mod glsl;
pub(crate) mod instance;
pub(crate) mod kernel;
pub(crate) mod kind;
pub(crate) mod limits;
mod loader;
pub(crate) mod messages;
pub(crate) mod physical;
pub(crate) mod pipeline;
pub(crate) mod process;
pub(crate) mod query;
pub(crate) mod queue;
pub mod raw;
pub(crate) mod renderdoc;
pub(crate) mod room;
pub(crate) mod usage;
pub(crate) mod workarounds;

use ash::vk;

use crate::error::{Error, Result};

/// Turns a Vulkan result into ours, naming the call.
pub(crate) fn check<T>(call: &'static str, result: ash::prelude::VkResult<T>) -> Result<T> {
    result.map_err(|code| match code {
        vk::Result::ERROR_DEVICE_LOST => Error::device_lost(call),
        code => Error::Vulkan { call, result: format!("{code:?}") },
    })
}
