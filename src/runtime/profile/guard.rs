//! The physics guard: a figure that the device can't reach is a measurement error, never a result.

use super::clock::ClockMismatch;
use crate::error::MeasurementError;

/// What the device can do in practice, measured by the host's clock on work that runs long enough for it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Peaks {
    /// Multiply-adds in registers, two operations each.
    pub gflops: f64,
    /// Reading, by how much is read again and again; smallest working set first.
    pub bandwidths: Vec<Bandwidth>,
    /// What a dispatch that does nothing takes, in a row of many.
    pub dispatch_floor_ns: f64,
}

/// The device's peaks, measured when first asked for.
pub(crate) type PeakStore = Option<Peaks>;

/// How often a figure above the peaks makes them be measured again.
pub(crate) const DOUBTS: usize = 3;

/// The speed of memory for a working set.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Bandwidth {
    /// Bytes that are read again and again.
    pub working_set_bytes: u64,
    /// 10^9 bytes per second.
    pub gbytes_per_s: f64,
}

impl Bandwidth {
    pub(crate) fn new(working_set_bytes: u64, gbytes_per_s: f64) -> Bandwidth {
        Bandwidth { working_set_bytes, gbytes_per_s }
    }
}

/// A figure may lie so far above a peak before it is called an error: a peak is a measurement, too.
const MARGIN: f64 = 1.3;

impl Peaks {
    /// The speed of memory for work that touches this many bytes: that of the largest measured working set that is not
    /// larger, so never too low.
    pub fn gbytes_per_s(&self, bytes: u64) -> f64 {
        let mut fits = self.bandwidths.iter().filter(|b| b.working_set_bytes <= bytes);
        let smallest = self.bandwidths.first().map_or(0.0, |b| b.gbytes_per_s);
        fits.next_back().map_or(smallest, |b| b.gbytes_per_s)
    }

    /// The speed of memory beyond all caches.
    pub fn memory_gbytes_per_s(&self) -> f64 {
        self.bandwidths.last().map_or(0.0, |b| b.gbytes_per_s)
    }

    /// The roof over work of this many operations and bytes, in GFLOP/s.
    pub fn roof_gflops(&self, flops: u64, bytes: u64) -> f64 {
        if bytes == 0 {
            return self.gflops;
        }
        self.gflops.min(flops as f64 / bytes as f64 * self.gbytes_per_s(bytes))
    }
}

/// How fast a row was.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Throughput {
    /// 10^9 floating-point operations per second; `None` if there are none or their number is unknown.
    pub gflops: Option<f64>,
    /// 10^9 bytes per second, of those that must be moved at the least.
    pub gbytes_per_s: Option<f64>,
    /// The share of what the device could reach at this ratio of operations to bytes.
    pub roofline: Option<f64>,
}

/// The verdict on a row's speed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Figure {
    /// Nothing: it may have overlapped others, or its work is not known.
    None,
    /// Measured alone, and possible.
    Measured(Throughput),
    /// Measured, and impossible.
    Impossible(MeasurementError),
}

impl Figure {
    /// The throughput, if there is one.
    pub fn throughput(&self) -> Option<&Throughput> {
        match self {
            Figure::Measured(throughput) => Some(throughput),
            Figure::None | Figure::Impossible(_) => None,
        }
    }
}

/// The peaks that figures are judged by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge {
    pub(crate) peaks: Option<Peaks>,
    pub(crate) mismatch: Option<ClockMismatch>,
}

impl Judge {
    /// What may be said about work that took so long, alone.
    pub(crate) fn figure(&self, duration_ns: u64, flops: Option<u64>, bytes: Option<u64>) -> Figure {
        let (flops, bytes) = (flops.filter(|&f| f > 0), bytes.filter(|&b| b > 0));
        if flops.is_none() && bytes.is_none() {
            return Figure::None;
        }
        if let Some(mismatch) = self.mismatch {
            return Figure::Impossible(MeasurementError::Clock { rate: mismatch.rate });
        }
        if duration_ns == 0 {
            return Figure::Impossible(MeasurementError::NoTime);
        }
        let rate = |n: u64| n as f64 / duration_ns as f64;
        let (gflops, gbytes_per_s) = (flops.map(rate), bytes.map(rate));
        let mut roofline = None;
        if let Some(peaks) = &self.peaks {
            if let Err(error) = peaks.allow(gflops, gbytes_per_s, bytes.unwrap_or(0)) {
                return Figure::Impossible(error);
            }
            roofline = match (flops, bytes) {
                (Some(flops), Some(bytes)) => Some(rate(flops) / peaks.roof_gflops(flops, bytes)),
                (None, Some(bytes)) => Some(rate(bytes) / peaks.gbytes_per_s(bytes)),
                _ => None,
            };
        }
        Figure::Measured(Throughput { gflops, gbytes_per_s, roofline })
    }
}

