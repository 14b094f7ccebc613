//! Where work is done: both sides are priced, and prices correct themselves from what calls really took.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::calibration::Calibration;
use super::work::{Op, Work};

/// A side that can do the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The CPU, by [`cpu`](crate::cpu).
    Cpu,
    /// The device, by an [`Accelerator`](crate::Accelerator).
    Gpu,
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// The prices.
    #[default]
    Auto,
    /// Always the CPU.
    Cpu,
    /// Always the device.
    Gpu,
}

/// What a side was chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It is the cheaper one.
    Cheaper,
    /// The other one is priced almost alike, or was dear in its only call so far, and is tried so that its price is known.
    Untried,
    /// The policy says so.
    Policy,
    /// There is no device, or nothing was measured of it.
    NoDevice,
}

/// What most of a price is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The operation itself.
    Compute,
    /// Moving operands and results.
    Transfer,
    /// What a submission costs, however little it does.
    Submission,
}

/// Where a call went, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The side that did the work.
    pub side: Side,
    /// Why that one.
    pub why: Why,
    /// What the CPU was predicted to take.
    pub cpu_us: f64,
    /// What the device was predicted to take, transfers included; `None` if there are no times of one.
    pub gpu_us: Option<f64>,
    /// What the device's price mostly consists of; without a device, the CPU's.
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
            Why::Cheaper | Why::NoDevice => Ok(()),
        }
    }
}

/// Amounts that differ by less than this share one correction: powers of four.
const BUCKETS: usize = 24;
/// Chains are told apart by a hash of their operations; so many have corrections of their own.
const CHAINS: usize = 256;
/// Untried sides are tried once if they are priced at most so many times the other.
const WORTH_A_TRY: f64 = 1.5;
/// How much of a new ratio goes into a correction: more of one that is lower, since whatever disturbs a call makes it
/// longer, and less of a first one, which may have met cold memory or a pipeline that had to be made.
const WEIGHT_UP: f32 = 0.3;
const WEIGHT_DOWN: f32 = 0.7;
const WEIGHT_FIRST: f32 = 0.5;
/// How much of a correction is left after a call that went to the other side: half after some 350.
const FORGETTING: f32 = 0.998;
/// A single call raises a correction by the weight of this factor at most: it may have been interrupted.
const STEP_UP: f32 = 2.0;
/// The first one may do more, since nothing is known before it.
const FIRST_STEP: f32 = 64.0;

/// Prices of both sides, with corrections.
#[derive(Debug)]
pub struct Placement {
    calibration: Calibration,
    policy: Policy,
    /// By operation (chains of other operations are other ones), amount, where its operands are, and side: measured over
    /// predicted, as the bits of an f32; 0 until there is one, negative while there is only one.
    corrections: Vec<AtomicU32>,
}

impl Placement {
    /// With the machine's times.
    pub fn new(calibration: Calibration, policy: Policy) -> Placement {
        let corrections = (0..4 * BUCKETS * (Op::ALL.len() + CHAINS)).map(|_| AtomicU32::new(0)).collect();
        Placement { calibration, policy, corrections }
    }

