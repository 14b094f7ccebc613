//! What operations work on, and the operators of Python.

use std::ops::Range;

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};
use tidemill::args::Scalar;
use tidemill::{DType, F16, Shape};

use crate::array::dtype_name;
use crate::errors::{Failure, Result};
use crate::recording::{Recording, value};
use crate::tensor::Tensor;

/// A tensor, or a value of the same recording.
#[derive(FromPyObject)]
pub(crate) enum Operand<'py> {
    Value(Bound<'py, Value>),
    Tensor(Bound<'py, Tensor>),
}

impl Operand<'_> {
    pub(crate) fn get(&self) -> tidemill::Operand<'_> {
        match self {
            Operand::Value(value) => value.get().value.into(),
            Operand::Tensor(tensor) => (&tensor.get().tensor).into(),
        }
    }
}

/// A number of Python.
#[derive(Clone, Copy, Debug, FromPyObject)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    /// The number as an element of this type.
    pub(crate) fn element<T: Element>(self) -> Result<T> {
        T::of(self)
    }

    pub(crate) fn scalar(self, dtype: DType) -> Result<Scalar> {
        crate::array::with_type!(dtype, T => Ok(self.element::<T>()?.into()))
    }
}

/// An element that a number of Python can be.
pub(crate) trait Element: tidemill::Element {
    fn of(number: Number) -> Result<Self>;
}

impl Element for f32 {
    fn of(number: Number) -> Result<f32> {
        let (float, wide) = match number {
            Number::Int(int) => (int as f32, int as f64),
            Number::Float(float) => (float as f32, float),
        };
        if float.is_infinite() && wide.is_finite() {
            return Err(Failure::parameter(format!("the number is {wide:e}, which no float32 can hold")));
        }
        Ok(float)
    }
}

impl Element for F16 {
    fn of(number: Number) -> Result<F16> {
        f32::of(number).map(F16::from_f32)
    }
}

macro_rules! integers {
    ($($type:ty: $name:literal;)*) => {$(
        impl Element for $type {
            fn of(number: Number) -> Result<$type> {
                let found = match number {
                    Number::Int(int) => <$type>::try_from(int).ok(),
                    Number::Float(_) => None,
                };
                found.ok_or_else(|| {
                    Failure::parameter(format!("the number is {number}, which is no {}", $name))
                })
            }
        }
    )*};
}

integers! { i32: "int32"; u32: "uint32"; }

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Int(int) => int.fmt(f),
            Number::Float(float) => write!(f, "{float:?}"),
        }
    }
}

/// An operand of an operation that also takes numbers, which get the type of the other operand.
#[derive(FromPyObject)]
pub(crate) enum Term<'py> {
    #[pyo3(transparent)]
    Operand(Operand<'py>),
    #[pyo3(transparent)]
    Number(Number),
}

impl Term<'_> {
    fn dtype(&self, r: &tidemill::Recording) -> Result<Option<DType>> {
        match self {
            Term::Operand(operand) => Ok(Some(r.dtype(operand.get())?)),
            Term::Number(_) => Ok(None),
        }
    }

    pub(crate) fn of(&self, dtype: DType) -> Result<tidemill::Operand<'_>> {
        match self {
            Term::Operand(operand) => Ok(operand.get()),
            Term::Number(number) => Ok(tidemill::Operand::Scalar(number.scalar(dtype)?)),
        }
    }
}

/// Operands of which not all are numbers.
pub(crate) fn terms<'a, const N: usize>(
    r: &tidemill::Recording,
    op: &str,
    terms: [&'a Term<'_>; N],
) -> Result<[tidemill::Operand<'a>; N]> {
    let mut dtype = None;
    for term in terms {
        dtype = dtype.or(term.dtype(r)?);
    }
    let Some(dtype) = dtype else {
        return Err(Failure::dtype(format!(
            "{op}: all operands are numbers; one must be a tensor or a value"
        )));
    };
    let mut operands = [tidemill::Operand::Scalar(Scalar::from(0.0f32)); N];
    for (operand, term) in operands.iter_mut().zip(terms) {
        *operand = term.of(dtype)?;
    }
    Ok(operands)
}

/// A box of a tensor as Python writes it: `x[1:3, ::2]`, `x[..., 0:1]`.
pub(crate) struct Slices {
    pub(crate) ranges: Vec<Range<usize>>,
    pub(crate) steps: Vec<isize>,
}

impl Slices {
    /// The slices of an index within a shape; dimensions left out are taken whole.
    pub(crate) fn new(op: &'static str, index: &Bound<'_, PyAny>, shape: Shape) -> Result<Slices> {
        let index = match index.cast::<PyTuple>() {
            Ok(several) => several.clone(),
            Err(_) => PyTuple::new(index.py(), [index])?,
        };
        let mut parts: Vec<_> = index.iter().collect();
        if parts.len() > shape.rank() + 1 {
            return Err(tidemill::Error::Rank { op, rank: parts.len() }.into());
        }
        let whole = || PySlice::full(index.py()).into_any();
        let rest = parts.iter().position(|part| part.is_instance_of::<PyEllipsis>());
        let at = rest.unwrap_or(parts.len());
        if rest.is_some() {
            parts.remove(at);
        }
        while parts.len() < shape.rank() {
            parts.insert(at, whole());
        }
        if parts.len() > shape.rank() {
            let message = format!("{op}: {} slices for a tensor {shape}", parts.len());
            return Err(Failure::new("ShapeError", message));
        }
        let mut found = Slices { ranges: Vec::new(), steps: Vec::new() };
        for (part, extent) in parts.iter().zip(shape.dims()) {
            let Ok(slice) = part.cast::<PySlice>() else {
                let message = format!("{op}: {part} is no slice; one element is a slice of one: x[3:4]");
                return Err(PyTypeError::new_err(message).into());
            };
            let slice = slice.indices(*extent as isize)?;
            // A range that is empty may lie the wrong way round.
            let (start, end) = if slice.step > 0 {
                (slice.start, slice.stop.max(slice.start))
            } else {
                (slice.stop + 1, slice.start.max(slice.stop) + 1)
            };
            found.ranges.push(start as usize..end as usize);
            found.steps.push(slice.step);
        }
        Ok(found)
    }

