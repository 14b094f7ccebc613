//! Images with other extents: where each element of the result lies in the operand.

use smallvec::SmallVec;

use super::{MAX_RANK, Shape, product};
use crate::error::{Error, Result};

/// How [`Recording::resize`](crate::Recording::resize) makes an element from its neighbours; numbers as in
/// `glsl/resize.comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interpolation {
    /// The nearest one, of two the lower.
    Nearest = 0,
    /// The one below.
    Floor = 1,
    /// Of the two around it, by their distances; in each dimension.
    Linear = 2,
    /// Of four, by Keys' cubic with a = −¾; in each dimension.
    Cubic = 3,
}

/// Where the elements of a resized image lie in the image that it was made from, in each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coordinates {
    /// Pixels are squares, and the borders of both images are the same: (x + ½) · from / to − ½.
    HalfPixel,
    /// Pixels are points, and the first and the last ones of both images are the same: x · (from − 1) / (to − 1).
    AlignCorners,
    /// The first ones are the same: x · from / to.
    Asymmetric,
}

/// A resizing, innermost dimension first; those that are not there have one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resizing {
    pub(crate) mode: Interpolation,
    /// Extents of an input image.
    pub(crate) image: [usize; 3],
    /// And of an output image.
    pub(crate) extents: [usize; 3],
    /// The element x of the output lies at (x · factor + offset) / divisor − 1.
    pub(crate) factor: [usize; 3],
    pub(crate) offset: [usize; 3],
    pub(crate) divisor: [usize; 3],
    /// Neighbours that count.
    pub(crate) taps: [usize; 3],
}

/// Coordinates are fractions of whole numbers below 2^31.
const MOST: usize = 1 << 14;

impl Resizing {
    /// The last dimensions of an operand with these extents, and the shape of the result.
    pub(crate) fn plan(
        shape: Shape,
        extents: &[usize],
        mode: Interpolation,
        coordinates: Coordinates,
    ) -> Result<(Resizing, Shape)> {
        let op = "resize";
        let refused = |name, value: usize, rule| Error::Parameter { op, name, value: value as f64, rule };
        let (rank, most) = (extents.len(), shape.rank().min(3));
        if !(1..=most).contains(&rank) {
            let rule =
                format!("have 1 to {most} numbers: at most three, and no more than {shape} has dimensions");
            return Err(refused("extents", rank, rule));
        }
        let inner = &shape.dims()[shape.rank() - rank..];
        let all = [1; 3];
        let (image, factor, divisor) = (all, all, all);
        let mut r = Resizing { mode, image, extents: all, factor, offset: all, divisor, taps: all };
        for (d, (&from, &to)) in inner.iter().zip(extents).rev().enumerate() {
            for (name, extent) in [("extents", to), ("the operand's extent", from)] {
                if !(1..=MOST).contains(&extent) {
                    return Err(refused(name, extent, format!("be from 1 to {MOST} in each dimension")));
                }
            }
            (r.image[d], r.extents[d]) = (from, to);
            // One more than where it lies, so that all is positive.
            (r.factor[d], r.offset[d], r.divisor[d]) = match coordinates {
                Coordinates::HalfPixel => (2 * from, from + to, 2 * to),
                Coordinates::AlignCorners if to > 1 => (from - 1, to - 1, to - 1),
                Coordinates::AlignCorners => (0, 1, 1),
                Coordinates::Asymmetric => (from, to, to),
            };
            let moves = from != to;
            r.taps[d] = match mode {
                Interpolation::Linear if moves => 2,
                Interpolation::Cubic if moves => 4,
                _ => 1,
            };
        }
        let mut dims: SmallVec<[usize; MAX_RANK]> = shape.dims().into();
        let outer = dims.len() - rank;
        dims[outer..].copy_from_slice(extents);
        Ok((r, Shape::new(&dims).unwrap_or_default()))
    }

    /// Where an element of the result lies in a dimension: the element below, and how far above it.
    pub(crate) fn place(&self, d: usize, at: usize) -> (isize, f32) {
        let n = at * self.factor[d] + self.offset[d];
        let (below, rest) = ((n / self.divisor[d]) as isize - 1, n % self.divisor[d]);
        let up = self.mode == Interpolation::Nearest && 2 * rest > self.divisor[d];
        (below + isize::from(up), rest as f32 / self.divisor[d] as f32)
    }

    /// Images in front of the dimensions that change.
    pub(crate) fn images(&self, shape: Shape) -> usize {
        shape.elements().checked_div(product(&self.image)).unwrap_or(0)
    }
}
