//! Tidemill for Python: what `tidemill/__init__.py` imports, by pyo3, for the stable ABI from Python 3.11 on.
//!
//! - Objects own what they are made of, and are shared between threads: what is not `Sync` has a lock.
//! - A call that may wait, for the device or for a lock, releases the interpreter meanwhile: no two threads wait for
//!   each other. No code of the program runs under a lock.
//! - There is no `unsafe` here. Arrays are copied, or borrowed from `bytes`, which never change.

// `cargo test --lib` would link what only an interpreter has: the tests are in Python.
#![cfg(not(test))]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "what pyo3 makes inside of our macros; `unsafe_code` is denied here"
)]

mod accelerator;
mod array;
mod errors;
mod kernel;
mod operand;
mod ops;
mod plan;
mod profile;
mod recording;
mod tensor;

// The C library's: the same figures by the same names.
#[path = "../../capi/src/json.rs"]
#[allow(dead_code, reason = "streams are in C and not here")]
mod json;

use pyo3::prelude::*;

tidemill::if_shaderc! {{
    const HAS_GLSL: bool = true;
} {
    const HAS_GLSL: bool = false;
}}

/// The compiled half of the package `tidemill`.
#[pymodule]
fn _tidemill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("HAS_GLSL", HAS_GLSL)?;
    module.add_class::<accelerator::Accelerator>()?;
    module.add_class::<tensor::Tensor>()?;
    module.add_class::<recording::Recording>()?;
    module.add_class::<operand::Value>()?;
    module.add_class::<plan::Submission>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<kernel::Output>()?;
    module.add_class::<kernel::InOut>()?;
    module.add_class::<profile::Session>()?;
    module.add_class::<profile::Run>()?;
    module.add_function(wrap_pyfunction!(accelerator::devices, module)?)?;
    module.add_function(wrap_pyfunction!(profile::html_report, module)?)?;
    Ok(())
}
