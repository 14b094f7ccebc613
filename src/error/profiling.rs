//! Errors of measurements.

/// Why a measured figure can't be true.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MeasurementError {
    /// The figure is above the device's compute peak.
    #[error("{gflops:.1} GFLOP/s is above the {peak:.1} that this device reaches in registers")]
    Compute {
        /// The measured figure.
        gflops: f64,
        /// The peak.
        peak: f64,
    },
    /// The figure is above the device's memory bandwidth.
    #[error(
        "{gbytes_per_s:.1} GB/s is above the {peak:.1} that this device reads from a working set of that size"
    )]
    Memory {
        /// The measured figure.
        gbytes_per_s: f64,
        /// The peak.
        peak: f64,
    },
    /// The device's clock does not count nanoseconds.
    #[error("the device's clock counts {rate:.3} ns (by its stated period) per ns of the host's clock")]
    Clock {
        /// How many it counts in one.
        rate: f64,
    },
    /// Work that took no time.
    #[error("the device's clock saw no time pass")]
    NoTime,
    /// The device was busy for longer than the wall time.
    #[error("the device reports {busy_ns} ns of work in {wall_ns} ns of wall time")]
    Busy {
        /// By the device's clock.
        busy_ns: u64,
        /// By the host's clock.
        wall_ns: u64,
    },
    /// Dispatches were faster than an empty one.
    #[error("{ns:.0} ns per dispatch is below {floor:.0} ns, the time of an empty dispatch")]
    Dispatches {
        /// Time per dispatch.
        ns: f64,
        /// Time of an empty dispatch.
        floor: f64,
    },
}

/// Why there is no profile, measurement or capture.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The queue has no timestamps.
    #[error(
        "{device} has no timestamps on its compute queue, so there are no profiles; everything else works"
    )]
    NoTimestamps {
        /// The device.
        device: String,
    },
    /// Profiling was off when the work was submitted.
    #[error(
        "the submission was not profiled; turn it on with Config::profiling or Accelerator::begin_profiling"
    )]
    NotProfiled,
    /// The work is not done.
    #[error("submission {submission} is not complete; wait for it first")]
    NotComplete {
        /// Its number.
        submission: u64,
    },
    /// Only one run is profiled at a time.
    #[error("a run is being profiled already; finish its Session first")]
    AlreadyProfiling,
    /// RenderDoc is not there, or not in this process.
    #[error("no capture: {missing}")]
    NoRenderDoc {
        /// The missing part, and how to get it.
        missing: String,
    },
    /// Only one capture is made at a time, and nothing is tuned in it.
    #[error(
        "a capture is under way: {call} would become part of it, or never return; call it outside `capture`"
    )]
    Capturing {
        /// The call that was refused.
        call: &'static str,
    },
    /// RenderDoc was there and made no capture.
    #[error("RenderDoc made no capture: {detail}")]
    CaptureFailed {
        /// What went wrong.
        detail: String,
    },
    /// A measurement whose work has not run to its end.
    #[error("{what}: the measured work did not complete, so there is no figure")]
    Unfinished {
        /// The measurement.
        what: String,
    },
    /// The result of the measurement was not verified.
    #[error("{what}: the result was not verified, so there is no figure; call verify or checksum")]
    NotVerified {
        /// The measurement.
        what: String,
    },
    /// A measurement whose result is wrong.
    #[error("{what}: the result is wrong, so there is no figure")]
    WrongResult {
        /// The measurement.
        what: String,
    },
    /// A figure that the device can't reach.
    #[error("measurement error in {what}: {error}")]
    Implausible {
        /// The row, run or measurement.
        what: String,
        /// Why it can't be true.
        error: MeasurementError,
    },
}

#[cfg(test)]
mod tests {
    use super::MeasurementError;

    #[test]
    fn an_impossible_figure_says_what_it_exceeds() {
        let texts = [
            (
                MeasurementError::Compute { gflops: 512.04, peak: 90.5 },
                "512.0 GFLOP/s is above the 90.5 that this device reaches in registers",
            ),
            (
                MeasurementError::Memory { gbytes_per_s: 100.0, peak: 20.25 },
                "100.0 GB/s is above the 20.2 that this device reads from a working set of that size",
            ),
            (
                MeasurementError::Clock { rate: 1.5 },
                "the device's clock counts 1.500 ns (by its stated period) per ns of the host's clock",
            ),
            (MeasurementError::NoTime, "the device's clock saw no time pass"),
            (
                MeasurementError::Busy { busy_ns: 12, wall_ns: 10 },
                "the device reports 12 ns of work in 10 ns of wall time",
            ),
            (
                MeasurementError::Dispatches { ns: 3.4, floor: 250.0 },
                "3 ns per dispatch is below 250 ns, the time of an empty dispatch",
            ),
        ];
        for (error, text) in texts {
            assert_eq!(error.to_string(), text);
        }
    }
}