    /// The machine's times.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    fn correction(&self, work: &Work, side: Side) -> &AtomicU32 {
        let amount = work.amount as u64;
        let bucket = (amount.max(1).ilog2() as usize / 2).min(BUCKETS - 1);
        let resident = usize::from(work.device_bytes > 0);
        let row = match work.op {
            // The upper bits: multiplication mixes into those.
            Op::Chain => Op::ALL.len() + (work.kind >> 32) as usize % CHAINS,
            op => op as usize,
        };
        &self.corrections[(row * BUCKETS + bucket) * 4 + resident * 2 + side as usize]
    }

    fn known(&self, work: &Work) -> [Known; 2] {
        [Side::Cpu, Side::Gpu].map(|side| {
            let factor = f32::from_bits(self.correction(work, side).load(Ordering::Relaxed));
            match factor.abs() {
                0.0 => Known { factor: 1.0, calls: Calls::None },
                size if factor < 0.0 => Known { factor: size.into(), calls: Calls::One },
                size => Known { factor: size.into(), calls: Calls::More },
            }
        })
    }

    /// What the CPU should take, before corrections: computing, and bringing operands from the device.
    fn cpu_parts(&self, work: &Work) -> (f64, f64) {
        let compute = self.calibration.cpu[work.op.class() as usize].at(work.amount);
        let download = match &self.calibration.gpu {
            Some(gpu) if work.device_bytes > 0 => gpu.download.at(work.device_bytes as f64),
            _ => 0.0,
        };
        (compute, download)
    }

    /// What the CPU's computing should take, before corrections.
    pub(super) fn cpu_alone_us(&self, steps: &[Work]) -> f64 {
        steps.iter().map(|step| self.cpu_parts(step).0).sum()
    }

    /// What the device should take, before corrections: computing with the submission, and transfers.
    fn gpu_parts(&self, work: &Work) -> Option<(f64, f64)> {
        let gpu = self.calibration.gpu.as_ref()?;
        let compute = gpu.ops[work.op.class() as usize].at(work.amount);
        let up = if work.host_bytes > 0 { gpu.upload.at(work.host_bytes as f64) } else { 0.0 };
        let down = if work.result_bytes > 0 { gpu.download.at(work.result_bytes as f64) } else { 0.0 };
        Some((compute, up + down))
    }

    /// Where one operation should be done.
    pub fn decide(&self, work: &Work) -> Decision {
        let (compute, download) = self.cpu_parts(work);
        let gpu = self.gpu_parts(work).map(|(compute, transfer)| Price {
            compute,
            transfer,
            submission: self.submission_us().min(compute),
        });
        self.choose(compute + download, gpu, self.known(work))
    }

    /// Where several operations should be done that are carried out as one: their intermediate results stay where they
    /// are, and a submission is paid once, a dispatch by each. `moved` is [`Work::of_chain`] with what goes in and out.
    pub fn decide_chain(&self, steps: &[Work], moved: &Work) -> Decision {
        let (_, download) = self.cpu_parts(moved);
        let cpu_us = download + self.cpu_alone_us(steps);
        let (submission, dispatch) = (self.submission_us(), self.dispatch_us());
        let gpu = self.gpu_parts(moved).map(|(_, transfer)| {
            let beyond = |step: &Work| {
                self.gpu_parts(step).map_or(0.0, |(compute, _)| (compute - submission).max(dispatch))
            };
            let compute = submission + steps.iter().map(beyond).sum::<f64>();
            Price { compute, transfer, submission }
        });
        self.choose(cpu_us, gpu, self.known(moved))
    }

    fn submission_us(&self) -> f64 {
        self.calibration.gpu.as_ref().map_or(0.0, |gpu| gpu.submission_us)
    }

    fn dispatch_us(&self) -> f64 {
        self.calibration.gpu.as_ref().map_or(0.0, |gpu| gpu.dispatch_us)
    }

    fn choose(&self, cpu_us: f64, gpu: Option<Price>, known: [Known; 2]) -> Decision {
        let cpu_us = cpu_us * known[0].factor;
        let Some(price) = gpu else {
            // What is asked for by name is not put elsewhere: whoever runs it finds out if there is no device.
            let (side, why) = match self.policy {
                Policy::Gpu => (Side::Gpu, Why::Policy),
                Policy::Cpu => (Side::Cpu, Why::Policy),
                Policy::Auto => (Side::Cpu, Why::NoDevice),
            };
            return Decision { side, why, cpu_us, gpu_us: None, dominant: Part::Compute };
        };
        let dominant = if price.transfer > price.compute {
            Part::Transfer
        } else if 2.0 * price.submission > price.compute {
            Part::Submission
        } else {
            Part::Compute
        };
        let gpu_us = (price.compute + price.transfer) * known[1].factor;
        let cheaper = if gpu_us < cpu_us { Side::Gpu } else { Side::Cpu };
        let (side, why) = match self.policy {
            Policy::Cpu => (Side::Cpu, Why::Policy),
            Policy::Gpu => (Side::Gpu, Why::Policy),
            Policy::Auto => {
                let (other, ratio) = match cheaper {
                    Side::Cpu => (Side::Gpu, gpu_us / cpu_us),
                    Side::Gpu => (Side::Cpu, cpu_us / gpu_us),
                };
                let its = known[other as usize];
                let worth_a_try = match its.calls {
                    // Only once the cheaper one's own price is known.
                    Calls::None => known[cheaper as usize].calls != Calls::None && ratio < WORTH_A_TRY,
                    // One call may have been disturbed: it loses by that only twice.
                    Calls::One => ratio < its.factor,
                    Calls::More => false,
                };
                if worth_a_try { (other, Why::Untried) } else { (cheaper, Why::Cheaper) }
            }
        };
        Decision { side, why, cpu_us, gpu_us: Some(gpu_us), dominant }
    }

    /// Learns what a call really took.
    pub fn learn(&self, work: &Work, decision: &Decision, took_us: f64) {
        let predicted = match decision.side {
            Side::Cpu => Some(decision.cpu_us),
            Side::Gpu => decision.gpu_us,
        };
        let Some(predicted) = predicted.filter(|us| *us > 0.0 && took_us > 0.0) else { return };
        let cell = self.correction(work, decision.side);
        let before = f32::from_bits(cell.load(Ordering::Relaxed)).abs();
        // The prediction had the correction in it.
        let ratio = (took_us / predicted) as f32;
        let after = match (before > 0.0, ratio > 1.0) {
            (true, true) => before * ratio.min(STEP_UP).powf(WEIGHT_UP),
            (true, false) => before * ratio.powf(WEIGHT_DOWN),
            (false, true) => ratio.min(FIRST_STEP).powf(WEIGHT_FIRST),
            (false, false) => ratio.max(1.0 / FIRST_STEP),
        };
        let after = after.clamp(1e-3, 1e3);
        // Whoever comes first of two threads counts: the next call corrects again.
        cell.store((if before > 0.0 { after } else { -after }).to_bits(), Ordering::Relaxed);
        // What is not used is forgotten by and by, so that it gets another chance.
        let other = if decision.side == Side::Cpu { Side::Gpu } else { Side::Cpu };
        let cell = self.correction(work, other);
        let unused = f32::from_bits(cell.load(Ordering::Relaxed));
        if unused > 0.0 {
            cell.store(unused.powf(FORGETTING).to_bits(), Ordering::Relaxed);
        }
    }
}

