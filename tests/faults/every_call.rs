//! Every function that can fail, fails.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use tidemill::{Accelerator, Profiling};

use crate::ramp;
use crate::seam::{self, Seam};

/// Uploads, recordings, waits and reads with one kernel only: compiling it is most of the time that this takes.
fn workload(gpu: &Accelerator) -> tidemill::Result<Vec<f32>> {
    let a = gpu.upload(&ramp(300), [300])?;
    let mut r = gpu.begin_recording()?;
    let x = r.copy(&a)?;
    let x = r.add(x, &a)?;
    let x = r.keep(x)?;
    let done = r.end_recording()?;
    done.wait_timeout(Duration::from_secs(10))?;
    a.write(&ramp(300))?;
    let y = gpu.run(|r| r.add(&x, &a))?;
    let mut r = gpu.begin_recording()?;
    let z = r.copy(&y)?;
    let z = r.keep(z)?;
    let mut plan = r.into_plan()?;
    plan.profiling(Profiling::Timeline);
    let _ = plan.submit()?;
    y.write(&expected())?;
    plan.submit()?.profile()?;
    z.read::<f32>()
}

fn expected() -> Vec<f32> {
    ramp(300).iter().map(|x| 3.0 * x).collect()
}

/// Fails one call; it must be an error or the right result, with no message and nothing left behind.
fn fail_one(seam: &Seam, call: &'static str, nth: u64) -> HashMap<&'static str, u64> {
    seam.fail_nth(call, nth);
    let messages = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let sink = messages.clone();
    let config = seam.config().on_message(move |message| sink.lock().push(message.to_owned()));
    let result = Accelerator::new(&config).and_then(|gpu| {
        let result = workload(&gpu);
        // Whatever failed, the next try works.
        if seam.failed().is_some() {
            assert_eq!(workload(&gpu).unwrap(), expected(), "after {:?} failed", seam.failed());
        }
        let closed = gpu.close();
        assert!(closed.is_ok() || seam.failed().is_some(), "{closed:?}");
        result
    });
    let failed = seam.failed();
    match result {
        Ok(result) => assert_eq!(result, expected(), "with {failed:?} failed"),
        Err(error) => assert!(failed.is_some(), "{error}"),
    }
    // The last reference may be the background thread's for a moment.
    let begun = Instant::now();
    while seam.live() != (0, 0) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{failed:?} failed, and left {:?}", seam.live());
        thread::yield_now();
    }
    let messages = messages.lock();
    assert!(
        messages.is_empty(),
        "{failed:?}, call {nth}, failed, and validation says:\n{}",
        messages.join("\n")
    );
    seam.fallible_calls()
}

/// Fails every function that can fail at its first calls and at its last.
fn fail_each(seam: &Seam) {
    const FIRST: u64 = 2;
    let calls = fail_one(seam, "none", 0);
    assert!(calls.len() > 25, "only {} functions can fail: {calls:?}", calls.len());
    for (call, &times) in &calls {
        for nth in (1..=times.min(FIRST)).chain((times > FIRST).then_some(times)) {
            fail_one(seam, call, nth);
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
