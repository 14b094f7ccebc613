//! A process that starts, adds once or runs an example's job, checks the result and says so: what `cold_start_second`
//! and the group `start` measure.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidemill::Accelerator;

use crate::Outcome;
use crate::bench::baseline::vulkan::Bare;
use crate::bench::benchmark::{Result, expect};
use crate::counters;
use crate::style::print;

/// What can be said to `cold-start`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Drive the device with this index bare
    #[arg(long)]
    bare: Option<usize>,
    /// Run this program of `counters` instead
    #[arg(long, conflicts_with = "bare")]
    program: Option<String>,
}

const N: usize = 1024;
const VERIFIED: &str = "verified\n";

pub(crate) fn run(args: &Args) -> Outcome {
    if let Some(program) = &args.program {
        counters::run_program(program, &Accelerator::global()?)?;
        print(VERIFIED)?;
        return Ok(ExitCode::SUCCESS);
    }
    let a: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let b = vec![0.5f32; N];
    let sum = |i: usize| i as f32 + 0.5;
    match args.bare {
        Some(device) => {
            let mut bare = Bare::new(device, &a, &b, 1)?;
            bare.run()?;
            expect("the first bare result", bare.result(), sum)?;
            print(VERIFIED)?;
        }
        None => {
            let gpu = Accelerator::global()?;
            let (a, b) = (gpu.upload(&a, [N])?, gpu.upload(&b, [N])?);
            let result = gpu.run(|r| r.add(&a, &b))?;
            expect("the first result", &result.read()?, sum)?;
            print(VERIFIED)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts such a process; the time until it has said that its result is right.
pub(crate) fn spawn(bare: Option<usize>) -> Result<Duration> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("cold-start").stdin(Stdio::null()).stdout(Stdio::piped());
    if let Some(device) = bare {
        command.arg(format!("--bare={device}"));
    }
    await_verified(&mut command)
}

/// A folder for everything that is cached on disk, the driver's own things too. It goes when this is dropped.
pub(crate) struct Caches(PathBuf);

impl Caches {
    /// An empty one.
    pub(crate) fn new() -> Result<Caches> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tidemill-start-{}-{number}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Caches(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Caches {
    fn drop(&mut self) {
        // What can't be removed stays in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a process that runs a program with what is cached in a folder; the time until it has said that its results
/// are right.
pub(crate) fn spawn_program(program: &str, caches: &Path) -> Result<Duration> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["cold-start", "--program", program]).stdin(Stdio::null()).stdout(Stdio::piped());
    command.env("XDG_CACHE_HOME", caches).env_remove("MESA_SHADER_CACHE_DIR");
    await_verified(&mut command)
}

fn await_verified(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let mut said = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut said)?;
    }
    let time = begun.elapsed();
    let status = child.wait()?;
    if said != VERIFIED || !status.success() {
        return Err(format!("a started process gave no verified result ({status})").into());
    }
    Ok(time)
}
