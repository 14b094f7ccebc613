//! Kernels of the program's own.

use std::collections::HashMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tidemill::{DType, Dispatch, Shape};

use crate::array::{Extents, dtype};
use crate::errors::{Failure, Result};
use crate::json;
use crate::operand::{Number, Operand, Value};
use crate::profile::dict;
use crate::recording::Recording;
use crate::tensor::Tensor;

/// A compute shader. Each of its accesses is clamped to what is bound: whatever the arguments, it reads and writes only
/// what it was given. Nothing bounds the time that it takes: it must end.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Kernel {
    kernel: tidemill::Kernel,
}

#[pymethods]
impl Kernel {
    /// From SPIR-V: the bytes of a `.spv` file. `name` is what labels, profiles and errors call it. A module that can't
    /// be made safe is refused with the reason.
    #[staticmethod]
    fn from_spirv(name: &str, spirv: PyBackedBytes) -> Result<Kernel> {
        let (words, rest) = spirv.as_chunks::<4>();
        if !rest.is_empty() {
            let message = format!("{name}: {} bytes, and words of SPIR-V have 4", spirv.len());
            return Err(Failure::new("KernelError", message));
        }
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        Ok(Kernel { kernel: tidemill::Kernel::from_spirv_guarded(name, &words)? })
    }

    /// From the text of a shader in GLSL, where the module was built with a compiler for it (`tidemill.HAS_GLSL`). The
    /// message of a `KernelError` has the mistakes, each with file and line.
    #[staticmethod]
    #[pyo3(signature = (name, text, *, defines=None, include_dirs=None))]
    fn from_glsl(
        py: Python<'_>,
        name: &str,
        text: &str,
        defines: Option<HashMap<String, String>>,
        include_dirs: Option<Vec<PathBuf>>,
    ) -> Result<Kernel> {
        let options = GlslOptions { defines, include_dirs };
        py.detach(|| compile(Source::Text { name, text }, options)).map(|kernel| Kernel { kernel })
    }

    /// As `from_glsl`, from a file.
    #[staticmethod]
    #[pyo3(signature = (file, *, defines=None, include_dirs=None))]
    fn from_glsl_file(
        py: Python<'_>,
        file: PathBuf,
        defines: Option<HashMap<String, String>>,
        include_dirs: Option<Vec<PathBuf>>,
    ) -> Result<Kernel> {
        let options = GlslOptions { defines, include_dirs };
        py.detach(|| compile(Source::File(file), options)).map(|kernel| Kernel { kernel })
    }

    #[getter]
    fn name(&self) -> &str {
        self.kernel.name()
    }

    /// What it says of itself: bindings, bytes of push constants, local size, specialization constants.
    fn describe<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        dict(py, &json::kernel(&self.kernel))
    }

    fn __repr__(&self) -> String {
        format!("Kernel({:?})", self.kernel.name())
    }
}

/// Where GLSL is.
enum Source<'a> {
    Text { name: &'a str, text: &'a str },
    File(PathBuf),
}

struct GlslOptions {
    defines: Option<HashMap<String, String>>,
    include_dirs: Option<Vec<PathBuf>>,
}

tidemill::if_shaderc! {{
    fn compile(source: Source<'_>, options: GlslOptions) -> Result<tidemill::Kernel> {
        let mut glsl = match source {
            Source::Text { name, text } => tidemill::Glsl::source(name, text),
            Source::File(file) => tidemill::Glsl::file(file),
        };
        for (name, value) in options.defines.into_iter().flatten() {
            glsl = glsl.define(name, value);
        }
        for folder in options.include_dirs.into_iter().flatten() {
            glsl = glsl.include_dir(folder);
        }
        Ok(glsl.compile()?)
    }
} {
    fn compile(source: Source<'_>, options: GlslOptions) -> Result<tidemill::Kernel> {
        let what = match source {
            Source::Text { name, text } => format!("{name} ({} bytes)", text.len()),
            Source::File(file) => file.display().to_string(),
        };
        let more = options.defines.map_or(0, |all| all.len()) + options.include_dirs.map_or(0, |all| all.len());
        Err(Failure::new("KernelError", format!(
            "{what}, with {more} options: this module was built without shaderc; compile to SPIR-V and call \
             Kernel.from_spirv, or build it with --features shaderc"
        )))
    }
}}

/// An argument that the kernel writes: a new value.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Output {
    shape: Shape,
    dtype: DType,
}

#[pymethods]
impl Output {
    #[new]
    #[pyo3(signature = (shape, dtype=None))]
    fn new(shape: Extents, dtype: Option<&Bound<'_, PyAny>>) -> Result<Output> {
        let dtype = dtype.map(self::dtype).transpose()?.unwrap_or(DType::F32);
        Ok(Output { shape: shape.shape("Output")?, dtype })
    }
}

/// An argument that the kernel reads and writes in place: an existing tensor.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct InOut {
    tensor: tidemill::Tensor,
}

#[pymethods]
impl InOut {
    #[new]
    fn new(tensor: &Tensor) -> InOut {
        InOut { tensor: tensor.tensor.clone() }
    }
}

/// What a binding of a kernel gets.
#[derive(FromPyObject)]
enum Argument<'py> {
    #[pyo3(transparent)]
    Input(Operand<'py>),
    Output(Bound<'py, Output>),
    InOut(Bound<'py, InOut>),
}

#[pymethods]
impl Recording {
    /// Records one run of a kernel, and gives a value for each `Output` among the arguments. Arguments are in the order
    /// of the kernel's bindings: a tensor or a value that it reads, an `Output`, or an `InOut`.
    ///
    /// `groups` are workgroups in x, y and z; `push` are the bytes of the push constants, `specialize` has values of
    /// specialization constants by their ids; `flops` and `bytes` are for profiles.
    #[pyo3(signature = (kernel, arguments, *, groups=(1, 1, 1), push=None, specialize=None, flops=None, bytes=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn dispatch(
        slf: &Bound<'_, Self>,
        kernel: &Kernel,
        arguments: Vec<Argument<'_>>,
        groups: (u32, u32, u32),
        push: Option<PyBackedBytes>,
        specialize: Option<HashMap<u32, Number>>,
        flops: Option<u64>,
        bytes: Option<u64>,
    ) -> Result<Vec<Value>> {
        let mut run = Dispatch::new(&kernel.kernel).groups(groups.into());
        for argument in &arguments {
            run = match argument {
                Argument::Input(operand) => run.input(operand.get()),
                Argument::Output(output) => run.output(output.get().shape, output.get().dtype),
                Argument::InOut(tensor) => run.inout(&tensor.get().tensor),
            };
        }
        if let Some(push) = &push {
            run = run.push::<u8>(push);
        }
        for (id, number) in specialize.into_iter().flatten() {
            run = match number {
                Number::Float(_) => run.specialize(id, number.element::<f32>()?),
                Number::Int(..0) => run.specialize(id, number.element::<i32>()?),
                Number::Int(_) => run.specialize(id, number.element::<u32>()?),
            };
        }
        if let Some(flops) = flops {
            run = run.flops(flops);
        }
        if let Some(bytes) = bytes {
            run = run.bytes(bytes);
        }
        let made = slf.get().with(|r| Ok(r.dispatch(run)?))?;
        let value = |value| Value { recording: slf.clone().unbind(), value };
        Ok(made.into_iter().map(value).collect())
    }
}
