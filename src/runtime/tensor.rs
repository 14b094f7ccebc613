//! Tensors: shape, type and a block of the pool.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, ThreadId};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::core::Core;
use crate::runtime::pool::{Lease, WriteMode};
use crate::shape::{DType, Element, Shape};
use crate::vk::buffer::MemoryKind;
use crate::vk::process;

/// A dense, row-major tensor in device memory.
///
/// A handle: clones and reshapes share the contents, and the memory goes back to the pool when the last of them and the
/// last submission that uses it are gone. Ops on a tensor never change it. [`write`](Tensor::write) does, and so do
/// [`Recording::update`](crate::Recording::update) and [`Recording::assign`](crate::Recording::assign): what was
/// recorded before sees the old contents.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// let gpu = tidemill::Accelerator::global()?;
/// let t = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(t.shape().dims(), [2, 2]);
/// assert_eq!(t.read::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Tensor {
    pub(crate) storage: Arc<Storage>,
    shape: Shape,
}

/// The common part of a tensor's handles.
pub(crate) struct Storage {
    pub(crate) core: Arc<Core>,
    pub(crate) dtype: DType,
    state: Mutex<State>,
    /// Notified when a write in place has ended.
    written: Condvar,
}

struct State {
    lease: Option<Lease>,
    contents: Contents,
    /// It is the host's memory: written in place, and never left. Views of it begin there, too, but leave when they are
    /// written.
    wrapped: bool,
    /// How many plans it is an input or an output of.
    plans: usize,
}

/// Where a tensor's contents come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Nothing was written.
    Unwritten,
    /// An open recording will write them.
    Recorded,
    /// A plan will write them.
    Planned,
    /// The recording that would have written them is gone.
    Discarded,
    /// The host wrote them.
    Host,
    /// The host wrote them, and a copy that is queued or submitted brings them there.
    Queued,
    /// The host is writing them in place, on this thread.
    Writing(ThreadId),
    /// The submission of this number writes them.
    Submitted(u64),
    /// A command buffer that the host submits writes them.
    External,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("dtype", &self.dtype).finish_non_exhaustive()
    }
}

impl Storage {
    pub(crate) fn new(
        core: &Arc<Core>,
        dtype: DType,
        lease: Option<Lease>,
        contents: Contents,
    ) -> Arc<Storage> {
        let wrapped = lease.as_ref().is_some_and(Lease::is_pinned);
        let state = Mutex::new(State { lease, contents, wrapped, plans: 0 });
        core.tensors.fetch_add(1, Ordering::Relaxed);
        Arc::new(Storage { core: core.clone(), dtype, state, written: Condvar::new() })
    }

    /// The memory and the contents, once there are any; an error that says why not otherwise. Waits for a write in
    /// place on another thread.
    pub(crate) fn settled(&self, op: &'static str, shape: Shape) -> Result<(Lease, Contents)> {
        process::check()?;
        let mut state = self.state.lock();
        while matches!(state.contents, Contents::Writing(thread) if thread != thread::current().id()) {
            self.written.wait(&mut state);
        }
        state.settled(op, shape).map(|lease| (lease.clone(), state.contents))
    }

    /// An error if the tensor can't be given new contents: an open recording, or a plan, is to write them first.
    pub(crate) fn check_assignable(&self, op: &'static str, shape: Shape) -> Result<()> {
        process::check()?;
        self.state.lock().check_assignable(op, shape)
    }

