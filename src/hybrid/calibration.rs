//! What a machine was measured to do: the times from which placements are priced.

use std::fmt::Write;

use super::work::Class;

/// Entries of a [`Curve`]: amounts from 1 to 2^47.
const ENTRIES: usize = 48;
/// No call takes less, in microseconds.
const LEAST_US: f32 = 0.02;

/// Microseconds by amount: measured at some amounts, straight lines between them where both are logarithms. Beyond the last
/// each further unit costs what it did between the last two, before the first the time falls as it did between the first two.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Vec<(f64, f64)>,
    /// The times at powers of two, since a price is asked for before every call.
    table: [f32; ENTRIES],
}

impl Curve {
    /// From amounts and times, both above 0; `None` if there are none.
    pub fn new(mut points: Vec<(f64, f64)>) -> Option<Curve> {
        let sound =
            |&(amount, us): &(f64, f64)| amount > 0.0 && us > 0.0 && amount.is_finite() && us.is_finite();
        if points.is_empty() || !points.iter().all(sound) {
            return None;
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let table = std::array::from_fn(|i| (between(&points, 2f64.powi(i as i32)) as f32).max(LEAST_US));
        Some(Curve { points, table })
    }

    /// A straight line: a fixed time, and a time per unit of amount.
    pub fn line(fixed_us: f64, us_per_unit: f64) -> Option<Curve> {
        let amounts = (0..ENTRIES as i32).step_by(2).map(|i| 2f64.powi(i));
        Curve::new(amounts.map(|amount| (amount, fixed_us + us_per_unit * amount)).collect())
    }

    /// The measured points.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The time for an amount.
    pub fn at(&self, amount: f64) -> f64 {
        let amount = (amount as u64).max(1);
        let below = (amount.ilog2() as usize).min(ENTRIES - 2);
        let share = (amount as f64 / (1u64 << below) as f64 - 1.0) as f32;
        f64::from(self.table[below] + share * (self.table[below + 1] - self.table[below]))
    }
}

/// The line through the points around an amount, in logarithms.
fn between(points: &[(f64, f64)], amount: f64) -> f64 {
    let slope = |a: (f64, f64), b: (f64, f64)| (b.1 / a.1).ln() / (b.0 / a.0).ln();
    let along = |from: (f64, f64), slope: f64| from.1 * (amount / from.0).powf(slope);
    let first = points[0];
    let last = points[points.len() - 1];
    if amount >= last.0 {
        // Not in proportion, since what is fixed is paid once; but never for nothing, whatever the last measurement met.
        let all = last.1 / last.0;
        let unit = match points {
            [.., before, _] => ((last.1 - before.1) / (last.0 - before.0)).max(all / 8.0),
            _ => all,
        };
        return last.1 + unit * (amount - last.0);
    }
    if amount <= first.0 {
        let begins = points.get(1).map_or(1.0, |second| slope(first, *second).clamp(0.0, 1.0));
        return along(first, begins);
    }
    let after = points.partition_point(|p| p.0 <= amount);
    along(points[after - 1], slope(points[after - 1], points[after]))
}

/// The times of one machine: a CPU, and a device if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// What the CPU's operations take, by class.
    pub cpu: [Curve; Class::ALL.len()],
    /// The device's side.
    pub gpu: Option<DeviceTimes>,
}

/// What a device takes, as its caller sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceTimes {
    /// One operation on operands that are there, from recording to completed, by class.
    pub ops: [Curve; Class::ALL.len()],
    /// Bytes to the device.
    pub upload: Curve,
    /// Bytes back.
    pub download: Curve,
    /// The part of `ops` that a recording pays once, however many operations it has.
    pub submission_us: f64,
    /// The part of `ops` that every operation pays that is not fused with others, however little it does.
    pub dispatch_us: f64,
}

/// What is measured: a machine, or a model of one.
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
    /// Microseconds to bring so many bytes to the device and back.
    ///
    /// # Errors
    ///
    /// The machine's own.
    fn transfer_us(&mut self, bytes: usize) -> Result<Option<(f64, f64)>, Self::Error>;
    /// Microseconds of one recording of so many operations that do next to nothing, each with the result of the one
    /// before, none fused with another.
    ///
    /// # Errors
    ///
    /// The machine's own.
    fn dispatches_us(&mut self, count: usize) -> Result<Option<f64>, Self::Error>;
}

