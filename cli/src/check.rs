//! `tidemill cases`: the table of cases, and the accuracy statement that it gives.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Value, json};
use tidemill::{Config, Prewarm};

use super::Outcome;
use super::cases;
use super::cases::report::{Report, Row, run_table};

/// Which kernel variants run the cases.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Variants {
    /// Those that the device uses
    Default,
    /// Every one in the catalog, both load paths included
    All,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only operations whose name contains this
    op: Option<String>,
    /// Which kernel variants run the cases
    #[arg(long, value_enum, default_value = "default")]
    variants: Variants,
    /// Only a part of the cases: those at special values, and each eighth of the others that are not large
    #[arg(long)]
    quick: bool,
    /// Run the cases on the CPU's twins instead; needs no Vulkan
    #[arg(long, conflicts_with = "variants")]
    cpu: bool,
    /// Print one JSON object a line
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the table as it stands in the docs
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let mut table = cases::all();
    if let Some(part) = &args.op {
        table.retain(|case| case.op.contains(part.as_str()));
        if table.is_empty() {
            return Err(format!("no operation's name contains {part:?}").into());
        }
    }
    if args.quick {
        table = cases::some(table);
    }
    let all = args.variants == Variants::All;
    // All of them are the catalog's, whatever has been tuned: otherwise the one in use by default would run on nothing.
    let config = || Config::new().prewarm(Prewarm::Off).tuned(!all);
    let progress = |what: &str| {
        if std::io::stderr().is_terminal() {
            eprintln!("… {what}");
        }
    };
    let report = if args.cpu {
        let mut report = Report::default();
        report.run_on_cpu(&table);
        report
    } else {
        run_table(&table, all, config, progress)?
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        print_json(&mut out, &report)?;
    } else {
        print_table(&mut out, &report, args.markdown)?;
    }
    for failure in report.rows.values().flat_map(|row| &row.failures) {
        eprintln!("failed: {failure}");
    }
    let failed = report.totals().1 > 0 || report.guard_bytes_touched() > 0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_json(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    for (op, row) in &report.rows {
        writeln!(out, "{}", row_json(op, row))?;
    }
    let (cases, failed) = report.totals();
    let line =
        json!({ "cases": cases, "failed": failed, "guard_bytes_touched": report.guard_bytes_touched() });
    writeln!(out, "{line}")
}

/// An operation as scripts read it.
pub(crate) fn row_json(op: &str, row: &Row) -> Value {
    json!({
        "op": op,
        "cases": row.cases,
        "failed": row.failures.len(),
        "worst": row.worst.worst,
        "unit": row.worst.bound.unit(),
        "allowed": row.worst.bound.limit(),
        "where": row.worst_case,
        "guard_bytes_touched": row.guard_bytes_touched,
    })
}

fn print_table(out: &mut impl Write, report: &Report, markdown: bool) -> std::io::Result<()> {
    let number = |x: f64| if x == 0.0 { "0".to_owned() } else { format!("{x:.2e}") };
    let worst = |row: &Row| match row.worst.bound.unit() {
        "bits" => "exact".to_owned(),
        "ulp" => format!("{:.2} ulp", row.worst.worst),
        unit => format!("{} {unit}", number(row.worst.worst)),
    };
    let allowed = |row: &Row| match row.worst.bound.unit() {
        "bits" => "exact".to_owned(),
        "ulp" => format!("{} ulp", row.worst.bound.limit()),
        unit => format!("{} {unit}", number(row.worst.bound.limit())),
    };
    if markdown {
        writeln!(
            out,
            "| operation | cases | worst error | allowed | guard bytes | where |\n|---|---:|---|---|---:|---|"
        )?;
    } else {
        let [op, worst, allowed] = ["operation", "worst error", "allowed"];
        writeln!(out, "{op:<18} {:>6} {worst:>14} {allowed:>14} {:>6}  where", "cases", "guard")?;
    }
    for (op, row) in &report.rows {
        let (n, worst, allowed, place) = (row.cases, worst(row), allowed(row), &row.worst_case);
        let guard = row.guard_bytes_touched;
        if markdown {
            writeln!(out, "| `{op}` | {n} | {worst} | {allowed} | {guard} | {place} |")?;
        } else {
            writeln!(out, "{op:<18} {n:>6} {worst:>14} {allowed:>14} {guard:>6}  {place}")?;
        }
    }
    let (cases, failed) = report.totals();
    let guard = report.guard_bytes_touched();
    writeln!(
        out,
        "{}{} cases, {failed} failed, {guard} guard bytes touched",
        if markdown { "\n" } else { "" },
        thousands(cases)
    )
}

/// `1812` as `1,812`.
fn thousands(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", thousands(n / 1000), n % 1000) }
}
