//! Moving elements: permute, slice, broadcast, concatenate, stack, pad, gather.

use smallvec::SmallVec;

use super::parallel::{self, LIGHT};
use super::view::{View, check_length};
use crate::error::Result;
use crate::shape::layout::{self, Strided};
use crate::shape::ranges::Ranges;
use crate::shape::{Element, Shape, product};

/// A copy of what strides and an offset select.
fn view<T: Element>(
    op: &'static str,
    x: &[T],
    Strided { shape, strides, offset }: Strided,
    out: &mut [T],
) -> Result<Shape> {
    check_length(op, shape, out.len())?;
    if out.is_empty() {
        return Ok(shape);
    }
    let (outer, width, stride) = match shape.dims() {
        [] => (&[][..], 1, 1),
        [outer @ .., width] => (outer, *width, strides[outer.len()]),
    };
    parallel::rows(out, width, width, LIGHT, |first, out| {
        for (i, row) in out.chunks_mut(width).enumerate() {
            let mut number = first + i;
            // Strides may be negative, and wrap.
            let mut at = offset;
            for (d, extent) in outer.iter().enumerate().rev() {
                at = at.wrapping_add((number % extent).wrapping_mul(strides[d]));
                number /= extent;
            }
            match stride {
                1 => row.copy_from_slice(&x[at..at + width]),
                0 => row.fill(x[at]),
                _ => {
                    for (i, to) in row.iter_mut().enumerate() {
                        *to = x[at.wrapping_add(i.wrapping_mul(stride))];
                    }
                }
            }
        }
    });
    Ok(shape)
}

/// [`Recording::permute`](crate::Recording::permute): dimension `i` of the result is dimension `order[i]` of the
/// operand.
///
/// # Errors
///
/// [`Error::Permutation`](crate::Error::Permutation) unless `order` names each dimension once,
/// [`Error::Length`](crate::Error::Length).
pub fn permute<'a, T: Element>(x: impl Into<View<'a, T>>, order: &[usize], out: &mut [T]) -> Result<Shape> {
    let op = "permute";
    let x = x.into().checked(op)?;
    view(op, x.data(), layout::permute(op, x.shape(), order)?, out)
}

/// [`Recording::transpose`](crate::Recording::transpose): the last two dimensions exchanged.
///
/// # Errors
///
/// [`Error::Permutation`](crate::Error::Permutation) if there are fewer than two,
/// [`Error::Length`](crate::Error::Length).
pub fn transpose<'a, T: Element>(x: impl Into<View<'a, T>>, out: &mut [T]) -> Result<Shape> {
    let op = "transpose";
    let x = x.into().checked(op)?;
    let order = layout::transposed(x.shape().rank());
    view(op, x.data(), layout::permute(op, x.shape(), &order)?, out)
}

/// [`Recording::slice`](crate::Recording::slice): a box of the operand.
///
/// # Errors
///
/// [`Error::SliceRange`](crate::Error::SliceRange) if a range does not lie inside its dimension,
/// [`Error::Length`](crate::Error::Length).
pub fn slice<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    ranges: impl Into<Ranges>,
    out: &mut [T],
) -> Result<Shape> {
    let op = "slice";
    let x = x.into().checked(op)?;
    view(op, x.data(), layout::slice(x.shape(), &ranges.into())?, out)
}

/// [`Recording::slice_step`](crate::Recording::slice_step): a box with steps.
///
/// # Errors
///
/// Those of [`slice()`], and [`Error::Parameter`](crate::Error::Parameter) if a step is 0 or there are more than
/// dimensions.
pub fn slice_step<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    ranges: impl Into<Ranges>,
    steps: &[isize],
    out: &mut [T],
) -> Result<Shape> {
    let op = "slice_step";
    let x = x.into().checked(op)?;
    view(op, x.data(), layout::slice_step(x.shape(), &ranges.into(), steps)?, out)
}

/// [`Recording::broadcast_to`](crate::Recording::broadcast_to): the operand repeated to a larger shape.
///
/// # Errors
///
/// [`Error::Shapes`](crate::Error::Shapes) if a dimension can't be stretched, [`Error::Length`](crate::Error::Length).
pub fn broadcast_to<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    shape: impl Into<Shape>,
    out: &mut [T],
) -> Result<Shape> {
    let op = "broadcast_to";
    let x = x.into().checked(op)?;
    view(op, x.data(), layout::broadcast_to(x.shape(), shape.into())?, out)
}

