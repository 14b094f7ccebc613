//! Slices with shapes.

use crate::error::{Error, Result};
use crate::shape::{Element, Shape};

/// A slice seen as a dense, row-major tensor: `(&data, [2, 3])`, or the slice alone for a vector.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    data: &'a [T],
    shape: Shape,
}

impl<'a, T: Element> View<'a, T> {
    /// The data in this shape; whether they fit is checked by the operation.
    pub fn new(data: &'a [T], shape: impl Into<Shape>) -> View<'a, T> {
        View { data, shape: shape.into() }
    }

    /// The elements.
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Itself, if the data fill the shape.
    pub(crate) fn checked(self, op: &'static str) -> Result<View<'a, T>> {
        check_length(op, self.shape, self.data.len())?;
        Ok(self)
    }
}

/// An error unless the shape holds exactly this many elements.
pub(crate) fn check_length(op: &'static str, shape: Shape, got: usize) -> Result<()> {
    if shape.elements() == got { Ok(()) } else { Err(Error::Length { op, shape, got }) }
}

impl<'a, T: Element> From<&'a [T]> for View<'a, T> {
    fn from(data: &'a [T]) -> View<'a, T> {
        View::new(data, data.len())
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for View<'a, T> {
    fn from(data: &'a Vec<T>) -> View<'a, T> {
        View::from(data.as_slice())
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for View<'a, T> {
    fn from(data: &'a [T; N]) -> View<'a, T> {
        View::from(data.as_slice())
    }
}

impl<'a, T: Element, D: AsRef<[T]> + ?Sized, S: Into<Shape>> From<(&'a D, S)> for View<'a, T> {
    fn from((data, shape): (&'a D, S)) -> View<'a, T> {
        View::new(data.as_ref(), shape)
    }
}
