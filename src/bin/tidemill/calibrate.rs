//! `tidemill calibrate`: measures again what CPU and device take.

use std::process::ExitCode;
use std::time::Instant;

use tidemill::Accelerator;
use tidemill::hybrid::{Class, Curve, Hybrid};

use crate::Outcome;
use crate::style::{Style, print, short};

#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Outcome {
    let gpu = Accelerator::global()?;
    gpu.wait_prewarmed();
    let begun = Instant::now();
    let calibration = Hybrid::calibrate(&gpu)?;
    let took = begun.elapsed();
    let style = Style::stdout();
    let mut text = style.bold(&format!("{:<22} {:<16} microseconds by amount", "side", "class")) + "\n";
    let mut row = |side: &str, class: &str, curve: &Curve| {
        let points = curve.points().iter().map(|(n, us)| format!("{n}: {}", short(*us)));
        text += &format!("{side:<22} {class:<16} {}\n", points.collect::<Vec<_>>().join("  "));
    };
    for (class, curve) in Class::ALL.iter().zip(&calibration.cpu) {
        row("CPU", class.name(), curve);
    }
    if let Some(times) = &calibration.gpu {
        for (class, curve) in Class::ALL.iter().zip(&times.ops) {
            row("device", class.name(), curve);
        }
        row("to the device", "bytes", &times.upload);
        row("from the device", "bytes", &times.download);
        text += &format!("a submission alone: {} us\n", short(times.submission_us));
    }
    print(&format!("{text}measured in {} ms and kept\n", short(took.as_secs_f64() * 1e3)))?;
    Ok(ExitCode::SUCCESS)
}
