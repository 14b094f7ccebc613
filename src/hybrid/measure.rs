//! Measures a machine in passes, so that what disturbs it for a while does not stay in its times.
//!
//! Whatever disturbs a measurement makes it longer, so of each the least counts. A pass goes over all that is measured,
//! and the next one over what is not certain yet: whose least time no other pass came near to, or that does not fit its
//! neighbours.

use std::time::{Duration, Instant};

use super::calibration::{Calibration, Curve, DeviceTimes};
use super::work::Class;

/// The machine that is measured, or a model of one.
pub trait Probe {
    /// Why a measurement failed.
    type Error;

    /// Microseconds of one operation of the class on the CPU.
    ///
    /// # Errors
    ///
    /// The machine's own.
    fn cpu_us(&mut self, class: Class, amount: usize) -> Result<f64, Self::Error>;
    /// Microseconds of one operation of the class on the device, operands there; `None` without a device.
    ///
    /// # Errors
    ///
    /// The machine's own.
    fn gpu_us(&mut self, class: Class, amount: usize) -> Result<Option<f64>, Self::Error>;
    /// Microseconds of a submission that does next to nothing with this many bytes that are on the device, of one for
    /// which they are brought there, and of reading them back.
    ///
    /// # Errors
    ///
    /// The machine's own.
    fn transfer_us(&mut self, bytes: usize) -> Result<Option<[f64; 3]>, Self::Error>;
    /// Microseconds of one recording of this many operations that do next to nothing, each with the result of the one
    /// before, none fused with another.
    ///
    /// # Errors
    ///
    /// The machine's own.
    fn dispatches_us(&mut self, count: usize) -> Result<Option<f64>, Self::Error>;
}

/// Operations of the recording from which the price of a dispatch is taken.
const DISPATCHES: usize = 33;
/// Larger amounts are not measured once one took this long, in microseconds: the rest is proportional.
const LONG_US: f64 = 4000.0;
/// A least time is certain if another pass took at most this many times as long.
const CONFIRMED: f64 = 1.1;
/// From an amount to the next, the time per unit grows by less than this factor: memory takes the place of caches, no
/// more.
const STEEPEST: f64 = 4.0;
/// The uncertainty of a time that was measured only once.
const MOST_SPREAD: f64 = 1000.0;
/// There is no further pass after this many, or once those after the first have taken this time.
const MOST_PASSES: usize = 12;
const TIME: Duration = Duration::from_millis(500);

/// The least of some times, and the next one.
#[derive(Clone, Copy, Debug)]
struct Least {
    us: f64,
    next_us: f64,
}

impl Least {
    const NONE: Least = Least { us: f64::INFINITY, next_us: f64::INFINITY };

    fn add(&mut self, us: f64) {
        self.next_us = self.next_us.min(us.max(self.us));
        self.us = self.us.min(us);
    }

    fn spread(self) -> f64 {
        self.next_us / self.us
    }
}

/// A quantity that is measured at several amounts, the smallest first.
#[derive(Clone, Copy)]
enum What {
    Cpu(Class),
    Gpu(Class),
    /// Gives three times: see [`Probe::transfer_us`].
    Transfer,
    Dispatches,
}

impl What {
    /// From one to the next the time may at most grow as much.
    fn amounts(self) -> &'static [usize] {
        const fn squares<const N: usize>(unit: usize, sides: [usize; N], power: u32) -> [usize; N] {
            let mut amounts = sides;
            let mut i = 0;
            while i < N {
                amounts[i] = unit * sides[i].pow(power);
                i += 1;
            }
            amounts
        }
        const MULTIPLY_ADDS: [usize; 4] = squares(1, [32, 96, 256, 512], 3);
        // Nine taps of 16 by 16 channels on squares of these sides.
        const TAPS: [usize; 4] = squares(9 * 16 * 16, [8, 24, 48, 96], 2);
        match self {
            What::Cpu(Class::Matmul) | What::Gpu(Class::Matmul) => &MULTIPLY_ADDS,
            What::Cpu(Class::Conv) | What::Gpu(Class::Conv) => &TAPS,
            What::Cpu(_) | What::Gpu(_) => &[1 << 10, 1 << 14, 1 << 17, 1 << 20],
            What::Transfer => &[1 << 12, 1 << 16, 1 << 19, 1 << 22],
            What::Dispatches => &[1, DISPATCHES],
        }
    }

    fn take<P: Probe>(self, probe: &mut P, amount: usize) -> Result<Option<[f64; 3]>, P::Error> {
        // The same three times: one is certain when all are.
        let one = |us: Option<f64>| us.map(|us| [us; 3]);
        match self {
            What::Cpu(class) => probe.cpu_us(class, amount).map(|us| one(Some(us))),
            What::Gpu(class) => probe.gpu_us(class, amount).map(one),
            What::Transfer => probe.transfer_us(amount),
            What::Dispatches => probe.dispatches_us(amount).map(one),
        }
    }
}

