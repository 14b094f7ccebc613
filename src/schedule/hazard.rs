//! Where barriers must stand: a pure function from accesses to barriers.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A node's access to a range of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockAccess {
    /// The block, by its index in the recording.
    pub(crate) block: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) write: bool,
}

impl BlockAccess {
    /// A read meets a write, or a write meets anything, on common bytes.
    fn conflicts_with(&self, earlier: &BlockAccess) -> bool {
        (self.write || earlier.write)
            && self.block == earlier.block
            && self.offset < earlier.offset + earlier.bytes
            && earlier.offset < self.offset + self.bytes
    }
}

/// Walks a recording's nodes in order and says where a barrier must stand.
///
/// All nodes since the last barrier may run side by side; a barrier orders everything before it against everything
/// after it. So a node needs one exactly if it conflicts with a node since the last one.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    /// Inline, since a barrier throws all of them away: with a `Vec` each node of a chain would allocate three times.
    since_barrier: FxHashMap<u32, SmallVec<[BlockAccess; 2]>>,
    barriers: u32,
}

impl Hazards {
    /// Whether a barrier must stand before the node; takes note of its accesses.
    pub(crate) fn node(&mut self, accesses: &[BlockAccess]) -> bool {
        let conflict = accesses.iter().any(|access| {
            self.since_barrier
                .get(&access.block)
                .is_some_and(|earlier| earlier.iter().any(|earlier| access.conflicts_with(earlier)))
        });
        if conflict {
            self.since_barrier.clear();
            self.barriers += 1;
        }
        for access in accesses.iter().filter(|access| access.bytes > 0) {
            let seen = self.since_barrier.entry(access.block).or_default();
            if !seen.contains(access) {
                seen.push(*access);
            }
        }
        conflict
    }

    /// How many barriers there are so far.
    pub(crate) fn barriers(&self) -> u32 {
        self.barriers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: u32, offset: u64, bytes: u64) -> BlockAccess {
        BlockAccess { block, offset, bytes, write: false }
    }

    fn write(block: u32, offset: u64, bytes: u64) -> BlockAccess {
        BlockAccess { block, offset, bytes, write: true }
    }

    fn barriers(nodes: &[&[BlockAccess]]) -> Vec<bool> {
        let mut hazards = Hazards::default();
        nodes.iter().map(|node| hazards.node(node)).collect()
    }

    #[test]
    fn read_after_write() {
        assert_eq!(barriers(&[&[write(0, 0, 64)], &[read(0, 0, 64), write(1, 0, 64)]]), [false, true]);
    }

    #[test]
    fn write_after_write() {
        assert_eq!(barriers(&[&[write(0, 0, 64)], &[write(0, 32, 64)]]), [false, true]);
    }

    #[test]
    fn write_after_read() {
        assert_eq!(barriers(&[&[read(0, 0, 64), write(1, 0, 4)], &[write(0, 0, 64)]]), [false, true]);
    }

    #[test]
    fn reads_and_disjoint_ranges_need_none() {
        let nodes: &[&[BlockAccess]] = &[
            &[read(0, 0, 64), write(1, 0, 64)],
            &[read(0, 0, 64), write(2, 0, 64)],
            &[read(0, 0, 64), write(1, 64, 64)],
        ];
        assert_eq!(barriers(nodes), [false; 3]);
    }

    #[test]
    fn one_common_byte_is_a_hazard_and_none_is_not() {
        for bytes in [1, 4, 16, 64, 1 << 33] {
            let first = [write(0, 128, bytes)];
            for (offset, length, met) in [
                (0, 129, true),
                (0, 128, false),
                (127 + bytes, 1, true),
                (128 + bytes, 64, false),
                (128, 1, true),
            ] {
                let barriers = barriers(&[&first, &[read(0, offset, length)]]);
                assert_eq!(barriers, [false, met], "{bytes} bytes at 128, {length} at {offset}");
            }
        }
    }

    #[test]
    fn every_access_since_the_last_barrier_counts() {
        let nodes: &[&[BlockAccess]] = &[
            &[read(0, 0, 64), write(0, 64, 64), write(1, 0, 64)],
            &[write(0, 128, 64)],
            &[read(0, 128, 64), write(2, 0, 64)],
            &[write(0, 0, 64)],
        ];
        assert_eq!(barriers(nodes), [false, false, true, false]);
        assert_eq!(barriers(&[nodes[0], nodes[1], &[write(0, 32, 1)]]), [false, false, true]);
        assert_eq!(barriers(&[nodes[0], nodes[1], &[read(0, 64, 1)]]), [false, false, true]);
    }

    #[test]
    fn one_barrier_orders_all_that_came_before() {
        let nodes: &[&[BlockAccess]] = &[
            &[write(0, 0, 64)],
            &[write(1, 0, 64)],
            &[read(0, 0, 64), write(2, 0, 64)],
            &[read(1, 0, 64), write(3, 0, 64)],
        ];
        assert_eq!(barriers(nodes), [false, false, true, false]);
    }
}
