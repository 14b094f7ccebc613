//! Reading and writing by index.

use smallvec::SmallVec;

use super::width::check_integer;
use crate::error::{Error, Result};
use crate::ir::copy::{Gather, Indexed};
use crate::ir::index::{Histogram, Locate, Scatter, Update};
use crate::ir::scan::SegmentSum;
use crate::ir::value::ValueId;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::along::Sort;
use crate::shape::axes::{Axes, Geometry, resolve_axis};
use crate::shape::{DType, Shape, layout};

/// The operands of a scatter, checked.
#[derive(Clone, Copy)]
struct Scattering {
    base: ValueId,
    indices: ValueId,
    updates: ValueId,
    shape: Shape,
    /// What the kernels work on,
    dtype: DType,
    /// and what the operand, and so the result, is of.
    stored: DType,
    axis: usize,
    geometry: Geometry,
}

/// A table along an axis, and the indices that read it.
#[derive(Clone, Copy)]
pub(super) struct Picked {
    pub(super) table: ValueId,
    pub(super) geometry: Geometry,
    pub(super) rows: ValueId,
    pub(super) indexed: Indexed,
}

impl Scattering {
    /// Whether there is nothing to write, or nowhere to write it.
    fn changes_nothing(&self, r: &Recording) -> bool {
        self.shape.elements() == 0 || r.kind(self.updates).0.elements() == 0
    }
}