    /// Locks the tensor to update it; `None` while another thread writes it. Its old contents must be there if they are
    /// read.
    pub(crate) fn try_lock_state(
        &self,
        op: &'static str,
        shape: Shape,
        reads_old: bool,
    ) -> Result<Option<LockedOutput<'_>>> {
        let state = self.state.lock();
        match state.contents {
            Contents::Writing(thread) if thread != thread::current().id() => return Ok(None),
            _ if reads_old => drop(state.settled(op, shape)?.block()),
            _ => state.check_assignable(op, shape)?,
        }
        Ok(Some(LockedOutput { state }))
    }

    /// Waits until no other thread writes the tensor in place.
    pub(crate) fn wait_written(&self) {
        let mut state = self.state.lock();
        while matches!(state.contents, Contents::Writing(thread) if thread != thread::current().id()) {
            self.written.wait(&mut state);
        }
    }

    /// The memory that the tensor stays in when the host overwrites it: what nothing else refers to, and in a plan what
    /// work in flight alone refers to, so that what is encoded for it stays right. It is taken out, so that the host's
    /// closure runs under no lock.
    fn take_replaceable(&self, op: &'static str, shape: Shape) -> Result<Option<InPlace<'_>>> {
        let mut state = self.state.lock();
        if matches!(state.contents, Contents::Recorded | Contents::Planned) {
            return Err(Error::NotSubmitted { op, shape });
        }
        let (lease, mode) = match &state.lease {
            Some(lease) if state.wrapped => (lease, WriteMode::Queued),
            Some(lease) if lease.is_pinned() => return Ok(None),
            Some(lease) if lease.is_unshared() => (lease, WriteMode::InPlace),
            Some(lease) if state.plans > 0 && lease.is_replaceable() => (lease, WriteMode::Queued),
            _ => return Ok(None),
        };
        let lease = lease.clone();
        let old = state.contents;
        if !state.wrapped {
            state.lease = None;
            state.contents = Contents::Writing(thread::current().id());
        }
        let last_write = lease.block().last_write.load(Ordering::Acquire);
        Ok(Some(InPlace { storage: self, lease, mode, old, last_write }))
    }

    /// Settles what a recording promised, or what the host wrote.
    pub(crate) fn settle(&self, lease: Option<Lease>, contents: Contents) {
        if process::is_forked() {
            return;
        }
        self.state.lock().settle(lease, contents);
        self.written.notify_all();
    }

    /// The host's memory, if the tensor is that.
    pub(crate) fn wrapped(&self) -> Option<Lease> {
        let state = self.state.lock();
        state.lease.clone().filter(|_| state.wrapped)
    }

    /// Whether the memory is the application's, for reading alone.
    pub(crate) fn is_imported(&self) -> bool {
        self.state.lock().lease.as_ref().is_some_and(Lease::is_imported)
    }

    /// Whether both have the same memory of the host's, as a tensor that wraps it and a view of it do.
    pub(crate) fn shares_host_memory(&self, other: &Storage) -> bool {
        let pinned = |storage: &Storage| storage.state.lock().lease.clone().filter(Lease::is_pinned);
        let ours = pinned(self);
        ours.is_some_and(|ours| pinned(other).is_some_and(|theirs| theirs.address() == ours.address()))
    }

    /// Makes it the result of an open recording.
    pub(crate) fn promise_recorded(&self) {
        self.state.lock().contents = Contents::Recorded;
    }
}

/// A block that the host overwrites in place. Until that is done, a thread that wants the tensor's contents waits.
struct InPlace<'a> {
    storage: &'a Storage,
    lease: Lease,
    mode: WriteMode,
    old: Contents,
    /// The number of the submission that wrote the block last.
    last_write: u64,
}

impl InPlace<'_> {
    /// Whether the old contents are still there: nothing was written yet, and nothing is on its way.
    fn is_intact(&self) -> bool {
        let block = self.lease.block();
        !self.mode.is_direct(&self.lease)
            && !self.storage.core.timeline.uploads_to(&self.lease)
            && block.last_write.load(Ordering::Acquire) == self.last_write
    }
}

impl Drop for InPlace<'_> {
    /// Gives the tensor back if the write has failed: as it was, where staging memory was all that is written, and
    /// without contents, where the block itself may be half written.
    fn drop(&mut self) {
        if process::is_forked() {
            return;
        }
        let mut state = self.storage.state.lock();
        if state.contents == Contents::Writing(thread::current().id()) {
            let intact = self.is_intact();
            let contents = if intact { self.old } else { Contents::Unwritten };
            state.settle(intact.then(|| self.lease.clone()), contents);
        }
        drop(state);
        self.storage.written.notify_all();
    }
}

