//! Reading and writing by index.

use std::mem::MaybeUninit;

use crate::recording::{record, tm_recording, tm_value};
use crate::status::{Failure, tm_status};

/// How an update is combined with the element that its index names: TM_SCATTER_SET and so on.
pub type tm_scatter_op = u32;
/// Replaces it; of several updates of one place the last one counts.
pub const TM_SCATTER_SET: tm_scatter_op = 0;
/// Is added to it; i32 and u32.
pub const TM_SCATTER_ADD: tm_scatter_op = 1;
/// The larger of the two.
pub const TM_SCATTER_MAX: tm_scatter_op = 2;
/// The smaller of the two.
pub const TM_SCATTER_MIN: tm_scatter_op = 3;

/// Slices along an axis by their indices, which are u32 or i32: the indices' dimensions take the place of the axis. An
/// index outside gives zeros. Negative axes count from the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_gather(
    recording: Option<&tm_recording>,
    x: tm_value,
    indices: tm_value,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_gather", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let indices = unsafe { scope.operand(indices, "indices") }?;
        Ok(r.gather(x, indices, axis as isize)?)
    })
}

/// One element for each index, from the index's own place in all dimensions but the axis. The indices have the shape of
/// x, but for the axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_gather_elements(
    recording: Option<&tm_recording>,
    x: tm_value,
    indices: tm_value,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_gather_elements", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let indices = unsafe { scope.operand(indices, "indices") }?;
        Ok(r.gather_elements(x, indices, axis as isize)?)
    })
}

/// Slices by rows of indices: the last dimension of the indices has one for each of the first dimensions of x.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_gather_nd(
    recording: Option<&tm_recording>,
    x: tm_value,
    indices: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_gather_nd", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let indices = unsafe { scope.operand(indices, "indices") }?;
        Ok(r.gather_nd(x, indices)?)
    })
}

/// Slices of x along an axis updated. The updates have the shape that tm_gather gives with these indices; those with an
/// index outside are dropped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_scatter(
    recording: Option<&tm_recording>,
    op: tm_scatter_op,
    x: tm_value,
    indices: tm_value,
    updates: tm_value,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_scatter", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let indices = unsafe { scope.operand(indices, "indices") }?;
        // SAFETY: contract 1.
        let updates = unsafe { scope.operand(updates, "updates") }?;
        let axis = axis as isize;
        let value = match op {
            TM_SCATTER_SET => r.scatter(x, indices, updates, axis),
            TM_SCATTER_ADD => r.scatter_add(x, indices, updates, axis),
            TM_SCATTER_MAX => r.scatter_max(x, indices, updates, axis),
            TM_SCATTER_MIN => r.scatter_min(x, indices, updates, axis),
            other => return Err(Failure::unknown("op", other)),
        };
        Ok(value?)
    })
}

/// Sums of slices along the first axis by the ids of their segments; an id that is not below `segments` drops its
/// slice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_segment_sum(
    recording: Option<&tm_recording>,
    x: tm_value,
    ids: tm_value,
    segments: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_segment_sum", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let ids = unsafe { scope.operand(ids, "ids") }?;
        Ok(r.segment_sum(x, ids, segments)?)
    })
}

/// How often each number below `bins` occurs, as u32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_bincount(
    recording: Option<&tm_recording>,
    x: tm_value,
    bins: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_bincount", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.bincount(unsafe { scope.operand(x, "x") }?, bins)?)
    })
}

/// The sum of the weights of each number below `bins`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_bincount_weighted(
    recording: Option<&tm_recording>,
    x: tm_value,
    weights: tm_value,
    bins: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_bincount_weighted", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let weights = unsafe { scope.operand(weights, "weights") }?;
        Ok(r.bincount_weighted(x, weights, bins)?)
    })
}

/// A row of `classes` elements for each index, with a one at the index and zeros elsewhere, as u32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_one_hot(
    recording: Option<&tm_recording>,
    indices: tm_value,
    classes: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_one_hot", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.one_hot(unsafe { scope.operand(indices, "indices") }?, classes)?)
    })
}

/// How many of the indices lie outside an axis of this extent, as a u32 scalar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_count_outside(
    recording: Option<&tm_recording>,
    indices: tm_value,
    extent: usize,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_count_outside", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.count_outside(unsafe { scope.operand(indices, "indices") }?, extent)?)
    })
}