/// # Indices
///
/// Indices are u32 or i32, uploaded or made on the device. An index that lies outside its axis (for i32, a negative
/// one, too) never touches memory: what reads by it gives zeros, and what writes by it is dropped.
/// [`count_outside`](Recording::count_outside) tells how many there are.
impl Recording {
    /// Slices of the operand along an axis by their indices: the indices' dimensions take the place of the axis, so
    /// `out[a…, i…, b…] = x[a…, indices[i…], b…]`. Negative axes count from the end. Bits pass unchanged.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// let indices = gpu.upload(&[2i32, 0, -1], [3])?;
    /// let y = gpu.run(|r| r.gather(&x, &indices, 1))?;
    /// assert_eq!(y.read::<f32>()?, [3.0, 1.0, 0.0, 6.0, 4.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Rank`], [`Error::Type`]; [`Error::BindingTooLarge`] if a binding of the device can't
    /// span the operand.
    pub fn gather<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        indices: impl IntoOperand<'a>,
        axis: isize,
    ) -> Result<Value> {
        let op = "gather";
        let (table, rows) = (self.resolve(op, operand)?, self.indices(op, indices.into())?);
        let (shape, geometry) = layout::gather(op, self.kind(table).0, self.kind(rows).0, axis)?;
        self.gather_as(op, shape, Picked { table, geometry, rows, indexed: Indexed::Slices })
    }

    /// One element of the operand for each index, from the index's own place in all dimensions but the axis: `out[a…,
    /// i, b…] = x[a…, indices[a…, i, b…], b…]`. The indices have the operand's shape, but for the axis. f32, i32, u32;
    /// bits pass unchanged.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 9.0, 3.0, 8.0, 5.0, 6.0], [2, 3])?;
    /// let y = gpu.run(|r| {
    ///     let places = r.argmax(&x, 1)?;
    ///     let places = r.reshape(places, [2, 1])?;
    ///     r.gather_elements(&x, places, 1)
    /// })?;
    /// assert_eq!(y.read::<f32>()?, [9.0, 8.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if the shapes disagree in another dimension than the axis; otherwise those of
    /// [`gather`](Recording::gather).
    pub fn gather_elements<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        indices: impl IntoOperand<'a>,
        axis: isize,
    ) -> Result<Value> {
        let op = "gather_elements";
        let (table, rows) = (self.resolve(op, operand)?, self.indices(op, indices.into())?);
        let shape = self.kind(rows).0;
        let geometry = layout::gather_elements(op, self.kind(table).0, shape, axis)?;
        self.gather_as(op, shape, Picked { table, geometry, rows, indexed: Indexed::Elements })
    }

    /// Slices of the operand by rows of indices. The last dimension of the indices has one index for each of the
    /// operand's first dimensions: `out[i…, b…] = x[indices[i…, 0], indices[i…, 1], …, b…]`. If one of a row's indices
    /// lies outside its dimension, the row gives zeros. Bits pass unchanged.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4], [2, 2])?;
    /// let indices = gpu.upload(&[1u32, 0, 0, 1, 0, 2], [3, 2])?;
    /// let y = gpu.run(|r| r.gather_nd(&x, &indices))?;
    /// assert_eq!(y.read::<u32>()?, [3, 2, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if there are more indices in a row than the operand has dimensions, or none; otherwise those
    /// of [`gather`](Recording::gather).
    pub fn gather_nd<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        indices: impl IntoOperand<'a>,
    ) -> Result<Value> {
        let op = "gather_nd";
        let (table, indices) = (self.resolve(op, operand)?, self.indices(op, indices.into())?);
        let (of, by) = (self.kind(table).0, self.kind(indices).0);
        let (shape, geometry) = layout::gather_nd(of, by)?;
        let depth = by.dims().last().copied().unwrap_or(0);
        let extents: SmallVec<_> = of.dims()[..depth].iter().map(|&extent| extent as u32).collect();
        let positions = Shape::new(&by.dims()[..by.rank() - 1]).unwrap_or_default();
        let rows = self.produce(op, positions, DType::U32)?;
        self.all_or_nothing(|r| {
            r.push(r.label(op, rows), Locate { indices, extents, output: rows })?;
            r.gather_as(op, shape, Picked { table, geometry, rows, indexed: Indexed::Slices })
        })
    }

    /// The operand with slices along an axis replaced: `out[a…, indices[i…], b…] = updates[a…, i…, b…]`. The updates
    /// have the shape that [`gather`](Recording::gather) gives with these indices. Of several updates of one place the
    /// last one counts, in the order of the indices. Bits pass unchanged.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[0.0f32; 4], [4])?;
    /// let indices = gpu.upload(&[2u32, 0, 2, 9], [4])?;
    /// let updates = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0], [4])?;
    /// let y = gpu.run(|r| r.scatter(&x, &indices, &updates, 0))?;
    /// assert_eq!(y.read::<f32>()?, [2.0, 0.0, 3.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if the updates have another shape, [`Error::Axis`], [`Error::Type`];
    /// [`Error::BindingTooLarge`] if a binding of the device can't span the operand or the updates.
    pub fn scatter<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        indices: impl IntoOperand<'a>,
        updates: impl IntoOperand<'a>,
        axis: isize,
    ) -> Result<Value> {
        let op = "scatter";
        let all = self.scattering(op, [operand.into(), indices.into(), updates.into()], axis)?;
        if all.changes_nothing(self) {
            return self.cast(self.copy(self.handle(all.base))?, all.stored);
        }
        let Scattering { base, indices, updates, shape, axis, geometry, stored, .. } = all;
        let extent = geometry.extent as usize;
        self.all_or_nothing(|r| {
            // One more than the last slot that names each place; 0 where none does, which makes an index outside of all
            // slots.
            let last = r.fill([extent], 0u32)?;
            let (output, line) =
                (r.resolve(op, last)?, Geometry { outer: 1, extent: extent as u64, inner: 1 });
            let find = Scatter {
                update: Update::Last,
                indices,
                updates: indices,
                geometry: line,
                output,
                over: None,
            };
            r.push(r.label(op, output), find)?;
            let slot = r.sub_scalar(last, 1u32)?;
            let (slots, rows) = (r.kind(indices).0.elements() as u64, r.resolve(op, slot)?);
            let of_updates = Geometry { extent: slots, ..geometry };
            let picked = Picked { table: updates, geometry: of_updates, rows, indexed: Indexed::Slices };
            let found = r.gather_as(op, shape, picked)?;
            let named = r.ne_scalar(last, 0u32)?;
            let mut extents: SmallVec<[usize; 4]> = SmallVec::from_elem(1, shape.rank() - axis);
            extents[0] = extent;
            let named = r.reshape(named, Shape::new(&extents).unwrap_or_default())?;
            let base = r.handle(base);
            r.cast(r.select(named, found, base)?, stored)
        })
    }

    /// The operand with updates added to slices along an axis: `out[a…, indices[i…], b…] += updates[a…, i…, b…]` for
    /// each `i…`. The updates have the shape that [`gather`](Recording::gather) gives with these indices. f32, i32,
    /// u32; integers wrap.
    ///
    /// Sums of floats have a fixed order, by a stable sort of the indices: the same operands give the same bits every
    /// time, on one device with one choice of kernel variants. Of n updates of one place the error is at most n · 2⁻²⁴
    /// · Σ|x|.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[10i32, 20], [2])?;
    /// let indices = gpu.upload(&[1u32, 0, 1, 9], [4])?;
    /// let updates = gpu.upload(&[1i32, 2, 3, 4], [4])?;
    /// let y = gpu.run(|r| r.scatter_add(&x, &indices, &updates, 0))?;
    /// assert_eq!(y.read::<i32>()?, [12, 24]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`scatter`](Recording::scatter).
    pub fn scatter_add<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        indices: impl IntoOperand<'a>,
        updates: impl IntoOperand<'a>,
        axis: isize,
    ) -> Result<Value> {
        let op = "scatter_add";
        let all = self.scattering(op, [operand.into(), indices.into(), updates.into()], axis)?;
        self.all_or_nothing(|r| {
            let result = if all.dtype != DType::F32 {
                r.updated(op, all, Update::Add)?
            } else if all.changes_nothing(r) {
                r.copy(r.handle(all.base))?
            } else {
                let sums = r.float_sums(op, all.shape, all.geometry, [all.indices, all.updates])?;
                r.add(r.handle(all.base), sums)?
            };
            r.cast(result, all.stored)
        })
    }

    /// The operand with each place the largest of what it was and of the updates that go there: `out[a…, indices[i…],
    /// b…] = max(out[…], updates[a…, i…, b…])` for each `i…`. Shapes are those of [`scatter`](Recording::scatter). f32,
    /// i32, u32. Exact, on every device, as [`amax`](Recording::amax): +0 is larger than −0, and if any of them is NaN,
    /// the result is.
    ///
    /// # Errors
    ///
    /// Those of [`scatter`](Recording::scatter).
    pub fn scatter_max<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        indices: impl IntoOperand<'a>,
        updates: impl IntoOperand<'a>,
        axis: isize,
    ) -> Result<Value> {
        let op = "scatter_max";
        let operands = [operand.into(), indices.into(), updates.into()];
        self.extremes(op, operands, axis, [Update::MaxF32, Update::MaxI32, Update::MaxU32])
    }

    /// The same with the smallest: −0 is smaller than +0, and if any of them is NaN, the result is.
    ///
    /// # Errors
    ///
    /// Those of [`scatter`](Recording::scatter).
    pub fn scatter_min<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        indices: impl IntoOperand<'a>,
        updates: impl IntoOperand<'a>,
        axis: isize,
    ) -> Result<Value> {
        let op = "scatter_min";
        let operands = [operand.into(), indices.into(), updates.into()];
        self.extremes(op, operands, axis, [Update::MinF32, Update::MinI32, Update::MinU32])
    }

    /// Sums of slices along the first axis, by segment: `out[s, b…] = Σ x[i, b…]` over all `i` with `ids[i] = s`. The
    /// ids need not be in order; a slice whose id is not below `segments` is dropped, and the sum of an empty segment
    /// is 0. f32, i32, u32; integers wrap, and sums of floats are those of [`scatter_add`](Recording::scatter_add).
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1i32, 2, 3, 4, 5, 6], [3, 2])?;
    /// let ids = gpu.upload(&[2u32, 0, 2], [3])?;
    /// let y = gpu.run(|r| r.segment_sum(&x, &ids, 3))?;
    /// assert_eq!(y.read::<i32>()?, [3, 4, 0, 0, 6, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] unless there is an id for each slice, [`Error::Axis`] if the operand is a scalar,
    /// [`Error::Type`], [`Error::TooLarge`], [`Error::BindingTooLarge`].
    pub fn segment_sum<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        ids: impl IntoOperand<'a>,
        segments: usize,
    ) -> Result<Value> {
        self.summed("segment_sum", operand.into(), ids.into(), segments)
    }

    /// How often each number below `bins` occurs, as u32: `out[b]` is the number of elements that are `b`. Elements
    /// that are not below `bins` are not counted. u32, i32, of any shape.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 3, 1, 7], [4])?;
    /// assert_eq!(gpu.run(|r| r.bincount(&x, 4))?.read::<u32>()?, [0, 2, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Type`], [`Error::TooLarge`], [`Error::BindingTooLarge`].
    pub fn bincount<'a>(&self, operand: impl IntoOperand<'a>, bins: usize) -> Result<Value> {
        let op = "bincount";
        let numbers = self.indices(op, operand.into())?;
        self.all_or_nothing(|r| {
            let zeros = r.fill([bins], 0u32)?;
            if bins > 0 && r.kind(numbers).0.elements() > 0 {
                let output = r.resolve(op, zeros)?;
                r.push(r.label(op, numbers), Histogram { numbers, output })?;
            }
            Ok(zeros)
        })
    }

    /// The sum of the weights of each number below `bins`: `out[b] = Σ weights[i]` over all `i` with `x[i] = b`. Both
    /// have one shape. The weights are of a type that [`segment_sum`](Recording::segment_sum) takes.
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if the shapes differ; otherwise those of [`segment_sum`](Recording::segment_sum).
    pub fn bincount_weighted<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        weights: impl IntoOperand<'a>,
        bins: usize,
    ) -> Result<Value> {
        let op = "bincount_weighted";
        let (numbers, weights) = (self.indices(op, operand.into())?, self.resolve(op, weights)?);
        let (shape, other) = (self.kind(numbers).0, self.kind(weights).0);
        if shape != other {
            let why = "there must be a weight for each number".to_owned();
            return Err(Error::Shapes { op, lhs: shape, rhs: other, why });
        }
        let line = [shape.elements()];
        let (numbers, weights) = (self.handle(numbers), self.handle(weights));
        let (numbers, weights) = (self.reshape(numbers, line)?, self.reshape(weights, line)?);
        self.summed(op, weights.into(), numbers.into(), bins)
    }

    /// A row of `classes` elements for each index: one at the index, zeros elsewhere, as u32. For another type,
    /// [`cast`](Recording::cast) it. An index outside gives zeros alone.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[2u32, 0, 5], [3])?;
    /// let y = gpu.run(|r| r.one_hot(&x, 3))?;
    /// assert_eq!(y.read::<u32>()?, [0, 0, 1, 1, 0, 0, 0, 0, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`], [`Error::Type`], [`Error::TooLarge`].
    pub fn one_hot<'a>(&self, indices: impl IntoOperand<'a>, classes: usize) -> Result<Value> {
        let op = "one_hot";
        let id = self.indices(op, indices.into())?;
        let single = layout::with_last(op, self.kind(id).0, 1)?;
        self.all_or_nothing(|r| {
            let bits = r.cast(r.handle(id), DType::U32)?;
            let column = r.reshape(bits, single)?;
            let numbers = r.iota::<u32>([classes])?;
            r.eq(column, numbers)
        })
    }

    /// How many of the indices lie outside an axis of this extent, as a u32 scalar: those that a read by index answers
    /// with zeros, and a write drops.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[2i32, 0, 5, -1], [4])?;
    /// assert_eq!(gpu.run(|r| r.count_outside(&x, 3))?.read::<u32>()?, [2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Type`].
    pub fn count_outside<'a>(&self, indices: impl IntoOperand<'a>, extent: usize) -> Result<Value> {
        let id = self.indices("count_outside", indices.into())?;
        self.all_or_nothing(|r| {
            let bits = r.cast(r.handle(id), DType::U32)?;
            // No axis is longer, and as bits no negative index is smaller.
            let outside = r.ge_scalar(bits, extent.min(1 << 31) as u32)?;
            r.sum(outside, Axes::ALL)
        })
    }

    /// Indices, as u32 or i32.
    fn indices(&self, op: &'static str, operand: Operand<'_>) -> Result<ValueId> {
        let id = self.resolve(op, operand)?;
        check_integer(op, "index list", self.kind(id).1)?;
        self.widened(id)
    }

    /// Appends the reading of a table by index.
    pub(super) fn gather_as(&self, op: &'static str, shape: Shape, picked: Picked) -> Result<Value> {
        let Picked { table, geometry, rows, indexed } = picked;
        let dtype = self.kind(table).1;
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let table = r.widened(table)?;
                r.cast(r.gather_as(op, shape, Picked { table, ..picked })?, dtype)
            });
        }
        let output = self.produce(op, shape, self.kind(table).1)?;
        self.push(self.label(op, output), Gather { table, geometry, rows, indexed, output })?;
        Ok(self.handle(output))
    }

    /// Checks the operands of a scatter: what is updated, the indices, the updates.
    fn scattering(
        &self,
        op: &'static str,
        [operand, indices, updates]: [Operand<'_>; 3],
        axis: isize,
    ) -> Result<Scattering> {
        let (base, indices) = (self.resolve(op, operand)?, self.indices(op, indices)?);
        let updates = self.resolve(op, updates)?;
        let ((shape, stored), (by, _)) = (self.kind(base), self.kind(indices));
        let (of, got) = self.kind(updates);
        if got != stored {
            return Err(Error::of_type(op, "updates", &[stored], got));
        }
        let geometry = layout::scatter(op, [shape, by, of], axis)?;
        let axis = resolve_axis(op, axis, shape.rank())?;
        let [base, updates] = self.all_widened([base, updates])?;
        Ok(Scattering { base, indices, updates, shape, dtype: stored.wide(), stored, axis, geometry })
    }

    /// A copy of the operand, to which the updates then go.
    fn updated(&self, op: &'static str, all: Scattering, update: Update) -> Result<Value> {
        let copy = self.copy(self.handle(all.base))?;
        if !all.changes_nothing(self) {
            let Scattering { indices, updates, geometry, .. } = all;
            let output = self.resolve(op, copy)?;
            self.push(
                self.label(op, updates),
                Scatter { update, indices, updates, geometry, output, over: None },
            )?;
        }
        Ok(copy)
    }

    /// As [`updated`](Recording::updated), by what the type has for the largest or smallest: f32, i32, u32.
    fn extremes(
        &self,
        op: &'static str,
        operands: [Operand<'_>; 3],
        axis: isize,
        [float, signed, unsigned]: [Update; 3],
    ) -> Result<Value> {
        let all = self.scattering(op, operands, axis)?;
        self.all_or_nothing(|r| {
            let result = match all.dtype {
                DType::I32 => r.updated(op, all, signed)?,
                DType::U32 => r.updated(op, all, unsigned)?,
                _ => {
                    let found = r.updated(op, all, float)?;
                    // The operand's own NaNs may have a sign with which they lose.
                    let base = r.handle(all.base);
                    let is_nan = r.ne(base, base)?;
                    r.select(is_nan, base, found)?
                }
            };
            r.cast(result, all.stored)
        })
    }

    /// Sums of floats by the places that indices name, in the order of the indices.
    fn float_sums(
        &self,
        op: &'static str,
        shape: Shape,
        geometry: Geometry,
        [indices, updates]: [ValueId; 2],
    ) -> Result<Value> {
        let bits = self.cast(self.handle(indices), DType::U32)?;
        let line = self.reshape(bits, [self.kind(indices).0.elements()])?;
        let (sorted, places) = self.sorted(op, line.into(), Sort::along(0), [true, true])?;
        let (ids, places) = (self.resolve(op, sorted)?, self.resolve(op, places)?);
        let output = self.produce(op, shape, DType::F32)?;
        self.push(self.label(op, updates), SegmentSum { ids, places, updates, geometry, output })?;
        Ok(self.handle(output))
    }

    /// Sums of slices along the first axis by the ids of their segments.
    fn summed(
        &self,
        op: &'static str,
        operand: Operand<'_>,
        ids: Operand<'_>,
        segments: usize,
    ) -> Result<Value> {
        let (updates, indices) = (self.widened(self.resolve(op, operand)?)?, self.indices(op, ids)?);
        let (of, dtype) = self.kind(updates);
        let shape = layout::segments(op, of, self.kind(indices).0, segments)?;
        self.all_or_nothing(|r| {
            if dtype == DType::F32 {
                if shape.elements() == 0 || of.elements() == 0 {
                    return r.fill(shape, 0.0f32);
                }
                return r.float_sums(op, shape, Geometry::along(&shape, 0), [indices, updates]);
            }
            let zeros = if dtype == DType::I32 { r.fill(shape, 0i32)? } else { r.fill(shape, 0u32)? };
            if shape.elements() > 0 && of.elements() > 0 {
                let (output, geometry) = (r.resolve(op, zeros)?, Geometry::along(&shape, 0));
                let update = Update::Add;
                r.push(
                    r.label(op, updates),
                    Scatter { update, indices, updates, geometry, output, over: None },
                )?;
            }
            Ok(zeros)
        })
    }
}
