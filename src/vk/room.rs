//! How blocks are laid into memory objects, so that what the driver gives stays in proportion to the pool's cap.
//!
//! Blocks that share an object keep all of it until the last of them is freed. Under a cap, therefore, only small ones
//! share, and objects are not made beyond a bound: the cap, a quarter of it for what small blocks leave unused, and 16
//! MiB. Staging memory has a bound of its own, of some 80 MiB, so that 1.25 times the cap and 96 MiB are the most for
//! everything.

use std::sync::atomic::{AtomicU64, Ordering};

use gpu_allocator::AllocationSizes;

use super::usage::MemoryKind;

/// The unit in which gpu-allocator counts the sizes of shared memory objects.
const GRAIN_BYTES: u64 = 4 << 20;
/// The first shared memory object of a memory type; each one more is twice as large. Without a cap, a block that is
/// larger than the next one would be has an object of its own, so drivers that allow 4096 of them still give 32 GiB.
pub(super) const FIRST_SHARED_BYTES: u64 = 8 << 20;
const MOST_SHARED_BYTES: u64 = 32 << 20;
/// Under a cap as small as this, no two tensors share a memory object, and never two as large as this under any cap:
/// 1024 of them are the most there can be.
const APART_BYTES: u64 = 256 << 10;
/// What there may be beside the cap and a quarter of it, of objects for tensors.
const SLACK_BYTES: u64 = 16 << 20;

/// Where blocks go, and how many bytes of objects there may be.
#[derive(Debug)]
pub(crate) struct MemoryRoom {
    /// Tensors' blocks from this size on have objects of their own.
    apart_from: u64,
    /// The most bytes in objects for tensors.
    most_bytes: Option<u64>,
    /// The most bytes in an object that is shared.
    shared_bytes: u64,
    /// Bytes in blocks of staging memory.
    staging_bytes: AtomicU64,
}

impl MemoryRoom {
    pub(super) fn new(cap_bytes: Option<u64>) -> MemoryRoom {
        let apart_from = match cap_bytes {
            None => u64::MAX,
            Some(cap) if cap <= APART_BYTES => 0,
            Some(cap) => APART_BYTES.max(cap / 1024),
        };
        let shared = cap_bytes.map_or(MOST_SHARED_BYTES, |cap| cap / 32 / GRAIN_BYTES * GRAIN_BYTES);
        MemoryRoom {
            apart_from,
            most_bytes: cap_bytes.map(|cap| cap.saturating_add(cap / 4).saturating_add(SLACK_BYTES)),
            shared_bytes: shared.clamp(GRAIN_BYTES, MOST_SHARED_BYTES),
            staging_bytes: AtomicU64::new(0),
        }
    }

    /// The sizes of memory objects that several blocks share. gpu-allocator (0.28) never frees the last one of a memory
    /// type, so what stays after a trim is one of these at the most; and it takes no less than 4 MiB.
    pub(super) fn shared_sizes(&self) -> AllocationSizes {
        let (first, most) = (self.shared_bytes.min(FIRST_SHARED_BYTES), self.shared_bytes);
        AllocationSizes::new(first, first)
            .with_max_device_memblock_size(most)
            .with_max_host_memblock_size(most)
    }

    /// Whether a block has an object of its own.
    pub(super) fn is_apart(&self, kind: MemoryKind, bytes: u64) -> bool {
        !kind.is_staging() && bytes >= self.apart_from
    }

    /// Whether a block of this many bytes may be made, where objects have `capacity` bytes: one that shares may need
    /// another object.
    pub(super) fn has_room(&self, kind: MemoryKind, bytes: u64, apart: bool, capacity: u64) -> bool {
        let grows = if apart { bytes } else { bytes.max(self.shared_bytes) };
        let tensors = capacity.saturating_sub(self.staging_bytes.load(Ordering::Relaxed));
        kind.is_staging() || self.most_bytes.is_none_or(|most| tensors.saturating_add(grows) <= most)
    }

    /// Counts a block of staging memory that was made.
    pub(super) fn staging_made(&self, bytes: u64) {
        self.staging_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts one that is freed.
    pub(super) fn staging_freed(&self, bytes: u64) {
        self.staging_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn without_a_cap_there_is_room_and_blocks_share() {
        let room = MemoryRoom::new(None);
        assert!(room.has_room(MemoryKind::Device, u64::MAX, false, u64::MAX));
        assert!(!room.is_apart(MemoryKind::Device, 1 << 40));
    }

    #[test]
    fn under_a_cap_objects_keep_to_it() {
        let room = MemoryRoom::new(Some(256 * MIB));
        let most = (256 + 64 + 16) * MIB;
        assert!(room.has_room(MemoryKind::Device, MIB, true, most - MIB));
        assert!(!room.has_room(MemoryKind::Device, MIB + 1, true, most - MIB));
        assert!(!room.has_room(MemoryKind::Device, MIB, false, most - MIB), "it may need a shared object");
        assert!(room.has_room(MemoryKind::Upload, MIB, false, most), "staging memory has a bound of its own");
        room.staging_made(8 * MIB);
        assert!(room.has_room(MemoryKind::Device, MIB, true, most + 7 * MIB), "and is no tensor's");
        room.staging_freed(8 * MIB);
        assert!(!room.has_room(MemoryKind::Device, MIB, true, most + 7 * MIB));
        assert!(room.is_apart(MemoryKind::Device, MIB) && !room.is_apart(MemoryKind::Upload, MIB));
    }

    #[test]
    fn there_are_never_more_than_a_thousand_large_ones() {
        for cap in [MIB, 256 * MIB, 1 << 30, 1 << 40] {
            let room = MemoryRoom::new(Some(cap));
            assert!(cap / room.apart_from <= 1024, "{cap}");
        }
    }
}
