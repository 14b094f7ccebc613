//! Reductions. Floats are added and multiplied in f64.

use std::borrow::Cow;

use super::cast::Cast;
use super::layout::permute;
use super::lines::Fold;
use super::number::Number;
use super::parallel::{self, Grain, LIGHT};
use super::simd;
use super::view::{View, check_length};
use crate::error::{Error, Result};
use crate::shape::axes::{Along, Axes, Geometry};
use crate::shape::{DType, Shape};

/// An operand seen along its axes, with an output that fits.
fn along<'a, T: Number>(
    op: &'static str,
    x: View<'a, T>,
    axes: Axes,
    out: usize,
) -> Result<(Cow<'a, [T]>, Geometry, Shape)> {
    let x = x.checked(op)?;
    let Along { order, geometry, shape } = axes.apply(op, &x.shape())?;
    check_length(op, shape, out)?;
    let Some(order) = order else { return Ok((Cow::Borrowed(x.data()), geometry, shape)) };
    let mut side_by_side = vec![T::zeroed(); x.data().len()];
    permute(x, &order, &mut side_by_side)?;
    Ok((Cow::Owned(side_by_side), geometry, shape))
}

/// Nothing that a step is told, for each line.
fn untold(geometry: Geometry) -> Vec<()> {
    vec![(); geometry.results() as usize]
}

/// Sums of what `f` makes of elements and their line's number.
fn sums(
    x: &[f32],
    geometry: Geometry,
    params: &[f64],
    f: impl Fn(f64, f64) -> f64 + Copy + Sync + Send,
) -> Vec<f64> {
    let step = move |sum: f64, x: f32, param: f64| sum + f(f64::from(x), param);
    Fold { nothing: 0.0, step, merge: |a: f64, b: f64| a + b }.lines(x, geometry, params)
}

fn store<T, R>(values: Vec<T>, out: &mut [R], f: impl Fn(T) -> R) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out = f(value));
}

/// [`Recording::sum`](crate::Recording::sum); f32, i32, u32.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::{Axes, cpu};
/// let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let (mut rows, mut all) = ([0.0; 2], [0.0]);
/// cpu::sum((&x, [2, 3]), 1, &mut rows)?;
/// cpu::sum((&x, [2, 3]), Axes::ALL, &mut all)?;
/// assert_eq!((rows, all), ([6.0, 15.0], [21.0]));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Axis`] if there is no such axis, [`Error::Length`] if data and shape, or shape and output, do not fit.
pub fn sum<'a, T: Number>(x: impl Into<View<'a, T>>, axes: impl Into<Axes>, out: &mut [T]) -> Result<Shape> {
    let (x, geometry, shape) = along("sum", x.into(), axes.into(), out.len())?;
    if T::DTYPE == DType::F32 {
        let sums = sums(bytemuck::cast_slice(&x), geometry, &vec![0.0; out.len()], |x, _| x);
        store(sums, bytemuck::cast_slice_mut::<T, f32>(out), |sum| sum as f32);
    } else {
        let step = |sum: T, x: T, ()| sum.plus(x);
        let fold = Fold { nothing: T::zeroed(), step, merge: T::plus };
        store(fold.lines(&x, geometry, &untold(geometry)), out, |sum| sum);
    }
    Ok(shape)
}

/// [`Recording::mean`](crate::Recording::mean); f32.
///
/// # Errors
///
/// Those of [`sum`].
pub fn mean<'a>(x: impl Into<View<'a, f32>>, axes: impl Into<Axes>, out: &mut [f32]) -> Result<Shape> {
    let (x, geometry, shape) = along("mean", x.into(), axes.into(), out.len())?;
    let sums = sums(&x, geometry, &vec![0.0; out.len()], |x, _| x);
    store(sums, out, |sum| (sum / geometry.extent as f64) as f32);
    Ok(shape)
}

/// [`Recording::norm`](crate::Recording::norm); f32. Squares neither overflow nor underflow here.
///
/// # Errors
///
/// Those of [`sum`].
pub fn norm<'a>(x: impl Into<View<'a, f32>>, axes: impl Into<Axes>, out: &mut [f32]) -> Result<Shape> {
    let (x, geometry, shape) = along("norm", x.into(), axes.into(), out.len())?;
    store(sums(&x, geometry, &vec![0.0; out.len()], |x, _| x * x), out, |sum| sum.sqrt() as f32);
    Ok(shape)
}