    pub(crate) fn check_without_steps(&self, op: &str) -> Result<()> {
        match self.steps.iter().find(|step| **step != 1) {
            Some(step) => Err(Failure::parameter(format!("{op}: step {step}; slices here go by steps of 1"))),
            None => Ok(()),
        }
    }
}

/// What an operation gives: no memory yet. `recording.keep` makes it a tensor. Operators record operations on it, as
/// NumPy has them; one side may be a tensor or a number.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) recording: Py<Recording>,
    pub(crate) value: tidemill::Value,
}

impl Value {
    /// Records an operation of two operands, this one on the left or on the right.
    fn with(
        &self,
        py: Python<'_>,
        other: &Term<'_>,
        is_right: bool,
        record: impl FnOnce(
            &tidemill::Recording,
            tidemill::Operand<'_>,
            tidemill::Operand<'_>,
        ) -> tidemill::Result<tidemill::Value>,
    ) -> Result<Value> {
        value(self.recording.bind(py), |r| {
            let other = other.of(r.dtype(self.value)?)?;
            let this = tidemill::Operand::from(self.value);
            let (left, right) = if is_right { (other, this) } else { (this, other) };
            Ok(record(r, left, right)?)
        })
    }
}

macro_rules! operators {
    ($($left:ident, $right:ident: $op:ident;)*) => {
        #[pymethods]
        impl Value {$(
            fn $left(&self, py: Python<'_>, other: Term<'_>) -> Result<Value> {
                self.with(py, &other, false, |r, a, b| r.$op(a, b))
            }

            fn $right(&self, py: Python<'_>, other: Term<'_>) -> Result<Value> {
                self.with(py, &other, true, |r, a, b| r.$op(a, b))
            }
        )*}
    };
}

operators! {
    __add__, __radd__: add;
    __sub__, __rsub__: sub;
    __mul__, __rmul__: mul;
    __truediv__, __rtruediv__: div;
    // With the sign of the divisor, as in Python.
    __mod__, __rmod__: modulo;
    __matmul__, __rmatmul__: matmul;
    // Of comparisons' results.
    __and__, __rand__: logical_and;
    __or__, __ror__: logical_or;
    __xor__, __rxor__: logical_xor;
}

#[pymethods]
impl Value {
    fn __pow__(&self, py: Python<'_>, other: Term<'_>, modulo: Option<Term<'_>>) -> Result<Value> {
        no_modulo(modulo)?;
        self.with(py, &other, false, |r, a, b| r.pow(a, b))
    }

    fn __rpow__(&self, py: Python<'_>, other: Term<'_>, modulo: Option<Term<'_>>) -> Result<Value> {
        no_modulo(modulo)?;
        self.with(py, &other, true, |r, a, b| r.pow(a, b))
    }

    fn __neg__(&self, py: Python<'_>) -> Result<Value> {
        value(self.recording.bind(py), |r| Ok(r.neg(self.value)?))
    }

    fn __abs__(&self, py: Python<'_>) -> Result<Value> {
        value(self.recording.bind(py), |r| Ok(r.abs(self.value)?))
    }

    fn __invert__(&self, py: Python<'_>) -> Result<Value> {
        value(self.recording.bind(py), |r| Ok(r.logical_not(self.value)?))
    }

    fn __richcmp__(&self, py: Python<'_>, other: Term<'_>, how: CompareOp) -> Result<Value> {
        self.with(py, &other, false, |r, a, b| match how {
            CompareOp::Eq => r.eq(a, b),
            CompareOp::Ne => r.ne(a, b),
            CompareOp::Lt => r.lt(a, b),
            CompareOp::Le => r.le(a, b),
            CompareOp::Gt => r.gt(a, b),
            CompareOp::Ge => r.ge(a, b),
        })
    }

    /// Slices, as of NumPy's arrays: `x[1:3, ::-1]`.
    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> Result<Value> {
        let recording = self.recording.bind(py);
        let shape = recording.get().with(|r| Ok(r.shape(self.value)?))?;
        let part = Slices::new("slice", index, shape)?;
        value(recording, |r| Ok(r.slice_step(self.value, part.ranges.as_slice(), &part.steps)?))
    }

    /// A value has no truth: it has no contents before its recording was submitted.
    fn __bool__(&self) -> Result<bool> {
        let message = "a value has no contents yet: keep it, and read the tensor after the recording";
        Err(Failure::dtype(message.to_owned()))
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        let shape = self.recording.get().with(|r| Ok(r.shape(self.value)?))?;
        Ok(PyTuple::new(py, shape.dims())?)
    }

    /// NumPy's name of the element type.
    #[getter]
    fn dtype(&self) -> Result<&'static str> {
        self.recording.get().with(|r| Ok(dtype_name(r.dtype(self.value)?)))
    }

    /// The same with its last two dimensions exchanged.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> Result<Value> {
        value(self.recording.bind(py), |r| Ok(r.transpose(self.value)?))
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        Ok(format!("Value(shape={}, dtype={})", self.shape(py)?.repr()?, self.dtype()?))
    }
}

fn no_modulo(modulo: Option<Term<'_>>) -> Result<()> {
    match modulo {
        Some(_) => Err(Failure::parameter("pow: there is no third operand".to_owned())),
        None => Ok(()),
    }
}
