//! Memory that is handed out once and never taken back. What `malloc` does depends on all that was freed before, and
//! that differs from run to run, by the order of hash maps; here every allocation takes the same few instructions.

#![allow(unsafe_code, reason = "a global allocator is")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than any of the works asks for, all told.
const BYTES: usize = 512 << 20;
/// How `memcpy` goes about it depends on where memory begins in a cache line.
const LINE: usize = 64;

pub(crate) struct Arena {
    space: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

impl Arena {
    pub(crate) const fn new() -> Arena {
        Arena { space: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) }
    }
}

// SAFETY: each part of the space is handed out once.
unsafe impl Sync for Arena {}

// SAFETY: what `alloc` gives is aligned, as long as the layout says, inside the space, and never given again.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.space.get().cast::<u8>();
        let align = layout.align().max(LINE);
        let place = |used: usize| base.addr().checked_add(used)?.checked_next_multiple_of(align);
        let grown = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let end = (place(used)? - base.addr()).checked_add(layout.size())?;
            (end <= BYTES).then_some(end)
        });
        match grown.ok().and_then(place) {
            Some(address) => base.with_addr(address),
            None => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
