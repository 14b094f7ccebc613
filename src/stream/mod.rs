//! Streams: slots in rotation, so that the host prepares and consumes while the device works.
//!
//! This module owns the slots, their order, and the report of waiting times. It takes a recording and a number of
//! slots, and returns two ends: one that fills slots, and one that returns batches in order. Each slot is a submission
//! of one plan.

mod batch;
mod half;
mod report;
mod shared;
mod slot;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Result, StreamError};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::measure::run::Run;
use crate::runtime::recording::{Recording, Value};
use crate::runtime::tensor::Tensor;
use crate::shape::{DType, Element, Shape};
use shared::{Buffers, Shared};

pub use batch::Batch;
pub use half::{Consumer, Producer, StreamControl};
pub use report::{IdleTime, StreamReport};
pub use shared::StreamStats;
pub use slot::Slot;

/// The default number of slots: one is prepared, one runs, one is consumed.
const SLOTS: usize = 3;
/// The maximum. More than a few slots only take memory: results come in order, and each slot has its own inputs and
/// outputs.
const MOST_SLOTS: usize = 1024;

impl Accelerator {
    /// Begins a [`Stream`]: the same work on batch after batch.
    pub fn stream(&self) -> StreamBuilder {
        StreamBuilder { gpu: self.clone(), slots: SLOTS, inputs: Vec::new() }
    }
}

/// Options of a [`Stream`].
#[derive(Clone, Debug)]
#[must_use = "`record` makes the stream"]
pub struct StreamBuilder {
    gpu: Accelerator,
    slots: usize,
    inputs: Vec<Input>,
}

/// An input of every batch.
#[derive(Clone, Copy, Debug)]
struct Input {
    shape: Shape,
    dtype: DType,
    zeros: fn(&Accelerator, Shape) -> Result<Tensor>,
}

impl StreamBuilder {
    /// The number of batches that may be in flight: 3 by default, and at most 1024. Each slot has inputs and outputs of
    /// its own; the memory of temporaries is shared.
    pub fn slots(mut self, slots: usize) -> StreamBuilder {
        self.slots = slots;
        self
    }

    /// One more input of every batch. Its first dimension counts the rows of a batch; see [`Slot::rows`].
    pub fn input<T: Element>(mut self, shape: impl Into<Shape>) -> StreamBuilder {
        let zeros = |gpu: &Accelerator, shape: Shape| gpu.zeros::<T>(shape);
        self.inputs.push(Input { shape: shape.into(), dtype: T::DTYPE, zeros });
        self
    }

    /// Records the work on a batch, once: the closure gets a recording and the inputs, and returns the outputs.
    /// Other tensors that it uses (weights) are shared by all batches.
    ///
    /// # Errors
    ///
    /// Those of the operations; [`StreamError::NoSlots`] and [`StreamError::TooManySlots`]; errors of memory and of the
    /// device.
    pub fn record<V: IntoIterator<Item = Value>>(
        self,
        record: impl FnOnce(&Recording, &[Tensor]) -> Result<V>,
    ) -> Result<Stream> {
        self.try_record(record)
    }

    /// As [`record`](StreamBuilder::record), for a closure that fails with an error of the caller's own.
    ///
    /// # Errors
    ///
    /// As [`record`](StreamBuilder::record).
    pub fn try_record<V: IntoIterator<Item = Value>, E: From<Error>>(
        self,
        record: impl FnOnce(&Recording, &[Tensor]) -> std::result::Result<V, E>,
    ) -> std::result::Result<Stream, E> {
        self.check()?;
        let gpu = self.gpu;
        let inputs = self.inputs.iter();
        let named = inputs.clone().map(|i| (i.zeros)(&gpu, i.shape)).collect::<Result<Vec<Tensor>>>()?;
        let r = gpu.begin_recording()?;
        let values = record(&r, &named)?;
        let outputs = r.keep_apart(values)?;
        r.refuse_arguments("record")?;
        let mut plan = r.into_plan()?;
        plan.expect_sets(self.slots);
        let named = Buffers { inputs: named, outputs };
        let mut slots = Vec::with_capacity(self.slots);
        for _ in 0..self.slots {
            let inputs = inputs.clone().map(|i| gpu.empty(i.shape, i.dtype));
            let outputs = named.outputs.iter().map(|output| gpu.empty(output.shape(), output.dtype()));
            let slot =
                Buffers { inputs: inputs.collect::<Result<_>>()?, outputs: outputs.collect::<Result<_>>()? };
            // What can't be bound is found now.
            named.bind(&mut plan, &slot)?;
            slots.push(slot);
        }
        let rows = self.inputs.first().and_then(|input| input.shape.dims().first().copied());
        Ok(Stream { shared: Arc::new(Shared::new(gpu, Mutex::new(plan), named, slots, rows)) })
    }

    fn check(&self) -> Result<()> {
        match self.slots {
            0 => Err(StreamError::NoSlots.into()),
            slots if slots > MOST_SLOTS => Err(StreamError::TooManySlots { slots, most: MOST_SLOTS }.into()),
            _ => Ok(()),
        }
    }
}

