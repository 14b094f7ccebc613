//! The profile of a whole run: everything submitted between two moments, and what the host did meanwhile.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::error::{MeasurementError, ProfileError, Result};
use crate::runtime::accelerator::{Accelerator, Stats};
use crate::runtime::core::Core;
use crate::runtime::profile::Profiling;
use crate::runtime::profile::clock::{ClockMismatch, union_ns};
use crate::runtime::profile::guard::{Figure, Peaks};
use crate::runtime::profile::profiler::{CpuSpan, Log};
use crate::runtime::profile::row::{HostTime, Profile, Row};
use crate::schedule::explain::Explanation;
use crate::vk::process;

/// # Profiles of runs
impl Accelerator {
    /// Profiles everything that is submitted from now on, on any thread, until the session is
    /// [finished](Session::finish). `name` is what reports call the run.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::profile::Profiling;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let session = gpu.begin_profiling("two sums", Profiling::Timeline)?;
    /// let a = gpu.upload(&[1.0f32; 1000], [1000])?;
    /// let b = gpu.run(|r| r.add(&a, &a))?;
    /// let c = gpu.run(|r| r.add(&a, &b))?;
    /// let run = session.finish()?;
    /// assert_eq!(run.submissions, 2);
    /// assert_eq!(c.read::<f32>()?, [3.0; 1000]);
    /// println!("{run}");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ProfileError::AlreadyProfiling`](crate::error::ProfileError::AlreadyProfiling) if another session is open.
    pub fn begin_profiling(&self, name: &str, mode: Profiling) -> Result<Session> {
        process::check()?;
        Session::begin(self.core(), name, mode, self.stats())
    }
}

/// What a recording of a run was to do, for its report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunGraph {
    /// What it is called.
    pub name: String,
    /// As it was recorded and as it runs.
    pub explanation: Explanation,
}

/// How the device's clock and the host's go together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Clock {
    /// The host reads the device's clock: both are on one axis, give or take this much.
    Calibrated {
        /// How far a moment of the device may be off.
        uncertainty_ns: u64,
    },
    /// Each is for itself. Nothing that needs both is said.
    Uncalibrated,
    /// The device's queue has no timestamps.
    NoTimestamps,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clock::Calibrated { uncertainty_ns } => {
                write!(f, "calibrated to within {uncertainty_ns} ns")
            }
            Clock::Uncalibrated => f.write_str("uncalibrated: host and device times can't be compared"),
            Clock::NoTimestamps => f.write_str("the device's queue has no timestamps"),
        }
    }
}

/// What the device did in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceTime {
    /// The time in which at least one dispatch ran.
    pub busy_ns: u64,
    /// The rest of the wall time; `None` where the clocks can't be compared.
    pub idle_ns: Option<u64>,
    /// The busy share of the wall time; `None` where the clocks can't be compared.
    pub utilisation: Option<f64>,
}

/// Everything that was submitted between two moments, and what the host did meanwhile.
///
/// Its `Display` is a table for the terminal; [`trace_json`](Run::trace_json) and [`html`](Run::html) are for tools
/// and people.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// What it is called.
    pub name: String,
    /// How the times were taken.
    pub mode: Profiling,
    /// The device.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// How the clocks go together.
    pub clock: Clock,
    /// From the begin to the completion of everything, by the host's clock.
    pub wall_ns: u64,
    /// What the device did, or why that can't be believed; `None` without timestamps.
    pub gpu: Option<std::result::Result<DeviceTime, MeasurementError>>,
    /// What the host did, all submissions together.
    pub host: HostTime,
    /// Submissions.
    pub submissions: u64,
    /// Dispatches, copies and fills in them.
    pub dispatches: u64,
    /// Barriers that the work needs.
    pub barriers: u64,
    /// Bytes from the host to tensors.
    pub bytes_up: u64,
    /// Bytes from tensors to the host.
    pub bytes_down: u64,
    /// Blocks that the pool had.
    pub pool_hits: u64,
    /// Blocks that were made.
    pub pool_misses: u64,
    /// Pipelines that were made.
    pub pipelines_made: u64,
    /// One profile per submission, in order; empty without timestamps.
    pub profiles: Vec<Profile>,
    /// What the host did when.
    pub spans: Vec<CpuSpan>,
    /// What [`Session::graph`] was given.
    pub graphs: Vec<RunGraph>,
    /// What the device can do in practice; isolated runs only.
    pub peaks: Option<Peaks>,
    /// When it began.
    pub(crate) begun: Instant,
}

