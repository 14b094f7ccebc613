//! What happens when Vulkan is slow, poor, or fails: through a wrapped loader, with validation on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod every_call;
#[path = "../gpu/fixtures.rs"]
mod fixtures;
#[path = "../gpu/harness.rs"]
mod harness;
mod hazards;
mod host_memory;
mod hybrid;
mod limits;
mod lost;
mod memory;
mod messages;
mod narrow;
mod pipelines;
mod poorer_device;
#[path = "../seam/mod.rs"]
mod seam;
mod slow_queue;
mod stream;
mod submitted;
mod threads;
mod tune;
mod workloads;

use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(20);

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

/// Opens the gate a little later, from another thread.
fn open_later() -> thread::JoinHandle<()> {
    thread::spawn(|| {
        thread::sleep(SHORT);
        seam::open_gate();
    })
}