/// The same work on batch after batch, with slots in rotation: while the device works on one batch, the host prepares
/// the next and consumes the last. A batch is pushed by writing its inputs, and popped, in order, when its outputs are
/// there; its slot is used again when the [`Batch`] is dropped.
///
/// On one thread, call `push` and [`pop`](Stream::pop) in turns; [`is_full`](Stream::is_full) says when to pop, and
/// [`run`](Stream::run) does it all. For a producer and a consumer thread, [`split`](Stream::split) it.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let gpu = tidemill::Accelerator::global()?;
/// let weights = gpu.upload(&[2.0f32, 3.0], [2])?;
/// let mut stream = gpu.stream().input::<f32>([4, 2]).record(|r, x| Ok([r.mul(&x[0], &weights)?]))?;
/// let mut sums = Vec::new();
/// stream.run(
///     0..10u8,
///     |n, slot| slot.fill(0, |f| f.extend([f32::from(n); 8])),
///     |batch| Ok(sums.push(batch.read::<f32>(0)?.iter().sum::<f32>())),
/// )?;
/// assert_eq!(sums, (0..10u8).map(|n| 20.0 * f32::from(n)).collect::<Vec<_>>());
/// # Ok(()) }
/// ```
///
/// Dropping a stream does not wait. Batches that were not popped are lost, and memory is released when the device is
/// done with it.
pub struct Stream {
    shared: Arc<Shared>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Stream {
    /// Lets a closure write the inputs of a batch straight into mapped memory, and submits the batch. Does not wait.
    ///
    /// # Errors
    ///
    /// [`StreamError::Full`] if every slot holds a batch; what the closure returns; [`StreamError::NotFilled`] if it
    /// left an input out; errors of the device. Then the batch is not pushed, and earlier ones are unchanged. The same
    /// holds if the closure panics.
    pub fn push(&mut self, fill: impl FnOnce(&mut Slot<'_>) -> Result<()>) -> Result<()> {
        if self.try_push(fill)? { Ok(()) } else { Err(StreamError::Full { slots: self.slots() }.into()) }
    }

    /// As [`push`](Stream::push), but returns `false` if every slot holds a batch.
    ///
    /// # Errors
    ///
    /// As [`push`](Stream::push).
    pub fn try_push(&mut self, fill: impl FnOnce(&mut Slot<'_>) -> Result<()>) -> Result<bool> {
        self.shared.try_push(fill)
    }

    /// The next batch in order; waits until it is done. `None` if none is in flight.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`]. The batch then stays in its slot.
    pub fn pop(&mut self) -> Result<Option<Batch>> {
        if self.in_flight() == 0 { Ok(None) } else { self.shared.pop(None) }
    }

    /// The next batch in order if it is done. Never waits.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`].
    pub fn try_pop(&mut self) -> Result<Option<Batch>> {
        self.shared.try_pop()
    }

    /// Pushes a batch for each item and pops all of them, in order: it prepares as soon as a slot is free, and consumes
    /// only when no slot is free.
    ///
    /// # Errors
    ///
    /// The first error of any kind. Batches that were pushed before it can still be popped.
    pub fn run<I>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        prepare: impl FnMut(I, &mut Slot<'_>) -> Result<()>,
        consume: impl FnMut(Batch) -> Result<()>,
    ) -> Result<()> {
        self.try_run(items, prepare, consume)
    }

    /// As [`run`](Stream::run), for closures that fail with an error of the caller's own.
    ///
    /// # Errors
    ///
    /// As [`run`](Stream::run).
    pub fn try_run<I, E: From<Error>>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        mut prepare: impl FnMut(I, &mut Slot<'_>) -> std::result::Result<(), E>,
        mut consume: impl FnMut(Batch) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for item in items {
            // With one slot nothing overlaps; with more, the last batch is consumed while the next ones run.
            if self.is_full()
                && let Some(batch) = self.pop()?
            {
                consume(batch)?;
            }
            if !self.shared.try_push(|slot| prepare(item, slot))? {
                return Err(Error::from(StreamError::Full { slots: self.slots() }).into());
            }
        }
        while let Some(batch) = self.pop()? {
            consume(batch)?;
        }
        Ok(())
    }

    /// For two threads: one that pushes and one that pops.
    pub fn split(self) -> (Producer, Consumer) {
        half::split(self.shared)
    }

    /// A control that ends the stream from any thread.
    pub fn control(&self) -> StreamControl {
        StreamControl::new(self.shared.clone())
    }

    /// Whether every slot holds a batch that was not popped yet, or whose [`Batch`] is alive.
    pub fn is_full(&self) -> bool {
        self.shared.is_full()
    }

    /// Batches that were pushed and not popped.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight()
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.shared.slots()
    }

    /// A report on the stream so far.
    pub fn stats(&self) -> StreamStats {
        self.shared.stats()
    }

    /// A report on a profiled run of the stream: how busy the device was, and what it waited for otherwise. The run is
    /// the result of [`Session::finish`](crate::profile::Session::finish), and contains the stream's batches.
    ///
    /// # Errors
    ///
    /// [`ProfileError::NotProfiled`](crate::error::ProfileError::NotProfiled) if no batch of the stream ran in it, or
    /// the clocks of host and device can't be compared.
    pub fn report(&self, run: &Run) -> Result<StreamReport> {
        self.shared.report(run)
    }
}
