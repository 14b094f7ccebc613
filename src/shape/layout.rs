//! Shapes of operations that move elements: permute, slice, broadcast, concatenate, stack, pad, gather.

use smallvec::SmallVec;

use super::axes::{Geometry, resolve_axis};
use super::ranges::Ranges;
use super::{MAX_RANK, Shape, product};
use crate::error::{Error, Result};

type Extents = SmallVec<[usize; 2 * MAX_RANK]>;

/// A result whose elements are found in the operand by strides, from an offset on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided {
    pub(crate) shape: Shape,
    pub(crate) strides: [usize; MAX_RANK],
    pub(crate) offset: usize,
}

/// Strides of a dense tensor, outermost first. Those of a shape without elements lead nowhere, and may wrap.
pub(crate) fn dense_strides(shape: &Shape) -> [usize; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut stride = 1usize;
    for (d, extent) in shape.dims().iter().enumerate().rev() {
        strides[d] = stride;
        stride = stride.wrapping_mul(*extent);
    }
    strides
}

fn shape_of(op: &'static str, extents: &[usize]) -> Result<Shape> {
    Shape::new(extents).ok_or(Error::Rank { op, rank: extents.len() })
}

pub(crate) fn permute(op: &'static str, shape: Shape, order: &[usize]) -> Result<Strided> {
    let mut seen = [false; MAX_RANK];
    let each_once = order.iter().all(|&d| d < shape.rank() && !std::mem::replace(&mut seen[d], true));
    if order.len() != shape.rank() || !each_once {
        return Err(Error::Permutation { op, order: order.to_vec(), shape });
    }
    let from = dense_strides(&shape);
    let mut strides = [0; MAX_RANK];
    for (stride, &d) in strides.iter_mut().zip(order) {
        *stride = from[d];
    }
    let extents: Extents = order.iter().map(|&d| shape.dims()[d]).collect();
    Ok(Strided { shape: shape_of(op, &extents)?, strides, offset: 0 })
}

/// The order that exchanges the last two dimensions.
pub(crate) fn transposed(rank: usize) -> SmallVec<[usize; MAX_RANK]> {
    let rank = rank.max(2);
    let mut order: SmallVec<[usize; MAX_RANK]> = (0..rank).collect();
    order.swap(rank - 1, rank - 2);
    order
}

pub(crate) fn slice(shape: Shape, ranges: &Ranges) -> Result<Strided> {
    slice_as("slice", shape, ranges)
}

/// The same, by the name of what the user has called.
pub(crate) fn slice_as(op: &'static str, shape: Shape, ranges: &Ranges) -> Result<Strided> {
    let strides = dense_strides(&shape);
    let mut extents = Extents::from_slice(shape.dims());
    let mut offset = 0usize;
    for (d, range) in ranges.0.iter().enumerate() {
        let extent = extents.get(d).copied();
        let range = range.within(extent.unwrap_or(0));
        if !extent.is_some_and(|extent| range.start <= range.end && range.end <= extent) {
            return Err(Error::SliceRange { op, dimension: d, range, shape });
        }
        extents[d] = range.end - range.start;
        offset = offset.wrapping_add(strides[d].wrapping_mul(range.start));
    }
    Ok(Strided { shape: shape_of(op, &extents)?, strides, offset })
}

/// A box of which every `steps[d]`-th element counts; from the end of the range on where the step is negative.
pub(crate) fn slice_step(shape: Shape, ranges: &Ranges, steps: &[isize]) -> Result<Strided> {
    let op = "slice_step";
    let Strided { shape: inside, mut strides, mut offset } = slice_as(op, shape, ranges)?;
    if steps.len() > shape.rank() {
        let rule = format!("be no more than {}, the dimensions of {shape}", shape.rank());
        return Err(Error::Parameter { op, name: "the number of steps", value: steps.len() as f64, rule });
    }
    let mut extents = Extents::from_slice(inside.dims());
    for (d, &step) in steps.iter().enumerate() {
        if step == 0 {
            let rule = "not be 0".to_owned();
            return Err(Error::Parameter { op, name: "a step", value: 0.0, rule });
        }
        if step < 0 {
            offset = offset.wrapping_add(strides[d].wrapping_mul(extents[d].saturating_sub(1)));
        }
        extents[d] = extents[d].div_ceil(step.unsigned_abs());
        // Strides wrap: a negative one is added as its complement.
        strides[d] = strides[d].wrapping_mul(step as usize);
    }
    Ok(Strided { shape: shape_of(op, &extents)?, strides, offset })
}

pub(crate) fn broadcast_to(from: Shape, to: Shape) -> Result<Strided> {
    let refuse = |why| Err(Error::Shapes { op: "broadcast_to", lhs: from, rhs: to, why });
    if from.rank() > to.rank() {
        return refuse(format!("rank {} can't become {}", from.rank(), to.rank()));
    }
    let added = to.rank() - from.rank();
    let mut strides = [0; MAX_RANK];
    for (d, (&extent, stride)) in from.dims().iter().zip(dense_strides(&from)).enumerate() {
        let wanted = to.dims()[added + d];
        if extent == wanted {
            strides[added + d] = stride;
        } else if extent != 1 {
            return refuse(format!("{extent} can't be stretched to {wanted} in dimension {}", added + d));
        }
    }
    Ok(Strided { shape: to, strides, offset: 0 })
}

/// The result's shape, and the axis from the front.
pub(crate) fn concat(op: &'static str, operands: &[Shape], axis: isize) -> Result<(Shape, usize)> {
    let &shape = operands.first().ok_or(Error::NoOperands { op })?;
    let axis = resolve_axis(op, axis, shape.rank())?;
    let mut extents = Extents::from_slice(shape.dims());
    extents[axis] = 0;
    for &other in operands {
        let agrees = other.rank() == shape.rank()
            && (0..shape.rank()).all(|d| d == axis || other.dims()[d] == shape.dims()[d]);
        if !agrees {
            let why = format!("they must agree in all dimensions but {axis}");
            return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
        }
        extents[axis] = extents[axis].saturating_add(other.dims()[axis]);
    }
    Ok((shape_of(op, &extents)?, axis))
}

