//! Tuning: every variant that the device can run is measured on it, and what is best for a class of shapes is used from
//! then on and kept on disk.
//!
//! This module owns the problems that candidates are measured on, the check of their results and the choice of a
//! winner. It takes an accelerator, and gives winners to its catalog. It has no kernel of its own and no threshold:
//! what is faster is measured.

mod check;
mod numbers;
mod problem;
mod trial;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, ProfileError, Result};
pub use crate::kernels::catalog::VariantInfo;
use crate::kernels::catalog::{AnyFamily, Catalog};
use crate::kernels::families::find_winner;
use crate::kernels::variant::{Class, Winner};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::disk_cache;
pub use crate::runtime::inspect::{CompiledKernel, compiled_kernels};
use crate::runtime::profile::Profiling;
use crate::runtime::profile::guard::Figure;
use crate::runtime::profile::row::Row;
use crate::runtime::recording::Recording;
use crate::runtime::submission::Submission;
use crate::runtime::tensor::Tensor;
use problem::Problem;
pub use trial::{Trial, TrialOutcome, TuneOptions, TuneProgress, Tuning};

/// A variant must take so much of the default's time or less to replace it: smaller differences are noise.
const WORTH_IT: f64 = 0.95;
/// A candidate that takes this many times the best one's time is not measured again.
const HOPELESS: u64 = 2;
/// Of this many runs the shortest counts,
const REPEATS: usize = 7;
/// or of fewer that took so long together.
const LONG_ENOUGH: Duration = Duration::from_millis(300);

/// One class of one family.
struct Contest {
    family: &'static dyn AnyFamily,
    class: Class,
    candidates: Vec<&'static str>,
    default: &'static str,
}

impl Accelerator {
    /// Measures the candidates of every kernel family for every class of shapes on this device, one at a time by the
    /// device's own clock, and uses the best from now on; the next start uses them, too. A candidate whose result is
    /// wrong is out.
    ///
    /// `progress` is called for every candidate and can end the tuning by [`ControlFlow::Break`]; nothing is changed
    /// then. Other threads may go on using the accelerator, though both will be slower, and times worth less.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use std::ops::ControlFlow;
    /// use tidemill::tune::TuneOptions;
    /// use tidemill::{Accelerator, Config};
    /// let gpu = Accelerator::new(&Config::new().no_cache())?;
    /// let tuning = gpu.tune(&TuneOptions::new().family("softmax"), |progress| {
    ///     println!("{}/{}: {:?}", progress.tried, progress.total, progress.trial);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!(tuning.trials.iter().any(|trial| trial.is_winner));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ProfileError::NoTimestamps`] where the device has no clock; [`Error::NoSuchVariant`] for a family that is not
    /// there; [`ProfileError::Capturing`] inside a capture; [`Error::OutOfMemory`]; [`Error::DeviceLost`].
    pub fn tune(
        &self,
        options: &TuneOptions,
        mut progress: impl FnMut(&TuneProgress<'_>) -> ControlFlow<()>,
    ) -> Result<Tuning> {
        let core = self.core();
        core.open()?;
        if self.device().timestamps.is_none() {
            return Err(ProfileError::NoTimestamps { device: self.device().name.clone() }.into());
        }
        let contests = self.contests(options)?;
        let begun = Instant::now();
        let total = contests.iter().map(|contest| contest.candidates.len()).sum();
        let file = core.folder().map(|folder| disk_cache::tuning_file(self.device(), folder));
        let elapsed = begun.elapsed();
        let mut tuning = Tuning { trials: Vec::new(), cancelled: false, out_of_time: false, elapsed, file };
        let mut winners = Vec::new();
        let out_of_time = || begun.elapsed() >= options.budget;
        'contests: for contest in contests {
            if out_of_time() {
                tuning.out_of_time = true;
                break;
            }
            let problem = Problem::new(self, contest.family, contest.class)?;
            let first = tuning.trials.len();
            for &variant in &contest.candidates {
                if out_of_time() {
                    tuning.out_of_time = true;
                    break 'contests;
                }
                let best = tuning.trials[first..].iter().filter_map(|trial| trial.outcome.ns()).min();
                let outcome = self.try_variant(&problem, contest.family.name(), variant, best)?;
                tuning.trials.push(Trial {
                    family: contest.family.name(),
                    class: contest.class.name(),
                    work: problem.name(),
                    variant,
                    is_default: variant == contest.default,
                    outcome,
                    is_winner: false,
                });
                let (tried, elapsed) = (tuning.trials.len(), begun.elapsed());
                let told = TuneProgress { tried, total, elapsed, trial: &tuning.trials[tried - 1] };
                if progress(&told).is_break() {
                    tuning.cancelled = true;
                    tuning.elapsed = begun.elapsed();
                    return Ok(tuning);
                }
            }
            let trials = &mut tuning.trials[first..];
            if best_of(trials).is_some_and(|best| !trials[best].is_default) {
                if out_of_time() {
                    tuning.out_of_time = true;
                    break;
                }
                self.play_off(&problem, trials)?;
            }
            if let Some(best) = best_of(trials) {
                trials[best].is_winner = true;
                let Contest { family, class, .. } = contest;
                winners.push(Winner { family: family.name(), class, variant: trials[best].variant });
            }
        }
        self.adopt(&winners);
        tuning.elapsed = begun.elapsed();
        Ok(tuning)
    }

