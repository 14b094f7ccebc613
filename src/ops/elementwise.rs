//! Elementwise operations.

use smallvec::{SmallVec, smallvec};

use crate::engine::graph::{Node, Work};
use crate::engine::map::{Map, MapInput, OpCode, Operand as MapOperand, Step, dense_strides};
use crate::engine::recording::{Operand, Recording, Value};
use crate::error::{Error, Result};
use crate::shape::DType;

impl Recording {
    /// `lhs + rhs`, element for element.
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if the shapes differ, [`Error::Type`] if an operand is not f32.
    pub fn add<'a>(&mut self, lhs: impl Into<Operand<'a>>, rhs: impl Into<Operand<'a>>) -> Result<Value> {
        self.binary("add", OpCode::AddF32, lhs.into(), rhs.into())
    }

    /// `lhs - rhs`, element for element.
    ///
    /// # Errors
    ///
    /// As [`add`](Recording::add).
    pub fn sub<'a>(&mut self, lhs: impl Into<Operand<'a>>, rhs: impl Into<Operand<'a>>) -> Result<Value> {
        self.binary("sub", OpCode::SubF32, lhs.into(), rhs.into())
    }

    /// `lhs * rhs`, element for element.
    ///
    /// # Errors
    ///
    /// As [`add`](Recording::add).
    pub fn mul<'a>(&mut self, lhs: impl Into<Operand<'a>>, rhs: impl Into<Operand<'a>>) -> Result<Value> {
        self.binary("mul", OpCode::MulF32, lhs.into(), rhs.into())
    }

    /// `lhs / rhs`, element for element.
    ///
    /// # Errors
    ///
    /// As [`add`](Recording::add).
    pub fn div<'a>(&mut self, lhs: impl Into<Operand<'a>>, rhs: impl Into<Operand<'a>>) -> Result<Value> {
        self.binary("div", OpCode::DivF32, lhs.into(), rhs.into())
    }

    fn binary(
        &mut self,
        op: &'static str,
        code: OpCode,
        lhs: Operand<'_>,
        rhs: Operand<'_>,
    ) -> Result<Value> {
        let (a, b) = (self.resolve(op, lhs)?, self.resolve(op, rhs)?);
        let ((shape, dtype), (other, other_dtype)) = (self.kind(a), self.kind(b));
        for got in [dtype, other_dtype] {
            if got != DType::F32 {
                return Err(Error::Type { op, expected: DType::F32, got });
            }
        }
        if shape != other {
            let why = "the shapes must be equal".to_owned();
            return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
        }
        let output = self.produce(op, shape, dtype)?;
        let strides = dense_strides(&shape);
        let mut inputs: SmallVec<[MapInput; 3]> = smallvec![MapInput { value: a, strides, offset: 0 }];
        if b != a {
            inputs.push(MapInput { value: b, strides, offset: 0 });
        }
        let second = MapOperand::Input(u8::from(b != a));
        let step = Step { op: code, operands: [MapOperand::Input(0), second, MapOperand::Input(0)] };
        let map = Map { step, inputs, scalars: [0; 3], output };
        self.push(Node { label: self.label(op, output), work: Work::Map(map), accesses: SmallVec::new() });
        Ok(self.handle(output))
    }
}
