//! Group `start`: from the start of a process to the verified results of an example, with what earlier starts have left
//! on disk, and without.

use std::time::Duration;

use tidemill::Accelerator;

use super::benchmark::{Benchmark, Make, Result, Target, Unit};
use crate::cold_start::{Caches, spawn_program};

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("start_one_off", |gpu| start(gpu, "example_one_off")),
    ("start_chain", |gpu| start(gpu, "example_chain")),
    ("start_plan", |gpu| start(gpu, "example_plan")),
    ("start_profile", |gpu| start(gpu, "example_profile")),
    ("start_tour", |gpu| start(gpu, "tour")),
];

fn start(_: &Accelerator, program: &'static str) -> Result<Benchmark> {
    let warm = Caches::new()?;
    // Two starts: the first knows nothing of the application, the second makes ahead what that has used.
    for _ in 0..2 {
        spawn_program(program, warm.path())?;
    }
    let cold = move || -> Result<Duration> { spawn_program(program, Caches::new()?.path()) };
    Ok(Benchmark {
        n: 1,
        unit: Unit::Millis,
        amount: 1.0,
        target: Target::Ratio(1.0),
        ours: Box::new(move |_| spawn_program(program, warm.path())),
        baseline: Some(("the same with nothing on disk", Box::new(move |_| cold()))),
    })
}