/// Each operand's shape with the new dimension, which is then to be concatenated along, and that axis from the front.
pub(crate) fn stack(operands: &[Shape], axis: isize) -> Result<(Shape, usize)> {
    let op = "stack";
    let &shape = operands.first().ok_or(Error::NoOperands { op })?;
    let axis = resolve_axis(op, axis, shape.rank() + 1)?;
    let mut extents = Extents::from_slice(shape.dims());
    extents.insert(axis, 1);
    let single = shape_of(op, &extents)?;
    match operands.iter().find(|other| **other != shape) {
        Some(&rhs) => Err(Error::Shapes { op, lhs: shape, rhs, why: "they must have one shape".to_owned() }),
        None => Ok((single, axis)),
    }
}

pub(crate) fn pad(shape: Shape, pads: &[(usize, usize)]) -> Result<Shape> {
    let op = "pad";
    if pads.len() != shape.rank() {
        return Err(Error::PadRank { op, pads: pads.len(), shape });
    }
    let extents: Extents = shape
        .dims()
        .iter()
        .zip(pads)
        .map(|(extent, (before, after))| extent.saturating_add(*before).saturating_add(*after))
        .collect();
    shape_of(op, &extents)
}

/// The result's shape, and the table seen along the axis: the indices' dimensions take the place of the axis.
pub(crate) fn gather(
    op: &'static str,
    table: Shape,
    indices: Shape,
    axis: isize,
) -> Result<(Shape, Geometry)> {
    let axis = resolve_axis(op, axis, table.rank())?;
    let (before, behind) = (&table.dims()[..axis], &table.dims()[axis + 1..]);
    let extents: Extents = before.iter().chain(indices.dims()).chain(behind).copied().collect();
    Ok((shape_of(op, &extents)?, Geometry::along(&table, axis)))
}

/// The table seen along the axis: the indices have its shape, but for the axis.
pub(crate) fn gather_elements(
    op: &'static str,
    table: Shape,
    indices: Shape,
    axis: isize,
) -> Result<Geometry> {
    let axis = resolve_axis(op, axis, table.rank())?;
    let agrees = table.rank() == indices.rank()
        && (0..table.rank()).all(|d| d == axis || table.dims()[d] == indices.dims()[d]);
    if !agrees {
        let why = format!("they must agree in all dimensions but {axis}");
        return Err(Error::Shapes { op, lhs: table, rhs: indices, why });
    }
    Ok(Geometry::along(&table, axis))
}

/// The result's shape, and the table seen along those of its dimensions that have indices, as if they were one.
pub(crate) fn gather_nd(table: Shape, indices: Shape) -> Result<(Shape, Geometry)> {
    let op = "gather_nd";
    let refuse = |why| Err(Error::Shapes { op, lhs: table, rhs: indices, why });
    let Some((&depth, positions)) = indices.dims().split_last() else {
        return refuse("the indices must have rank 1 or more".to_owned());
    };
    if depth == 0 || depth > table.rank() {
        return refuse(format!("{depth} indices for a table of {} dimensions", table.rank()));
    }
    let (indexed, rest) = table.dims().split_at(depth);
    let extents: Extents = positions.iter().chain(rest).copied().collect();
    let geometry = Geometry { outer: 1, extent: product(indexed) as u64, inner: product(rest) as u64 };
    Ok((shape_of(op, &extents)?, geometry))
}

/// The operand seen along the axis, of which the updates are slices.
pub(crate) fn scatter(
    op: &'static str,
    [operand, indices, updates]: [Shape; 3],
    axis: isize,
) -> Result<Geometry> {
    let (wanted, geometry) = gather(op, operand, indices, axis)?;
    if updates != wanted {
        let why = format!("with indices {indices} the updates must be {wanted}");
        return Err(Error::Shapes { op, lhs: operand, rhs: updates, why });
    }
    Ok(geometry)
}

/// The sums' shape: the first dimension becomes the segments.
pub(crate) fn segments(op: &'static str, operand: Shape, ids: Shape, segments: usize) -> Result<Shape> {
    resolve_axis(op, 0, operand.rank())?;
    if ids.dims() != &operand.dims()[..1] {
        let why = format!("the segment numbers must be [{}]", operand.dims()[0]);
        return Err(Error::Shapes { op, lhs: operand, rhs: ids, why });
    }
    let extents: Extents = [segments].iter().chain(&operand.dims()[1..]).copied().collect();
    shape_of(op, &extents)
}

/// A shape with one more dimension, the last.
pub(crate) fn with_last(op: &'static str, shape: Shape, extent: usize) -> Result<Shape> {
    let extents: Extents = shape.dims().iter().copied().chain([extent]).collect();
    shape_of(op, &extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_nothing_may_be_huge() {
        let empty = Shape::from([0, 1 << 40, 1 << 40, 3]);
        assert_eq!(permute("permute", empty, &[3, 2, 1, 0]).unwrap().shape, [3, 1 << 40, 1 << 40, 0].into());
        let ranges = Ranges::from([0..0, 5..1 << 39, 7..1 << 39, 1..2]);
        assert_eq!(slice(empty, &ranges).unwrap().shape.elements(), 0);
        let long = Shape::from([0, usize::MAX]);
        let (joined, _) = concat("concat", &[long, long], 1).unwrap();
        assert_eq!(joined, [0, usize::MAX].into());
    }
}
