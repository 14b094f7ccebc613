//! The time that one thread has spent on a CPU: what its work costs, whatever else the machine is doing.

#![allow(
    unsafe_code,
    reason = "the clock of a thread is a system call that the standard library does not have"
)]

use std::time::Duration;

/// The CPU time of the calling thread since it began; `None` where the platform does not tell.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) fn thread_time() -> Option<Duration> {
    const CLOCK_THREAD_CPUTIME_ID: i32 = 3;

    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }

    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }

    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` is laid out as 64-bit Linux has it and lives to the end of the call.
    let status = unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut time) };
    (status == 0).then(|| Duration::new(time.seconds as u64, time.nanoseconds as u32))
}

/// The CPU time of the calling thread since it began; `None` where the platform does not tell.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(crate) fn thread_time() -> Option<Duration> {
    None
}

/// Measures what this thread spends: CPU time, or wall time where that can't be had.
pub(crate) struct Spent {
    cpu: Option<Duration>,
    wall: std::time::Instant,
}

impl Spent {
    /// From now on.
    pub(crate) fn begin() -> Spent {
        Spent { wall: std::time::Instant::now(), cpu: thread_time() }
    }

    /// Until now.
    pub(crate) fn elapsed(&self) -> Duration {
        match (self.cpu, thread_time()) {
            (Some(begun), Some(now)) => now - begun,
            _ => self.wall.elapsed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_costs_nothing() {
        let spent = Spent::begin();
        std::thread::sleep(Duration::from_millis(20));
        assert!(thread_time().is_none() || spent.elapsed() < Duration::from_millis(10));
    }
}
