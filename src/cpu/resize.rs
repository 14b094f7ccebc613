//! Resizing.

use super::parallel::{self, LIGHT};
use super::view::{View, check_length};
use crate::error::Result;
use crate::shape::pixels::{PixelShuffle, resized, squares};
use crate::shape::resize::{Coordinates, Interpolation, Resizing};
use crate::shape::{Element, Shape};

/// How much a neighbour counts that is this far away. Keys' cubic with a = −¾.
fn cubic(x: f32) -> f32 {
    if x <= 1.0 { ((1.25 * x - 2.25) * x) * x + 1.0 } else { ((-0.75 * x + 3.75) * x - 6.0) * x + 3.0 }
}

/// The neighbours that make an element, and how much each counts.
fn taps(how: &Resizing, d: usize, at: usize) -> impl Iterator<Item = (usize, f32)> {
    let ((below, t), count) = (how.place(d, at), how.taps[d]);
    let (last, cubic_taps) = (how.image[d] as isize - 1, count == 4);
    (0..count).map(move |k| {
        let neighbour = below + k as isize - isize::from(cubic_taps);
        let weight = match count {
            1 => 1.0,
            2 if k == 0 => 1.0 - t,
            2 => t,
            _ => cubic([t + 1.0, t, 1.0 - t, 2.0 - t][k]),
        };
        (neighbour.clamp(0, last) as usize, weight)
    })
}

/// [`Recording::resize`](crate::Recording::resize); f32.
///
/// # Errors
///
/// [`Error::Parameter`](crate::Error::Parameter) if the extents do not fit, [`Error::Length`](crate::Error::Length).
pub fn resize<'a>(
    x: impl Into<View<'a, f32>>,
    extents: &[usize],
    interpolation: Interpolation,
    coordinates: Coordinates,
    out: &mut [f32],
) -> Result<Shape> {
    let x = x.into().checked("resize")?;
    let (how, shape) = Resizing::plan(x.shape(), extents, interpolation, coordinates)?;
    check_length("resize", shape, out.len())?;
    let ([columns, rows, layers], [width, height, depth]) = (how.image, how.extents);
    debug_assert_eq!(how.images(x.shape()) * width * height * depth, out.len());
    let data = x.data();
    let moves = matches!(interpolation, Interpolation::Linear | Interpolation::Cubic);
    parallel::rows(out, 1, how.taps.iter().product(), LIGHT, |first, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let n = first + i;
            let at = [n % width, n / width % height, n / width / height % depth];
            let image = n / width / height / depth;
            let mut sum = 0.0;
            for (z, wz) in taps(&how, 2, at[2]) {
                let mut in_plane = 0.0;
                for (y, wy) in taps(&how, 1, at[1]) {
                    let line = ((image * layers + z) * rows + y) * columns;
                    let row = taps(&how, 0, at[0]);
                    if moves {
                        in_plane += row.map(|(x, wx)| data[line + x] * wx).sum::<f32>() * wy;
                    } else {
                        in_plane = row.map(|(x, _)| data[line + x]).next().unwrap_or(0.0);
                    }
                }
                sum = if moves { sum + in_plane * wz } else { in_plane };
            }
            *out = sum;
        }
    });
    Ok(shape)
}

/// [`Recording::pixel_shuffle`](crate::Recording::pixel_shuffle): channels to pixels.
///
/// # Errors
///
/// [`Error::Parameter`](crate::Error::Parameter) if channels or extents are no multiples,
/// [`Error::Length`](crate::Error::Length).
pub fn pixel_shuffle<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    factor: usize,
    out: &mut [T],
) -> Result<Shape> {
    let op = "pixel_shuffle";
    let x = x.into().checked(op)?;
    let [_, c, h, w] = squares(op, x.shape(), factor, PixelShuffle::ToPixels)?;
    let shape = resized(x.shape(), [c, h * factor, w * factor]);
    check_length(op, shape, out.len())?;
    for (i, element) in x.data().iter().enumerate() {
        out[pixel(i, factor, h, w)] = *element;
    }
    Ok(shape)
}

/// [`Recording::pixel_unshuffle`](crate::Recording::pixel_unshuffle): pixels to channels.
///
/// # Errors
///
/// Those of [`pixel_shuffle`].
pub fn pixel_unshuffle<'a, T: Element>(
    x: impl Into<View<'a, T>>,
    factor: usize,
    out: &mut [T],
) -> Result<Shape> {
    let op = "pixel_unshuffle";
    let x = x.into().checked(op)?;
    let [_, c, h, w] = squares(op, x.shape(), factor, PixelShuffle::ToChannels)?;
    let shape = resized(x.shape(), [c * factor * factor, h, w]);
    check_length(op, shape, out.len())?;
    for (i, element) in out.iter_mut().enumerate() {
        *element = x.data()[pixel(i, factor, h, w)];
    }
    Ok(shape)
}

/// Where the element i of `[n, factor, factor, h, w]` lies among `[n, h, factor, w, factor]`.
fn pixel(i: usize, factor: usize, h: usize, w: usize) -> usize {
    let (column, rest) = (i % w, i / w);
    let (row, rest) = (rest % h, rest / h);
    let (x, rest) = (rest % factor, rest / factor);
    let (y, n) = (rest % factor, rest / factor);
    (((n * h + row) * factor + y) * w + column) * factor + x
}
