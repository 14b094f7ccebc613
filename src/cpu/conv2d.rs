//! Convolutions over two dimensions: windows are laid out as columns, some at a time, and multiplied with the weights.

use super::gemm::{Matrix, gemm};
use super::parallel;
use super::view::{View, check_length};
use crate::error::{Error, Result};
use crate::shape::Shape;

const OP: &str = "conv2d";

/// Elements of the laid-out windows that a task holds: they stay in the second-level cache.
const LAID_OUT: usize = 1 << 17;

/// How a convolution is taken: stride, padding, dilation and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Conv2d {
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) groups: usize,
}

impl Default for Conv2d {
    fn default() -> Self {
        Conv2d::new()
    }
}

impl Conv2d {
    /// Every pixel, no padding, one group.
    pub fn new() -> Conv2d {
        Conv2d { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 }
    }

    /// Steps between the kernel's places, in height and width.
    pub fn stride(mut self, stride: [usize; 2]) -> Conv2d {
        self.stride = stride;
        self
    }

    /// Rows of zeros above and below, and columns of zeros left and right.
    pub fn padding(mut self, padding: [usize; 2]) -> Conv2d {
        self.padding = padding;
        self
    }

    /// Steps between the kernel's taps, in height and width; 1 if they are neighbours.
    pub fn dilation(mut self, dilation: [usize; 2]) -> Conv2d {
        self.dilation = dilation;
        self
    }

    /// Channels are divided into this many groups, each convolved for itself.
    pub fn groups(mut self, groups: usize) -> Conv2d {
        self.groups = groups;
        self
    }
}

/// [`Recording::conv2d`](crate::Recording::conv2d): the convolution at every pixel, without padding, in one group.
///
/// # Errors
///
/// Those of [`conv2d_with`].
pub fn conv2d<'a>(
    input: impl Into<View<'a, f32>>,
    weights: impl Into<View<'a, f32>>,
    out: &mut [f32],
) -> Result<Shape> {
    conv2d_with(input, weights, Conv2d::new(), out)
}

/// The convolution of images `[image, channel, y, x]` with weights `[channel of the result, channel in its group, y,
/// x]`, as neural networks have it (the kernel is not turned around); f32.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::cpu::{self, Conv2d};
/// let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
/// let mut out = [0.0; 4];
/// let how = Conv2d::new().padding([1, 1]).stride([2, 2]);
/// let shape = cpu::conv2d_with((&image, [1, 1, 3, 3]), (&[1.0; 9], [1, 1, 3, 3]), how, &mut out)?;
/// assert_eq!((out, shape), ([12.0, 16.0, 24.0, 28.0], [1, 1, 2, 2].into()));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Shapes`] and [`Error::Parameter`] if operands and choices do not fit each other, [`Error::Length`] if data
/// and shape, or shape and output, do not.
pub fn conv2d_with<'a>(
    input: impl Into<View<'a, f32>>,
    weights: impl Into<View<'a, f32>>,
    with: Conv2d,
    out: &mut [f32],
) -> Result<Shape> {
    let (input, weights) = (input.into().checked(OP)?, weights.into().checked(OP)?);
    let geometry = Geometry::new(input.shape(), weights.shape(), with)?;
    check_length(OP, geometry.result, out.len())?;
    if !out.is_empty() {
        geometry.run(input.data(), weights.data(), out);
    }
    Ok(geometry.result)
}

/// The shape of a convolution's result, and the number of its multiplications.
pub(crate) fn plan(input: Shape, weights: Shape, with: Conv2d) -> Result<(Shape, f64)> {
    let geometry = Geometry::new(input, weights, with)?;
    Ok((geometry.result, geometry.result.elements() as f64 * geometry.depth() as f64))
}

/// The extents of a convolution, checked.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    with: Conv2d,
    /// Of one group.
    channels: usize,
    rows: usize,
    size: [usize; 2],
    taps: [usize; 2],
    places: [usize; 2],
    result: Shape,
}

impl Geometry {
    fn new(input: Shape, weights: Shape, with: Conv2d) -> Result<Geometry> {
        let refuse = |why: String| Error::Shapes { op: OP, lhs: input, rhs: weights, why };
        let (&[images, all_channels, height, width], &[all_rows, channels, tap_rows, tap_columns]) =
            (input.dims(), weights.dims())
        else {
            return Err(refuse("both must be of rank 4".to_owned()));
        };
        let parameter =
            |name, value: usize, rule: String| Error::Parameter { op: OP, name, value: value as f64, rule };
        for (name, values) in [("stride", with.stride), ("dilation", with.dilation)] {
            if values.contains(&0) {
                return Err(parameter(name, 0, "be at least 1".to_owned()));
            }
        }
        if with.groups == 0 || all_rows % with.groups != 0 {
            return Err(parameter("groups", with.groups, format!("divide the result's {all_rows} channels")));
        }
        if all_channels != channels * with.groups {
            let groups = with.groups;
            return Err(refuse(format!("{all_channels} channels != {channels} in each of {groups} groups")));
        }
        let (size, taps) = ([height, width], [tap_rows, tap_columns]);
        let mut places = [0; 2];
        for d in 0..2 {
            let reach = taps[d].saturating_sub(1).saturating_mul(with.dilation[d]).saturating_add(1);
            let padded = size[d].saturating_add(with.padding[d].saturating_mul(2));
            if taps[d] == 0 || reach > padded {
                let which = ["rows", "columns"][d];
                return Err(refuse(format!("a kernel of {reach} {which} on {padded} with padding")));
            }
            places[d] = (padded - reach) / with.stride[d] + 1;
        }
        let result = Shape::from([images, all_rows, places[0], places[1]]);
        Ok(Geometry { with, channels, rows: all_rows / with.groups, size, taps, places, result })
    }

