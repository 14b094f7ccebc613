//! Users that want only their own work in the queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::error::{ProfileError, Result};

/// How long a trial waits before it looks again whether a capture has begun.
const STEP: Duration = Duration::from_millis(10);

/// Held by captures, trials and background work, so that none of them meets another. A capture runs the user's closure:
/// whatever would wait for its end is refused, since the closure may wait for that in turn.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    held: Mutex<()>,
    capturing: AtomicBool,
}

/// A capture's hold; the next one may begin when it is dropped.
#[derive(Debug)]
pub(crate) struct CaptureHold<'a> {
    quiet: &'a Quiet,
    _held: MutexGuard<'a, ()>,
}

impl Quiet {
    /// For a capture: waits for a trial or a pipeline that is under way, but for no other capture.
    pub(crate) fn capture(&self) -> Result<CaptureHold<'_>> {
        if self.capturing.swap(true, Ordering::AcqRel) {
            return Err(ProfileError::Capturing { call: "capture" }.into());
        }
        Ok(CaptureHold { quiet: self, _held: self.held.lock() })
    }

    /// For a trial.
    pub(crate) fn hold(&self, call: &'static str) -> Result<MutexGuard<'_, ()>> {
        loop {
            if self.capturing.load(Ordering::Acquire) {
                return Err(ProfileError::Capturing { call }.into());
            }
            if let Some(held) = self.held.try_lock_for(STEP) {
                return Ok(held);
            }
        }
    }

    /// For background work, which does without if somebody else is at it.
    pub(crate) fn try_hold(&self) -> Option<MutexGuard<'_, ()>> {
        self.held.try_lock()
    }
}

impl Drop for CaptureHold<'_> {
    fn drop(&mut self) {
        self.quiet.capturing.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_capture_refuses_what_would_wait_for_its_end() {
        let quiet = Quiet::default();
        let refused = |result: Result<()>, by: &str| {
            assert!(
                matches!(result, Err(Error::Profile(ProfileError::Capturing { call })) if call == by),
                "{by}: {result:?}"
            );
        };
        for _ in 0..2 {
            let hold = quiet.capture().unwrap();
            refused(quiet.capture().map(drop), "capture");
            refused(quiet.hold("tune").map(drop), "tune");
            // On other threads, too: the closure may wait for one.
            std::thread::scope(|scope| {
                scope.spawn(|| refused(quiet.hold("tune").map(drop), "tune"));
            });
            assert!(quiet.try_hold().is_none());
            drop(hold);
            drop(quiet.hold("tune").unwrap());
        }
    }

    #[test]
    fn a_capture_waits_for_a_trial_and_goes_first_then() {
        let quiet = Quiet::default();
        let trial = quiet.hold("tune").unwrap();
        std::thread::scope(|scope| {
            let capture = scope.spawn(|| quiet.capture().map(drop));
            while !quiet.capturing.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            assert!(quiet.hold("tune").is_err(), "the capture is next");
            drop(trial);
            capture.join().unwrap().unwrap();
        });
        drop(quiet.hold("tune").unwrap());
    }
}
