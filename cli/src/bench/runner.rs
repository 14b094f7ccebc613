//! Runs a benchmark: ours and the baseline in turns, pair by pair, checked before and after.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::benchmark::{Benchmark, Result, Side, Target, Unit};

/// How long a benchmark may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    time: Duration,
    least: usize,
    most: usize,
}

impl Effort {
    /// Good figures.
    pub(crate) const FULL: Effort = Effort { time: Duration::from_secs(4), least: 15, most: 1001 };
    /// A first impression.
    pub(crate) const QUICK: Effort = Effort { time: Duration::from_millis(500), least: 5, most: 101 };
    /// Enough to see what is wrong by a factor.
    pub(crate) const BRIEF: Effort = Effort { time: Duration::from_millis(100), least: 3, most: 101 };
}

/// What came out; all of it verified.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) n: usize,
    pub(crate) unit: Unit,
    pub(crate) target: Target,
    /// The median of our figures.
    pub(crate) figure: f64,
    /// The baseline's name, the median of its figures, and the median of our speed over its speed.
    pub(crate) baseline: Option<(&'static str, f64, f64)>,
    /// The spread of the ratio, or of the figure where there is no baseline.
    pub(crate) p10: f64,
    pub(crate) p90: f64,
    pub(crate) pairs: usize,
}

impl Measured {
    /// Whether the target is met.
    pub(crate) fn passes(&self) -> bool {
        match (self.target, self.baseline) {
            (Target::AtMost(most), _) => self.figure <= most,
            (Target::AtLeast(least), _) => self.figure >= least,
            (Target::Ratio(least), Some((_, _, ratio))) => ratio >= least,
            (Target::Ratio(_), None) => false,
        }
    }
}

/// The value that this share of the others does not exceed.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(rank).copied().unwrap_or(f64::NAN)
}

/// Runs benchmarks until somebody wants it to stop.
pub(crate) struct Runner {
    effort: Effort,
    stop: Arc<AtomicBool>,
}

impl Runner {
    /// Ctrl-C stops after the current pair from now on.
    pub(crate) fn new(effort: Effort) -> Result<Runner> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
        Ok(Runner { effort, stop })
    }

    /// Where Ctrl-C ends the process.
    pub(crate) fn uninterrupted(effort: Effort) -> Runner {
        Runner { effort, stop: Arc::default() }
    }

    /// Whether somebody pressed Ctrl-C.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Measures a benchmark; `None` if it was stopped before there was anything to say.
    pub(crate) fn measure(&self, name: &'static str, mut benchmark: Benchmark) -> Result<Option<Measured>> {
        match self.pairs(name, &mut benchmark) {
            // Ctrl-C goes to the processes that a benchmark starts, too.
            Err(_) if self.stopped() => Ok(None),
            Ok(pairs) if pairs.is_empty() => Ok(None),
            other => other.map(|pairs| Some(summary(name, &benchmark, &pairs))),
        }
    }

    /// The times of both sides, once what they give has been found right.
    fn pairs(
        &self,
        name: &'static str,
        benchmark: &mut Benchmark,
    ) -> Result<Vec<(Duration, Option<Duration>)>> {
        let mut progress = Progress::new(name, self.effort.most);
        let mut run = |check: bool| -> Result<(Duration, Option<Duration>)> {
            let ours = (benchmark.ours)(check)?;
            let baseline =
                benchmark.baseline.as_mut().map(|(_, side): &mut (_, Side)| side(check)).transpose()?;
            Ok((ours, baseline))
        };
        run(true)?;
        let begun = Instant::now();
        // What is still cold after the check, too.
        run(false)?;
        let mut pairs = Vec::new();
        while !self.stopped() && pairs.len() < self.effort.most {
            let spent = begun.elapsed();
            if spent >= self.effort.time && pairs.len() >= self.effort.least {
                break;
            }
            progress.show(pairs.len(), spent.as_secs_f64() / self.effort.time.as_secs_f64());
            pairs.push(run(false)?);
        }
        run(true)?;
        Ok(pairs)
    }
}

fn summary(name: &'static str, benchmark: &Benchmark, pairs: &[(Duration, Option<Duration>)]) -> Measured {
    let figure = |time: Duration| benchmark.unit.figure(time, benchmark.amount);
    let mut ours: Vec<f64> = pairs.iter().map(|(ours, _)| figure(*ours)).collect();
    let mut theirs: Vec<f64> = pairs.iter().filter_map(|(_, baseline)| baseline.map(figure)).collect();
    let ratio = |(ours, baseline): &(Duration, Option<Duration>)| {
        baseline.map(|baseline| baseline.as_secs_f64() / ours.as_secs_f64().max(1e-12))
    };
    let mut ratios: Vec<f64> = pairs.iter().filter_map(ratio).collect();
    let baseline = benchmark
        .baseline
        .as_ref()
        .map(|(name, _)| (*name, percentile(&mut theirs, 0.5), percentile(&mut ratios, 0.5)));
    let spread = if baseline.is_some() { &mut ratios } else { &mut ours };
    let (p10, p90) = (percentile(spread, 0.1), percentile(spread, 0.9));
    Measured {
        name,
        n: benchmark.n,
        unit: benchmark.unit,
        target: benchmark.target,
        figure: percentile(&mut ours, 0.5),
        baseline,
        p10,
        p90,
        pairs: pairs.len(),
    }
}

/// A line on standard error for those who wait at a terminal, gone when the benchmark is done.
struct Progress {
    name: &'static str,
    most: usize,
    begun: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl Progress {
    fn new(name: &'static str, most: usize) -> Progress {
        Progress { name, most, begun: Instant::now(), shown: None, terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, pairs: usize, share: f64) {
        let (waited, now) = (self.begun.elapsed() > Duration::from_secs(1), Instant::now());
        let stale = self.shown.is_none_or(|at| now - at > Duration::from_millis(200));
        if self.terminal && waited && stale {
            let share = share.max(pairs as f64 / self.most as f64).min(1.0);
            let _ = write!(std::io::stderr(), "\r\x1b[K{}: {pairs} pairs, {:.0} %", self.name, 100.0 * share);
            self.shown = Some(now);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn benchmark(target: Target, baseline: bool) -> Benchmark {
        let side = || -> Side { Box::new(|_| Ok(Duration::ZERO)) };
        let baseline = baseline.then(|| ("baseline", side()));
        Benchmark { n: 1, unit: Unit::Micros, amount: 10.0, target, ours: side(), baseline }
    }

    #[test]
    fn the_ratio_is_the_median_over_pairs_of_our_speed_over_theirs() {
        let us = Duration::from_micros;
        let pairs = [(us(20), Some(us(10))), (us(40), Some(us(80))), (us(30), Some(us(30)))];
        let measured = summary("test", &benchmark(Target::Ratio(0.9), true), &pairs);
        let (_, theirs, ratio) = measured.baseline.unwrap();
        assert_eq!((measured.figure, theirs, ratio), (3.0, 3.0, 1.0));
        assert_eq!((measured.p10, measured.p90, measured.pairs), (0.5, 2.0, 3));
        assert!(measured.passes());
    }

    #[test]
    fn without_an_anchor_the_figure_is_judged() {
        let pairs: Vec<_> = (1..=11).map(|i| (Duration::from_micros(10 * i), None)).collect();
        let measured = summary("test", &benchmark(Target::AtMost(6.0), false), &pairs);
        assert_eq!((measured.figure, measured.p10, measured.p90), (6.0, 2.0, 10.0));
        assert!(measured.passes() && measured.baseline.is_none());
    }
}
