//! `tidemill report`: what a device is, whether it computes rightly, how fast, and what its compiler makes of the
//! kernels: one file to attach to an issue. Nothing personal is in it.

mod page;
mod parts;
mod private;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::style::{Style, print};
use parts::{Job, Part};
use private::Private;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file: a page for a browser with the data in it, or the data alone where its name ends in `.json`
    #[arg(default_value = "tidemill-report.html")]
    file: PathBuf,
    /// A part of the cases and of the benchmarks, and little time for each: minutes on a software driver
    #[arg(long)]
    quick: bool,
    /// Only this part; may be said several times
    #[arg(long, value_enum)]
    only: Vec<Part>,
}

/// The number of the file's form. It goes up when a key changes its meaning or goes.
const FORM: u32 = 1;

pub(crate) fn run(args: &Args) -> Outcome {
    let parts: Vec<Part> = match &args.only[..] {
        [] => Part::value_variants().to_vec(),
        some => some.to_vec(),
    };
    let private = Private::of_this_process();
    let mut job = Job::new(args.quick);
    let mut report = head(args.quick);
    let mut failures = Vec::new();
    for part in parts {
        let begun = Instant::now();
        eprintln!("{} …", part.name());
        let (mut value, failure) = match job.run(part) {
            Ok(done) => (done.value, done.failure),
            Err(error) => {
                (json!({ "error": error.to_string() }), part.must_succeed().then(|| error.to_string()))
            }
        };
        if let Value::Object(fields) = &mut value {
            fields.insert("seconds".to_owned(), crate::json::figure(begun.elapsed().as_secs_f64()));
        }
        failures.extend(failure.map(|why| format!("{}: {why}", part.name())));
        report.insert(part.name().to_owned(), value);
    }
    report.insert("failures".to_owned(), failures.clone().into());
    let mut report = Value::Object(report);
    private.hide_in(&mut report);
    let is_data = args.file.extension().is_some_and(|end| end == "json");
    let text = if is_data { format!("{report:#}\n") } else { page::page(&report, &job.plots) };
    std::fs::write(&args.file, text)
        .map_err(|error| format!("{} could not be written: {error}", args.file.display()))?;
    print(&format!("{}\n", args.file.display()))?;
    for failure in &failures {
        eprintln!("{} {failure}", Style::stderr().bad("failed:"));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What made the report, and on what.
fn head(quick: bool) -> Map<String, Value> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let pairs = [
        ("form", FORM.into()),
        ("tidemill", env!("CARGO_PKG_VERSION").into()),
        ("quick", quick.into()),
        (
            "system",
            json!({ "os": std::env::consts::OS, "architecture": std::env::consts::ARCH, "threads": threads }),
        ),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
