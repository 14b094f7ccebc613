//! Every function that can fail, fails: alone, and with another one behind it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemill::Accelerator;

use crate::seam::{self, Seam};
use crate::workloads::{LARGE, SMALL, Workload};

/// A function, and which of its calls fails, counted from 1 and from the fault before.
type Fault = (&'static str, u64);

/// An accelerator is made and does its work while calls fail.
struct Trial<'a> {
    seam: &'a Seam,
    faults: &'a [Fault],
    /// How many of the failures were seen as errors, or as none.
    told: usize,
}

impl Trial<'_> {
    /// The result is right, or there was a failure that was not reported yet; says whether there was any failure.
    fn judge<T>(&mut self, what: &str, result: tidemill::Result<T>) -> (Option<T>, bool) {
        let failures = self.seam.failures();
        let failed = failures.len() > self.told;
        self.told = failures.len();
        match result {
            Ok(value) => (Some(value), failed),
            Err(error) => {
                assert!(failed, "{what}: {error}, after {failures:?} of {:?}", self.faults);
                (None, true)
            }
        }
    }

    /// Whatever failed, the next try works.
    fn run(&mut self, gpu: &Accelerator, workload: Workload) {
        loop {
            let (result, failed) = self.judge("the workload", (workload.run)(gpu));
            if let Some(result) = result {
                assert!(result == (workload.expected)(), "wrong, after {:?}", self.seam.failures());
            }
            if !failed {
                return;
            }
        }
    }

    fn make(&mut self, config: &tidemill::Config) -> Accelerator {
        loop {
            let (gpu, _) = self.judge("a new accelerator", Accelerator::new(config));
            match gpu {
                Some(gpu) => return gpu,
                None => self.await_nothing_left(),
            }
        }
    }

    /// The last reference may be the background thread's for a moment.
    fn await_nothing_left(&self) {
        let begun = Instant::now();
        while self.seam.live() != (0, 0) {
            let (failures, left) = (self.seam.failures(), self.seam.live());
            assert!(begun.elapsed() < Duration::from_secs(20), "{failures:?} failed, and left {left:?}");
            thread::yield_now();
        }
    }
}

/// Fails these calls, one after the other. Each must be an error or the right result, with no message and nothing left
/// behind. Gives the functions that could have failed, and how often they were called.
fn fail(seam: &Seam, workload: Workload, faults: &[Fault]) -> BTreeMap<&'static str, u64> {
    seam.fail_in_turn(faults);
    let messages = Arc::new(Mutex::new(Vec::new()));
    let sink = messages.clone();
    let config = seam.config().on_message(move |message| sink.lock().push(message.to_owned()));
    let mut trial = Trial { seam, faults, told: 0 };
    let gpu = trial.make(&config);
    trial.run(&gpu, workload);
    trial.judge("close", gpu.close());
    trial.await_nothing_left();
    let messages = messages.lock();
    assert!(
        messages.is_empty(),
        "{:?} of {faults:?} failed, and validation says:\n{}",
        seam.failures(),
        messages.join("\n")
    );
    seam.fallible_calls().into_iter().collect()
}

/// The functions that can fail, and how often they are called where nothing does.
fn fallible(seam: &Seam, workload: Workload) -> BTreeMap<&'static str, u64> {
    let calls = fail(seam, workload, &[]);
    assert!(calls.len() > 27, "only {} functions can fail: {calls:?}", calls.len());
    for part in ["vkGetCalibratedTimestamps", "CalibrateableTimeDomains"] {
        assert!(calls.keys().any(|call| call.contains(part)), "{part} is not called: {calls:?}");
    }
    calls
}

/// Fails every function at its first calls and at its last.
fn fail_each(seam: &Seam) {
    const FIRST: u64 = 2;
    for (call, times) in fallible(seam, SMALL) {
        for nth in (1..=times.min(FIRST)).chain((times > FIRST).then_some(times)) {
            fail(seam, SMALL, &[(call, nth)]);
        }
    }
}

#[test]
fn every_function_that_can_fail_fails() {
    let seam = Seam::take();
    fail_each(&seam);
}

#[test]
fn every_function_that_can_fail_fails_on_a_discrete_card_without_push_descriptors() {
    let seam = Seam::take();
    seam.hide_extension(c"VK_KHR_push_descriptor");
    seam.fake_memory(seam::FakeMemory::discrete_not_coherent());
    fail_each(&seam);
    assert_eq!(seam.violations(), [""; 0]);
}

/// After a function has failed, something fails in what follows: cleaning up, trying otherwise, or trying again.
#[test]
fn two_functions_fail_one_after_the_other() {
    let seam = Seam::take();
    let calls: Vec<Fault> = fallible(&seam, SMALL).into_iter().collect();
    for (i, &(call, times)) in calls.iter().enumerate() {
        fail(&seam, SMALL, &[(call, times), (Seam::ANY, 1)]);
        fail(&seam, SMALL, &[(call, times.div_ceil(2)), (call, 1)]);
        // Any two, far apart.
        let (other, times) = calls[(7 * i + 3) % calls.len()];
        fail(&seam, SMALL, &[(call, 1), (other, times.div_ceil(2))]);
    }
}

/// The calls of a function that fail: this many at the most, the first and the last among them.
fn spread(times: u64, most: u64) -> impl Iterator<Item = u64> {
    let steps = most.min(times).max(2) - 1;
    let mut all: Vec<u64> = (0..=steps).map(|i| 1 + i * (times - 1) / steps).collect();
    all.dedup();
    all.into_iter()
}

#[test]
fn a_large_workload_survives_every_failure() {
    let seam = Seam::take();
    let before = fallible(&seam, SMALL);
    for (call, times) in fallible(&seam, LARGE) {
        // What is called no more often than in the small one belongs to making an accelerator.
        if before.get(call).is_none_or(|before| times > *before) {
            fail(&seam, LARGE, &[(call, times.div_ceil(2))]);
            fail(&seam, LARGE, &[(call, times)]);
        }
    }
}

/// `./dev test --long`.
#[test]
#[ignore = "takes minutes"]
fn a_large_workload_survives_two_failures() {
    let seam = Seam::take();
    for (call, times) in fallible(&seam, LARGE) {
        let begun = Instant::now();
        for nth in spread(times, 4) {
            fail(&seam, LARGE, &[(call, nth), (Seam::ANY, 1)]);
            fail(&seam, LARGE, &[(call, nth), (Seam::ANY, 2 * nth)]);
            fail(&seam, LARGE, &[(call, nth), (call, 1)]);
        }
        println!("{call}, {times} calls: {:.1?}", begun.elapsed());
    }
}
