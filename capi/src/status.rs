//! Errors as codes with a message, and the guard that no panic gets past.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tidemill::Error;
use tidemill::error::StreamError;

/// The result of a call. tm_last_error_message has the details.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tm_status {
    /// It was done.
    TM_OK = 0,
    /// The time was over before it was done. Nothing has changed.
    TM_TIMEOUT = 1,
    /// Every slot of the stream holds a batch: pop one first.
    TM_STREAM_FULL = 2,
    /// A pointer is NULL, or a number, string or size can't be what it stands for.
    TM_INVALID_ARGUMENT = 3,
    /// Header and library do not belong together.
    TM_ABI_MISMATCH = 4,
    /// A panic inside the library, caught: a defect of Tidemill. The handle of the call may be unusable.
    TM_INTERNAL = 5,
    /// A function of the caller's own said that it failed.
    TM_CALLBACK = 6,
    /// No Vulkan loader or no driver on this machine.
    TM_NO_VULKAN = 10,
    /// No device that can be used, or none that was asked for.
    TM_NO_DEVICE = 11,
    /// The validation layer was asked for and is not installed.
    TM_LAYER_MISSING = 12,
    /// The cache folder can't be used.
    TM_CACHE_FOLDER = 13,
    /// A Vulkan call failed.
    TM_VULKAN = 14,
    /// The device is gone, for good. A new accelerator may work.
    TM_DEVICE_LOST = 15,
    /// The accelerator, or the stream's other end, is closed; or the recording, or the stream, has ended.
    TM_CLOSED = 16,
    /// Closed, but others still hold on to the accelerator.
    TM_STILL_IN_USE = 17,
    /// The process was forked after its parent had used a device. Nothing works in it, and tm_x_free does nothing.
    TM_FORKED = 18,
    /// Out of device memory, or over the pool's cap.
    TM_OUT_OF_MEMORY = 20,
    /// Larger than the device can address.
    TM_TOO_LARGE = 21,
    /// Shapes, axes, ranges or lengths do not fit.
    TM_SHAPE = 30,
    /// The element type does not fit.
    TM_TYPE = 31,
    /// A parameter is out of range.
    TM_PARAMETER = 32,
    /// A tensor without contents: never written, not submitted yet, or discarded.
    TM_NO_CONTENTS = 40,
    /// A tensor has no place in the plan, or has one already.
    TM_BINDING = 41,
    /// A value of another recording, or a tensor of another accelerator.
    TM_FOREIGN = 42,
    /// SPIR-V that can't be used, or arguments that do not fit the kernel.
    TM_KERNEL = 50,
    /// There is no profile.
    TM_PROFILE = 60,
    /// A stream's inputs or outputs do not fit.
    TM_STREAM = 61,
    /// Something of the host can't be used: its device, a buffer, its lock or its memory.
    TM_HOST = 70,
    /// The caller's function ended it. Nothing is lost.
    TM_CANCELLED = 71,
    /// An error that this version of the ABI has no code for.
    TM_OTHER = 99,
}

use tm_status::*;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: tm_status,
    message: String,
    /// The message does not say yet which function it is about.
    bare: bool,
}

impl Failure {
    /// With a message that gets the function's name in front.
    pub(crate) fn new(status: tm_status, message: String) -> Failure {
        Failure { status, message, bare: true }
    }

    pub(crate) fn argument(message: String) -> Failure {
        Failure::new(TM_INVALID_ARGUMENT, message)
    }

    pub(crate) fn null(name: &str) -> Failure {
        Failure::argument(format!("{name} is NULL"))
    }

