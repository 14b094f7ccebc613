//! The two ends of a stream, for two threads.

use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::report::StreamReport;
use super::shared::{Shared, StreamStats};
use super::slot::Slot;
use crate::error::Result;
use crate::runtime::measure::run::Run;

/// The end of a [`Stream`](crate::Stream) that pushes batches. Dropping it ends the input.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
}

/// The end of a [`Stream`](crate::Stream) that pops batches, in order. Dropping it stops the producer at its next push.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
}

pub(super) fn split(shared: Arc<Shared>) -> (Producer, Consumer) {
    (Producer { shared: shared.clone() }, Consumer { shared })
}

/// Ends a [`Stream`](crate::Stream) from any thread, also while its ends wait.
#[derive(Clone, Debug)]
pub struct StreamControl {
    shared: Arc<Shared>,
}

impl StreamControl {
    pub(super) fn new(shared: Arc<Shared>) -> StreamControl {
        StreamControl { shared }
    }

    /// Ends the input, as dropping the producer does: a push that waits for a slot, and every later one, is
    /// [`StreamError::Finished`](crate::error::StreamError::Finished). Pushed batches can still be popped.
    pub fn finish(&self) {
        self.shared.end(|ends| ends.finished = true);
    }

    /// Ends it at once: a push or a pop that waits, and every later one, is
    /// [`StreamError::Cancelled`](crate::error::StreamError::Cancelled). (A pop that waits for the device returns when
    /// the batch is done.) Batches that were popped stay valid; the others are lost.
    pub fn cancel(&self) {
        self.shared.end(|ends| ends.cancelled = true);
    }
}

impl Producer {
    /// Lets a closure write the inputs of a batch, and submits it. Waits only if every slot holds a batch.
    ///
    /// # Errors
    ///
    /// As [`Stream::push`](crate::Stream::push), and [`StreamError::Closed`](crate::error::StreamError::Closed) if the
    /// consumer is gone.
    pub fn push(&mut self, fill: impl FnOnce(&mut Slot<'_>) -> Result<()>) -> Result<()> {
        self.shared.push(fill)
    }

    /// As [`push`](Producer::push), but returns `false` instead of waiting.
    ///
    /// # Errors
    ///
    /// As [`push`](Producer::push).
    pub fn try_push(&mut self, fill: impl FnOnce(&mut Slot<'_>) -> Result<()>) -> Result<bool> {
        self.shared.try_push(fill)
    }

    /// As [`push`](Producer::push), for tasks: awaits a slot instead of blocking the thread.
    ///
    /// # Errors
    ///
    /// As [`push`](Producer::push).
    pub async fn push_async(&mut self, fill: impl FnOnce(&mut Slot<'_>) -> Result<()>) -> Result<()> {
        std::future::poll_fn(|context| self.shared.poll_free(context)).await?;
        // This is the only end that pushes: what is free stays free.
        self.shared.push(fill)
    }

    /// A report on the stream so far.
    pub fn stats(&self) -> StreamStats {
        self.shared.stats()
    }

    /// A control that ends the stream from any thread.
    pub fn control(&self) -> StreamControl {
        StreamControl::new(self.shared.clone())
    }
}

impl Consumer {
    /// The next batch in order; waits for it. `None` when the producer is gone and everything was popped.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn pop(&mut self) -> Result<Option<Batch>> {
        self.shared.pop(None)
    }

    /// As [`pop`](Consumer::pop), but returns after a time limit. Nothing has changed then, and a later pop gets the
    /// batch.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<Option<Batch>> {
        self.shared.pop(Some(timeout))
    }

    /// The next batch in order if it is done. Never waits.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn try_pop(&mut self) -> Result<Option<Batch>> {
        self.shared.try_pop()
    }

    /// As [`pop`](Consumer::pop), for tasks: awaits the batch instead of blocking the thread. With the feature `async`,
    /// this end is a `futures_core::Stream`, too.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub async fn pop_async(&mut self) -> Result<Option<Batch>> {
        std::future::poll_fn(|context| self.shared.poll_pop(context)).await
    }

    /// A report on the stream so far.
    pub fn stats(&self) -> StreamStats {
        self.shared.stats()
    }

    /// As [`Stream::report`](crate::Stream::report).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn report(&self, run: &Run) -> Result<StreamReport> {
        self.shared.report(run)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.end(|ends| ends.producer_gone = true);
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.shared.end(|ends| ends.consumer_gone = true);
    }
}

#[cfg(feature = "async")]
impl futures_core::Stream for Consumer {
    type Item = Result<Batch>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Batch>>> {
        self.shared.poll_pop(context).map(Result::transpose)
    }
}
