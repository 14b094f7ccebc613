//! Comparisons, and the choice between two operands.

use super::elementwise::{Arg, Codes, not_nan, scalar_bits};
use super::width::{check_float, check_mask};
use crate::error::{Error, Result};
use crate::ir::elementwise::OpCode;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::{DType, Element};

const EQ: Codes = Codes::all(OpCode::EqF32, OpCode::EqInt, OpCode::EqInt).and_truths(OpCode::EqInt);
const NE: Codes = Codes::all(OpCode::NeF32, OpCode::NeInt, OpCode::NeInt).and_truths(OpCode::NeInt);
const LT: Codes = Codes::all(OpCode::LtF32, OpCode::LtI32, OpCode::LtU32);
const LE: Codes = Codes::all(OpCode::LeF32, OpCode::LeI32, OpCode::LeU32);

/// What comparisons have in common stands once. `>` and `>=` are `<` and `<=` with the sides swapped.
macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident, $with_scalar:ident: $codes:expr, $swapped:expr;)*) => {
        /// # Comparisons
        ///
        /// The result is u32: 1 where it holds, 0 elsewhere. Shapes broadcast as in NumPy. Zeros of either sign are
        /// equal, and every comparison with NaN is false except [`ne`](Recording::ne). Exact, denormals included, on
        /// every device: they go by the bits.
        impl Recording {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shapes`] with the extents that disagree, [`Error::Type`] if the operands' types differ.
            pub fn $name<'a>(
                &self,
                lhs: impl IntoOperand<'a>,
                rhs: impl IntoOperand<'a>,
            ) -> Result<Value> {
                self.binary(stringify!($name), $codes, lhs.into(), rhs.into(), $swapped, Some(DType::U32))
            }

            #[doc = concat!("As [`", stringify!($name), "`](Recording::", stringify!($name), "), with a scalar on the")]
            /// right, which must not be NaN.
            ///
            /// # Errors
            ///
            /// [`Error::Type`] if the operand and the scalar are not of one type, [`Error::Parameter`] if the scalar
            /// is NaN.
            pub fn $with_scalar<'a, T: Element>(
                &self,
                operand: impl IntoOperand<'a>,
                scalar: T,
            ) -> Result<Value> {
                let op = stringify!($with_scalar);
                if let (_, Some(float)) = scalar_bits(scalar) {
                    not_nan(op, "scalar", float)?;
                }
                self.with_scalar(op, $codes, operand.into(), scalar, $swapped, Some(DType::U32))
            }
        )*}
    };
}

comparisons! {
    /// 1 where `lhs == rhs`; f32, i32, u32.
    eq, eq_scalar: EQ, false;
    /// 1 where `lhs != rhs`; f32, i32, u32.
    ne, ne_scalar: NE, false;
    /// 1 where `lhs < rhs`; f32, i32, u32.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, f32::NAN], [3])?;
    /// let b = gpu.upload(&[2.0f32, 2.0, 0.0], [3])?;
    /// assert_eq!(gpu.run(|r| r.lt(&a, &b))?.read::<u32>()?, [1, 0, 0]);
    /// # Ok(()) }
    /// ```
    lt, lt_scalar: LT, false;
    /// 1 where `lhs <= rhs`; f32, i32, u32.
    le, le_scalar: LE, false;
    /// 1 where `lhs > rhs`; f32, i32, u32.
    gt, gt_scalar: LT, true;
    /// 1 where `lhs >= rhs`; f32, i32, u32.
    ge, ge_scalar: LE, true;
}

/// What operations on truth values have in common stands once.
macro_rules! logical {
    ($($(#[$doc:meta])* $name:ident: $code:expr;)*) => {
        /// # Logic
        ///
        /// Operands are truth values: u32 as comparisons give them, or bool. 0 is false, everything else is true. The
        /// result is 1 or 0, of the operands' type. Shapes broadcast as in NumPy. Exact, on every device.
        impl Recording {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shapes`] with the extents that disagree, [`Error::Type`] if an operand is neither u32 nor bool,
            /// or the types differ.
            pub fn $name<'a>(
                &self,
                lhs: impl IntoOperand<'a>,
                rhs: impl IntoOperand<'a>,
            ) -> Result<Value> {
                self.binary(stringify!($name), Codes::truths($code), lhs.into(), rhs.into(), false, None)
            }
        )*}
    };
}

logical! {
    /// 1 where both are true.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-1.0f32, 0.5, 2.0], [3])?;
    /// let inside = gpu.run(|r| {
    ///     let (above, below) = (r.gt_scalar(&x, 0.0)?, r.lt_scalar(&x, 1.0)?);
    ///     r.logical_and(above, below)
    /// })?;
    /// assert_eq!(inside.read::<u32>()?, [0, 1, 0]);
    /// # Ok(()) }
    /// ```
    logical_and: OpCode::LogicalAnd;
    /// 1 where at least one is true.
    logical_or: OpCode::LogicalOr;
    /// 1 where one is true and the other is not.
    logical_xor: OpCode::LogicalXor;
}

impl Recording {
    /// 1 where the operand, a truth value as comparisons give it, is 0; 0 elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if the operand is neither u32 nor bool.
    pub fn logical_not<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Value> {
        let op = "logical_not";
        let id = self.resolve(op, operand)?;
        let (_, dtype) = self.kind(id);
        check_mask(op, "operand", dtype)?;
        self.elementwise(op, OpCode::EqInt, &[Arg::Value(id), Arg::Scalar(0)], dtype)
    }

    /// 1 where the operand is NaN; f32. The result is u32, as that of comparisons. Exact, on every device.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if the operand is not f32.
    pub fn is_nan<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Value> {
        self.of_floats("is_nan", OpCode::IsNanF32, operand.into())
    }

    /// 1 where the operand is infinite, of either sign; f32. The result is u32, as that of comparisons. Exact, on every
    /// device.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if the operand is not f32.
    pub fn is_inf<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Value> {
        self.of_floats("is_inf", OpCode::IsInfF32, operand.into())
    }

    /// A truth value for each float.
    fn of_floats(&self, op: &'static str, code: OpCode, operand: Operand<'_>) -> Result<Value> {
        let id = self.resolve(op, operand)?;
        check_float(op, "operand", self.kind(id).1)?;
        self.elementwise(op, code, &[Arg::Value(id)], DType::U32)
    }

    /// `a` where the mask is not 0, `b` elsewhere; all three broadcast. The mask is u32, as comparisons give it, or
    /// bool; `a` and `b` are of any one type. Bits pass unchanged, on every device; only f16's NaNs all become the same
    /// one.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-1.0f32, 2.0, -3.0], [3])?;
    /// let y = gpu.run(|r| {
    ///     let negative = r.lt_scalar(&x, 0.0)?;
    ///     let doubled = r.scale(&x, 2.0)?;
    ///     r.select(negative, doubled, &x)
    /// })?;
    /// assert_eq!(y.read::<f32>()?, [-2.0, 2.0, -6.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] with the extents that disagree, [`Error::Type`] if the mask is neither u32 nor bool, or the
    /// types of `a` and `b` differ.
    pub fn select<'a>(
        &self,
        mask: impl IntoOperand<'a>,
        a: impl IntoOperand<'a>,
        b: impl IntoOperand<'a>,
    ) -> Result<Value> {
        let op = "select";
        let (mask, a, b) = (self.resolve(op, mask)?, self.resolve(op, a)?, self.resolve(op, b)?);
        let ((_, got), (_, expected), (_, other)) = (self.kind(mask), self.kind(a), self.kind(b));
        check_mask(op, "mask", got)?;
        if expected != other {
            return Err(Error::of_type(op, "operand b", &[expected], other));
        }
        self.elementwise(op, OpCode::Select, &[Arg::Value(mask), Arg::Value(a), Arg::Value(b)], expected)
    }
}
