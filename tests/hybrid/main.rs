//! `Hybrid`: what it refuses, that both sides give the same, and that it chooses the right one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod calibrations;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../gpu/harness.rs"]
mod harness;
mod live;
#[path = "../machines/mod.rs"]
mod machines;
mod refusals;
mod replay;
mod sides;

use std::sync::OnceLock;

use tidemill::Accelerator;
use tidemill::hybrid::{Calibration, Hybrid, Policy};

/// This machine's times, measured once for all tests.
fn calibration(gpu: &Accelerator) -> Calibration {
    static MEASURED: OnceLock<Calibration> = OnceLock::new();
    MEASURED.get_or_init(|| Hybrid::calibrate(gpu).unwrap()).clone()
}

/// A `Hybrid` that runs everything on one side, for each side.
fn both_sides() -> (harness::Gpu, [Hybrid; 2]) {
    let gpu = harness::gpu();
    let calibration = calibration(&gpu);
    let on = |policy| Hybrid::with_calibration(Accelerator::clone(&gpu), calibration.clone(), policy);
    let sides = [on(Policy::Cpu), on(Policy::Gpu)];
    (gpu, sides)
}