/// [`Recording::concat`](crate::Recording::concat): the operands one after the other along `axis`.
///
/// # Errors
///
/// [`Error::Axis`](crate::Error::Axis), [`Error::Shapes`](crate::Error::Shapes),
/// [`Error::Length`](crate::Error::Length); [`Error::NoOperands`](crate::Error::NoOperands) if there are none.
pub fn concat<T: Element>(operands: &[View<'_, T>], axis: isize, out: &mut [T]) -> Result<Shape> {
    concat_as("concat", operands, axis, out)
}

fn checked_shapes<T: Element>(op: &'static str, operands: &[View<'_, T>]) -> Result<SmallVec<[Shape; 8]>> {
    operands.iter().map(|operand| Ok(operand.checked(op)?.shape())).collect()
}

fn concat_as<T: Element>(
    op: &'static str,
    operands: &[View<'_, T>],
    axis: isize,
    out: &mut [T],
) -> Result<Shape> {
    let shapes = checked_shapes(op, operands)?;
    let (whole, axis) = layout::concat(op, &shapes, axis)?;
    check_length(op, whole, out.len())?;
    let width = product(&whole.dims()[axis..]);
    parallel::rows(out, width, width, LIGHT, |first, out| {
        for (i, mut row) in out.chunks_mut(width.max(1)).enumerate() {
            for operand in operands {
                let own = product(&operand.shape().dims()[axis..]);
                let (to, rest) = row.split_at_mut(own);
                to.copy_from_slice(&operand.data()[(first + i) * own..][..own]);
                row = rest;
            }
        }
    });
    Ok(whole)
}

/// [`Recording::stack`](crate::Recording::stack): the operands, all of one shape, side by side along a new dimension.
///
/// # Errors
///
/// As [`concat()`], and [`Error::Rank`](crate::Error::Rank) if the result would have too many dimensions.
pub fn stack<T: Element>(operands: &[View<'_, T>], axis: isize, out: &mut [T]) -> Result<Shape> {
    let op = "stack";
    let (single, axis) = layout::stack(&checked_shapes(op, operands)?, axis)?;
    let reshaped: SmallVec<[View<'_, T>; 8]> =
        operands.iter().map(|operand| View::new(operand.data(), single)).collect();
    concat_as(op, &reshaped, axis as isize, out)
}

/// [`Recording::pad`](crate::Recording::pad): the operand with `before` and `after` more elements around it.
///
/// # Errors
///
/// [`Error::PadRank`](crate::Error::PadRank) unless there is a pair for each dimension,
/// [`Error::Length`](crate::Error::Length).
pub fn pad<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    pads: &[(usize, usize)],
    element: T,
    out: &mut [T],
) -> Result<Shape> {
    let op = "pad";
    let x = x.into().checked(op)?;
    let shape = x.shape();
    let whole = layout::pad(shape, pads)?;
    check_length(op, whole, out.len())?;
    out.fill(element);
    let width = shape.dims().last().copied().unwrap_or(1);
    let strides = layout::dense_strides(&whole);
    if !x.data().is_empty() {
        for (number, row) in x.data().chunks(width).enumerate() {
            let mut rest = number * width;
            let mut at = 0;
            for d in (0..shape.rank()).rev() {
                at += (rest % shape.dims()[d] + pads[d].0) * strides[d];
                rest /= shape.dims()[d];
            }
            out[at..at + width].copy_from_slice(row);
        }
    }
    Ok(whole)
}

/// [`Recording::gather_rows`](crate::Recording::gather_rows): rows of `table` by their numbers; a row of zeros for a
/// number outside of it.
///
/// # Errors
///
/// [`Error::Axis`](crate::Error::Axis) if the table is a scalar; [`Error::Rank`](crate::Error::Rank),
/// [`Error::Length`](crate::Error::Length).
pub fn gather_rows<'a, T: Element>(
    table: impl Into<View<'a, T>>,
    rows: impl Into<View<'a, u32>>,
    out: &mut [T],
) -> Result<Shape> {
    let op = "gather_rows";
    let (table, rows) = (table.into().checked(op)?, rows.into().checked(op)?);
    let shape = table.shape();
    let (whole, _) = layout::gather(op, shape, rows.shape(), 0)?;
    let (height, row) = (shape.dims()[0], &shape.dims()[1..]);
    check_length(op, whole, out.len())?;
    rows_by(table.data(), product(row), out, |row| {
        let number = rows.data()[row] as usize;
        (number < height).then_some(number)
    });
    Ok(whole)
}

/// Rows of a table, each of which `source` names by its number in the result; zeros where it names none.
pub(super) fn rows_by<T: Element>(
    table: &[T],
    width: usize,
    out: &mut [T],
    source: impl Fn(usize) -> Option<usize> + Sync + Send,
) {
    parallel::rows(out, width, width, LIGHT, |first, out| {
        for (i, to) in out.chunks_mut(width.max(1)).enumerate() {
            match source(first + i) {
                Some(row) => to.copy_from_slice(&table[row * width..][..width]),
                None => to.fill(T::zeroed()),
            }
        }
    });
}
