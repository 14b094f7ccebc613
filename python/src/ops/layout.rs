//! Shapes, parts and copies; what makes values from nothing; updates of tensors.

use pyo3::prelude::*;

use super::operations;
use crate::array::{Extents, dtype, with_type};
use crate::errors::Result;
use crate::operand::{Number, Operand, Slices, Term, Value};
use crate::recording::{Recording, value};
use crate::tensor::Tensor;

operations! {
    /// With the last two dimensions exchanged.
    transpose(x; );
    /// A copy.
    copy(x; );
    /// Rows of a table by their numbers.
    gather_rows(table, rows; );
    /// Dimensions in another order.
    permute(x; order: Vec<usize>);
}

#[pymethods]
impl Recording {
    /// Another shape of as many elements.
    fn reshape(slf: &Bound<'_, Self>, x: Operand<'_>, shape: Extents) -> Result<Value> {
        let shape = shape.shape("reshape")?;
        value(slf, |r| Ok(r.reshape(x.get(), shape)?))
    }

    /// Repeated to a larger shape, by NumPy's rules.
    fn broadcast_to(slf: &Bound<'_, Self>, x: Operand<'_>, shape: Extents) -> Result<Value> {
        let shape = shape.shape("broadcast_to")?;
        value(slf, |r| Ok(r.broadcast_to(x.get(), shape)?))
    }

    /// A box by slices, as `numpy.s_[1:3, ::2]` has them; of a value also `x[1:3, ::2]`.
    fn slice(slf: &Bound<'_, Self>, x: Operand<'_>, index: &Bound<'_, PyAny>) -> Result<Value> {
        let shape = slf.get().with(|r| Ok(r.shape(x.get())?))?;
        let part = Slices::new("slice", index, shape)?;
        value(slf, |r| Ok(r.slice_step(x.get(), part.ranges.as_slice(), &part.steps)?))
    }

    /// One after the other along an axis.
    #[pyo3(signature = (operands, axis=0))]
    fn concat(slf: &Bound<'_, Self>, operands: Vec<Operand<'_>>, axis: isize) -> Result<Value> {
        value(slf, |r| Ok(r.concat(operands.iter().map(Operand::get), axis)?))
    }

    /// One after the other along a new axis.
    #[pyo3(signature = (operands, axis=0))]
    fn stack(slf: &Bound<'_, Self>, operands: Vec<Operand<'_>>, axis: isize) -> Result<Value> {
        value(slf, |r| Ok(r.stack(operands.iter().map(Operand::get), axis)?))
    }

    /// Elements in front of and behind each dimension: a pair for each.
    #[pyo3(signature = (x, pads, element=None))]
    fn pad(
        slf: &Bound<'_, Self>,
        x: Operand<'_>,
        pads: Vec<(usize, usize)>,
        element: Option<Number>,
    ) -> Result<Value> {
        let element = element.unwrap_or(Number::Int(0));
        value(
            slf,
            |r| with_type!(r.dtype(x.get())?, T => Ok(r.pad(x.get(), &pads, element.element::<T>()?)?)),
        )
    }

    /// One number everywhere.
    #[pyo3(signature = (shape, element, dtype=None))]
    fn fill(
        slf: &Bound<'_, Self>,
        shape: Extents,
        element: Number,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> Result<Value> {
        let shape = shape.shape("fill")?;
        let dtype = dtype.map(self::dtype).transpose()?.unwrap_or(tidemill::DType::F32);
        value(slf, |r| with_type!(dtype, T => Ok(r.fill(shape, element.element::<T>()?)?)))
    }

    /// 0, 1, 2, …
    #[pyo3(signature = (shape, dtype=None))]
    fn iota(slf: &Bound<'_, Self>, shape: Extents, dtype: Option<&Bound<'_, PyAny>>) -> Result<Value> {
        let shape = shape.shape("iota")?;
        let dtype = dtype.map(self::dtype).transpose()?.unwrap_or(tidemill::DType::F32);
        value(slf, |r| with_type!(dtype, T => Ok(r.iota::<T>(shape)?)))
    }

    /// Floats from 0 up to 1; the same for the same seed, on every device.
    fn random_uniform(slf: &Bound<'_, Self>, shape: Extents, seed: u64) -> Result<Value> {
        let shape = shape.shape("random_uniform")?;
        value(slf, |r| Ok(r.random_uniform(shape, seed)?))
    }

    /// Floats with mean 0 and variance 1; the same for the same seed.
    fn random_normal(slf: &Bound<'_, Self>, shape: Extents, seed: u64) -> Result<Value> {
        let shape = shape.shape("random_normal")?;
        value(slf, |r| Ok(r.random_normal(shape, seed)?))
    }

    /// Writes a value to a box of an existing tensor, in place: `r.update(cache, numpy.s_[3:4], x)`. Slices without
    /// steps.
    fn update(&self, tensor: &Tensor, index: &Bound<'_, PyAny>, x: Term<'_>) -> Result<()> {
        let tensor = &tensor.tensor;
        let part = Slices::new("update", index, tensor.shape())?;
        part.check_without_steps("update")?;
        self.with(|r| Ok(r.update(tensor, part.ranges.as_slice(), x.of(tensor.dtype())?)?))
    }

    /// Gives an existing tensor a new value.
    fn assign(&self, tensor: &Tensor, x: Term<'_>) -> Result<()> {
        let tensor = &tensor.tensor;
        self.with(|r| Ok(r.assign(tensor, x.of(tensor.dtype())?)?))
    }
}
