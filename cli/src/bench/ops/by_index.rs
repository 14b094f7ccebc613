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
