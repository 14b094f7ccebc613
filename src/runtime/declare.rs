//! Arguments are declared while recording.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::error::{ArgumentError, Result};
use crate::ir::value::{Origin, TensorVersion, ValueId};
use crate::runtime::argument::{Argument, Declared, bits_of};
use crate::runtime::operand::Value;
use crate::runtime::recording::{Recording, State};
use crate::runtime::tensor::{Contents, Storage};
use crate::shape::{DType, Element, Shape};
use crate::vk::buffer::MemoryKind;
use crate::vk::process;

/// # Arguments
impl Recording {
    /// Declares a number that the recording's [`Plan`](crate::Plan) is given by [`set`](crate::Plan::set), and that may
    /// be another one for each submission: nothing is recorded or encoded again. The range says what it may be; both
    /// ends belong to it, and for f32 they may be infinite.
    ///
    /// It is an operand of shape `[]`, which broadcasts to any other: a scalar of elementwise operations, where a
    /// [`slice_at`](Recording::slice_at) or an [`update_at`](Recording::update_at) begins, the length of a
    /// [`mask_from`](Recording::mask_from), an input of a kernel of your own. The name is for errors and for
    /// [`explain`](Recording::explain).
    ///
    /// Only a plan has arguments: [`end_recording`](Recording::end_recording) refuses a recording that declared one.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let cache = gpu.upload(&[0.0f32; 8], [4, 2])?;
    /// let token = gpu.upload(&[1.0f32, 2.0], [1, 2])?;
    /// let r = gpu.begin_recording()?;
    /// let (row, factor) = (r.argument("row", 0..=3u32)?, r.argument("factor", -10.0..=10.0f32)?);
    /// r.update_at(&cache, 0, row, r.mul(&token, factor)?)?;
    /// let mut plan = r.into_plan()?;
    /// for (i, x) in [(2, 1.0), (0, 3.0)] {
    ///     plan.set(row, i)?;
    ///     plan.set(factor, x)?;
    ///     let _ = plan.submit()?;
    /// }
    /// assert!(plan.set(row, 4).is_err());
    /// assert_eq!(cache.read::<f32>()?, [3.0, 6.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ArgumentError::Twice`] if there is one of that name; [`ArgumentError::EmptyRange`] if no number lies in the
    /// range; [`ArgumentError::Type`] unless it is f32, i32 or u32; errors of memory.
    pub fn argument<T: Element + Into<f64>>(
        &self,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<Argument<T>> {
        let (least, most): (f64, f64) = ((*range.start()).into(), (*range.end()).into());
        let value = self.argument_of(name, T::DTYPE, least..=most)?;
        Ok(Argument::of(value))
    }

    /// The same, of a type that is known only when the program runs. [`Plan::set_named`](crate::Plan::set_named) sets
    /// it.
    ///
    /// # Errors
    ///
    /// As [`argument`](Recording::argument); [`ArgumentError::NoSuchNumber`] if an end of the range is no number of the
    /// type.
    pub fn argument_of(&self, name: &str, dtype: DType, range: RangeInclusive<f64>) -> Result<Value> {
        process::check()?;
        let (core, name) = (self.shared_core(), name.to_owned());
        let (least, most) = range.into_inner();
        if !DType::WORDS.contains(&dtype) {
            return Err(ArgumentError::Type { name, got: dtype }.into());
        }
        // NaN is in no range, and not at its end.
        if least.partial_cmp(&most).is_none_or(Ordering::is_gt) {
            return Err(ArgumentError::EmptyRange { name, least, most }.into());
        }
        if let Some(value) = [least, most].into_iter().find(|end| bits_of(dtype, *end).is_none()) {
            return Err(ArgumentError::NoSuchNumber { name, dtype, value }.into());
        }
        if self.state().arguments.iter().any(|known| known.name == name) {
            return Err(ArgumentError::Twice { name }.into());
        }
        let shape = Shape::default();
        let lease = core.acquire(MemoryKind::Device, dtype.storage_bytes(1))?;
        let storage = Storage::new(core, dtype, Some(lease.clone()), Contents::Host);
        let State { graph, leases, tensors, arguments, .. } = &mut *self.edit();
        leases.push(lease);
        tensors.push((storage, shape));
        let tensor = (leases.len() - 1) as TensorVersion;
        let value = graph.add_value(shape, dtype, Origin::Tensor(tensor));
        let handle = self.handle(value);
        arguments.push(Declared { name, dtype, least, most, value, tensor, handle });
        Ok(handle)
    }

    /// Refuses arguments where nothing can set them.
    pub(crate) fn refuse_arguments(&self, op: &'static str) -> Result<()> {
        match self.state().arguments.first() {
            Some(first) => Err(ArgumentError::NoPlan { op, name: first.name.clone() }.into()),
            None => Ok(()),
        }
    }

    /// What was declared of a value, if it is an argument.
    pub(crate) fn declared(&self, id: ValueId) -> Option<Declared> {
        let root = self.graph().root(id);
        self.state().arguments.iter().find(|argument| argument.value == root).cloned()
    }
}