/// [`Recording::variance`](crate::Recording::variance); f32. In two passes: the mean, then the squared distances.
///
/// # Errors
///
/// Those of [`sum`].
pub fn variance<'a>(x: impl Into<View<'a, f32>>, axes: impl Into<Axes>, out: &mut [f32]) -> Result<Shape> {
    let (x, geometry, shape) = along("variance", x.into(), axes.into(), out.len())?;
    let n = geometry.extent as f64;
    let mut means = sums(&x, geometry, &vec![0.0; out.len()], |x, _| x);
    means.iter_mut().for_each(|sum| *sum /= n);
    store(sums(&x, geometry, &means, |x, mean| (x - mean) * (x - mean)), out, |sum| (sum / n) as f32);
    Ok(shape)
}

/// [`Recording::moments`](crate::Recording::moments): the means into `means`, the variances into `variances`; f32.
///
/// # Errors
///
/// Those of [`sum`].
pub fn moments<'a>(
    x: impl Into<View<'a, f32>>,
    axes: impl Into<Axes>,
    means: &mut [f32],
    variances: &mut [f32],
) -> Result<Shape> {
    let (x, geometry, shape) = along("moments", x.into(), axes.into(), means.len())?;
    check_length("moments", shape, variances.len())?;
    let n = geometry.extent as f64;
    let mut exact = sums(&x, geometry, &vec![0.0; means.len()], |x, _| x);
    exact.iter_mut().for_each(|sum| *sum /= n);
    let distances = sums(&x, geometry, &exact, |x, mean| (x - mean) * (x - mean));
    store(distances, variances, |sum| (sum / n) as f32);
    store(exact, means, |mean| mean as f32);
    Ok(shape)
}

/// [`Recording::prod`](crate::Recording::prod); f32, i32, u32.
///
/// # Errors
///
/// Those of [`sum`].
pub fn prod<'a, T: Number + Cast<u32>>(
    x: impl Into<View<'a, T>>,
    axes: impl Into<Axes>,
    out: &mut [T],
) -> Result<Shape> {
    let (x, geometry, shape) = along("prod", x.into(), axes.into(), out.len())?;
    if T::DTYPE == DType::F32 {
        let step = |product: f64, x: f32, ()| product * f64::from(x);
        let fold = Fold { nothing: 1.0, step, merge: |a: f64, b: f64| a * b };
        let products = fold.lines(bytemuck::cast_slice(&x), geometry, &untold(geometry));
        store(products, bytemuck::cast_slice_mut::<T, f32>(out), |product| product as f32);
    } else {
        let step = |product: T, x: T, ()| product.times(x);
        let fold = Fold { nothing: T::cast(1), step, merge: T::times };
        store(fold.lines(&x, geometry, &untold(geometry)), out, |product| product);
    }
    Ok(shape)
}

/// Which end of the order is looked for.
#[derive(Clone, Copy)]
enum End {
    Largest,
    Smallest,
}

/// The keys of the extremes of each line. `key` orders elements.
fn extremes<T: Number>(
    op: &'static str,
    (x, geometry): (&[T], Geometry),
    shape: Shape,
    end: End,
    key: impl Fn(T) -> i32 + Copy + Sync + Send,
) -> Result<Vec<i32>> {
    if geometry.extent == 0 && geometry.results() > 0 {
        return Err(Error::EmptyReduction { op, shape });
    }
    let none = untold(geometry);
    Ok(match end {
        End::Largest => {
            let step = move |best: i32, x: T, ()| best.max(key(x));
            Fold { nothing: i32::MIN, step, merge: i32::max }.lines(x, geometry, &none)
        }
        End::Smallest => {
            let step = move |best: i32, x: T, ()| best.min(key(x));
            Fold { nothing: i32::MAX, step, merge: i32::min }.lines(x, geometry, &none)
        }
    })
}

/// [`Recording::amax`](crate::Recording::amax); f32, i32, u32.
///
/// # Errors
///
/// Those of [`sum`], and [`Error::EmptyReduction`] if there is nothing to choose from.
pub fn amax<'a, T: Number>(x: impl Into<View<'a, T>>, axes: impl Into<Axes>, out: &mut [T]) -> Result<Shape> {
    let x = x.into();
    let (data, geometry, shape) = along("amax", x, axes.into(), out.len())?;
    let keys = extremes("amax", (&data, geometry), x.shape(), End::Largest, T::key_for_max)?;
    store(keys, out, T::from_key);
    Ok(shape)
}

