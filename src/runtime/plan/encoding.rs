//! A plan's encoded copies: which of them a submission takes, and what of it is encoded anew.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use smallvec::SmallVec;

use crate::error::Result;
use crate::runtime::commands::{BlockUse, Replay};
use crate::runtime::core::Core;
use crate::runtime::execute::{encode_commands, finish};
use crate::runtime::pool::Lease;
use crate::runtime::profile::Profiling;
use crate::runtime::profile::probe::Probe;
use crate::schedule::compiled_graph::CompiledGraph;
use crate::vk::command::CommandSlot;

/// This many encoded copies are made before an idle one is encoded anew for other memory.
pub(super) const COPIES: usize = 8;

/// Nodes that share a command buffer.
pub(super) struct Segment {
    pub(super) commands: Range<usize>,
    /// The blocks from outside that they use.
    pub(super) binds: Vec<usize>,
}

/// An encoded copy, and what it was encoded for.
pub(super) struct Copy {
    pub(super) replay: Arc<Replay>,
    mode: Profiling,
    /// The serial numbers of the blocks, if it is encoded. They are not held: a block that is gone has a number that
    /// never comes again, and then its command buffer is not submitted again either.
    bound: Option<Box<[u64]>>,
}

impl Copy {
    /// Whether only the plan refers to it: no submission in flight.
    pub(super) fn is_idle(&self) -> bool {
        let alone = Arc::strong_count(&self.replay) == 1;
        // What the last one who let go of it has done is seen from here on.
        fence(Ordering::Acquire);
        alone
    }

    /// Whether it may be submitted: any number of times at once, unless it has timestamps, which are of one submission.
    pub(super) fn is_free(&self) -> bool {
        self.mode == Profiling::Off || self.is_idle()
    }
}

/// The source of an encoded copy.
pub(super) struct Encoding<'a> {
    pub(super) core: &'a Core,
    pub(super) compiled: &'a CompiledGraph,
    pub(super) segments: &'a [Segment],
    /// The plan's own blocks, and those from outside, by number.
    pub(super) own: &'a [Option<Lease>],
    pub(super) blocks: &'a [Option<Lease>],
    pub(super) probe: &'a Probe,
    pub(super) mode: Profiling,
    /// The sets of blocks that are expected to take turns: each may have a copy.
    pub(super) sets: usize,
}

impl Encoding<'_> {
    /// Finds a copy that is free and encoded for these blocks, or makes it so. Copies are in the order of their last
    /// use: what was used longest ago is looked at first, since tensors that are bound in turn want it.
    pub(super) fn choose<'c>(&self, copies: &'c mut Vec<Copy>) -> Result<&'c Arc<Replay>> {
        let stale = |copy: &Copy| self.segments.iter().filter(|segment| self.is_stale(copy, segment)).count();
        if let Some(bound) = copies.iter().position(|copy| copy.is_free() && stale(copy) == 0) {
            copies[bound..].rotate_left(1);
            let chosen = &copies[copies.len() - 1];
            if self.probe.is_on() {
                chosen.replay.slots.iter().for_each(CommandSlot::rearm);
            }
            return Ok(&chosen.replay);
        }
        // As long as there are few, a set of blocks that is new gets a copy of its own: it may come again.
        let idle = (0..copies.len()).filter(|&i| copies.len() >= self.sets && copies[i].is_idle());
        let mut copy = match idle.min_by_key(|&i| stale(&copies[i])) {
            Some(chosen) => copies.remove(chosen),
            None => self.fresh()?,
        };
        // Those that were made while all others were in flight go when they are not.
        while copies.len() >= self.sets
            && let Some(surplus) = copies.iter().position(Copy::is_idle)
        {
            copies.remove(surplus);
        }
        let encoded = self.encode(&mut copy);
        copies.push(copy);
        encoded?;
        Ok(&copies[copies.len() - 1].replay)
    }

    /// A copy of which nothing is encoded yet.
    fn fresh(&self) -> Result<Copy> {
        let slots: Result<Vec<_>> = self.segments.iter().map(|_| self.core.timeline.make_slot()).collect();
        let replay = Arc::new(Replay { slots: slots?, own: self.own_uses() });
        self.core.counters.plan_copies.fetch_add(1, Ordering::Relaxed);
        Ok(Copy { replay, mode: self.mode, bound: None })
    }

    fn own_uses(&self) -> Vec<BlockUse> {
        let blocks = self.own.iter().zip(&self.compiled.usage);
        let uses = blocks
            .filter_map(|(lease, usage)| Some(BlockUse::new(lease.as_ref()?, self.probe.usage(*usage))));
        uses.collect()
    }

    /// Whether a segment of a copy is not encoded for these blocks.
    fn is_stale(&self, copy: &Copy, segment: &Segment) -> bool {
        let bound = copy.bound.as_ref().filter(|_| copy.mode == self.mode);
        bound.is_none_or(|bound| segment.binds.iter().any(|&i| bound[i] != serial_of(&self.blocks[i])))
    }

    fn block(&self, block: usize) -> &Lease {
        match self.blocks[block].as_ref().or(self.own[block].as_ref()) {
            Some(lease) => lease,
            None => unreachable!("a block is the plan's own or comes from outside"),
        }
    }

    /// Encodes what is not encoded for these blocks yet. After an error nothing of the copy is.
    fn encode(&self, copy: &mut Copy) -> Result<()> {
        let stale: SmallVec<[bool; 8]> =
            self.segments.iter().map(|segment| self.is_stale(copy, segment)).collect();
        copy.bound = None;
        let Some(replay) = Arc::get_mut(&mut copy.replay) else {
            unreachable!("only the plan refers to a copy that is idle")
        };
        if copy.mode != self.mode {
            copy.mode = self.mode;
            replay.own = self.own_uses();
        }
        for (i, (segment, slot)) in self.segments.iter().zip(&mut replay.slots).enumerate() {
            if !stale[i] {
                slot.rearm();
                continue;
            }
            self.core.counters.plan_encoded.fetch_add(1, Ordering::Relaxed);
            slot.reset()?;
            if self.probe.is_on() {
                slot.begin_replayed()?
            } else {
                slot.begin_reusable()?
            }
            let buffer = |block: usize| &self.block(block).block().buffer;
            // Its pipelines were made with the plan.
            let _ = encode_commands(
                self.core,
                slot,
                self.compiled,
                segment.commands.clone(),
                buffer,
                self.probe,
            )?;
            if i + 1 == self.segments.len() { finish(slot, self.probe)? } else { slot.end()? }
        }
        copy.bound = Some(self.blocks.iter().map(serial_of).collect());
        Ok(())
    }
}

/// 0 for a block of the plan's own, which never changes.
fn serial_of(block: &Option<Lease>) -> u64 {
    block.as_ref().map_or(0, |lease| lease.block().serial)
}
