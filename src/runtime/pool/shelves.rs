//! Free blocks by class, and the figures of all blocks: staging memory is counted apart from the device's.

use super::Block;
use crate::vk::buffer::MemoryKind;

/// The pool's contents and its hits and misses. Staging memory, which takes data to and from devices whose memory the
/// host can't reach, is counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Bytes in blocks that are referred to.
    pub live_bytes: u64,
    /// Blocks that are referred to.
    pub live_blocks: usize,
    /// Bytes in blocks that wait for their next use.
    pub cached_bytes: u64,
    /// Blocks that wait for their next use.
    pub cached_blocks: usize,
    /// The most bytes that were ever live at once.
    pub peak_bytes: u64,
    /// Requests served without a Vulkan call.
    pub hits: u64,
    /// Requests that made a new block.
    pub misses: u64,
    /// Bytes of live blocks beyond what was asked for.
    pub waste_bytes: u64,
    /// Bytes in blocks of staging memory, in use or not. At most 64 MiB, and 8 MiB more for each thread that transfers
    /// at the same time.
    pub staging_bytes: u64,
    /// The most that there ever were.
    pub peak_staging_bytes: u64,
    /// Bytes behind tensors that something wrote to; counted with
    /// [`Config::memory_checks`](crate::Config::memory_checks) only.
    pub guard_bytes_touched: u64,
}

/// The state under the pool's lock.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Free blocks by kind and class; few distinct classes are ever in use, so a sorted list finds them fast.
    free: Vec<((MemoryKind, u64), Vec<Block>)>,
    pub(super) stats: PoolStats,
    /// Of `stats.staging_bytes`, those in use.
    pub(super) staging_live: u64,
}

impl State {
    /// A block serves a request: a new one, or one that was cached.
    pub(super) fn lend(&mut self, kind: MemoryKind, class: u64, requested: u64) {
        if kind.is_staging() {
            self.staging_live += class;
            return;
        }
        let stats = &mut self.stats;
        stats.live_bytes += class;
        stats.live_blocks += 1;
        stats.waste_bytes += class - requested;
        stats.peak_bytes = stats.peak_bytes.max(stats.live_bytes);
    }

    /// It does no longer, or never came to be.
    pub(super) fn give_back(&mut self, kind: MemoryKind, class: u64, requested: u64) {
        if kind.is_staging() {
            self.staging_live -= class;
            return;
        }
        self.stats.live_bytes -= class;
        self.stats.live_blocks -= 1;
        self.stats.waste_bytes -= class - requested;
    }

    /// A block comes to be.
    pub(super) fn add(&mut self, kind: MemoryKind, class: u64) {
        if kind.is_staging() {
            self.stats.staging_bytes += class;
            self.stats.peak_staging_bytes = self.stats.peak_staging_bytes.max(self.stats.staging_bytes);
        }
    }

    /// It is gone, or never came to be.
    pub(super) fn remove(&mut self, kind: MemoryKind, class: u64) {
        if kind.is_staging() {
            self.stats.staging_bytes -= class;
        }
    }

    /// A block goes to the cache, or (`false`) leaves it.
    pub(super) fn cache(&mut self, kind: MemoryKind, class: u64, comes: bool) {
        if kind.is_staging() {
            return;
        }
        let stats = &mut self.stats;
        if comes {
            stats.cached_bytes += class;
            stats.cached_blocks += 1;
        } else {
            stats.cached_bytes -= class;
            stats.cached_blocks -= 1;
        }
    }

    /// Bytes that are cached, of staging memory or of the device's.
    pub(super) fn cached(&self, staging: bool) -> u64 {
        if staging { self.stats.staging_bytes - self.staging_live } else { self.stats.cached_bytes }
    }

    pub(super) fn shelf(&mut self, kind: MemoryKind, class: u64) -> &mut Vec<Block> {
        let key = |kind: MemoryKind, class: u64| (class, kind as u8);
        let found = self.free.binary_search_by(|((k, c), _)| key(*k, *c).cmp(&key(kind, class)));
        let index = found.unwrap_or_else(|index| {
            self.free.insert(index, ((kind, class), Vec::new()));
            index
        });
        &mut self.free[index].1
    }

    /// Frees cached blocks of staging memory or of the device's, largest first, until at most `keep` bytes of them are
    /// left. Returns them, to be dropped outside the lock.
    pub(super) fn evict(&mut self, staging: bool, keep: u64) -> Vec<Block> {
        let mut gone = Vec::new();
        for i in (0..self.free.len()).rev() {
            let (kind, class) = self.free[i].0;
            if kind.is_staging() != staging {
                continue;
            }
            while self.cached(staging) > keep {
                let Some(block) = self.free[i].1.pop() else { break };
                self.cache(kind, class, false);
                self.remove(kind, class);
                gone.push(block);
            }
        }
        gone
    }
}
