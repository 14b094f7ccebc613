//! Tuning where a candidate computes nothing.

use std::ops::ControlFlow;

use tidemill::tune::{TrialOutcome, TuneOptions};

use crate::seam::Seam;

#[test]
fn a_candidate_with_a_wrong_result_is_out() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    // The second candidate of every class is not carried out.
    let mut tried = Vec::new();
    let tuning = gpu.tune(&TuneOptions::new().family("reduce"), |progress| {
        tried.push(progress.trial.is_default);
        seam.skip_dispatches(tried.last() == Some(&true));
        ControlFlow::Continue(())
    });
    let tuning = tuning.unwrap();
    assert!(!tuning.cancelled && !tuning.out_of_time);
    for pair in tuning.trials.windows(2).filter(|pair| pair[0].is_default) {
        assert_eq!(pair[1].outcome, TrialOutcome::Wrong, "{pair:?}");
        assert!(!pair[1].is_winner);
    }
    assert!(tuning.trials.iter().any(|trial| matches!(trial.outcome, TrialOutcome::Measured { .. })));
}

#[test]
fn where_nothing_is_right_nothing_wins() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let before = gpu.variants();
    seam.skip_dispatches(true);
    let tuning = gpu.tune(&TuneOptions::new().family("reduce"), |_| ControlFlow::Continue(())).unwrap();
    assert!(!tuning.trials.is_empty());
    assert!(tuning.trials.iter().all(|trial| trial.outcome == TrialOutcome::Wrong && !trial.is_winner));
    assert_eq!(gpu.variants(), before);
}
