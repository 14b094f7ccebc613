//! Recorded work on its way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use crate::error::Result;

/// Work that was handed to the device: a number on its timeline.
///
/// Dropping it waits for nothing and loses nothing.
#[derive(Clone)]
#[must_use = "results are there when it is complete; read() waits by itself, or call wait()"]
pub struct Submission {
    core: Arc<Core>,
    value: u64,
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Submission({})", self.value)
    }
}

impl Submission {
    pub(crate) fn new(core: Arc<Core>, value: u64) -> Submission {
        Submission { core, value }
    }

    /// Its number on the timeline; numbers complete in order.
    pub fn number(&self) -> u64 {
        self.value
    }

    /// Waits until the work is done.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn wait(&self) -> Result<()> {
        self.core.timeline.wait(self.value, u64::MAX).map(drop)
    }

    /// Waits until the work is done or the time is over, and says which. After a timeout everything is as before:
    /// the work goes on and a later wait succeeds.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.core.timeline.wait(self.value, timeout_ns)
    }

    /// Whether the work is done.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn is_complete(&self) -> Result<bool> {
        self.core.timeline.is_complete(self.value)
    }
}
