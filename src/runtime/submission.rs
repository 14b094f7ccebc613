//! Recorded work on its way.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{ProfileError, Result};
use crate::runtime::core::Core;
use crate::runtime::profile::row::Profile;
use crate::runtime::profile::ticket::Ticket;
use crate::runtime::timeline::Timeline;
use crate::runtime::wakers::WaitingPlace;
use crate::vk::process;

/// A submission that was handed to the device.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) value: u64,
    /// Collects the times, if the recording is profiled.
    pub(crate) ticket: Option<Arc<Ticket>>,
}

/// Work that was handed to the device: a number on its timeline.
///
/// Dropping it waits for nothing and loses nothing.
///
/// It is a future, on any executor: a thread of the accelerator's wakes the task when the work is done. Tasks that are
/// dropped while they wait are forgotten.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// # pollster::block_on(async {
/// let gpu = tidemill::Accelerator::global()?;
/// let x = gpu.upload(&[1.0f32, 2.0], [2])?;
/// let r = gpu.begin_recording()?;
/// let y = r.exp(&x)?;
/// let y = r.keep(y)?;
/// r.end_recording()?.await?;
/// assert_eq!(y.read::<f32>()?.len(), 2);
/// # Ok(()) }) }
/// ```
#[derive(Clone)]
#[must_use = "results are there when it is complete; read() waits by itself, or call wait()"]
pub struct Submission {
    core: Arc<Core>,
    value: u64,
    ticket: Option<Arc<Ticket>>,
    waits: WaitingPlace,
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Submission({})", self.value)
    }
}

impl Submission {
    pub(crate) fn new(core: Arc<Core>, submitted: Submitted) -> Submission {
        Submission { core, value: submitted.value, ticket: submitted.ticket, waits: WaitingPlace::default() }
    }

    /// Its number on the timeline; numbers complete in order.
    pub fn number(&self) -> u64 {
        self.value
    }

    pub(super) fn timeline(&self) -> &Timeline {
        &self.core.timeline
    }

    /// When it was handed to the driver, if that was noted.
    pub(crate) fn submitted_ns(&self) -> Option<u64> {
        self.ticket.as_ref().map(|ticket| ticket.host.lock().submit.0)
    }

    /// Waits until the work is done.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn wait(&self) -> Result<()> {
        self.wait_ns(u64::MAX).map(drop)
    }

    /// Waits until the work is done or the time is over, and says which. After a timeout everything is as before:
    /// the work goes on and a later wait succeeds.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.wait_ns(timeout_ns)
    }

    fn wait_ns(&self, timeout_ns: u64) -> Result<bool> {
        let profiler = &self.core.profiler;
        let _span = profiler.span("wait");
        let Some(ticket) = &self.ticket else { return self.core.timeline.wait(self.value, timeout_ns) };
        let begin = profiler.now_ns();
        let reached = self.core.timeline.wait(self.value, timeout_ns);
        ticket.waited((begin, profiler.now_ns()));
        reached
    }

    /// Whether the work is done.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn is_complete(&self) -> Result<bool> {
        self.core.timeline.is_complete(self.value)
    }

    /// The device's work, row by row. Waits until the work is done.
    ///
    /// # Errors
    ///
    /// [`ProfileError::NotProfiled`] if profiling was off, [`ProfileError::NoTimestamps`] if the device can't;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn profile(&self) -> Result<Profile> {
        let device = &self.core.device;
        if device.info.timestamps.is_none() {
            return Err(ProfileError::NoTimestamps { device: device.info.name.clone() }.into());
        }
        let ticket = self.ticket.as_ref().filter(|ticket| !ticket.host_only);
        let Some(ticket) = ticket else { return Err(ProfileError::NotProfiled.into()) };
        self.wait()?;
        let (mut profiles, _) = self.core.profiles(ticket.mode, std::slice::from_ref(ticket))?;
        profiles.pop().ok_or(ProfileError::NotProfiled.into())
    }
}

impl Future for Submission {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.is_complete()? {
            return Poll::Ready(Ok(()));
        }
        let Submission { core, value, waits, .. } = &mut *self;
        core.wakers.register(core, waits, *value, context.waker());
        // It may have been done before the waker was known.
        if self.is_complete()? { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        if process::is_forked() {
            return;
        }
        self.core.wakers.forget(&mut self.waits);
    }
}
