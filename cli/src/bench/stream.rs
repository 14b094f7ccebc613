//! Group `stream`: how busy the device is when batches are prepared and consumed while it works.
//!
//! On a software driver the device is the CPU, so preparation and consumption wait, as for a disk or a network, instead
//! of computing: what is shown is that the device goes on meanwhile, not that a CPU can do two things at once.

use std::thread;
use std::time::{Duration, Instant};

use tidemill::profile::{Profiling, checksum};
use tidemill::stream::{Batch, Slot};
use tidemill::{Accelerator, Stream};

use super::benchmark::{Benchmark, Make, Result, Target, Unit};

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("utilisation_depth1", |gpu| utilisation(gpu, LARGE, 1, Target::AtMost(90.0))),
    ("utilisation_depth2", |gpu| utilisation(gpu, LARGE, 2, Target::AtLeast(90.0))),
    ("utilisation_depth3", |gpu| utilisation(gpu, LARGE, 3, Target::AtLeast(97.0))),
    ("utilisation_small_depth3", |gpu| utilisation(gpu, SMALL, 3, Target::AtLeast(80.0))),
    ("speedup_depth3", speedup_depth3),
];

/// Batches of a run.
const BATCHES: u64 = 200;
/// What the device does for a batch.
const LARGE: Duration = Duration::from_millis(5);
const SMALL: Duration = Duration::from_micros(300);
/// Columns of a batch, and of the weights.
const WIDTH: usize = 512;
/// Different batches; they come again and again.
const KINDS: u64 = 4;

/// Rows of a batch times weights.
struct Load {
    stream: Stream,
    /// The batches, and the checksums of what must come out.
    inputs: Vec<Vec<f32>>,
    expected: Vec<u64>,
    /// A place for a result.
    got: Vec<f32>,
    /// How long preparing and consuming a batch wait, each.
    host: Duration,
}

/// What preparing or consuming a batch takes of the device's time for it.
const HOST_SHARE: f64 = 0.15;

/// A product of this many rows.
fn stream(gpu: &Accelerator, rows: usize, slots: usize) -> Result<(Stream, Vec<f32>)> {
    let weights: Vec<f32> = (0..WIDTH * WIDTH).map(|i| ((i * 29) % 127) as f32 / 64.0 - 1.0).collect();
    let w = gpu.upload(&weights, [WIDTH, WIDTH])?;
    let stream = gpu.stream().slots(slots).input::<f32>([rows, WIDTH]);
    Ok((stream.record(|r, x| Ok([r.matmul(&x[0], &w)?]))?, weights))
}

fn input(kind: u64, rows: usize) -> Vec<f32> {
    (0..rows * WIDTH).map(|i| ((i as u64 * 37 + kind * 101) % 255) as f32 / 128.0 - 1.0).collect()
}

/// The device's time for a batch, by its own clock: the median of some.
fn device_time(gpu: &Accelerator, rows: usize) -> Result<Duration> {
    let (mut stream, _) = stream(gpu, rows, 1)?;
    let session = gpu.begin_profiling("calibration", Profiling::Timeline)?;
    stream.run(0..15, |kind, slot| slot.write(0, &input(kind, rows)), |_| Ok(()))?;
    let run = session.finish()?;
    let mut times: Vec<u64> = run.profiles.iter().map(tidemill::profile::Profile::busy_ns).collect();
    times.sort_unstable();
    Ok(Duration::from_nanos(times[times.len() / 2]))
}

/// As many rows as the device needs about that long for, and how long the host then takes at each end.
fn fit(gpu: &Accelerator, time: Duration) -> Result<(usize, Duration)> {
    let mut rows = 64;
    for _ in 0..3 {
        let factor = time.as_secs_f64() / device_time(gpu, rows)?.as_secs_f64();
        rows = ((rows as f64 * factor / 4.0).round() as usize * 4).clamp(4, 1 << 14);
    }
    Ok((rows, device_time(gpu, rows)?.mul_f64(HOST_SHARE).saturating_sub(oversleep())))
}

