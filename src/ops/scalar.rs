//! Operations of an operand and a scalar. The scalar travels with the dispatch: it costs no tensor, and another one
//! no new pipeline.

use super::elementwise::{Codes, finite, not_nan, scalar_bits};
use crate::error::Result;
use crate::ir::elementwise::OpCode;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Recording, Value};
use crate::shape::Element;

/// Which scalars an operation takes, if they are floats.
type Rule = fn(&'static str, &'static str, f32) -> Result<()>;

/// What these operations have in common stands once.
macro_rules! scalar {
    ($($(#[$doc:meta])* $name:ident($parameter:ident): $codes:expr, $rule:expr;)*) => {
        /// # Operations of an operand and a scalar
        ///
        /// The scalar has the operand's element type; one for f16 may be an f32.
        impl Recording {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Type`](crate::Error::Type) if the operand and the scalar are not of one type that the
            /// operation has, [`Error::Parameter`](crate::Error::Parameter) if the scalar is not allowed.
            pub fn $name<'a, T: Element>(
                &self,
                operand: impl IntoOperand<'a>,
                $parameter: T,
            ) -> Result<Value> {
                let (op, rule): (_, Rule) = (stringify!($name), $rule);
                if let (_, Some(float)) = scalar_bits($parameter) {
                    rule(op, stringify!($parameter), float)?;
                }
                self.with_scalar(op, $codes, operand.into(), $parameter, false, None)
            }
        )*}
    };
}

scalar! {
    /// `operand * factor`; f32, i32, u32. A float must be finite. Otherwise as [`mul`](Recording::mul).
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3])?;
    /// let y = gpu.run(|r| {
    ///     let doubled = r.scale(&x, 2.0)?;
    ///     r.add_scalar(doubled, 0.5)
    /// })?;
    /// assert_eq!(y.read::<f32>()?, [2.5, 4.5, 6.5]);
    /// # Ok(()) }
    /// ```
    scale(factor): Codes::all(OpCode::MulF32, OpCode::MulInt, OpCode::MulInt), finite;

    /// `operand + scalar`; f32, i32, u32. A float must be finite. Otherwise as [`add`](Recording::add).
    add_scalar(scalar): Codes::all(OpCode::AddF32, OpCode::AddInt, OpCode::AddInt), finite;

    /// `operand - scalar`; f32, i32, u32. A float must be finite. Otherwise as [`sub`](Recording::sub).
    sub_scalar(scalar): Codes::all(OpCode::SubF32, OpCode::SubInt, OpCode::SubInt), finite;

    /// `operand / scalar`; f32, i32, u32. A float must be finite. Otherwise as [`div`](Recording::div).
    div_scalar(scalar): Codes::all(OpCode::DivF32, OpCode::DivI32, OpCode::DivU32), finite;

    /// `operand` to the power of `exponent`; f32. The exponent must be finite. Otherwise as [`pow`](Recording::pow).
    pow_scalar(exponent): Codes::f32(OpCode::PowF32), finite;

    /// The smaller of `operand` and `scalar`; f32, i32, u32. A float must not be NaN. Otherwise as
    /// [`min`](Recording::min).
    min_scalar(scalar): Codes::all(OpCode::MinF32, OpCode::MinI32, OpCode::MinU32), not_nan;

    /// The larger of `operand` and `scalar`; f32, i32, u32. A float must not be NaN. Otherwise as
    /// [`max`](Recording::max).
    max_scalar(scalar): Codes::all(OpCode::MaxF32, OpCode::MaxI32, OpCode::MaxU32), not_nan;
}
