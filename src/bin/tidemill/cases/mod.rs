//! One table of cases for every operation, against one reference in f64. The tests run it, `tidemill cases` runs it,
//! and the accuracy statement in the docs is its output.

mod conv2d;
pub mod data;
pub mod elementwise;
mod half;
mod layout;
mod matmul;
mod pairs;
mod reduce;
pub mod reference;
mod softmax;
mod twin;

use std::collections::{BTreeMap, BTreeSet};

use tidemill::{Accelerator, Config, Error, Profiling, Result};

/// An operation on one set of operands.
pub struct Case {
    /// The operation, as the report's rows name it.
    pub op: &'static str,
    /// The kernel family that serves it: its variants all run the case.
    pub family: &'static str,
    /// Shapes and whatever else tells the case apart.
    pub what: String,
    /// Too slow for variants that were made for another kind of device.
    pub large: bool,
    /// Whether the operation has a twin on the CPU that runs the case too.
    twin: bool,
    run: Run,
}

/// Where a case is carried out.
#[derive(Clone, Copy, Debug)]
pub enum On<'a> {
    Gpu(&'a Accelerator),
    Cpu,
}

/// Carries a case out.
type Run = Box<dyn Fn(On<'_>) -> Result<Check> + Send + Sync>;

impl Case {
    /// A case of the device alone; `run` carries it out and compares.
    pub fn new(
        op: &'static str,
        family: &'static str,
        what: String,
        run: impl Fn(&Accelerator) -> Result<Check> + Send + Sync + 'static,
    ) -> Case {
        let on_gpu = move |on: On<'_>| match on {
            On::Gpu(gpu) => run(gpu),
            On::Cpu => Err(Error::Closed),
        };
        Case { twin: false, ..Case::both(op, family, what, on_gpu) }
    }

    /// A case of the device and of the CPU's twin.
    pub fn both(
        op: &'static str,
        family: &'static str,
        what: String,
        run: impl Fn(On<'_>) -> Result<Check> + Send + Sync + 'static,
    ) -> Case {
        Case { op, family, what, large: false, twin: true, run: Box::new(run) }
    }

    /// Marks the case as large.
    pub fn large(mut self) -> Case {
        self.large = true;
        self
    }
}

/// How far a result may be from the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Bit for bit (any NaN is as good as any other).
    Exact,
    /// Units in the last place of the exact result, as an f32.
    Ulp(f64),
    /// The error over the larger of 1 and the exact result's magnitude.
    Absolute(f64),
    /// The error over the given scale, which the case chooses: the sum of magnitudes for a sum.
    Scaled(f64),
    /// Squared error over squared reference, summed over the whole result.
    Nmse(f64),
}

impl Bound {
    /// The number.
    pub fn limit(self) -> f64 {
        match self {
            Bound::Exact => 0.0,
            Bound::Ulp(x) | Bound::Absolute(x) | Bound::Scaled(x) | Bound::Nmse(x) => x,
        }
    }

    /// The unit.
    pub fn unit(self) -> &'static str {
        match self {
            Bound::Exact => "bits",
            Bound::Ulp(_) => "ulp",
            Bound::Absolute(_) => "abs",
            Bound::Scaled(_) => "scaled",
            Bound::Nmse(_) => "nmse",
        }
    }
}

/// What came out of a case.
#[derive(Clone, Debug)]
pub struct Check {
    /// The largest error, in the bound's unit.
    pub worst: f64,
    /// Where it was.
    pub at: String,
    /// What is allowed.
    pub bound: Bound,
}

impl Check {
    /// Whether the result is good enough. A NaN is not.
    pub fn passed(&self) -> bool {
        self.worst <= self.bound.limit()
    }
}

/// Compares an f32 result with the reference.
pub fn compare(expected: &[f64], got: &[f32], bound: Bound) -> Check {
    compare_scaled(expected, got, bound, |_| 1.0)
}