/// Amounts at which a class is measured, smallest first. From one to the next the time may at most grow as much.
fn amounts(class: Class) -> [usize; 4] {
    match class {
        Class::Matmul => [32, 96, 256, 512].map(|n| n * n * n),
        // As many taps of 16 by 16 channels on squares of these sides.
        Class::Conv => [8, 24, 48, 96].map(|n| 9 * 16 * 16 * n * n),
        _ => [1 << 10, 1 << 14, 1 << 17, 1 << 20],
    }
}

/// Operations of the recording from which the price of a dispatch is taken.
const DISPATCHES: usize = 33;

/// Larger amounts are not measured once one took this long, in microseconds: the rest is proportional.
const LONG_US: f64 = 4000.0;

fn curve<E>(mut points: impl Iterator<Item = Result<Option<(f64, f64)>, E>>) -> Result<Option<Curve>, E> {
    let mut measured = Vec::new();
    while let Some(point) = points.next().transpose()?.flatten() {
        measured.push(point);
        if point.1 > LONG_US {
            break;
        }
    }
    Ok(Curve::new(measured))
}

impl Calibration {
    /// Measures a machine.
    ///
    /// # Errors
    ///
    /// Those of the probe.
    pub fn measure<P: Probe>(probe: &mut P) -> Result<Option<Calibration>, P::Error> {
        let mut cpu = Vec::new();
        let mut ops = Vec::new();
        for class in Class::ALL {
            let on_cpu = amounts(class).into_iter().map(|n| Ok(Some((n as f64, probe.cpu_us(class, n)?))));
            cpu.extend(curve(on_cpu)?);
            let on_gpu =
                amounts(class).into_iter().map(|n| Ok(probe.gpu_us(class, n)?.map(|us| (n as f64, us))));
            ops.extend(curve(on_gpu)?);
        }
        let mut transfers = Vec::new();
        for bytes in [1 << 12, 1 << 16, 1 << 19, 1 << 22] {
            let Some((up, down)) = probe.transfer_us(bytes)? else { break };
            transfers.push((bytes as f64, up, down));
            if up + down > LONG_US {
                break;
            }
        }
        let up = Curve::new(transfers.iter().map(|&(bytes, up, _)| (bytes, up)).collect());
        let down = Curve::new(transfers.iter().map(|&(bytes, _, down)| (bytes, down)).collect());
        let (one, many) = (probe.dispatches_us(1)?, probe.dispatches_us(DISPATCHES)?);
        let device = || {
            let (one, many) = (one?, many?);
            let dispatch_us = ((many - one) / (DISPATCHES - 1) as f64).clamp(0.0, one);
            let ops = ops.try_into().ok()?;
            Some(DeviceTimes {
                ops,
                upload: up?,
                download: down?,
                submission_us: one - dispatch_us,
                dispatch_us,
            })
        };
        let gpu = device();
        Ok(cpu.try_into().ok().map(|cpu| Calibration { cpu, gpu }))
    }

