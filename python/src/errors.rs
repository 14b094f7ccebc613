//! Errors as exceptions: the classes of `tidemill/errors.py`, with the library's own sentences.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use tidemill::Error;

/// Why a call failed, as Python sees it.
#[derive(Debug)]
pub(crate) struct Failure(PyErr);

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// An exception of a class of `tidemill.errors`.
    pub(crate) fn new(class: &str, message: String) -> Failure {
        Failure(Python::attach(|py| {
            let found = py.import("tidemill.errors").and_then(|errors| errors.getattr(class));
            match found.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
                Ok(class) => PyErr::from_type(class, message),
                // The module was taken apart: at the end of the process.
                Err(_) => PyRuntimeError::new_err(message),
            }
        }))
    }

    /// What an argument must be, and is not.
    pub(crate) fn parameter(message: String) -> Failure {
        Failure::new("ParameterError", message)
    }

    pub(crate) fn dtype(message: String) -> Failure {
        Failure::new("DTypeError", message)
    }

    pub(crate) fn closed(what: &str) -> Failure {
        Failure::new("ClosedError", what.to_owned())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        failure.0
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(class(&error), error.to_string())
    }
}

/// The class of an error; those of C's codes, by the same groups.
fn class(error: &Error) -> &'static str {
    match error {
        Error::NoLoader { .. } | Error::NoDriver { .. } => "NoVulkanError",
        Error::NoUsableDevice { .. } | Error::DeviceNotFound { .. } | Error::DeviceVariable { .. } => {
            "NoDeviceError"
        }
        Error::LayerMissing { .. } => "LayerMissingError",
        Error::CacheFolder { .. } => "CacheFolderError",
        Error::Vulkan { .. } | Error::NoMemoryType { .. } => "VulkanError",
        Error::DeviceLost { .. } => "DeviceLostError",
        Error::Profile(_) | Error::NoDisassembly { .. } => "ProfileError",
        Error::Closed => "ClosedError",
        Error::StillInUse { .. } => "StillInUseError",
        Error::Forked { .. } => "ForkedError",
        Error::Cancelled { .. } => "CancelledError",
        Error::Host(_) => "HostError",
        Error::OutOfMemory { .. } | Error::OverCap { .. } => "OutOfMemoryError",
        Error::TooLarge { .. } | Error::BindingTooLarge { .. } => "TooLargeError",
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
        | Error::NoOperands { .. } => "ShapeError",
        Error::Type { .. } | Error::UnknownType { .. } => "DTypeError",
        Error::Parameter { .. } | Error::Epilogue { .. } | Error::NoSuchVariant { .. } => "ParameterError",
        Error::NotWritten { .. } | Error::NotSubmitted { .. } | Error::Discarded { .. } => "NoContentsError",
        Error::NotInPlan { .. }
        | Error::BoundTwice { .. }
        | Error::ReadToo { .. }
        | Error::ViewInPlan { .. } => "BindingError",
        Error::ForeignValue { .. } | Error::ForeignTensor { .. } => "ForeignError",
        Error::Spirv(_)
        | Error::Unguardable { .. }
        | Error::Glsl(_)
        | Error::KernelNeeds { .. }
        | Error::KernelCapability { .. }
        | Error::KernelArguments { .. } => "KernelError",
        _ => "Error",
    }
}