/// [`Recording::amin`](crate::Recording::amin); f32, i32, u32.
///
/// # Errors
///
/// Those of [`amax`].
pub fn amin<'a, T: Number>(x: impl Into<View<'a, T>>, axes: impl Into<Axes>, out: &mut [T]) -> Result<Shape> {
    let x = x.into();
    let (data, geometry, shape) = along("amin", x, axes.into(), out.len())?;
    let keys = extremes("amin", (&data, geometry), x.shape(), End::Smallest, T::key_for_min)?;
    store(keys, out, T::from_key);
    Ok(shape)
}

/// [`Recording::argmax`](crate::Recording::argmax); of f32, i32, u32.
///
/// # Errors
///
/// Those of [`amax`].
pub fn argmax<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    axes: impl Into<Axes>,
    out: &mut [u32],
) -> Result<Shape> {
    place("argmax", x.into(), axes.into(), out, End::Largest, |x: T| x.without_sign_of_zero().key_for_max())
}

/// [`Recording::argmin`](crate::Recording::argmin); of f32, i32, u32.
///
/// # Errors
///
/// Those of [`amax`].
pub fn argmin<'a, T: Number>(
    x: impl Into<View<'a, T>>,
    axes: impl Into<Axes>,
    out: &mut [u32],
) -> Result<Shape> {
    place("argmin", x.into(), axes.into(), out, End::Smallest, |x: T| x.without_sign_of_zero().key_for_min())
}

/// The first place of the extreme in each line: the extreme first, then where it is.
fn place<T: Number>(
    op: &'static str,
    x: View<'_, T>,
    axes: Axes,
    out: &mut [u32],
    end: End,
    key: impl Fn(T) -> i32 + Copy + Sync + Send,
) -> Result<Shape> {
    let (data, geometry, shape) = along(op, x, axes, out.len())?;
    let best = extremes(op, (&data, geometry), x.shape(), end, key)?;
    if geometry.is_rows() {
        let extent = geometry.extent as usize;
        parallel::rows(out, 1, extent, LIGHT, |first, out| {
            for (i, out) in out.iter_mut().enumerate() {
                let (row, best) = (&data[(first + i) * extent..][..extent], best[first + i]);
                *out = row.iter().position(|&x| key(x) == best).unwrap_or(0) as u32;
            }
        });
    } else {
        // The place, if it has been seen, and how many elements have.
        let step = move |[place, seen]: [u32; 2], x: T, best: i32| {
            [if place == u32::MAX && key(x) == best { seen } else { place }, seen + 1]
        };
        let merge = |[a, seen]: [u32; 2], [b, more]: [u32; 2]| {
            [if a == u32::MAX && b != u32::MAX { seen + b } else { a }, seen + more]
        };
        let places = Fold { nothing: [u32::MAX, 0], step, merge }.lines(&data, geometry, &best);
        store(places, out, |[place, _]| place);
    }
    Ok(shape)
}

/// [`Recording::dot`](crate::Recording::dot); f32. The result is one element.
///
/// # Errors
///
/// [`Error::Shapes`] if they are not two vectors of one length, [`Error::Length`].
pub fn dot<'a>(
    lhs: impl Into<View<'a, f32>>,
    rhs: impl Into<View<'a, f32>>,
    out: &mut [f32],
) -> Result<Shape> {
    let op = "dot";
    let (lhs, rhs) = (lhs.into().checked(op)?, rhs.into().checked(op)?);
    let result = plan_dot(lhs.shape(), rhs.shape())?;
    check_length(op, result, out.len())?;
    let (x, y) = (lhs.data(), rhs.data());
    let Grain(grain) = LIGHT;
    let sum = if x.len() <= grain {
        simd::dot(x, y)
    } else {
        let part = |(i, x): (usize, &[f32])| simd::dot(x, &y[i * grain..][..x.len()]);
        parallel::map_chunks(x, grain, part).into_iter().sum()
    };
    out[0] = sum as f32;
    Ok(result)
}

/// The shape of the product of two vectors.
pub(crate) fn plan_dot(lhs: Shape, rhs: Shape) -> Result<Shape> {
    if lhs.rank() == 1 && lhs == rhs {
        return Ok(Shape::from([]));
    }
    let why = match (lhs.dims(), rhs.dims()) {
        ([n], [m]) => format!("{n} != {m}"),
        _ => "both must be of rank 1".to_owned(),
    };
    Err(Error::Shapes { op: "dot", lhs, rhs, why })
}