impl State {
    /// The memory, if there are contents.
    fn settled(&self, op: &'static str, shape: Shape) -> Result<&Lease> {
        match (self.contents, &self.lease) {
            (
                Contents::Host | Contents::Queued | Contents::Submitted(_) | Contents::External,
                Some(lease),
            ) => Ok(lease),
            (Contents::Recorded | Contents::Planned, _) => Err(Error::NotSubmitted { op, shape }),
            (Contents::Discarded, _) => Err(Error::Discarded { op, shape }),
            _ => Err(Error::NotWritten { op, shape }),
        }
    }

    fn check_assignable(&self, op: &'static str, shape: Shape) -> Result<()> {
        match self.contents {
            Contents::Recorded | Contents::Planned => Err(Error::NotSubmitted { op, shape }),
            _ => Ok(()),
        }
    }

    fn settle(&mut self, lease: Option<Lease>, contents: Contents) {
        if self.wrapped {
            // The host's memory stays, with what the host has in it if nothing else came.
            self.contents = if contents == Contents::Discarded { Contents::Host } else { contents };
        } else {
            self.lease = lease;
            self.contents = contents;
        }
    }

    /// The memory that the device may overwrite: nothing else needs what it holds, or the tensor is the host's memory.
    fn replaceable(&self) -> Option<&Lease> {
        let lease = self.lease.as_ref()?;
        (lease.is_replaceable() && (self.wrapped || !lease.is_pinned())).then_some(lease)
    }
}

/// The output of a plan that is being submitted: a tensor that no other thread can read or write meanwhile.
pub(crate) struct LockedOutput<'a> {
    state: MutexGuard<'a, State>,
}

impl Storage {
    /// Makes what a recording promised a plan's promise.
    pub(crate) fn promise(&self) {
        self.state.lock().contents = Contents::Planned;
    }

    /// The plan writes another tensor in its place. If it has not written this one yet, others may.
    pub(crate) fn release(&self) {
        let mut state = self.state.lock();
        if state.contents == Contents::Planned {
            state.contents = Contents::Unwritten;
        }
    }

    /// The plan is to write it after all.
    pub(crate) fn promise_again(&self) {
        let mut state = self.state.lock();
        if state.contents == Contents::Unwritten {
            state.contents = Contents::Planned;
        }
    }

    /// The plan is gone. What it has written stays.
    pub(crate) fn break_promise(&self) {
        if process::is_forked() {
            return;
        }
        let mut state = self.state.lock();
        if state.contents == Contents::Planned {
            let lease = state.lease.clone();
            state.settle(lease, Contents::Discarded);
        }
    }

    /// Whether there is memory that the device may overwrite.
    pub(crate) fn is_replaceable(&self) -> bool {
        self.state.lock().replaceable().is_some()
    }

    /// Locks the tensor to give it new contents.
    pub(crate) fn lock_output(&self, op: &'static str, shape: Shape) -> Result<LockedOutput<'_>> {
        let state = self.state.lock();
        match state.contents {
            Contents::Recorded => Err(Error::NotSubmitted { op, shape }),
            _ => Ok(LockedOutput { state }),
        }
    }
}

impl LockedOutput<'_> {
    /// The memory, if the device may overwrite it.
    pub(crate) fn replaceable(&self) -> Option<Lease> {
        self.state.replaceable().cloned()
    }

    /// The memory as it is.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.state.lease.as_ref()
    }

    /// Whether the device may overwrite the memory though this many other leases on it are the submission's own.
    pub(crate) fn is_replaceable_beside(&self, own: usize) -> bool {
        let fits =
            |lease: &Lease| lease.is_replaceable_beside(own) && (self.state.wrapped || !lease.is_pinned());
        self.state.lease.as_ref().is_some_and(fits)
    }

    /// Sets the new contents of the tensor.
    pub(crate) fn settle(mut self, lease: Option<Lease>, contents: Contents) {
        self.state.settle(lease, contents);
    }
}

