//! Scans and sorts.

use std::mem::MaybeUninit;

use tidemill::args::{Along, Sort};
use tidemill::{Recording, Value};

use crate::arguments::given;
use crate::recording::{Scope, record, tm_recording, tm_value};
use crate::status::{Failure, guard, tm_status};

/// A scan: TM_CUMSUM and so on.
pub type tm_scan_op = u32;
/// Running sums.
pub const TM_CUMSUM: tm_scan_op = 0;
/// Running products.
pub const TM_CUMPROD: tm_scan_op = 1;
/// The largest element so far.
pub const TM_CUMMAX: tm_scan_op = 2;
/// The smallest element so far.
pub const TM_CUMMIN: tm_scan_op = 3;

/// The order along an axis.
fn order(axis: i32, descending: bool) -> Sort {
    let how = Sort::along(axis as isize);
    if descending { how.descending() } else { how }
}

/// Records an operation with several results.
fn record_all<const N: usize>(
    call: &str,
    recording: Option<&tm_recording>,
    outs: [(&'static str, Option<&mut MaybeUninit<tm_value>>); N],
    op: impl FnOnce(&Recording, &Scope<'_>) -> Result<[Value; N], Failure>,
) -> tm_status {
    guard(call, || {
        let mut places = Vec::with_capacity(N);
        for (name, out) in outs {
            places.push(given(out, name)?.write(tm_value::NONE));
        }
        let made = given(recording, "recording")?.record(|r, scope| Ok(op(r, scope)?.to_vec()))?;
        places.into_iter().zip(made).for_each(|(place, value)| *place = value);
        Ok(())
    })
}

/// A scan along an axis; negative ones count from the end. An exclusive one leaves the element at each result's own
/// place out; a reverse one begins at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_scan(
    recording: Option<&tm_recording>,
    op: tm_scan_op,
    x: tm_value,
    axis: i32,
    exclusive: bool,
    reverse: bool,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_scan", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        let along = Along::axis(axis as isize);
        let along = if exclusive { along.exclusive() } else { along };
        let along = if reverse { along.reverse() } else { along };
        let value = match op {
            TM_CUMSUM => r.cumsum(x, along),
            TM_CUMPROD => r.cumprod(x, along),
            TM_CUMMAX => r.cummax(x, along),
            TM_CUMMIN => r.cummin(x, along),
            other => return Err(Failure::unknown("op", other)),
        };
        Ok(value?)
    })
}

/// The elements in order along an axis. Equal ones keep their order; a NaN is larger than all numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_sort(
    recording: Option<&tm_recording>,
    x: tm_value,
    axis: i32,
    descending: bool,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_sort", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.sort(unsafe { scope.operand(x, "x") }?, order(axis, descending))?)
    })
}

/// The places along an axis that the elements in order come from, as u32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_argsort(
    recording: Option<&tm_recording>,
    x: tm_value,
    axis: i32,
    descending: bool,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_argsort", recording, out, |r, scope| {
        // SAFETY: contract 1.
        Ok(r.argsort(unsafe { scope.operand(x, "x") }?, order(axis, descending))?)
    })
}

/// The keys in order along an axis, and the values in the order of their keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_sort_by_key(
    recording: Option<&tm_recording>,
    keys: tm_value,
    values: tm_value,
    axis: i32,
    descending: bool,
    out_keys: Option<&mut MaybeUninit<tm_value>>,
    out_values: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    let outs = [("out_keys", out_keys), ("out_values", out_values)];
    record_all("tm_sort_by_key", recording, outs, |r, scope| {
        // SAFETY: contract 1.
        let keys = unsafe { scope.operand(keys, "keys") }?;
        // SAFETY: contract 1.
        let values = unsafe { scope.operand(values, "values") }?;
        Ok(r.sort_by_key(keys, values, order(axis, descending))?.into())
    })
}

/// The k largest elements along an axis, the largest first, and their places as u32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_topk(
    recording: Option<&tm_recording>,
    x: tm_value,
    k: usize,
    axis: i32,
    out: Option<&mut MaybeUninit<tm_value>>,
    out_places: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record_all("tm_topk", recording, [("out", out), ("out_places", out_places)], |r, scope| {
        // SAFETY: contract 1.
        Ok(r.topk(unsafe { scope.operand(x, "x") }?, k, axis as isize)?.into())
    })
}

/// For each value, how many elements of a sorted list come before it, as u32; with `behind`, how many are not above it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_searchsorted(
    recording: Option<&tm_recording>,
    sorted: tm_value,
    values: tm_value,
    behind: bool,
    out: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record("tm_searchsorted", recording, out, |r, scope| {
        // SAFETY: contract 1.
        let sorted = unsafe { scope.operand(sorted, "sorted") }?;
        // SAFETY: contract 1.
        let values = unsafe { scope.operand(values, "values") }?;
        Ok(r.searchsorted(sorted, values, behind)?)
    })
}

/// The slices along the first axis whose mask is not zero, one behind the other and zeros behind them, and how many
/// there are as a u32 scalar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_compact(
    recording: Option<&tm_recording>,
    x: tm_value,
    mask: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
    out_count: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record_all("tm_compact", recording, [("out", out), ("out_count", out_count)], |r, scope| {
        // SAFETY: contract 1.
        let x = unsafe { scope.operand(x, "x") }?;
        // SAFETY: contract 1.
        let mask = unsafe { scope.operand(mask, "mask") }?;
        Ok(r.compact(x, mask)?.into())
    })
}

/// The places of the elements that are not zero, counted through the whole tensor, with zeros behind them, and how many
/// there are as a u32 scalar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_nonzero(
    recording: Option<&tm_recording>,
    x: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
    out_count: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    record_all("tm_nonzero", recording, [("out", out), ("out_count", out_count)], |r, scope| {
        // SAFETY: contract 1.
        Ok(r.nonzero(unsafe { scope.operand(x, "x") }?)?.into())
    })
}

/// The different elements in ascending order and how often each occurs, with zeros behind them; for each element of x
/// its place among them; and how many different ones there are as a u32 scalar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_unique(
    recording: Option<&tm_recording>,
    x: tm_value,
    out: Option<&mut MaybeUninit<tm_value>>,
    out_counts: Option<&mut MaybeUninit<tm_value>>,
    out_inverse: Option<&mut MaybeUninit<tm_value>>,
    out_count: Option<&mut MaybeUninit<tm_value>>,
) -> tm_status {
    let outs =
        [("out", out), ("out_counts", out_counts), ("out_inverse", out_inverse), ("out_count", out_count)];
    record_all("tm_unique", recording, outs, |r, scope| {
        // SAFETY: contract 1.
        let unique = r.unique(unsafe { scope.operand(x, "x") }?)?;
        Ok([unique.values, unique.counts, unique.inverse, unique.count])
    })
}
