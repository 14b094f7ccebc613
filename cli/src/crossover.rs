//! `tidemill crossover`: the table of operations and sizes, on both sides, and the choice of `Hybrid`.

pub(crate) mod page;
pub(crate) mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use tidemill::Accelerator;
use tidemill::hybrid::{Op, Side};

use crate::Outcome;
use crate::json;
use crate::style::{Style, grouped, print, short};
use table::{Cell, Table};
use tidemill_cases::crossover::{self as cells, OPS};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this operation
    op: Option<String>,
    /// Elements of the largest operands
    #[arg(long, default_value_t = 1 << 24)]
    largest: usize,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Write a page with a plot for each operation
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let gpu = Accelerator::global()?;
    gpu.wait_prewarmed();
    let style = Style::stdout();
    let mut table = Table::new(&gpu)?;
    let ops: Vec<_> =
        OPS.iter().filter(|op| args.op.as_deref().is_none_or(|name| op.name() == name)).collect();
    if ops.is_empty() {
        let known: Vec<_> = OPS.iter().map(|op| op.name()).collect();
        return Err(format!("there is no such operation in the table; there are {}", known.join(", ")).into());
    }
    if !args.json {
        let columns = format!(
            "{:<12} {:>11} {:>12} {:>12} {:>14} {:>12} {:>6} {:>7}",
            "operation", "n", "CPU us", "GPU us", "GPU resident", "Auto us", "chose", "regret"
        );
        print(&format!("{}\n", style.bold(&columns)))?;
    }
    let mut cells = Vec::new();
    for op in ops {
        for n in cells::sizes().filter(|n| *n <= args.largest) {
            let cell = table.measure(*op, n)?;
            print(&if args.json { json_line(&cell) } else { row(&cell, style) })?;
            cells.push(cell);
        }
    }
    if let Some(file) = &args.html {
        std::fs::write(file, page_of(&gpu, &cells))
            .map_err(|error| format!("{} could not be written: {error}", file.display()))?;
    }
    if !args.json {
        let (median, worst) = table::regret(&cells);
        print(&format!("\nregret: {median:.2} in the median, {worst:.2} at worst\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of some operations up to a size, measured now.
pub(crate) fn measured_page(gpu: &Accelerator, ops: &[Op], largest: usize) -> tidemill::Result<String> {
    let mut table = Table::new(gpu)?;
    let mut measured = Vec::new();
    for op in ops {
        for n in cells::sizes().filter(|n| *n <= largest) {
            measured.push(table.measure(*op, n)?);
        }
    }
    Ok(page_of(gpu, &measured))
}

fn page_of(gpu: &Accelerator, cells: &[Cell]) -> String {
    page::page(&format!("{}, {}", gpu.device().name, gpu.device().driver), cells)
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Cpu => "CPU",
        _ => "GPU",
    }
}

fn row(cell: &Cell, style: Style) -> String {
    let regret = format!("{:>7.2}", cell.regret);
    let regret = if cell.regret <= 1.25 { regret } else { style.bad(&regret) };
    format!(
        "{:<12} {:>11} {:>12} {:>12} {:>14} {:>12} {:>6} {regret}\n",
        cell.op.name(),
        grouped(cell.n as u64),
        short(cell.cpu_us),
        short(cell.gpu_us),
        short(cell.resident_us),
        short(cell.auto_us),
        side(cell.chose),
    )
}

fn json_line(cell: &Cell) -> String {
    json::line(&fields(cell)) + "\n"
}

/// A cell as scripts read it.
pub(crate) fn fields(cell: &Cell) -> [(&'static str, Value); 8] {
    [
        ("op", cell.op.name().into()),
        ("n", cell.n.into()),
        ("cpu_us", json::figure(cell.cpu_us)),
        ("gpu_us", json::figure(cell.gpu_us)),
        ("gpu_resident_us", json::figure(cell.resident_us)),
        ("auto_us", json::figure(cell.auto_us)),
        ("chose", side(cell.chose).into()),
        ("regret", json::figure(cell.regret)),
    ]
}
