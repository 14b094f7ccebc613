//! Elementwise operations.

use std::mem::MaybeUninit;

use tidemill::{DType, Operand, Recording, Value};

use crate::arguments::{Scalar, dtype, tm_dtype, with_type};
use crate::recording::{record, tm_recording, tm_value};
use crate::status::{Failure, tm_status};

/// An operation of one operand: TM_NEG and so on.
pub type tm_unary_op = u32;

macro_rules! unary_constants {
    (one_operand { $($section:ident {
        $($(#[$doc:meta])* $name:ident($variant:ident) {
            cost: $cost:ident, codes: $row_codes:tt, cpu: $cpu:expr,
            c: $c:ident = $number:literal $c_doc:literal $($step:tt)*
        })*
    })* } other_codes $codes:tt) => {
        $($(
            #[doc = $c_doc]
            pub const $c: tm_unary_op = $number;
        )*)*

        fn unary(r: &Recording, op: tm_unary_op, x: Operand<'_>) -> Result<Value, Failure> {
            let value = match op {
                $($($c => r.$name(x),)*)*
                other => return Err(Failure::unknown("op", other)),
            };
            Ok(value?)
        }
    };
}

tidemill::elementwise_ops!(unary_constants);

/// An operation of two operands, or of one and a number: TM_ADD and so on. Comparisons give u32: 1 where they hold.
pub type tm_binary_op = u32;
/// a + b.
pub const TM_ADD: tm_binary_op = 0;
/// a - b.
pub const TM_SUB: tm_binary_op = 1;
/// a * b.
pub const TM_MUL: tm_binary_op = 2;
/// a / b; integers are cut towards zero.
pub const TM_DIV: tm_binary_op = 3;
/// a to the power of b; floats.
pub const TM_POW: tm_binary_op = 4;
/// The smaller one.
pub const TM_MIN: tm_binary_op = 5;
/// The larger one.
pub const TM_MAX: tm_binary_op = 6;
/// a == b.
pub const TM_EQ: tm_binary_op = 7;
/// a != b.
pub const TM_NE: tm_binary_op = 8;
/// a < b.
pub const TM_LT: tm_binary_op = 9;
/// a <= b.
pub const TM_LE: tm_binary_op = 10;
/// a > b.
pub const TM_GT: tm_binary_op = 11;
/// a >= b.
pub const TM_GE: tm_binary_op = 12;

/// The remainder of a / b with the sign of a.
pub const TM_FMOD: tm_binary_op = 13;
/// The remainder of a / b with the sign of b.
pub const TM_MODULO: tm_binary_op = 14;
/// The angle of the point (b, a), as atan2(a, b); floats, without a number in the place of b, as all that follow.
pub const TM_ATAN2: tm_binary_op = 15;
/// The square root of a * a + b * b.
pub const TM_HYPOT: tm_binary_op = 16;
/// The magnitude of a with the sign of b.
pub const TM_COPYSIGN: tm_binary_op = 17;
/// a where it is above 0, a * b elsewhere.
pub const TM_PRELU: tm_binary_op = 18;
/// Whether both are true (not 0); u32 or bool, as the two that follow.
pub const TM_LOGICAL_AND: tm_binary_op = 19;
/// Whether at least one is true.
pub const TM_LOGICAL_OR: tm_binary_op = 20;
/// Whether one is true and the other is not.
pub const TM_LOGICAL_XOR: tm_binary_op = 21;
/// The bits that both have; integers, as all that follow.
pub const TM_BIT_AND: tm_binary_op = 22;
/// The bits that at least one has.
pub const TM_BIT_OR: tm_binary_op = 23;
/// The bits that one has and the other has not.
pub const TM_BIT_XOR: tm_binary_op = 24;
/// a * 2^b.
pub const TM_SHIFT_LEFT: tm_binary_op = 25;
/// a / 2^b, rounded down.
pub const TM_SHIFT_RIGHT: tm_binary_op = 26;

