//! Measured times of a machine, from which placements are priced.

use std::fmt::Write;

use super::work::Class;

/// Entries of a [`Curve`]: amounts from 1 to 2^47.
const ENTRIES: usize = 48;
/// No call takes less, in microseconds.
const LEAST_US: f32 = 0.02;

/// Microseconds by amount: measured at some amounts, straight lines between them where both are logarithms. Beyond the
/// last each further unit costs what it did between the last two, before the first the time falls as it did between the
/// first two.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Vec<(f64, f64)>,
    /// 1 if it was not measured.
    spread: f64,
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
        Some(Curve { points, spread: 1.0, table })
    }

    /// With what the least times were confirmed to; `None` if that is no number of 1 or more.
    pub(super) fn with_spread(self, spread: f64) -> Option<Curve> {
        (spread >= 1.0 && spread.is_finite()).then_some(Curve { spread, ..self })
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

    /// How far what was measured can be trusted: how many times as long as its least time the point that is the least
    /// certain took in another pass. 1 if it was not measured.
    pub fn spread(&self) -> f64 {
        self.spread
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
        // Not in proportion, since what is fixed is paid once; but never for nothing, whatever the last measurement
        // met.
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
    /// Times of the CPU's operations, by class.
    pub cpu: [Curve; Class::ALL.len()],
    /// The device's side.
    pub gpu: Option<DeviceTimes>,
}

/// Times of a device, as its caller sees them.
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

impl Calibration {
    /// For a file: a line for each curve.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, curve: &Curve| {
            let _ = write!(text, "{name}");
            for (amount, us) in curve.points() {
                let _ = write!(text, " {amount}:{us}");
            }
            let _ = writeln!(text, " ~{}", curve.spread());
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
            let (points, spread) = rest(name)?.split_once(" ~")?;
            let points = points.split(' ').map(point).collect::<Option<_>>()?;
            Curve::new(points)?.with_spread(spread.parse().ok()?)
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

    #[test]
    fn a_file_is_taken_only_whole() {
        let curve = || Curve::new(vec![(1.0, 0.5), (1024.0, 20.25)]).unwrap().with_spread(1.125).unwrap();
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