/// As [`compare`], with the scale of each element for [`Bound::Scaled`].
pub fn compare_scaled(expected: &[f64], got: &[f32], bound: Bound, scale: impl Fn(usize) -> f64) -> Check {
    if expected.len() != got.len() {
        let at = format!("{} elements instead of {}", got.len(), expected.len());
        return Check { worst: f64::INFINITY, at, bound };
    }
    if let Bound::Nmse(_) = bound {
        let noise: f64 = expected.iter().zip(got).map(|(e, g)| (e - f64::from(*g)).powi(2)).sum();
        let signal: f64 = expected.iter().map(|e| e * e).sum();
        let worst = if noise == 0.0 { 0.0 } else { noise / signal };
        return Check { worst, at: String::new(), bound };
    }
    let mut check = Check { worst: 0.0, at: String::new(), bound };
    for (i, (&e, &g)) in expected.iter().zip(got).enumerate() {
        let error = element_error(e, g, bound, &scale, i);
        if error > check.worst || error.is_nan() {
            check.worst = error;
            check.at = format!("[{i}]: {g:e} for {e:e}");
            if error.is_nan() {
                break;
            }
        }
    }
    check
}

fn element_error(e: f64, g: f32, bound: Bound, scale: &impl Fn(usize) -> f64, i: usize) -> f64 {
    if e.is_nan() || g.is_nan() {
        return if e.is_nan() && g.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = e as f32;
    if e == 0.0 && g == 0.0 && e.is_sign_negative() != g.is_sign_negative() {
        // A zero that is none by rounding has the sign that the documentation says.
        return f64::INFINITY;
    }
    // Where bits count, so does the sign of every zero.
    let same = rounded == g && (bound != Bound::Exact || rounded.to_bits() == g.to_bits());
    if same {
        let finite = g.is_finite() && e.is_finite();
        return if matches!(bound, Bound::Ulp(_)) && finite {
            (e - f64::from(g)).abs() / ulp(e)
        } else {
            0.0
        };
    }
    if rounded.is_infinite() || g.is_infinite() {
        // One of the two overflowed: fine if the other is within the bound of the largest number.
        let near =
            |x: f64| x.abs() >= f64::from(f32::MAX) * (1.0 - 1e-6) && x.signum() == f64::from(g).signum();
        return if near(e) && near(f64::from(g)) { 0.0 } else { f64::INFINITY };
    }
    let error = (e - f64::from(g)).abs();
    match bound {
        Bound::Exact => f64::INFINITY,
        Bound::Ulp(_) => {
            // Devices may flush denormals.
            if e.abs() < f64::from(f32::MIN_POSITIVE) && error <= f64::from(f32::MIN_POSITIVE) {
                0.0
            } else {
                error / ulp(e)
            }
        }
        Bound::Absolute(_) => error / e.abs().max(1.0),
        Bound::Scaled(_) | Bound::Nmse(_) => error / scale(i).max(f64::from(f32::MIN_POSITIVE)),
    }
}

/// The distance between f32 numbers around `x`.
fn ulp(x: f64) -> f64 {
    let x = x.abs().max(f64::from(f32::MIN_POSITIVE)).min(f64::from(f32::MAX));
    2f64.powi(x.log2().floor() as i32 - 23)
}

/// Compares integers, bit for bit.
pub fn compare_words(expected: &[u32], got: &[u32]) -> Check {
    let differs = expected.iter().zip(got).position(|(e, g)| e != g);
    let bound = Bound::Exact;
    match differs {
        _ if expected.len() != got.len() => Check {
            worst: f64::INFINITY,
            at: format!("{} elements for {}", got.len(), expected.len()),
            bound,
        },
        Some(i) => {
            Check { worst: f64::INFINITY, at: format!("[{i}]: {} for {}", got[i], expected[i]), bound }
        }
        None => Check { worst: 0.0, at: String::new(), bound },
    }
}

/// Every case there is.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    elementwise::cases(&mut cases);
    pairs::cases(&mut cases);
    layout::cases(&mut cases);
    reduce::cases(&mut cases);
    softmax::cases(&mut cases);
    matmul::cases(&mut cases);
    conv2d::cases(&mut cases);
    half::cases(&mut cases);
    cases
}

/// A row of the report: an operation.
#[derive(Clone, Debug)]
pub struct Row {
    /// Cases that ran.
    pub cases: usize,
    /// The worst of them, by its share of the bound.
    pub worst: Check,
    /// Where the worst was.
    pub worst_case: String,
    /// Those that failed, with what went wrong.
    pub failures: Vec<String>,
    /// Bytes behind outputs that were written.
    pub guard_bytes_touched: u64,
}

