//! Sorting, searching, and packing what is wanted.

use std::cmp::Reverse;

use super::number::Number;
use super::view::{View, check_length};
use crate::error::{Error, Result};
use crate::shape::along::Sort;
use crate::shape::axes::{Geometry, resolve_axis};
use crate::shape::{Element, Shape};

/// Calls `f` with the places of each line along the axis, in the order of its elements.
fn each_line<T: Number>(
    op: &'static str,
    x: View<'_, T>,
    how: Sort,
    mut f: impl FnMut(&[usize], Geometry),
) -> Result<usize> {
    let (axis, descending) = how.parts();
    let axis = resolve_axis(op, axis, x.shape().rank())?;
    let geometry = Geometry::along(&x.shape(), axis);
    let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
    if x.data().is_empty() {
        return Ok(axis);
    }
    let mut places = Vec::with_capacity(extent);
    for line in 0..geometry.results() as usize {
        let first = line / inner * extent * inner + line % inner;
        places.clear();
        places.extend((0..extent).map(|k| first + k * inner));
        let key = |&at: &usize| x.data()[at].key_for_max();
        if descending {
            places.sort_by_key(|at| Reverse(key(at)));
        } else {
            places.sort_by_key(key);
        }
        f(&places, geometry);
    }
    Ok(axis)
}

/// The place of an element along the axis.
fn along(at: usize, geometry: Geometry) -> u32 {
    (at / geometry.inner as usize % geometry.extent as usize) as u32
}

/// The place in the result of the element that is `rank`th in its line.
fn ranked(places: &[usize], rank: usize, geometry: Geometry) -> usize {
    let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
    let any = places[0];
    any / (extent * inner) * extent * inner + rank * inner + any % inner
}

/// [`Recording::sort`](crate::Recording::sort): the elements in order along an axis.
///
/// # Errors
///
/// [`Error::Axis`], [`Error::Length`].
pub fn sort<'a, T: Number>(x: impl Into<View<'a, T>>, how: impl Into<Sort>, out: &mut [T]) -> Result<Shape> {
    let op = "sort";
    let x = x.into().checked(op)?;
    check_length(op, x.shape(), out.len())?;
    each_line(op, x, how.into(), |places, geometry| {
        for (rank, &at) in places.iter().enumerate() {
            out[ranked(places, rank, geometry)] = T::from_key(x.data()[at].key_for_max());
        }
    })?;
    Ok(x.shape())
}

/// [`Recording::argsort`](crate::Recording::argsort): the places along an axis that the elements in order come from.
///
/// # Errors
///
/// Those of [`sort`].
pub fn argsort<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    how: impl Into<Sort>,
    out: &mut [u32],
) -> Result<Shape> {
    let op = "argsort";
    let x = x.into().checked(op)?;
    check_length(op, x.shape(), out.len())?;
    each_line(op, x, how.into(), |places, geometry| {
        for (rank, &at) in places.iter().enumerate() {
            out[ranked(places, rank, geometry)] = along(at, geometry);
        }
    })?;
    Ok(x.shape())
}

/// [`Recording::sort_by_key`](crate::Recording::sort_by_key): the keys in order along an axis, and the values in the
/// order of their keys.
///
/// # Errors
///
/// [`Error::Shapes`] if the shapes differ; otherwise those of [`sort`].
pub fn sort_by_key<'a, K: Number, T: Element>(
    keys: impl Into<View<'a, K>>,
    values: impl Into<View<'a, T>>,
    how: impl Into<Sort>,
    out_keys: &mut [K],
    out_values: &mut [T],
) -> Result<Shape> {
    let op = "sort_by_key";
    let (keys, values) = (keys.into().checked(op)?, values.into().checked(op)?);
    if keys.shape() != values.shape() {
        let why = "there must be a value for each key".to_owned();
        return Err(Error::Shapes { op, lhs: keys.shape(), rhs: values.shape(), why });
    }
    check_length(op, keys.shape(), out_keys.len())?;
    check_length(op, keys.shape(), out_values.len())?;
    each_line(op, keys, how.into(), |places, geometry| {
        for (rank, &at) in places.iter().enumerate() {
            let to = ranked(places, rank, geometry);
            out_keys[to] = K::from_key(keys.data()[at].key_for_max());
            out_values[to] = values.data()[at];
        }
    })?;
    Ok(keys.shape())
}

