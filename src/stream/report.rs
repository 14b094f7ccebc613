//! How a stream ran: how busy the device was, and what it waited for when it was not.

use std::fmt;
use std::time::Instant;

use crate::error::{ProfileError, Result};
use crate::runtime::measure::run::{Clock, Run};

/// The times of a batch on the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) batch: u64,
    submission: u64,
    /// When the push began, when it had a slot, and when the batch was handed over.
    pushed: [Instant; 3],
    /// When it was popped, and when its slot was given back.
    pub(super) consumed: Option<[Instant; 2]>,
}

impl Event {
    pub(super) fn new(batch: u64, submission: u64, pushed: [Instant; 3]) -> Event {
        Event { batch, submission, pushed, consumed: None }
    }
}

/// Where the device's idle time came from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct IdleTime {
    /// The next batch was being prepared.
    pub preparation_ns: f64,
    /// The next batch had no slot, or the thread that would push it was consuming.
    pub consumption_ns: f64,
    /// The next batch was handed over and had not begun.
    pub submission_ns: f64,
    /// Between two dispatches of one batch.
    pub within_ns: f64,
    /// None of these: the caller did something else.
    pub other_ns: f64,
}

impl IdleTime {
    /// All of it.
    pub fn total_ns(&self) -> f64 {
        self.preparation_ns + self.consumption_ns + self.submission_ns + self.within_ns + self.other_ns
    }
}

/// How a profiled run of a stream went, on one clock: from the first push to the last batch consumed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamReport {
    /// Batches.
    pub batches: u64,
    /// From the begin of the first push to the end of the last batch's consumption.
    pub wall_ns: f64,
    /// The part of it in which the device ran something.
    pub busy_ns: f64,
    /// The rest, by what the device waited for.
    pub idle: IdleTime,
}

impl StreamReport {
    /// The share of the wall time in which the device ran something.
    pub fn utilisation(&self) -> f64 {
        if self.wall_ns > 0.0 { self.busy_ns / self.wall_ns } else { 0.0 }
    }

    /// Wall time in which the device ran nothing.
    pub fn idle_ns(&self) -> f64 {
        self.wall_ns - self.busy_ns
    }

    /// Wall time per batch.
    pub fn ns_per_batch(&self) -> f64 {
        self.wall_ns / self.batches.max(1) as f64
    }

    pub(super) fn new(run: &Run, events: &[Event]) -> Result<StreamReport> {
        if !matches!(run.clock, Clock::Calibrated { .. }) {
            return Err(ProfileError::NotProfiled.into());
        }
        let at = |moment: Instant| moment.saturating_duration_since(run.begun).as_nanos() as f64;
        let steps = run.profiles.iter().filter_map(|profile| {
            let event = events.iter().find(|event| event.submission == profile.submission)?;
            let offset = run.offset_ns(profile);
            let begin = profile.rows.iter().map(|row| row.start_ns).min()?;
            let end = profile.rows.iter().map(|row| row.end_ns).max()?;
            Some(BatchTimes {
                pushed: event.pushed.map(at),
                consumed: event.consumed.map(|span| span.map(at)),
                device: [offset + begin as f64, offset + end as f64],
                gaps: profile.idle_ns() as f64,
            })
        });
        let steps: Vec<BatchTimes> = steps.collect();
        if steps.is_empty() {
            return Err(ProfileError::NotProfiled.into());
        }
        Ok(assess(&steps))
    }
}

impl fmt::Display for StreamReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |ns: f64| 100.0 * ns / self.wall_ns.max(1.0);
        write!(
            f,
            "{} batches, {:.3} ms each, device busy {:.1} %; idle: preparation {:.1} %, consumption {:.1} %, \
             submission {:.1} %, between dispatches {:.1} %, other {:.1} %",
            self.batches,
            self.ns_per_batch() / 1e6,
            100.0 * self.utilisation(),
            share(self.idle.preparation_ns),
            share(self.idle.consumption_ns),
            share(self.idle.submission_ns),
            share(self.idle.within_ns),
            share(self.idle.other_ns)
        )
    }
}

/// A batch on one axis, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct BatchTimes {
    /// Push begun, slot had, handed over.
    pushed: [f64; 3],
    /// Popped, given back.
    consumed: Option<[f64; 2]>,
    /// The device's first begin and last end.
    device: [f64; 2],
    /// Time between in which it ran nothing.
    gaps: f64,
}

/// How much of `span` lies in `gap`.
fn overlap(gap: [f64; 2], span: [f64; 2]) -> f64 {
    (gap[1].min(span[1]) - gap[0].max(span[0])).max(0.0)
}

