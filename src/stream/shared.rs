//! The common part of both ends of a stream: the plan, the slots, and their states.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::report::{Event, StreamReport};
use super::slot::Slot;
use crate::error::{Error, Result, StreamError};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::measure::run::Run;
use crate::runtime::plan::Plan;
use crate::runtime::process;
use crate::runtime::submission::Submission;
use crate::runtime::tensor::Tensor;

/// The tensors of a slot.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Vec<Tensor>,
}

impl Buffers {
    /// Puts a slot's tensors in the place of those that were recorded.
    pub(super) fn bind(&self, plan: &mut Plan, slot: &Buffers) -> Result<()> {
        let inputs = self.inputs.iter().zip(&slot.inputs);
        inputs
            .chain(self.outputs.iter().zip(&slot.outputs))
            .try_for_each(|(named, own)| plan.bind(named, own))
    }
}

/// A stream in figures. Waits are back-pressure: who waits long is the faster end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStats {
    /// How many slots there are.
    pub slots: usize,
    /// Batches handed to the device.
    pub pushed: u64,
    /// Batches popped.
    pub popped: u64,
    /// Batches pushed and not popped.
    pub in_flight: usize,
    /// Times that a push had to wait for a slot,
    pub push_waits: u64,
    /// and how long that took in all.
    pub push_wait: Duration,
    /// Times that a pop had to wait for a batch,
    pub pop_waits: u64,
    /// and how long that took in all.
    pub pop_wait: Duration,
}

/// A batch on its way.
#[derive(Debug)]
struct Flight {
    slot: usize,
    number: u64,
    rows: Option<usize>,
    submission: Submission,
}

/// A batch that is done, and was taken. Its slot is to be released.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) slot: usize,
    pub(super) number: u64,
    pub(super) submission: Submission,
    /// If it is partial: its rows, out of this many.
    pub(super) rows: Option<(usize, usize)>,
}

/// The state of the two ends.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) producer_gone: bool,
    pub(super) consumer_gone: bool,
    pub(super) finished: bool,
    pub(super) cancelled: bool,
}

impl Ends {
    /// An error if nothing can be pushed any more.
    fn check_push(&self) -> Result<()> {
        match self {
            Ends { cancelled: true, .. } => Err(StreamError::Cancelled.into()),
            Ends { finished: true, .. } => Err(StreamError::Finished.into()),
            Ends { consumer_gone: true, .. } => Err(StreamError::Closed.into()),
            _ => Ok(()),
        }
    }

    /// An error if nothing can be popped any more.
    fn check_pop(&self) -> Result<()> {
        if self.cancelled { Err(StreamError::Cancelled.into()) } else { Ok(()) }
    }

    /// Whether no more batches will come.
    fn no_more(&self) -> bool {
        self.producer_gone || self.finished
    }
}

/// The state of the slots.
#[derive(Debug, Default)]
struct Queue {
    free: VecDeque<usize>,
    flying: VecDeque<Flight>,
    stats: StreamStats,
    ends: Ends,
    /// The tasks that wait for anything to change: one that pushes and one that pops, each as its end last said.
    pushes: Option<Waker>,
    pops: Option<Waker>,
    /// Times of each batch, while the accelerator is profiled.
    events: Vec<Event>,
}

