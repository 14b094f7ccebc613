//! The two ends of a stream, for two threads.

use std::sync::Arc;
use std::time::Duration;

use super::report::StreamReport;
use super::shared::{Shared, StreamStats};
use super::slot::{Batch, Slot};
use crate::error::Result;

/// The end of a [`Stream`](crate::Stream) that pushes batches. Dropping it says that no more will come.
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

impl Producer {
    /// Has a closure write the inputs of a batch, and hands it to the device. Waits only if every slot holds a batch.
    ///
    /// # Errors
    ///
    /// As [`Stream::push`](crate::Stream::push), and [`StreamError::Closed`](crate::StreamError::Closed) if the consumer is gone.
    pub fn push(&mut self, fill: impl FnOnce(&mut Slot<'_>) -> Result<()>) -> Result<()> {
        self.shared.push(fill)
    }

    /// As [`push`](Producer::push), but says `false` instead of waiting.
    ///
    /// # Errors
    ///
    /// As [`Stream::push`](crate::Stream::push).
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

    /// What happened so far.
    pub fn stats(&self) -> StreamStats {
        self.shared.stats()
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

    /// As [`pop`](Consumer::pop), but gives up after a while. Nothing has changed then, and a later pop gets the batch.
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

    /// What happened so far.
    pub fn stats(&self) -> StreamStats {
        self.shared.stats()
    }

    /// As [`Stream::report`](crate::Stream::report).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn report(&self, run: &crate::Run) -> Result<StreamReport> {
        self.shared.report(run)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.close(|producer_gone, _| *producer_gone = true);
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.shared.close(|_, consumer_gone| *consumer_gone = true);
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
