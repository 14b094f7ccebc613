//! `tidemill tune`: measures every candidate on the device, and keeps the winners.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tidemill::tune::{Trial, TrialOutcome, TuneOptions, TuneProgress, Tuning};
use tidemill::{Accelerator, Config, Prewarm};

use crate::Outcome;
use crate::json::line;
use crate::style::Style;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these families of kernels; `tidemill info` names them
    families: Vec<String>,
    /// Seconds after which no new candidate is begun
    #[arg(long, default_value_t = 60)]
    budget: u64,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let gpu = Accelerator::new(&Config::new().prewarm(Prewarm::Off))?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopper = stop.clone();
    // Without a handler it ends like any program does.
    let _ = ctrlc::set_handler(move || stopper.store(true, Ordering::Relaxed));
    let mut options = TuneOptions::new().budget(Duration::from_secs(args.budget));
    for family in &args.families {
        options = options.family(family);
    }
    let watched = std::io::stderr().is_terminal();
    let progress = |progress: &TuneProgress<'_>| {
        if watched {
            let Trial { family, class, variant, .. } = progress.trial;
            let (tried, total, s) = (progress.tried, progress.total, progress.elapsed.as_secs());
            eprint!("\r\x1b[K{tried}/{total}  {s} s  {family} {class} {variant}");
        }
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let tuning = gpu.tune(&options, progress)?;
    if watched {
        eprint!("\r\x1b[K");
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        print_json(&mut out, &tuning)?
    } else {
        print_table(&mut out, &gpu, &tuning)?
    }
    Ok(if tuning.cancelled { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The outcome of a candidate, in a word.
fn outcome(outcome: &TrialOutcome) -> &'static str {
    match outcome {
        TrialOutcome::Measured { .. } => "measured",
        TrialOutcome::Wrong => "wrong",
        TrialOutcome::Impossible => "impossible",
        TrialOutcome::Failed(_) => "failed",
        _ => "other",
    }
}

/// Whether its result was wrong.
pub(crate) fn is_wrong(trial: &Trial) -> bool {
    matches!(trial.outcome, TrialOutcome::Wrong)
}

fn print_json(out: &mut impl Write, tuning: &Tuning) -> std::io::Result<()> {
    for trial in &tuning.trials {
        writeln!(out, "{}", line(&fields(trial)))?;
    }
    Ok(())
}

/// A candidate as scripts read it.
pub(crate) fn fields(trial: &Trial) -> [(&'static str, Value); 8] {
    [
        ("family", trial.family.into()),
        ("class", trial.class.into()),
        ("work", trial.work.as_str().into()),
        ("variant", trial.variant.into()),
        ("outcome", outcome(&trial.outcome).into()),
        ("ns", trial.outcome.ns().map_or(Value::Null, Value::from)),
        ("default", trial.is_default.into()),
        ("winner", trial.is_winner.into()),
    ]
}

fn print_table(out: &mut impl Write, gpu: &Accelerator, tuning: &Tuning) -> std::io::Result<()> {
    let style = Style::stdout();
    writeln!(out, "{} {}", style.bold(&gpu.device().name), style.dim(&gpu.device().driver))?;
    let mut last = None;
    for trial in &tuning.trials {
        let contest = (trial.family, trial.class);
        if last != Some(contest) {
            let heading = format!("{} {}", trial.family, trial.class);
            writeln!(out, "\n{}  {}", style.bold(&heading), style.dim(&trial.work))?;
            last = Some(contest);
        }
        let time = match &trial.outcome {
            TrialOutcome::Measured { ns } => format!("{:.1} µs", *ns as f64 / 1e3),
            TrialOutcome::Wrong => "wrong result".to_owned(),
            TrialOutcome::Impossible => "impossibly fast".to_owned(),
            TrialOutcome::Failed(why) => why.clone(),
            _ => String::new(),
        };
        let mark = match (trial.is_winner, trial.is_default) {
            (true, true) => style.good("winner, as by default"),
            (true, false) => style.good("winner"),
            (false, true) => style.dim("default"),
            (false, false) => String::new(),
        };
        writeln!(out, "  {:<16} {time:>14}  {mark}", trial.variant)?;
    }
    let seconds = tuning.elapsed.as_secs_f64();
    match (&tuning.file, tuning.cancelled, tuning.out_of_time) {
        (_, true, _) => writeln!(out, "\ncancelled after {seconds:.1} s: nothing is changed"),
        (_, _, true) => {
            writeln!(
                out,
                "\nout of time after {seconds:.1} s: classes that are not shown whole keep their earlier variants"
            )
        }
        (Some(file), ..) => writeln!(out, "\n{seconds:.1} s; kept in {}", file.display()),
        (None, ..) => writeln!(out, "\n{seconds:.1} s; nothing is kept on disk"),
    }
}
