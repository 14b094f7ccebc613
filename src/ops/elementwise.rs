//! The common part of all elementwise operations: broadcasting, the choice of the code by element type, and the node.

use smallvec::SmallVec;

pub(super) use crate::error::parameters::{finite, not_nan, parameter, positive};
use crate::error::{Error, Result};
use crate::ir::elementwise::{
    Elementwise, ElementwiseInput, MAX_INPUTS, MAX_SCALARS, OpCode, Operand as ElementwiseOperand,
    dense_strides,
};
use crate::ir::value::ValueId;
use crate::runtime::operand::Scalar;
use crate::runtime::recording::{Operand, Recording, Value};
pub(super) use crate::shape::broadcast::broadcast;
use crate::shape::{DType, Element, MAX_RANK, Shape};

/// The codes of an operation for each element type it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    f32: Option<OpCode>,
    i32: Option<OpCode>,
    u32: Option<OpCode>,
    truth: Option<OpCode>,
}

const NONE: Codes = Codes { f32: None, i32: None, u32: None, truth: None };

impl Codes {
    pub(super) const fn f32(code: OpCode) -> Codes {
        Codes { f32: Some(code), ..NONE }
    }

    /// Truth values, in words or not.
    pub(super) const fn truths(code: OpCode) -> Codes {
        Codes { u32: Some(code), truth: Some(code), ..NONE }
    }

    /// Integers of either kind.
    pub(super) const fn integers(i32: OpCode, u32: OpCode) -> Codes {
        Codes { i32: Some(i32), u32: Some(u32), ..NONE }
    }

    /// f32 and i32: what needs a sign.
    pub(super) const fn signed(f32: OpCode, i32: OpCode) -> Codes {
        Codes { f32: Some(f32), i32: Some(i32), ..NONE }
    }

    pub(super) const fn all(f32: OpCode, i32: OpCode, u32: OpCode) -> Codes {
        Codes { f32: Some(f32), i32: Some(i32), u32: Some(u32), truth: None }
    }

    /// Truth values, too.
    pub(super) const fn and_truths(self, code: OpCode) -> Codes {
        Codes { truth: Some(code), ..self }
    }

    fn code(self, dtype: DType) -> Option<OpCode> {
        // Packed elements are widened as they are loaded.
        match (dtype, dtype.wide()) {
            (DType::Bool, _) => self.truth,
            (_, DType::F32) => self.f32,
            (_, DType::I32) => self.i32,
            _ => self.u32,
        }
    }

    fn of(self, op: &'static str, operand: &str, got: DType) -> Result<OpCode> {
        self.code(got).ok_or_else(|| {
            let mut takes = DType::ALL.to_vec();
            takes.retain(|dtype| self.code(*dtype).is_some());
            Error::of_type(op, operand, &takes, got)
        })
    }
}

/// An operand of a node: a value, or the bits of a scalar.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    Value(ValueId),
    Scalar(u32),
}

/// The strides with which a dense tensor is read as if it had the larger shape.
pub(super) fn broadcast_strides(from: &Shape, to: &Shape) -> [u32; MAX_RANK] {
    let dense = dense_strides(from);
    let added = to.rank() - from.rank();
    let mut strides = [0; MAX_RANK];
    for (d, &extent) in from.dims().iter().enumerate() {
        // Where one element is repeated the stride stays 0.
        if extent == to.dims()[added + d] {
            strides[added + d] = dense[d];
        }
    }
    strides
}

/// A scalar's bits and, if it is one, the float.
pub(super) fn scalar_bits<T: Element>(scalar: T) -> (u32, Option<f32>) {
    let bits = scalar.scalar_bits();
    (bits, T::DTYPE.is_float().then(|| f32::from_bits(bits)))
}

impl Recording {
    /// An operation of one operand and up to two parameters.
    pub(super) fn unary(
        &self,
        op: &'static str,
        codes: Codes,
        operand: Operand<'_>,
        parameters: &[f32],
    ) -> Result<Value> {
        let id = self.resolve(op, operand)?;
        let (_, dtype) = self.kind(id);
        let code = codes.of(op, "operand", dtype)?;
        let mut args: SmallVec<[Arg; 3]> = SmallVec::from_slice(&[Arg::Value(id)]);
        args.extend(parameters.iter().map(|p| Arg::Scalar(p.to_bits())));
        self.elementwise(op, code, &args, dtype)
    }