    pub(crate) fn unknown(name: &str, number: u32) -> Failure {
        Failure::argument(format!("{name} is {number}, which is none of the header's"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { status: code(&error), message: error.to_string(), bare: false }
    }
}

fn code(error: &Error) -> tm_status {
    match error {
        Error::NoLoader { .. } | Error::NoDriver { .. } => TM_NO_VULKAN,
        Error::NoUsableDevice { .. } | Error::DeviceNotFound { .. } | Error::DeviceVariable { .. } => {
            TM_NO_DEVICE
        }
        Error::Input { error, .. } => code(error),
        Error::LayerMissing { .. } => TM_LAYER_MISSING,
        Error::CacheFolder { .. } => TM_CACHE_FOLDER,
        Error::Vulkan { .. } | Error::NoMemoryType { .. } => TM_VULKAN,
        Error::DeviceLost { .. } => TM_DEVICE_LOST,
        Error::Profile(_) | Error::NoDisassembly { .. } => TM_PROFILE,
        Error::Stream(StreamError::Full { .. }) => TM_STREAM_FULL,
        Error::Stream(StreamError::Closed | StreamError::Finished | StreamError::Cancelled)
        | Error::Closed => TM_CLOSED,
        Error::Stream(_) => TM_STREAM,
        Error::Host(_) => TM_HOST,
        Error::Cancelled { .. } => TM_CANCELLED,
        Error::StillInUse { .. } => TM_STILL_IN_USE,
        Error::Forked { .. } => TM_FORKED,
        Error::OutOfMemory { .. } | Error::OverCap { .. } => TM_OUT_OF_MEMORY,
        Error::TooLarge { .. } | Error::BindingTooLarge { .. } => TM_TOO_LARGE,
        Error::Rank { .. }
        | Error::Length { .. }
        | Error::Shapes { .. }
        | Error::InnerDimension { .. }
        | Error::NotMatrix { .. }
        | Error::Dimensions { .. }
        | Error::Axis { .. }
        | Error::AxisTwice { .. }
        | Error::EmptyReduction { .. }
        | Error::Permutation { .. }
        | Error::SliceRange { .. }
        | Error::PadRank { .. }
        | Error::NoOperands { .. } => TM_SHAPE,
        Error::Type { .. } => TM_TYPE,
        Error::Parameter { .. }
        | Error::Epilogue { .. }
        | Error::Incomplete { .. }
        | Error::IndexRange { .. }
        | Error::Argument(_) => TM_PARAMETER,
        Error::NotWritten { .. } | Error::NotSubmitted { .. } | Error::Discarded { .. } => TM_NO_CONTENTS,
        Error::NotInPlan { .. }
        | Error::BoundTwice { .. }
        | Error::ReadToo { .. }
        | Error::ViewInPlan { .. } => TM_BINDING,
        Error::ForeignValue { .. } | Error::ForeignTensor { .. } => TM_FOREIGN,
        Error::NoSuchVariant { .. }
        | Error::Spirv(_)
        | Error::Unguardable { .. }
        | Error::Glsl(_)
        | Error::KernelNeeds { .. }
        | Error::KernelCapability { .. }
        | Error::KernelArguments { .. } => TM_KERNEL,
        _ => TM_OTHER,
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs the body of a call: no panic gets past, and a failure leaves its message.
pub(crate) fn guard(call: &str, body: impl FnOnce() -> Result<(), Failure>) -> tm_status {
    // Before any handle's lock: a forked process may find it locked for good.
    let checked = || tidemill::check_process().map_err(Failure::from).and_then(|()| body());
    let failure = match catch_unwind(AssertUnwindSafe(checked)) {
        Ok(Ok(())) => return TM_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::new(TM_INTERNAL, format!("a panic: {}", panic_text(&*panic))),
    };
    let text = if failure.bare { format!("{call}: {}", failure.message) } else { failure.message };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that is ending may have no place for it any more.
    let _ = LAST.try_with(|last| last.replace(text));
    failure.status
}

/// For functions that give no status: what they give if they can't, or if the process was forked.
pub(crate) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    if tidemill::check_process().is_err() {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// The last message of this thread, as a text.
pub(crate) fn last_message() -> String {
    LAST.try_with(|last| last.borrow().to_string_lossy().into_owned()).unwrap_or_default()
}

/// The message of this thread's last call that failed; "" if none has. It stays valid until the thread's next call
/// that fails: copy it to keep it.
#[unsafe(no_mangle)]
pub extern "C" fn tm_last_error_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The name of a code, such as "TM_SHAPE". Static: not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_status_name(status: i32) -> *const c_char {
    const NAMES: &[(tm_status, &std::ffi::CStr)] = &[
        (TM_OK, c"TM_OK"),
        (TM_TIMEOUT, c"TM_TIMEOUT"),
        (TM_STREAM_FULL, c"TM_STREAM_FULL"),
        (TM_INVALID_ARGUMENT, c"TM_INVALID_ARGUMENT"),
        (TM_ABI_MISMATCH, c"TM_ABI_MISMATCH"),
        (TM_INTERNAL, c"TM_INTERNAL"),
        (TM_CALLBACK, c"TM_CALLBACK"),
        (TM_NO_VULKAN, c"TM_NO_VULKAN"),
        (TM_NO_DEVICE, c"TM_NO_DEVICE"),
        (TM_LAYER_MISSING, c"TM_LAYER_MISSING"),
        (TM_CACHE_FOLDER, c"TM_CACHE_FOLDER"),
        (TM_VULKAN, c"TM_VULKAN"),
        (TM_DEVICE_LOST, c"TM_DEVICE_LOST"),
        (TM_CLOSED, c"TM_CLOSED"),
        (TM_STILL_IN_USE, c"TM_STILL_IN_USE"),
        (TM_FORKED, c"TM_FORKED"),
        (TM_OUT_OF_MEMORY, c"TM_OUT_OF_MEMORY"),
        (TM_TOO_LARGE, c"TM_TOO_LARGE"),
        (TM_SHAPE, c"TM_SHAPE"),
        (TM_TYPE, c"TM_TYPE"),
        (TM_PARAMETER, c"TM_PARAMETER"),
        (TM_NO_CONTENTS, c"TM_NO_CONTENTS"),
        (TM_BINDING, c"TM_BINDING"),
        (TM_FOREIGN, c"TM_FOREIGN"),
        (TM_KERNEL, c"TM_KERNEL"),
        (TM_PROFILE, c"TM_PROFILE"),
        (TM_STREAM, c"TM_STREAM"),
        (TM_HOST, c"TM_HOST"),
        (TM_CANCELLED, c"TM_CANCELLED"),
        (TM_OTHER, c"TM_OTHER"),
    ];
    let known = NAMES.iter().find(|(code, _)| *code as i32 == status);
    known.map_or(c"unknown", |(_, name)| name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code_and_a_message() {
        let status = guard("tm_test", || panic!("number {}", 7));
        assert_eq!((status, last_message().as_str()), (TM_INTERNAL, "tm_test: a panic: number 7"));
        assert_eq!(guarded(3, || panic!("again")), 3);
    }

    #[test]
    fn messages_name_the_call_or_the_operation() {
        assert_eq!(guard("tm_test", || Err(Failure::null("gpu"))), TM_INVALID_ARGUMENT);
        assert_eq!(last_message(), "tm_test: gpu is NULL");
        let error = Error::Rank { op: "upload", rank: 9 };
        assert_eq!(guard("tm_test", || Err(error.into())), TM_SHAPE);
        assert_eq!(last_message(), "upload: rank 9 is above the maximum of 8; merge dimensions");
    }

    #[test]
    fn each_thread_has_its_own_message() {
        let _ = guard("tm_here", || Err(Failure::null("x")));
        let there = std::thread::spawn(last_message).join().unwrap();
        assert_eq!((there.as_str(), last_message().as_str()), ("", "tm_here: x is NULL"));
    }
}
