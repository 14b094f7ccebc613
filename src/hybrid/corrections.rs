//! Corrections of predicted times: how much longer than predicted each side takes, and when the slower side is measured
//! again.

use std::sync::atomic::{AtomicU32, Ordering};

use super::decision::Side;
use super::work::{Op, Work};

/// Amounts that differ by less than this share one correction: powers of four.
const BUCKETS: usize = 24;
/// Chains are told apart by a hash of their operations; this many have corrections of their own.
const CHAINS: usize = 256;
/// How much of a new ratio goes into a correction: more of one that is lower, since whatever disturbs a call makes it
/// longer.
const WEIGHT_UP: f32 = 0.3;
const WEIGHT_DOWN: f32 = 0.7;
/// A single call raises a correction by the weight of this factor at most: it may have been interrupted.
const STEP_UP: f32 = 2.0;
/// The root of the first one's may be up to this one's, since nothing is known before it.
const FIRST_STEP: f32 = 64.0;
/// The slower side is measured again once calls have cost this many times its price since it was tried last: at most a
/// twentieth of the time is lost, however slow it is.
const PATIENCE: f64 = 20.0;
/// Each trial that finds it slower doubles that, this often: in the end at most 1/1280 of the time is lost.
const MOST_DOUBLINGS: u32 = 6;

/// By operation (chains of other operations are other ones), amount, and where the operands are.
#[derive(Debug)]
pub(super) struct Corrections {
    cells: Vec<Cell>,
}

impl Corrections {
    pub(super) fn new() -> Corrections {
        Corrections { cells: (0..2 * BUCKETS * (Op::ALL.len() + CHAINS)).map(|_| Cell::default()).collect() }
    }

    pub(super) fn cell(&self, work: &Work) -> &Cell {
        let amount = work.amount as u64;
        let bucket = (amount.max(1).ilog2() as usize / 2).min(BUCKETS - 1);
        let resident = usize::from(work.device_bytes > 0);
        let row = match work.op {
            // The upper bits: multiplication mixes into those.
            Op::Chain => Op::ALL.len() + (work.kind >> 32) as usize % CHAINS,
            op => op as usize,
        };
        &self.cells[(row * BUCKETS + bucket) * 2 + resident]
    }
}

/// Of two threads the last one wins: the next call corrects again.
#[derive(Debug, Default)]
pub(super) struct Cell {
    /// By side: measured over predicted, as the bits of an f32; 0 until there is one, negative while there is only one.
    factors: [AtomicU32; 2],
    /// Microseconds of calls since the slower side was tried last, as the bits of an f32.
    spent: AtomicU32,
    /// How often in a row trials have found it slower.
    doublings: AtomicU32,
}

/// What earlier calls have shown about a side.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// By how much it takes longer than was predicted.
    pub(super) factor: f64,
    pub(super) calls: Calls,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Calls {
    None,
    One,
    More,
}

fn load(bits: &AtomicU32) -> f32 {
    f32::from_bits(bits.load(Ordering::Relaxed))
}

fn store(bits: &AtomicU32, value: f32) {
    bits.store(value.to_bits(), Ordering::Relaxed);
}

impl Cell {
    pub(super) fn known(&self) -> [Known; 2] {
        self.factors.each_ref().map(|factor| {
            let factor = load(factor);
            match factor.abs() {
                0.0 => Known { factor: 1.0, calls: Calls::None },
                size if factor < 0.0 => Known { factor: size.into(), calls: Calls::One },
                size => Known { factor: size.into(), calls: Calls::More },
            }
        })
    }

    /// Moves a side's factor: a call took this many times what was predicted with it.
    pub(super) fn correct(&self, side: Side, ratio: f32) {
        let factor = &self.factors[side as usize];
        let stored = load(factor);
        let before = stored.abs();
        let after = match (before > 0.0, ratio > 1.0) {
            // The first call said so too, of whose ratio this is the root: two are hardly disturbed alike.
            (true, true) if stored < -1.0 => before * ratio.min(before),
            (true, true) => before * ratio.min(STEP_UP).powf(WEIGHT_UP),
            (true, false) => before * ratio.powf(WEIGHT_DOWN),
            // It may have met cold memory, or a pipeline that had to be made.
            (false, true) => ratio.min(FIRST_STEP).sqrt(),
            (false, false) => ratio.max(1.0 / FIRST_STEP),
        };
        let after = after.clamp(1e-3, 1e3);
        store(factor, if before > 0.0 { after } else { -after });
    }

    /// Whether the slower side, of this price, is due to be measured again. It is true for one of several callers.
    pub(super) fn takes_trial(&self, price_us: f64) -> bool {
        let spent = self.spent.load(Ordering::Relaxed);
        let patience =
            PATIENCE * f64::from(1u32 << self.doublings.load(Ordering::Relaxed).min(MOST_DOUBLINGS));
        f64::from(f32::from_bits(spent)) >= patience * price_us
            && self.spent.compare_exchange(spent, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes a trial, in which the side was slower or not.
    pub(super) fn tried(&self, slower: bool) {
        let doublings = self.doublings.load(Ordering::Relaxed);
        self.doublings.store(if slower { (doublings + 1).min(MOST_DOUBLINGS) } else { 0 }, Ordering::Relaxed);
    }

    /// A call that was no trial took so long.
    pub(super) fn spent(&self, us: f64) {
        store(&self.spent, load(&self.spent) + us as f32);
    }
}
