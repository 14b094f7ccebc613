//! `tidemill tour`: the main job, start to end, checked.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tidemill::hybrid::Op;
use tidemill::profile::{Profiling, Run};
use tidemill::stats::Stats;
use tidemill::{Accelerator, Config, Error, Prewarm, Recording, Tensor};

use crate::style::{Style, bytes, print, short};
use crate::{Outcome, crossover};

/// Arguments of `tour`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the trace, the report and the capture go
    #[arg(long, default_value = "target/tour")]
    out: PathBuf,
    /// Only make the capture: RenderDoc must be in the process before anything else
    #[arg(long, hide = true)]
    capture: bool,
}

/// The largest allowed error against the CPU: sums of 784 products in f32, against f64.
const TOLERANCE: f32 = 1e-5;
/// Rows of a batch, and the widths of the layers.
const BATCH: usize = 64;
const WIDTHS: [usize; 3] = [784, 256, 10];

/// A small network and a batch for it, on the host.
pub(crate) struct Network {
    x: Vec<f32>,
    w1: Vec<f32>,
    b1: Vec<f32>,
    w2: Vec<f32>,
}

impl Network {
    const STEPS: &'static str = "matmul + bias + relu, matmul, softmax";

    pub(crate) fn new() -> Network {
        let wave = |n: usize, step: f32, scale: f32| -> Vec<f32> {
            (0..n).map(|i| scale * (i as f32 * step).sin()).collect()
        };
        let [wide, hidden, classes] = WIDTHS;
        Network {
            x: wave(BATCH * wide, 0.37, 1.0),
            w1: wave(wide * hidden, 0.11, 0.1),
            b1: wave(hidden, 0.73, 0.5),
            w2: wave(hidden * classes, 0.53, 0.2),
        }
    }

    fn upload(&self, gpu: &Accelerator) -> tidemill::Result<[Tensor; 4]> {
        let [wide, hidden, classes] = WIDTHS;
        Ok([
            gpu.upload(&self.x, [BATCH, wide])?,
            gpu.upload(&self.w1, [wide, hidden])?,
            gpu.upload(&self.b1, [hidden])?,
            gpu.upload(&self.w2, [hidden, classes])?,
        ])
    }

    /// The same on the CPU, in f64.
    fn reference(&self) -> Vec<f32> {
        let [wide, hidden, classes] = WIDTHS;
        let product = |x: &[f64], w: &[f32], rows: usize, columns: usize| -> Vec<f64> {
            (0..columns).map(|j| (0..rows).map(|i| x[i] * f64::from(w[i * columns + j])).sum()).collect()
        };
        self.x
            .chunks_exact(wide)
            .flat_map(|row| {
                let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
                let mut h = product(&row, &self.w1, wide, hidden);
                h.iter_mut().zip(&self.b1).for_each(|(h, b)| *h = (*h + f64::from(*b)).max(0.0));
                let y = product(&h, &self.w2, hidden, classes);
                let largest = y.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let e: Vec<f64> = y.iter().map(|y| (y - largest).exp()).collect();
                let sum: f64 = e.iter().sum();
                e.into_iter().map(move |e| (e / sum) as f32)
            })
            .collect()
    }
}

/// One round: what came out, and how long it took from `begin_recording` to completion.
pub(crate) struct Round {
    result: Vec<f32>,
    recorded: Duration,
    completed: Duration,
}

/// The job as a recording that is still open, and what it keeps.
fn record(gpu: &Accelerator, [x, w1, b1, w2]: &[Tensor; 4]) -> tidemill::Result<(Recording, Tensor)> {
    let r = gpu.begin_recording()?;
    let h = r.matmul(x, w1)?;
    let h = r.add(h, b1)?;
    let h = r.relu(h)?;
    let y = r.matmul(h, w2)?;
    let p = r.softmax(y, -1)?;
    let kept = r.keep(p)?;
    Ok((r, kept))
}

