//! Runs cases, and gathers what came out of them by operation.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidemill::profile::Profiling;
use tidemill::{Accelerator, Config, Result};

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

/// The outcome of a run of the table.
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

    /// Adds what came out of another part of the table.
    fn merge(&mut self, other: Report) {
        for (op, row) in other.rows {
            self.add(op, row);
        }
        self.kernels.extend(other.kernels);
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
            let failures = failure.into_iter().collect();
            let row =
                Row { cases: 1, worst: check, worst_case: what, failures, guard_bytes_touched: touched };
            self.add(case.op, row);
        }
    }

    fn add(&mut self, op: &'static str, row: Row) {
        match self.rows.entry(op) {
            Entry::Vacant(place) => {
                place.insert(row);
            }
            Entry::Occupied(mut known) => known.get_mut().merge(row),
        }
    }
}

impl Row {
    /// Adds further cases; of two that are equally bad, the first is named.
    fn merge(&mut self, other: Row) {
        let share = |c: &Check| if c.worst == 0.0 { 0.0 } else { c.worst / c.bound.limit() };
        if share(&other.worst) > share(&self.worst) {
            self.worst = other.worst;
            self.worst_case = other.worst_case;
        }
        self.cases += other.cases;
        self.failures.extend(other.failures);
        self.guard_bytes_touched += other.guard_bytes_touched;
    }
}

/// Guard bytes touched so far. They are looked at when a block goes back to the pool, which all do that no work in
/// flight holds; if waiting for that fails, the next case says so.
fn touched(on: On<'_>) -> u64 {
    let On::Gpu(gpu) = on else { return 0 };
    let _ = gpu.synchronize();
    gpu.stats().pool.guard_bytes_touched
}

/// A part of the table: some cases on one variant, with an accelerator of their own.
struct Part<'a> {
    /// `None`: the device's own variants.
    variant: Option<(&'a str, &'a str)>,
    cases: Vec<&'a Case>,
}

/// Cases of a part on the device's own variants. Its pipelines are freed with its accelerator: all at once took
/// gigabytes on software drivers.
const PART: usize = 256;

/// Runs the table: with the device's own variants, and with `all_variants` the cases of each family once more on each
/// of its other variants (without the large ones). `config` makes the accelerators. Parts of it run on every core; the
/// report does not depend on which is done first.
///
/// # Errors
///
/// Those of making an accelerator.
pub fn run_table(
    cases: &[Case],
    all_variants: bool,
    config: impl Fn() -> Config + Sync,
    progress: impl Fn(&str) + Sync,
) -> Result<Report> {
    let gpu = Accelerator::new(&config())?;
    let variants = if all_variants { gpu.variants() } else { Vec::new() };
    drop(gpu);
    let own = cases.chunks(PART).map(|cases| Part { variant: None, cases: cases.iter().collect() });
    let mut parts: Vec<Part<'_>> = own.collect();
    parts.extend(variants.iter().filter(|v| !v.in_use).map(|variant| {
        let of_family = cases.iter().filter(|case| case.family == variant.family && !case.large);
        Part { variant: Some((variant.family, variant.name)), cases: of_family.collect() }
    }));
    let next = AtomicUsize::new(0);
    let done: Vec<OnceLock<Result<Report>>> = parts.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < parts.len()) {
            let _ = done[at].set(parts[at].run(&config, &progress));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
        work();
    });
    let mut report = Report::default();
    for part in done.into_iter().filter_map(OnceLock::into_inner) {
        report.merge(part?);
    }
    Ok(report)
}

impl Part<'_> {
    fn run(&self, config: &impl Fn() -> Config, progress: &impl Fn(&str)) -> Result<Report> {
        let mut report = Report::default();
        let config = config().memory_checks(true);
        let (config, on) = match self.variant {
            None => {
                progress(&format!("default variants, {} cases", self.cases.len()));
                (config, String::new())
            }
            Some((family, name)) => {
                progress(&format!("{family} {name}"));
                (config.variant(family, name), format!(" on {name}"))
            }
        };
        report.run(&Accelerator::new(&config)?, &on, self.cases.iter().copied())?;
        Ok(report)
    }
}
