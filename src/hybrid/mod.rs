//! Operations on slices, on the CPU or on the device by measured cost.
//!
//! [`Hybrid`] knows what both sides of this machine take ([`Calibration`]: measured once, well under a second, and kept on
//! disk), prices each call on both, and runs it where it is cheaper. Each call returns where it ran and why
//! ([`Decision`]), and what calls really take corrects the prices ([`Placement`]).
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
//!     let (x, w) = (c.input((&x, [8, 4])), c.input((&w, [4, 2])));
//!     let h = c.matmul(x, w)?;
//!     let h = c.relu(h)?;
//!     c.output(h, &mut y)
//! })?;
//! assert_eq!(y, vec![0.5; 16]);
//! # Ok(()) }
//! ```
//!
//! An error of the device is an `Err`; it never becomes a quiet run on the CPU. Without a device everything runs on the CPU,
//! which is decided once, when the `Hybrid` is made, and [`Hybrid::accelerator`] says why.

mod calibration;
mod chain;
mod machine;
mod ops;
mod placement;
mod work;

use std::time::Instant;

pub use calibration::{Calibration, Curve, DeviceTimes, Probe};
pub use chain::{Chain, Link};
pub use placement::{Decision, Part, Placement, Policy, Side, Why};
pub use work::{Class, Op, Work};

use crate::cpu::View;
use crate::cpu::view::check_length;
use crate::engine::accelerator::Accelerator;
use crate::engine::recording::{Operand, Recording, Value};
use crate::engine::tensor::Tensor;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Operations on slices, each where it is cheaper.
#[derive(Debug)]
pub struct Hybrid {
    gpu: std::result::Result<Accelerator, Error>,
    placement: Placement,
    /// The CPU's calls are made to take so many times as long; 1 outside of tests.
    cpu_slowed: f64,
}

/// What a call did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    /// The result's shape.
    pub shape: Shape,
    /// Where it ran, and why.
    pub decision: Decision,
}

/// An operand: a slice with a shape, or a tensor that is on the device already.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// In the host's memory.
    Host(View<'a, f32>),
    /// In the device's; priced without a transfer there.
    Device(&'a Tensor),
}

impl Input<'_> {
    /// The shape.
    pub fn shape(&self) -> Shape {
        match self {
            Input::Host(view) => view.shape(),
            Input::Device(tensor) => tensor.shape(),
        }
    }
}

impl<'a, V: Into<View<'a, f32>>> From<V> for Input<'a> {
    fn from(view: V) -> Input<'a> {
        Input::Host(view.into())
    }
}

impl<'a> From<&'a Tensor> for Input<'a> {
    fn from(tensor: &'a Tensor) -> Input<'a> {
        Input::Device(tensor)
    }
}

impl Hybrid {
    /// With the process's own accelerator, or without one if the machine has no device that can be used. Measures the
    /// machine if that was not done before.
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
                let placement = Placement::new(machine::calibrate(None)?, policy);
                Ok(Hybrid { gpu: Err(why), placement, cpu_slowed: 1.0 })
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

    /// With times that the caller has.
    pub fn with_calibration(gpu: Accelerator, calibration: Calibration, policy: Policy) -> Hybrid {
        Hybrid { gpu: Ok(gpu), placement: Placement::new(calibration, policy), cpu_slowed: 1.0 }
    }

    /// Makes the CPU's calls take so many times as long: a machine with another balance, for tests.
    #[doc(hidden)]
    pub fn slow_cpu(mut self, factor: f64) -> Hybrid {
        self.cpu_slowed = factor;
        self
    }

    /// Measures the machine again and keeps the result for the next time.
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
    /// What was found when the device was looked for.
    pub fn accelerator(&self) -> std::result::Result<&Accelerator, &Error> {
        self.gpu.as_ref()
    }

    /// The prices.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Runs one operation where it is cheaper, and learns what it took.
    fn run<const N: usize>(
        &self,
        op: Op,
        products: f64,
        inputs: [Input<'_>; N],
        out: &mut [f32],
        on_cpu: impl FnOnce([View<'_, f32>; N], &mut [f32]) -> Result<Shape>,
        on_gpu: impl FnOnce(&mut Recording, [Operand<'_>; N]) -> Result<Value>,
    ) -> Result<Ran> {
        let work = price_of(op, &inputs, out.len(), products);
        let decision = self.placement.decide(&work);
        let begun = Instant::now();
        let shape = match (decision.side, &self.gpu) {
            (Side::Cpu, _) => {
                let mut fetched: [Vec<f32>; N] = std::array::from_fn(|_| Vec::new());
                for (fetched, input) in fetched.iter_mut().zip(&inputs) {
                    if let Input::Device(tensor) = input {
                        *fetched = tensor.read()?;
                    }
                }
                let views = std::array::from_fn(|i| match inputs[i] {
                    Input::Host(view) => view,
                    Input::Device(tensor) => View::new(&fetched[i], tensor.shape()),
                });
                let shape = on_cpu(views, out)?;
                self.linger(begun);
                shape
            }
            (Side::Gpu, Ok(gpu)) => run_on_gpu(gpu, op, inputs, out, on_gpu)?,
            (Side::Gpu, Err(why)) => return Err(why.clone()),
        };
        self.placement.learn(&work, &decision, begun.elapsed().as_secs_f64() * 1e6);
        Ok(Ran { shape, decision })
    }

    /// Passes the time that the CPU's calls are made to take longer.
    fn linger(&self, begun: Instant) {
        if self.cpu_slowed > 1.0 {
            let until = begun + begun.elapsed().mul_f64(self.cpu_slowed);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }
}

fn price_of(op: Op, inputs: &[Input<'_>], outputs: usize, products: f64) -> Work {
    let elements = |device: bool| -> usize {
        let there = inputs.iter().filter(|input| matches!(input, Input::Device(_)) == device);
        there.map(|input| input.shape().elements()).sum()
    };
    let (host, device) = (elements(false), elements(true));
    let work = Work::on_host(op, host + device, outputs, products);
    Work { host_bytes: 4 * host, device_bytes: 4 * device, ..work }
}

fn run_on_gpu<const N: usize>(
    gpu: &Accelerator,
    op: Op,
    inputs: [Input<'_>; N],
    out: &mut [f32],
    record: impl FnOnce(&mut Recording, [Operand<'_>; N]) -> Result<Value>,
) -> Result<Shape> {
    let mut uploaded = Vec::with_capacity(N);
    for input in &inputs {
        uploaded.push(match input {
            Input::Host(view) => gpu.upload(view.checked(op.name())?.data(), view.shape())?,
            Input::Device(tensor) => (*tensor).clone(),
        });
    }
    let result = gpu.run(|r| {
        let value = record(r, std::array::from_fn(|i| Operand::from(&uploaded[i])))?;
        check_length(op.name(), r.shape(value)?, out.len())?;
        Ok(value)
    })?;
    result.read_into(out)?;
    Ok(result.shape())
}