/// A run that is being profiled. [`finish`](Session::finish) gives the [`Run`]; dropping it discards it.
#[derive(Debug)]
pub struct Session {
    core: Arc<Core>,
    log: Arc<Log>,
    name: String,
    mode: Profiling,
    before: Stats,
    begun: Instant,
    graphs: Mutex<Vec<RunGraph>>,
}

impl Session {
    pub(crate) fn begin(core: &Arc<Core>, name: &str, mode: Profiling, stats: Stats) -> Result<Session> {
        core.open()?;
        let log = core.profiler.begin(mode)?;
        let session = Session {
            core: core.clone(),
            log,
            name: name.to_owned(),
            mode,
            before: stats,
            begun: Instant::now(),
            graphs: Mutex::default(),
        };
        core.profiler.anchor_now(&core.device)?;
        Ok(session)
    }

    /// Adds something of the caller's own to the run: it gets a lane in traces and reports.
    pub fn note(&self, track: &str, name: &str, begin: Instant, end: Instant) {
        if process::is_forked() {
            return;
        }
        let at = |moment| self.core.profiler.at_ns(moment);
        let (track, name) = (track.to_owned(), name.to_owned());
        self.log.spans.lock().push(CpuSpan { track, name, begin_ns: at(begin), end_ns: at(end) });
    }

    /// Adds what a recording will do to the run: its report shows the graph.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::profile::Profiling;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let a = gpu.upload(&[1.0f32; 1000], [1000])?;
    /// let session = gpu.begin_profiling("a sum", Profiling::Timeline)?;
    /// let r = gpu.begin_recording()?;
    /// let twice = r.add(&a, &a)?;
    /// let _kept = r.keep(twice)?;
    /// session.graph("twice", r.explain()?);
    /// let _ = r.end_recording()?;
    /// let run = session.finish()?;
    /// assert_eq!(run.graphs[0].name, "twice");
    /// assert!(run.html().contains("add 1000 f32"));
    /// # Ok(()) }
    /// ```
    pub fn graph(&self, name: &str, explanation: Explanation) {
        self.graphs.lock().push(RunGraph { name: name.to_owned(), explanation });
    }

    /// Waits for everything submitted, and gives the run's profile.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn finish(self) -> Result<Run> {
        process::check()?;
        let core = self.core.clone();
        {
            let _span = core.profiler.span("wait");
            core.timeline.synchronize()?;
        }
        let ended = Instant::now();
        let after = crate::runtime::accelerator::Accelerator::from_core(core.clone()).stats();
        let anchor = core.profiler.anchor_now(&core.device)?;
        core.profiler.end();
        let tickets = std::mem::take(&mut *self.log.tickets.lock());
        let has_timestamps = core.device.info.timestamps.is_some();
        let stamped = if has_timestamps { &tickets[..] } else { &[] };
        let (mut profiles, judge) = core.profiles(self.mode, stamped)?;
        profiles.sort_by_key(|profile| profile.submission);
        let clock = match (has_timestamps, anchor) {
            (false, _) => Clock::NoTimestamps,
            (true, None) => Clock::Uncalibrated,
            (true, Some(anchor)) => {
                let worst = profiles.iter().map(|p| p.uncertainty_ns).fold(anchor.uncertainty_ns, f64::max);
                Clock::Calibrated { uncertainty_ns: worst.ceil() as u64 }
            }
        };
        let begun_ns = core.profiler.at_ns(self.begun);
        let mut run = Run {
            name: self.name.clone(),
            mode: self.mode,
            device: core.device.info.name.clone(),
            driver: core.device.info.driver.clone(),
            clock,
            wall_ns: ended.duration_since(self.begun).as_nanos() as u64,
            gpu: None,
            host: HostTime::default(),
            submissions: after.submissions - self.before.submissions,
            dispatches: after.dispatches - self.before.dispatches,
            barriers: after.barriers - self.before.barriers,
            bytes_up: after.bytes_up - self.before.bytes_up,
            bytes_down: after.bytes_down - self.before.bytes_down,
            pool_hits: after.pool.hits - self.before.pool.hits,
            pool_misses: after.pool.misses - self.before.pool.misses,
            pipelines_made: after.pipelines.made - self.before.pipelines.made,
            profiles,
            spans: Vec::new(),
            graphs: std::mem::take(&mut *self.graphs.lock()),
            peaks: judge.peaks.clone(),
            begun: self.begun,
        };
        let mut spans = std::mem::take(&mut *self.log.spans.lock());
        for ticket in &tickets {
            let host = ticket.host.lock();
            for (name, (begin_ns, end_ns)) in
                [("record", host.record), ("encode", host.encode), ("submit", host.submit)]
            {
                spans.push(CpuSpan { track: host.thread.clone(), name: name.to_owned(), begin_ns, end_ns });
            }
        }
        run.settle(spans, begun_ns, &core, judge.mismatch);
        Ok(run)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !process::is_forked() {
            self.core.profiler.end();
        }
    }
}

