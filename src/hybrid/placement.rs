//! Where work is done: both sides are priced, and prices correct themselves from what calls really took.

use super::calibration::Calibration;
use super::corrections::{Calls, Corrections};
use super::decision::{Decision, Part, Policy, Side, Why};
use super::work::Work;

/// Untried sides are tried once if they are priced at most this many times the other, and this many times as much again
/// as the passes of the calibration were apart; of which at most this counts, since it costs a call of that price.
const WORTH_A_TRY: f64 = 1.5;
const MOST_DOUBT: f64 = 4.0;

/// Prices of both sides, with corrections.
#[derive(Debug)]
pub struct Placement {
    calibration: Calibration,
    policy: Policy,
    corrections: Corrections,
}

impl Placement {
    /// With the machine's times.
    pub fn new(calibration: Calibration, policy: Policy) -> Placement {
        Placement { calibration, policy, corrections: Corrections::new() }
    }

    /// The machine's times.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The CPU's predicted time, before corrections: computing, and reading operands from the device.
    fn cpu_parts(&self, work: &Work) -> (f64, f64) {
        let compute = self.calibration.cpu[work.op.class() as usize].at(work.amount);
        let download = match &self.calibration.gpu {
            Some(gpu) if work.device_bytes > 0 => gpu.download.at(work.device_bytes as f64),
            _ => 0.0,
        };
        (compute, download)
    }

    /// The predicted time of the CPU's computing, before corrections.
    pub(super) fn cpu_alone_us(&self, steps: &[Work]) -> f64 {
        steps.iter().map(|step| self.cpu_parts(step).0).sum()
    }

    /// The device's predicted time, before corrections: computing with the submission, and transfers.
    fn gpu_parts(&self, work: &Work) -> Option<(f64, f64)> {
        let gpu = self.calibration.gpu.as_ref()?;
        let compute = gpu.ops[work.op.class() as usize].at(work.amount);
        let up = if work.host_bytes > 0 { gpu.upload.at(work.host_bytes as f64) } else { 0.0 };
        let down = if work.result_bytes > 0 { gpu.download.at(work.result_bytes as f64) } else { 0.0 };
        Some((compute, up + down))
    }

    /// Where one operation should be done. Asking is part of it: a trial that is due is given to who asks first.
    pub fn decide(&self, work: &Work) -> Decision {
        let (compute, download) = self.cpu_parts(work);
        let gpu = self.gpu_parts(work).map(|(compute, transfer)| Price {
            compute,
            transfer,
            submission: self.submission_us().min(compute),
        });
        self.choose(compute + download, gpu, work)
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
        self.choose(cpu_us, gpu, moved)
    }

    fn submission_us(&self) -> f64 {
        self.calibration.gpu.as_ref().map_or(0.0, |gpu| gpu.submission_us)
    }

    fn dispatch_us(&self) -> f64 {
        self.calibration.gpu.as_ref().map_or(0.0, |gpu| gpu.dispatch_us)
    }

    /// How many times too high a price may be by what the calibration says of itself.
    fn doubt(&self, work: &Work) -> f64 {
        let Some(gpu) = &self.calibration.gpu else { return 1.0 };
        let class = work.op.class() as usize;
        let curves = [&self.calibration.cpu[class], &gpu.ops[class], &gpu.upload, &gpu.download];
        curves.iter().map(|curve| curve.spread()).fold(1.0, f64::max).min(MOST_DOUBT)
    }

