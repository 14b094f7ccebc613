//! Operations on slices, on the CPU or on the device by measured cost.
//!
//! [`Hybrid`] has measured times of both sides of this machine ([`Calibration`]: measured once, in well under a second,
//! and kept on disk). It predicts the time of each call on both sides, and runs it on the faster one. Each call returns
//! where it ran and why ([`Decision`]). The real times of calls correct the predictions ([`Placement`]).
//!
//! This module owns the calibration and the predictions. It takes slices, and returns results with the decision. It
//! runs functions of [`cpu`](crate::cpu) or a [`Recording`](crate::Recording), and has no kernel of its own.
//!
//! ```
//! # fn main() -> tidemill::Result<()> {
//! use tidemill::hybrid::{Hybrid, Policy, Side};
//! let hybrid = Hybrid::new(Policy::Auto)?;
//! let (a, b) = (vec![1.0; 1000], vec![2.0; 1000]);
//! let mut sum = vec![0.0; 1000];
//! let ran = hybrid.add(&a, &b, &mut sum)?;
//! assert_eq!(sum, vec![3.0; 1000]);
//! assert_eq!(ran.decision.side, Side::Cpu, "{}", ran.decision); // a submission alone takes longer
//! # Ok(()) }
//! ```
//!
//! A chain is priced as a whole: one upload, one submission and one read serve all of its operations.
//!
//! ```
//! # fn main() -> tidemill::Result<()> {
//! use tidemill::hybrid::{Hybrid, Policy};
//! let hybrid = Hybrid::new(Policy::Auto)?;
//! let (x, w) = (vec![0.5; 8 * 4], vec![0.25; 4 * 2]);
//! let mut y = vec![0.0; 8 * 2];
//! hybrid.chain(|c| {
//!     let (x, w) = (c.input((&x, [8, 4]))?, c.input((&w, [4, 2]))?);
//!     let h = c.matmul(x, w)?;
//!     let h = c.relu(h)?;
//!     c.output(h, &mut y)
//! })?;
//! assert_eq!(y, vec![0.5; 16]);
//! # Ok(()) }
//! ```
//!
//! An error of the device is an `Err`; no call falls back to the CPU silently. Without a device everything runs on the
//! CPU. That is decided once, when the `Hybrid` is made, and [`Hybrid::accelerator`] gives the reason.

mod calibration;
mod call;
mod chain;
mod choose;
mod corrections;
mod decision;
mod layout;
mod machine;
mod measure;
mod numbers;
mod ops;
mod placement;
mod work;

use std::time::{Duration, Instant};

pub use calibration::{Calibration, Curve, DeviceTimes};
pub use call::Input;
pub use chain::{Chain, Link};
pub use decision::{Decision, Part, Policy, Side, Why};
pub use measure::Probe;
pub use placement::Placement;
pub use work::{Class, Op, Work};

use crate::error::{Error, Result};
use crate::runtime::accelerator::Accelerator;
use crate::shape::Shape;

/// Operations on slices, each on the side that is predicted to be faster.
#[derive(Debug)]
pub struct Hybrid {
    gpu: std::result::Result<Accelerator, Error>,
    placement: Placement,
    /// `None` outside of tests.
    cpu_slowed: Option<Slowed>,
}

/// Calls of the CPU that are slowed down, for tests.
#[derive(Clone, Copy, Debug)]
struct Slowed {
    /// Calls with at least this predicted time.
    from_us: f64,
    /// The factor on that time.
    factor: f64,
}

/// A call: which side ran it, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ran {
    /// The result's shape.
    pub shape: Shape,
    /// Where it ran, and why.
    pub decision: Decision,
}

impl Hybrid {
    /// With the process's own accelerator, or without one if the machine has no device that can be used. Measures the
    /// machine on the first use, after prewarming.
    ///
    /// # Errors
    ///
    /// Those of [`Accelerator::global`], except that there is no device, unless the policy asks for it.
    pub fn new(policy: Policy) -> Result<Hybrid> {
        let missing = |why: &Error| {
            matches!(why, Error::NoLoader { .. } | Error::NoDriver { .. } | Error::NoUsableDevice { .. })
        };
        match Accelerator::global() {
            Ok(gpu) => Hybrid::with_accelerator(gpu, policy),
            Err(why) if missing(&why) && policy != Policy::Gpu => {
                let placement = Placement::new(machine::stored_or_measured_without_device()?, policy);
                Ok(Hybrid { gpu: Err(why), placement, cpu_slowed: None })
            }
            Err(other) => Err(other),
        }
    }

    /// With an accelerator of the caller's.
    ///
    /// # Errors
    ///
    /// Those of the device, if it has to be measured.
    pub fn with_accelerator(gpu: Accelerator, policy: Policy) -> Result<Hybrid> {
        let calibration = machine::stored_or_measured(&gpu)?;
        Ok(Hybrid::with_calibration(gpu, calibration, policy))
    }

    /// With times that the caller gives.
    pub fn with_calibration(gpu: Accelerator, calibration: Calibration, policy: Policy) -> Hybrid {
        Hybrid { gpu: Ok(gpu), placement: Placement::new(calibration, policy), cpu_slowed: None }
    }

    /// Slows down the CPU's calls from a predicted time on, by a factor of that time: a machine with another balance,
    /// for tests. It uses the predicted time, so that a disturbance of a call is not multiplied.
    #[doc(hidden)]
    pub fn slow_cpu(mut self, from_us: f64, factor: f64) -> Hybrid {
        self.cpu_slowed = Some(Slowed { from_us, factor });
        self
    }

    /// Measures the machine again and keeps the result on disk.
    ///
    /// # Errors
    ///
    /// Those of the device.
    pub fn calibrate(gpu: &Accelerator) -> Result<Calibration> {
        machine::measure_and_store(gpu)
    }

    /// The device, or why there is none.
    ///
    /// # Errors
    ///
    /// The result of the search for a device.
    pub fn accelerator(&self) -> std::result::Result<&Accelerator, &Error> {
        self.gpu.as_ref()
    }

    /// The prices.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Passes the time that the CPU's calls are made to take longer.
    fn linger(&self, begun: Instant, steps: &[Work]) {
        let Some(Slowed { from_us, factor }) = self.cpu_slowed else { return };
        let alone_us = self.placement.cpu_alone_us(steps);
        if alone_us < from_us {
            return;
        }
        let until = begun + Duration::try_from_secs_f64(alone_us * factor * 1e-6).unwrap_or_default();
        // Asleep for most of it: where others want the processor too, who has spun for long waits for it next.
        let asleep = until.saturating_duration_since(Instant::now()).saturating_sub(Duration::from_millis(1));
        std::thread::sleep(asleep);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}
