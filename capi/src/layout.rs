//! Layouts, and tensors from nothing.

use std::mem::MaybeUninit;
use std::ops::Range;

use tidemill::Operand;

use crate::arguments::{Scalar, dtype, elements, given, shape, tm_dtype, with_type};
use crate::recording::{Scope, record, tm_recording, tm_value};
use crate::status::{Failure, guard, tm_status};
use crate::tensor::tm_tensor;

/// The same contents with another shape of as many elements; nothing is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_reshape(
    recording: Option<&tm_recording>,
    x: tm_value,
    dims: *const usize,
    rank: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_reshape", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        Ok(r.reshape(x, unsafe { shape("reshape", dims, rank) }?)?)
    })
}

/// Another order of the dimensions: `order` has the old number of each new dimension, `rank` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_permute(
    recording: Option<&tm_recording>,
    x: tm_value,
    order: *const usize,
    rank: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_permute", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        Ok(r.permute(x, unsafe { elements(order, rank, "order") }?)?)
    })
}

/// The last two dimensions exchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_transpose(
    recording: Option<&tm_recording>,
    x: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_transpose", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.transpose(unsafe { scope.operand(x, "x") }?)?)
    })
}

/// A box: from `begin[i]` up to but not including `end[i]` in each of the first `count` dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_slice(
    recording: Option<&tm_recording>,
    x: tm_value,
    begin: *const usize,
    end: *const usize,
    count: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_slice", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let begin = unsafe { elements(begin, count, "begin") }?;
        // SAFETY: contract 1.
        let end = unsafe { elements(end, count, "end") }?;
        let ranges: Vec<Range<usize>> = begin.iter().zip(end).map(|(&begin, &end)| begin..end).collect();
        Ok(r.slice(x, &ranges[..])?)
    })
}

/// As tm_slice, of which every `step[i]`-th element counts; from the last one of the range on where it is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_slice_step(
    recording: Option<&tm_recording>,
    x: tm_value,
    begin: *const usize,
    end: *const usize,
    step: *const isize,
    count: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_slice_step", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let begin = unsafe { elements(begin, count, "begin") }?;
        // SAFETY: contract 1.
        let end = unsafe { elements(end, count, "end") }?;
        // SAFETY: contract 1.
        let step = unsafe { elements(step, count, "step") }?;
        let ranges: Vec<Range<usize>> = begin.iter().zip(end).map(|(&begin, &end)| begin..end).collect();
        Ok(r.slice_step(x, &ranges[..], step)?)
    })
}

/// Writes a value to a box of an existing tensor, in place: from `begin[i]` up to but not including `end[i]` in each of
/// the first `count` dimensions. What was recorded before reads the old contents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_update(
    recording: Option<&tm_recording>,
    tensor: Option<&tm_tensor>,
    begin: *const usize,
    end: *const usize,
    count: usize,
    x: tm_value,
) -> tm_status {
    guard("tm_update", || {
        let tensor = given(tensor, "tensor")?;
        given(recording, "recording")?.record(|r, scope| {
            // SAFETY: contract 1.
            let x = unsafe { scope.operand(x, "x") }?;
            // SAFETY: contract 1.
            let begin = unsafe { elements(begin, count, "begin") }?;
            // SAFETY: contract 1.
            let end = unsafe { elements(end, count, "end") }?;
            let ranges: Vec<Range<usize>> = begin.iter().zip(end).map(|(&begin, &end)| begin..end).collect();
            r.update(&tensor.tensor, &ranges[..], x)?;
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// Gives an existing tensor a new value, in its own memory. What was recorded before reads the old contents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_assign(
    recording: Option<&tm_recording>,
    tensor: Option<&tm_tensor>,
    x: tm_value,
) -> tm_status {
    guard("tm_assign", || {
        let tensor = given(tensor, "tensor")?;
        given(recording, "recording")?.record(|r, scope| {
            // SAFETY: contract 1.
            r.assign(&tensor.tensor, unsafe { scope.operand(x, "x") }?)?;
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// Repeated to a larger shape by NumPy's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_broadcast_to(
    recording: Option<&tm_recording>,
    x: tm_value,
    dims: *const usize,
    rank: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_broadcast_to", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        Ok(r.broadcast_to(x, unsafe { shape("broadcast_to", dims, rank) }?)?)
    })
}

/// # Safety
///
/// Contract 1, for `'a`.
unsafe fn operands<'a>(
    scope: &Scope<'_>,
    xs: *const tm_value,
    count: usize,
) -> Result<Vec<Operand<'a>>, Failure> {
    // SAFETY: contract 1.
    let xs = unsafe { elements(xs, count, "xs") }?;
    let operand = |(i, x): (usize, &tm_value)| {
        // SAFETY: contract 1.
        unsafe { scope.operand(*x, &format!("xs[{i}]")) }
    };
    xs.iter().enumerate().map(operand).collect()
}

/// Operands one after the other along an axis; negative ones count from the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_concat(
    recording: Option<&tm_recording>,
    xs: *const tm_value,
    count: usize,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_concat", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let xs = unsafe { operands(scope, xs, count) }?;
        Ok(r.concat(&xs, axis as isize)?)
    })
}

/// Operands of one shape along a new axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_stack(
    recording: Option<&tm_recording>,
    xs: *const tm_value,
    count: usize,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_stack", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let xs = unsafe { operands(scope, xs, count) }?;
        Ok(r.stack(&xs, axis as isize)?)
    })
}