/// The common part of both ends.
#[derive(Debug)]
pub(super) struct Shared {
    gpu: Accelerator,
    plan: Mutex<Plan>,
    /// The tensors that were recorded; batches never touch them.
    named: Buffers,
    slots: Vec<Buffers>,
    /// Rows of a whole batch.
    rows: Option<usize>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(
        gpu: Accelerator,
        plan: Mutex<Plan>,
        named: Buffers,
        slots: Vec<Buffers>,
        rows: Option<usize>,
    ) -> Shared {
        let queue = Queue {
            free: (0..slots.len()).collect(),
            flying: VecDeque::with_capacity(slots.len()),
            stats: StreamStats { slots: slots.len(), ..StreamStats::default() },
            ..Queue::default()
        };
        Shared { gpu, plan, named, slots, rows, queue: Mutex::new(queue), changed: Condvar::new() }
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_full(&self) -> bool {
        !process::is_forked() && self.queue.lock().free.is_empty()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.stats().in_flight
    }

    pub(super) fn stats(&self) -> StreamStats {
        if process::is_forked() {
            return StreamStats { slots: self.slots.len(), ..StreamStats::default() };
        }
        let queue = self.queue.lock();
        StreamStats { in_flight: queue.flying.len(), ..queue.stats }
    }

    pub(super) fn report(&self, run: &Run) -> Result<StreamReport> {
        process::check()?;
        StreamReport::new(run, &self.queue.lock().events)
    }

    /// No more batches will come, or none will be popped.
    pub(super) fn end(&self, mark: impl FnOnce(&mut Ends)) {
        if process::is_forked() {
            return;
        }
        let mut queue = self.queue.lock();
        mark(&mut queue.ends);
        self.announce(queue);
    }

    /// Tells everybody who waits, on a thread or as a task, that something has changed.
    fn announce(&self, mut queue: MutexGuard<'_, Queue>) {
        let tasks = [queue.pushes.take(), queue.pops.take()];
        drop(queue);
        self.changed.notify_all();
        tasks.into_iter().flatten().for_each(Waker::wake);
    }

    /// Whether a slot is free; if not, the task is woken when something changes.
    pub(super) fn poll_free(&self, context: &Context<'_>) -> Poll<Result<()>> {
        process::check()?;
        let mut queue = self.queue.lock();
        queue.ends.check_push()?;
        if queue.free.is_empty() {
            queue.pushes = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// The oldest batch, when it is done; `None` when the producer is gone and nothing is left.
    pub(super) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Result<Option<Done>>> {
        process::check()?;
        let mut queue = self.queue.lock();
        queue.ends.check_pop()?;
        let Some(flight) = queue.flying.front_mut() else {
            if queue.ends.no_more() {
                return Poll::Ready(Ok(None));
            }
            queue.pops = Some(context.waker().clone());
            return Poll::Pending;
        };
        match Pin::new(&mut flight.submission).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(self.take(queue))),
        }
    }

    pub(super) fn try_push<E: From<Error>>(
        &self,
        fill: impl FnOnce(&mut Slot<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        process::check()?;
        let began = Instant::now();
        let queue = self.queue.lock();
        queue.ends.check_push()?;
        if queue.free.is_empty() {
            return Ok(false);
        }
        self.push_now(queue, began, fill).map(|()| true)
    }

    /// Waits until a slot is free, however long that takes.
    pub(super) fn push(&self, fill: impl FnOnce(&mut Slot<'_>) -> Result<()>) -> Result<()> {
        process::check()?;
        let began = Instant::now();
        let mut queue = self.queue.lock();
        queue.ends.check_push()?;
        if queue.free.is_empty() {
            while queue.free.is_empty() {
                self.changed.wait(&mut queue);
                queue.ends.check_push()?;
            }
            queue.stats.push_waits += 1;
            queue.stats.push_wait += began.elapsed();
        }
        self.push_now(queue, began, fill)
    }

    fn push_now<E: From<Error>>(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        began: Instant,
        fill: impl FnOnce(&mut Slot<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Some(slot) = queue.free.pop_front() else { return Ok(()) };
        let number = queue.stats.pushed;
        drop(queue);
        let filling = Filling { shared: self, slot };
        let acquired = Instant::now();
        let (submission, rows) = self.send(slot, number, fill)?;
        std::mem::forget(filling);
        let submitted = Instant::now();
        let profiler = &self.gpu.core().profiler;
        profiler.note_activity("prepare", || format!("prepare {number}"), acquired, submitted);
        let mut queue = self.queue.lock();
        if profiler.is_on() {
            queue.events.push(Event::new(number, submission.number(), [began, acquired, submitted]));
        }
        queue.flying.push_back(Flight { slot, number, rows, submission });
        queue.stats.pushed += 1;
        self.announce(queue);
        Ok(())
    }

    /// Has the inputs written and submits the batch.
    fn send<E: From<Error>>(
        &self,
        slot: usize,
        number: u64,
        fill: impl FnOnce(&mut Slot<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(Submission, Option<usize>), E> {
        let buffers = &self.slots[slot];
        let mut filled = Slot::new(number, &buffers.inputs, self.rows);
        fill(&mut filled)?;
        let rows = filled.finish()?;
        let mut plan = self.plan.lock();
        self.named.bind(&mut plan, buffers)?;
        Ok((plan.submit()?, rows))
    }

    /// The oldest batch, if it is done.
    pub(super) fn try_take(&self) -> Result<Option<Done>> {
        process::check()?;
        let queue = self.queue.lock();
        queue.ends.check_pop()?;
        match queue.flying.front() {
            Some(flight) if flight.submission.is_complete()? => Ok(self.take(queue)),
            _ => Ok(None),
        }
    }

    /// Waits for the oldest batch, and for there to be one; `None` when the producer is gone and nothing is left, or
    /// when the time is over. Nothing has changed then.
    pub(super) fn wait_and_take(&self, timeout: Option<Duration>) -> Result<Option<Done>> {
        process::check()?;
        let began = Instant::now();
        let deadline = timeout.and_then(|timeout| began.checked_add(timeout));
        let mut queue = self.queue.lock();
        let submission = loop {
            queue.ends.check_pop()?;
            if let Some(flight) = queue.flying.front() {
                break flight.submission.clone();
            }
            if queue.ends.no_more() {
                return Ok(None);
            }
            match deadline {
                None => self.changed.wait(&mut queue),
                Some(deadline) => {
                    if self.changed.wait_until(&mut queue, deadline).timed_out() {
                        return Ok(None);
                    }
                }
            }
        };
        drop(queue);
        let waits = !submission.is_complete()?;
        let done = match deadline {
            None => submission.wait().map(|()| true)?,
            Some(deadline) => submission.wait_timeout(deadline.saturating_duration_since(Instant::now()))?,
        };
        if !done {
            return Ok(None);
        }
        let mut queue = self.queue.lock();
        queue.ends.check_pop()?;
        if waits {
            queue.stats.pop_waits += 1;
            queue.stats.pop_wait += began.elapsed();
        }
        Ok(self.take(queue))
    }

    /// The oldest batch, which is done.
    fn take(&self, mut queue: MutexGuard<'_, Queue>) -> Option<Done> {
        let Flight { slot, number, rows, submission } = queue.flying.pop_front()?;
        queue.stats.popped += 1;
        Some(Done { slot, number, submission, rows: rows.zip(self.rows) })
    }

    pub(super) fn outputs(&self, slot: usize) -> &[Tensor] {
        &self.slots[slot].outputs
    }

    /// A popped batch is done with.
    pub(super) fn release(&self, slot: usize, number: u64, popped: Instant) {
        if process::is_forked() {
            return;
        }
        let released = Instant::now();
        let profiler = &self.gpu.core().profiler;
        profiler.note_activity("consume", || format!("consume {number}"), popped, released);
        let mut queue = self.queue.lock();
        if profiler.is_on()
            && let Some(event) = queue.events.iter_mut().rev().find(|event| event.batch == number)
        {
            event.consumed = Some([popped, released]);
        }
        queue.free.push_back(slot);
        self.announce(queue);
    }
}

/// A slot whose inputs are being written. If that fails, by an error or by a panic, the slot is free again.
struct Filling<'a> {
    shared: &'a Shared,
    slot: usize,
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        if process::is_forked() {
            return;
        }
        // Nothing of it is on its way.
        let mut queue = self.shared.queue.lock();
        queue.free.push_front(self.slot);
        self.shared.announce(queue);
    }
}
