//! Running sums, products and extremes.

use super::number::Number;
use super::view::{View, check_length};
use crate::error::Result;
use crate::shape::along::Along;
use crate::shape::axes::{Geometry, resolve_axis};
use crate::shape::{DType, Shape};

/// What a scan of nothing gives: the bits for f32, i32 and u32.
type Identity = [u32; 3];

fn scan<'a, T: Number>(
    op: &'static str,
    x: impl Into<View<'a, T>>,
    along: impl Into<Along>,
    out: &mut [T],
    identity: Identity,
    join: impl Fn(T, T) -> T,
) -> Result<Shape> {
    let x = x.into().checked(op)?;
    let (axis, exclusive, reverse) = along.into().parts();
    let shape = x.shape();
    let geometry = Geometry::along(&shape, resolve_axis(op, axis, shape.rank())?);
    check_length(op, shape, out.len())?;
    let bits = match T::DTYPE {
        DType::F32 => identity[0],
        DType::I32 => identity[1],
        _ => identity[2],
    };
    let identity: T = bytemuck::pod_read_unaligned(&bits.to_ne_bytes());
    let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
    if out.is_empty() {
        return Ok(shape);
    }
    for line in 0..geometry.results() as usize {
        let first = line / inner * extent * inner + line % inner;
        let mut state = identity;
        for step in 0..extent {
            let at = first + inner * if reverse { extent - 1 - step } else { step };
            let next = join(state, x.data()[at]);
            out[at] = if exclusive { state } else { next };
            state = next;
        }
    }
    Ok(shape)
}

/// [`Recording::cumsum`](crate::Recording::cumsum): running sums.
///
/// # Errors
///
/// [`Error::Axis`](crate::Error::Axis), [`Error::Length`](crate::Error::Length).
pub fn cumsum<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    along: impl Into<Along>,
    out: &mut [T],
) -> Result<Shape> {
    scan("cumsum", x, along, out, [0; 3], T::plus)
}

/// [`Recording::cumprod`](crate::Recording::cumprod): running products.
///
/// # Errors
///
/// Those of [`cumsum`].
pub fn cumprod<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    along: impl Into<Along>,
    out: &mut [T],
) -> Result<Shape> {
    scan("cumprod", x, along, out, [1f32.to_bits(), 1, 1], T::times)
}

/// [`Recording::cummax`](crate::Recording::cummax): the largest element so far.
///
/// # Errors
///
/// Those of [`cumsum`].
pub fn cummax<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    along: impl Into<Along>,
    out: &mut [T],
) -> Result<Shape> {
    let least = [f32::NEG_INFINITY.to_bits(), i32::MIN as u32, 0];
    scan("cummax", x, along, out, least, |a, b| T::from_key(a.key_for_max().max(b.key_for_max())))
}

/// [`Recording::cummin`](crate::Recording::cummin): the smallest element so far.
///
/// # Errors
///
/// Those of [`cumsum`].
pub fn cummin<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    along: impl Into<Along>,
    out: &mut [T],
) -> Result<Shape> {
    let most = [f32::INFINITY.to_bits(), i32::MAX as u32, u32::MAX];
    scan("cummin", x, along, out, most, |a, b| T::from_key(a.key_for_min().min(b.key_for_min())))
}