/// A tensor that stands in a plan: the host's writes leave it where it is.
pub(crate) struct Standing(Arc<Storage>);

impl Standing {
    pub(crate) fn new(storage: Arc<Storage>) -> Standing {
        storage.state.lock().plans += 1;
        Standing(storage)
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.0
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        if process::is_forked() {
            return;
        }
        self.0.state.lock().plans -= 1;
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.core.tensors.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {})", self.shape, self.storage.dtype)
    }
}

impl Tensor {
    pub(crate) fn from_parts(storage: Arc<Storage>, shape: Shape) -> Tensor {
        Tensor { storage, shape }
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.storage.dtype
    }

    /// The size of the contents.
    pub fn size_bytes(&self) -> u64 {
        (self.shape.elements() * self.storage.dtype.size_bytes()) as u64
    }

    /// The accelerator that it belongs to.
    pub fn accelerator(&self) -> Accelerator {
        Accelerator::from_core(self.storage.core.clone())
    }

    /// The same contents with another shape of as many elements; nothing is copied.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if the number of elements differs.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if shape.elements() != self.shape.elements() {
            return Err(Error::Length { op: "reshape", shape, got: self.shape.elements() });
        }
        Ok(Tensor { storage: self.storage.clone(), shape })
    }

    /// The contents. Waits for the submission that writes them, and for no other. Where the host can't reach the
    /// device's memory, they come through staging memory, some pieces of 8 MiB at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if `T` is not the element type; [`Error::NotWritten`], [`Error::NotSubmitted`] or
    /// [`Error::Discarded`] if there are no contents; [`Error::DeviceLost`].
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); self.shape.elements()];
        self.read_into(&mut data)?;
        Ok(data)
    }

    /// The contents, copied to a slice of as many elements.
    ///
    /// # Errors
    ///
    /// As [`read`](Tensor::read), and [`Error::Length`] if the slice's length differs.
    pub fn read_into<T: Element>(&self, data: &mut [T]) -> Result<()> {
        let op = "read";
        self.check::<T>(op, data.len())?;
        let (lease, contents) = self.storage.settled(op, self.shape)?;
        self.storage.core.read_back(&lease, contents, bytemuck::cast_slice_mut(data))
    }

    /// Overwrites the contents. Does not wait for work that uses the old contents, which keeps them. It may wait for
    /// staging memory, as [`upload`](Accelerator::upload) says.
    ///
    /// Where nothing uses the tensor, its memory is written in place. Where work in flight does, a tensor that stands
    /// in a [`Plan`](crate::Plan) stays in its memory: the new contents go through staging memory, and a copy that is
    /// queued behind that work brings them there, so that the plan is not encoded again. Any other tensor gets other
    /// memory, and so does one whose contents an open recording, a read under way or another tensor still needs.
    ///
    /// While one thread writes, others that read the tensor or use it in an op get the old contents or wait for the
    /// new ones; of two that write at once, the last one to end wins. Without memory for the new contents, the old ones
    /// stay.
    ///
    /// # Errors
    ///
    /// [`Error::Type`], [`Error::Length`]; [`Error::NotSubmitted`] if an open recording is to write the tensor;
    /// [`Error::OutOfMemory`].
    pub fn write<T: Element>(&self, data: &[T]) -> Result<()> {
        let op = "write";
        self.check::<T>(op, data.len())?;
        self.write_block(op, |core, lease, mode| core.fill_from(lease, mode, bytemuck::cast_slice(data)))
    }

    /// Overwrites the contents with what a closure writes straight into mapped memory, as
    /// [`upload_with`](Accelerator::upload_with) has it. Inside the closure the tensor may
    /// have no contents; other threads wait for them, as with [`write`](Tensor::write).
    ///
    /// # Errors
    ///
    /// As [`write`](Tensor::write), and [`Error::Incomplete`] if the closure leaves elements unwritten; then the tensor
    /// may be left unwritten, as it may be if the closure panics.
    pub fn write_with<T: Element>(&self, fill: impl FnOnce(&mut TensorWriter<'_, T>)) -> Result<()> {
        self.write_as("write_with", fill)
    }

    /// The same, by the name of what the user has called.
    pub(crate) fn write_as<T: Element>(
        &self,
        op: &'static str,
        fill: impl FnOnce(&mut TensorWriter<'_, T>),
    ) -> Result<()> {
        self.check::<T>(op, self.shape.elements())?;
        let bytes = self.size_bytes();
        let fill = |bytes: &mut [u8]| TensorWriter::run(op, bytes, fill);
        self.write_block(op, |core, lease, mode| core.fill_with(lease, mode, bytes, fill))
    }

    fn write_block(
        &self,
        op: &'static str,
        write: impl FnOnce(&Core, &Lease, WriteMode) -> Result<Contents>,
    ) -> Result<()> {
        let core = &self.storage.core;
        core.open()?;
        core.timeline.reclaim()?;
        let in_place = self.storage.take_replaceable(op, self.shape)?;
        let (lease, mode) = match &in_place {
            Some(in_place) => (in_place.lease.clone(), in_place.mode),
            None => (core.acquire(MemoryKind::Device, self.size_bytes())?, WriteMode::InPlace),
        };
        let contents = write(core, &lease, mode)?;
        self.storage.settle(Some(lease), contents);
        Ok(())
    }

    fn check<T: Element>(&self, op: &'static str, len: usize) -> Result<()> {
        if T::DTYPE != self.storage.dtype {
            return Err(Error::of_type(op, "data", &[self.storage.dtype], T::DTYPE));
        }
        if len != self.shape.elements() {
            return Err(Error::Length { op, shape: self.shape, got: len });
        }
        Ok(())
    }
}

/// Writes a tensor's elements in order, straight into mapped memory. What was there before can't be seen.
pub struct TensorWriter<'a, T> {
    elements: &'a mut [T],
    written: usize,
}

