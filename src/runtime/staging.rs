//! How host data gets to device memory and back: in place where the memory is mapped, otherwise in pieces through
//! staging blocks of the pool. Several pieces are under way at a time, so that the host's copying and the device's
//! overlap, and there are never more of them than the pool's bound allows, however large a tensor is.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::runtime::commands::{BlockUse, Job};
use crate::runtime::core::{Core, OnShortage};
use crate::runtime::pool::{Lease, PIECE_BYTES, WriteMode};
use crate::runtime::tensor::Contents;
use crate::vk::buffer::MemoryKind;
use crate::vk::command::{Barrier, Bound};

/// Pieces that are copied to staging memory ahead of the one that the host reads.
const READ_AHEAD: usize = 3;

impl Core {
    /// Copies host data to a block, and says what it holds then. Waits only if there is as much in staging memory as
    /// there may be, for the oldest of that.
    pub(crate) fn fill_from(&self, lease: &Lease, mode: WriteMode, data: &[u8]) -> Result<Contents> {
        let _span = self.profiler.span("upload");
        self.counters.bytes_up.fetch_add(data.len() as u64, Ordering::Relaxed);
        let copy = |bytes: &mut [u8]| bytes.copy_from_slice(data);
        if !mode.is_direct(lease) {
            return self.stage(lease, data);
        }
        let copied = lease.block().buffer.with_mapped(data.len() as u64, copy);
        copied.unwrap_or(Err(Error::Closed)).map(|()| Contents::Host)
    }

    /// The same with what a closure writes: straight into mapped memory, unless the host can't reach the block, or must
    /// not, and no single piece of staging memory holds so much.
    pub(crate) fn fill_with(
        &self,
        lease: &Lease,
        mode: WriteMode,
        bytes: u64,
        write: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Contents> {
        let _span = self.profiler.span("upload");
        self.counters.bytes_up.fetch_add(bytes, Ordering::Relaxed);
        if mode.is_direct(lease) {
            lease.block().buffer.with_mapped(bytes, write).unwrap_or(Err(Error::Closed))??;
            return Ok(Contents::Host);
        }
        if bytes <= PIECE_BYTES {
            let staging = self.acquire(MemoryKind::Upload, bytes)?;
            staging.block().buffer.with_mapped(bytes, write).unwrap_or(Err(Error::Closed))??;
            self.timeline.upload(&staging, lease, 0, bytes)?;
            return Ok(Contents::Queued);
        }
        // As words, so that any element type is aligned.
        let mut words = vec![0u32; bytes.div_ceil(4) as usize];
        let data = &mut bytemuck::cast_slice_mut(&mut words)[..bytes as usize];
        write(data)?;
        self.stage(lease, data)
    }

    /// Copies to memory that the host can't reach, or must not.
    fn stage(&self, lease: &Lease, data: &[u8]) -> Result<Contents> {
        let piece_bytes = piece_bytes(data.len());
        for (i, piece) in data.chunks(PIECE_BYTES as usize).enumerate() {
            let staging = self.acquire(MemoryKind::Upload, piece_bytes)?;
            let copy = |bytes: &mut [u8]| bytes.copy_from_slice(piece);
            let bytes = piece.len() as u64;
            staging.block().buffer.with_mapped(bytes, copy).unwrap_or(Err(Error::Closed))?;
            self.timeline.upload(&staging, lease, i as u64 * PIECE_BYTES, bytes)?;
        }
        Ok(Contents::Queued)
    }

    /// Copies a block's contents to the host, once they are there.
    pub(crate) fn read_back(&self, lease: &Lease, contents: Contents, into: &mut [u8]) -> Result<()> {
        self.timeline.alive()?;
        if into.is_empty() {
            return Ok(());
        }
        let _span = self.profiler.span("read");
        self.counters.bytes_down.fetch_add(into.len() as u64, Ordering::Relaxed);
        let buffer = &lease.block().buffer;
        if buffer.is_readable() {
            match contents {
                Contents::Submitted(value) => {
                    let _span = self.profiler.span("wait");
                    self.timeline.wait(value, u64::MAX)?;
                }
                Contents::Queued => {
                    let _span = self.profiler.span("wait");
                    self.timeline.wait_uploaded(lease)?;
                }
                Contents::External => self.timeline.wait_external(lease)?,
                _ => {}
            }
            return buffer.read_bytes(0, into);
        }
        let piece_bytes = piece_bytes(into.len());
        let mut under_way = VecDeque::new();
        for (i, piece) in into.chunks_mut(PIECE_BYTES as usize).enumerate() {
            if under_way.len() > READ_AHEAD {
                self.finish_piece(&mut under_way)?;
            }
            let staging = self.readback_staging(piece_bytes, &mut under_way)?;
            let value = self.begin_read(lease, &staging, i as u64 * PIECE_BYTES, piece.len() as u64)?;
            under_way.push_back(Piece { value, staging, into: piece });
        }
        while !under_way.is_empty() {
            self.finish_piece(&mut under_way)?;
        }
        Ok(())
    }

    /// Staging memory for one more piece. A holder does not wait for more, but for its own to become free.
    fn readback_staging(&self, bytes: u64, under_way: &mut VecDeque<Piece<'_>>) -> Result<Lease> {
        loop {
            let on_shortage = if under_way.is_empty() { OnShortage::Wait } else { OnShortage::Fail };
            match self.acquire_with(MemoryKind::Readback, bytes, on_shortage) {
                Err(_) if !under_way.is_empty() => self.finish_piece(under_way)?,
                acquired => return acquired,
            }
        }
    }

    /// Submits the copy of a piece to staging memory.
    fn begin_read(&self, from: &Lease, staging: &Lease, offset: u64, bytes: u64) -> Result<u64> {
        let mut slot = self.timeline.take_slot()?;
        slot.begin()?;
        slot.begin_label("read");
        slot.copy(
            Bound { buffer: &from.block().buffer, offset, bytes },
            Bound { buffer: &staging.block().buffer, offset: 0, bytes },
        );
        slot.end_label();
        slot.barrier(Barrier::Host);
        slot.end()?;
        let uses = vec![BlockUse::reading(from.hold()), BlockUse::writing(staging.hold())];
        self.timeline.submit(Job::plain(slot, uses))
    }

    /// Waits for the oldest piece and hands it to the reader.
    fn finish_piece(&self, under_way: &mut VecDeque<Piece<'_>>) -> Result<()> {
        let Some(piece) = under_way.pop_front() else { return Ok(()) };
        let waiting = self.profiler.span("wait");
        self.timeline.wait(piece.value, u64::MAX)?;
        drop(waiting);
        piece.staging.block().buffer.read_bytes(0, piece.into)
    }
}

/// A piece that the device copies to staging memory.
struct Piece<'a> {
    value: u64,
    staging: Lease,
    into: &'a mut [u8],
}

/// What each piece of so much takes. The last one takes no less than the others, so that it can have a block of theirs.
fn piece_bytes(bytes: usize) -> u64 {
    (bytes as u64).min(PIECE_BYTES)
}
