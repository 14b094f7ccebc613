//! A plan's encoded copies: which of them a submission takes, and what of it is encoded anew.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::commands::{BlockUse, Replay};
use crate::engine::core::Core;
use crate::engine::execute::{encode_nodes, finish};
use crate::engine::pool::Lease;
use crate::engine::profile::Profiling;
use crate::engine::profile::ticket::Probe;
use crate::engine::program::Program;
use crate::error::Result;

/// So many encoded copies are made before an idle one is encoded anew for other memory: enough for the slots of a
/// stream.
const COPIES: usize = 8;

/// Nodes that share a command buffer.
pub(super) struct Segment {
    pub(super) nodes: Range<usize>,
    /// The blocks from outside that they use.
    pub(super) binds: Vec<usize>,
}

/// An encoded copy, and what it was encoded for.
pub(super) struct Copy {
    pub(super) replay: Arc<Replay>,
    mode: Profiling,
    /// For each segment, if it is encoded, the serial numbers of the blocks it binds. They are not held: a block that
    /// is gone has a number that never comes again.
    bound: Vec<Option<Vec<u64>>>,
}

impl Copy {
    /// Whether nobody but the plan refers to it: no submission in flight.
    pub(super) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.replay) == 1
    }
}

/// What a copy is encoded from.
pub(super) struct Encoding<'a> {
    pub(super) core: &'a Core,
    pub(super) program: &'a Program,
    pub(super) segments: &'a [Segment],
    /// The plan's own blocks, and those from outside, by number.
    pub(super) own: &'a [Option<Lease>],
    pub(super) blocks: &'a [Option<Lease>],
    pub(super) probe: &'a Probe,
    pub(super) mode: Profiling,
}

impl Encoding<'_> {
    /// Finds a copy that is idle and encoded for these blocks, or makes it so; gives its place.
    pub(super) fn choose(&self, copies: &mut Vec<Copy>) -> Result<usize> {
        let segments = 0..self.segments.len();
        // From the end: outputs change more often than inputs.
        let is_bound = |copy: &Copy| segments.clone().rev().all(|i| self.is_bound(copy, i));
        if let Some(bound) = copies.iter().position(|copy| copy.is_idle() && is_bound(copy)) {
            self.encode(&mut copies[bound], true)?;
            return Ok(bound);
        }
        // As long as there are few, a set of blocks that is new gets a copy of its own: it may come again.
        let misses = |copy: &Copy| segments.clone().filter(|&i| !self.is_bound(copy, i)).count();
        let idle = (0..copies.len()).filter(|&i| copies.len() >= COPIES && copies[i].is_idle());
        let chosen = idle.min_by_key(|&i| misses(&copies[i])).unwrap_or(copies.len());
        if chosen == copies.len() {
            copies.push(self.fresh()?);
        }
        self.encode(&mut copies[chosen], false)?;
        Ok(chosen)
    }

    /// A copy of which nothing is encoded yet.
    fn fresh(&self) -> Result<Copy> {
        let slots: Result<Vec<_>> = self.segments.iter().map(|_| self.core.timeline.make_slot()).collect();
        let replay = Arc::new(Replay { slots: slots?, own: self.own_uses() });
        Ok(Copy { replay, mode: self.mode, bound: vec![None; self.segments.len()] })
    }

    fn own_uses(&self) -> Vec<BlockUse> {
        let blocks = self.own.iter().zip(&self.program.usage);
        let uses = blocks.filter_map(|(lease, usage)| {
            Some(BlockUse { lease: lease.clone()?, usage: self.probe.usage(*usage) })
        });
        uses.collect()
    }

    fn is_bound(&self, copy: &Copy, segment: usize) -> bool {
        let known = copy.bound[segment].as_ref().filter(|_| copy.mode == self.mode);
        known.is_some_and(|known| known.iter().copied().eq(self.serials(segment)))
    }

    /// The blocks from outside that a segment binds, by their serial numbers.
    fn serials(&self, segment: usize) -> impl Iterator<Item = u64> {
        self.segments[segment].binds.iter().map(|&block| self.block(block).block().serial)
    }

    fn block(&self, block: usize) -> &Lease {
        match self.blocks[block].as_ref().or(self.own[block].as_ref()) {
            Some(lease) => lease,
            None => unreachable!("a block is the plan's own or comes from outside"),
        }
    }

    /// Encodes what is not encoded for these blocks yet; `all` of it may be.
    fn encode(&self, copy: &mut Copy, all: bool) -> Result<()> {
        let current: SmallVec<[bool; 8]> =
            (0..self.segments.len()).map(|i| all || self.is_bound(copy, i)).collect();
        let Some(replay) = Arc::get_mut(&mut copy.replay) else {
            unreachable!("nobody but the plan refers to a copy that is idle")
        };
        if copy.mode != self.mode {
            copy.mode = self.mode;
            replay.own = self.own_uses();
        }
        for (i, (segment, slot)) in self.segments.iter().zip(&mut replay.slots).enumerate() {
            if current[i] {
                slot.rearm();
                continue;
            }
            copy.bound[i] = None;
            slot.reset()?;
            slot.begin_replayed()?;
            let buffer = |block: usize| &self.block(block).block().buffer;
            // Its pipelines were made with the plan.
            let _ = encode_nodes(self.core, slot, self.program, segment.nodes.clone(), buffer, self.probe)?;
            if i + 1 == self.segments.len() {
                finish(slot, self.probe)?
            } else {
                slot.end()?
            }
            copy.bound[i] = Some(self.serials(i).collect());
        }
        Ok(())
    }
}
