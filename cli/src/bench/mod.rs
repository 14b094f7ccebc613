//! `tidemill bench`: compares the engine with strong baselines, measured in turns in the same run.

pub(crate) mod baseline;
pub(crate) mod benchmark;
mod conv;
mod elementwise;
pub(crate) mod graph;
mod hybrid;
mod matmul;
mod nn;
mod ops;
mod overhead;
mod primitives;
mod reduce;
pub(crate) mod report;
mod runner;
mod start;
mod stream;
mod timed;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use tidemill::Accelerator;

use crate::Outcome;
use crate::style::{Style, complain, print};
use benchmark::Make;
use runner::{Effort, Measured, Runner};

/// Arguments of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this group, or only this benchmark
    #[arg(value_parser = PossibleValuesParser::new(names()))]
    group: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Fewer pairs: a first impression
    #[arg(long)]
    quick: bool,
}

/// A group of benchmarks.
struct Group {
    name: &'static str,
    benchmarks: &'static [(&'static str, Make)],
    /// Runs only when it is named.
    on_request: bool,
}

const fn group(name: &'static str, benchmarks: &'static [(&'static str, Make)]) -> Group {
    Group { name, benchmarks, on_request: false }
}

/// Every group; a new one is a file beside this and a row here.
static GROUPS: &[Group] = &[
    group("overhead", overhead::BENCHMARKS),
    group("elementwise", elementwise::BENCHMARKS),
    group("reduce", reduce::BENCHMARKS),
    group("primitives", primitives::BENCHMARKS),
    group("matmul", matmul::BENCHMARKS),
    group("graph", graph::BENCHMARKS),
    group("stream", stream::BENCHMARKS),
    group("conv", conv::BENCHMARKS),
    group("nn", nn::BENCHMARKS),
    group("hybrid", hybrid::BENCHMARKS),
    Group { on_request: true, ..group("ops", ops::BENCHMARKS) },
    Group { on_request: true, ..group("start", start::BENCHMARKS) },
];

/// Groups, then benchmarks.
fn names() -> impl Iterator<Item = &'static str> {
    let benchmarks = GROUPS.iter().flat_map(|group| group.benchmarks.iter().map(|(name, _)| *name));
    GROUPS.iter().map(|group| group.name).chain(benchmarks)
}

pub(crate) fn run(args: &Args) -> Outcome {
    let runner = Runner::new(if args.quick { Effort::QUICK } else { Effort::FULL })?;
    let gpu = Accelerator::global()?;
    // Pipelines are not made in the background while others are measured.
    gpu.wait_prewarmed();
    let style = Style::stdout();
    if !args.json {
        let device = gpu.device();
        print(&format!("{}, {}\n\n{}", device.name, device.driver, report::head(style)))?;
    }
    let mut code = ExitCode::SUCCESS;
    for group in GROUPS {
        let wanted = |benchmark: &str| match args.group.as_deref() {
            Some(name) => name == group.name || name == benchmark,
            None => !group.on_request,
        };
        for (name, make) in group.benchmarks.iter().filter(|(name, _)| wanted(name)) {
            match make(&gpu).and_then(|benchmark| runner.measure(name, benchmark)) {
                Ok(Some(measured)) if args.json => print(&report::json_line(&measured))?,
                Ok(Some(measured)) => print(&report::row(&measured, style))?,
                Ok(None) => {}
                Err(error) => {
                    complain(&*error);
                    code = ExitCode::FAILURE;
                }
            }
            if runner.stopped() {
                return Ok(ExitCode::from(130));
            }
        }
    }
    Ok(code)
}

/// What a quick report measures.
const BRIEFLY: [&str; 5] = ["add_1k_wait", "relu_abcd_4m", "sum_4m", "matmul_512", "conv_64x56_64_3x3"];

/// The benchmarks of a report, with the errors of those that failed by name: but for those that are only on request,
/// and for those of Hybrid, whose table is a part of the report.
pub(crate) fn for_report(
    gpu: &Accelerator,
    quick: bool,
    progress: impl Fn(&str),
) -> (Vec<Measured>, Vec<(&'static str, String)>) {
    let runner = Runner::uninterrupted(if quick { Effort::BRIEF } else { Effort::QUICK });
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    for group in GROUPS.iter().filter(|group| !group.on_request && group.name != "hybrid") {
        for (name, make) in group.benchmarks.iter().filter(|(name, _)| !quick || BRIEFLY.contains(name)) {
            progress(name);
            match make(gpu).and_then(|benchmark| runner.measure(name, benchmark)) {
                Ok(one) => measured.extend(one),
                Err(error) => failed.push((*name, error.to_string())),
            }
        }
    }
    (measured, failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    #[test]
    fn a_quick_report_measures_what_there_is() {
        for name in BRIEFLY {
            assert!(names().any(|known| known == name), "{name}");
        }
    }

    #[test]
    fn every_case_with_a_name_is_timed_by_the_work_of_that_name() {
        let mut benchmarks: Vec<&str> = names().collect();
        for case in cases::all() {
            let Some(name) = case.bench else { continue };
            assert!(benchmarks.contains(&name.as_str()), "no benchmark is {name}");
        }
        let count = benchmarks.len();
        benchmarks.sort_unstable();
        benchmarks.dedup();
        assert_eq!(benchmarks.len(), count, "two benchmarks have one name");
    }

    #[test]
    fn every_work_is_in_the_docs() {
        let docs = include_str!("../../../docs/benchmarks.md");
        for name in names().filter(|name| !name.starts_with("op_")) {
            let named = docs.contains(&format!("`{name}`")) || docs.contains(&format!("| {name} |"));
            assert!(named, "docs/benchmarks.md does not name {name}");
        }
    }
}
