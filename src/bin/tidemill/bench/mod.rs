//! `tidemill bench`: our figures beside those of strong anchors, measured in turns in the same run.

pub(crate) mod anchor;
mod elementwise;
mod overhead;
mod reduce;
mod report;
mod runner;
pub(crate) mod work;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use tidemill::Accelerator;

use crate::Outcome;
use crate::style::{Style, complain, print};
use runner::{Effort, Runner};
use work::Make;

/// What can be said to `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this group, or only this work
    #[arg(value_parser = PossibleValuesParser::new(names()))]
    group: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Fewer pairs: a first impression
    #[arg(long)]
    quick: bool,
}

/// Works that belong together.
struct Group {
    name: &'static str,
    works: &'static [(&'static str, Make)],
}

/// Every group; a new one is a file beside this and a row here.
static GROUPS: &[Group] = &[
    Group { name: "overhead", works: overhead::WORKS },
    Group { name: "elementwise", works: elementwise::WORKS },
    Group { name: "reduce", works: reduce::WORKS },
];

/// Groups, then works.
fn names() -> impl Iterator<Item = &'static str> {
    let works = GROUPS.iter().flat_map(|group| group.works.iter().map(|(name, _)| *name));
    GROUPS.iter().map(|group| group.name).chain(works)
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
    let wanted =
        |group: &str, work: &str| args.group.as_deref().is_none_or(|name| name == group || name == work);
    for group in GROUPS {
        for (name, make) in group.works.iter().filter(|(name, _)| wanted(group.name, name)) {
            match make(&gpu).and_then(|work| runner.measure(name, work)) {
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
