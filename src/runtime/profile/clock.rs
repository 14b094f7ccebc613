//! From ticks to nanoseconds, and from the device's clock to the host's: pure functions.

use crate::vk::clock::ClockSample;
use crate::vk::physical::TimestampClock;

/// The device's clock and the host's at one moment, in ticks and in nanoseconds since the accelerator was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Anchor {
    pub(crate) ticks: u64,
    pub(crate) host_ns: f64,
    pub(crate) uncertainty_ns: f64,
}

impl Anchor {
    pub(crate) fn new(sample: ClockSample, epoch: std::time::Instant) -> Anchor {
        Anchor {
            ticks: sample.ticks,
            host_ns: sample.host.saturating_duration_since(epoch).as_nanos() as f64,
            uncertainty_ns: sample.uncertainty_ns as f64,
        }
    }
}

/// A pair of clocks that do not run at the same rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockMismatch {
    /// How many nanoseconds the device's clock counts, by its stated period, in one of the host's.
    pub(crate) rate: f64,
}

/// Both clocks may differ by so much before one is called wrong: crystals differ by 0.01 %, and a virtual machine's
/// host clock is steered.
const RATE_TOLERANCE: f64 = 0.02;
/// Below this no rate is judged.
const RATE_BASE_NS: f64 = 5e6;

impl TimestampClock {
    fn mask(&self) -> u64 {
        if self.valid_bits >= 64 { u64::MAX } else { (1 << self.valid_bits) - 1 }
    }

    /// Ticks from `a` to `b`, which may lie before it: the shorter way around.
    pub(crate) fn between(&self, a: u64, b: u64) -> i64 {
        let forward = b.wrapping_sub(a) & self.mask();
        let backward = a.wrapping_sub(b) & self.mask();
        if forward <= backward { forward as i64 } else { -(backward as i64) }
    }

    /// Ticks as counts from the first, in order of their writing: each step takes the shorter way around, so the
    /// whole may be longer than the clock takes to wrap.
    pub(crate) fn unwrap(&self, ticks: &[u64]) -> Vec<i64> {
        let mut previous = ticks.first().copied().unwrap_or(0);
        let mut at = 0;
        let step = |&tick: &u64| {
            at += self.between(previous, tick);
            previous = tick;
            at
        };
        ticks.iter().map(step).collect()
    }

    pub(crate) fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * self.period_ns
    }

    /// Where a tick lies on the host's clock. Between two anchors the difference of the clocks' rates is taken out.
    pub(crate) fn host_ns(&self, ticks: u64, before: &Anchor, after: Option<&Anchor>) -> f64 {
        let since = self.between(before.ticks, ticks);
        if let Some(after) = after {
            let span = self.between(before.ticks, after.ticks);
            if span > 0 && (0..=span).contains(&since) {
                return before.host_ns + since as f64 / span as f64 * (after.host_ns - before.host_ns);
            }
        }
        before.host_ns + self.ns(since)
    }

    /// Whether the clock counts nanoseconds as the host's does. `None` if the anchors are too close to tell.
    pub(crate) fn mismatch(&self, first: &Anchor, last: &Anchor) -> Option<ClockMismatch> {
        let host = last.host_ns - first.host_ns;
        let wraps_ns = self.mask() as f64 * self.period_ns;
        // A base longer than the clock counts tells nothing; a quarter leaves room for a period that is wrong.
        if host < RATE_BASE_NS || host > wraps_ns / 4.0 {
            return None;
        }
        let rate = self.ns(self.between(first.ticks, last.ticks)) / host;
        let uncertainty = 2.0 * (first.uncertainty_ns + last.uncertainty_ns) / host;
        ((rate - 1.0).abs() > RATE_TOLERANCE + uncertainty).then_some(ClockMismatch { rate })
    }
}

/// The time covered by at least one of the intervals.
pub(crate) fn union_ns(intervals: &mut [(f64, f64)]) -> f64 {
    intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut busy, mut covered) = (0.0, f64::NEG_INFINITY);
    for &mut (begin, end) in intervals {
        busy += (end - begin.max(covered)).max(0.0);
        covered = covered.max(end);
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: TimestampClock = TimestampClock { valid_bits: 36, period_ns: 41.666_667 };

    fn anchor(ticks: u64, host_ns: f64) -> Anchor {
        Anchor { ticks, host_ns, uncertainty_ns: 500.0 }
    }

    #[test]
    fn only_valid_bits_count() {
        let garbage = 0xabc << 36;
        assert_eq!(NARROW.between(garbage | 5, 9), 4);
        assert_eq!(NARROW.unwrap(&[garbage | 5, 9, garbage | 12]), [0, 4, 7]);
    }

    #[test]
    fn the_clock_may_wrap_on_the_way() {
        let top = (1 << 36) - 10;
        assert_eq!(NARROW.unwrap(&[top, top + 8, 2, 40]), [0, 8, 12, 50]);
        // Several times over, in steps of a third.
        let third = (1u64 << 36) / 3;
        let ticks: Vec<u64> = (0..10).map(|i| (i * third) & ((1 << 36) - 1)).collect();
        assert_eq!(NARROW.unwrap(&ticks)[9], 9 * third as i64);
        let whole = TimestampClock { valid_bits: 64, period_ns: 1.0 };
        assert_eq!(whole.unwrap(&[u64::MAX - 1, 1]), [0, 3]);
    }

    #[test]
    fn a_stamp_may_lie_before_the_one_written_before_it() {
        assert_eq!(NARROW.unwrap(&[100, 90, 120]), [0, -10, 20]);
    }

    #[test]
    fn periods_need_not_be_whole() {
        assert!((NARROW.ns(24_000_000) - 1e9).abs() < 10.0);
    }

    #[test]
    fn drift_between_two_anchors_is_taken_out() {
        let clock = TimestampClock { valid_bits: 64, period_ns: 1.0 };
        // The device's clock counts 1,001 where the host's counts 1,000.
        let (before, after) = (anchor(0, 0.0), anchor(1_001_000, 1_000_000.0));
        let at = |tick| clock.host_ns(tick, &before, Some(&after));
        assert!((at(500_500) - 500_000.0).abs() < 1e-6);
        assert!((at(1_001_000) - 1_000_000.0).abs() < 1e-6);
        assert!((clock.host_ns(700, &before, None) - 700.0).abs() < 1e-6);
    }

    #[test]
    fn a_clock_with_a_wrong_period_is_found_out() {
        let clock = TimestampClock { valid_bits: 64, period_ns: 0.1 };
        let found = clock.mismatch(&anchor(0, 0.0), &anchor(20_000_000, 20e6)).expect("a tenth");
        assert!((found.rate - 0.1).abs() < 1e-6);
        let right = TimestampClock { valid_bits: 64, period_ns: 1.0 };
        assert_eq!(right.mismatch(&anchor(0, 0.0), &anchor(20_000_000, 20e6)), None);
        assert_eq!(clock.mismatch(&anchor(0, 0.0), &anchor(1_000_000, 1e6)), None, "too short to tell");
    }

    #[test]
    fn overlaps_count_once_in_a_union() {
        assert_eq!(union_ns(&mut [(5.0, 9.0), (0.0, 2.0), (1.0, 3.0), (6.0, 7.0)]), 7.0);
        assert_eq!(union_ns(&mut []), 0.0);
    }
}
