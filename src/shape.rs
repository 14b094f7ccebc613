//! Shapes and element types.

pub(crate) mod along;
pub(crate) mod attention;
pub(crate) mod axes;
mod bfloat;
pub(crate) mod broadcast;
mod convert;
mod dtype;
mod element;
mod half;
pub(crate) mod layout;
pub(crate) mod norm;
pub(crate) mod pixels;
pub(crate) mod ranges;
pub(crate) mod resize;
mod truth;
pub(crate) mod windows;

use std::fmt;

pub use bfloat::Bf16;
pub use dtype::DType;
pub(crate) use dtype::Format;
pub use element::Element;
pub use half::F16;
pub use truth::Bool;

/// The largest rank a tensor may have.
pub const MAX_RANK: usize = 8;

/// The extents of a dense, row-major tensor of rank 0 to 8.
///
/// ```
/// use tidemill::Shape;
/// let s = Shape::from([64, 784]);
/// assert_eq!(s.rank(), 2);
/// assert_eq!(s.elements(), 50_176);
/// assert_eq!(s.to_string(), "[64, 784]");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// A shape from a slice of extents; `None` if there are more than [`MAX_RANK`].
    pub fn new(extents: &[usize]) -> Option<Shape> {
        let mut dims = [0; MAX_RANK];
        dims.get_mut(..extents.len())?.copy_from_slice(extents);
        Some(Shape { dims, rank: extents.len() as u8 })
    }

    /// The extents, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank()]
    }

    /// How many dimensions there are; a scalar has none.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// How many elements there are: the product of the extents, 1 for a scalar. Saturates instead of
    /// overflowing, so that an absurd shape is refused for its size and never wraps to a small one.
    pub fn elements(&self) -> usize {
        product(self.dims())
    }
}

/// The product of extents: saturates, and a zero anywhere wins over that.
pub(crate) fn product(extents: &[usize]) -> usize {
    let checked = extents.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent));
    checked.unwrap_or(if extents.contains(&0) { 0 } else { usize::MAX })
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.dims(), f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<usize> for Shape {
    fn from(n: usize) -> Shape {
        Shape::from([n])
    }
}

macro_rules! shape_from_array {
    ($($rank:literal),*) => {$(
        impl From<[usize; $rank]> for Shape {
            fn from(extents: [usize; $rank]) -> Shape {
                let mut dims = [0; MAX_RANK];
                dims[..$rank].copy_from_slice(&extents);
                Shape { dims, rank: $rank }
            }
        }
    )*};
}
shape_from_array!(0, 1, 2, 3, 4, 5, 6, 7, 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_scalars_empty_and_absurd_shapes() {
        assert_eq!(Shape::from([]).elements(), 1);
        assert_eq!(Shape::from([3, 0, 5]).elements(), 0);
        assert_eq!(Shape::from([usize::MAX, 2]).elements(), usize::MAX);
        assert_eq!(Shape::from([usize::MAX, 2, 0]).elements(), 0);
        assert_eq!(Shape::new(&[1; MAX_RANK + 1]), None);
    }
}
