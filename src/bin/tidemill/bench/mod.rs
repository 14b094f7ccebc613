//! `tidemill bench`: our figures beside those of strong anchors, measured in turns in the same run.

pub(crate) mod anchor;
mod elementwise;
mod overhead;
mod report;
mod runner;
pub(crate) mod work;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use tidemill::Accelerator;

use crate::Outcome;
use crate::style::{Style, complain, print};
use runner::{Effort, Runner};
use work::{Result, Work};

/// What can be said to `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this group
    #[arg(value_parser = PossibleValuesParser::new(GROUPS.iter().map(|group| group.name)))]
    group: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Fewer pairs: a first impression
    #[arg(long)]
    quick: bool,
}

/// Works that belong together. Each is made when its turn comes, so that only one holds memory.
struct Group {
    name: &'static str,
    works: &'static [fn(&Accelerator) -> Result<Work>],
}

/// Every group; a new one is a file beside this and a row here.
static GROUPS: &[Group] = &[
    Group { name: "overhead", works: overhead::WORKS },
    Group { name: "elementwise", works: elementwise::WORKS },
];

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
    let groups = GROUPS.iter().filter(|group| args.group.as_deref().is_none_or(|name| name == group.name));
    for make in groups.flat_map(|group| group.works) {
        match make(&gpu).and_then(|work| runner.measure(work)) {
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
    Ok(code)
}
