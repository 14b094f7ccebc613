//! Arguments: numbers that a plan is given from one submission to the next.
//!
//! An argument is a value of one element in a block of its own. Operations read it as they read a tensor, so that
//! kernels, hazards and encoded copies know nothing of it. The host never writes the block: a submission that changes a
//! value begins with a fill of one word, in the queue's order. So any number of submissions may be in flight, each with
//! its own values, over one block and one encoding.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use crate::error::{ArgumentError, Result};
use crate::ir::value::{Origin, TensorVersion, ValueId};
use crate::runtime::operand::{Operand, Value};
use crate::runtime::recording::{Recording, State};
use crate::runtime::tensor::{Contents, Storage};
use crate::shape::{DType, Element, Shape};
use crate::vk::buffer::MemoryKind;
use crate::vk::process;

/// A number that a [`Plan`](crate::Plan) gets by [`set`](crate::Plan::set), declared by
/// [`Recording::argument`](crate::Recording::argument). It is an operand of shape `[]`, as a number is.
pub struct Argument<T> {
    pub(crate) value: Value,
    element: PhantomData<fn(T)>,
}

impl<T> Clone for Argument<T> {
    fn clone(&self) -> Argument<T> {
        *self
    }
}

impl<T> Copy for Argument<T> {}

impl<T> fmt::Debug for Argument<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Argument").field(&self.value).finish()
    }
}

impl<T> From<Argument<T>> for Value {
    fn from(argument: Argument<T>) -> Value {
        argument.value
    }
}

impl<T> From<Argument<T>> for Operand<'_> {
    fn from(argument: Argument<T>) -> Self {
        Operand::Value(argument.value)
    }
}

impl<T> From<&Argument<T>> for Operand<'_> {
    fn from(argument: &Argument<T>) -> Self {
        Operand::Value(argument.value)
    }
}

/// What was declared of an argument.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// The value that operations read, and the tensor that it is.
    pub(crate) value: ValueId,
    pub(crate) tensor: TensorVersion,
    /// The value as users hold it.
    pub(crate) handle: Value,
}