impl Run {
    /// Puts everything on the run's own axis, and adds up.
    fn settle(
        &mut self,
        mut spans: Vec<CpuSpan>,
        begun_ns: u64,
        core: &Core,
        mismatch: Option<ClockMismatch>,
    ) {
        for span in &mut spans {
            span.begin_ns = span.begin_ns.saturating_sub(begun_ns);
            span.end_ns = span.end_ns.saturating_sub(begun_ns);
        }
        spans.sort_by_key(|span| (span.begin_ns, std::cmp::Reverse(span.end_ns)));
        let total = |name: &str| -> u64 {
            let named = spans.iter().filter(|span| span.name == name);
            named.map(|span| span.end_ns - span.begin_ns).sum()
        };
        self.host = HostTime {
            record_ns: total("record"),
            encode_ns: total("encode"),
            pipelines_made: self.profiles.iter().map(|profile| profile.host.pipelines_made).sum(),
            pipelines_ns: self.profiles.iter().map(|profile| profile.host.pipelines_ns).sum(),
            submit_ns: total("submit"),
            wait_ns: total("wait"),
        };
        self.spans = spans;

        let calibrated = matches!(self.clock, Clock::Calibrated { .. });
        if let Some(clock) = core.device.info.timestamps {
            let mut previous = self.profiles.first().map_or(0, |p| p.first_tick);
            let mut at = 0;
            for profile in &mut self.profiles {
                at += clock.between(previous, profile.first_tick);
                previous = profile.first_tick;
                let alone = clock.ns(at);
                let offset = profile.begin_on_host_ns.map_or(alone, |host| host - begun_ns as f64);
                profile.begin_on_host_ns = Some(if calibrated { offset } else { alone });
            }
        }
        self.gpu = (self.clock != Clock::NoTimestamps).then(|| self.device_time(calibrated, mismatch));
    }

    /// When a profile's first row began, in nanoseconds since the run did; without calibration, since the first
    /// profile's first row.
    pub(crate) fn offset_ns(&self, profile: &Profile) -> f64 {
        profile.begin_on_host_ns.unwrap_or(0.0)
    }

    fn device_time(
        &self,
        calibrated: bool,
        mismatch: Option<ClockMismatch>,
    ) -> std::result::Result<DeviceTime, MeasurementError> {
        if let Some(mismatch) = mismatch {
            return Err(MeasurementError::Clock { rate: mismatch.rate });
        }
        let mut intervals: Vec<(f64, f64)> = Vec::new();
        for profile in &self.profiles {
            let offset = self.offset_ns(profile);
            intervals
                .extend(profile.rows.iter().map(|r| (offset + r.start_ns as f64, offset + r.end_ns as f64)));
        }
        let busy_ns = union_ns(&mut intervals).round() as u64;
        let slack = match self.clock {
            Clock::Calibrated { uncertainty_ns } => 2 * uncertainty_ns,
            _ => 0,
        };
        // Durations of the two clocks may be compared with a grain of salt even without calibration.
        let limit = self.wall_ns + slack + self.wall_ns / 10;
        if busy_ns > limit {
            return Err(MeasurementError::Busy { busy_ns, wall_ns: self.wall_ns });
        }
        let busy_of_wall = busy_ns.min(self.wall_ns);
        Ok(DeviceTime {
            busy_ns,
            idle_ns: calibrated.then(|| self.wall_ns - busy_of_wall),
            utilisation: calibrated.then(|| busy_of_wall as f64 / self.wall_ns.max(1) as f64),
        })
    }

    /// All rows, in the order of their submissions.
    pub fn rows(&self) -> impl Iterator<Item = &Row> + Clone {
        self.profiles.iter().flat_map(|profile| &profile.rows)
    }

    /// Every figure that can't be true, with the row's label.
    pub fn errors(&self) -> Vec<(String, MeasurementError)> {
        let of_rows = self.rows().filter_map(|row| match &row.figure {
            Figure::Impossible(error) => Some((row.label.clone(), *error)),
            _ => None,
        });
        let of_run = self.gpu.as_ref().and_then(|gpu| gpu.err()).map(|error| (self.name.clone(), error));
        of_run.into_iter().chain(of_rows).collect()
    }

    /// Refuses a run with impossible figures.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Implausible`] with the first of them.
    pub fn check(&self) -> Result<()> {
        match self.errors().into_iter().next() {
            Some((what, error)) => Err(ProfileError::Implausible { what, error }.into()),
            None => Ok(()),
        }
    }
}
