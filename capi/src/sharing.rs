//! Objects that a host and the library share on one device: buffers, points on timelines, command buffers.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use tidemill::interop::ash::vk::{self, Handle};
use tidemill::interop::{
    BUFFER_USAGE, HostBuffer, HostCommands, SemaphorePoint, TensorBuffer, TimelinePoint,
};

use crate::accelerator::{opened, tm_accelerator};
use crate::arguments::{dtype, given, handle, place, shape, tm_dtype};
use crate::host_device::raw;
use crate::options::{self, options};
use crate::plan::tm_plan;
use crate::recording::{tm_recording, tm_value, value};
use crate::status::{Failure, guard, guarded, tm_status};
use crate::submission::tm_submission;
use crate::tensor::tm_tensor;

/// The VkBufferUsageFlags that a host's buffer must have been made for to become a tensor. Tidemill's own have the
/// same.
pub const TM_BUFFER_USAGE: u32 = 63;
const _: () = assert!(TM_BUFFER_USAGE == BUFFER_USAGE.as_raw());

/// A range of a buffer of the host.
///
/// By handing it over the host vouches for this:
/// - The buffer is valid, of the accelerator's device, bound to memory, was made with this usage, reaches as far as
///   the range does, and the queue's family may use it. It stays so until every tensor, recording and plan that uses
///   it was freed and tm_synchronize has returned after that.
/// - No two tensors wrap ranges that overlap.
/// - The host uses the range only where that is ordered with Tidemill's submissions: by barriers on the same queue,
///   or by semaphores. What it wrote before is made visible to compute shaders and transfers by the same means.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_host_buffer {
    /// sizeof(tm_host_buffer).
    pub size: usize,
    /// The VkBuffer, cast to uint64_t.
    pub buffer: u64,
    /// Where the range begins: at a multiple of the device's minStorageBufferOffsetAlignment.
    pub offset_bytes: u64,
    /// How long it is: all elements, in whole groups of 16 bytes.
    pub size_bytes: u64,
    /// The VkBufferUsageFlags that the buffer was made with: at least TM_BUFFER_USAGE.
    pub usage: u32,
}

options!(tm_host_buffer, least: size_of::<tm_host_buffer>(), defaults: tm_host_buffer {
    size: size_of::<tm_host_buffer>(),
    buffer: 0,
    offset_bytes: 0,
    size_bytes: 0,
    usage: 0,
});

/// A tensor in a buffer of the host, with what the host has in it. The buffer stays the host's.
///
/// It is an operand like any other. Unlike others it stays in its place when it is written: by tm_tensor_write, by
/// tm_keep_in_buffer, or as a plan's output (tm_plan_bind). A recording reads what is in it when it is submitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_wrap_buffer(
    gpu: Option<&tm_accelerator>,
    buffer: *const tm_host_buffer,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    tensor: Option<&mut MaybeUninit<*mut tm_tensor>>,
) -> tm_status {
    guard("tm_wrap_buffer", || {
        let out = place(tensor, "tensor")?;
        let gpu = opened(gpu)?;
        // SAFETY: contract 1.
        let host = unsafe { options::read(buffer, "buffer") }?;
        let raw = object(host.buffer, "buffer")?;
        let usage = vk::BufferUsageFlags::from_raw(host.usage);
        // SAFETY: what the host vouches for stands at the struct.
        let buffer = unsafe { HostBuffer::new(raw, usage, host.offset_bytes, host.size_bytes) };
        // SAFETY: contract 1.
        let shape = unsafe { shape("wrap", dims, rank) }?;
        *out = handle(tm_tensor { tensor: gpu.wrap(buffer, shape, self::dtype(dtype)?)? });
        Ok(())
    })
}