/// [`Recording::topk`](crate::Recording::topk): the k largest elements along an axis, and their places.
///
/// # Errors
///
/// [`Error::Parameter`] if the axis has fewer than k elements; otherwise those of [`sort`].
pub fn topk<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    k: usize,
    axis: isize,
    out: &mut [T],
    out_places: &mut [u32],
) -> Result<Shape> {
    let op = "topk";
    let x = x.into().checked(op)?;
    let at = resolve_axis(op, axis, x.shape().rank())?;
    let extent = x.shape().dims()[at];
    if k > extent {
        let rule = format!("be at most {extent}, the extent of axis {at} of {}", x.shape());
        return Err(Error::Parameter { op, name: "k", value: k as f64, rule });
    }
    let mut dims: smallvec::SmallVec<[usize; 4]> = x.shape().dims().into();
    dims[at] = k;
    let shape = Shape::new(&dims).unwrap_or_default();
    check_length(op, shape, out.len())?;
    check_length(op, shape, out_places.len())?;
    each_line(op, x, Sort::along(axis).descending(), |places, geometry| {
        let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
        let begin = places[0] / (extent * inner) * k * inner + places[0] % inner;
        for (rank, &at) in places.iter().take(k).enumerate() {
            out[begin + rank * inner] = T::from_key(x.data()[at].key_for_max());
            out_places[begin + rank * inner] = along(at, geometry);
        }
    })?;
    Ok(shape)
}

/// [`Recording::searchsorted`](crate::Recording::searchsorted): for each value, how many elements of a sorted list come
/// before it, or are not above it.
///
/// # Errors
///
/// [`Error::Shapes`] if the list has another rank than 1, [`Error::Length`].
pub fn searchsorted<'a, T: Number>(
    sorted: impl Into<View<'a, T>>,
    values: impl Into<View<'a, T>>,
    behind: bool,
    out: &mut [u32],
) -> Result<Shape> {
    let op = "searchsorted";
    let (sorted, values) = (sorted.into().checked(op)?, values.into().checked(op)?);
    if sorted.shape().rank() != 1 {
        let why = format!("the sorted list must have rank 1, not {}", sorted.shape().rank());
        return Err(Error::Shapes { op, lhs: sorted.shape(), rhs: values.shape(), why });
    }
    check_length(op, values.shape(), out.len())?;
    for (out, value) in out.iter_mut().zip(values.data()) {
        let key = value.key_for_max();
        let before = |x: &T| if behind { x.key_for_max() <= key } else { x.key_for_max() < key };
        *out = sorted.data().partition_point(before) as u32;
    }
    Ok(values.shape())
}

/// [`Recording::compact`](crate::Recording::compact): the slices along the first axis whose mask is not zero, and zeros
/// behind them; how many there are.
///
/// # Errors
///
/// [`Error::Shapes`] unless the mask has an element for each slice, [`Error::Axis`], [`Error::Length`].
pub fn compact<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    mask: impl Into<View<'a, u32>>,
    out: &mut [T],
) -> Result<usize> {
    let op = "compact";
    let (x, mask) = (x.into().checked(op)?, mask.into().checked(op)?);
    let shape = x.shape();
    resolve_axis(op, 0, shape.rank())?;
    if mask.shape().dims() != &shape.dims()[..1] {
        let why = format!("the mask must be [{}]", shape.dims()[0]);
        return Err(Error::Shapes { op, lhs: shape, rhs: mask.shape(), why });
    }
    check_length(op, shape, out.len())?;
    let width = Geometry::along(&shape, 0).inner as usize;
    out.fill(T::zeroed());
    let mut count = 0;
    for (row, _) in mask.data().iter().enumerate().filter(|(_, wanted)| **wanted != 0) {
        out[count * width..][..width].copy_from_slice(&x.data()[row * width..][..width]);
        count += 1;
    }
    Ok(count)
}

/// [`Recording::nonzero`](crate::Recording::nonzero): the places of the elements that are not zero, and zeros behind
/// them; how many there are.
///
/// # Errors
///
/// [`Error::Length`].
pub fn nonzero<'a, T: Number>(x: impl Into<View<'a, T>>, out: &mut [u32]) -> Result<usize> {
    let op = "nonzero";
    let x = x.into().checked(op)?;
    check_length(op, Shape::from(x.data().len()), out.len())?;
    out.fill(0);
    let wanted = x.data().iter().zip(0..).filter(|(x, _)| !x.equal(T::zeroed()));
    let mut count = 0;
    for ((_, place), out) in wanted.zip(out) {
        *out = place;
        count += 1;
    }
    Ok(count)
}

/// [`Recording::unique`](crate::Recording::unique): the different elements in ascending order, how often each occurs,
/// and the place of each of the operand's elements among them. Zeros are behind the different ones, whose number is the
/// result.
///
/// # Errors
///
/// [`Error::Length`].
pub fn unique<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    out: &mut [T],
    out_counts: &mut [u32],
    out_inverse: &mut [u32],
) -> Result<usize> {
    let op = "unique";
    let x = x.into().checked(op)?;
    let n = Shape::from(x.data().len());
    check_length(op, n, out.len())?;
    check_length(op, n, out_counts.len())?;
    check_length(op, n, out_inverse.len())?;
    out.fill(T::zeroed());
    out_counts.fill(0);
    let line = View::new(x.data(), n);
    let mut count = 0;
    each_line(op, line, Sort::along(0), |places, _| {
        for &at in places {
            let element = x.data()[at];
            if count == 0 || !out[count - 1].equal(element) {
                out[count] = T::from_key(element.key_for_max());
                count += 1;
            }
            out_counts[count - 1] += 1;
            out_inverse[at] = (count - 1) as u32;
        }
    })?;
    Ok(count)
}