    /// Elements of a window.
    fn depth(&self) -> usize {
        self.channels * self.taps[0] * self.taps[1]
    }

    fn run(&self, input: &[f32], weights: &[f32], out: &mut [f32]) {
        let (depth, count) = (self.depth(), self.places[0] * self.places[1]);
        let plane = self.channels * self.size[0] * self.size[1];
        let at_once = (LAID_OUT / depth.max(1)).clamp(64, count.max(64));
        // For each image and group, its rows of the result in parts of this many places.
        let mut tasks: Vec<(usize, usize, Vec<&mut [f32]>)> = Vec::new();
        for (number, rows) in out.chunks_mut(self.rows * count).enumerate() {
            let first = tasks.len();
            for part in (0..count).step_by(at_once) {
                tasks.push((number, part, Vec::with_capacity(self.rows)));
            }
            for row in rows.chunks_mut(count) {
                for (part, piece) in row.chunks_mut(at_once).enumerate() {
                    tasks[first + part].2.push(piece);
                }
            }
        }
        let one = |(number, first, mut rows): (usize, usize, Vec<&mut [f32]>)| {
            let places = rows.first().map_or(0, |row| row.len());
            let image = &input[number * plane..][..plane];
            let group = number % self.with.groups;
            let weights = &weights[group * self.rows * depth..][..self.rows * depth];
            let mut columns = vec![0.0; depth * places];
            self.lay_out(image, first, places, &mut columns);
            let mut product = vec![0.0; self.rows * places];
            let sizes = [self.rows, places, depth];
            if depth > 0 {
                let (a, b) = (Matrix::new(weights, depth, false), Matrix::new(&columns, places, false));
                gemm(sizes, a, b, 1.0, &mut product, false);
            }
            for (row, product) in rows.iter_mut().zip(product.chunks(places)) {
                row.copy_from_slice(product);
            }
        };
        if tasks.len() * self.rows * at_once * depth > 1 << 18 {
            parallel::each(tasks, |(_, task)| one(task));
        } else {
            tasks.into_iter().for_each(one);
        }
    }

    /// Windows from the place `first` on, as columns: a row of `columns` for each tap of each channel.
    fn lay_out(&self, image: &[f32], first: usize, places: usize, columns: &mut [f32]) {
        let ([height, width], [tap_rows, tap_columns]) = (self.size, self.taps);
        for (tap, row) in columns.chunks_mut(places).enumerate() {
            let (channel, y, x) =
                (tap / (tap_rows * tap_columns), tap / tap_columns % tap_rows, tap % tap_columns);
            let plane = &image[channel * height * width..][..height * width];
            let mut done = 0;
            while done < places {
                let (place_y, place_x) = ((first + done) / self.places[1], (first + done) % self.places[1]);
                let length = (self.places[1] - place_x).min(places - done);
                let piece = &mut row[done..done + length];
                let source = (place_y * self.with.stride[0] + y * self.with.dilation[0])
                    .checked_sub(self.with.padding[0])
                    .filter(|&y| y < height);
                match source {
                    Some(y) => self.take_row(&plane[y * width..][..width], place_x, x, piece),
                    None => piece.fill(0.0),
                }
                done += length;
            }
        }
    }

    /// Elements of one row of the image for neighbouring places.
    fn take_row(&self, row: &[f32], place: usize, tap: usize, piece: &mut [f32]) {
        let (stride, padding) = (self.with.stride[1], self.with.padding[1]);
        let begin = place * stride + tap * self.with.dilation[1];
        // Places before the first element, and up to the last.
        let before = padding.saturating_sub(begin).div_ceil(stride).min(piece.len());
        let inside = (row.len() + padding).saturating_sub(begin).div_ceil(stride).clamp(before, piece.len());
        piece[..before].fill(0.0);
        piece[inside..].fill(0.0);
        if inside > before {
            let from = &row[begin + before * stride - padding..];
            if stride == 1 {
                piece[before..inside].copy_from_slice(&from[..inside - before]);
            } else {
                piece[before..inside]
                    .iter_mut()
                    .zip(from.iter().step_by(stride))
                    .for_each(|(to, from)| *to = *from);
            }
        }
    }
}
