//! Reading and writing by index.

use super::layout::rows_by;
use super::number::Number;
use super::view::{View, check_length};
use crate::error::{Error, Result};
use crate::shape::axes::Geometry;
use crate::shape::{Element, Shape, layout};

/// Where each index of a table along an axis leads: calls `f` with the place in the result's order and the place in the
/// table, as rows of `inner` elements; `None` for an index outside.
fn each_row(geometry: Geometry, indices: &[u32], mut f: impl FnMut(usize, Option<usize>)) {
    let (outer, extent) = (geometry.outer as usize, geometry.extent as usize);
    for o in 0..outer {
        for (slot, &index) in indices.iter().enumerate() {
            let index = index as usize;
            f(o * indices.len() + slot, (index < extent).then(|| o * extent + index));
        }
    }
}

/// [`Recording::gather`](crate::Recording::gather): slices along an axis by their indices; zeros for an index outside.
///
/// # Errors
///
/// [`Error::Axis`], [`Error::Rank`], [`Error::Length`].
pub fn gather<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, u32>>,
    axis: isize,
    out: &mut [T],
) -> Result<Shape> {
    let op = "gather";
    let (x, indices) = (x.into().checked(op)?, indices.into().checked(op)?);
    let (shape, geometry) = layout::gather(op, x.shape(), indices.shape(), axis)?;
    check_length(op, shape, out.len())?;
    let (slots, extent) = (indices.data().len(), geometry.extent as usize);
    rows_by(x.data(), geometry.inner as usize, out, |row| {
        let index = indices.data()[row % slots] as usize;
        (index < extent).then(|| row / slots * extent + index)
    });
    Ok(shape)
}

/// [`Recording::gather_elements`](crate::Recording::gather_elements): an element for each index; zero for an index
/// outside.
///
/// # Errors
///
/// [`Error::Axis`], [`Error::Shapes`], [`Error::Length`].
pub fn gather_elements<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, u32>>,
    axis: isize,
    out: &mut [T],
) -> Result<Shape> {
    let op = "gather_elements";
    let (x, indices) = (x.into().checked(op)?, indices.into().checked(op)?);
    let (shape, table) = (indices.shape(), x.shape());
    let geometry = layout::gather_elements(op, table, shape, axis)?;
    check_length(op, shape, out.len())?;
    let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
    let per_outer = shape.elements() / (geometry.outer as usize).max(1);
    rows_by(x.data(), 1, out, |i| {
        let index = indices.data()[i] as usize;
        (index < extent).then(|| (i / per_outer * extent + index) * inner + i % inner)
    });
    Ok(shape)
}

/// [`Recording::gather_nd`](crate::Recording::gather_nd): slices by rows of indices; zeros for a row with an index
/// outside.
///
/// # Errors
///
/// [`Error::Shapes`], [`Error::Rank`], [`Error::Length`].
pub fn gather_nd<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, u32>>,
    out: &mut [T],
) -> Result<Shape> {
    let op = "gather_nd";
    let (x, indices) = (x.into().checked(op)?, indices.into().checked(op)?);
    let (shape, geometry) = layout::gather_nd(x.shape(), indices.shape())?;
    check_length(op, shape, out.len())?;
    let depth = indices.shape().dims().last().copied().unwrap_or(1);
    let table = x.shape();
    let extents = &table.dims()[..depth];
    rows_by(x.data(), geometry.inner as usize, out, |row| {
        let indices = &indices.data()[row * depth..][..depth];
        indices.iter().zip(extents).try_fold(0, |row, (&index, &extent)| {
            ((index as usize) < extent).then(|| row * extent + index as usize)
        })
    });
    Ok(shape)
}

/// A copy of `x` in `out`, to whose rows the rows of the updates are then put by `put`.
fn scatter_by<'a, T: Element>(
    op: &'static str,
    x: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, u32>>,
    updates: impl Into<View<'a, T>>,
    axis: isize,
    out: &mut [T],
    put: impl Fn(T, T) -> T,
) -> Result<Shape> {
    let (x, indices, updates) =
        (x.into().checked(op)?, indices.into().checked(op)?, updates.into().checked(op)?);
    let geometry = layout::scatter(op, [x.shape(), indices.shape(), updates.shape()], axis)?;
    check_length(op, x.shape(), out.len())?;
    out.copy_from_slice(x.data());
    put_rows(geometry, indices.data(), updates.data(), out, put);
    Ok(x.shape())
}

/// Puts the rows of the updates to those of the result.
fn put_rows<T: Element>(
    geometry: Geometry,
    indices: &[u32],
    updates: &[T],
    out: &mut [T],
    put: impl Fn(T, T) -> T,
) {
    let width = geometry.inner as usize;
    each_row(geometry, indices, |from, to| {
        let Some(to) = to else { return };
        let from = &updates[from * width..][..width];
        out[to * width..][..width].iter_mut().zip(from).for_each(|(out, x)| *out = put(*out, *x));
    });
}

/// [`Recording::scatter`](crate::Recording::scatter): slices along an axis replaced.
///
/// # Errors
///
/// [`Error::Shapes`], [`Error::Axis`], [`Error::Length`].
pub fn scatter<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, u32>>,
    updates: impl Into<View<'a, T>>,
    axis: isize,
    out: &mut [T],
) -> Result<Shape> {
    scatter_by("scatter", x, indices, updates, axis, out, |_, x| x)
}

