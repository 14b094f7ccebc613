//! Tensors that are changed in place: a part, or all of one.

use crate::error::{Error, Result};
use crate::ir::copy::{Copy, CopyBox};
use crate::ir::value::ValueId;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::Recording;
use crate::runtime::state::update_label;
use crate::runtime::tensor::Tensor;
use crate::shape::layout;
use crate::shape::ranges::Ranges;
use crate::shape::{MAX_RANK, Shape};

/// # State
///
/// Operations that change a tensor instead of making a value. Each value is still what it was: an operation sees a
/// tensor as of the call that recorded it, so that what was recorded before an update reads the old contents, and what
/// is recorded behind it the new ones. Updates of several submissions take effect in the order of the submissions, each
/// on the contents that the one before has left.
impl Recording {
    /// Writes `value` to a box of an existing tensor, in place; no other element is touched. One range per dimension,
    /// outermost first; dimensions left out are taken whole. Bits pass unchanged.
    ///
    /// `value` may depend on the tensor, on the same elements too. Work in flight that uses the tensor forces no copy.
    /// If an open recording has captured the tensor, or another tensor is a view of it, it moves to other memory, and
    /// all of it is copied there once. Of packed elements, which share words with others, all of the tensor is made
    /// again.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let cache = gpu.upload(&[0.0f32; 6], [3, 2])?;
    /// let token = gpu.upload(&[1.0f32, 2.0], [1, 2])?;
    /// let r = gpu.begin_recording()?;
    /// let before = r.sum(&cache, -1)?;
    /// r.update(&cache, 1..2, &token)?;
    /// let after = r.sum(&cache, -1)?;
    /// let (before, after) = (r.keep(before)?, r.keep(after)?);
    /// r.end_recording()?.wait()?;
    /// assert_eq!(cache.read::<f32>()?, [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
    /// assert_eq!(before.read::<f32>()?, [0.0, 0.0, 0.0]);
    /// assert_eq!(after.read::<f32>()?, [0.0, 3.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`] if a range does not lie inside its dimension; [`Error::Shapes`] if the value is not of the
    /// box's shape; [`Error::Type`] if it is of another type; [`Error::NotWritten`], [`Error::NotSubmitted`] or
    /// [`Error::Discarded`] if the tensor has no contents; [`Error::ForeignTensor`] and [`Error::ForeignValue`].
    pub fn update<'a>(
        &self,
        tensor: &Tensor,
        ranges: impl Into<Ranges>,
        value: impl IntoOperand<'a>,
    ) -> Result<()> {
        let (op, ranges) = ("update", ranges.into());
        let id = self.resolve(op, value)?;
        let part = layout::slice_as(op, tensor.shape(), &ranges)?.shape;
        self.check_value(op, id, tensor, part)?;
        if part == tensor.shape() {
            return self.assign_as(op, tensor, id);
        }
        let mut corner = [0; MAX_RANK];
        for ((corner, range), extent) in corner.iter_mut().zip(&ranges.0).zip(tensor.shape().dims()) {
            *corner = range.within(*extent).start;
        }
        if tensor.dtype().is_packed() && part.elements() > 0 {
            return self.all_or_nothing(|r| r.update_packed(op, tensor, id, corner));
        }
        let state = self.updated_tensor(op, tensor, false)?;
        if part.elements() == 0 {
            return Ok(());
        }
        let input = self.apart_from(tensor, id)?;
        // The tensor may have been recorded in another shape of as many elements: boxes go by the caller's.
        let (over, next) = (self.current(state), self.next_version(state, tensor.shape()));
        let label = update_label(self, op, part, next);
        self.push(label, CopyBox { input, shape: part, output: next, corner, over: Some(over) })?;
        self.set_current(next);
        Ok(())
    }

    /// Gives an existing tensor a new value, in its own memory: its clones and reshapes have it, too, and plans that
    /// use the tensor go on without a new encoding. The operation that makes the value writes it there by itself where
    /// it can, so that nothing is copied: as in `w = w - rate * gradient`.
    ///
    /// A tensor without contents may be assigned. Everything else is as in [`update`](Recording::update), with all of
    /// the tensor as the box.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let count = gpu.upload(&[0u32], [1])?;
    /// let r = gpu.begin_recording()?;
    /// let next = r.add_scalar(&count, 1u32)?;
    /// r.assign(&count, next)?;
    /// let mut plan = r.into_plan()?;
    /// for _ in 0..5 {
    ///     let _ = plan.submit()?;
    /// }
    /// assert_eq!(count.read::<u32>()?, [5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] and [`Error::Type`] if the value is not of the tensor's kind; [`Error::NotSubmitted`] if an
    /// open recording or a plan is to write the tensor first; [`Error::ForeignTensor`] and [`Error::ForeignValue`].
    pub fn assign<'a>(&self, tensor: &Tensor, value: impl IntoOperand<'a>) -> Result<()> {
        let op = "assign";
        let id = self.resolve(op, value)?;
        self.check_value(op, id, tensor, tensor.shape())?;
        self.assign_as(op, tensor, id)
    }

    /// Writes a box of elements that share words with others: the tensor is made again, whole words at a time.
    fn update_packed(
        &self,
        op: &'static str,
        tensor: &Tensor,
        id: ValueId,
        corner: [usize; MAX_RANK],
    ) -> Result<()> {
        let (whole, part) = (tensor.shape(), self.kind(id).0);
        let inside = self.resolve(op, self.fill(part, 1u32)?)?;
        let mask = self.placed(op, inside, (whole, corner), 0)?;
        let value = self.placed(op, self.widened(id)?, (whole, corner), 0)?;
        let value = self.cast(value, tensor.dtype())?;
        let next = self.select(mask, value, tensor)?;
        self.assign_as(op, tensor, self.resolve(op, next)?)
    }

    fn assign_as(&self, op: &'static str, tensor: &Tensor, id: ValueId) -> Result<()> {
        let state = self.updated_tensor(op, tensor, true)?;
        if self.bytes(id) == 0 {
            return Ok(());
        }
        let input = self.apart_from(tensor, id)?;
        let next = self.next_version(state, tensor.shape());
        self.push(self.label(op, next), Copy { input, output: next })?;
        self.set_current(next);
        Ok(())
    }

    /// Refuses a value that is not of the tensor's type and of that shape.
    fn check_value(&self, op: &'static str, id: ValueId, tensor: &Tensor, part: Shape) -> Result<()> {
        let (shape, dtype) = self.kind(id);
        if dtype != tensor.dtype() {
            return Err(Error::of_type(op, "value", &[tensor.dtype()], dtype));
        }
        if shape != part {
            let why = format!("the value must have the shape {part} of what is written");
            return Err(Error::Shapes { op, lhs: part, rhs: shape, why });
        }
        Ok(())
    }

    /// The value, or a copy of it if it is the tensor's own contents: no copy reads the memory that it writes.
    pub(crate) fn apart_from(&self, tensor: &Tensor, id: ValueId) -> Result<ValueId> {
        if !self.is_state(id, &tensor.storage) {
            return Ok(id);
        }
        let copy = self.copy(self.handle(id))?;
        self.resolve("copy", copy)
    }
}
