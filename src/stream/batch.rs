//! A completed batch, whose results are being consumed. Its drop frees the slot.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::shared::{Done, Shared};
use super::slot::partial;
use crate::error::{Error, Result, StreamError};
use crate::runtime::profile::row::Profile;
use crate::runtime::submission::Submission;
use crate::runtime::tensor::Tensor;
use crate::shape::Element;

/// A batch that is done. It holds its slot until it is dropped.
pub struct Batch {
    shared: Arc<Shared>,
    slot: usize,
    number: u64,
    submission: Submission,
    /// If it is partial: its rows, out of this many.
    rows: Option<(usize, usize)>,
    popped: Instant,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({})", self.number)
    }
}

impl Batch {
    fn new(shared: Arc<Shared>, done: Done) -> Batch {
        let Done { slot, number, submission, rows } = done;
        Batch { shared, slot, number, submission, rows, popped: Instant::now() }
    }

    /// Its number, from 0: batches come in the order in which they were pushed.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its rows, if it is a partial one; see [`Slot::rows`](super::slot::Slot::rows).
    pub fn rows(&self) -> Option<usize> {
        self.rows.map(|(rows, _)| rows)
    }

    /// An output's elements.
    ///
    /// # Errors
    ///
    /// [`StreamError::NoSuchOutput`], [`Error::Type`]; [`Error::DeviceLost`].
    pub fn read<T: Element>(&self, output: usize) -> Result<Vec<T>> {
        let tensor = self.output(output)?;
        let mut data = tensor.read::<T>()?;
        data.truncate(partial(tensor, self.rows));
        Ok(data)
    }

    /// An output's elements, copied to a slice of as many.
    ///
    /// # Errors
    ///
    /// As [`read`](Batch::read), and [`Error::Length`] if the slice's length differs.
    pub fn read_into<T: Element>(&self, output: usize, data: &mut [T]) -> Result<()> {
        let tensor = self.output(output)?;
        if partial(tensor, self.rows) == tensor.shape().elements() {
            return tensor.read_into(data);
        }
        let read = self.read::<T>(output)?;
        if data.len() != read.len() {
            return Err(Error::Length { op: "read", shape: tensor.shape(), got: data.len() });
        }
        data.copy_from_slice(&read);
        Ok(())
    }

    /// An output as a tensor, for further work on the device. It belongs to the slot: after the batch is
    /// dropped, a later one may replace its contents.
    ///
    /// # Errors
    ///
    /// [`StreamError::NoSuchOutput`].
    pub fn output(&self, output: usize) -> Result<&Tensor> {
        let all = self.shared.outputs(self.slot);
        Ok(all.get(output).ok_or(StreamError::NoSuchOutput { output, outputs: all.len() })?)
    }

    /// The device's work for it; see [`Submission::profile`].
    ///
    /// # Errors
    ///
    /// As [`Submission::profile`].
    pub fn profile(&self) -> Result<Profile> {
        self.submission.profile()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.shared.release(self.slot, self.number, self.popped);
    }
}

impl Shared {
    /// The oldest batch, if it is done.
    pub(super) fn try_pop(self: &Arc<Shared>) -> Result<Option<Batch>> {
        Ok(self.try_take()?.map(|done| Batch::new(self.clone(), done)))
    }

    /// Waits for the oldest batch, and for there to be one; `None` when the producer is gone and nothing is left, or
    /// when the time is over. Nothing has changed then.
    pub(super) fn pop(self: &Arc<Shared>, timeout: Option<Duration>) -> Result<Option<Batch>> {
        Ok(self.wait_and_take(timeout)?.map(|done| Batch::new(self.clone(), done)))
    }

    /// The oldest batch, when it is done; `None` when the producer is gone and nothing is left.
    pub(super) fn poll_pop(self: &Arc<Shared>, context: &mut Context<'_>) -> Poll<Result<Option<Batch>>> {
        self.poll_take(context).map_ok(|done| done.map(|done| Batch::new(self.clone(), done)))
    }
}