/// [`Recording::scatter_add`](crate::Recording::scatter_add): updates added to slices along an axis, in their order.
///
/// # Errors
///
/// Those of [`scatter`].
pub fn scatter_add<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, u32>>,
    updates: impl Into<View<'a, T>>,
    axis: isize,
    out: &mut [T],
) -> Result<Shape> {
    scatter_by("scatter_add", x, indices, updates, axis, out, T::plus)
}

/// [`Recording::scatter_max`](crate::Recording::scatter_max): the largest of slices and updates.
///
/// # Errors
///
/// Those of [`scatter`].
pub fn scatter_max<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, u32>>,
    updates: impl Into<View<'a, T>>,
    axis: isize,
    out: &mut [T],
) -> Result<Shape> {
    let largest = |a: T, b: T| if b.key_for_max() > a.key_for_max() { b } else { a };
    scatter_by("scatter_max", x, indices, updates, axis, out, largest)
}

/// [`Recording::scatter_min`](crate::Recording::scatter_min): the smallest of slices and updates.
///
/// # Errors
///
/// Those of [`scatter`].
pub fn scatter_min<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, u32>>,
    updates: impl Into<View<'a, T>>,
    axis: isize,
    out: &mut [T],
) -> Result<Shape> {
    let smallest = |a: T, b: T| if b.key_for_min() < a.key_for_min() { b } else { a };
    scatter_by("scatter_min", x, indices, updates, axis, out, smallest)
}

/// [`Recording::segment_sum`](crate::Recording::segment_sum): sums of slices along the first axis, by segment.
///
/// # Errors
///
/// [`Error::Shapes`], [`Error::Axis`], [`Error::Length`].
pub fn segment_sum<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    ids: impl Into<View<'a, u32>>,
    segments: usize,
    out: &mut [T],
) -> Result<Shape> {
    let op = "segment_sum";
    let (x, ids) = (x.into().checked(op)?, ids.into().checked(op)?);
    let shape = layout::segments(op, x.shape(), ids.shape(), segments)?;
    check_length(op, shape, out.len())?;
    out.fill(T::zeroed());
    put_rows(Geometry::along(&shape, 0), ids.data(), x.data(), out, T::plus);
    Ok(shape)
}

/// [`Recording::bincount`](crate::Recording::bincount): how often each number below `bins` occurs.
///
/// # Errors
///
/// [`Error::Length`].
pub fn bincount<'a>(x: impl Into<View<'a, u32>>, bins: usize, out: &mut [u32]) -> Result<Shape> {
    let op = "bincount";
    let x = x.into().checked(op)?;
    check_length(op, Shape::from(bins), out.len())?;
    out.fill(0);
    for &number in x.data() {
        if let Some(count) = out.get_mut(number as usize) {
            *count = count.wrapping_add(1);
        }
    }
    Ok(Shape::from(bins))
}

/// [`Recording::bincount_weighted`](crate::Recording::bincount_weighted): the sum of the weights of each number below
/// `bins`.
///
/// # Errors
///
/// [`Error::Shapes`], [`Error::Length`].
pub fn bincount_weighted<'a, T: Number>(
    x: impl Into<View<'a, u32>>,
    weights: impl Into<View<'a, T>>,
    bins: usize,
    out: &mut [T],
) -> Result<Shape> {
    let op = "bincount_weighted";
    let (x, weights) = (x.into().checked(op)?, weights.into().checked(op)?);
    if x.shape() != weights.shape() {
        let why = "there must be a weight for each number".to_owned();
        return Err(Error::Shapes { op, lhs: x.shape(), rhs: weights.shape(), why });
    }
    check_length(op, Shape::from(bins), out.len())?;
    out.fill(T::zeroed());
    let line = Geometry { outer: 1, extent: bins as u64, inner: 1 };
    put_rows(line, x.data(), weights.data(), out, T::plus);
    Ok(Shape::from(bins))
}

/// [`Recording::one_hot`](crate::Recording::one_hot): a row of `classes` elements for each index, with one at the
/// index.
///
/// # Errors
///
/// [`Error::Rank`], [`Error::Length`].
pub fn one_hot<'a>(indices: impl Into<View<'a, u32>>, classes: usize, out: &mut [u32]) -> Result<Shape> {
    let op = "one_hot";
    let indices = indices.into().checked(op)?;
    let shape = layout::with_last(op, indices.shape(), classes)?;
    check_length(op, shape, out.len())?;
    for (row, &index) in out.chunks_mut(classes.max(1)).zip(indices.data()) {
        row.iter_mut().zip(0..).for_each(|(out, class)| *out = u32::from(class == index));
    }
    Ok(shape)
}

/// [`Recording::count_outside`](crate::Recording::count_outside): how many indices lie outside an axis.
///
/// # Errors
///
/// [`Error::Length`].
pub fn count_outside<'a>(indices: impl Into<View<'a, u32>>, extent: usize, out: &mut [u32]) -> Result<Shape> {
    let op = "count_outside";
    let indices = indices.into().checked(op)?;
    check_length(op, Shape::from([]), out.len())?;
    let outside = indices.data().iter().filter(|&&index| index as usize >= extent.min(1 << 31));
    out.fill(outside.count() as u32);
    Ok(Shape::from([]))
}
