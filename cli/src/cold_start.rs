//! A process that starts, adds once, checks the result and says so: what `cold_start_second` measures.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use tidemill::Accelerator;

use crate::Outcome;
use crate::bench::anchor::vulkan::Bare;
use crate::bench::work::{Result, expect};
use crate::style::print;

/// What can be said to `cold-start`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Drive the device with this index bare
    #[arg(long)]
    bare: Option<usize>,
}

const N: usize = 1024;
const VERIFIED: &str = "verified\n";

pub(crate) fn run(args: &Args) -> Outcome {
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
