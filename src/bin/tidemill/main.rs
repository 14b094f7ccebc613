//! The command line: what the machine offers, a tour of the engine, and its speed.

mod bench;
#[allow(unreachable_pub, reason = "the tests include it too")]
mod cases;
mod check;
mod cold_start;
mod info;
mod json;
mod style;
mod tour;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A Vulkan compute engine, from the terminal.
#[derive(Parser)]
#[command(name = "tidemill", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Devices, drivers and limits; what will be used; what is missing and how to get it
    Info(info::Args),
    /// Run the main job on the best device there is, and check the result
    Tour(tour::Args),
    /// Compare the engine with strong anchors, measured in the same run
    Bench(bench::Args),
    /// Run every case of every operation against a reference in f64, and print the worst errors
    Cases(check::Args),
    #[command(hide = true)]
    ColdStart(cold_start::Args),
}

/// How a subcommand ends: an exit code, or an error for the user to read.
type Outcome = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Info(args) => info::run(&args),
        Command::Tour(args) => tour::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Cases(args) => check::run(&args),
        Command::ColdStart(args) => cold_start::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        // Whoever reads our output may go when they have seen enough.
        let closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
        if error.downcast_ref().is_some_and(closed) {
            return ExitCode::SUCCESS;
        }
        style::complain(&*error);
        ExitCode::FAILURE
    })
}