pub(crate) fn round(gpu: &Accelerator, host: &Network) -> tidemill::Result<Round> {
    let tensors = host.upload(gpu)?;
    let begun = Instant::now();
    let (r, kept) = record(gpu, &tensors)?;
    let submission = r.end_recording()?;
    let recorded = begun.elapsed();
    submission.wait()?;
    let completed = begun.elapsed();
    Ok(Round { result: kept.read()?, recorded, completed })
}

/// The worst error relative to the reference, and where it is.
fn worst(got: &[f32], expected: &[f32]) -> (f32, usize) {
    let error = |(got, expected): (&f32, &f32)| {
        let error = (got - expected).abs() / expected.abs().max(1.0);
        if error.is_nan() { f32::INFINITY } else { error }
    };
    let errors = got.iter().zip(expected).map(error).enumerate();
    errors.fold((0.0, 0), |worst, (i, e)| if e > worst.0 { (e, i) } else { worst })
}

/// The same job under the validation layer: what it says, or `None` where it is not installed.
fn validate(host: &Network) -> tidemill::Result<Option<Vec<String>>> {
    let config = Config::new().validation(true).no_cache().prewarm(Prewarm::Off);
    let gpu = match Accelerator::new(&config) {
        Err(Error::LayerMissing { .. }) => return Ok(None),
        other => other?,
    };
    round(&gpu, host)?;
    Ok(Some(gpu.validation_messages()))
}

/// A few rounds, profiled. Those that keep their overlaps show their graph: it is the same for the others.
fn profile(gpu: &Accelerator, host: &Network, mode: Profiling) -> tidemill::Result<Run> {
    let explain = || record(gpu, &host.upload(gpu)?)?.0.explain();
    let graph = (mode == Profiling::Timeline).then(explain).transpose()?;
    let session = gpu.begin_profiling(&format!("tour, {mode}"), mode)?;
    if let Some(graph) = graph {
        session.graph("one round", graph);
    }
    for _ in 0..3 {
        round(gpu, host)?;
    }
    session.finish()
}

