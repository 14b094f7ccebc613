//! References to a block, of two kinds.
//!
//! A [`Lease`] is somebody's to whom the contents matter as they are: a tensor, an open recording, an access of the
//! host's under way, a command buffer of the host's. A [`Hold`] is a submission's in flight: it keeps the memory where
//! it is, and what it does with the contents has its place in the queue. So the device may overwrite a block with one
//! lease whatever is in flight, and the host may do so only where nothing is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use super::{Block, Pool};
use crate::vk::process;

/// A block in use, with its contents. Clones share it.
pub(crate) struct Lease(Arc<Leased>);

/// A block that work in flight uses. The memory stays; its contents are whatever the queue has made of them by then. No
/// lease comes of it: contents that are due to be overwritten can't be captured any more.
#[derive(Clone, Debug)]
pub(crate) struct Hold(Arc<Leased>);

struct Leased {
    /// `None` only inside `drop`.
    block: Option<Block>,
    requested: u64,
    /// Leases on the block, of all that refer to it.
    leases: AtomicUsize,
    home: Home,
}

/// How the host writes a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// In its place where it is mapped: nothing pending uses it.
    InPlace,
    /// By a copy in the queue, behind whatever uses it.
    Queued,
}

impl WriteMode {
    /// Whether it is the host that writes the block's own memory.
    pub(crate) fn is_direct(self, lease: &Lease) -> bool {
        self == WriteMode::InPlace && lease.block().buffer.is_mapped()
    }
}

/// Where a block goes when nothing refers to it.
pub(super) enum Home {
    /// Back to its pool.
    Pool(Arc<Pool>),
    /// Nowhere: it is a buffer of the host's, written in place whatever uses it.
    Wrapped,
    /// Back to the application, which lends it for reading only. With the bytes that are lent.
    Imported(Arc<AtomicU64>),
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased").field("requested", &self.requested).finish_non_exhaustive()
    }
}

impl Leased {
    fn block(&self) -> &Block {
        match &self.block {
            Some(block) => block,
            None => unreachable!("a block leaves its lease only in drop"),
        }
    }
}

impl Lease {
    /// The first lease on a block that is no longer in its pool, or that has none.
    pub(super) fn new(block: Block, requested: u64, home: Home) -> Lease {
        Lease(Arc::new(Leased { block: Some(block), requested, leases: AtomicUsize::new(1), home }))
    }

    /// The block's buffer and its marks.
    pub(crate) fn block(&self) -> &Block {
        self.0.block()
    }

    /// Keeps the memory for work in flight.
    pub(crate) fn hold(&self) -> Hold {
        Hold(self.0.clone())
    }

    /// Whether nothing else refers to the block or lends it: the host may write it in place.
    pub(crate) fn is_unshared(&self) -> bool {
        let unshared = Arc::strong_count(&self.0) == 1 && !self.is_imported();
        if unshared {
            // The count is read relaxed, and the host may be about to write the memory: what others did with it before
            // they let go, on other threads, has to come before that. Their letting go is a release; this is the other
            // half.
            fence(Ordering::Acquire);
        }
        unshared
    }

    /// Whether the device may overwrite it: nothing else needs the contents as they are, or it is the host's. Work in
    /// flight is no hindrance, since the queue has it in front.
    pub(crate) fn is_replaceable(&self) -> bool {
        self.is_replaceable_beside(0)
    }

    /// The same where this many other leases are those of the submission that overwrites it, which reads it before.
    pub(crate) fn is_replaceable_beside(&self, own: usize) -> bool {
        // What the host read under another lease, on another thread, comes before the submission that overwrites it.
        (self.0.leases.load(Ordering::Acquire) == 1 + own && !self.is_imported()) || self.is_pinned()
    }

    /// Whether it is memory of the host's, which stays in its place whatever uses it.
    pub(crate) fn is_pinned(&self) -> bool {
        matches!(self.0.home, Home::Wrapped)
    }

    /// Whether it is memory of the application, which nothing writes.
    pub(crate) fn is_imported(&self) -> bool {
        matches!(self.0.home, Home::Imported(_))
    }

    /// Tells blocks apart while both are alive.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl Clone for Lease {
    fn clone(&self) -> Lease {
        self.0.leases.fetch_add(1, Ordering::Relaxed);
        Lease(self.0.clone())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.leases.fetch_sub(1, Ordering::Release);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.0).finish()
    }
}

impl Hold {
    /// The block's buffer and its marks.
    pub(crate) fn block(&self) -> &Block {
        self.0.block()
    }

    /// As [`Lease::address`].
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        // The pool is the parent's, and its lock may be held for good.
        if process::is_forked() {
            return;
        }
        let Some(block) = self.block.take() else { return };
        match &self.home {
            Home::Pool(pool) => pool.put_back(block, self.requested),
            Home::Wrapped => {}
            Home::Imported(lent) => {
                lent.fetch_sub(block.buffer.size_bytes(), Ordering::Relaxed);
            }
        }
    }
}
