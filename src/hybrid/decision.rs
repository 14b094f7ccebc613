//! The decision on a call.

use std::fmt;

/// A side that can do the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Side {
    /// The CPU, by [`cpu`](crate::cpu).
    Cpu,
    /// The device, by an [`Accelerator`](crate::Accelerator).
    Gpu,
}

/// How the side of a call is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// The prices.
    #[default]
    Auto,
    /// Always the CPU.
    Cpu,
    /// Always the device.
    Gpu,
}

/// The reason for the choice of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It is the cheaper one.
    Cheaper,
    /// The other one is priced almost alike as far as the calibration can be trusted, or was slow in its only call so
    /// far, and is tried so that its price is known.
    Untried,
    /// Calls went to the other one for so long that trying this one costs next to nothing beside them, and its price
    /// may be wrong: it is tried to check that.
    Checked,
    /// The policy says so.
    Policy,
    /// There is no device, or nothing was measured of it.
    NoDevice,
}

/// The largest part of a predicted time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The operation itself.
    Compute,
    /// Moving operands and results.
    Transfer,
    /// The fixed cost of a submission.
    Submission,
}

/// Where a call went, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// The side that did the work.
    pub side: Side,
    /// Why that one.
    pub why: Why,
    /// The predicted time on the CPU.
    pub cpu_us: f64,
    /// The predicted time on the device, with transfers; `None` if no device was measured.
    pub gpu_us: Option<f64>,
    /// The largest part of the device's predicted time; without a device, of the CPU's.
    pub dominant: Part,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Cpu => "CPU",
            Side::Gpu => "GPU",
        };
        write!(f, "{side}: {:.1} us on the CPU", self.cpu_us)?;
        let dominant = match self.dominant {
            Part::Compute => "computing",
            Part::Transfer => "transfers",
            Part::Submission => "the submission",
        };
        match self.gpu_us {
            Some(us) => write!(f, ", {us:.1} us on the GPU, mostly {dominant}")?,
            None if self.side == Side::Cpu => write!(f, ", no device")?,
            None => write!(f, ", nothing known of the device")?,
        }
        match self.why {
            Why::Policy => write!(f, "; the policy says so"),
            Why::Untried => write!(f, "; tried to know its price"),
            Why::Checked => write!(f, "; tried to check its price"),
            Why::Cheaper | Why::NoDevice => Ok(()),
        }
    }
}