    fn contests(&self, options: &TuneOptions) -> Result<Vec<Contest>> {
        let catalog = &self.core().catalog;
        let all = catalog.candidates();
        let known = |name: &String| all.iter().any(|(family, _)| family.name() == name);
        if let Some(wanted) = options.families.iter().find(|name| !known(name)) {
            let known = all.iter().map(|(family, _)| family.name().to_owned()).collect();
            return Err(Error::NoSuchVariant { wanted: wanted.clone(), known });
        }
        let wanted =
            |family: &str| options.families.is_empty() || options.families.iter().any(|f| f == family);
        let mut contests = Vec::new();
        // What the user has asked for by name is not up for choice.
        let open = |family: &str| wanted(family) && !catalog.is_fixed(family);
        for (family, mut candidates) in all.into_iter().filter(|(family, _)| open(family.name())) {
            for &class in family.classes() {
                let default = catalog.used(family, class, true);
                // The default goes first: it is what others are compared with.
                candidates.sort_by_key(|name| *name != default);
                contests.push(Contest { family, class, candidates: candidates.clone(), default });
            }
        }
        Ok(contests)
    }

    /// Uses the winners from now on, and keeps them. Classes without a new one stay as they are, here and in the file.
    fn adopt(&self, winners: &[Winner]) {
        let catalog = &self.core().catalog;
        let with = |others: Vec<Winner>| {
            let decided = |other: &Winner| {
                winners.iter().any(|winner| (winner.family, winner.class) == (other.family, other.class))
            };
            let undecided = others.into_iter().filter(|other| !decided(other));
            winners.iter().copied().chain(undecided).collect::<Vec<_>>()
        };
        catalog.adopt(&with(catalog.tuned()));
        if let Some(folder) = self.core().folder() {
            let earlier = disk_cache::load_tuning(self.device(), folder, find_winner);
            disk_cache::save_tuning(self.device(), folder, &with(earlier.unwrap_or_default()));
        }
    }

    /// Runs a variant: once for its result, then for its time. What can't be run is out; only a device that is lost, or
    /// without memory, ends it all.
    fn try_variant(
        &self,
        problem: &Problem,
        family: &'static str,
        variant: &'static str,
        best_ns: Option<u64>,
    ) -> Result<TrialOutcome> {
        // Background work stays away.
        let _quiet = self.core().quiet.hold("tune")?;
        let catalog = Arc::new(self.core().catalog.trying(family, variant));
        match self.time_variant(problem, &catalog, best_ns) {
            Err(error @ (Error::DeviceLost { .. } | Error::OutOfMemory { .. } | Error::Closed)) => Err(error),
            Err(error) => Ok(TrialOutcome::Failed(error.to_string())),
            Ok(outcome) => Ok(outcome),
        }
    }

