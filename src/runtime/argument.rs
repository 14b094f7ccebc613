//! Arguments: numbers that a plan is given from one submission to the next.
//!
//! An argument is a value of one element in a block of its own. Operations read it as they read a tensor, so that
//! kernels, hazards and encoded copies know nothing of it. The host never writes the block: a submission that changes a
//! value begins with a fill of one word, in the queue's order. So any number of submissions may be in flight, each with
//! its own values, over one block and one encoding.

use std::fmt;
use std::marker::PhantomData;

use crate::error::{ArgumentError, Result};
use crate::ir::value::{TensorVersion, ValueId};
use crate::runtime::operand::{IntoOperand, Operand, Value, sealed};
use crate::shape::DType;

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

impl<T> Argument<T> {
    pub(super) fn of(value: Value) -> Argument<T> {
        Argument { value, element: PhantomData }
    }
}

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

impl<T> sealed::Sealed for Argument<T> {}

impl<'a, T> IntoOperand<'a> for Argument<T> {}

impl<T> sealed::Sealed for &Argument<T> {}

impl<'a, T> IntoOperand<'a> for &Argument<T> {}

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
pub(super) fn bits_of(dtype: DType, value: f64) -> Option<u32> {
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