/// As tm_keep, but in memory of the host: the value becomes the contents of a tensor that tm_wrap_buffer gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_keep_in_buffer(
    recording: Option<&tm_recording>,
    x: tm_value,
    tensor: Option<&tm_tensor>,
) -> tm_status {
    guard("tm_keep_in_buffer", || {
        let tensor = given(tensor, "tensor")?;
        given(recording, "recording")?.record(|r, scope| {
            // SAFETY: contract 1.
            let value = value(r, unsafe { scope.operand(x, "x") }?)?;
            r.keep_in(value, &tensor.tensor)?;
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// Where a tensor's contents are, for the host's own commands. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_buffer_range {
    /// sizeof(tm_buffer_range).
    pub size: usize,
    /// The VkBuffer, to be cast from uint64_t.
    pub buffer: u64,
    /// Where the contents begin.
    pub offset_bytes: u64,
    /// How long they are.
    pub size_bytes: u64,
    /// The contents are there when this timeline semaphore (VkSemaphore) has reached ready_value. A submission of the
    /// host needs no barrier if it waits for it. 0 if they were there before, or if a command buffer of the host
    /// writes them.
    pub ready_semaphore: u64,
    /// The value; 0 without a semaphore.
    pub ready_value: u64,
}

options!(tm_buffer_range, least: size_of::<tm_buffer_range>(), defaults: tm_buffer_range {
    size: size_of::<tm_buffer_range>(),
    buffer: 0,
    offset_bytes: 0,
    size_bytes: 0,
    ready_semaphore: 0,
    ready_value: 0,
});

/// Keeps a tensor's contents where tm_tensor_raw_buffer said that they are: as long as it lives, nothing overwrites
/// them.
#[derive(Debug)]
pub struct tm_buffer_hold {
    _buffer: TensorBuffer,
}

/// The tensor's memory, for the host's own commands: it can be bound as a storage, uniform or texel buffer and copied
/// from, and is not to be written. Free `hold` when the host's commands that use it are done: until then no write and
/// no plan overwrites the contents. (A tensor that wraps a buffer of the host is always written in place.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tensor_raw_buffer(
    tensor: Option<&tm_tensor>,
    range: *mut tm_buffer_range,
    hold: Option<&mut MaybeUninit<*mut tm_buffer_hold>>,
) -> tm_status {
    guard("tm_tensor_raw_buffer", || {
        let out = place(hold, "hold")?;
        let buffer = given(tensor, "tensor")?.tensor.raw_buffer()?;
        let (ready_semaphore, ready_value) = buffer.ready.map_or((0, 0), numbers);
        let found = tm_buffer_range {
            size: size_of::<tm_buffer_range>(),
            buffer: buffer.buffer.as_raw(),
            offset_bytes: buffer.offset_bytes,
            size_bytes: buffer.size_bytes,
            ready_semaphore,
            ready_value,
        };
        // SAFETY: contract 1.
        unsafe { options::fill(range, "range", found) }?;
        *out = handle(tm_buffer_hold { _buffer: buffer });
        Ok(())
    })
}

/// Lets the memory go. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_buffer_hold_free(hold: Option<Box<tm_buffer_hold>>) {
    guarded((), || drop(hold));
}

/// Hands uploads that wait for a submission to ride on to the device, and waits for nothing. tm_record_into wants it
/// for what was just written.
#[unsafe(no_mangle)]
pub extern "C" fn tm_flush(gpu: Option<&tm_accelerator>) -> tm_status {
    guard("tm_flush", || Ok(opened(gpu)?.flush()?))
}

/// When the submission is done, for submissions of the host's to wait for: a timeline semaphore (VkSemaphore) and its
/// value. The semaphore lives as long as the accelerator.
#[unsafe(no_mangle)]
pub extern "C" fn tm_submission_raw_point(
    submission: Option<&tm_submission>,
    semaphore: Option<&mut MaybeUninit<u64>>,
    value: Option<&mut MaybeUninit<u64>>,
) -> tm_status {
    guard("tm_submission_raw_point", || {
        let (semaphore, value) = (given(semaphore, "semaphore")?, given(value, "value")?);
        let (raw, reached) = numbers(given(submission, "submission")?.submission.raw_point());
        semaphore.write(raw);
        value.write(reached);
        Ok(())
    })
}

/// Lets the recording's submission wait until a timeline semaphore of the host (VkSemaphore, cast to uint64_t) has
/// reached `value`, before anything of it runs.
///
/// The semaphore is of the accelerator's device and valid until the submission is done. The value is reached in the
/// end, by work that was submitted before if it is on the same queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_wait_semaphore(
    recording: Option<&tm_recording>,
    semaphore: u64,
    value: u64,
) -> tm_status {
    guard("tm_wait_semaphore", || {
        let point = point(semaphore, value)?;
        given(recording, "recording")?.record(|r, _| {
            r.wait_for(point);
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// Lets the recording's submission signal `value` on a timeline semaphore of the host when all of it is done. The
/// value is above all that the semaphore has reached or will have reached by then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_signal_semaphore(
    recording: Option<&tm_recording>,
    semaphore: u64,
    value: u64,
) -> tm_status {
    guard("tm_signal_semaphore", || {
        let point = point(semaphore, value)?;
        given(recording, "recording")?.record(|r, _| {
            r.signal(point);
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// As tm_wait_semaphore, for the plan's next submission.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_plan_wait_semaphore(
    plan: Option<&tm_plan>,
    semaphore: u64,
    value: u64,
) -> tm_status {
    guard("tm_plan_wait_semaphore", || {
        let point = point(semaphore, value)?;
        given(plan, "plan")?.lock()?.wait_for(point);
        Ok(())
    })
}

/// As tm_signal_semaphore, for the plan's next submission.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_plan_signal_semaphore(
    plan: Option<&tm_plan>,
    semaphore: u64,
    value: u64,
) -> tm_status {
    guard("tm_plan_signal_semaphore", || {
        let point = point(semaphore, value)?;
        given(plan, "plan")?.lock()?.signal(point);
        Ok(())
    })
}

/// Ends the recording by encoding it into a command buffer of the host (VkCommandBuffer), which the host submits.
/// The commands see the host's earlier commands, and later ones see the results: there are barriers on both sides.
/// Nothing is submitted, waited for or uploaded. The command buffer's compute pipeline, descriptor sets and push
/// constants are others afterwards. The recording's handle still has to be freed.
///
/// By calling it the host vouches for this:
/// - The command buffer is of the accelerator's device and of its queue's family, is being recorded, outside of a
///   render pass, and no other thread touches it during the call.
/// - It is submitted once, to the accelerator's queue, after what was submitted so far and before Tidemill is given
///   anything that uses what it reads or writes; or else it is never submitted, and the host signals `done_value`
///   itself.
/// - The timeline semaphore `done_semaphore` (VkSemaphore, cast to uint64_t) reaches `done_value` when the command
///   buffer's execution is over, and not before. It is valid until tm_synchronize has returned after that.
/// - The host submits before it waits for the accelerator: tm_synchronize, tm_accelerator_close and tm_tensor_read of
///   what it writes wait.
///
/// TM_HOST if an input waits for its upload (call tm_flush before), or if the recording was told to wait or signal.
/// After TM_VULKAN the command buffer may hold a part of it, and is not to be submitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_record_into(
    recording: Option<&tm_recording>,
    command_buffer: *mut c_void,
    done_semaphore: u64,
    done_value: u64,
) -> tm_status {
    guard("tm_record_into", || {
        let recording = given(recording, "recording")?;
        let buffer = raw(command_buffer, "command_buffer")?;
        let done = point(done_semaphore, done_value)?;
        // SAFETY: what the host vouches for is said above.
        let commands = unsafe { HostCommands::new(buffer, done) };
        Ok(recording.end()?.record_into(commands)?)
    })
}

/// A handle from C that is a number, which may not be 0.
fn object<H: Handle>(number: u64, name: &str) -> Result<H, Failure> {
    if number == 0 {
        return Err(Failure::argument(format!("{name} is VK_NULL_HANDLE")));
    }
    Ok(H::from_raw(number))
}

/// A point of the host. What the host vouches for is said where C hands it over.
fn point(semaphore: u64, value: u64) -> Result<SemaphorePoint, Failure> {
    let semaphore = object(semaphore, "semaphore")?;
    // SAFETY: the functions that call this have it from a caller who vouches for it.
    Ok(unsafe { SemaphorePoint::new(semaphore, value) })
}

fn numbers((semaphore, value): TimelinePoint) -> (u64, u64) {
    (semaphore.as_raw(), value)
}
