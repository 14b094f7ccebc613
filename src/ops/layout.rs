//! Moving elements: permute, slice, broadcast, concatenate, stack, pad, gather.

use smallvec::{SmallVec, smallvec};

use super::index::Picked;
use crate::error::{Error, Result};
use crate::ir::copy::{CopyBox, Fill, Indexed};
use crate::ir::elementwise::{Elementwise, ElementwiseInput, OpCode, Operand as ElementwiseOperand};
use crate::ir::value::ValueId;
use crate::kernels::division::MOST_DIMS;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::layout::{self, Strided};
use crate::shape::ranges::Ranges;
use crate::shape::{DType, Element, MAX_RANK, Shape};

/// Several operands, their shapes, and the element type of all.
type Operands = (SmallVec<[ValueId; 8]>, SmallVec<[Shape; 8]>, DType);

/// The dimension from which on padding makes a box of no more dimensions than kernels walk over; `None` if all of it
/// does.
fn in_turn(pads: &[(usize, usize)]) -> Option<usize> {
    let padded = (0..pads.len()).rev().filter(|&d| pads[d] != (0, 0));
    let mut beyond = padded.skip(MOST_DIMS - 1);
    beyond.next().map(|d| d + 1)
}

impl Recording {
    /// The dimensions in another order: dimension `i` of the result is dimension `order[i]` of the operand. Bits pass
    /// unchanged, those of NaN included; of f16 and bf16, a NaN stays a NaN.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6], [2, 3])?;
    /// let y = gpu.run(|r| r.permute(&x, [1, 0]))?;
    /// assert_eq!(y.read::<u32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Permutation`] unless `order` names each dimension once; [`Error::BindingTooLarge`] if a binding of the
    /// device can't span the operand.
    pub fn permute<'a>(&self, operand: impl IntoOperand<'a>, order: impl AsRef<[usize]>) -> Result<Value> {
        self.permute_as("permute", operand.into(), |_| order.as_ref().into())
    }

    pub(super) fn permute_as(
        &self,
        op: &'static str,
        operand: Operand<'_>,
        order: impl FnOnce(Shape) -> SmallVec<[usize; MAX_RANK]>,
    ) -> Result<Value> {
        let id = self.resolve(op, operand)?;
        let (shape, _) = self.kind(id);
        self.view(op, id, layout::permute(op, shape, &order(shape))?)
    }

    /// The last two dimensions exchanged. Bits pass as in [`permute`](Recording::permute).
    ///
    /// # Errors
    ///
    /// [`Error::Permutation`] if there are fewer than two.
    pub fn transpose<'a>(&self, operand: impl IntoOperand<'a>) -> Result<Value> {
        self.permute_as("transpose", operand.into(), |shape| layout::transposed(shape.rank()))
    }

    /// A box of the operand: one range per dimension, outermost first; dimensions left out are taken whole. A single
    /// range may stand alone: `r.slice(&x, 3..7)`. Ranges of several kinds stand in a tuple: `(.., 1..=2)`. Bits pass
    /// as in [`permute`](Recording::permute).
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6], [2, 3])?;
    /// let y = gpu.run(|r| r.slice(&x, (.., 1..)))?;
    /// assert_eq!(y.read::<u32>()?, [2, 3, 5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`] if a range does not lie inside its dimension, or there are more ranges than dimensions.
    pub fn slice<'a>(&self, operand: impl IntoOperand<'a>, ranges: impl Into<Ranges>) -> Result<Value> {
        let op = "slice";
        let id = self.resolve(op, operand)?;
        let (shape, _) = self.kind(id);
        self.view(op, id, layout::slice(shape, &ranges.into())?)
    }

    /// A box of the operand as by [`slice`](Recording::slice), of which every `steps[d]`-th element counts; dimensions
    /// left out count each. With a negative step it goes from the last element of the range to the first: −1 reverses.
    /// Bits pass as in [`permute`](Recording::permute).
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[0u32, 1, 2, 3, 4, 5, 6], [7])?;
    /// let (third, back) =
    ///     gpu.run(|r| Ok((r.slice_step(&x, 0..7, &[3])?, r.slice_step(&x, 1..6, &[-2])?)))?;
    /// assert_eq!((third.read::<u32>()?, back.read::<u32>()?), (vec![0, 3, 6], vec![5, 3, 1]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`] as [`slice`](Recording::slice), [`Error::Parameter`] if a step is 0 or there are more
    /// steps than dimensions.
    pub fn slice_step<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        ranges: impl Into<Ranges>,
        steps: &[isize],
    ) -> Result<Value> {
        let op = "slice_step";
        let id = self.resolve(op, operand)?;
        let (shape, _) = self.kind(id);
        self.view(op, id, layout::slice_step(shape, &ranges.into(), steps)?)
    }

    /// The operand repeated to a larger shape by NumPy's rules: dimensions of one element stretch, missing ones are
    /// added in front. Bits pass as in [`permute`](Recording::permute).
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] if a dimension can't be stretched.
    pub fn broadcast_to<'a>(&self, operand: impl IntoOperand<'a>, shape: impl Into<Shape>) -> Result<Value> {
        let op = "broadcast_to";
        let id = self.resolve(op, operand)?;
        let (from, _) = self.kind(id);
        self.view(op, id, layout::broadcast_to(from, shape.into())?)
    }

    /// A copy of what strides and an offset select.
    pub(super) fn view(
        &self,
        op: &'static str,
        input: ValueId,
        Strided { shape, strides, offset }: Strided,
    ) -> Result<Value> {
        let (_, dtype) = self.kind(input);
        let output = self.produce(op, shape, dtype)?;
        let strides = strides.map(|stride| stride as u32);
        let inputs = smallvec![ElementwiseInput { value: input, strides, offset: offset as u32 }];
        let elementwise = Elementwise::single(
            OpCode::Copy,
            [ElementwiseOperand::Input(0); 3],
            inputs,
            SmallVec::new(),
            output,
        );
        self.push(self.label(op, output), elementwise)?;
        Ok(self.handle(output))
    }

    /// The operands one after the other along `axis` (negative axes count from the end). All other dimensions must
    /// agree. Bits pass unchanged.
    ///
    /// The operands come from any iterator, which may itself record. Where tensors and values are mixed, the first is
    /// written as an [`Operand`]: `[Operand::from(&x), y.into()]`.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2], [2, 1])?;
    /// let y = gpu.upload(&[3u32, 4, 5, 6], [2, 2])?;
    /// let z = gpu.run(|r| r.concat([&x, &y], 1))?;
    /// assert_eq!(z.read::<u32>()?, [1, 3, 4, 2, 5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Axis`], [`Error::Shapes`], [`Error::Type`]; [`Error::NoOperands`] for an empty list.
    pub fn concat<'a>(
        &self,
        operands: impl IntoIterator<Item = impl IntoOperand<'a>>,
        axis: isize,
    ) -> Result<Value> {
        let op = "concat";
        let (ids, shapes, dtype) = self.operands(op, operands)?;
        let (whole, axis) = layout::concat(op, &shapes, axis)?;
        self.side_by_side(op, &ids, &shapes, (whole, axis), dtype)
    }

    /// Operands of one element type, with their shapes.
    fn operands<'a>(
        &self,
        op: &'static str,
        operands: impl IntoIterator<Item = impl IntoOperand<'a>>,
    ) -> Result<Operands> {
        let mut ids: SmallVec<[ValueId; 8]> = SmallVec::new();
        for operand in operands {
            ids.push(self.resolve(op, operand)?);
        }
        let &first = ids.first().ok_or(Error::NoOperands { op })?;
        let (_, expected) = self.kind(first);
        let mut shapes: SmallVec<[Shape; 8]> = SmallVec::new();
        for (k, &id) in ids.iter().enumerate() {
            let (shape, got) = self.kind(id);
            if got != expected {
                return Err(Error::of_type(op, format!("operand {k}"), &[expected], got));
            }
            shapes.push(shape);
        }
        Ok((ids, shapes, expected))
    }

    /// Puts operands of these shapes one after the other along an axis of the result.
    fn side_by_side(
        &self,
        op: &'static str,
        ids: &[ValueId],
        shapes: &[Shape],
        (whole, axis): (Shape, usize),
        dtype: DType,
    ) -> Result<Value> {
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let wide: Result<SmallVec<[ValueId; 8]>> = ids.iter().map(|id| r.widened(*id)).collect();
                r.cast(r.side_by_side(op, &wide?, shapes, (whole, axis), dtype.wide())?, dtype)
            });
        }
        let output = self.produce(op, whole, dtype)?;
        let label = self.label(op, output);
        let mut at = 0usize;
        for (&input, &shape) in ids.iter().zip(shapes) {
            let mut corner = [0; MAX_RANK];
            corner[axis] = at;
            self.push(label.clone(), CopyBox { input, shape, output, corner, over: None })?;
            at = at.saturating_add(shape.dims()[axis]);
        }
        Ok(self.handle(output))
    }

    /// The operands, all of one shape, side by side along a new dimension at `axis`. Bits pass unchanged.
    ///
    /// # Errors
    ///
    /// As [`concat`](Recording::concat), and [`Error::Rank`] if the result would have too many dimensions.
    pub fn stack<'a>(
        &self,
        operands: impl IntoIterator<Item = impl IntoOperand<'a>>,
        axis: isize,
    ) -> Result<Value> {
        let op = "stack";
        let (ids, shapes, dtype) = self.operands(op, operands)?;
        let (single, axis) = layout::stack(&shapes, axis)?;
        let shapes: SmallVec<[Shape; 8]> = smallvec![single; ids.len()];
        let (whole, axis) = layout::concat(op, &shapes, axis as isize)?;
        self.side_by_side(op, &ids, &shapes, (whole, axis), dtype)
    }

    /// The operand with `before` and `after` more elements of `element` around it, one pair per dimension. Bits pass
    /// unchanged.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1u32, 2], [2])?;
    /// let y = gpu.run(|r| r.pad(&x, [(1, 2)], 9u32))?;
    /// assert_eq!(y.read::<u32>()?, [9, 1, 2, 9, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::PadRank`] unless there is a pair for each dimension; [`Error::Type`] if the element's type is not the
    /// operand's.
    pub fn pad<'a, T: Element>(
        &self,
        operand: impl IntoOperand<'a>,
        pads: impl AsRef<[(usize, usize)]>,
        element: T,
    ) -> Result<Value> {
        let (op, pads) = ("pad", pads.as_ref());
        let id = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(id);
        if dtype != T::DTYPE {
            return Err(Error::of_type(op, "element", &[dtype], T::DTYPE));
        }
        let whole = layout::pad(shape, pads)?;
        if let Some(last) = in_turn(pads) {
            // Boxes in more dimensions than the kernel walks over: some of them first, the others around the result.
            let mut inner = [(0, 0); MAX_RANK];
            let mut outer = inner;
            outer[..last].copy_from_slice(&pads[..last]);
            inner[last..pads.len()].copy_from_slice(&pads[last..]);
            return self.all_or_nothing(|r| {
                let padded = r.pad(r.handle(id), &inner[..pads.len()], element)?;
                r.pad(padded, &outer[..pads.len()], element)
            });
        }
        let mut corner = [0; MAX_RANK];
        corner.iter_mut().zip(pads).for_each(|(corner, (before, _))| *corner = *before);
        self.all_or_nothing(|r| {
            let padded = r.placed(op, r.widened(id)?, (whole, corner), element.scalar_bits())?;
            r.cast(padded, dtype)
        })
    }

    /// A box of a larger tensor, of which everything else is this word.
    pub(super) fn placed(
        &self,
        op: &'static str,
        input: ValueId,
        (whole, corner): (Shape, [usize; MAX_RANK]),
        word: u32,
    ) -> Result<Value> {
        let (shape, dtype) = self.kind(input);
        let output = self.produce(op, whole, dtype)?;
        let label = self.label(op, output);
        if self.bytes(output) > 0 {
            self.push(label.clone(), Fill { word, output })?;
        }
        self.push(label, CopyBox { input, shape, output, corner, over: None })?;
        Ok(self.handle(output))
    }

    /// Rows of `table` (its slices along the first dimension) by their numbers in `rows`, a u32 tensor. A number
    /// outside the table gives a row of zeros. Bits pass unchanged.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let table = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let rows = gpu.upload(&[1u32, 0, 1], [3])?;
    /// let y = gpu.run(|r| r.gather_rows(&table, &rows))?;
    /// assert_eq!(y.read::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Type`] unless `rows` is u32; [`Error::Axis`] if the table is a scalar; [`Error::Rank`];
    /// [`Error::BindingTooLarge`] if a binding of the device can't span the table.
    pub fn gather_rows<'a>(&self, table: impl IntoOperand<'a>, rows: impl IntoOperand<'a>) -> Result<Value> {
        let op = "gather_rows";
        let (table, rows) = (self.resolve(op, table)?, self.resolve(op, rows)?);
        let ((shape, _), (wanted, rows_dtype)) = (self.kind(table), self.kind(rows));
        if rows_dtype != DType::U32 {
            return Err(Error::of_type(op, "row list", &[DType::U32], rows_dtype));
        }
        let (whole, geometry) = layout::gather(op, shape, wanted, 0)?;
        self.gather_as(op, whole, Picked { table, geometry, rows, indexed: Indexed::Slices })
    }
}
