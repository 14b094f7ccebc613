//! Options and reports of tuning.

use std::path::PathBuf;
use std::time::Duration;

/// Options of tuning: families, and time.
#[derive(Clone, Debug)]
#[must_use]
pub struct TuneOptions {
    pub(super) budget: Duration,
    pub(super) families: Vec<String>,
}

impl Default for TuneOptions {
    fn default() -> TuneOptions {
        TuneOptions { budget: Duration::from_secs(60), families: Vec::new() }
    }
}

impl TuneOptions {
    /// Every family, for a minute at the most.
    pub fn new() -> TuneOptions {
        TuneOptions::default()
    }

    /// Begins nothing new after this time. Classes that were not finished keep what they had.
    pub fn budget(mut self, time: Duration) -> TuneOptions {
        self.budget = time;
        self
    }

    /// Tunes this family, and others that are named in the same way; names as in
    /// [`Accelerator::variants`](crate::Accelerator::variants). Without it all are, but those whose variant the
    /// [`Config`](crate::Config) names.
    pub fn family(mut self, name: &str) -> TuneOptions {
        self.families.push(name.to_owned());
        self
    }
}

/// The outcome of one candidate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrialOutcome {
    /// Its result is right, and it takes so long on the device's clock.
    Measured {
        /// Nanoseconds; the shortest of several runs.
        ns: u64,
    },
    /// It gave a wrong result, and so has no time.
    Wrong,
    /// It took less time than is possible.
    Impossible,
    /// It could not be run.
    Failed(String),
}

impl TrialOutcome {
    /// The time, if there is one.
    pub fn ns(&self) -> Option<u64> {
        match self {
            TrialOutcome::Measured { ns } => Some(*ns),
            _ => None,
        }
    }
}

/// A candidate that was tried.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trial {
    /// The family.
    pub family: &'static str,
    /// The class of shapes.
    pub class: &'static str,
    /// The problem that it was measured on: one shape of the class.
    pub work: String,
    /// The variant.
    pub variant: &'static str,
    /// Whether the device uses it where nothing is tuned.
    pub is_default: bool,
    /// Its outcome.
    pub outcome: TrialOutcome,
    /// Whether it is the best of its class.
    pub is_winner: bool,
}

/// How far tuning has come, each time that a candidate has been tried.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TuneProgress<'a> {
    /// Candidates tried, this one included.
    pub tried: usize,
    /// Candidates there are.
    pub total: usize,
    /// Time spent so far.
    pub elapsed: Duration,
    /// The candidate.
    pub trial: &'a Trial,
}

/// The result of tuning.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuning {
    /// Every candidate that was tried.
    pub trials: Vec<Trial>,
    /// Whether the caller ended it. Nothing was changed then.
    pub cancelled: bool,
    /// Whether time ran out before everything was tried.
    pub out_of_time: bool,
    /// The time that it took.
    pub elapsed: Duration,
    /// Where the winners are kept; `None` if nothing is kept on disk.
    pub file: Option<PathBuf>,
}
