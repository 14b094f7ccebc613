//! Pooling.

use super::math;
use super::number::Number;
use super::parallel::{self, LIGHT};
use super::view::{View, check_length};
use crate::error::Result;
use crate::error::parameters::positive;
use crate::shape::windows::{Pool, Windows, adaptive};
use crate::shape::{Element, Shape};

/// What `finish` makes of each window, of what `take` makes of its elements one after the other and of their places.
/// `finish` is told how many steps of the window lie in the image or its padding, and where the image begins.
fn pooled<S: Copy + Sync, R: Element>(
    x: &[f32],
    windows: &Windows,
    out: &mut [R],
    nothing: S,
    take: impl Fn(S, f32, usize) -> S + Sync + Send,
    finish: impl Fn(S, usize, usize) -> R + Sync + Send,
) {
    let [width, height, depth] = windows.extents;
    let [columns, rows, layers] = windows.image;
    parallel::rows(out, 1, windows.window.iter().product(), LIGHT, |first, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let n = first + i;
            let at = [n % width, n / width % height, n / width / height % depth];
            let image = n / width / height / depth * layers * rows * columns;
            let reach = [0, 1, 2].map(|d| windows.reach(d, at[d]));
            // The coordinates in a dimension that lie inside.
            let inside = |d: usize| {
                let (begin, steps) = reach[d];
                let (extent, dilation) = (windows.image[d], windows.dilation[d]);
                (0..steps)
                    .map(move |k| begin + (k * dilation) as isize)
                    .filter_map(move |at| usize::try_from(at).ok().filter(|at| *at < extent))
            };
            let mut state = nothing;
            for z in inside(2) {
                for y in inside(1) {
                    for x_at in inside(0) {
                        let place = image + (z * rows + y) * columns + x_at;
                        state = take(state, x[place], place);
                    }
                }
            }
            *out = finish(state, reach.iter().map(|(_, steps)| steps).product(), image);
        }
    });
}

fn max(x: View<'_, f32>, (windows, shape): (Windows, Shape), out: &mut [f32]) -> Shape {
    let larger = |best: i32, x: f32, _| best.max(x.key_for_max());
    let finish = |best, _, _| if best == i32::MIN { f32::NEG_INFINITY } else { f32::from_key(best) };
    pooled(x.data(), &windows, out, i32::MIN, larger, finish);
    shape
}

/// [`Recording::max_pool`](crate::Recording::max_pool); f32.
///
/// # Errors
///
/// [`Error::Parameter`](crate::Error::Parameter) if the windows do not fit, [`Error::Length`](crate::Error::Length).
pub fn max_pool<'a>(x: impl Into<View<'a, f32>>, pool: &Pool, out: &mut [f32]) -> Result<Shape> {
    let op = "max_pool";
    let x = x.into().checked(op)?;
    let plan = pool.plan(op, x.shape())?;
    check_length(op, plan.1, out.len())?;
    Ok(max(x, plan, out))
}

/// The places of [`Recording::max_pool_with_places`](crate::Recording::max_pool_with_places); of f32.
///
/// # Errors
///
/// Those of [`max_pool`].
pub fn max_pool_places<'a>(x: impl Into<View<'a, f32>>, pool: &Pool, out: &mut [u32]) -> Result<Shape> {
    let op = "max_pool_with_places";
    let x = x.into().checked(op)?;
    let (windows, shape) = pool.plan(op, x.shape())?;
    check_length(op, shape, out.len())?;
    let take = |(best, place): (i32, usize), x: f32, at: usize| {
        let key = x.without_sign_of_zero().key_for_max();
        if key > best { (key, at) } else { (best, place) }
    };
    pooled(x.data(), &windows, out, (i32::MIN, usize::MAX), take, |(_, place), _, image| {
        place.checked_sub(image).filter(|_| place != usize::MAX).unwrap_or(0) as u32
    });
    Ok(shape)
}

fn mean(x: View<'_, f32>, (windows, shape): (Windows, Shape), all: bool, out: &mut [f32]) -> Shape {
    let take = |(sum, n): (f64, usize), x: f32, _| (sum + f64::from(x), n + 1);
    let finish = |(sum, n): (f64, usize), steps: usize, _| (sum / if all { steps } else { n } as f64) as f32;
    pooled(x.data(), &windows, out, (0.0, 0), take, finish);
    shape
}

/// [`Recording::average_pool`](crate::Recording::average_pool); f32.
///
/// # Errors
///
/// Those of [`max_pool`].
pub fn average_pool<'a>(x: impl Into<View<'a, f32>>, pool: &Pool, out: &mut [f32]) -> Result<Shape> {
    let op = "average_pool";
    let x = x.into().checked(op)?;
    let plan = pool.plan(op, x.shape())?;
    check_length(op, plan.1, out.len())?;
    Ok(mean(x, plan, pool.counts_padding(), out))
}

/// [`Recording::norm_pool`](crate::Recording::norm_pool); f32.
///
/// # Errors
///
/// Those of [`max_pool`], and [`Error::Parameter`](crate::Error::Parameter) unless `p` is finite and above 0.
pub fn norm_pool<'a>(x: impl Into<View<'a, f32>>, p: f32, pool: &Pool, out: &mut [f32]) -> Result<Shape> {
    let op = "norm_pool";
    positive(op, "p", p)?;
    let x = x.into().checked(op)?;
    let (windows, shape) = pool.plan(op, x.shape())?;
    check_length(op, shape, out.len())?;
    let power = move |x: f32| match p {
        1.0 => x,
        2.0 => x * x,
        _ => math::pow(x, p),
    };
    let take = |sum: f64, x: f32, _| sum + f64::from(power(x.abs()));
    pooled(x.data(), &windows, out, 0.0, take, move |sum: f64, _, _| match p {
        1.0 => sum as f32,
        2.0 => sum.sqrt() as f32,
        _ => math::pow(sum as f32, 1.0 / p),
    });
    Ok(shape)
}

/// [`Recording::adaptive_max_pool`](crate::Recording::adaptive_max_pool); f32.
///
/// # Errors
///
/// Those of [`max_pool`].
pub fn adaptive_max_pool<'a>(x: impl Into<View<'a, f32>>, parts: &[usize], out: &mut [f32]) -> Result<Shape> {
    let op = "adaptive_max_pool";
    let x = x.into().checked(op)?;
    let plan = adaptive(op, x.shape(), parts)?;
    check_length(op, plan.1, out.len())?;
    Ok(max(x, plan, out))
}

/// [`Recording::adaptive_average_pool`](crate::Recording::adaptive_average_pool); f32.
///
/// # Errors
///
/// Those of [`max_pool`].
pub fn adaptive_average_pool<'a>(
    x: impl Into<View<'a, f32>>,
    parts: &[usize],
    out: &mut [f32],
) -> Result<Shape> {
    let op = "adaptive_average_pool";
    let x = x.into().checked(op)?;
    let plan = adaptive(op, x.shape(), parts)?;
    check_length(op, plan.1, out.len())?;
    Ok(mean(x, plan, false, out))
}