/// What came out of a run of the table.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By operation.
    pub rows: BTreeMap<&'static str, Row>,
    /// The modules that the device ran, where it has timestamps.
    pub kernels: BTreeSet<String>,
}

impl Report {
    /// How many cases ran, and how many failed.
    pub fn totals(&self) -> (usize, usize) {
        self.rows.values().fold((0, 0), |(n, f), row| (n + row.cases, f + row.failures.len()))
    }

    /// Bytes behind outputs that were written.
    pub fn guard_bytes_touched(&self) -> u64 {
        self.rows.values().map(|row| row.guard_bytes_touched).sum()
    }

    /// Runs the cases on an accelerator. It should have memory checks on.
    ///
    /// # Errors
    ///
    /// Those of profiling: a lost device.
    pub fn run<'a>(
        &mut self,
        gpu: &Accelerator,
        variant: &str,
        cases: impl IntoIterator<Item = &'a Case>,
    ) -> Result<()> {
        let session = gpu.begin_profiling("cases", Profiling::Timeline)?;
        self.run_on(On::Gpu(gpu), variant, cases);
        self.kernels.extend(session.finish()?.rows().map(|row| row.kernel.clone()));
        Ok(())
    }

    /// Runs the cases that have one on their twins; the operations of the others.
    pub fn run_on_cpu(&mut self, cases: &[Case]) -> BTreeSet<&'static str> {
        let (with, without): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.twin);
        self.run_on(On::Cpu, " on the CPU", with);
        without.into_iter().map(|case| case.op).collect()
    }

    fn run_on<'a>(&mut self, on: On<'_>, variant: &str, cases: impl IntoIterator<Item = &'a Case>) {
        for case in cases {
            let touched = touched(on);
            let outcome = (case.run)(on);
            let touched = self::touched(on) - touched;
            let what = format!("{} {}{variant}", case.op, case.what);
            let check = match outcome {
                Ok(check) => check,
                Err(e) => Check { worst: f64::INFINITY, at: e.to_string(), bound: Bound::Exact },
            };
            let failure = (!check.passed()).then(|| {
                format!(
                    "{what}: {:.3} {} ({}), allowed {}",
                    check.worst,
                    check.bound.unit(),
                    check.at,
                    check.bound.limit()
                )
            });
            let share = |c: &Check| if c.worst == 0.0 { 0.0 } else { c.worst / c.bound.limit() };
            match self.rows.get_mut(case.op) {
                Some(row) => {
                    row.cases += 1;
                    if share(&check) > share(&row.worst) || row.worst_case.is_empty() {
                        row.worst = check;
                        row.worst_case = what;
                    }
                    row.failures.extend(failure);
                    row.guard_bytes_touched += touched;
                }
                None => {
                    let failures = failure.into_iter().collect();
                    let row = Row {
                        cases: 1,
                        worst: check,
                        worst_case: what,
                        failures,
                        guard_bytes_touched: touched,
                    };
                    self.rows.insert(case.op, row);
                }
            }
        }
    }
}

/// Guard bytes touched so far. They are looked at when a block goes back to the pool, which all do that no work in flight
/// holds; if waiting for that fails, the next case says so.
fn touched(on: On<'_>) -> u64 {
    let On::Gpu(gpu) = on else { return 0 };
    let _ = gpu.synchronize();
    gpu.stats().pool.guard_bytes_touched
}

/// Runs the table: with the device's own variants, and with `all_variants` the cases of each family once more on each
/// of its other variants (without the large ones). `config` makes the accelerators.
///
/// # Errors
///
/// Those of making an accelerator.
pub fn run_table(
    cases: &[Case],
    all_variants: bool,
    config: impl Fn() -> Config,
    mut progress: impl FnMut(&str),
) -> Result<Report> {
    let mut report = Report::default();
    let gpu = Accelerator::new(&config().memory_checks(true))?;
    progress("default variants");
    report.run(&gpu, "", cases)?;
    if all_variants {
        for variant in gpu.variants().iter().filter(|v| !v.in_use) {
            progress(&format!("{} {}", variant.family, variant.name));
            let other =
                Accelerator::new(&config().memory_checks(true).variant(variant.family, variant.name))?;
            let of_family = cases.iter().filter(|case| case.family == variant.family && !case.large);
            report.run(&other, &format!(" on {}", variant.name), of_family)?;
        }
    }
    Ok(report)
}