impl Peaks {
    /// An error if the device can't be that fast.
    pub(crate) fn allow(
        &self,
        gflops: Option<f64>,
        gbytes_per_s: Option<f64>,
        working_set_bytes: u64,
    ) -> Result<(), MeasurementError> {
        if let Some(gflops) = gflops.filter(|&g| g > MARGIN * self.gflops) {
            return Err(MeasurementError::Compute { gflops, peak: self.gflops });
        }
        let peak = self.gbytes_per_s(working_set_bytes);
        if let Some(gbytes_per_s) = gbytes_per_s.filter(|&g| g > MARGIN * peak) {
            return Err(MeasurementError::Memory { gbytes_per_s, peak });
        }
        Ok(())
    }

    /// The better of two measurements, point by point: what disturbs one makes it lower, never higher.
    pub(crate) fn best_of(mut self, other: &Peaks) -> Peaks {
        self.gflops = self.gflops.max(other.gflops);
        self.dispatch_floor_ns = self.dispatch_floor_ns.min(other.dispatch_floor_ns);
        for (ours, theirs) in self.bandwidths.iter_mut().zip(&other.bandwidths) {
            ours.gbytes_per_s = ours.gbytes_per_s.max(theirs.gbytes_per_s);
        }
        self.settle()
    }

    /// A larger working set is never faster than a smaller one; where it seems so, the smaller one was disturbed.
    pub(crate) fn settle(mut self) -> Peaks {
        let mut best = 0.0f64;
        for bandwidth in self.bandwidths.iter_mut().rev() {
            best = best.max(bandwidth.gbytes_per_s);
            bandwidth.gbytes_per_s = best;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge() -> Judge {
        let bandwidths = vec![Bandwidth::new(1 << 16, 200.0), Bandwidth::new(1 << 26, 20.0)];
        Judge { peaks: Some(Peaks { gflops: 100.0, bandwidths, dispatch_floor_ns: 1000.0 }), mismatch: None }
    }

    #[test]
    fn a_possible_figure_has_its_share_of_the_roofline() {
        // 50 GFLOP/s at an intensity far right of the ridge.
        let Figure::Measured(t) = judge().figure(1000, Some(50_000), Some(100)) else { panic!("possible") };
        assert_eq!((t.gflops, t.gbytes_per_s), (Some(50.0), Some(0.1)));
        assert!((t.roofline.expect("known") - 0.5).abs() < 1e-9);
        // A copy of 128 MiB at half the memory's speed.
        let bytes = 128 << 20;
        let Figure::Measured(t) = judge().figure(bytes / 10, Some(0), Some(bytes)) else {
            panic!("possible")
        };
        assert_eq!(t.gflops, None);
        assert!((t.roofline.expect("known") - 0.5).abs() < 1e-6);
    }

    #[test]
    fn impossible_figures_are_errors_with_their_reason() {
        let impossible = |ns, flops, bytes| match judge().figure(ns, flops, bytes) {
            Figure::Impossible(error) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            impossible(1000, Some(5_330_000), Some(100)).to_string(),
            "5330.0 GFLOP/s is above the 100.0 that this device reaches in registers"
        );
        assert!(matches!(impossible(1, Some(0), Some(1 << 27)), MeasurementError::Memory { .. }));
        assert_eq!(impossible(0, Some(1), None), MeasurementError::NoTime);
        let wrong = Judge { mismatch: Some(ClockMismatch { rate: 0.1 }), ..judge() };
        assert!(matches!(
            wrong.figure(1000, Some(1), None),
            Figure::Impossible(MeasurementError::Clock { .. })
        ));
    }

    #[test]
    fn unknown_work_has_no_figure() {
        assert_eq!(judge().figure(1000, None, None), Figure::None);
        assert_eq!(judge().figure(1000, Some(0), Some(0)), Figure::None);
    }

    #[test]
    fn caches_may_be_faster_than_memory_but_not_the_other_way_round() {
        let peaks = judge().peaks.expect("given");
        assert_eq!(peaks.gbytes_per_s(1000), 200.0);
        assert_eq!(peaks.gbytes_per_s(1 << 20), 200.0);
        assert_eq!(peaks.gbytes_per_s(1 << 26), 20.0);
        let mut odd = peaks.clone();
        odd.bandwidths[0].gbytes_per_s = 5.0;
        assert_eq!(odd.clone().settle().gbytes_per_s(0), 20.0);
        assert_eq!(odd.best_of(&peaks), peaks);
    }
}
