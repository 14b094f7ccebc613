//! Moving elements: permute, slice, broadcast, concatenate, stack, pad, gather.

use smallvec::SmallVec;

use super::parallel::{self, LIGHT};
use super::view::{View, check_length};
use crate::error::{Error, Result};
use crate::shape::axes::resolve_axis;
use crate::shape::ranges::Ranges;
use crate::shape::{Element, MAX_RANK, Shape};

type Extents = SmallVec<[usize; MAX_RANK]>;

fn dense_strides(shape: &Shape) -> [usize; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut stride = 1;
    for (d, extent) in shape.dims().iter().enumerate().rev() {
        strides[d] = stride;
        stride *= extent;
    }
    strides
}

fn shape_of(op: &'static str, extents: &[usize]) -> Result<Shape> {
    Shape::new(extents).ok_or(Error::Rank { op, rank: extents.len() })
}

/// A copy of what strides and an offset select.
fn view<T: Element>(
    op: &'static str,
    x: &[T],
    shape: Shape,
    strides: [usize; MAX_RANK],
    offset: usize,
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
            let mut at = offset;
            for (d, extent) in outer.iter().enumerate().rev() {
                at += number % extent * strides[d];
                number /= extent;
            }
            match stride {
                1 => row.copy_from_slice(&x[at..at + width]),
                0 => row.fill(x[at]),
                _ => row.iter_mut().zip(x[at..].iter().step_by(stride)).for_each(|(to, from)| *to = *from),
            }
        }
    });
    Ok(shape)
}

/// [`Recording::permute`](crate::Recording::permute): dimension `i` of the result is dimension `order[i]` of the operand.
///
/// # Errors
///
/// [`Error::Permutation`] unless `order` names each dimension once, [`Error::Length`].
pub fn permute<'a, T: Element>(x: impl Into<View<'a, T>>, order: &[usize], out: &mut [T]) -> Result<Shape> {
    let op = "permute";
    let x = x.into().checked(op)?;
    let shape = x.shape();
    let mut seen = [false; MAX_RANK];
    let each_once = order.iter().all(|&d| d < shape.rank() && !std::mem::replace(&mut seen[d], true));
    if order.len() != shape.rank() || !each_once {
        return Err(Error::Permutation { op, order: order.to_vec(), shape });
    }
    let from = dense_strides(&shape);
    let mut strides = [0; MAX_RANK];
    let mut extents = Extents::new();
    for (i, &d) in order.iter().enumerate() {
        strides[i] = from[d];
        extents.push(shape.dims()[d]);
    }
    view(op, x.data(), shape_of(op, &extents)?, strides, 0, out)
}

/// [`Recording::transpose`](crate::Recording::transpose): the last two dimensions exchanged.
///
/// # Errors
///
/// [`Error::Permutation`] if there are fewer than two, [`Error::Length`].
pub fn transpose<'a, T: Element>(x: impl Into<View<'a, T>>, out: &mut [T]) -> Result<Shape> {
    let x = x.into();
    let rank = x.shape().rank().max(2);
    let mut order: Extents = (0..rank).collect();
    order.swap(rank - 1, rank - 2);
    permute(x, &order, out)
}

/// [`Recording::slice`](crate::Recording::slice): a box of the operand.
///
/// # Errors
///
/// [`Error::SliceRange`] if a range does not lie inside its dimension, [`Error::Length`].
pub fn slice<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    ranges: impl Into<Ranges>,
    out: &mut [T],
) -> Result<Shape> {
    let op = "slice";
    let x = x.into().checked(op)?;
    let shape = x.shape();
    let strides = dense_strides(&shape);
    let mut extents = Extents::from_slice(shape.dims());
    let mut offset = 0;
    for (d, range) in ranges.into().0.iter().enumerate() {
        let inside = extents.get(d).is_some_and(|&extent| range.start <= range.end && range.end <= extent);
        if !inside {
            return Err(Error::SliceRange { op, dimension: d, range: range.clone(), shape });
        }
        extents[d] = range.end - range.start;
        offset += strides[d] * range.start;
    }
    view(op, x.data(), shape_of(op, &extents)?, strides, offset, out)
}

/// [`Recording::broadcast_to`](crate::Recording::broadcast_to): the operand repeated to a larger shape.
///
/// # Errors
///
/// [`Error::Shapes`] if a dimension can't be stretched, [`Error::Length`].
pub fn broadcast_to<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    shape: impl Into<Shape>,
    out: &mut [T],
) -> Result<Shape> {
    let (op, to) = ("broadcast_to", shape.into());
    let x = x.into().checked(op)?;
    let from = x.shape();
    let refuse = |why| Err(Error::Shapes { op, lhs: from, rhs: to, why });
    if from.rank() > to.rank() {
        return refuse(format!("rank {} can't become {}", from.rank(), to.rank()));
    }
    let added = to.rank() - from.rank();
    let mut strides = [0; MAX_RANK];
    for (d, (&extent, stride)) in from.dims().iter().zip(dense_strides(&from)).enumerate() {
        let wanted = to.dims()[added + d];
        if extent == wanted {
            strides[added + d] = stride;
        } else if extent != 1 {
            return refuse(format!("{extent} can't be stretched to {wanted} in dimension {}", added + d));
        }
    }
    view(op, x.data(), to, strides, 0, out)
}

