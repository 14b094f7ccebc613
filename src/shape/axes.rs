//! Which axes an operation works along.

use smallvec::SmallVec;

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

    /// Elements of the result, without the middle.
    pub(crate) fn results(&self) -> u64 {
        self.outer.saturating_mul(self.inner)
    }
}

/// The axes of a reduction: one, several or all of them. An integer stands for an axis, an array for several;
/// negative ones count from the end.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::Axes;
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
/// let r = gpu.begin_recording()?;
/// let rows = r.sum(&x, 1)?;
/// let kept = r.sum(&x, Axes::at(-1).keep())?;
/// let both = r.sum(&x, [0, 1])?;
/// let all = r.sum(&x, Axes::ALL)?;
/// assert_eq!(r.shape(rows)?, [2].into());
/// assert_eq!(r.shape(kept)?, [2, 1].into());
/// assert_eq!(r.shape(both)?, [].into());
/// assert_eq!(r.shape(all)?, [].into());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    /// `None` is all.
    axes: Option<List>,
    keep: bool,
}

/// Axes as they were named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct List {
    axes: [isize; MAX_RANK],
    /// How many were named: those beyond `MAX_RANK` can't all be different.
    count: usize,
}

/// A reduction over axes that have been resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Along {
    /// The order of dimensions that puts the axes side by side; `None` where they are.
    pub(crate) order: Option<SmallVec<[usize; MAX_RANK]>>,
    /// The operand, in that order, seen along them.
    pub(crate) geometry: Geometry,
    /// The shape of a result.
    pub(crate) shape: Shape,
}

impl Axes {
    /// All axes: the result is a scalar, of shape `[]`.
    pub const ALL: Axes = Axes { axes: None, keep: false };

    /// One axis; negative ones count from the end.
    pub const fn at(axis: isize) -> Axes {
        let mut axes = [0; MAX_RANK];
        axes[0] = axis;
        Axes { axes: Some(List { axes, count: 1 }), keep: false }
    }

    /// Several axes; negative ones count from the end. Over none, each element is reduced alone.
    ///
    /// A reduction runs over axes that lie side by side as they are, and over others once they have been copied to lie
    /// side by side. Places count through the axes in the operand's order, row by row.
    pub fn of(axes: &[isize]) -> Axes {
        let mut list = List { axes: [0; MAX_RANK], count: axes.len() };
        list.axes.iter_mut().zip(axes).for_each(|(to, from)| *to = *from);
        Axes { axes: Some(list), keep: false }
    }

    /// Reduced axes stay in the shape, with one element each.
    pub const fn keep(self) -> Axes {
        Axes { keep: true, ..self }
    }

    /// Which dimensions are reduced.
    fn resolve(self, op: &'static str, rank: usize) -> Result<[bool; MAX_RANK]> {
        let Some(List { axes, count }) = self.axes else { return Ok([true; MAX_RANK]) };
        let mut reduced = [false; MAX_RANK];
        for &axis in &axes[..count.min(MAX_RANK)] {
            let d = resolve_axis(op, axis, rank)?;
            if std::mem::replace(&mut reduced[d], true) {
                return Err(Error::AxisTwice { op, axis: d });
            }
        }
        // All dimensions that there can be are named, so one of the rest is there again or is none at all.
        if count > MAX_RANK { Err(Error::Axis { op, axis: MAX_RANK as isize, rank }) } else { Ok(reduced) }
    }

