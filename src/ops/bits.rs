//! Operations on the bits of integers.

use super::elementwise::{Arg, Codes};
use super::width::check_integer;
use crate::error::{Error, Result};
use crate::ir::elementwise::OpCode;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Recording, Value};
use crate::shape::DType;

/// What these operations have in common stands once.
macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident: $codes:expr;)*) => {
        /// # Bits
        ///
        /// Of integers of any size. Operands have one type, which is the result's, too; either side may be a number.
        /// Shapes broadcast as in NumPy. Exact, on every device.
        impl Recording {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shapes`] with the extents that disagree, [`Error::Type`] if the operands are no integers of one
            /// type.
            pub fn $name<'a>(
                &self,
                lhs: impl IntoOperand<'a>,
                rhs: impl IntoOperand<'a>,
            ) -> Result<Value> {
                self.binary(stringify!($name), $codes, lhs.into(), rhs.into(), false, None)
            }
        )*}
    };
}

bits! {
    /// The bits that both have. Bool, too.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[0b1100u8, 0xff], [2])?;
    /// let (low, high) = gpu.run(|r| Ok((r.bit_and(&x, 0x0fu8)?, r.shift_right(&x, 4u8)?)))?;
    /// assert_eq!((low.read::<u8>()?, high.read::<u8>()?), (vec![0b1100, 0x0f], vec![0, 0x0f]));
    /// # Ok(()) }
    /// ```
    bit_and: Codes::integers(OpCode::BitAnd, OpCode::BitAnd).and_truths(OpCode::BitAnd);
    /// The bits that at least one has. Bool, too.
    bit_or: Codes::integers(OpCode::BitOr, OpCode::BitOr).and_truths(OpCode::BitOr);
    /// The bits that one has and the other has not. Bool, too.
    bit_xor: Codes::integers(OpCode::BitXor, OpCode::BitXor).and_truths(OpCode::BitXor);
    /// `lhs · 2^rhs`: bits that leave the type are lost. A count of at least the type's bits, or a negative one, gives
    /// 0.
    shift_left: Codes::integers(OpCode::ShiftLeft, OpCode::ShiftLeft);
    /// `lhs / 2^rhs`, rounded down: a negative number stays negative. A count of at least the type's bits, or a
    /// negative one, gives 0, or −1 where `lhs` is negative.
    shift_right: Codes::integers(OpCode::ShiftRightI32, OpCode::ShiftRightU32);
}

impl Recording {
    /// The other bits: those that the operand has not.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if the operand is no integer.
    pub fn bit_not<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Value> {
        let op = "bit_not";
        let id = self.resolve(op, operand)?;
        let (_, dtype) = self.kind(id);
        check_integer(op, "operand", dtype)?;
        self.elementwise(op, OpCode::BitXor, &[Arg::Value(id), Arg::Scalar(u32::MAX)], dtype)
    }

    /// How many bits are 1, as u32: of an i8 or u8 up to 8.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if the operand is no integer.
    pub fn count_ones<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Value> {
        let op = "count_ones";
        let id = self.resolve(op, operand)?;
        let (_, dtype) = self.kind(id);
        check_integer(op, "operand", dtype)?;
        // What a sign has been extended to does not count.
        let own = u32::MAX >> (32 - 8 * dtype.size_bytes());
        self.elementwise(op, OpCode::CountOnes, &[Arg::Value(id), Arg::Scalar(own)], DType::U32)
    }

    /// The same bits as another type of four bytes: f32, i32 or u32.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::DType;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, -0.0], [2])?;
    /// let bits = gpu.run(|r| r.bitcast(&x, DType::U32))?;
    /// assert_eq!(bits.read::<u32>()?, [0x3f80_0000, 0x8000_0000]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if the elements of either type are packed.
    pub fn bitcast<'a>(&self, operand: impl IntoOperand<'a>, to: DType) -> Result<Value> {
        let op = "bitcast";
        let id = self.resolve(op, operand)?;
        for (name, got) in [("operand", self.kind(id).1), ("result", to)] {
            if got.is_packed() {
                return Err(Error::of_type(op, name, DType::WORDS, got));
            }
        }
        if self.kind(id).1 == to {
            return Ok(self.handle(id));
        }
        self.elementwise(op, OpCode::Copy, &[Arg::Value(id)], to)
    }
}
