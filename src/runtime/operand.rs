//! What operations work on.

use crate::ir::value::ValueId;
use crate::runtime::tensor::Tensor;
use crate::shape::{Bf16, Bool, DType, Element, F16};

/// What an op inside a recording returns: a promise without memory of its own, to be an operand of further ops.
/// [`Recording::keep`](crate::Recording::keep) makes it a [`Tensor`] that outlives the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub(super) recording: u64,
    pub(super) id: ValueId,
}

/// What an op works on: a tensor from outside, a value of the same recording, or a scalar.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A value.
    Value(Value),
    /// A number, which counts as a tensor of shape `[]`.
    Scalar(Scalar),
}

/// A number that is an operand. It has the type of the Rust number: `1.0` is f32, `1` is i32, `1u32` is u32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub(crate) dtype: DType,
    /// The bits that kernels compute with: of packed elements, those of the widened one.
    pub(crate) bits: u32,
    /// What a fill writes.
    pub(crate) word: u32,
}

impl<T: Element> From<T> for Scalar {
    fn from(number: T) -> Scalar {
        Scalar { dtype: T::DTYPE, bits: number.scalar_bits(), word: number.fill_word() }
    }
}

/// What operations take: `&Tensor`, [`Value`], `&Value`, [`Operand`], and numbers of any [element type](Element).
///
/// A number counts as a tensor of shape `[]`, which broadcasts to any other. In operations of two operands it travels
/// with the dispatch and takes no memory. It must have the other operand's element type; an f32 may stand beside f16
/// and bf16.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 4.0], [3])?;
/// let y = gpu.run(|r| r.sub(1.0, r.div(2.0, &x)?))?;
/// assert_eq!(y.read::<f32>()?, [-1.0, 0.0, 0.5]);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand of a recording's operations",
    label = "expected `&Tensor`, `Value` or a number",
    note = "a tensor is given by reference: `&tensor`",
    note = "write `x as f32` for an `f64`, `x as i32` or `x as u32` for `i64`, `usize` and other wide integers, \
            `Bool::from(x)` for a `bool`",
    note = "slices and vectors go to the device first: `gpu.upload(&data, shape)?`"
)]
pub trait IntoOperand<'a>: Into<Operand<'a>> + sealed::Sealed {}

pub(super) mod sealed {
    pub trait Sealed {}
}

macro_rules! operands {
    ($($type:ty: $self:ident => $operand:expr;)*) => {$(
        impl sealed::Sealed for $type {}

        impl<'a> From<$type> for Operand<'a> {
            fn from($self: $type) -> Operand<'a> {
                $operand
            }
        }

        impl<'a> IntoOperand<'a> for $type {}
    )*};
}

operands! {
    Value: value => Operand::Value(value);
    &Value: value => Operand::Value(*value);
    f32: number => Operand::Scalar(number.into());
    i32: number => Operand::Scalar(number.into());
    u32: number => Operand::Scalar(number.into());
    F16: number => Operand::Scalar(number.into());
    Bf16: number => Operand::Scalar(number.into());
    i16: number => Operand::Scalar(number.into());
    i8: number => Operand::Scalar(number.into());
    u16: number => Operand::Scalar(number.into());
    u8: number => Operand::Scalar(number.into());
    Bool: number => Operand::Scalar(number.into());
}

#[cfg(feature = "half")]
operands! {
    half_float::f16: number => Operand::Scalar(number.into());
    half_float::bf16: number => Operand::Scalar(number.into());
}

impl sealed::Sealed for &Tensor {}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(tensor)
    }
}

impl<'a> IntoOperand<'a> for &'a Tensor {}

impl sealed::Sealed for Operand<'_> {}

impl<'a> IntoOperand<'a> for Operand<'a> {}

impl sealed::Sealed for &Operand<'_> {}

impl<'a> From<&Operand<'a>> for Operand<'a> {
    fn from(operand: &Operand<'a>) -> Operand<'a> {
        *operand
    }
}

impl<'a> IntoOperand<'a> for &Operand<'a> {}
