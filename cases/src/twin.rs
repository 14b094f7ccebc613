//! The same operations on the CPU, by the names that cases have for them: from operands into a place for the result.

use tidemill::cpu::{self, Cast, Integer, Number};
use tidemill::{Axes, Bf16, Bool, DType, F16, Result, Shape};

use super::array::{Array, with_type};

pub(crate) fn unary_i32(op: &str, x: &[i32], out: &mut [i32]) -> Result<Shape> {
    match op {
        "neg" => cpu::neg(x, out),
        "abs" => cpu::abs(x, out),
        _ => cpu::sign(x, out),
    }
}

/// An operation of two operands.
pub(crate) fn binary(op: &str, x: &[Array], out: &mut Array) -> Result<Shape> {
    fn with<T: Number>(op: &str, x: &[Array], out: &mut Array) -> Result<Shape> {
        let (x, y) = (x[0].view::<T>(), x[1].view::<T>());
        match op {
            "add" => cpu::add(x, y, out.of_mut()),
            "sub" => cpu::sub(x, y, out.of_mut()),
            "mul" => cpu::mul(x, y, out.of_mut()),
            "div" => cpu::div(x, y, out.of_mut()),
            "fmod" => cpu::fmod(x, y, out.of_mut()),
            "modulo" => cpu::modulo(x, y, out.of_mut()),
            "min" => cpu::min(x, y, out.of_mut()),
            "max" => cpu::max(x, y, out.of_mut()),
            "eq" => cpu::eq(x, y, out.of_mut()),
            "ne" => cpu::ne(x, y, out.of_mut()),
            "lt" => cpu::lt(x, y, out.of_mut()),
            "le" => cpu::le(x, y, out.of_mut()),
            "gt" => cpu::gt(x, y, out.of_mut()),
            _ => cpu::ge(x, y, out.of_mut()),
        }
    }
    match x[0].kind.dtype {
        DType::F32 if op == "pow" => cpu::pow(x[0].view(), x[1].view(), out.of_mut()),
        DType::F32 if op == "atan2" => cpu::atan2(x[0].view(), x[1].view(), out.of_mut()),
        DType::F32 if op == "hypot" => cpu::hypot(x[0].view(), x[1].view(), out.of_mut()),
        DType::F32 if op == "copysign" => cpu::copysign(x[0].view(), x[1].view(), out.of_mut()),
        DType::F32 if op == "prelu" => cpu::prelu(x[0].view(), x[1].view(), out.of_mut()),
        DType::F32 => with::<f32>(op, x, out),
        DType::I32 => with::<i32>(op, x, out),
        _ => with::<u32>(op, x, out),
    }
}

/// An operation of an operand and a scalar, whose bits are given.
pub(crate) fn with_scalar(op: &str, x: &Array, scalar: u32, out: &mut Array) -> Result<Shape> {
    fn with<T: Number>(op: &str, x: &Array, scalar: u32, out: &mut Array) -> Result<Shape> {
        let (x, scalar): (&[T], T) = (x.of(), bytemuck::cast(scalar));
        match op {
            "add" => cpu::add_scalar(x, scalar, out.of_mut()),
            "sub" => cpu::sub_scalar(x, scalar, out.of_mut()),
            "mul" => cpu::scale(x, scalar, out.of_mut()),
            "div" => cpu::div_scalar(x, scalar, out.of_mut()),
            "min" => cpu::min_scalar(x, scalar, out.of_mut()),
            "max" => cpu::max_scalar(x, scalar, out.of_mut()),
            "eq" => cpu::eq_scalar(x, scalar, out.of_mut()),
            "ne" => cpu::ne_scalar(x, scalar, out.of_mut()),
            "lt" => cpu::lt_scalar(x, scalar, out.of_mut()),
            "le" => cpu::le_scalar(x, scalar, out.of_mut()),
            "gt" => cpu::gt_scalar(x, scalar, out.of_mut()),
            _ => cpu::ge_scalar(x, scalar, out.of_mut()),
        }
    }
    match x.kind.dtype {
        DType::F32 if op == "pow" => cpu::pow_scalar(x.view(), f32::from_bits(scalar), out.of_mut()),
        DType::F32 => with::<f32>(op, x, scalar, out),
        DType::I32 => with::<i32>(op, x, scalar, out),
        _ => with::<u32>(op, x, scalar, out),
    }
}

/// To the type that the result has.
pub(crate) fn cast(x: &Array, out: &mut Array) -> Result<Shape> {
    with_type!(x.kind.dtype, A => with_type!(out.kind.dtype, B => cpu::cast(x.view::<A>(), out.of_mut::<B>())))
}

/// An operation on the bits of integers.
pub(crate) fn bits(op: &str, x: &[Array], out: &mut Array) -> Result<Shape> {
    fn with<T: Integer>(op: &str, x: &[Array], out: &mut Array) -> Result<Shape> {
        let second = || x[1].view::<T>();
        let x = x[0].view::<T>();
        match op {
            "bit_and" => cpu::bit_and(x, second(), out.of_mut()),
            "bit_or" => cpu::bit_or(x, second(), out.of_mut()),
            "bit_xor" => cpu::bit_xor(x, second(), out.of_mut()),
            "shift_left" => cpu::shift_left(x, second(), out.of_mut()),
            "shift_right" => cpu::shift_right(x, second(), out.of_mut()),
            "bit_not" => cpu::bit_not(x, out.of_mut()),
            _ => cpu::count_ones(x, out.of_mut()),
        }
    }
    match x[0].kind.dtype {
        DType::I32 => with::<i32>(op, x, out),
        DType::I16 => with::<i16>(op, x, out),
        DType::I8 => with::<i8>(op, x, out),
        DType::U16 => with::<u16>(op, x, out),
        DType::U8 => with::<u8>(op, x, out),
        _ => with::<u32>(op, x, out),
    }
}

pub(crate) fn reduce(op: &str, x: &Array, axes: Axes, out: &mut Array) -> Result<Shape> {
    fn with<T: Number + Cast<u32>>(op: &str, x: &Array, axes: Axes, out: &mut Array) -> Result<Shape> {
        let x = x.view::<T>();
        match op {
            "sum" => cpu::sum(x, axes, out.of_mut()),
            "prod" => cpu::prod(x, axes, out.of_mut()),
            "amax" => cpu::amax(x, axes, out.of_mut()),
            "amin" => cpu::amin(x, axes, out.of_mut()),
            "argmax" => cpu::argmax(x, axes, out.of_mut()),
            _ => cpu::argmin(x, axes, out.of_mut()),
        }
    }
    match (op, x.kind.dtype) {
        ("mean", _) => cpu::mean(x.view(), axes, out.of_mut()),
        ("norm", _) => cpu::norm(x.view(), axes, out.of_mut()),
        ("variance", _) => cpu::variance(x.view(), axes, out.of_mut()),
        (_, DType::F32) => with::<f32>(op, x, axes, out),
        (_, DType::I32) => with::<i32>(op, x, axes, out),
        _ => with::<u32>(op, x, axes, out),
    }
}