    fn choose(&self, cpu_us: f64, gpu: Option<Price>, work: &Work) -> Decision {
        let cell = self.corrections.cell(work);
        let known = cell.known();
        let cpu_us = cpu_us * known[0].factor;
        let Some(price) = gpu else {
            // A side that was requested by name is used: running the call fails if there is no device.
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
        let (side, why) = match self.policy {
            Policy::Cpu => (Side::Cpu, Why::Policy),
            Policy::Gpu => (Side::Gpu, Why::Policy),
            Policy::Auto => {
                let (cheaper, other, us, other_us) = match gpu_us < cpu_us {
                    true => (Side::Gpu, Side::Cpu, gpu_us, cpu_us),
                    false => (Side::Cpu, Side::Gpu, cpu_us, gpu_us),
                };
                let (its, ratio) = (known[other as usize], other_us / us);
                let worth_a_try = match its.calls {
                    // Only once the cheaper one's own price is known.
                    Calls::None => {
                        known[cheaper as usize].calls != Calls::None && ratio < WORTH_A_TRY * self.doubt(work)
                    }
                    // One call may have been disturbed: it loses by that only twice.
                    Calls::One => ratio < its.factor,
                    Calls::More => false,
                };
                if worth_a_try {
                    (other, Why::Untried)
                } else if cell.takes_trial(other_us) {
                    (other, Why::Checked)
                } else {
                    (cheaper, Why::Cheaper)
                }
            }
        };
        Decision { side, why, cpu_us, gpu_us: Some(gpu_us), dominant }
    }

    /// Learns what a call really took.
    pub fn learn(&self, work: &Work, decision: &Decision, took_us: f64) {
        let (predicted, other) = match decision.side {
            Side::Cpu => (Some(decision.cpu_us), decision.gpu_us),
            Side::Gpu => (decision.gpu_us, Some(decision.cpu_us)),
        };
        let Some(predicted) = predicted.filter(|us| *us > 0.0 && took_us > 0.0) else { return };
        let cell = self.corrections.cell(work);
        cell.correct(decision.side, (took_us / predicted) as f32);
        if decision.why == Why::Checked {
            cell.tried(other.is_some_and(|us| us < took_us));
        } else {
            cell.spent(took_us);
        }
    }
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
    use super::super::work::Op;
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
        let mut checked = 0;
        for call in 0..100 {
            let decision = placement.decide(&work);
            let took = match decision.side {
                Side::Cpu if call % 10 == 0 => 350.0,
                Side::Cpu => 50.0,
                Side::Gpu => gpu_us,
            };
            placement.learn(&work, &decision, took);
            checked += usize::from(decision.why == Why::Checked);
            let same = decision.side == Side::Cpu || decision.why == Why::Checked;
            assert!(call < 3 || same, "{call}: {decision}");
        }
        assert!(checked <= 2, "{checked}");
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

    /// Calls of a machine that takes what it takes, of whatever the placement thinks: where each went and why, and the
    /// time of all.
    fn calls(placement: &Placement, work: &Work, times: [f64; 2], count: usize) -> (Vec<Decision>, f64) {
        let mut total_us = 0.0;
        let decisions = (0..count).map(|_| {
            let decision = placement.decide(work);
            let took_us = times[decision.side as usize];
            placement.learn(work, &decision, took_us);
            total_us += took_us;
            decision
        });
        (decisions.collect(), total_us)
    }

    #[test]
    fn a_side_that_is_priced_far_too_high_is_found() {
        // Priced 50 times too high, and really a fifth of the CPU's 50 us: 500 us, for which 200 of the CPU's calls are
        // to pay.
        let work = Work::on_host(Op::Tanh, 50_000, 50_000, 0.0);
        let gpu_us = Placement::new(machine(), Policy::Auto).decide(&work).gpu_us.unwrap();
        let mut disturbed = machine();
        for curve in &mut disturbed.gpu.as_mut().unwrap().ops {
            *curve = Curve::line(500.0 - gpu_us + 20.0, 0.0001).unwrap();
        }
        let placement = Placement::new(disturbed, Policy::Auto);
        assert!((placement.decide(&work).gpu_us.unwrap() - 500.0).abs() < 1.0);
        let (decisions, _) = calls(&placement, &work, [50.0, 10.0], 220);
        let first = decisions.iter().position(|decision| decision.side == Side::Gpu).unwrap();
        assert!((190..210).contains(&first), "{first}");
        assert_eq!(decisions[first].why, Why::Checked);
        assert!(decisions[first].to_string().ends_with("; tried to check its price"));
        let settled = &decisions[first..];
        assert!(settled.iter().all(|decision| decision.side == Side::Gpu), "{}", settled.len());
    }

    #[test]
    fn a_calibration_that_doubts_itself_is_checked_sooner() {
        let work = Work::on_host(Op::Tanh, 50_000, 50_000, 0.0);
        for (spread, tried) in [(1.0, false), (1.5, false), (2.5, true)] {
            let mut machine = machine();
            let gpu = machine.gpu.as_mut().unwrap();
            gpu.upload = gpu.upload.clone().with_spread(spread).unwrap();
            let placement = Placement::new(machine, Policy::Auto);
            // Priced 129 us.
            let (decisions, _) = calls(&placement, &work, [50.0, 200.0], 3);
            let sides: Vec<bool> = decisions.iter().map(|decision| decision.side == Side::Gpu).collect();
            assert_eq!(sides, [false, tried, false], "{spread}");
        }
    }

    #[test]
    fn checking_a_price_that_is_right_costs_little_and_less_and_less() {
        for gpu_us in [100.0, 1000.0, 50_000.0] {
            let mut machine = machine();
            for curve in &mut machine.gpu.as_mut().unwrap().ops {
                *curve = Curve::line(gpu_us, 0.0).unwrap();
            }
            let placement = Placement::new(machine, Policy::Auto);
            let work =
                Work { host_bytes: 0, result_bytes: 0, ..Work::on_host(Op::Tanh, 50_000, 50_000, 0.0) };
            let share = |count: usize| {
                let (_, total_us) = calls(&placement, &work, [50.0, gpu_us], count);
                1.0 - 50.0 * count as f64 / total_us
            };
            assert!(share(20_000) <= 0.05, "{gpu_us}");
            share(1_000_000);
            assert!(share(1_000_000) <= 0.001, "{gpu_us}");
        }
    }

    #[test]
    fn a_side_that_has_become_the_better_one_is_found_again() {
        let placement = Placement::new(machine(), Policy::Auto);
        let work = Work::on_host(Op::Tanh, 50_000, 50_000, 0.0);
        let (settled, _) = calls(&placement, &work, [50.0, 400.0], 5000);
        assert_eq!(settled.last().unwrap().side, Side::Cpu);
        // After any number of trials that found it slower, it is tried after 1,280 times its price.
        let (found, _) = calls(&placement, &work, [50.0, 10.0], 1280 * 8);
        assert_eq!(found.last().unwrap().side, Side::Gpu);
    }

    #[test]
    fn one_trial_is_given_to_one_caller() {
        let placement = Placement::new(machine(), Policy::Auto);
        let work = Work::on_host(Op::Tanh, 1000, 1000, 0.0);
        let (calls, _) = calls(&placement, &work, [1.0, 25.0], 499);
        assert!(calls.iter().all(|decision| decision.side == Side::Cpu));
        let waiting: Vec<Decision> = (0..3).map(|_| placement.decide(&work)).collect();
        placement.learn(&work, &waiting[0], 100.0);
        let asked = [(); 3].map(|()| placement.decide(&work).why);
        assert_eq!(asked, [Why::Checked, Why::Cheaper, Why::Cheaper]);
    }
}