/// With `before[i]` and `after[i]` more elements around it in each of its `rank` dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_pad(
    recording: Option<&tm_recording>,
    x: tm_value,
    before: *const usize,
    after: *const usize,
    rank: usize,
    element: f64,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_pad", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let before = unsafe { elements(before, rank, "before") }?;
        // SAFETY: contract 1.
        let after = unsafe { elements(after, rank, "after") }?;
        let pads: Vec<(usize, usize)> = before.iter().copied().zip(after.iter().copied()).collect();
        with_type!(r.dtype(x)?, T => Ok(r.pad(x, &pads, T::from_number(element)?)?))
    })
}

/// Rows of a table (its slices along the first dimension) by their numbers, which are u32. A number outside the table
/// gives a row of zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_gather_rows(
    recording: Option<&tm_recording>,
    table: tm_value,
    rows: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_gather_rows", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let table = unsafe { scope.operand(table, "table") }?;
        // SAFETY: contract 1.
        let rows = unsafe { scope.operand(rows, "rows") }?;
        Ok(r.gather_rows(table, rows)?)
    })
}

/// A copy in memory of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_copy(
    recording: Option<&tm_recording>,
    x: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_copy", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.copy(unsafe { scope.operand(x, "x") }?)?)
    })
}

/// Equal elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_fill(
    recording: Option<&tm_recording>,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    element: f64,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_fill", recording, out, |r, _| {
        // SAFETY: contract 1.
        let shape = unsafe { shape("fill", dims, rank) }?;
        with_type!(self::dtype(dtype)?, T => Ok(r.fill(shape, T::from_number(element)?)?))
    })
}

/// 0, 1, 2 and so on, in row-major order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_iota(
    recording: Option<&tm_recording>,
    dtype: tm_dtype,
    dims: *const usize,
    rank: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_iota", recording, out, |r, _| {
        // SAFETY: contract 1.
        let shape = unsafe { shape("iota", dims, rank) }?;
        with_type!(self::dtype(dtype)?, T => Ok(r.iota::<T>(shape)?))
    })
}

/// Random f32 numbers, uniform in [0, 1). Seed and place alone decide an element, with the same bits on every device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_random_uniform(
    recording: Option<&tm_recording>,
    dims: *const usize,
    rank: usize,
    seed: u64,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_random_uniform", recording, out, |r, _| {
        // SAFETY: contract 1.
        Ok(r.random_uniform(unsafe { shape("random_uniform", dims, rank) }?, seed)?)
    })
}

/// Random f32 numbers, normal with mean 0 and variance 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_random_normal(
    recording: Option<&tm_recording>,
    dims: *const usize,
    rank: usize,
    seed: u64,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_random_normal", recording, out, |r, _| {
        // SAFETY: contract 1.
        Ok(r.random_normal(unsafe { shape("random_normal", dims, rank) }?, seed)?)
    })
}
