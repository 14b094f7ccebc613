//! `tidemill tour`: the main job, start to end, checked.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tidemill::{Accelerator, Config, Error, Prewarm, Profiling, Recording, Run, Stats, Tensor, Value};

use crate::Outcome;
use crate::style::{Style, bytes, grouped, print, short};

/// What can be said to `tour`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the trace, the report and the capture go
    #[arg(long, default_value = "target/tour")]
    out: PathBuf,
    /// Only make the capture: RenderDoc must be in the process before anything else
    #[arg(long, hide = true)]
    capture: bool,
}

/// Elements of each operand.
const N: usize = 1 << 20;
/// How far the device may be from the CPU: Vulkan allows a division 2.5 units in the last place.
const TOLERANCE: f32 = 1e-6;

/// The operands, on the host.
struct Operands {
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Operands {
    fn new() -> Operands {
        let wave = |step: f32, low: f32| -> Vec<f32> {
            (0..N).map(|i| low + (i as f32 * step).sin().abs()).collect()
        };
        Operands { a: wave(0.37, 0.5), b: wave(0.11, -1.0), c: wave(0.73, 1.0) }
    }

    /// The job, as the engine records it. What it is called stands beside it.
    fn record(r: &mut Recording, a: &Tensor, b: &Tensor, c: &Tensor) -> tidemill::Result<Value> {
        let sum = r.add(a, b)?;
        let product = r.mul(sum, c)?;
        let difference = r.sub(product, b)?;
        r.div(difference, a)
    }

    const STEPS: &'static str = "add, mul, sub, div";

    /// The same on the CPU.
    fn reference(&self) -> Vec<f32> {
        let operands = self.a.iter().zip(&self.b).zip(&self.c);
        operands.map(|((a, b), c)| ((a + b) * c - b) / a).collect()
    }
}

/// One round: what came out, and how long it took from `begin_recording` to completion.
struct Round {
    result: Vec<f32>,
    recorded: Duration,
    completed: Duration,
}

fn round(gpu: &Accelerator, host: &Operands) -> tidemill::Result<Round> {
    let (a, b, c) = (gpu.upload(&host.a, [N])?, gpu.upload(&host.b, [N])?, gpu.upload(&host.c, [N])?);
    let begun = Instant::now();
    let mut r = gpu.begin_recording()?;
    let value = Operands::record(&mut r, &a, &b, &c)?;
    let kept = r.keep(value)?;
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
fn validate(host: &Operands) -> tidemill::Result<Option<Vec<String>>> {
    let config = Config::new().validation(true).no_cache().prewarm(Prewarm::Off);
    let gpu = match Accelerator::new(&config) {
        Err(Error::LayerMissing { .. }) => return Ok(None),
        other => other?,
    };
    round(&gpu, host)?;
    Ok(Some(gpu.validation_messages()))
}

/// A few rounds, profiled.
fn profile(gpu: &Accelerator, host: &Operands, mode: Profiling) -> tidemill::Result<Run> {
    let session = gpu.begin_profiling(&format!("tour, {mode}"), mode)?;
    for _ in 0..3 {
        round(gpu, host)?;
    }
    session.finish()
}

/// The job once, recorded by RenderDoc.
fn capture(out: &Path) -> Outcome {
    let gpu = Accelerator::new(&Config::new().renderdoc(true).prewarm(Prewarm::Off))?;
    let host = Operands::new();
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

/// Writes what people and tools look at.
fn write_reports(out: &Path, timeline: &Run, isolated: &Run) -> std::io::Result<[PathBuf; 2]> {
    std::fs::create_dir_all(out)?;
    let files = [out.join("trace.json"), out.join("report.html")];
    std::fs::write(&files[0], timeline.trace_json())?;
    std::fs::write(&files[1], tidemill::html_report("Tidemill: a tour", &[timeline, isolated]))?;
    Ok(files)
}

/// What happened between two looks at the statistics.
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

    let host = Operands::new();
    let expected = host.reference();
    let first = round(&gpu, &host)?;
    let before = gpu.stats();
    let second = round(&gpu, &host)?;
    let after = gpu.stats();
    row("job", &format!("{} on {} f32, recorded, then submitted once", Operands::STEPS, grouped(N as u64)))?;
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
    let [trace, report] = write_reports(&args.out, &timeline, &isolated)?;
    row("trace", &format!("{}, for ui.perfetto.dev", trace.display()))?;
    row("report", &format!("{}, for a browser", report.display()))?;
    match capture_apart(&args.out)? {
        Ok(file) => row("capture", &format!("{file}, for qrenderdoc"))?,
        Err(why) => row("capture", &why)?,
    }
    match validate(&host)? {
        None => row("validation", "the layer is not installed (`tidemill info` says how to get it)")?,
        Some(messages) if messages.is_empty() => {
            row("validation", &style.good("the layer has nothing to say"))?
        }
        Some(messages) => {
            passed = false;
            row("validation", &style.bad(&messages.join("\n")))?;
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