/// A test of each element, which gives u32, 1 where it holds: TM_IS_NAN and so on. And what is made of the bits of one
/// integer.
pub type tm_test_op = u32;
/// Is it NaN? Floats.
pub const TM_IS_NAN: tm_test_op = 0;
/// Is it infinite? Floats.
pub const TM_IS_INF: tm_test_op = 1;
/// Is it false (0)? u32 or bool, which the result is of.
pub const TM_LOGICAL_NOT: tm_test_op = 2;
/// The bits that an integer has not; the result is of its type.
pub const TM_BIT_NOT: tm_test_op = 3;
/// How many bits of an integer are 1.
pub const TM_COUNT_ONES: tm_test_op = 4;

/// A test of each element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_test(
    recording: Option<&tm_recording>,
    op: tm_test_op,
    x: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_test", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        let value = match op {
            TM_IS_NAN => r.is_nan(x),
            TM_IS_INF => r.is_inf(x),
            TM_LOGICAL_NOT => r.logical_not(x),
            TM_BIT_NOT => r.bit_not(x),
            TM_COUNT_ONES => r.count_ones(x),
            other => return Err(Failure::unknown("op", other)),
        };
        Ok(value?)
    })
}

/// An operation of one operand.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_unary(
    recording: Option<&tm_recording>,
    op: tm_unary_op,
    x: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_unary", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        unary(r, op, x)
    })
}

/// An operation of two operands of one element type. Shapes broadcast as in NumPy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_binary(
    recording: Option<&tm_recording>,
    op: tm_binary_op,
    a: tm_value,
    b: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_binary", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let a = unsafe { scope.operand(a, "a") }?;
        // SAFETY: contract 1.
        let b = unsafe { scope.operand(b, "b") }?;
        let value = match op {
            TM_ADD => r.add(a, b),
            TM_SUB => r.sub(a, b),
            TM_MUL => r.mul(a, b),
            TM_DIV => r.div(a, b),
            TM_POW => r.pow(a, b),
            TM_MIN => r.min(a, b),
            TM_MAX => r.max(a, b),
            TM_EQ => r.eq(a, b),
            TM_NE => r.ne(a, b),
            TM_LT => r.lt(a, b),
            TM_LE => r.le(a, b),
            TM_GT => r.gt(a, b),
            TM_GE => r.ge(a, b),
            TM_FMOD => r.fmod(a, b),
            TM_MODULO => r.modulo(a, b),
            TM_ATAN2 => r.atan2(a, b),
            TM_HYPOT => r.hypot(a, b),
            TM_COPYSIGN => r.copysign(a, b),
            TM_PRELU => r.prelu(a, b),
            TM_LOGICAL_AND => r.logical_and(a, b),
            TM_LOGICAL_OR => r.logical_or(a, b),
            TM_LOGICAL_XOR => r.logical_xor(a, b),
            TM_BIT_AND => r.bit_and(a, b),
            TM_BIT_OR => r.bit_or(a, b),
            TM_BIT_XOR => r.bit_xor(a, b),
            TM_SHIFT_LEFT => r.shift_left(a, b),
            TM_SHIFT_RIGHT => r.shift_right(a, b),
            other => return Err(Failure::unknown("op", other)),
        };
        Ok(value?)
    })
}

/// An operation of an operand and a number on the right, which becomes an element of the operand's type: TM_PARAMETER
/// if it is none, such as 0.5 for integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_binary_scalar(
    recording: Option<&tm_recording>,
    op: tm_binary_op,
    a: tm_value,
    b: f64,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_binary_scalar", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let a = unsafe { scope.operand(a, "a") }?;
        match r.dtype(a)? {
            // Packed floats are computed with as f32, and so is their scalar.
            DType::F16 | DType::Bf16 => with_scalar(r, op, a, f32::from_number(b)?),
            dtype => with_type!(dtype, T => with_scalar(r, op, a, T::from_number(b)?)),
        }
    })
}