/// [`Recording::concat`](crate::Recording::concat): the operands one after the other along `axis`.
///
/// # Errors
///
/// [`Error::Axis`], [`Error::Shapes`], [`Error::Length`]; [`Error::NoOperands`] if there are none.
pub fn concat<T: Element>(operands: &[View<'_, T>], axis: isize, out: &mut [T]) -> Result<Shape> {
    concat_as("concat", operands, axis, out)
}

fn concat_as<T: Element>(
    op: &'static str,
    operands: &[View<'_, T>],
    axis: isize,
    out: &mut [T],
) -> Result<Shape> {
    let shape = operands.first().ok_or(Error::NoOperands { op })?.shape();
    let axis = resolve_axis(op, axis, shape.rank())?;
    let mut extents = Extents::from_slice(shape.dims());
    extents[axis] = 0;
    for operand in operands {
        let other = operand.checked(op)?.shape();
        let agrees = other.rank() == shape.rank()
            && (0..shape.rank()).all(|d| d == axis || other.dims()[d] == shape.dims()[d]);
        if !agrees {
            let why = format!("they must agree in all dimensions but {axis}");
            return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
        }
        extents[axis] += other.dims()[axis];
    }
    let whole = shape_of(op, &extents)?;
    check_length(op, whole, out.len())?;
    let width: usize = extents[axis..].iter().product();
    parallel::rows(out, width, width, LIGHT, |first, out| {
        for (i, mut row) in out.chunks_mut(width.max(1)).enumerate() {
            for operand in operands {
                let own: usize = operand.shape().dims()[axis..].iter().product();
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
/// As [`concat()`], and [`Error::Rank`] if the result would have too many dimensions.
pub fn stack<T: Element>(operands: &[View<'_, T>], axis: isize, out: &mut [T]) -> Result<Shape> {
    let op = "stack";
    let shape = operands.first().ok_or(Error::NoOperands { op })?.shape();
    let at = resolve_axis(op, axis, shape.rank() + 1)?;
    let mut extents: SmallVec<[usize; 8]> = SmallVec::from_slice(shape.dims());
    extents.insert(at, 1);
    let single = shape_of(op, &extents)?;
    let mut reshaped: SmallVec<[View<'_, T>; 8]> = SmallVec::new();
    for operand in operands {
        let other = operand.checked(op)?.shape();
        if other != shape {
            let why = "they must have one shape".to_owned();
            return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
        }
        reshaped.push(View::new(operand.data(), single));
    }
    concat_as(op, &reshaped, at as isize, out)
}

/// [`Recording::pad`](crate::Recording::pad): the operand with `before` and `after` more elements around it.
///
/// # Errors
///
/// [`Error::PadRank`] unless there is a pair for each dimension, [`Error::Length`].
pub fn pad<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    pads: &[(usize, usize)],
    element: T,
    out: &mut [T],
) -> Result<Shape> {
    let op = "pad";
    let x = x.into().checked(op)?;
    let shape = x.shape();
    if pads.len() != shape.rank() {
        return Err(Error::PadRank { op, pads: pads.len(), shape });
    }
    let extents: Extents = shape
        .dims()
        .iter()
        .zip(pads)
        .map(|(extent, (before, after))| extent.saturating_add(*before).saturating_add(*after))
        .collect();
    let whole = shape_of(op, &extents)?;
    check_length(op, whole, out.len())?;
    out.fill(element);
    let width = shape.dims().last().copied().unwrap_or(1);
    let strides = dense_strides(&whole);
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

/// [`Recording::gather_rows`](crate::Recording::gather_rows): rows of `table` by their numbers; a row of zeros for a number
/// outside of it.
///
/// # Errors
///
/// [`Error::Axis`] if the table is a scalar; [`Error::Rank`], [`Error::Length`].
pub fn gather_rows<'a, T: Element>(
    table: impl Into<View<'a, T>>,
    rows: impl Into<View<'a, u32>>,
    out: &mut [T],
) -> Result<Shape> {
    let op = "gather_rows";
    let (table, rows) = (table.into().checked(op)?, rows.into().checked(op)?);
    let shape = table.shape();
    resolve_axis(op, 0, shape.rank())?;
    let (height, row) = (shape.dims()[0], &shape.dims()[1..]);
    let extents: SmallVec<[usize; 8]> = rows.shape().dims().iter().chain(row).copied().collect();
    let whole = shape_of(op, &extents)?;
    check_length(op, whole, out.len())?;
    let width: usize = row.iter().product();
    parallel::rows(out, width, width, LIGHT, |first, out| {
        for (to, &number) in out.chunks_mut(width.max(1)).zip(&rows.data()[first..]) {
            let number = number as usize;
            if number < height {
                to.copy_from_slice(&table.data()[number * width..][..width]);
            } else {
                to.fill(T::zeroed());
            }
        }
    });
    Ok(whole)
}
