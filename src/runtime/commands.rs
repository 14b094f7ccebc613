//! What is handed to the timeline: encoded commands, and the blocks that they use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ir::value::Label;
use crate::runtime::pool::{Hold, Lease};
use crate::runtime::profile::ticket::Ticket;
use crate::schedule::compiled_graph::Usage;
use crate::vk::command::CommandSlot;
use crate::vk::raw::HostSync;

/// A submission's use of a block.
#[derive(Debug)]
pub(crate) struct BlockUse {
    hold: Hold,
    usage: Usage,
}

impl BlockUse {
    pub(crate) fn new(lease: &Lease, usage: Usage) -> BlockUse {
        BlockUse { hold: lease.hold(), usage }
    }

    /// A block that is read before any barrier.
    pub(crate) fn reading(hold: Hold) -> BlockUse {
        let usage = Usage { reads: true, reads_early: true, ..Usage::default() };
        BlockUse { hold, usage }
    }

    /// A block that is written before any barrier.
    pub(crate) fn writing(hold: Hold) -> BlockUse {
        let usage = Usage { writes: true, writes_early: true, ..Usage::default() };
        BlockUse { hold, usage }
    }

    /// Whether work up to `fenced` being ordered before us is not enough.
    pub(crate) fn meets_unfenced(&self, fenced: u64) -> bool {
        let block = self.hold.block();
        let load = |mark: &AtomicU64| mark.load(Ordering::Acquire);
        let written = load(&block.last_write) > fenced;
        let read = load(&block.last_read) > fenced;
        (self.usage.writes_early && (written || read)) || (self.usage.reads_early && written)
    }

    /// Marks the block as used by a submission.
    pub(crate) fn touch(&self, value: u64) {
        if self.usage.reads {
            self.hold.block().touch(value, false);
        }
        if self.usage.writes {
            self.hold.block().touch(value, true);
        }
    }
}

/// A word that a submission brings to a block of a word, in front of what it runs.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) to: Hold,
    pub(crate) bits: u32,
}

/// Of a word.
pub(super) const WORD_BYTES: u64 = 4;

/// Encoded work.
#[derive(Debug)]
pub(crate) enum Commands {
    /// For one submission; the slot is recycled afterwards.
    Once(CommandSlot),
    /// A plan's copy, which is the plan's to submit again.
    Replay(Arc<Replay>),
}

/// One encoded copy of a plan.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Submitted in this order.
    pub(crate) slots: Vec<CommandSlot>,
    /// The blocks of the plan's own, which it never gives back while it lives.
    pub(crate) own: Vec<BlockUse>,
}

impl Commands {
    /// The command buffers, in order.
    pub(crate) fn slots(&self) -> &[CommandSlot] {
        match self {
            Commands::Once(slot) => std::slice::from_ref(slot),
            Commands::Replay(replay) => &replay.slots,
        }
    }

    /// The blocks that come with the commands, beside those of the job.
    pub(crate) fn own(&self) -> &[BlockUse] {
        match self {
            Commands::Once(_) => &[],
            Commands::Replay(replay) => &replay.own,
        }
    }
}

/// What is handed over to be submitted.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) commands: Commands,
    pub(crate) uses: Vec<BlockUse>,
    /// What is brought to blocks in front of the commands.
    pub(crate) words: Vec<Word>,
    /// The commands have a barrier of their own.
    pub(crate) has_barrier: bool,
    pub(crate) labels: Arc<[Label]>,
    /// Collects the times, if the work is profiled.
    pub(crate) ticket: Option<Arc<Ticket>>,
    /// What the host wants waited for and signalled.
    pub(crate) sync: HostSync,
}

impl Job {
    /// Work of the engine's own, without barriers, labels or a profile.
    pub(crate) fn plain(slot: CommandSlot, uses: Vec<BlockUse>) -> Job {
        let commands = Commands::Once(slot);
        Job {
            commands,
            uses,
            words: Vec::new(),
            has_barrier: false,
            labels: Arc::default(),
            ticket: None,
            sync: HostSync::default(),
        }
    }
}