/// What earlier calls have told about a side.
#[derive(Clone, Copy)]
struct Known {
    /// By how much it takes longer than was predicted.
    factor: f64,
    calls: Calls,
}

#[derive(Clone, Copy, PartialEq)]
enum Calls {
    None,
    One,
    More,
}

/// The device's side.
struct Price {
    /// With the submission.
    compute: f64,
    transfer: f64,
    submission: f64,
}

#[cfg(test)]
mod tests {
    use super::super::calibration::{Curve, DeviceTimes};
    use super::*;

    /// A CPU of 1 us per 1,000, a device ten times as fast behind 20 us and 1 us per 4,000 bytes.
    fn machine() -> Calibration {
        let cpu = || Curve::line(0.0, 0.001).unwrap();
        let gpu = DeviceTimes {
            ops: std::array::from_fn(|_| Curve::line(20.0, 0.0001).unwrap()),
            upload: Curve::line(2.0, 0.00025).unwrap(),
            download: Curve::line(2.0, 0.00025).unwrap(),
            submission_us: 18.0,
            dispatch_us: 2.0,
        };
        Calibration { cpu: std::array::from_fn(|_| cpu()), gpu: Some(gpu) }
    }

    #[test]
    fn the_cheaper_side_is_taken_and_says_what_it_costs() {
        let placement = Placement::new(machine(), Policy::Auto);
        let small = placement.decide(&Work::on_host(Op::Add, 2000, 1000, 0.0));
        assert_eq!((small.side, small.dominant), (Side::Cpu, Part::Submission));
        let product = placement.decide(&Work::on_host(Op::Matmul, 20_000, 10_000, 1e6));
        assert_eq!((product.side, product.dominant), (Side::Gpu, Part::Compute));
        let resident =
            Work { host_bytes: 0, device_bytes: 800_000, ..Work::on_host(Op::Sum, 200_000, 1, 0.0) };
        assert_eq!(placement.decide(&resident).side, Side::Gpu);
        let moved = Work { device_bytes: 0, host_bytes: 800_000, ..resident };
        assert_eq!(placement.decide(&moved).side, Side::Cpu);
        assert_eq!(placement.decide(&moved).dominant, Part::Transfer);
        let none = Placement::new(Calibration { gpu: None, ..machine() }, Policy::Auto);
        assert_eq!(none.decide(&moved).why, Why::NoDevice);
    }

    #[test]
    fn a_chain_pays_submission_and_transfers_once() {
        let placement = Placement::new(machine(), Policy::Auto);
        let step = Work { host_bytes: 0, result_bytes: 0, ..Work::on_host(Op::Gelu, 60_000, 60_000, 0.0) };
        let decide = |steps: &[Work]| {
            let moved = Work { host_bytes: 240_000, result_bytes: 240_000, ..Work::of_chain(steps) };
            placement.decide_chain(steps, &moved)
        };
        assert_eq!(decide(&[step; 2]).side, Side::Cpu);
        assert_eq!(decide(&[step; 20]).side, Side::Gpu);
    }