    fn time_variant(
        &self,
        problem: &Problem,
        catalog: &Arc<Catalog>,
        best_ns: Option<u64>,
    ) -> Result<TrialOutcome> {
        // Pipelines are made here.
        let (result, _) = self.run_once(problem, catalog, Profiling::Off)?;
        if !problem.is_right(&result.read()?) {
            return Ok(TrialOutcome::Wrong);
        }
        let begun = Instant::now();
        let mut shortest = u64::MAX;
        for _ in 0..REPEATS {
            let Some(ns) = self.time_once(problem, catalog)? else { return Ok(TrialOutcome::Impossible) };
            shortest = shortest.min(ns);
            let behind = best_ns.is_some_and(|best| ns > HOPELESS.saturating_mul(best));
            if behind || begun.elapsed() >= LONG_ENOUGH {
                break;
            }
        }
        Ok(TrialOutcome::Measured { ns: shortest })
    }

    /// Measures the default and the one that seems faster again, in turns: what disturbed one of them has gone, or
    /// disturbs both.
    fn play_off(&self, problem: &Problem, trials: &mut [Trial]) -> Result<()> {
        let default = trials.iter().position(|trial| trial.is_default);
        let (Some(best), Some(default)) = (best_of(trials), default) else { return Ok(()) };
        let _quiet = self.core().quiet.hold("tune")?;
        let pair = [best, default].map(|i| {
            let catalog = self.core().catalog.trying(trials[i].family, trials[i].variant);
            (i, Arc::new(catalog))
        });
        let begun = Instant::now();
        for _ in 0..REPEATS {
            for (i, catalog) in &pair {
                let TrialOutcome::Measured { ns } = &mut trials[*i].outcome else { return Ok(()) };
                *ns = (*ns).min(self.time_once(problem, catalog)?.unwrap_or(*ns));
            }
            if begun.elapsed() >= 2 * LONG_ENOUGH {
                break;
            }
        }
        Ok(())
    }

    fn run_once(
        &self,
        problem: &Problem,
        catalog: &Arc<Catalog>,
        profiling: Profiling,
    ) -> Result<(Tensor, Submission)> {
        let mut r = Recording::new(self.core().clone());
        r.try_out(catalog.clone());
        r.profiling(profiling);
        let value = problem.record(&r)?;
        Ok((r.keep(value)?, r.end_recording()?))
    }

    /// The time of one run on the device's clock, all of its dispatches together; `None` if it is impossible.
    fn time_once(&self, problem: &Problem, catalog: &Arc<Catalog>) -> Result<Option<u64>> {
        let (_result, submission) = self.run_once(problem, catalog, Profiling::Isolated)?;
        let profile = submission.profile()?;
        let possible = !profile.rows.iter().any(|row| matches!(row.figure, Figure::Impossible(_)));
        Ok(possible.then(|| profile.rows.iter().map(Row::duration_ns).sum()))
    }
}

/// The place of the best trial of a class: the fastest, unless the default is as good as that.
fn best_of(trials: &[Trial]) -> Option<usize> {
    let measured = || trials.iter().enumerate().filter_map(|(i, trial)| Some((i, trial.outcome.ns()?)));
    let (fastest, ns) = measured().min_by_key(|(_, ns)| *ns)?;
    let default = measured().find(|(i, _)| trials[*i].is_default);
    match default {
        Some((default, default_ns)) if ns as f64 > WORTH_IT * default_ns as f64 => Some(default),
        _ => Some(fastest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(variant: &'static str, is_default: bool, outcome: TrialOutcome) -> Trial {
        let work = String::new();
        Trial { family: "elementwise", class: "small", work, variant, is_default, outcome, is_winner: false }
    }

    #[test]
    fn the_fastest_right_one_wins_and_the_default_wins_ties() {
        let measured = |ns| TrialOutcome::Measured { ns };
        let default = |ns| trial("default", true, measured(ns));
        let other = |ns| trial("other", false, measured(ns));
        assert_eq!(best_of(&[default(100), other(94)]), Some(1));
        assert_eq!(best_of(&[default(100), other(96)]), Some(0));
        assert_eq!(best_of(&[default(100), other(100)]), Some(0));
        assert_eq!(best_of(&[default(100), trial("wrong", false, TrialOutcome::Wrong)]), Some(0));
        assert_eq!(best_of(&[trial("default", true, TrialOutcome::Impossible), other(500)]), Some(1));
        assert_eq!(best_of(&[trial("default", true, TrialOutcome::Failed("x".into()))]), None);
    }
}