/// The state of one.
struct Series {
    what: What,
    points: Vec<(usize, [Least; 3])>,
}

impl Series {
    /// The first pass. Without a device there are no points.
    fn measure<P: Probe>(what: What, probe: &mut P) -> Result<Series, P::Error> {
        let mut series = Series { what, points: Vec::new() };
        series.go_on(probe)?;
        Ok(series)
    }

    /// Measures amounts that were not measured yet, up to one that takes long; whether there were any.
    fn go_on<P: Probe>(&mut self, probe: &mut P) -> Result<bool, P::Error> {
        let begun = self.points.len();
        while let Some(amount) = self.what.amounts().get(self.points.len())
            && !self.is_long()
        {
            self.points.push((*amount, [Least::NONE; 3]));
            if !self.add(probe, self.points.len() - 1)? {
                self.points.pop();
                break;
            }
        }
        Ok(self.points.len() > begun)
    }

    /// Of dispatches both amounts are needed.
    fn is_long(&self) -> bool {
        let last = self.points.last();
        !matches!(self.what, What::Dispatches) && last.is_some_and(|(_, least)| least[1].us > LONG_US)
    }

    fn add<P: Probe>(&mut self, probe: &mut P, index: usize) -> Result<bool, P::Error> {
        let (amount, least) = &mut self.points[index];
        let Some(times) = self.what.take(probe, *amount)? else { return Ok(false) };
        least.iter_mut().zip(times).for_each(|(least, us)| least.add(us));
        Ok(true)
    }

    fn is_certain(&self, index: usize) -> bool {
        let (amount, least) = self.points[index];
        // A smaller amount takes no longer, and this one is not implausibly slow.
        let fits = |kind: usize| {
            let us = least[kind].us;
            let before = index.checked_sub(1).map(|before| self.points[before]);
            let steep = before.is_some_and(|(n, l)| us / l[kind].us > STEEPEST * amount as f64 / n as f64);
            let after = self.points.get(index + 1);
            !steep && after.is_none_or(|(_, l)| us <= CONFIRMED * l[kind].us)
        };
        (0..3).all(|kind| least[kind].spread() <= CONFIRMED && fits(kind))
    }

    /// Measures again what is not certain, and goes on where only what was disturbed took long; whether there was any.
    fn again<P: Probe>(&mut self, probe: &mut P) -> Result<bool, P::Error> {
        let uncertain: Vec<usize> = (0..self.points.len()).filter(|index| !self.is_certain(*index)).collect();
        for index in &uncertain {
            self.add(probe, *index)?;
        }
        Ok(self.go_on(probe)? || !uncertain.is_empty())
    }

    /// The points by one of the times, or by what two of them have more than one another.
    fn curve(&self, us: impl Fn(&[f64; 3]) -> f64) -> Option<Curve> {
        let time = |(amount, least): &(usize, [Least; 3])| (*amount as f64, us(&least.map(|least| least.us)));
        let mut points: Vec<(f64, f64)> = self.points.iter().map(time).collect();
        // What still takes longer than a larger amount was disturbed in every pass.
        for i in (1..points.len()).rev() {
            points[i - 1].1 = points[i - 1].1.min(points[i].1);
        }
        let all = self.points.iter().flat_map(|(_, least)| least);
        let spread = all.map(|least| least.spread()).fold(1.0, f64::max).min(MOST_SPREAD);
        Curve::new(points)?.with_spread((spread * 1000.0).round() / 1000.0)
    }
}

