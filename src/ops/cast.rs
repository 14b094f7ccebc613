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
    /// From f32 to integers: cut towards zero; what is too large or too small becomes the type's largest or smallest
    /// number, NaN becomes 0. From integers to f32: rounded to the nearest, ties to even (beyond 2²⁴ not every
    /// integer is a float). From f32 to f16: rounded to the nearest, ties to even; from 65,520 on infinity. From f16 to f32:
    /// exact. Between i32 and u32: the bits stay. To the operand's own type: the operand itself.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::DType;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-1.5f32, 2.9, 1e20, f32::NAN], [4])?;
    /// assert_eq!(gpu.run(|r| r.cast(&x, DType::I32))?.read::<i32>()?, [-1, 2, i32::MAX, 0]);
    /// assert_eq!(gpu.run(|r| r.cast(&x, DType::U32))?.read::<u32>()?, [0, 2, u32::MAX, 0]);
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
        let code = match (from, to) {
            _ if from == to => return Ok(self.handle(id)),
            // Loads and stores do it.
            (DType::F32 | DType::F16, DType::F32 | DType::F16) => OpCode::Copy,
            (DType::F32 | DType::F16, DType::I32) => OpCode::F32ToI32,
            (DType::F32 | DType::F16, DType::U32) => OpCode::F32ToU32,
            (DType::I32, DType::F32 | DType::F16) => OpCode::I32ToF32,
            (DType::U32, DType::F32 | DType::F16) => OpCode::U32ToF32,
            (DType::I32 | DType::U32, DType::I32 | DType::U32) => OpCode::Copy,
        };
        self.elementwise(op, code, &[Arg::Value(id)], to)
    }
}