fn with_scalar<T: Scalar>(r: &Recording, op: tm_binary_op, a: Operand<'_>, b: T) -> Result<Value, Failure> {
    let value = match op {
        TM_ADD => r.add_scalar(a, b),
        TM_SUB => r.sub_scalar(a, b),
        TM_MUL => r.scale(a, b),
        TM_DIV => r.div_scalar(a, b),
        TM_POW => r.pow_scalar(a, b),
        TM_MIN => r.min_scalar(a, b),
        TM_MAX => r.max_scalar(a, b),
        TM_EQ => r.eq_scalar(a, b),
        TM_NE => r.ne_scalar(a, b),
        TM_LT => r.lt_scalar(a, b),
        TM_LE => r.le_scalar(a, b),
        TM_GT => r.gt_scalar(a, b),
        TM_GE => r.ge_scalar(a, b),
        TM_BIT_AND => r.bit_and(a, number(b)),
        TM_BIT_OR => r.bit_or(a, number(b)),
        TM_BIT_XOR => r.bit_xor(a, number(b)),
        TM_SHIFT_LEFT => r.shift_left(a, number(b)),
        TM_SHIFT_RIGHT => r.shift_right(a, number(b)),
        other => return Err(Failure::unknown("op", other)),
    };
    Ok(value?)
}

fn number<T: Scalar>(number: T) -> Operand<'static> {
    Operand::Scalar(number.into())
}

/// x where it is above 0, alpha * x elsewhere; floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_leaky_relu(
    recording: Option<&tm_recording>,
    x: tm_value,
    alpha: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_leaky_relu", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.leaky_relu(unsafe { scope.operand(x, "x") }?, alpha)?)
    })
}

/// x where it is above 0, alpha * (exp(x) - 1) elsewhere; floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_elu(
    recording: Option<&tm_recording>,
    x: tm_value,
    alpha: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_elu", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.elu(unsafe { scope.operand(x, "x") }?, alpha)?)
    })
}

/// x where it is above 0, alpha * (exp(x / alpha) - 1) elsewhere; floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_celu(
    recording: Option<&tm_recording>,
    x: tm_value,
    alpha: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_celu", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.celu(unsafe { scope.operand(x, "x") }?, alpha)?)
    })
}

/// x, but not below the elements of `lo` and not above those of `hi`; floats. All three broadcast.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_clamp(
    recording: Option<&tm_recording>,
    x: tm_value,
    lo: tm_value,
    hi: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_clamp", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let lo = unsafe { scope.operand(lo, "lo") }?;
        // SAFETY: contract 1.
        let hi = unsafe { scope.operand(hi, "hi") }?;
        Ok(r.clamp(x, lo, hi)?)
    })
}

/// x, but not below `lo` and not above `hi`; floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_clip(
    recording: Option<&tm_recording>,
    x: tm_value,
    lo: f32,
    hi: f32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_clip", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.clip(unsafe { scope.operand(x, "x") }?, lo, hi)?)
    })
}

/// a where the mask (u32, as comparisons give it) is not 0, b elsewhere; all three broadcast.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_select(
    recording: Option<&tm_recording>,
    mask: tm_value,
    a: tm_value,
    b: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_select", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let mask = unsafe { scope.operand(mask, "mask") }?;
        // SAFETY: contract 1.
        let a = unsafe { scope.operand(a, "a") }?;
        // SAFETY: contract 1.
        let b = unsafe { scope.operand(b, "b") }?;
        Ok(r.select(mask, a, b)?)
    })
}

/// The same numbers as elements of another type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_cast(
    recording: Option<&tm_recording>,
    x: tm_value,
    to: tm_dtype,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_cast", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.cast(unsafe { scope.operand(x, "x") }?, dtype(to)?)?)
    })
}

/// The same bits as another type of four bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_bitcast(
    recording: Option<&tm_recording>,
    x: tm_value,
    to: tm_dtype,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_bitcast", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.bitcast(unsafe { scope.operand(x, "x") }?, dtype(to)?)?)
    })
}
