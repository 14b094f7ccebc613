//! The profile of one submission.

use super::Profiling;
use super::clock::union_ns;
use super::guard::{Figure, Judge};
use super::ticket::Ticket;
use crate::error::{MeasurementError, ProfileError, Result};
use crate::vk::device::Device;
use crate::vk::physical::TimestampClock;

/// One dispatch, copy or fill, as the device's clock saw it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// Operation, shape and type: what validation messages and RenderDoc call it, too.
    pub label: String,
    /// The kernel's module, which names the variant; `copy` and `fill` for the device's own commands.
    pub kernel: String,
    /// Workgroups; zeros for copies and fills.
    pub groups: [u32; 3],
    /// When it began, in nanoseconds since the first row of its submission began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// A barrier stands in front because of what it reads or writes.
    pub barrier: bool,
    /// It may have run side by side with another row: its time is not its own.
    pub overlaps: bool,
    /// Bytes that must be read and written at the least, if known.
    pub bytes: Option<u64>,
    /// Floating-point operations by the convention of the documentation, if known.
    pub flops: Option<u64>,
    /// How fast that was, if it may be said.
    pub figure: Figure,
}

impl Row {
    /// From begin to end.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The host's work for a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostTime {
    /// From `begin_recording` to `end_recording`, the caller's own code between included.
    pub record_ns: u64,
    /// Giving memory, placing barriers and encoding.
    pub encode_ns: u64,
    /// Pipelines that had to be made for it, because no earlier recording used such an operation, or such a list of
    /// fused ones, before. Drivers that compile at the first dispatch do the most of it there, in its row's time.
    pub pipelines_made: u64,
    /// Making them: a part of encoding, and for a plan of making the plan.
    pub pipelines_ns: u64,
    /// Handing over to the driver.
    pub submit_ns: u64,
    /// Waiting for it, on all threads together.
    pub wait_ns: u64,
}

/// The device's work for one submission, row by row.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// How the times were taken.
    pub mode: Profiling,
    /// The submission's number.
    pub submission: u64,
    /// The rows, in the order of the recording.
    pub rows: Vec<Row>,
    /// Barriers between them that the work needs.
    pub barriers: u64,
    /// The host's work.
    pub host: HostTime,
    /// When the first row began, in nanoseconds since the accelerator was made, on the host's clock; `None` where the
    /// clocks can't be compared.
    pub(crate) begin_on_host_ns: Option<f64>,
    /// The first row's begin in ticks.
    pub(crate) first_tick: u64,
    pub(crate) clock: TimestampClock,
    /// A moment of the host and one of the device may differ by so much.
    pub(crate) uncertainty_ns: f64,
}

impl Profile {
    /// From a ticket whose submission is complete.
    pub(crate) fn new(ticket: &Ticket, device: &Device, judge: &Judge) -> Result<Profile> {
        let Some(clock) = device.info.timestamps else {
            return Err(ProfileError::NoTimestamps { device: device.info.name.clone() }.into());
        };
        let outcome = ticket.outcome()?;
        let mut ticks: Vec<u64> = outcome.upload.map_or(Vec::new(), Vec::from);
        ticks.extend(&outcome.ticks);
        let at = clock.unwrap(&ticks);
        let first = at.iter().copied().min().unwrap_or(0);
        let ns = |i: usize| clock.ns(at[i] - first).round().max(0.0) as u64;
        let mut rows = Vec::with_capacity(ticket.rows.len() + 1);
        if outcome.upload.is_some() {
            rows.push(upload_row(ticket.upload_bytes(), ns(0), ns(1)));
        }
        for (i, plan) in ticket.rows.iter().enumerate() {
            let k = 2 * rows.len();
            let (start_ns, end_ns) = (ns(k), ns(k + 1).max(ns(k)));
            let overlaps = ticket.overlaps(i);
            let figure = match ticket.mode {
                Profiling::Isolated => judge.figure(end_ns - start_ns, plan.cost.flops, plan.cost.bytes),
                Profiling::Off | Profiling::Timeline => Figure::None,
            };
            rows.push(Row {
                label: plan.label.to_string(),
                kernel: plan.kernel.clone(),
                groups: plan.groups,
                start_ns,
                end_ns,
                barrier: plan.barrier,
                overlaps,
                bytes: plan.cost.bytes,
                flops: plan.cost.flops,
                figure,
            });
        }
        let first_tick = ticks.first().map_or(0, |&tick| tick.wrapping_add(first as u64));
        let (before, after) = (ticket.before.as_ref(), outcome.after.as_ref());
        let begin_on_host_ns = before.map(|before| clock.host_ns(first_tick, before, after));
        let uncertainty_ns = [before, after].iter().flatten().map(|a| a.uncertainty_ns).fold(0.0, f64::max);
        let host = ticket.host.lock();
        let length = |(begin, end): (u64, u64)| end.saturating_sub(begin);
        Ok(Profile {
            mode: ticket.mode,
            submission: ticket.number(),
            barriers: ticket.rows.iter().filter(|row| row.barrier).count() as u64,
            rows,
            host: HostTime {
                record_ns: length(host.record),
                encode_ns: length(host.encode),
                pipelines_made: host.built.pipelines,
                pipelines_ns: host.built.ns,
                submit_ns: length(host.submit),
                wait_ns: host.waits.iter().copied().map(length).sum(),
            },
            begin_on_host_ns,
            first_tick,
            clock,
            uncertainty_ns,
        })
    }

    /// Whether a row is faster than the device's peaks.
    pub(crate) fn is_above_peaks(&self) -> bool {
        use MeasurementError::{Compute, Memory};
        let above = |row: &Row| matches!(row.figure, Figure::Impossible(Compute { .. } | Memory { .. }));
        self.rows.iter().any(above)
    }

    /// The time in which at least one row ran: overlaps count once.
    pub fn busy_ns(&self) -> u64 {
        let mut rows: Vec<_> = self.rows.iter().map(|row| (row.start_ns as f64, row.end_ns as f64)).collect();
        union_ns(&mut rows) as u64
    }

    /// From the begin of another submission's first row to the begin of this one's, in nanoseconds of the device's
    /// clock; less than 0 if this one began before.
    pub fn ns_since(&self, other: &Profile) -> i64 {
        self.clock.ns(self.clock.between(other.first_tick, self.first_tick)).round() as i64
    }

    /// From the begin of the first row to the end of the last.
    pub fn span_ns(&self) -> u64 {
        self.rows.iter().map(|row| row.end_ns).max().unwrap_or(0)
    }

    /// The time between the first row's begin and the last one's end in which none ran.
    pub fn idle_ns(&self) -> u64 {
        self.span_ns().saturating_sub(self.busy_ns())
    }

    /// Bytes of all rows that know theirs.
    pub fn bytes(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.bytes).sum()
    }

    /// Floating-point operations of all rows that know theirs.
    pub fn flops(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.flops).sum()
    }
}

fn upload_row(bytes: u64, start_ns: u64, end_ns: u64) -> Row {
    Row {
        label: "upload".to_owned(),
        kernel: "copy".to_owned(),
        groups: [0; 3],
        start_ns,
        end_ns: end_ns.max(start_ns),
        barrier: false,
        // Copies from the host's memory measure the bus, not the device.
        overlaps: false,
        bytes: Some(bytes),
        flops: Some(0),
        figure: Figure::None,
    }
}
