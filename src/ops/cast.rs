//! Casts between element types.

use super::elementwise::Arg;
use crate::error::Result;
use crate::ir::elementwise::OpCode;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Recording, Value};
use crate::shape::DType;

impl Recording {
    /// The elements as another type, by the rules of Rust's `as`, on every device.
    ///
    /// - From floats to integers: cut towards zero; what is too large or too small becomes the type's largest or
    ///   smallest number, NaN becomes 0.
    /// - From integers to f32: rounded to the nearest, ties to even (beyond 2²⁴ not every integer is a float). To f16
    ///   and bf16: by way of f32, rounded twice where the integer is no f32.
    /// - From f32 to f16 and bf16: rounded to the nearest, ties to even; to f16, from 65,520 on infinity. From f16 and
    ///   bf16 to f32: exact.
    /// - Between integers: wraps, the lower bits stay.
    /// - To bool: whether it is not 0; NaN is not. From bool: 0 or 1.
    /// - To the operand's own type: the operand itself.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::DType;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-1.5f32, 2.9, 1e20, f32::NAN], [4])?;
    /// assert_eq!(gpu.run(|r| r.cast(&x, DType::I32))?.read::<i32>()?, [-1, 2, i32::MAX, 0]);
    /// assert_eq!(gpu.run(|r| r.cast(&x, DType::U32))?.read::<u32>()?, [0, 2, u32::MAX, 0]);
    /// assert_eq!(gpu.run(|r| r.cast(&x, DType::I8))?.read::<i8>()?, [-1, 2, i8::MAX, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the operand.
    pub fn cast<'a>(&self, operand: impl IntoOperand<'a>, to: DType) -> Result<Value> {
        let op = "cast";
        let id = self.resolve(op, operand)?;
        let (_, from) = self.kind(id);
        if from == to {
            return Ok(self.handle(id));
        }
        if to == DType::Bool {
            let code = if from.is_float() { OpCode::NeF32 } else { OpCode::NeInt };
            return self.elementwise(op, code, &[Arg::Value(id), Arg::Scalar(0)], to);
        }
        let code = match (from.wide(), to) {
            (DType::F32, DType::I32) => OpCode::F32ToI32,
            (DType::F32, DType::I16) => OpCode::F32ToI16,
            (DType::F32, DType::I8) => OpCode::F32ToI8,
            (DType::F32, DType::U32) => OpCode::F32ToU32,
            (DType::F32, DType::U16) => OpCode::F32ToU16,
            (DType::F32, DType::U8) => OpCode::F32ToU8,
            (DType::I32, _) if to.is_float() => OpCode::I32ToF32,
            (DType::U32, _) if to.is_float() => OpCode::U32ToF32,
            // Loads and stores round and wrap.
            _ => OpCode::Copy,
        };
        self.elementwise(op, code, &[Arg::Value(id)], to)
    }
}