/// The job once, recorded by RenderDoc.
fn capture(out: &Path) -> Outcome {
    let gpu = Accelerator::new(&Config::new().renderdoc(true).prewarm(Prewarm::Off))?;
    let host = Network::new();
    let file = gpu.capture(&out.join("tour").to_string_lossy(), || round(&gpu, &host).map(drop))?.1;
    print(&format!("{}\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The same from a process of its own, so that RenderDoc slows nothing else down: the file, or why there is none.
fn capture_apart(out: &Path) -> std::io::Result<Result<String, String>> {
    let this = std::env::current_exe()?;
    let done =
        std::process::Command::new(this).arg("tour").arg("--capture").arg("--out").arg(out).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Ok(if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) })
}

/// The page of plots beside the report.
const CROSSOVER: &str = "crossover.html";
/// Of what it shows a part: `tidemill crossover` has all.
const CROSSOVER_OPS: [Op; 4] = [Op::Add, Op::Gelu, Op::Softmax, Op::Matmul];
const CROSSOVER_LARGEST: usize = 1 << 18;

/// Writes what people and tools look at: the trace, the report, and the plots that it links to.
fn write_reports(
    out: &Path,
    [timeline, isolated]: [&Run; 2],
    crossover: &str,
) -> std::io::Result<[PathBuf; 3]> {
    std::fs::create_dir_all(out)?;
    let files = ["trace.json", "report.html", CROSSOVER].map(|name| out.join(name));
    let report = tidemill::profile::html_report("Tidemill: a tour", &[timeline, isolated]);
    std::fs::write(&files[0], timeline.trace_json())?;
    std::fs::write(&files[1], linked(&report))?;
    std::fs::write(&files[2], crossover)?;
    Ok(files)
}

/// The report with a link to the plots at its end.
fn linked(report: &str) -> String {
    let link = format!("<p><a href=\"{CROSSOVER}\">CPU or GPU, by size</a></p>\n<footer>");
    report.replacen("<footer>", &link, 1)
}

/// The difference between two readings of the statistics.
fn stats_text(before: &Stats, after: &Stats) -> String {
    let count = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    format!(
        "{}, {}, {}; pool: {}, {}, {} at its peak",
        count(after.submissions - before.submissions, "submission", "submissions"),
        count(after.dispatches - before.dispatches, "dispatch", "dispatches"),
        count(after.barriers - before.barriers, "barrier", "barriers"),
        count(after.pool.hits - before.pool.hits, "hit", "hits"),
        count(after.pool.misses - before.pool.misses, "miss", "misses"),
        bytes(after.pool.peak_bytes)
    )
}

pub(crate) fn run(args: &Args) -> Outcome {
    if args.capture {
        return capture(&args.out);
    }
    let style = Style::stdout();
    let row = |name: &str, text: &str| print(&format!("{} {text}\n", style.dim(&format!("{name:<10}"))));
    let gpu = Accelerator::global()?;
    let device = gpu.device();
    print(&format!("{}\n", style.bold(&format!("tidemill on {}", device.name))))?;
    row("device", &format!("{}, {}", device.kind, device.driver))?;

    let host = Network::new();
    let expected = host.reference();
    let first = round(&gpu, &host)?;
    let before = gpu.stats();
    let second = round(&gpu, &host)?;
    let after = gpu.stats();
    let [wide, hidden, classes] = WIDTHS;
    let network = format!("{wide}-{hidden}-{classes}, a batch of {BATCH}");
    row("job", &format!("{} ({network}), recorded, then submitted once", Network::STEPS))?;
    let ms = |time: Duration| short(time.as_secs_f64() * 1e3);
    row(
        "time",
        &format!(
            "{} ms from begin to completed, {} ms of it recording; {} ms the first time",
            ms(second.completed),
            ms(second.recorded),
            ms(first.completed)
        ),
    )?;
    row("stats", &stats_text(&before, &after))?;

    let mut passed = true;
    let (error, at) = [&first, &second]
        .map(|round| worst(&round.result, &expected))
        .into_iter()
        .fold((0.0, 0), |worst, e| if e.0 > worst.0 { e } else { worst });
    if error <= TOLERANCE {
        row("result", &style.good(&format!("equal to the CPU's, worst error {error:.1e}")))?;
    } else {
        passed = false;
        let (got, wanted) = (second.result[at], expected[at]);
        row("result", &style.bad(&format!("differs from the CPU's: [{at}] is {got}, should be {wanted}")))?;
    }
    let (timeline, isolated) =
        (profile(&gpu, &host, Profiling::Timeline)?, profile(&gpu, &host, Profiling::Isolated)?);
    print(&format!("\n{timeline}\n{isolated}\n"))?;
    let plots = crossover::measured_page(&gpu, &CROSSOVER_OPS, CROSSOVER_LARGEST)?;
    let [trace, report, plots] = write_reports(&args.out, [&timeline, &isolated], &plots)?;
    row("trace", &format!("{}, for ui.perfetto.dev", trace.display()))?;
    row("report", &format!("{}, for a browser; it links to {}", report.display(), plots.display()))?;
    match capture_apart(&args.out)? {
        Ok(file) => row("capture", &format!("{file}, for qrenderdoc"))?,
        Err(why) => row("capture", &why)?,
    }
    match validate(&host)? {
        None => row("validation", "the layer is not installed (`tidemill info` says how to get it)")?,
        Some(messages) if messages.is_empty() => {
            row("validation", &style.good("no messages from the layer"))?
        }
        Some(messages) => {
            passed = false;
            row("validation", &style.bad(&messages.join("\n")))?;
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_links_to_the_plots() {
        let page = tidemill::profile::html_report("a tour", &[]);
        assert!(!page.contains(CROSSOVER));
        assert_eq!(linked(&page).matches("<a href=\"crossover.html\">").count(), 1);
    }
}
