//! A slot that is being filled.

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result, StreamError};
use crate::runtime::tensor::{Tensor, TensorWriter};
use crate::shape::Element;

/// The inputs of a batch that is being prepared. Every one must be written.
#[derive(Debug)]
pub struct Slot<'a> {
    batch: u64,
    inputs: &'a [Tensor],
    written: SmallVec<[bool; 4]>,
    /// Rows of a whole batch, and of this one.
    most: Option<usize>,
    rows: Option<usize>,
}

impl<'a> Slot<'a> {
    pub(super) fn new(batch: u64, inputs: &'a [Tensor], most: Option<usize>) -> Slot<'a> {
        Slot { batch, inputs, written: smallvec![false; inputs.len()], most, rows: None }
    }

    /// The batch's number, from 0.
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// Makes this a partial batch, as the last one may be: it has this many rows, counted by the first dimension of the
    /// first input. Inputs with that first dimension then take this many, the rest is set to zero, and outputs with it
    /// give this many. Call it before the inputs are written.
    ///
    /// # Errors
    ///
    /// [`StreamError::Rows`] if the number is 0 or too large.
    pub fn rows(&mut self, rows: usize) -> Result<()> {
        let most = self.most.unwrap_or(0);
        if rows == 0 || rows > most {
            return Err(StreamError::Rows { rows, most }.into());
        }
        self.rows = Some(rows);
        Ok(())
    }

    /// Writes an input.
    ///
    /// # Errors
    ///
    /// [`StreamError::NoSuchInput`]; [`Error::Input`] with [`Error::Type`] or [`Error::Length`].
    pub fn write<T: Element>(&mut self, input: usize, data: &[T]) -> Result<()> {
        let op = "Slot::write";
        let tensor = self.input(input)?;
        let (expected, shape) = (self.elements(tensor), tensor.shape());
        if data.len() != expected {
            return Err(self.refused(input, Error::Length { op, shape, got: data.len() }));
        }
        self.fill_as(op, input, |f: &mut TensorWriter<'_, T>| {
            f.extend_from_slice(data);
        })
    }

    /// Lets a closure write an input straight into mapped memory.
    ///
    /// # Errors
    ///
    /// [`StreamError::NoSuchInput`]; [`Error::Input`] with [`Error::Type`], or with [`Error::Incomplete`] if the
    /// closure leaves elements unwritten.
    pub fn fill<T: Element>(
        &mut self,
        input: usize,
        fill: impl FnOnce(&mut TensorWriter<'_, T>),
    ) -> Result<()> {
        self.fill_as("Slot::fill", input, fill)
    }

    fn fill_as<T: Element>(
        &mut self,
        op: &'static str,
        input: usize,
        fill: impl FnOnce(&mut TensorWriter<'_, T>),
    ) -> Result<()> {
        let tensor = self.input(input)?;
        let (elements, missing) = (self.elements(tensor), tensor.shape().elements() - self.elements(tensor));
        let mut left = 0;
        let written = tensor.write_as(op, |f: &mut TensorWriter<'_, T>| {
            fill(f);
            left = f.remaining();
            if left <= missing {
                f.rest();
            }
        });
        if left > missing {
            let written = elements - (left - missing);
            return Err(self.refused(input, Error::Incomplete { op, written, expected: elements }));
        }
        written.map_err(|error| match error {
            Error::Type { .. } => self.refused(input, error),
            // What happens to the device or to memory is not about an input.
            error => error,
        })?;
        self.written[input] = true;
        Ok(())
    }

    /// The error with the batch and the input that it is about.
    fn refused(&self, input: usize, error: Error) -> Error {
        Error::Input { batch: self.batch, input, error: Box::new(error) }
    }

    fn input(&self, input: usize) -> Result<&'a Tensor> {
        let inputs = self.inputs.len();
        Ok(self.inputs.get(input).ok_or(StreamError::NoSuchInput { input, inputs })?)
    }

    fn elements(&self, tensor: &Tensor) -> usize {
        partial(tensor, self.rows.zip(self.most))
    }

    /// The rows, once everything is written.
    pub(super) fn finish(self) -> Result<Option<usize>> {
        match self.written.iter().position(|written| !written) {
            Some(input) => Err(StreamError::NotFilled { batch: self.batch, input }.into()),
            None => Ok(self.rows),
        }
    }
}

/// The elements of a tensor that belong to a batch of some rows out of all.
pub(super) fn partial(tensor: &Tensor, rows: Option<(usize, usize)>) -> usize {
    let elements = tensor.shape().elements();
    match rows {
        Some((rows, most)) if tensor.shape().dims().first() == Some(&most) => elements / most * rows,
        _ => elements,
    }
}
