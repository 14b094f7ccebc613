//! Shapes and element types.

pub(crate) mod along;
pub(crate) mod attention;
pub(crate) mod axes;
pub(crate) mod broadcast;
mod convert;
mod half;
pub(crate) mod layout;
pub(crate) mod norm;
pub(crate) mod pixels;
pub(crate) mod ranges;
pub(crate) mod resize;
pub(crate) mod windows;

use std::fmt;

pub use half::F16;

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

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// 32-bit IEEE 754 float.
    F32,
    /// 16-bit IEEE 754 float, for storage: operations compute in f32 and round what they store. Elementwise operations
    /// take them wherever they take f32, as do casts, permutations, slices, matrix products and convolutions; reductions,
    /// softmax and other operations on layouts ask for a cast.
    F16,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer; also what comparisons (0 or 1) and index results are.
    U32,
}

impl DType {
    /// The size of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 => 2,
        }
    }

    /// Bytes of this many elements in memory: whole words.
    pub(crate) fn storage_bytes(self, elements: usize) -> u64 {
        (elements.saturating_mul(self.size_bytes()) as u64).next_multiple_of(4)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::I32 => "i32",
            DType::U32 => "u32",
        })
    }
}

mod sealed {
    /// How an element travels as a scalar (the bits that kernels compute with), and as the word of a fill.
    pub trait Sealed: Copy {
        fn scalar_bits(self) -> u32;
        fn fill_word(self) -> u32 {
            self.scalar_bits()
        }
    }
    impl Sealed for f32 {
        fn scalar_bits(self) -> u32 {
            self.to_bits()
        }
    }
    impl Sealed for i32 {
        fn scalar_bits(self) -> u32 {
            self as u32
        }
    }
    impl Sealed for u32 {
        fn scalar_bits(self) -> u32 {
            self
        }
    }
    impl Sealed for super::F16 {
        fn scalar_bits(self) -> u32 {
            self.to_f32().to_bits()
        }

        fn fill_word(self) -> u32 {
            let bits = u32::from(self.to_bits());
            bits | bits << 16
        }
    }
}

/// Rust types that a tensor's elements can be read and written as: `f32`, [`F16`], `i32` and `u32`; with the feature `half`
/// also `half::f16`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type of tensors",
    label = "expected `f32`, `F16`, `i32` or `u32`",
    note = "for `f64`, convert to `f32`: `data.iter().map(|&x| x as f32)`",
    note = "for `i64`, `usize` and other wide integers, convert to `i32` or `u32`",
    note = "for `u8`, `i16` and other narrow integers, convert to `u32` or `i32`; for bytes as they are, use \
            `bytemuck::cast_slice` to `u32`, four in each",
    note = "for `bool`, use `u32`: 0 or 1, as comparisons give"
)]
pub trait Element: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// The element type that this Rust type stands for.
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
impl Element for F16 {
    const DTYPE: DType = DType::F16;
}
impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
impl Element for u32 {
    const DTYPE: DType = DType::U32;
}

#[cfg(feature = "half")]
impl sealed::Sealed for half_float::f16 {
    fn scalar_bits(self) -> u32 {
        F16::from_bits(self.to_bits()).scalar_bits()
    }

    fn fill_word(self) -> u32 {
        F16::from_bits(self.to_bits()).fill_word()
    }
}

#[cfg(feature = "half")]
impl Element for half_float::f16 {
    const DTYPE: DType = DType::F16;
}

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
