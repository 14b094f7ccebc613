//! Which axes an operation works along.

use super::{MAX_RANK, Shape, product};
use crate::error::{Error, Result};

/// An axis as an index; negative ones count from the end.
pub(crate) fn resolve_axis(op: &'static str, axis: isize, rank: usize) -> Result<usize> {
    let resolved = if axis < 0 { axis + rank as isize } else { axis };
    if (0..rank as isize).contains(&resolved) {
        Ok(resolved as usize)
    } else {
        Err(Error::Axis { op, axis, rank })
    }
}

/// A dense shape seen along one axis: `[outer, extent, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) outer: u64,
    pub(crate) extent: u64,
    pub(crate) inner: u64,
}

impl Geometry {
    /// Along one axis.
    pub(crate) fn along(shape: &Shape, axis: usize) -> Geometry {
        let dims = shape.dims();
        Geometry {
            outer: product(&dims[..axis]) as u64,
            extent: dims[axis] as u64,
            inner: product(&dims[axis + 1..]) as u64,
        }
    }

    /// All elements as one row.
    pub(crate) fn whole(shape: &Shape) -> Geometry {
        Geometry { outer: 1, extent: shape.elements() as u64, inner: 1 }
    }

    /// Rows, or columns that lie side by side.
    pub(crate) fn is_rows(&self) -> bool {
        self.inner == 1
    }

    /// What is left when the middle is gone.
    pub(crate) fn results(&self) -> u64 {
        self.outer.saturating_mul(self.inner)
    }
}

/// What a reduction runs over: one axis, or all of them. An integer stands for an axis; negative ones count from the
/// end.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::Axes;
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
/// let r = gpu.begin_recording()?;
/// let rows = r.sum(&x, 1)?;
/// let kept = r.sum(&x, Axes::at(-1).keep())?;
/// let all = r.sum(&x, Axes::ALL)?;
/// assert_eq!(r.shape(rows)?, [2].into());
/// assert_eq!(r.shape(kept)?, [2, 1].into());
/// assert_eq!(r.shape(all)?, [].into());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    /// `None` is all.
    axis: Option<isize>,
    keep: bool,
}

impl Axes {
    /// All axes: the result is a scalar, of shape `[]`.
    pub const ALL: Axes = Axes { axis: None, keep: false };

    /// One axis; negative ones count from the end.
    pub const fn at(axis: isize) -> Axes {
        Axes { axis: Some(axis), keep: false }
    }

    /// Reduced axes stay in the shape, with one element each.
    pub const fn keep(self) -> Axes {
        Axes { keep: true, ..self }
    }

    /// The shape seen along the axes, and the shape of a result.
    pub(crate) fn apply(self, op: &'static str, shape: &Shape) -> Result<(Geometry, Shape)> {
        let dims = shape.dims();
        let Some(axis) = self.axis else {
            let result = if self.keep { &[1; MAX_RANK][..dims.len()] } else { &[] };
            return Ok((Geometry::whole(shape), Shape::new(result).unwrap_or_default()));
        };
        let axis = resolve_axis(op, axis, shape.rank())?;
        let left: smallvec::SmallVec<[usize; 4]> = dims
            .iter()
            .enumerate()
            .filter(|&(d, _)| self.keep || d != axis)
            .map(|(d, &extent)| if d == axis { 1 } else { extent })
            .collect();
        Ok((Geometry::along(shape, axis), Shape::new(&left).unwrap_or_default()))
    }
}

impl From<isize> for Axes {
    fn from(axis: isize) -> Axes {
        Axes::at(axis)
    }
}

impl From<i32> for Axes {
    fn from(axis: i32) -> Axes {
        Axes::at(axis as isize)
    }
}

impl From<usize> for Axes {
    fn from(axis: usize) -> Axes {
        // No tensor has that many axes: what does not fit is refused like any other that is not there.
        Axes::at(isize::try_from(axis).unwrap_or(isize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_around_nothing_may_be_huge() {
        let geometry = Geometry::along(&Shape::from([1 << 40, 0, 1 << 40, 1 << 40]), 1);
        assert_eq!((geometry.extent, geometry.results()), (0, u64::MAX));
        assert_eq!(Geometry::along(&Shape::from([0, 1 << 40, 1 << 40]), 2).results(), 0);
    }

    #[test]
    fn shapes_of_results() {
        let shape = Shape::from([2, 3, 5]);
        let result = |axes: Axes| axes.apply("sum", &shape).map(|(_, shape)| shape);
        assert_eq!(result(Axes::at(1)).ok(), Some([2, 5].into()));
        assert_eq!(result(Axes::at(-3)).ok(), Some([3, 5].into()));
        assert_eq!(result(Axes::at(2).keep()).ok(), Some([2, 3, 1].into()));
        assert_eq!(result(Axes::ALL).ok(), Some([].into()));
        assert_eq!(result(Axes::ALL.keep()).ok(), Some([1, 1, 1].into()));
        for axis in [3, -4, 100, -100] {
            assert!(matches!(result(Axes::at(axis)), Err(Error::Axis { rank: 3, .. })), "{axis}");
        }
    }
}
