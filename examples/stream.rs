//! Batches through one, two and three slots, side by side: how busy the device is, what it waited for, and a page on
//! which one sees the gaps close.
//!
//! Preparing and consuming a batch wait here, as for a disk or a network. With a software driver the device *is* the
//! CPU, so a host that computes meanwhile would only take its time away; what this shows there is that the device does
//! not stand still while the host is at something else.
//!
//! cargo run --release --example stream

use std::thread::sleep;
use std::time::{Duration, Instant};

use tidemill::profile::{Profiling, Run, html_report};
use tidemill::stream::{Batch, Slot};
use tidemill::{Accelerator, Stream};

const BATCHES: u64 = 40;
const ROWS: usize = 128;
const WIDTH: usize = 512;
const HOST: Duration = Duration::from_micros(700);

fn stream(gpu: &Accelerator, slots: usize) -> tidemill::Result<Stream> {
    let weights: Vec<f32> =
        (0..WIDTH * WIDTH).map(|i| if i % (WIDTH + 1) == 0 { 2.0 } else { 0.0 }).collect();
    let weights = gpu.upload(&weights, [WIDTH, WIDTH])?;
    gpu.stream().slots(slots).input::<f32>([ROWS, WIDTH]).record(|r, x| Ok([r.matmul(&x[0], &weights)?]))
}

fn prepare(n: u64, slot: &mut Slot<'_>) -> tidemill::Result<()> {
    sleep(HOST);
    slot.fill(0, |f| f.extend((0..ROWS * WIDTH).map(|i| ((i as u64 + n) % 100) as f32)))
}

fn consume(batch: &Batch) -> tidemill::Result<()> {
    sleep(HOST);
    let got = batch.read::<f32>(0)?;
    let right = (0..ROWS * WIDTH).all(|i| got[i] == 2.0 * ((i as u64 + batch.number()) % 100) as f32);
    assert!(right, "batch {} is wrong", batch.number());
    Ok(())
}

fn main() -> tidemill::Result<()> {
    let gpu = Accelerator::global()?;
    println!("{}\n", gpu.device().name);
    // Whatever has to be compiled is compiled here.
    stream(&gpu, 1)?.run(0..3, prepare, |batch| consume(&batch))?;
    gpu.wait_prewarmed();

    let mut runs: Vec<Run> = Vec::new();
    let mut synchronous = None;
    for slots in 1..=3 {
        // A stream counts its batches from 0, so each depth gets its own.
        let mut stream = stream(&gpu, slots)?;
        let name = format!("{slots} slot{}", if slots == 1 { "" } else { "s" });
        let session = gpu.begin_profiling(&name, Profiling::Timeline)?;
        let begun = Instant::now();
        stream.run(0..BATCHES, prepare, |batch| consume(&batch))?;
        let time = begun.elapsed();
        let run = session.finish()?;
        // One slot is the synchronous loop: prepared, run, waited for, consumed.
        let speedup = synchronous.get_or_insert(time).as_secs_f64() / time.as_secs_f64();
        println!("{name}, {speedup:.2} x: {}", stream.report(&run)?);
        runs.push(run);
    }
    let page = "target/stream.html";
    let text = html_report("A stream of one, two and three slots", &runs.iter().collect::<Vec<_>>());
    match std::fs::create_dir_all("target").and_then(|()| std::fs::write(page, text)) {
        Ok(()) => println!("\n{page} shows the lanes of host and device"),
        Err(error) => println!("\n{page} could not be written: {error}"),
    }
    Ok(())
}
