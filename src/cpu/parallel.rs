//! When and how work is divided among threads.

use rayon::prelude::*;

/// Elements that one task has at least. A task costs rayon some microseconds to hand over and to wait for; these give it
/// tens (bench `cpu_add_16m`, and `tidemill crossover` around the sizes where threads set in).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grain(pub(super) usize);

/// For work that waits for memory.
pub(super) const LIGHT: Grain = Grain(1 << 17);
/// For work of some tens of instructions per element.
pub(super) const HEAVY: Grain = Grain(1 << 14);

/// Calls `f` on pieces of `out`, with each piece's number of the first element. Pieces are a grain long, whatever the
/// number of threads: results do not depend on it.
pub(super) fn pieces<R: Send>(out: &mut [R], grain: Grain, f: impl Fn(usize, &mut [R]) + Sync + Send) {
    if out.len() <= grain.0 {
        f(0, out);
    } else {
        out.par_chunks_mut(grain.0).enumerate().for_each(|(i, piece)| f(i * grain.0, piece));
    }
}

/// As [`pieces`], on so many whole rows at a time that a piece has a grain of `work` elements per row.
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
        out.par_chunks_mut(at_once * width).enumerate().for_each(|(i, piece)| f(i * at_once, piece));
    }
}
