//! Reductions and softmax.

use std::mem::MaybeUninit;

use tidemill::{Axes, Operand, Recording, Value};

use crate::arguments::{elements, given};
use crate::recording::{record, tm_recording, tm_value};
use crate::status::{Failure, guard, tm_status};

/// A reduction: TM_SUM and so on.
pub type tm_reduce_op = u32;
/// The sum.
pub const TM_SUM: tm_reduce_op = 0;
/// The mean.
pub const TM_MEAN: tm_reduce_op = 1;
/// The product.
pub const TM_PROD: tm_reduce_op = 2;
/// The largest element.
pub const TM_AMAX: tm_reduce_op = 3;
/// The smallest element.
pub const TM_AMIN: tm_reduce_op = 4;
/// The place of the largest element, the first if there are several; u32.
pub const TM_ARGMAX: tm_reduce_op = 5;
/// The place of the smallest element, the first if there are several; u32.
pub const TM_ARGMIN: tm_reduce_op = 6;
/// The square root of the sum of squares.
pub const TM_NORM: tm_reduce_op = 7;
/// The mean square distance from the mean.
pub const TM_VARIANCE: tm_reduce_op = 8;

/// In the place of an axis: all of them.
pub const TM_ALL_AXES: i32 = i32::MIN;

/// Reduces along an axis; negative ones count from the end, and TM_ALL_AXES gives one element. With `keep` the axis
/// stays in the shape, with one element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_reduce(
    recording: Option<&tm_recording>,
    op: tm_reduce_op,
    x: tm_value,
    axis: i32,
    keep: bool,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_reduce", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        let axes = if axis == TM_ALL_AXES { Axes::ALL } else { Axes::at(axis as isize) };
        let axes = if keep { axes.keep() } else { axes };
        reduce(r, op, x, axes)
    })
}

fn reduce(r: &Recording, op: tm_reduce_op, x: Operand<'_>, axes: Axes) -> Result<Value, Failure> {
    let value = match op {
        TM_SUM => r.sum(x, axes),
        TM_MEAN => r.mean(x, axes),
        TM_PROD => r.prod(x, axes),
        TM_AMAX => r.amax(x, axes),
        TM_AMIN => r.amin(x, axes),
        TM_ARGMAX => r.argmax(x, axes),
        TM_ARGMIN => r.argmin(x, axes),
        TM_NORM => r.norm(x, axes),
        TM_VARIANCE => r.variance(x, axes),
        other => return Err(Failure::unknown("op", other)),
    };
    Ok(value?)
}

/// Reduces along several axes; negative ones count from the end. With `keep` the axes stay in the shape, with one
/// element each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_reduce_axes(
    recording: Option<&tm_recording>,
    op: tm_reduce_op,
    x: tm_value,
    axes: *const i32,
    axis_count: usize,
    keep: bool,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_reduce_axes", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        reduce(r, op, x, unsafe { several(axes, axis_count, keep) }?)
    })
}

/// The mean into `mean` and the variance into `variance`, along axes as in tm_reduce_axes; f32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_moments(
    recording: Option<&tm_recording>,
    x: tm_value,
    axes: *const i32,
    axis_count: usize,
    keep: bool,
    mean: Option<&mut MaybeUninit<tm_value>>,
    variance: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    guard("tm_moments", || {
        let (mean, variance) = (given(mean, "mean")?, given(variance, "variance")?);
        let (mean, variance) = (mean.write(tm_value::NONE), variance.write(tm_value::NONE));
        let made = given(recording, "recording")?.record(|r, scope| {
            // SAFETY: contract 1.
            let x = unsafe { scope.operand(x, "x") }?;
            // SAFETY: contract 1.
            let axes = unsafe { several(axes, axis_count, keep) }?;
            let (mean, variance) = r.moments(x, axes)?;
            Ok(vec![mean, variance])
        })?;
        if let [first, second] = made[..] {
            (*mean, *variance) = (first, second);
        }
        Ok(())
    })
}

/// # Safety
///
/// Contract 1.
unsafe fn several(axes: *const i32, count: usize, keep: bool) -> Result<Axes, Failure> {
    // SAFETY: contract 1.
    let axes: &[i32] = unsafe { elements(axes, count, "axes") }?;
    let axes: Vec<isize> = axes.iter().map(|axis| *axis as isize).collect();
    let axes = Axes::of(&axes);
    Ok(if keep { axes.keep() } else { axes })
}

/// The sum of products of two vectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_dot(
    recording: Option<&tm_recording>,
    a: tm_value,
    b: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_dot", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let a = unsafe { scope.operand(a, "a") }?;
        // SAFETY: contract 1.
        let b = unsafe { scope.operand(b, "b") }?;
        Ok(r.dot(a, b)?)
    })
}

/// Softmax along an axis; negative ones count from the end; f32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_softmax(
    recording: Option<&tm_recording>,
    x: tm_value,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_softmax", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.softmax(unsafe { scope.operand(x, "x") }?, axis as isize)?)
    })
}

/// The logarithm of softmax.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_log_softmax(
    recording: Option<&tm_recording>,
    x: tm_value,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_log_softmax", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.log_softmax(unsafe { scope.operand(x, "x") }?, axis as isize)?)
    })
}