    /// The shape seen along the axes, and that of a result.
    pub(crate) fn apply(self, op: &'static str, shape: &Shape) -> Result<Along> {
        let (dims, reduced) = (shape.dims(), self.resolve(op, shape.rank())?);
        let extents = |wanted: bool| (0..dims.len()).filter(move |&d| reduced[d] == wanted);
        let kept = (0..dims.len()).filter(|&d| self.keep || !reduced[d]);
        let left: SmallVec<[usize; MAX_RANK]> = kept.map(|d| if reduced[d] { 1 } else { dims[d] }).collect();
        let result = Shape::new(&left).unwrap_or_default();
        // Dimensions of one element are nowhere in the way.
        let mut axes = extents(true).filter(|&d| dims[d] != 1);
        let first = axes.next().or_else(|| extents(true).next()).unwrap_or(dims.len());
        let last = axes.next_back().map_or(first, |last| last.max(first));
        let end = (last + 1).min(dims.len());
        let side_by_side = (first..end).all(|d| reduced[d] || dims[d] == 1);
        if side_by_side {
            let geometry = Geometry {
                outer: product(&dims[..first]) as u64,
                extent: product(&dims[first..end]) as u64,
                inner: product(&dims[end..]) as u64,
            };
            return Ok(Along { order: None, geometry, shape: result });
        }
        let of = |wanted| extents(wanted).map(|d| dims[d]).collect::<SmallVec<[usize; MAX_RANK]>>();
        let geometry =
            Geometry { outer: product(&of(false)) as u64, extent: product(&of(true)) as u64, inner: 1 };
        Ok(Along { order: Some(extents(false).chain(extents(true)).collect()), geometry, shape: result })
    }
}

impl<const N: usize> From<[isize; N]> for Axes {
    fn from(axes: [isize; N]) -> Axes {
        Axes::of(&axes)
    }
}

impl From<&[isize]> for Axes {
    fn from(axes: &[isize]) -> Axes {
        Axes::of(axes)
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
    fn axes_side_by_side_are_one() {
        let along = |dims: &[usize], axes: &[isize]| {
            let along = Axes::of(axes).apply("sum", &Shape::new(dims).unwrap()).unwrap();
            let Geometry { outer, extent, inner } = along.geometry;
            (along.order.map(|order| order.to_vec()), [outer, extent, inner])
        };
        assert_eq!(along(&[2, 3, 5, 7], &[1, 2]), (None, [2, 15, 7]));
        assert_eq!(along(&[2, 3, 5, 7], &[3, 2]), (None, [6, 35, 1]));
        assert_eq!(along(&[2, 3, 1, 7], &[1, 3]), (None, [2, 21, 1]));
        assert_eq!(along(&[2, 1, 5, 7], &[1, 3]), (None, [10, 7, 1]));
        assert_eq!(along(&[2, 3, 5, 7], &[0, 2]), (Some(vec![1, 3, 0, 2]), [21, 10, 1]));
        assert_eq!(along(&[2, 3], &[]), (None, [6, 1, 1]));
        assert_eq!(along(&[1, 1], &[0, 1]), (None, [1, 1, 1]));
        assert_eq!(along(&[], &[]), (None, [1, 1, 1]));
        assert_eq!(along(&[2, 3, 5], &[1]), (None, [2, 3, 5]));
    }

    #[test]
    fn shapes_of_results() {
        let shape = Shape::from([2, 3, 5]);
        let result = |axes: Axes| axes.apply("sum", &shape).map(|along| along.shape);
        assert_eq!(result(Axes::at(1)).ok(), Some([2, 5].into()));
        assert_eq!(result(Axes::at(-3)).ok(), Some([3, 5].into()));
        assert_eq!(result(Axes::at(2).keep()).ok(), Some([2, 3, 1].into()));
        assert_eq!(result(Axes::ALL).ok(), Some([].into()));
        assert_eq!(result(Axes::ALL.keep()).ok(), Some([1, 1, 1].into()));
        assert_eq!(result(Axes::of(&[0, -1])).ok(), Some([3].into()));
        assert_eq!(result(Axes::of(&[2, 0]).keep()).ok(), Some([1, 3, 1].into()));
        assert_eq!(result(Axes::of(&[])).ok(), Some([2, 3, 5].into()));
        assert!(matches!(result(Axes::of(&[1, -2])), Err(Error::AxisTwice { axis: 1, .. })));
        assert!(matches!(result(Axes::of(&[0, 1, 2, 0, 1])), Err(Error::AxisTwice { axis: 0, .. })));
        for axis in [3, -4, 100, -100] {
            assert!(matches!(result(Axes::at(axis)), Err(Error::Axis { rank: 3, .. })), "{axis}");
        }
    }
}
