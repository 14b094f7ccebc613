//! Pixels to channels and back.

use smallvec::SmallVec;

use super::{MAX_RANK, Shape, product};
use crate::error::{Error, Result};

/// What squares of pixels become, or are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PixelShuffle {
    ToPixels,
    ToChannels,
}

/// Images, channels of those with more pixels, and the extents of those with fewer.
pub(crate) fn squares(
    op: &'static str,
    shape: Shape,
    factor: usize,
    way: PixelShuffle,
) -> Result<[usize; 4]> {
    let refused = |name, value: usize, rule| Err(Error::Parameter { op, name, value: value as f64, rule });
    let [outer @ .., c, h, w] = shape.dims() else {
        return refused(
            "the operand's rank",
            shape.rank(),
            "be 3 at the least: channels, rows, columns".to_owned(),
        );
    };
    if !(1..=1 << 15).contains(&factor) {
        return refused("factor", factor, "be from 1 to 32768".to_owned());
    }
    let square = factor * factor;
    match way {
        PixelShuffle::ToPixels if !c.is_multiple_of(square) => {
            refused("the channels' number", *c, format!("be a multiple of {square}, the factor squared"))
        }
        PixelShuffle::ToPixels => Ok([product(outer), c / square, *h, *w]),
        PixelShuffle::ToChannels if !(h.is_multiple_of(factor) && w.is_multiple_of(factor)) => {
            let odd = if h.is_multiple_of(factor) { w } else { h };
            refused("an extent", *odd, format!("be a multiple of the factor, {factor}"))
        }
        PixelShuffle::ToChannels => Ok([product(outer), *c, h / factor, w / factor]),
    }
}

/// The shape with other extents in its last three dimensions.
pub(crate) fn resized(shape: Shape, last: [usize; 3]) -> Shape {
    let mut dims: SmallVec<[usize; MAX_RANK]> = shape.dims().into();
    let outer = dims.len().saturating_sub(3);
    dims.truncate(outer);
    dims.extend(last);
    Shape::new(&dims).unwrap_or_default()
}
