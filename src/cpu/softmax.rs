//! Softmax and its logarithm.

use super::lines::Fold;
use super::math;
use super::number::Number;
use super::parallel::{self, HEAVY};
use super::simd;
use super::streaming::Stores;
use super::view::{View, check_length};
use crate::error::Result;
use crate::shape::Shape;
use crate::shape::axes::{Geometry, resolve_axis};

/// Rows up to this length are done by one thread from end to end, while they are in its cache.
const ROW: usize = 1 << 15;

/// [`Recording::softmax`](crate::Recording::softmax); f32.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let mut p = [0.0; 4];
/// tidemill::cpu::softmax((&[1000.0, 1000.0, f32::NEG_INFINITY, 0.0], [2, 2]), -1, &mut p)?;
/// assert_eq!(p, [0.5, 0.5, 0.0, 1.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Axis`](crate::Error::Axis) if there is no such axis, [`Error::Length`](crate::Error::Length) if data and
/// shape, or shape and output, do not fit.
pub fn softmax<'a>(x: impl Into<View<'a, f32>>, axis: isize, out: &mut [f32]) -> Result<Shape> {
    softmax_of("softmax", false, x.into(), axis, out)
}

/// [`Recording::log_softmax`](crate::Recording::log_softmax); f32.
///
/// # Errors
///
/// Those of [`softmax`].
pub fn log_softmax<'a>(x: impl Into<View<'a, f32>>, axis: isize, out: &mut [f32]) -> Result<Shape> {
    softmax_of("log_softmax", true, x.into(), axis, out)
}

fn softmax_of(
    op: &'static str,
    logarithm: bool,
    x: View<'_, f32>,
    axis: isize,
    out: &mut [f32],
) -> Result<Shape> {
    let x = x.checked(op)?;
    let (shape, x) = (x.shape(), x.data());
    let geometry = Geometry::along(&shape, resolve_axis(op, axis, shape.rank())?);
    check_length(op, shape, out.len())?;
    if out.is_empty() {
        return Ok(shape);
    }
    let extent = geometry.extent as usize;
    if geometry.is_rows() && extent <= ROW {
        parallel::rows(out, extent, extent, HEAVY, |first, out| {
            for (i, out) in out.chunks_mut(extent).enumerate() {
                let row = Geometry { outer: 1, ..geometry };
                lines(logarithm, &x[(first + i) * extent..][..extent], row, out);
            }
        });
    } else {
        lines(logarithm, x, geometry, out);
    }
    Ok(shape)
}

/// All lines, pass by pass: the largest, the sum of the powers, the shares.
fn lines(logarithm: bool, x: &[f32], geometry: Geometry, out: &mut [f32]) {
    let step = |best: i32, x: f32, ()| best.max(x.key_for_max());
    let results = geometry.results() as usize;
    let largest = Fold { nothing: i32::MIN, step, merge: i32::max }.lines(x, geometry, &vec![(); results]);
    // An infinite maximum leaves nothing to divide by, either.
    let largest: Vec<f32> = largest
        .into_iter()
        .map(|key| Some(f32::from_key(key)).filter(|x| x.is_finite()).unwrap_or(f32::NAN))
        .collect();
    each(x, geometry, &largest, out, |x, max| {
        let y = math::exp_of_negative(x - max);
        if max.is_nan() { max } else { y }
    });
    let step = |sum: f64, y: f32, ()| sum + f64::from(y);
    let merge = |a: f64, b: f64| a + b;
    let sums = Fold { nothing: 0.0, step, merge }.lines(out, geometry, &vec![(); results]);
    if logarithm {
        // Powers are taken for the sum alone: taken and added in one loop they would not become vector code.
        let logs: Vec<f32> = sums.iter().map(|sum| sum.ln() as f32).collect();
        each(x, geometry, &largest, out, |x, max| x - max);
        in_place(geometry, &logs, out, |y, log| y - log);
    } else {
        let shares: Vec<f32> = sums.iter().map(|sum| (1.0 / sum) as f32).collect();
        in_place(geometry, &shares, out, |y, share| y * share);
    }
}

/// `out = f(x, param of its line)`.
fn each(
    x: &[f32],
    geometry: Geometry,
    params: &[f32],
    out: &mut [f32],
    f: impl Fn(f32, f32) -> f32 + Copy + Sync + Send,
) {
    stretches(geometry, params, out, |first, params, out| {
        let x = &x[first..first + out.len()];
        match params {
            Params::One(param) => simd::map1(x, out, &Stores::ORDINARY, |x| f(x, param)),
            Params::Row(params) => simd::map2(x, params, out, &Stores::ORDINARY, f),
        }
    });
}

/// `out = f(out, param of its line)`.
fn in_place(
    geometry: Geometry,
    params: &[f32],
    out: &mut [f32],
    f: impl Fn(f32, f32) -> f32 + Copy + Sync + Send,
) {
    stretches(geometry, params, out, |_, params, out| match params {
        Params::One(param) => simd::update(out, |x| f(x, param)),
        Params::Row(params) => simd::update_with(out, params, f),
    });
}

/// What the lines of a stretch of elements are told.
enum Params<'a> {
    /// They are of one line.
    One(f32),
    /// Each is of another.
    Row(&'a [f32]),
}

fn stretches(
    geometry: Geometry,
    params: &[f32],
    out: &mut [f32],
    f: impl Fn(usize, Params<'_>, &mut [f32]) + Sync + Send,
) {
    let (extent, inner) = (geometry.extent as usize, geometry.inner as usize);
    if geometry.is_rows() {
        for (i, (row, &param)) in out.chunks_mut(extent).zip(params).enumerate() {
            parallel::pieces(row, HEAVY, |first, out| f(i * extent + first, Params::One(param), out));
        }
    } else {
        parallel::rows(out, inner, inner, HEAVY, |first, rows| {
            for (i, row) in rows.chunks_mut(inner).enumerate() {
                let outer = (first + i) / extent;
                f((first + i) * inner, Params::Row(&params[outer * inner..][..inner]), row);
            }
        });
    }
}
