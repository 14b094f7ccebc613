//! The command line: devices of the machine, a tour of the engine, and its speed.

mod bench;
mod calibrate;
mod check;
mod cold_start;
mod counters;
mod crossover;
mod info;
mod isa;
mod json;
mod report;
mod style;
mod tour;
mod tune;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tidemill_cases as cases;

/// A Vulkan compute engine, from the terminal.
#[derive(Parser)]
#[command(name = "tidemill", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print devices, drivers and limits, what will be used, what is missing and how to get it
    Info(info::Args),
    /// Run the main job on the best device there is, and check the result
    Tour(tour::Args),
    /// Compare the engine with strong baselines, measured in the same run
    Bench(bench::Args),
    /// Run every case of every operation against a reference in f64, and print the worst errors
    Cases(check::Args),
    /// Show where each operation runs, by size: the times of both sides, the choice, and its cost
    Crossover(crossover::Args),
    /// Measure the times of the CPU and the device again
    Calibrate(calibrate::Args),
    /// Measure every kernel variant on this device, and use the best from now on
    Tune(tune::Args),
    /// Write device, cases, benchmarks, tuning, crossover and the driver's statistics into one file to attach to an
    /// issue
    Report(report::Args),
    /// Compile the kernels for GPUs, without a GPU, and print registers, spills, occupancy and instructions
    Isa(isa::Args),
    #[command(hide = true)]
    ColdStart(cold_start::Args),
    #[command(hide = true)]
    Counters(counters::Args),
}

/// How a subcommand ends: an exit code, or an error for the user to read.
type Outcome = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Info(args) => info::run(&args),
        Command::Tour(args) => tour::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Cases(args) => check::run(&args),
        Command::Crossover(args) => crossover::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Isa(args) => isa::run(&args),
        Command::ColdStart(args) => cold_start::run(&args),
        Command::Counters(args) => counters::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        // The reader of our output may close it early.
        let closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
        if error.downcast_ref().is_some_and(closed) {
            return ExitCode::SUCCESS;
        }
        style::complain(&*error);
        ExitCode::FAILURE
    })
}
