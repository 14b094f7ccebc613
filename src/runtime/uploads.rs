//! Staged uploads and arguments of plans: what the timeline puts in front of a submission.

use crate::error::Result;
use crate::runtime::commands::{BlockUse, WORD_BYTES, Word};
use crate::runtime::pool::Hold;
use crate::vk::command::{Barrier, Bound, CommandSlot};
use crate::vk::query::Stamp;

/// A host write on its way to memory that the host can't reach, or that work in flight uses.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) staging: Hold,
    pub(super) to: Hold,
    /// Where in the block it begins.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Upload {
    /// Whether both write to the same bytes.
    fn meets(&self, other: &Upload) -> bool {
        self.to.address() == other.to.address()
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

/// The copies of staged uploads and the fills of words, closed by a barrier against what follows.
pub(super) fn encode_uploads(
    slot: &mut CommandSlot,
    uploads: &[Upload],
    words: &[Word],
    stamps: bool,
) -> Result<Vec<BlockUse>> {
    slot.begin()?;
    slot.begin_label("upload");
    if stamps {
        slot.timestamp(Stamp::Reached)?;
    }
    let mut uses = Vec::with_capacity(2 * uploads.len() + words.len());
    for (i, upload) in uploads.iter().enumerate() {
        // Two writes to one tensor in a row.
        if uploads[..i].iter().any(|earlier| earlier.meets(upload)) {
            slot.barrier(Barrier::Device);
        }
        let Upload { staging, to, offset, bytes } = upload;
        slot.copy(
            Bound { buffer: &staging.block().buffer, offset: 0, bytes: *bytes },
            Bound { buffer: &to.block().buffer, offset: *offset, bytes: *bytes },
        );
        uses.push(BlockUse::reading(upload.staging.clone()));
        uses.push(BlockUse::writing(upload.to.clone()));
    }
    for Word { to, bits } in words {
        slot.fill(Bound { buffer: &to.block().buffer, offset: 0, bytes: WORD_BYTES }, *bits);
        uses.push(BlockUse::writing(to.clone()));
    }
    if stamps {
        slot.timestamp(Stamp::Done)?;
    }
    slot.barrier(Barrier::Device);
    if uploads.iter().any(|upload| upload.to.block().buffer.is_mapped()) {
        slot.barrier(Barrier::Host);
    }
    slot.end_label();
    slot.end()?;
    Ok(uses)
}
