//! `tidemill calibrate`: measures the times of CPU and device again.

use std::process::ExitCode;
use std::time::Instant;

use tidemill::Accelerator;
use tidemill::hybrid::{Calibration, Class, Curve, Hybrid};

use crate::Outcome;
use crate::json;
use crate::style::{Style, print, short};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// A curve, with its side and its quantity.
type Row<'a> = (&'static str, &'static str, &'a Curve);

fn classes<'a>(side: &'static str, curves: &'a [Curve]) -> impl Iterator<Item = Row<'a>> {
    Class::ALL.iter().zip(curves).map(move |(class, curve)| (side, class.name(), curve))
}

fn curves(calibration: &Calibration) -> Vec<Row<'_>> {
    let mut all: Vec<Row<'_>> = classes("CPU", &calibration.cpu).collect();
    if let Some(times) = &calibration.gpu {
        all.extend(classes("device", &times.ops));
        all.push(("to the device", "bytes", &times.upload));
        all.push(("from the device", "bytes", &times.download));
    }
    all
}

fn json_lines(calibration: &Calibration) -> String {
    let mut text = String::new();
    for (side, what, curve) in curves(calibration) {
        for (amount, us) in curve.points() {
            let fields = [
                ("side", side.into()),
                ("class", what.into()),
                ("amount", (*amount as u64).into()),
                ("us", json::figure(*us)),
                ("spread", json::figure(curve.spread())),
            ];
            text += &(json::line(&fields) + "\n");
        }
    }
    if let Some(times) = &calibration.gpu {
        let singles = [("submission_us", times.submission_us), ("dispatch_us", times.dispatch_us)];
        text += &(json::line(&singles.map(|(name, us)| (name, json::figure(us)))) + "\n");
    }
    text
}

pub(crate) fn run(args: &Args) -> Outcome {
    let gpu = Accelerator::global()?;
    gpu.wait_prewarmed();
    let begun = Instant::now();
    let calibration = Hybrid::calibrate(&gpu)?;
    let took = begun.elapsed();
    if args.json {
        print(&json_lines(&calibration))?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout();
    let columns = format!("{:<16} {:<15} {:>6}  microseconds by amount", "side", "class", "spread");
    let mut text = style.bold(&columns) + "\n";
    for (side, what, curve) in curves(&calibration) {
        let points = curve.points().iter().map(|(n, us)| format!("{n}: {}", short(*us)));
        let spread = format!("{:>6.2}", curve.spread());
        let spread = if curve.spread() <= 1.25 { spread } else { style.bad(&spread) };
        text += &format!("{side:<16} {what:<15} {spread}  {}\n", points.collect::<Vec<_>>().join("  "));
    }
    if let Some(times) = &calibration.gpu {
        text += &format!("a submission alone: {} us\n", short(times.submission_us));
        text += &format!("each dispatch in it: {} us\n", short(times.dispatch_us));
    }
    text += "spread: for the least certain amount, the time in another pass divided by the smallest time\n";
    print(&format!("{text}measured in {} ms and kept\n", short(took.as_secs_f64() * 1e3)))?;
    Ok(ExitCode::SUCCESS)
}
