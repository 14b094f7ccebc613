//! Runs cases, and gathers what came out of them by operation.

use std::collections::{BTreeMap, BTreeSet};

use tidemill::{Accelerator, Config, Profiling, Result};

use super::{Bound, Case, Check, On};

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
        let (with, without): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.twin.is_some());
        self.run_on(On::Cpu, " on the CPU", with);
        without.into_iter().map(|case| case.op).collect()
    }

    fn run_on<'a>(&mut self, on: On<'_>, variant: &str, cases: impl IntoIterator<Item = &'a Case>) {
        for case in cases {
            let touched = touched(on);
            let outcome = case.run(on);
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
