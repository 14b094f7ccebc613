//! The accelerator's side of profiling: the mode, the clock, and who collects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::Profiling;
use super::clock::{Anchor, ClockMismatch};
use super::ticket::{Ticket, thread_name};
use crate::error::{ProfileError, Result};
use crate::vk::device::Device;

/// Something that the host did, for traces and reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuSpan {
    /// The thread, or whatever else has a lane of its own.
    pub track: String,
    /// What was done.
    pub name: String,
    /// When it began, in nanoseconds since the run began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// The clocks are compared anew when the last comparison is older than this.
const ANCHOR_AGE_NS: f64 = 1e6;

/// The profiles that a session collects.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) tickets: Mutex<Vec<Arc<Ticket>>>,
    pub(crate) spans: Mutex<Vec<CpuSpan>>,
}

/// The mode, the clock, and who collects.
#[derive(Debug)]
pub(crate) struct Profiler {
    configured: Profiling,
    current: AtomicU8,
    epoch: Instant,
    anchors: Mutex<Anchors>,
    log: Mutex<Option<Arc<Log>>>,
}

#[derive(Debug, Default)]
struct Anchors {
    first: Option<Anchor>,
    last: Option<Anchor>,
}

impl Profiler {
    pub(crate) fn new(configured: Profiling) -> Profiler {
        Profiler {
            configured,
            current: AtomicU8::new(configured as u8),
            epoch: Instant::now(),
            anchors: Mutex::default(),
            log: Mutex::new(None),
        }
    }

    /// How submissions are profiled now.
    pub(crate) fn mode(&self) -> Profiling {
        match self.current.load(Ordering::Relaxed) {
            x if x == Profiling::Timeline as u8 => Profiling::Timeline,
            x if x == Profiling::Isolated as u8 => Profiling::Isolated,
            _ => Profiling::Off,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.mode() != Profiling::Off
    }

    /// Nanoseconds since the accelerator was made.
    pub(crate) fn now_ns(&self) -> u64 {
        self.at_ns(Instant::now())
    }

    /// When the accelerator was made.
    pub(crate) fn epoch(&self) -> Instant {
        self.epoch
    }

    /// A moment, as profiles count it.
    pub(crate) fn at_ns(&self, moment: Instant) -> u64 {
        moment.saturating_duration_since(self.epoch).as_nanos() as u64
    }

    /// The clocks compared, a moment ago at most; `None` where the host can't read the device's.
    pub(crate) fn anchor(&self, device: &Device) -> Result<Option<Anchor>> {
        let mut anchors = self.anchors.lock();
        let now = self.now_ns() as f64;
        if let Some(last) = anchors.last.filter(|last| now - last.host_ns < ANCHOR_AGE_NS) {
            return Ok(Some(last));
        }
        self.compare(device, &mut anchors)
    }

    /// The clocks compared now.
    pub(crate) fn anchor_now(&self, device: &Device) -> Result<Option<Anchor>> {
        self.compare(device, &mut self.anchors.lock())
    }

    fn compare(&self, device: &Device, anchors: &mut Anchors) -> Result<Option<Anchor>> {
        let Some(sample) = device.sample_clock()? else { return Ok(None) };
        let anchor = Anchor::new(sample, self.epoch);
        anchors.first.get_or_insert(anchor);
        anchors.last = Some(anchor);
        Ok(Some(anchor))
    }

    /// Whether the device's clock is known to count other nanoseconds than the host's.
    pub(crate) fn clock_mismatch(&self, device: &Device) -> Option<ClockMismatch> {
        let anchors = self.anchors.lock();
        let clock = device.info.timestamps?;
        clock.mismatch(anchors.first.as_ref()?, anchors.last.as_ref()?)
    }

    /// Begins to gather everything that is submitted from now on.
    pub(crate) fn begin(&self, mode: Profiling) -> Result<Arc<Log>> {
        let mut log = self.log.lock();
        if log.is_some() {
            return Err(ProfileError::AlreadyProfiling.into());
        }
        let fresh = Arc::<Log>::default();
        *log = Some(fresh.clone());
        self.current.store(mode as u8, Ordering::Relaxed);
        Ok(fresh)
    }

    /// Goes back to what was configured.
    pub(crate) fn end(&self) {
        *self.log.lock() = None;
        self.current.store(self.configured as u8, Ordering::Relaxed);
    }

    /// Hands a submission's ticket to the session that collects.
    pub(crate) fn gather(&self, ticket: &Arc<Ticket>) {
        if let Some(log) = &*self.log.lock() {
            log.tickets.lock().push(ticket.clone());
        }
    }

    /// Notes what the calling thread does until the guard goes. Off, it does nothing.
    pub(crate) fn span(&self, name: &'static str) -> SpanGuard<'_> {
        let begin_ns = self.is_on().then(|| self.now_ns());
        SpanGuard { profiler: self, name, begin_ns, _entered: trace::enter(name) }
    }

    /// Notes what was done between two moments, on a lane of its own. Off, it does nothing.
    pub(crate) fn note_activity(
        &self,
        track: &str,
        name: impl FnOnce() -> String,
        begin: Instant,
        end: Instant,
    ) {
        if self.is_on() {
            let (begin_ns, end_ns) = (self.at_ns(begin), self.at_ns(end));
            self.note(CpuSpan { track: track.to_owned(), name: name(), begin_ns, end_ns });
        }
    }

    fn note(&self, span: CpuSpan) {
        if let Some(log) = &*self.log.lock() {
            log.spans.lock().push(span);
        }
    }
}

/// Ends a span when dropped.
#[derive(Debug)]
pub(crate) struct SpanGuard<'a> {
    profiler: &'a Profiler,
    name: &'static str,
    begin_ns: Option<u64>,
    _entered: trace::Entered,
}

/// Spans for the host application's own tools.
#[cfg(feature = "tracing")]
pub(crate) mod trace {
    pub(crate) type Entered = tracing::span::EnteredSpan;

    /// A span until the guard goes.
    pub(crate) fn enter(activity: &'static str) -> Entered {
        tracing::debug_span!(target: "tidemill", "tidemill", activity).entered()
    }

    /// A dispatch that is being encoded.
    pub(crate) fn dispatch(label: &crate::ir::value::Label) {
        tracing::trace!(target: "tidemill", %label, "dispatch");
    }
}

/// Without the feature there is nothing to enter.
#[cfg(not(feature = "tracing"))]
pub(crate) mod trace {
    #[derive(Debug)]
    pub(crate) struct Entered;

    pub(crate) fn enter(_: &'static str) -> Entered {
        Entered
    }

    pub(crate) fn dispatch(_: &crate::ir::value::Label) {}
}

impl Drop for SpanGuard<'_> {
    fn drop(&mut self) {
        if let Some(begin_ns) = self.begin_ns {
            let end_ns = self.profiler.now_ns();
            let (track, name) = (thread_name(), self.name.to_owned());
            self.profiler.note(CpuSpan { track, name, begin_ns, end_ns });
        }
    }
}
