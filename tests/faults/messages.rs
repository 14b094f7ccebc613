//! What a host may do where it hears the validation layer: panic, call into the engine, end the process.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemill::Accelerator;

use crate::seam::Seam;

/// A read that follows a write without a barrier: the layer says something, inside of our own calls.
fn provoke(seam: &Seam, sink: impl Fn(&str) + Send + Sync + 'static) -> Accelerator {
    seam.skip_barriers(true);
    let gpu = Accelerator::new(&seam.config().on_message(sink)).unwrap();
    hazard(&gpu);
    seam.skip_barriers(false);
    gpu
}

fn hazard(gpu: &Accelerator) {
    let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    gpu.run(|r| {
        let x = r.copy(&a)?;
        r.copy(x)
    })
    .unwrap();
    gpu.synchronize().unwrap();
}

#[test]
fn a_sink_that_panics_is_called_again() {
    let seam = Seam::take();
    let heard = Arc::new(AtomicU64::new(0));
    let count = heard.clone();
    let gpu = provoke(&seam, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        panic!("a sink that panics");
    });
    assert!(gpu.validation_messages().is_empty(), "they go to the sink");
    let first = heard.load(Ordering::Relaxed);
    assert!(first > 0);
    seam.skip_barriers(true);
    hazard(&gpu);
    seam.skip_barriers(false);
    drop(gpu);
    assert!(heard.load(Ordering::Relaxed) > first, "all was heard when the last handle is gone");
}

#[test]
fn a_sink_may_call_the_accelerator() {
    let seam = Seam::take();
    let slot: Arc<Mutex<Option<Accelerator>>> = Arc::default();
    let called = Arc::new(AtomicU64::new(0));
    let (theirs, count) = (slot.clone(), called.clone());
    let gpu = provoke(&seam, move |_| {
        let gpu = theirs.lock().clone();
        if let Some(gpu) = gpu {
            assert!(gpu.stats().submissions > 0 && gpu.validation_messages().is_empty());
            gpu.trim();
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    *slot.lock() = Some(gpu.clone());
    seam.skip_barriers(true);
    hazard(&gpu);
    seam.skip_barriers(false);
    gpu.validation_messages();
    assert!(called.load(Ordering::Relaxed) > 0);
    // Not by the sink, which is called once more when the device goes, if there is something to say.
    let held = slot.lock().take();
    drop(held);
}

#[test]
fn a_sink_may_end_the_process() {
    const CHILD: &str = "TIDEMILL_TEST_SINK";
    if std::env::var_os(CHILD).is_some() {
        let seam = Seam::take();
        static OUTSIDE: AtomicBool = AtomicBool::new(false);
        let _gpu = provoke(&seam, |_| {
            // Layers have destructors that no call may be under way with: the current one crashes.
            while !OUTSIDE.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            std::process::exit(7)
        });
        OUTSIDE.store(true, Ordering::Release);
        // It ends while this thread goes on.
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "messages::a_sink_may_end_the_process", "--nocapture"])
        .env(CHILD, "1")
        .spawn()
        .unwrap();
    let began = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() > Duration::from_secs(120) => {
                let _ = child.kill();
                panic!("the process does not end");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert_eq!(status.code(), Some(7));
}
