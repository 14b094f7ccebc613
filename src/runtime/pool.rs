//! The buffer pool: size classes, blocks that come back by themselves, a cap, and statistics.
//!
//! A block is in the pool exactly while nothing refers to it: tensors, open recordings and accesses of the host's have
//! a [`Lease`], submissions in flight a [`Hold`], and the last one to go returns the block. So nothing here has to know
//! what the device is doing.

mod lease;
mod shelves;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use self::shelves::State;
use crate::error::{Error, Result};
use crate::schedule::size_class::{GRAIN_BYTES, class_bytes};
use crate::vk::buffer::{Buffer, HostMemory, MemoryKind, heap_and_budget};
use crate::vk::device::Device;
use crate::vk::raw::HostBuffer;

use self::lease::Home;
pub(crate) use self::lease::{Hold, Lease, WriteMode};
pub use self::shelves::PoolStats;

/// How much of a tensor goes through staging memory in one piece: half a millisecond's worth at 16 GB/s, beside
/// which a submission costs little.
pub(crate) const PIECE_BYTES: u64 = 8 << 20;
/// How much staging memory there is, in use and cached: enough pieces for the host to fill some while the device copies
/// others.
const STAGING_BYTES: u64 = 8 * PIECE_BYTES;

/// What is left behind each tensor, at the least, when memory checks are on.
const GUARD_BYTES: u64 = 64;
/// Fresh memory reads as NaN with memory checks on; so does what lies behind a tensor, with other bits.
const POISON: u32 = 0xffff_ffff;
const GUARD: u32 = 0xffff_a5a5;

/// A buffer with the numbers of the submissions that last touched it.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) buffer: Buffer,
    /// Its number among all blocks that this pool ever made.
    pub(crate) serial: u64,
    kind: MemoryKind,
    /// The last submission that wrote it, and the last that read it; 0 for none. Changed under the timeline's lock.
    pub(crate) last_write: AtomicU64,
    pub(crate) last_read: AtomicU64,
}

/// Why a block can't be had right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    Cap,
    Memory,
    /// There is as much staging memory in use as there should be.
    Staging,
}

/// Whether staging memory keeps to its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Kept,
    Exceeded,
}

/// The pool of one accelerator.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    cap: Option<u64>,
    checks: bool,
    /// Blocks made so far, to tell them apart by name.
    made: AtomicU64,
    /// Bytes of the application's in blocks that are referred to.
    imported_bytes: Arc<AtomicU64>,
    device: Arc<Device>,
}

impl Pool {
    pub(crate) fn new(device: &Arc<Device>, cap: Option<u64>, checks: bool) -> Arc<Pool> {
        Arc::new(Pool {
            state: Mutex::default(),
            cap,
            checks,
            made: AtomicU64::new(0),
            imported_bytes: Arc::default(),
            device: device.clone(),
        })
    }

    fn class_of(&self, bytes: u64) -> u64 {
        class_bytes(self.exact(bytes))
    }

    /// What a block takes at the least.
    fn exact(&self, bytes: u64) -> u64 {
        let needed = if self.checks { bytes.saturating_add(GUARD_BYTES) } else { bytes };
        needed.max(1).checked_next_multiple_of(GRAIN_BYTES).unwrap_or(needed)
    }

    /// A free block of the right class, without any Vulkan call.
    pub(crate) fn try_hit(self: &Arc<Pool>, kind: MemoryKind, bytes: u64) -> Option<Lease> {
        let class = self.class_of(bytes);
        let mut state = self.state.lock();
        let block = state.shelf(kind, class).pop()?;
        state.stats.hits += 1;
        state.cache(kind, class, false);
        state.lend(kind, class, bytes);
        drop(state);
        Some(self.lease(block, bytes))
    }

    /// A new block. Makes room under the cap, or under the bound of staging memory, by freeing cached ones first.
    pub(crate) fn try_make(
        self: &Arc<Pool>,
        kind: MemoryKind,
        bytes: u64,
        bound: Bound,
    ) -> Result<std::result::Result<Lease, Shortage>> {
        let class = self.class_of(bytes);
        let staging = kind.is_staging();
        let mut state = self.state.lock();
        let live = if staging { state.staging_live } else { state.stats.live_bytes };
        let most = if staging { Some(STAGING_BYTES) } else { self.cap };
        let evicted = match most {
            Some(most) if live.saturating_add(class) > most && (!staging || bound == Bound::Kept) => {
                return Ok(Err(if staging { Shortage::Staging } else { Shortage::Cap }));
            }
            Some(most) => state.evict(staging, most.saturating_sub(live + class)),
            None => Vec::new(),
        };
        // Counted before it is there, so that others who are at it see how much of the cap is left.
        state.lend(kind, class, bytes);
        state.add(kind, class);
        drop(state);
        drop(evicted);
        let what = match kind {
            MemoryKind::Device => "block",
            MemoryKind::Upload => "upload staging",
            MemoryKind::Readback => "readback staging",
        };
        let serial = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidemill {what} {serial}, {class} bytes");
        let mut made = Buffer::new(&self.device, class, kind, &name);
        let (rounded, exact) = (class, self.exact(bytes));
        if matches!(made, Ok(None)) && exact < class {
            // There may be room for what is asked for, if not for its whole class.
            made = Buffer::new(&self.device, exact, kind, &name);
        }
        let class = made.as_ref().ok().and_then(|made| made.as_ref()).map_or(class, Buffer::size_bytes);
        if class < rounded {
            let mut state = self.state.lock();
            state.give_back(kind, rounded, bytes);
            state.remove(kind, rounded);
            state.lend(kind, class, bytes);
            state.add(kind, class);
        }
        let Ok(Some(buffer)) = made else {
            let mut state = self.state.lock();
            state.give_back(kind, class, bytes);
            state.remove(kind, class);
            drop(state);
            return made.map(|_| Err(Shortage::Memory));
        };
        let (last_write, last_read) = (AtomicU64::new(0), AtomicU64::new(0));
        let block = Block { buffer, serial, kind, last_write, last_read };
        self.state.lock().stats.misses += 1;
        Ok(Ok(self.lease(block, bytes)))
    }