    #[test]
    fn each_operation_of_a_chain_costs_a_dispatch() {
        let placement = Placement::new(machine(), Policy::Auto);
        let step = Work { host_bytes: 0, result_bytes: 0, ..Work::on_host(Op::Sum, 1, 1, 0.0) };
        let gpu_us = |steps: &[Work]| placement.decide_chain(steps, &Work::of_chain(steps)).gpu_us.unwrap();
        assert!((gpu_us(&[step]) - 20.0).abs() < 0.01);
        assert!((gpu_us(&[step; 101]) - gpu_us(&[step]) - 200.0).abs() < 0.01);
    }

    #[test]
    fn chains_of_other_operations_have_corrections_of_their_own() {
        let placement = Placement::new(machine(), Policy::Cpu);
        let steps =
            |op| [Work { host_bytes: 0, result_bytes: 0, ..Work::on_host(op, 60_000, 60_000, 0.0) }; 3];
        let cpu_us = |steps: &[Work]| placement.decide_chain(steps, &Work::of_chain(steps)).cpu_us;
        let (learned, other) = (steps(Op::Gelu), steps(Op::Tanh));
        let before = cpu_us(&other);
        assert_eq!(cpu_us(&learned), before);
        for _ in 0..10 {
            let moved = Work::of_chain(&learned);
            let decision = placement.decide_chain(&learned, &moved);
            placement.learn(&moved, &decision, 10.0 * before);
        }
        assert!(cpu_us(&learned) > 5.0 * before);
        assert_eq!(cpu_us(&other), before);
    }

    #[test]
    fn a_policy_holds_without_times_of_a_device() {
        let without = || Calibration { gpu: None, ..machine() };
        let work = Work::on_host(Op::Add, 2000, 1000, 0.0);
        let decide = |policy| Placement::new(without(), policy).decide(&work);
        assert_eq!((decide(Policy::Gpu).side, decide(Policy::Gpu).why), (Side::Gpu, Why::Policy));
        assert_eq!((decide(Policy::Cpu).side, decide(Policy::Cpu).why), (Side::Cpu, Why::Policy));
        assert_eq!(
            decide(Policy::Gpu).to_string(),
            "GPU: 1.0 us on the CPU, nothing known of the device; the policy says so"
        );
    }

    #[test]
    fn one_call_that_was_disturbed_changes_no_side() {
        let placement = Placement::new(machine(), Policy::Auto);
        let work = Work::on_host(Op::Tanh, 50_000, 50_000, 0.0);
        let gpu_us = placement.decide(&work).gpu_us.unwrap();
        // The first takes seven times as long as the others, and later one out of ten does.
        for call in 0..100 {
            let decision = placement.decide(&work);
            let took = match decision.side {
                Side::Cpu if call % 10 == 0 => 350.0,
                Side::Cpu => 50.0,
                Side::Gpu => gpu_us,
            };
            placement.learn(&work, &decision, took);
            assert!(call < 3 || decision.side == Side::Cpu, "{call}: {decision}");
        }
    }

    #[test]
    fn prices_follow_what_calls_take() {
        let placement = Placement::new(machine(), Policy::Auto);
        let work = Work::on_host(Op::Tanh, 50_000, 50_000, 0.0);
        assert_eq!(placement.decide(&work).side, Side::Cpu);
        // The CPU takes ten times what was predicted; the device exactly what was.
        let gpu_us = placement.decide(&work).gpu_us.unwrap();
        for _ in 0..30 {
            let decision = placement.decide(&work);
            let took = if decision.side == Side::Cpu { 500.0 } else { gpu_us };
            placement.learn(&work, &decision, took);
        }
        let settled = placement.decide(&work);
        assert_eq!(settled.side, Side::Gpu, "{settled}");
        assert!((settled.gpu_us.unwrap() / gpu_us - 1.0).abs() < 0.01);
        // Other amounts and other operations keep their prices.
        assert_eq!(placement.decide(&Work::on_host(Op::Tanh, 1000, 1000, 0.0)).side, Side::Cpu);
        assert_eq!(placement.decide(&Work::on_host(Op::Exp, 50_000, 50_000, 0.0)).side, Side::Cpu);
    }
}