/// How much longer than asked for a thread sleeps: the median of some.
fn oversleep() -> Duration {
    let mut times: Vec<Duration> = (0..51)
        .map(|_| {
            let begun = Instant::now();
            thread::sleep(Duration::from_nanos(1));
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

impl Load {
    fn new(gpu: &Accelerator, (rows, host): (usize, Duration), slots: usize) -> Result<Load> {
        let (stream, weights) = stream(gpu, rows, slots)?;
        let inputs: Vec<Vec<f32>> = (0..KINDS).map(|kind| input(kind, rows)).collect();
        let got = vec![0.0; rows * WIDTH];
        let mut load = Load { stream, inputs, expected: Vec::new(), got, host };
        // What comes out of a batch on its own is checked against f64, and is what all others must be.
        for kind in 0..KINDS {
            let x = load.inputs[kind as usize].clone();
            load.stream.push(|slot| slot.write(0, &x))?;
            let Some(batch) = load.stream.pop()? else { return Err("a batch is lost".into()) };
            let got = batch.read::<f32>(0)?;
            for i in (0..got.len()).step_by(977) {
                let (row, column) = (i / WIDTH, i % WIDTH);
                let terms = (0..WIDTH)
                    .map(|k| f64::from(x[row * WIDTH + k]) * f64::from(weights[k * WIDTH + column]));
                let expected: f64 = terms.sum();
                if (f64::from(got[i]) - expected).abs() > 1e-3 {
                    return Err(format!("[{i}] is {}, should be {expected}", got[i]).into());
                }
            }
            load.expected.push(checksum(&got));
        }
        Ok(load)
    }

    /// All batches; every result is checked.
    fn run(&mut self) -> tidemill::Result<u64> {
        let Load { stream, inputs, expected, got, host } = self;
        let mut wrong = 0;
        let prepare = |kind: u64, slot: &mut Slot<'_>| {
            thread::sleep(*host);
            slot.write(0, &inputs[kind as usize])
        };
        let consume = |batch: Batch| {
            thread::sleep(*host);
            batch.read_into(0, got)?;
            wrong += u64::from(checksum(got) != expected[(batch.number() % KINDS) as usize]);
            Ok(())
        };
        stream.run((0..BATCHES).map(|n| n % KINDS), prepare, consume)?;
        Ok(wrong)
    }

    fn rows(&self) -> usize {
        self.inputs[0].len() / WIDTH
    }
}

fn right(wrong: u64) -> Result<()> {
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} of {BATCHES} batches are wrong").into()) }
}

fn utilisation(gpu: &Accelerator, time: Duration, slots: usize, target: Target) -> Result<Benchmark> {
    let mut load = Load::new(gpu, fit(gpu, time)?, slots)?;
    let gpu = gpu.clone();
    Ok(Benchmark {
        n: load.rows(),
        unit: Unit::Percent,
        amount: 1.0,
        target,
        ours: Box::new(move |_| {
            let session = gpu.begin_profiling("stream", Profiling::Timeline)?;
            right(load.run()?)?;
            let report = load.stream.report(&session.finish()?)?;
            Ok(Duration::from_secs_f64(report.utilisation()))
        }),
        baseline: None,
    })
}

/// Against the same batches one after the other: prepared, run, waited for, consumed.
fn speedup_depth3(gpu: &Accelerator) -> Result<Benchmark> {
    let fit = fit(gpu, LARGE)?;
    let (mut ours, mut baseline) = (Load::new(gpu, fit, 3)?, Load::new(gpu, fit, 1)?);
    let n = fit.0;
    let time = |load: &mut Load| -> Result<Duration> {
        let begun = Instant::now();
        right(load.run()?)?;
        Ok(begun.elapsed())
    };
    Ok(Benchmark {
        n,
        unit: Unit::Millis,
        amount: BATCHES as f64,
        target: Target::Ratio(1.0),
        ours: Box::new(move |_| time(&mut ours)),
        baseline: Some(("the same, one batch after the other", Box::new(move |_| time(&mut baseline)))),
    })
}