impl Recording {
    /// Declares a number that the recording's [`Plan`](crate::Plan) is given by [`set`](crate::Plan::set), and that may
    /// be another one for each submission: nothing is recorded or encoded again. The range says what it may be; both
    /// ends belong to it, and for f32 they may be infinite.
    ///
    /// It is an operand of shape `[]`, which broadcasts to any other: a scalar of elementwise operations, where a
    /// [`slice_at`](Recording::slice_at) or an [`update_at`](Recording::update_at) begins, the length of a
    /// [`mask_from`](Recording::mask_from), an input of a kernel of your own. The name is for errors and for
    /// [`explain`](Recording::explain).
    ///
    /// Only a plan has arguments: [`end_recording`](Recording::end_recording) refuses a recording that declared one.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let cache = gpu.upload(&[0.0f32; 8], [4, 2])?;
    /// let token = gpu.upload(&[1.0f32, 2.0], [1, 2])?;
    /// let r = gpu.begin_recording()?;
    /// let (row, factor) = (r.argument("row", 0..=3u32)?, r.argument("factor", -10.0..=10.0f32)?);
    /// r.update_at(&cache, 0, row, r.mul(&token, factor)?)?;
    /// let mut plan = r.into_plan()?;
    /// for (i, x) in [(2, 1.0), (0, 3.0)] {
    ///     plan.set(row, i)?;
    ///     plan.set(factor, x)?;
    ///     let _ = plan.submit()?;
    /// }
    /// assert!(plan.set(row, 4).is_err());
    /// assert_eq!(cache.read::<f32>()?, [3.0, 6.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ArgumentError::Twice`] if there is one of that name; [`ArgumentError::EmptyRange`] if no number lies in the
    /// range; [`ArgumentError::Type`] if it is of f16; errors of memory.
    pub fn argument<T: Element + Into<f64>>(
        &self,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<Argument<T>> {
        let (least, most): (f64, f64) = ((*range.start()).into(), (*range.end()).into());
        let value = self.argument_of(name, T::DTYPE, least..=most)?;
        Ok(Argument { value, element: PhantomData })
    }

    /// The same, of a type that is known only when the program runs. [`Plan::set_named`](crate::Plan::set_named) sets
    /// it.
    ///
    /// # Errors
    ///
    /// As [`argument`](Recording::argument); [`ArgumentError::NoSuchNumber`] if an end of the range is no number of the
    /// type.
    pub fn argument_of(&self, name: &str, dtype: DType, range: RangeInclusive<f64>) -> Result<Value> {
        process::check()?;
        let (core, name) = (self.shared_core(), name.to_owned());
        let (least, most) = range.into_inner();
        if dtype == DType::F16 {
            return Err(ArgumentError::Type { name, got: dtype }.into());
        }
        // NaN is in no range, and not at its end.
        if least.partial_cmp(&most).is_none_or(Ordering::is_gt) {
            return Err(ArgumentError::EmptyRange { name, least, most }.into());
        }
        if let Some(value) = [least, most].into_iter().find(|end| bits_of(dtype, *end).is_none()) {
            return Err(ArgumentError::NoSuchNumber { name, dtype, value }.into());
        }
        if self.state().arguments.iter().any(|known| known.name == name) {
            return Err(ArgumentError::Twice { name }.into());
        }
        let shape = Shape::default();
        let lease = core.acquire(MemoryKind::Device, dtype.storage_bytes(1))?;
        let storage = Storage::new(core, dtype, Some(lease.clone()), Contents::Host);
        let State { graph, leases, tensors, arguments, .. } = &mut *self.edit();
        leases.push(lease);
        tensors.push((storage, shape));
        let tensor = (leases.len() - 1) as TensorVersion;
        let value = graph.add_value(shape, dtype, Origin::Tensor(tensor));
        let handle = self.handle(value);
        arguments.push(Declared { name, dtype, least, most, value, tensor, handle });
        Ok(handle)
    }

    /// Refuses arguments where nothing can set them.
    pub(crate) fn refuse_arguments(&self, op: &'static str) -> Result<()> {
        match self.state().arguments.first() {
            Some(first) => Err(ArgumentError::NoPlan { op, name: first.name.clone() }.into()),
            None => Ok(()),
        }
    }

    /// What was declared of a value, if it is an argument.
    pub(crate) fn declared(&self, id: ValueId) -> Option<Declared> {
        let root = self.graph().root(id);
        self.state().arguments.iter().find(|argument| argument.value == root).cloned()
    }
}

impl Declared {
    /// A number's bits, if it is of the range.
    pub(crate) fn bits_of(&self, value: f64) -> Result<u32> {
        let Declared { dtype, least, most, .. } = *self;
        let name = || self.name.clone();
        if !(least..=most).contains(&value) {
            return Err(ArgumentError::OutOfRange { name: name(), value, least, most }.into());
        }
        bits_of(dtype, value).ok_or_else(|| ArgumentError::NoSuchNumber { name: name(), dtype, value }.into())
    }
}

/// The bits of a number as that type, if it has it; a float that lies between two is rounded.
fn bits_of(dtype: DType, value: f64) -> Option<u32> {
    let whole = |least: f64, most: f64| value.fract() == 0.0 && (least..=most).contains(&value);
    match dtype {
        DType::I32 => whole(i32::MIN.into(), i32::MAX.into()).then(|| (value as i32).cast_unsigned()),
        DType::U32 => whole(0.0, u32::MAX.into()).then_some(value as u32),
        DType::F32 => {
            let rounded = value as f32;
            (rounded.is_finite() == value.is_finite()).then_some(rounded.to_bits())
        }
        // No argument is of another type.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_bits_of_their_type_alone() {
        assert_eq!(bits_of(DType::U32, 4_294_967_295.0), Some(u32::MAX));
        assert_eq!(bits_of(DType::I32, -1.0), Some(u32::MAX));
        assert_eq!(bits_of(DType::F32, -0.5), Some((-0.5f32).to_bits()));
        assert_eq!(bits_of(DType::F32, f64::INFINITY), Some(f32::INFINITY.to_bits()));
        for (dtype, value) in [
            (DType::U32, -1.0),
            (DType::U32, 4_294_967_296.0),
            (DType::U32, 0.5),
            (DType::I32, 2_147_483_648.0),
            (DType::I32, f64::NAN),
            (DType::F32, 1e300),
        ] {
            assert_eq!(bits_of(dtype, value), None, "{dtype} {value}");
        }
    }
}