/// Adds up a run of batches, in the order in which the device ran them.
fn assess(steps: &[BatchTimes]) -> StreamReport {
    let begin = steps.iter().map(|step| step.pushed[0]).fold(f64::INFINITY, f64::min);
    let ends = steps.iter().map(|step| step.consumed.map_or(step.device[1], |span| span[1]));
    let end = ends.fold(begin, f64::max);
    let (mut busy, mut free_from, mut idle) = (0.0, begin, IdleTime::default());
    // Time in which somebody consumed, without counting it twice.
    let consumed = |gap: [f64; 2]| {
        let spans = steps.iter().filter_map(|step| step.consumed);
        let total: f64 = spans.map(|span| overlap(gap, span)).sum();
        total.min((gap[1] - gap[0]).max(0.0))
    };
    for step in steps {
        let device = step.device.map(|t| t.clamp(begin, end));
        let gap = [free_from, device[0].max(free_from)];
        let [began, acquired, submitted] = step.pushed;
        let before = [gap[0], gap[1].min(began).max(gap[0])];
        idle.consumption_ns += overlap(gap, [began, acquired]) + consumed(before);
        idle.preparation_ns += overlap(gap, [acquired, submitted]);
        idle.submission_ns += overlap(gap, [submitted, f64::INFINITY]);
        idle.other_ns += (before[1] - before[0]) - consumed(before);
        let ran = (device[1] - device[0].max(free_from)).max(0.0);
        let gaps = step.gaps.min(ran);
        idle.within_ns += gaps;
        busy += ran - gaps;
        free_from = free_from.max(device[1]);
    }
    let rest = [free_from, end.max(free_from)];
    idle.consumption_ns += consumed(rest);
    idle.other_ns += (rest[1] - rest[0]) - consumed(rest);
    StreamReport { batches: steps.len() as u64, wall_ns: end - begin, busy_ns: busy, idle }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(pushed: [f64; 3], device: [f64; 2], consumed: [f64; 2]) -> BatchTimes {
        BatchTimes { pushed, consumed: Some(consumed), device, gaps: 0.0 }
    }

    #[test]
    fn a_synchronous_loop_is_idle_while_the_host_works() {
        // 10 of preparation, 1 of submission, 50 of work, 20 of consumption; twice.
        let steps = [
            step([0.0, 0.0, 10.0], [11.0, 61.0], [61.0, 81.0]),
            step([81.0, 81.0, 91.0], [92.0, 142.0], [142.0, 162.0]),
        ];
        let report = assess(&steps);
        assert_eq!((report.wall_ns, report.busy_ns, report.batches), (162.0, 100.0, 2));
        let expected = IdleTime {
            preparation_ns: 20.0,
            consumption_ns: 40.0,
            submission_ns: 2.0,
            ..IdleTime::default()
        };
        assert_eq!(report.idle, expected);
    }

    #[test]
    fn back_to_back_batches_leave_only_the_ends() {
        let steps = [
            step([0.0, 0.0, 10.0], [10.0, 60.0], [60.0, 70.0]),
            step([10.0, 10.0, 20.0], [60.0, 110.0], [110.0, 120.0]),
            step([20.0, 20.0, 30.0], [110.0, 160.0], [160.0, 170.0]),
        ];
        let report = assess(&steps);
        assert_eq!((report.wall_ns, report.busy_ns), (170.0, 150.0));
        assert_eq!((report.idle.preparation_ns, report.idle.consumption_ns), (10.0, 10.0));
        assert!((report.utilisation() - 150.0 / 170.0).abs() < 1e-12);
    }

    #[test]
    fn waiting_for_a_slot_is_the_consumers_doing() {
        // The second push waits for a slot from 10 to 100, long after the device is done.
        let steps = [
            step([0.0, 0.0, 10.0], [10.0, 40.0], [40.0, 100.0]),
            step([10.0, 100.0, 105.0], [105.0, 135.0], [135.0, 140.0]),
        ];
        let report = assess(&steps);
        assert_eq!(report.idle.consumption_ns, 60.0 + 5.0);
        assert_eq!(report.idle.preparation_ns, 10.0 + 5.0);
        assert_eq!(report.idle_ns(), 80.0);
    }

    #[test]
    fn whatever_happens_the_parts_are_the_whole() {
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f64 % 50.0
        };
        for _ in 0..200 {
            let (mut steps, mut t, mut device) = (Vec::new(), 0.0, 0.0f64);
            for _ in 0..10 {
                let pushed = [t + random(), t + 50.0 + random(), t + 100.0 + random()];
                let begin = device.max(pushed[2]) + random();
                device = begin + random();
                let popped = device + random();
                let gaps = random();
                steps.push(BatchTimes { gaps, ..step(pushed, [begin, device], [popped, popped + random()]) });
                t = pushed[2];
            }
            let report = assess(&steps);
            let idle = report.idle;
            let parts = idle.total_ns();
            assert!((parts - report.idle_ns()).abs() < 1e-6, "{report:?}");
            assert!(report.busy_ns <= report.wall_ns);
        }
    }
}
