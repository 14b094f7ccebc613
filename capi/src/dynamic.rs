//! Arguments of plans, and operations whose place or length they are.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use crate::arguments::{Scalar, dtype, given, text, tm_dtype, with_type};
use crate::plan::tm_plan;
use crate::recording::{record, tm_recording, tm_value};
use crate::status::{guard, tm_status};
use crate::tensor::tm_tensor;

/// Declares a number of type TM_F32, TM_I32 or TM_U32, from `least` to `most`, that the recording's plan is given by
/// tm_plan_set_argument, and that may be another one for each submission. It is an operand of shape [], as a scalar is.
/// Each has a name of its own. Only a plan has arguments: tm_end_recording refuses a recording that declared one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_declare_argument(
    recording: Option<&tm_recording>,
    name: *const c_char,
    element: tm_dtype,
    least: f64,
    most: f64,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_declare_argument", recording, out, |r, _| {
        // SAFETY: contracts 1 and 3.
        let name = given(unsafe { text(name, "name") }?, "name")?;
        Ok(r.argument_of(name, dtype(element)?, least..=most)?)
    })
}

/// Sets an argument of a plan for the submissions from now on, until it is set again; those in flight keep what they
/// were given. Nothing is encoded again. A number outside of the range that was declared is TM_PARAMETER, and changes
/// nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_plan_set_argument(
    plan: Option<&tm_plan>,
    name: *const c_char,
    number: f64,
) -> tm_status {
    guard("tm_plan_set_argument", || {
        // SAFETY: contracts 1 and 3.
        let name = given(unsafe { text(name, "name") }?, "name")?;
        Ok(given(plan, "plan")?.lock()?.set_named(name, number)?)
    })
}

/// `length` elements along an axis, from `start` on: an argument, or another value of one element, u32 or i32. An
/// argument's range must keep the part inside; of any other value, elements outside are zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_slice_at(
    recording: Option<&tm_recording>,
    x: tm_value,
    axis: i32,
    start: tm_value,
    length: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_slice_at", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let start = unsafe { scope.operand(start, "start") }?;
        Ok(r.slice_at(x, axis as isize, start, length)?)
    })
}

/// Writes a value to a part of an existing tensor, in place: as many elements along the axis as the value has, from
/// `start` on, which is as in tm_slice_at. What was recorded before reads the old contents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_update_at(
    recording: Option<&tm_recording>,
    tensor: Option<&tm_tensor>,
    axis: i32,
    start: tm_value,
    x: tm_value,
) -> tm_status {
    guard("tm_update_at", || {
        let tensor = given(tensor, "tensor")?;
        given(recording, "recording")?.record(|r, scope| {
            // SAFETY: contract 1.
            let x = unsafe { scope.operand(x, "x") }?;
            // SAFETY: contract 1.
            let start = unsafe { scope.operand(start, "start") }?;
            r.update_at(&tensor.tensor, axis as isize, start, x)?;
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

/// With `outside` in the place of all elements whose index along the axis is `length` or more: an argument, or another
/// value of one element, u32 or i32. With 0 a sum, with -INFINITY a softmax or a largest element is of the first
/// `length` elements alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_mask_from(
    recording: Option<&tm_recording>,
    x: tm_value,
    axis: i32,
    length: tm_value,
    outside: f64,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_mask_from", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let length = unsafe { scope.operand(length, "length") }?;
        with_type!(r.dtype(x)?, T => Ok(r.mask_from(x, axis as isize, length, T::from_number(outside)?)?))
    })
}
