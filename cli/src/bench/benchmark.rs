//! What a comparison is made of.

use std::error::Error;
use std::time::Duration;

use tidemill::Accelerator;

/// Anything may go wrong in a bench, and all of it is for a person to read.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One side of a comparison: runs once and gives the time that counts. With `true` it also checks what came out.
pub(crate) type Side = Box<dyn FnMut(bool) -> Result<Duration>>;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Microseconds for one of what a run does `amount` of.
    Micros,
    /// Milliseconds, likewise.
    Millis,
    /// How many times as long as it could have taken; a run's time of a second stands for 1.
    Factor,
    /// Gigabytes per second, where a run moves `amount` bytes.
    GigabytesPerSecond,
    /// Billions of multiplications and additions per second, where a run does `amount`.
    GigaflopsPerSecond,
    /// A share in hundredths; a run gives it as that share of a second.
    Percent,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Micros => "us",
            Unit::Millis => "ms",
            Unit::Factor => "x",
            Unit::GigabytesPerSecond => "GB/s",
            Unit::GigaflopsPerSecond => "GF/s",
            Unit::Percent => "%",
        }
    }

    /// A run's time as a figure.
    pub(crate) fn figure(self, time: Duration, amount: f64) -> f64 {
        let seconds = time.as_secs_f64();
        match self {
            Unit::Micros => seconds * 1e6 / amount,
            Unit::Millis => seconds * 1e3 / amount,
            Unit::Factor => seconds / amount,
            Unit::GigabytesPerSecond | Unit::GigaflopsPerSecond => amount / seconds / 1e9,
            Unit::Percent => seconds * 100.0 / amount,
        }
    }
}

/// What is asked of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// The figure may be this at most.
    AtMost(f64),
    /// The figure must be this at least.
    AtLeast(f64),
    /// Our speed over the baseline's must be this at least.
    Ratio(f64),
}

/// Makes a benchmark when its turn comes, so that only one holds memory.
pub(crate) type Make = fn(&Accelerator) -> Result<Benchmark>;

/// Something that is measured, and what it is measured against.
pub(crate) struct Benchmark {
    /// The size of the problem.
    pub(crate) n: usize,
    pub(crate) unit: Unit,
    /// How much of the unit one run does: operations, or bytes.
    pub(crate) amount: f64,
    pub(crate) target: Target,
    pub(crate) ours: Side,
    pub(crate) baseline: Option<(&'static str, Side)>,
}

/// An error unless every element is what it should be.
pub(crate) fn expect(what: &str, got: &[f32], expected: impl Fn(usize) -> f32) -> Result<()> {
    match got.iter().enumerate().find(|(i, x)| **x != expected(*i)) {
        Some((i, x)) => Err(format!("{what} is wrong: [{i}] is {x}, should be {}", expected(i)).into()),
        None => Ok(()),
    }
}