    fn lease(self: &Arc<Pool>, block: Block, requested: u64) -> Lease {
        if self.checks {
            poison(&block, requested);
        }
        Lease::new(block, requested, Home::Pool(self.clone()))
    }

    /// A block around memory of the host's. It never comes to the pool and counts in none of its figures.
    pub(crate) fn pin(&self, host: HostBuffer) -> Lease {
        self.lease_apart(Buffer::adopt(&self.device, host), Home::Wrapped)
    }

    /// A block around memory of the application, for reading alone. It never comes to the pool, either.
    pub(crate) fn import(&self, host: &HostMemory, range: Range<usize>) -> Result<Lease> {
        let name = format!("tidemill import, {} bytes", range.len());
        let buffer = Buffer::import(&self.device, host, range, &name)?;
        self.imported_bytes.fetch_add(buffer.size_bytes(), Ordering::Relaxed);
        Ok(self.lease_apart(buffer, Home::Imported(self.imported_bytes.clone())))
    }

    /// Bytes of the application's that blocks are made of.
    pub(crate) fn imported_bytes(&self) -> u64 {
        self.imported_bytes.load(Ordering::Relaxed)
    }

    fn lease_apart(&self, buffer: Buffer, home: Home) -> Lease {
        let requested = buffer.size_bytes();
        let serial = self.made.fetch_add(1, Ordering::Relaxed);
        let (last_write, last_read) = (AtomicU64::new(0), AtomicU64::new(0));
        let block = Block { buffer, serial, kind: MemoryKind::Device, last_write, last_read };
        Lease::new(block, requested, home)
    }

    fn put_back(&self, block: Block, requested: u64) {
        let touched = if self.checks { guard_bytes_touched(&block, requested) } else { 0 };
        let class = block.buffer.size_bytes();
        let mut state = self.state.lock();
        state.stats.guard_bytes_touched += touched;
        state.give_back(block.kind, class, requested);
        state.cache(block.kind, class, true);
        state.shelf(block.kind, class).push(block);
    }

    /// Frees every cached block; gives the number of bytes freed.
    pub(crate) fn trim(&self) -> u64 {
        let mut state = self.state.lock();
        let before = state.cached(false) + state.cached(true);
        let mut gone = state.evict(false, 0);
        gone.extend(state.evict(true, 0));
        drop(state);
        drop(gone);
        before
    }

    pub(crate) fn stats(&self) -> PoolStats {
        self.state.lock().stats
    }

    /// The error for a block that can't be had.
    pub(crate) fn shortage(&self, shortage: Shortage, bytes: u64) -> Error {
        let (stats, requested) = (self.stats(), self.class_of(bytes));
        match (shortage, self.cap) {
            (Shortage::Cap, Some(cap)) => Error::OverCap { requested, in_use: stats.live_bytes, cap },
            _ => {
                let (in_use, cached) = (stats.live_bytes, stats.cached_bytes);
                let (heap, budget) = heap_and_budget(&self.device, MemoryKind::Device);
                Error::OutOfMemory { requested: self.exact(bytes), in_use, cached, heap, budget }
            }
        }
    }
}

/// Fills a block with NaN, and what lies behind the payload with a mark. Only mapped memory can be.
fn poison(block: &Block, requested: u64) {
    let _ = block.buffer.with_mapped(u64::MAX, |bytes| {
        let payload = requested.next_multiple_of(4) as usize;
        for (i, word) in bytes.chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&if 4 * i < payload { POISON } else { GUARD }.to_le_bytes());
        }
    });
}

/// How many bytes behind the payload differ from the mark.
fn guard_bytes_touched(block: &Block, requested: u64) -> u64 {
    if !block.buffer.is_mapped() {
        return 0;
    }
    let start = requested.next_multiple_of(4);
    let mut tail = vec![0; (block.buffer.size_bytes() - start) as usize];
    if block.buffer.read_bytes(start, &mut tail).is_err() {
        return 0;
    }
    let mark = GUARD.to_le_bytes();
    tail.iter().zip(mark.iter().cycle()).filter(|(byte, mark)| byte != mark).count() as u64
}

impl Block {
    /// Marks the block as touched by a submission.
    pub(crate) fn touch(&self, value: u64, write: bool) {
        let mark = if write { &self.last_write } else { &self.last_read };
        mark.fetch_max(value, Ordering::AcqRel);
    }
}
