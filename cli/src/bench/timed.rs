//! Benchmarks that are cases of the table: operands, recording, check and amounts are the case's, and a baseline is all
//! that is added.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tidemill::Accelerator;

use super::benchmark::{Benchmark, Result, Side, Target, Unit};
use crate::cases::{self, Array, Bound, Case, Expected};

/// A case with its operands and what should come out, which are made once for both sides.
pub(crate) struct Timed {
    pub(crate) name: &'static str,
    pub(crate) case: Case,
    pub(crate) operands: Vec<Array>,
    expected: Expected,
}

impl Timed {
    /// The case that the table has for a benchmark of this name.
    pub(crate) fn new(name: &'static str) -> Result<Rc<Timed>> {
        let mut table = cases::all().into_iter();
        let case = table.find(|case| case.bench.as_deref() == Some(name));
        let case = case.ok_or_else(|| format!("no case is called {name}"))?;
        let operands = case.operands();
        let expected = case.expected(&operands);
        Ok(Rc::new(Timed { name, case, operands, expected }))
    }

    /// How much of the unit one run does.
    pub(crate) fn amount(&self, unit: Unit) -> f64 {
        match unit {
            Unit::GigabytesPerSecond => self.case.size_bytes() as f64,
            Unit::GigaflopsPerSecond => self.case.flops as f64,
            _ => 1.0,
        }
    }

    /// Our side, on operands that are on the device: begin to completed.
    pub(crate) fn ours(self: &Rc<Self>, gpu: &Accelerator) -> Result<Side> {
        let (timed, gpu) = (self.clone(), gpu.clone());
        let record = self.case.upload(&gpu, &self.operands)?;
        Ok(Box::new(move |check| {
            let begun = Instant::now();
            let r = gpu.begin_recording()?;
            let value = record(&r)?;
            let kept = r.keep(value)?;
            r.end_recording()?.wait()?;
            let time = begun.elapsed();
            if check {
                let result = timed.case.check(&timed.expected, &Array::read(&kept)?);
                verdict(timed.name, &result)?;
            }
            Ok(time)
        }))
    }

    /// A baseline on the same operands. Where it is told that it will be checked, it must put its result into the place
    /// for it, which may be off by `bound`.
    pub(crate) fn baseline(
        self: &Rc<Self>,
        bound: Bound,
        mut run: impl FnMut(bool, &[Array], &mut Array) -> Result<Duration> + 'static,
    ) -> Side {
        let (timed, mut out) = (self.clone(), Array::unwritten(self.case.result));
        Box::new(move |check| {
            let time = run(check, &timed.operands, &mut out)?;
            if check {
                let result = timed.expected.check(&out, bound);
                verdict(&format!("the baseline of {}", timed.name), &result)?;
            }
            Ok(time)
        })
    }

    /// The benchmark, beside a baseline.
    pub(crate) fn benchmark(
        self: &Rc<Self>,
        gpu: &Accelerator,
        n: usize,
        unit: Unit,
        ratio: f64,
        baseline: (&'static str, Side),
    ) -> Result<Benchmark> {
        let (amount, ours) = (self.amount(unit), self.ours(gpu)?);
        Ok(Benchmark { n, unit, amount, target: Target::Ratio(ratio), ours, baseline: Some(baseline) })
    }
}

/// An error unless the result is good enough.
fn verdict(who: &str, check: &cases::Check) -> Result<()> {
    if check.passed() {
        return Ok(());
    }
    let (unit, allowed) = (check.bound.unit(), check.bound.limit());
    Err(format!("{who} is wrong: {:.3e} {unit} ({}), allowed {allowed:e}", check.worst, check.at).into())
}