    /// An operation of two operands of one type, for the shader the other way round if `swapped`. The result is of
    /// that type, or of `result`.
    pub(super) fn binary(
        &self,
        op: &'static str,
        codes: Codes,
        lhs: Operand<'_>,
        rhs: Operand<'_>,
        swapped: bool,
        result: Option<DType>,
    ) -> Result<Value> {
        match (lhs, rhs) {
            (Operand::Tensor(_) | Operand::Value(_), Operand::Scalar(scalar)) => {
                return self.beside_scalar(op, codes, lhs, ("rhs", scalar), swapped, result);
            }
            (Operand::Scalar(scalar), Operand::Tensor(_) | Operand::Value(_)) => {
                return self.beside_scalar(op, codes, rhs, ("lhs", scalar), !swapped, result);
            }
            _ => {}
        }
        let (a, b) = (self.resolve(op, lhs)?, self.resolve(op, rhs)?);
        let ((shape, expected), (other, got)) = (self.kind(a), self.kind(b));
        let code = codes.of(op, "lhs", expected)?;
        if expected != got {
            return Err(Error::of_type(op, "rhs", &[expected], got));
        }
        // Refused in the user's order.
        broadcast(op, shape, other)?;
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        self.elementwise(op, code, &[Arg::Value(a), Arg::Value(b)], result.unwrap_or(expected))
    }

    /// An operation of an operand and a scalar of its type, or of a packed float and an f32. With `swapped` the scalar
    /// comes first.
    pub(super) fn with_scalar<T: Element>(
        &self,
        op: &'static str,
        codes: Codes,
        operand: Operand<'_>,
        scalar: T,
        swapped: bool,
        result: Option<DType>,
    ) -> Result<Value> {
        self.beside_scalar(op, codes, operand, ("scalar", scalar.into()), swapped, result)
    }

    /// The same, with the scalar's name for errors.
    fn beside_scalar(
        &self,
        op: &'static str,
        codes: Codes,
        operand: Operand<'_>,
        (name, scalar): (&str, Scalar),
        swapped: bool,
        result: Option<DType>,
    ) -> Result<Value> {
        let id = self.resolve(op, operand)?;
        let (_, got) = self.kind(id);
        let code = codes.of(op, "operand", got)?;
        if got != scalar.dtype && !(got.is_float() && scalar.dtype == DType::F32) {
            let takes: &[DType] = if got.is_float() && got.is_packed() { &[got, DType::F32] } else { &[got] };
            return Err(Error::of_type(op, name, takes, scalar.dtype));
        }
        let mut args = [Arg::Value(id), Arg::Scalar(scalar.bits)];
        if swapped {
            args.reverse();
        }
        self.elementwise(op, code, &args, result.unwrap_or(got))
    }

    /// Appends the node of an operation whose operands' types are right.
    pub(super) fn elementwise(
        &self,
        op: &'static str,
        code: OpCode,
        args: &[Arg],
        dtype: DType,
    ) -> Result<Value> {
        let values = || args.iter().filter_map(|arg| if let Arg::Value(id) = arg { Some(*id) } else { None });
        let mut shape = Shape::default();
        // Pair by pair, so that a refusal names the two shapes that disagree.
        for (k, a) in values().enumerate() {
            for b in values().skip(k + 1) {
                broadcast(op, self.kind(a).0, self.kind(b).0)?;
            }
            shape = broadcast(op, shape, self.kind(a).0)?;
        }
        let output = self.produce(op, shape, dtype)?;
        let mut inputs: SmallVec<[ElementwiseInput; MAX_INPUTS]> = SmallVec::new();
        let mut scalars: SmallVec<[u32; MAX_SCALARS]> = SmallVec::new();
        let mut operands: SmallVec<[ElementwiseOperand; 3]> = SmallVec::new();
        for arg in args {
            operands.push(match *arg {
                Arg::Scalar(bits) => {
                    scalars.push(bits);
                    ElementwiseOperand::Scalar(scalars.len() as u8 - 1)
                }
                Arg::Value(value) => {
                    // An operand that comes twice is bound once.
                    let known = inputs.iter().position(|input| input.value == value);
                    let slot = known.unwrap_or(inputs.len());
                    if known.is_none() {
                        let strides = broadcast_strides(&self.kind(value).0, &shape);
                        inputs.push(ElementwiseInput { value, strides, offset: 0 });
                    }
                    ElementwiseOperand::Input(slot as u8)
                }
            });
        }
        let operand =
            |k: usize| operands.get(k).or(operands.first()).copied().unwrap_or(ElementwiseOperand::Input(0));
        let elementwise =
            Elementwise::single(code, [operand(0), operand(1), operand(2)], inputs, scalars, output);
        self.push(self.label(op, output), elementwise)?;
        Ok(self.handle(output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_dimensions_have_stride_0() {
        let strides =
            |a: &[usize], b: &[usize]| broadcast_strides(&Shape::new(a).unwrap(), &Shape::new(b).unwrap());
        assert_eq!(strides(&[3], &[2, 3])[..2], [0, 1]);
        assert_eq!(strides(&[2, 1], &[2, 3])[..2], [1, 0]);
        assert_eq!(strides(&[3, 1, 1], &[2, 3, 4, 5])[..4], [0, 1, 0, 0]);
        assert_eq!(strides(&[], &[7]), [0; MAX_RANK]);
    }
}
