//! Loops by index, as one writes them by hand.

use super::SIDE;
use crate::cases::Array;

/// Columns outside of the table are zeros.
pub(super) fn gather_columns(table: &[u32], columns: &[u32], out: &mut [u32]) {
    for (row, out) in table.chunks_exact(SIDE).zip(out.chunks_exact_mut(SIDE)) {
        for (out, &column) in out.iter_mut().zip(columns) {
            *out = row.get(column as usize).copied().unwrap_or(0);
        }
    }
}

pub(super) fn gather_elements(table: &[u32], rows: &[u32], out: &mut [u32]) {
    for (i, (out, &row)) in out.iter_mut().zip(rows).enumerate() {
        *out = if (row as usize) < SIDE { table[row as usize * SIDE + i % SIDE] } else { 0 };
    }
}

/// Elements of a cube of 64.
pub(super) fn gather_nd(table: &[u32], places: &[u32], out: &mut [u32]) {
    for (out, place) in out.iter_mut().zip(places.chunks_exact(3)) {
        let at = place.iter().fold(0, |at, &index| at * 64 + index as usize % 64);
        *out = if place.iter().all(|index| *index < 64) { table[at] } else { 0 };
    }
}

pub(super) fn scatter(x: &[Array], out: &mut Array, put: impl Fn(i32, i32) -> i32) {
    let out: &mut [i32] = out.of_mut();
    out.copy_from_slice(x[0].of());
    for (&index, &update) in x[1].of::<u32>().iter().zip(x[2].of::<i32>()) {
        if let Some(out) = out.get_mut(index as usize) {
            *out = put(*out, update);
        }
    }
}

/// Rows of sixteen.
pub(super) fn segment_sum(x: &[u32], ids: &[u32], out: &mut [u32]) {
    out.fill(0);
    for (row, &id) in x.chunks_exact(16).zip(ids) {
        let Some(sums) = out.get_mut(id as usize * 16..(id as usize + 1) * 16) else { continue };
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.wrapping_add(*x));
    }
}

pub(super) fn bins(x: &[u32], out: &mut [u32], weight: impl Fn(usize) -> u32) {
    out.fill(0);
    for (i, &number) in x.iter().enumerate() {
        if let Some(sum) = out.get_mut(number as usize) {
            *sum = sum.wrapping_add(weight(i));
        }
    }
}

pub(super) fn one_hot(x: &[u32], out: &mut [u32]) {
    out.fill(0);
    for (row, &class) in out.chunks_exact_mut(16).zip(x) {
        if let Some(out) = row.get_mut(class as usize) {
            *out = 1;
        }
    }
}

pub(super) fn running(x: &[Array], out: &mut Array, first: f32, join: impl Fn(f32, f32) -> f32) {
    let mut state = first;
    for (out, x) in out.of_mut::<f32>().iter_mut().zip(x[0].of::<f32>()) {
        state = join(state, *x);
        *out = state;
    }
}

/// From a NaN on, all are.
pub(super) fn running_max(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if b.total_cmp(&a).is_gt() {
        b
    } else {
        a
    }
}

pub(super) fn running_min(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if b.total_cmp(&a).is_lt() {
        b
    } else {
        a
    }
}

/// NaNs of either sign behind all else.
fn key(x: f32) -> i32 {
    let bits = x.to_bits() as i32;
    if x.is_nan() { i32::MAX } else { bits ^ ((bits >> 31) as u32 >> 1) as i32 }
}

pub(super) fn sort_rows(x: &[f32], out: &mut [f32]) {
    out.copy_from_slice(x);
    out.chunks_exact_mut(SIDE).for_each(|row| row.sort_unstable_by_key(|x| key(*x)));
}

pub(super) fn argsort(x: &[f32], out: &mut [u32]) {
    out.iter_mut().zip(0..).for_each(|(out, i)| *out = i);
    out.sort_by_key(|&i| key(x[i as usize]));
}

pub(super) fn sort_by_key(keys: &[u32], values: &[u32], out: &mut [u32]) {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_by_key(|&i| keys[i as usize]);
    out.iter_mut().zip(order).for_each(|(out, i)| *out = values[i as usize]);
}

/// The largest of each row, and behind all of them their places.
pub(super) fn topk(x: &[u32], out: &mut [u32], width: usize, k: usize) {
    let (largest, places) = out.split_at_mut(x.len() / width * k);
    let rows = x.chunks_exact(width).zip(largest.chunks_exact_mut(k).zip(places.chunks_exact_mut(k)));
    for (row, (largest, places)) in rows {
        let mut order: Vec<u32> = (0..width as u32).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(row[i as usize]));
        places.copy_from_slice(&order[..k]);
        largest.iter_mut().zip(order).for_each(|(out, i)| *out = row[i as usize]);
    }
}

pub(super) fn searchsorted(x: &[Array], out: &mut Array) {
    let list = x[0].of::<u32>();
    for (out, wanted) in out.of_mut::<u32>().iter_mut().zip(x[1].of::<u32>()) {
        *out = list.partition_point(|x| x < wanted) as u32;
    }
}

/// How many there are stands behind them.
pub(super) fn compact(x: &[u32], mask: &[u32], out: &mut [u32]) {
    out.fill(0);
    let mut count = 0;
    for (x, _) in x.iter().zip(mask).filter(|(_, wanted)| **wanted != 0) {
        out[count] = *x;
        count += 1;
    }
    out[x.len()] = count as u32;
}

pub(super) fn nonzero(x: &[u32], out: &mut [u32]) {
    out.fill(0);
    let mut count = 0;
    for (place, _) in x.iter().enumerate().filter(|(_, x)| **x != 0) {
        out[count] = place as u32;
        count += 1;
    }
    out[x.len()] = count as u32;
}

pub(super) fn unique(x: &[u32], out: &mut [u32]) {
    out.fill(0);
    let n = x.len();
    let mut values = x.to_vec();
    values.sort_unstable();
    values.dedup();
    out[..values.len()].copy_from_slice(&values);
    for (i, x) in x.iter().enumerate() {
        let place = values.partition_point(|v| v < x);
        out[n + place] += 1;
        out[2 * n + i] = place as u32;
    }
    out[3 * n] = values.len() as u32;
}