    /// For a file: a line for each curve.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, curve: &Curve| {
            let _ = write!(text, "{name}");
            for (amount, us) in curve.points() {
                let _ = write!(text, " {amount}:{us}");
            }
            text.push('\n');
        };
        for (class, curve) in Class::ALL.iter().zip(&self.cpu) {
            line(&format!("cpu {}", class.name()), curve);
        }
        if let Some(gpu) = &self.gpu {
            for (class, curve) in Class::ALL.iter().zip(&gpu.ops) {
                line(&format!("gpu {}", class.name()), curve);
            }
            line("gpu upload", &gpu.upload);
            line("gpu download", &gpu.download);
            let _ = writeln!(text, "gpu submission {}", gpu.submission_us);
            let _ = writeln!(text, "gpu dispatch {}", gpu.dispatch_us);
        }
        text + "end\n"
    }

    /// From what [`to_text`](Calibration::to_text) gave; `None` if it is not whole.
    pub fn from_text(text: &str) -> Option<Calibration> {
        let lines: Vec<&str> = text.strip_suffix("end\n")?.lines().collect();
        let rest = |name: &str| {
            lines.iter().find_map(|line| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')))
        };
        let curve = |name: &str| {
            let point = |word: &str| {
                let (amount, us) = word.split_once(':')?;
                Some((amount.parse().ok()?, us.parse().ok()?))
            };
            Curve::new(rest(name)?.split(' ').map(point).collect::<Option<_>>()?)
        };
        let classes = |side: &str| -> Option<[Curve; Class::ALL.len()]> {
            let curves: Option<Vec<Curve>> =
                Class::ALL.iter().map(|class| curve(&format!("{side} {}", class.name()))).collect();
            curves?.try_into().ok()
        };
        let single = |name: &str| rest(name)?.parse().ok().filter(|us: &f64| us.is_finite() && *us >= 0.0);
        let gpu = match lines.iter().any(|line| line.starts_with("gpu ")) {
            true => Some(DeviceTimes {
                ops: classes("gpu")?,
                upload: curve("gpu upload")?,
                download: curve("gpu download")?,
                submission_us: single("gpu submission")?,
                dispatch_us: single("gpu dispatch")?,
            }),
            false => None,
        };
        Some(Calibration { cpu: classes("cpu")?, gpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_through_its_points_and_on_from_them() {
        let curve = Curve::new(vec![(1024.0, 2.0), (65_536.0, 64.0)]).unwrap();
        assert!((curve.at(1024.0) - 2.0).abs() < 1e-6);
        assert!((curve.at(65_536.0) - 64.0).abs() < 1e-4);
        assert!((curve.at(131_072.0) - 126.98).abs() < 0.01);
        // Mostly fixed: sixteen times as much does not take sixteen times as long.
        let fixed = Curve::new(vec![(1024.0, 1000.0), (4096.0, 1003.0)]).unwrap();
        assert!((fixed.at(65_536.0) - 1003.0 - 60.0 * 1024.0 * 1003.0 / 4096.0 / 8.0).abs() < 1.0);
        let line = Curve::line(1000.0, 0.25).unwrap();
        assert!((line.at(65_536.0) - 17_384.0).abs() < 1.0);
        assert!(curve.at(8192.0) > 2.0 && curve.at(8192.0) < 64.0);
        assert!(curve.at(1.0) > 0.0 && curve.at(1.0) < 2.0);
        assert_eq!(Curve::new(vec![]), None);
        assert_eq!(Curve::new(vec![(1.0, f64::NAN)]), None);
    }

    /// A device with 20 us for a submission and 3 for a dispatch.
    struct Plain;

    impl Probe for Plain {
        type Error = std::convert::Infallible;

        fn cpu_us(&mut self, _: Class, amount: usize) -> Result<f64, Self::Error> {
            Ok(amount as f64)
        }

        fn gpu_us(&mut self, _: Class, amount: usize) -> Result<Option<f64>, Self::Error> {
            Ok(Some(23.0 + amount as f64))
        }

        fn transfer_us(&mut self, bytes: usize) -> Result<Option<(f64, f64)>, Self::Error> {
            Ok(Some((bytes as f64, bytes as f64)))
        }

        fn dispatches_us(&mut self, count: usize) -> Result<Option<f64>, Self::Error> {
            Ok(Some(20.0 + 3.0 * count as f64))
        }
    }

    #[test]
    fn submissions_and_dispatches_are_told_apart() {
        let gpu = Calibration::measure(&mut Plain).unwrap().unwrap().gpu.unwrap();
        assert_eq!((gpu.submission_us, gpu.dispatch_us), (20.0, 3.0));
    }

    #[test]
    fn a_file_is_taken_only_whole() {
        let curve = || Curve::new(vec![(1.0, 0.5), (1024.0, 20.25)]).unwrap();
        let curves = || std::array::from_fn(|_| curve());
        let gpu = DeviceTimes {
            ops: curves(),
            upload: curve(),
            download: curve(),
            submission_us: 17.5,
            dispatch_us: 1.5,
        };
        for calibration in
            [Calibration { cpu: curves(), gpu: Some(gpu) }, Calibration { cpu: curves(), gpu: None }]
        {
            let text = calibration.to_text();
            assert_eq!(Calibration::from_text(&text), Some(calibration));
            for cut in 0..text.len() {
                assert_eq!(Calibration::from_text(&text[..cut]), None, "cut at {cut}");
            }
        }
    }
}