impl Calibration {
    /// Measures a machine.
    ///
    /// # Errors
    ///
    /// Those of the probe.
    pub fn measure<P: Probe>(probe: &mut P) -> Result<Option<Calibration>, P::Error> {
        let classes = Class::ALL.into_iter().flat_map(|class| [What::Cpu(class), What::Gpu(class)]);
        let whats = classes.chain([What::Transfer, What::Dispatches]);
        let mut all: Vec<Series> =
            whats.map(|what| Series::measure(what, probe)).collect::<Result<_, _>>()?;
        // From here on: in the first pass, pipelines may have had to be made.
        let begun = Instant::now();
        'passes: for pass in 1..MOST_PASSES {
            let mut uncertain = false;
            for series in &mut all {
                uncertain |= series.again(probe)?;
                if pass > 1 && begun.elapsed() > TIME {
                    break 'passes;
                }
            }
            if !uncertain {
                break;
            }
        }
        let curves = |on_gpu: bool| -> Option<[Curve; Class::ALL.len()]> {
            let of_side = all.iter().filter(|series| match series.what {
                What::Cpu(_) => !on_gpu,
                What::Gpu(_) => on_gpu,
                What::Transfer | What::Dispatches => false,
            });
            let curves: Option<Vec<Curve>> = of_side.map(|series| series.curve(|us| us[0])).collect();
            curves?.try_into().ok()
        };
        let device = || {
            let [.., transfers, dispatches] = &all[..] else { return None };
            let [(_, [one, ..]), (_, [many, ..])] = dispatches.points[..] else { return None };
            let dispatch_us = ((many.us - one.us) / (DISPATCHES - 1) as f64).clamp(0.0, one.us);
            Some(DeviceTimes {
                ops: curves(true)?,
                upload: transfers.curve(|[without, with, _]| (with - without).max(0.1))?,
                download: transfers.curve(|us| us[2])?,
                submission_us: one.us - dispatch_us,
                dispatch_us,
            })
        };
        let gpu = device();
        Ok(curves(false).map(|cpu| Calibration { cpu, gpu }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU of 1 us per 1,000 units, a device with 20 us for a submission and 3 for a dispatch; and what disturbs
    /// them.
    struct Model<F> {
        disturb: F,
        measurements: usize,
    }

    impl<F: FnMut(usize) -> f64> Model<F> {
        fn took(&mut self, us: f64) -> f64 {
            self.measurements += 1;
            us * (self.disturb)(self.measurements)
        }
    }

    impl<F: FnMut(usize) -> f64> Probe for Model<F> {
        type Error = std::convert::Infallible;

        fn cpu_us(&mut self, _: Class, amount: usize) -> Result<f64, Self::Error> {
            Ok(self.took(amount as f64 / 1000.0))
        }

        fn gpu_us(&mut self, _: Class, amount: usize) -> Result<Option<f64>, Self::Error> {
            Ok(Some(self.took(23.0 + amount as f64 / 10_000.0)))
        }

        fn transfer_us(&mut self, bytes: usize) -> Result<Option<[f64; 3]>, Self::Error> {
            let move_us = bytes as f64 / 4000.0;
            Ok(Some([23.0, 25.0 + move_us, 2.0 + move_us].map(|us| self.took(us))))
        }

        fn dispatches_us(&mut self, count: usize) -> Result<Option<f64>, Self::Error> {
            Ok(Some(self.took(20.0 + 3.0 * count as f64)))
        }
    }

    fn measured(disturb: impl FnMut(usize) -> f64) -> (Calibration, usize) {
        let mut model = Model { disturb, measurements: 0 };
        let Ok(calibration) = Calibration::measure(&mut model);
        (calibration.unwrap(), model.measurements)
    }

    /// How many times as long as it is, at the worst.
    fn worst(calibration: &Calibration) -> f64 {
        let (quiet, _) = measured(|_| 1.0);
        let curves = |of: &Calibration| -> Vec<Curve> {
            let gpu = of.gpu.clone().unwrap();
            of.cpu.iter().chain(&gpu.ops).chain([&gpu.upload, &gpu.download]).cloned().collect()
        };
        let pairs = curves(calibration).into_iter().zip(curves(&quiet));
        let ratios = pairs.flat_map(|(curve, quiet)| {
            assert_eq!(curve.points().len(), quiet.points().len());
            let points: Vec<f64> =
                curve.points().iter().zip(quiet.points()).map(|(a, b)| a.1 / b.1).collect();
            points
        });
        ratios.fold(1.0, f64::max)
    }

    #[test]
    fn submissions_and_dispatches_are_told_apart() {
        let (calibration, measurements) = measured(|_| 1.0);
        let gpu = calibration.gpu.unwrap();
        assert_eq!((gpu.submission_us, gpu.dispatch_us, gpu.upload.spread()), (20.0, 3.0, 1.0));
        // Two passes are enough where nothing disturbs them.
        assert!(measurements <= 2 * (12 * 4 + 3 * 4 + 2), "{measurements}");
    }

    #[test]
    fn what_disturbs_some_measurements_does_not_stay() {
        // One of five takes two to eight times as long. That two of one point are disturbed alike is left to chance.
        let right = (0..20u64).filter(|seed| {
            let mut state = *seed;
            let (calibration, _) = measured(move |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let unit = (state >> 33) as f64 / (1u64 << 31) as f64;
                if unit < 0.2 { 2.0 + 30.0 * unit } else { 1.0 }
            });
            worst(&calibration) < 1.01
        });
        assert!(right.count() >= 14);
    }

    #[test]
    fn what_disturbs_the_whole_first_pass_does_not_stay_and_can_be_seen_of_what_does() {
        // Of the second, none goes beyond its first amount in that pass.
        for (factor, first_pass) in [(5.0, 50), (10_000.0, 17)] {
            let (calibration, _) = measured(|number| if number <= first_pass { factor } else { 1.0 });
            assert!(worst(&calibration) < 1.01, "{}", worst(&calibration));
        }
        // No two are alike: the least is as good as any.
        let (calibration, measurements) = measured(|number| 1.0 + number as f64);
        assert!(calibration.cpu[0].spread() > 1.1);
        assert!(measurements <= (MOST_PASSES + 1) * (12 * 4 + 3 * 4 + 2), "{measurements}");
    }

    #[test]
    fn a_device_that_always_takes_long_is_a_device_still() {
        let (calibration, _) = measured(|_| 10_000.0);
        let gpu = calibration.gpu.unwrap();
        assert_eq!((gpu.submission_us, gpu.dispatch_us), (200_000.0, 30_000.0));
        assert_eq!(gpu.ops[0].points().len(), 1);
    }

    #[test]
    fn a_larger_amount_never_takes_less() {
        // The smallest amounts of the CPU are disturbed in every pass.
        let mut model = Model { disturb: |_| 1.0, measurements: 0 };
        struct Small<'a, P>(&'a mut P);
        impl<P: Probe> Probe for Small<'_, P> {
            type Error = P::Error;
            fn cpu_us(&mut self, class: Class, amount: usize) -> Result<f64, P::Error> {
                Ok(self.0.cpu_us(class, amount)? * if amount == 1 << 10 { 1000.0 } else { 1.0 })
            }
            fn gpu_us(&mut self, class: Class, amount: usize) -> Result<Option<f64>, P::Error> {
                self.0.gpu_us(class, amount)
            }
            fn transfer_us(&mut self, bytes: usize) -> Result<Option<[f64; 3]>, P::Error> {
                self.0.transfer_us(bytes)
            }
            fn dispatches_us(&mut self, count: usize) -> Result<Option<f64>, P::Error> {
                self.0.dispatches_us(count)
            }
        }
        let Ok(Some(calibration)) = Calibration::measure(&mut Small(&mut model)) else { panic!("no device") };
        assert_eq!(calibration.cpu[0].points()[..2], [(1024.0, 16.384), (16384.0, 16.384)]);
    }
}