impl<T> fmt::Debug for TensorWriter<'_, T> {
    /// How far it has come. What is not written yet is what a dropped tensor left.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorWriter({} of {} written)", self.written, self.elements.len())
    }
}

impl<'a, T: Element> TensorWriter<'a, T> {
    pub(crate) fn run(
        op: &'static str,
        bytes: &'a mut [u8],
        fill: impl FnOnce(&mut TensorWriter<'_, T>),
    ) -> Result<()> {
        let mut writer = TensorWriter { elements: bytemuck::cast_slice_mut(bytes), written: 0 };
        fill(&mut writer);
        let (written, expected) = (writer.written, writer.elements.len());
        if written < expected { Err(Error::Incomplete { op, written, expected }) } else { Ok(()) }
    }

    /// How many elements are still to be written.
    pub fn remaining(&self) -> usize {
        self.elements.len() - self.written
    }

    /// Writes the next element; one too many is left out and gives `false`.
    pub fn push(&mut self, element: T) -> bool {
        let slot = self.elements.get_mut(self.written);
        let there = slot.is_some();
        if let Some(slot) = slot {
            *slot = element;
            self.written += 1;
        }
        there
    }

    /// Writes the next elements; gives how many there was room for.
    pub fn extend_from_slice(&mut self, elements: &[T]) -> usize {
        let n = elements.len().min(self.remaining());
        self.elements[self.written..self.written + n].copy_from_slice(&elements[..n]);
        self.written += n;
        n
    }

    /// The elements not yet written, set to zero, as a slice to write in any order.
    pub fn rest(&mut self) -> &mut [T] {
        let rest = &mut self.elements[self.written..];
        rest.fill(T::zeroed());
        self.written += rest.len();
        rest
    }
}

impl<T: Element> Extend<T> for TensorWriter<'_, T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        for element in elements {
            if !self.push(element) {
                break;
            }
        }
    }
}
