//! Arrays of Python as tensors' contents, and the other way round; element types by their names.

use bytemuck::Pod;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyString};
use tidemill::{DType, Element, F16, Shape};

use crate::errors::{Failure, Result};

/// Runs an expression with `$T` as the Rust type of a [`DType`].
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            tidemill::DType::F32 => {
                type $T = f32;
                $body
            }
            tidemill::DType::F16 => {
                type $T = tidemill::F16;
                $body
            }
            tidemill::DType::I32 => {
                type $T = i32;
                $body
            }
            tidemill::DType::U32 => {
                type $T = u32;
                $body
            }
            other => Err($crate::errors::Failure::dtype(format!("{other} is not known to this module"))),
        }
    };
}
pub(crate) use with_type;

/// Names that NumPy has for the element types.
const NAMES: [(DType, &str); 4] =
    [(DType::F32, "float32"), (DType::F16, "float16"), (DType::I32, "int32"), (DType::U32, "uint32")];

/// NumPy's name.
pub(crate) fn dtype_name(dtype: DType) -> &'static str {
    NAMES.iter().find(|(of, _)| *of == dtype).map_or("unknown", |(_, name)| *name)
}

fn named(name: &str) -> Option<DType> {
    let found = NAMES.iter().find(|(_, of)| *of == name).map(|(dtype, _)| *dtype);
    found.or_else(|| name.parse().ok())
}

/// An element type: a name, or a type of NumPy.
pub(crate) fn dtype(given: &Bound<'_, PyAny>) -> Result<DType> {
    let name = if let Ok(name) = given.cast::<PyString>() {
        name.to_string()
    } else {
        let name = given.getattr("name").or_else(|_| given.getattr("__name__"));
        name.and_then(|name| name.extract()).or_else(|_| given.str().map(|text| text.to_string()))?
    };
    named(&name).ok_or_else(|| unknown(&name))
}

fn unknown(name: &str) -> Failure {
    Failure::dtype(format!(
        "{name} is no element type of a tensor; take float32, float16, int32 or uint32, which \
         array.astype or the argument dtype convert to"
    ))
}

/// A shape: an extent, or several.
#[derive(FromPyObject)]
pub(crate) enum Extents {
    One(usize),
    Many(Vec<usize>),
}

impl Extents {
    pub(crate) fn shape(&self, op: &'static str) -> Result<Shape> {
        let extents = match self {
            Extents::One(extent) => std::slice::from_ref(extent),
            Extents::Many(extents) => extents,
        };
        Ok(Shape::new(extents).ok_or(tidemill::Error::Rank { op, rank: extents.len() })?)
    }
}

/// Anything that NumPy makes an array of, as its elements in row-major order, with their type and the shape. Python's
/// own numbers have no width: they become float32 and int32. An array of another type is converted only if `dtype` says
/// so.
pub(crate) fn array<'py>(
    data: &Bound<'py, PyAny>,
    to: Option<DType>,
) -> Result<(Bound<'py, PyAny>, DType, Shape)> {
    let numpy = data.py().import("numpy")?;
    let has_type = data.hasattr("dtype")?;
    let mut array = match to {
        Some(to) => numpy.call_method1("asarray", (data, dtype_name(to)))?,
        None => numpy.call_method1("asarray", (data,))?,
    };
    let mut name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    if !has_type
        && let Some((_, narrow)) =
            [("float64", "float32"), ("int64", "int32")].iter().find(|(wide, _)| *wide == name)
    {
        array = numpy.call_method1("asarray", (data, *narrow))?;
        name = (*narrow).to_owned();
    }
    let dtype = named(&name).ok_or_else(|| unknown(&name))?;
    let extents: Vec<usize> = array.getattr("shape")?.extract()?;
    let shape = Extents::Many(extents).shape("upload")?;
    Ok((array.call_method0("ravel")?, dtype, shape))
}

/// An element whose arrays this module reads.
pub(crate) trait ArrayElement: Element {
    /// All elements of an array of this type and of one dimension.
    fn elements(array: &Bound<'_, PyAny>) -> Result<Vec<Self>>;
}

macro_rules! by_buffer {
    ($($type:ty)*) => {$(
        impl ArrayElement for $type {
            fn elements(array: &Bound<'_, PyAny>) -> Result<Vec<$type>> {
                Ok(PyBuffer::get(array)?.to_vec(array.py())?)
            }
        }
    )*};
}

by_buffer! { f32 i32 u32 }

impl ArrayElement for F16 {
    fn elements(array: &Bound<'_, PyAny>) -> Result<Vec<F16>> {
        let bits = PyBuffer::<u16>::get(&array.call_method1("view", ("uint16",))?)?.to_vec(array.py())?;
        Ok(bits.into_iter().map(F16::from_bits).collect())
    }
}

/// A new array of NumPy that owns its elements, which `read` writes without the interpreter.
pub(crate) fn new_array<'py, T: Element + Pod>(
    py: Python<'py>,
    shape: Shape,
    read: impl FnOnce(&mut [T]) -> tidemill::Result<()> + Send,
) -> Result<Bound<'py, PyAny>> {
    let size_bytes = shape.elements() * size_of::<T>();
    let bytes = PyByteArray::new_with(py, size_bytes, |bytes| {
        let elements = bytemuck::try_cast_slice_mut(bytes);
        let elements =
            elements.map_err(|error| Failure::new("InternalError", format!("a bytearray: {error}")))?;
        py.detach(|| read(elements)).map_err(|error| Failure::from(error).into())
    })?;
    let array = py.import("numpy")?.call_method1("frombuffer", (bytes, dtype_name(T::DTYPE)))?;
    Ok(array.call_method1("reshape", (shape.dims(),))?)
}
