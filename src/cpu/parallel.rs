//! When and how work is divided among threads.

use std::error::Error;
use std::panic::catch_unwind;
use std::sync::OnceLock;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// Elements that one task has at least. A task costs rayon some microseconds to hand over and to wait for; these give
/// it tens (bench `cpu_add_16m`, and `tidemill crossover` around the sizes where threads set in).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grain(pub(super) usize);

/// For work that waits for memory.
pub(super) const LIGHT: Grain = Grain(1 << 17);
/// For work of some tens of instructions per element.
pub(super) const HEAVY: Grain = Grain(1 << 14);

/// How many threads there are. They are rayon's; where there can be none, the caller's is the only one.
pub(crate) fn threads() -> usize {
    static THERE: OnceLock<bool> = OnceLock::new();
    // A caller inside a pool has one.
    if rayon::current_thread_index().is_some() || *THERE.get_or_init(has_pool) {
        rayon::current_num_threads()
    } else {
        1
    }
}

/// Makes rayon's global pool, unless there is one. Rayon itself panics where it can't make it.
fn has_pool() -> bool {
    match ThreadPoolBuilder::new().build_global() {
        Ok(()) => true,
        Err(error) if error.source().is_some() => false,
        // It was made before, or it could not be made before.
        Err(_) => catch_unwind(rayon::current_num_threads).is_ok(),
    }
}

/// Calls `f` on each item and its number.
pub(super) fn each<T: Send>(items: Vec<T>, f: impl Fn((usize, T)) + Sync + Send) {
    if threads() > 1 {
        items.into_par_iter().enumerate().for_each(f);
    } else {
        items.into_iter().enumerate().for_each(f);
    }
}

/// Calls `f` on each chunk and its number.
pub(super) fn chunks_mut<R: Send>(out: &mut [R], length: usize, f: impl Fn((usize, &mut [R])) + Sync + Send) {
    if threads() > 1 {
        out.par_chunks_mut(length).enumerate().for_each(f);
    } else {
        out.chunks_mut(length).enumerate().for_each(f);
    }
}

/// What `f` makes of each chunk and its number, in order.
pub(super) fn map_chunks<A: Sync, S: Send>(
    x: &[A],
    length: usize,
    f: impl Fn((usize, &[A])) -> S + Sync + Send,
) -> Vec<S> {
    if threads() > 1 {
        x.par_chunks(length).enumerate().map(f).collect()
    } else {
        x.chunks(length).enumerate().map(f).collect()
    }
}

/// Calls `f` on pieces of `out`, with each piece's number of the first element. Pieces are a grain long, whatever the
/// number of threads: results do not depend on it.
pub(super) fn pieces<R: Send>(out: &mut [R], grain: Grain, f: impl Fn(usize, &mut [R]) + Sync + Send) {
    if out.len() <= grain.0 {
        f(0, out);
    } else {
        chunks_mut(out, grain.0, |(i, piece)| f(i * grain.0, piece));
    }
}

/// As [`pieces`], on this many whole rows at a time that a piece has a grain of `work` elements per row.
pub(super) fn rows<R: Send>(
    out: &mut [R],
    width: usize,
    work: usize,
    grain: Grain,
    f: impl Fn(usize, &mut [R]) + Sync + Send,
) {
    let at_once = (grain.0 / work.max(1)).max(1);
    if width == 0 || out.len() <= at_once * width {
        f(0, out);
    } else {
        chunks_mut(out, at_once * width, |(i, piece)| f(i * at_once, piece));
    }
}
