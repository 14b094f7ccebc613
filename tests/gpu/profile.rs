//! Profiles: rows with labels, times and costs; runs on one clock.

use tidemill::error::ProfileError;
use tidemill::profile::{Clock, Figure, Profiling};
use tidemill::{Error, Recording, Tensor, Value};

use crate::harness::{config, gpu, gpu_with};

const N: usize = 1 << 16;

/// Two sums that need nothing of each other, then one that needs both.
fn diamond(r: &Recording, a: &Tensor, b: &Tensor) -> tidemill::Result<Value> {
    let left = r.add(a, b)?;
    let right = r.mul(a, b)?;
    r.sub(left, right)
}

fn ones(gpu: &tidemill::Accelerator) -> Tensor {
    gpu.upload(&vec![1.0f32; N], [N]).unwrap()
}

#[test]
fn a_timeline_marks_what_may_overlap_and_gives_no_speeds() {
    let gpu = gpu_with(config().profiling(Profiling::Timeline).fusion(false));
    let (a, b) = (ones(&gpu), ones(&gpu));
    let r = gpu.begin_recording().unwrap();
    let value = diamond(&r, &a, &b).unwrap();
    let kept = r.keep(value).unwrap();
    let profile = r.end_recording().unwrap().profile().unwrap();
    assert_eq!(profile.mode, Profiling::Timeline);
    let labels: Vec<_> = profile.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["add 65536 f32", "mul 65536 f32", "sub 65536 f32"]);
    let overlaps: Vec<_> = profile.rows.iter().map(|row| (row.barrier, row.overlaps)).collect();
    assert_eq!(overlaps, [(false, true), (false, true), (true, false)]);
    assert!(profile.rows.iter().all(|row| row.figure == Figure::None));
    assert!(profile.rows.iter().all(|row| row.bytes == Some(12 * N as u64) && row.flops == Some(N as u64)));
    assert!(profile.rows.iter().all(|row| row.kernel.starts_with("elementwise.") && row.groups[0] > 0));
    assert!(profile.rows.iter().all(|row| row.end_ns > row.start_ns));
    assert!(profile.rows[2].start_ns >= profile.rows[0].end_ns.max(profile.rows[1].end_ns));
    assert!(profile.busy_ns() <= profile.span_ns());
    assert_eq!(profile.barriers, 1);
    assert_eq!(kept.read::<f32>().unwrap()[0], 1.0);
}

#[test]
fn an_isolated_profile_orders_everything_and_gives_speeds() {
    let gpu = gpu_with(config().fusion(false));
    let (a, b) = (ones(&gpu), ones(&gpu));
    let r = gpu.begin_recording().unwrap();
    r.profiling(Profiling::Isolated);
    let value = diamond(&r, &a, &b).unwrap();
    let _kept = r.keep(value).unwrap();
    let submission = r.end_recording().unwrap();
    let profile = submission.profile().unwrap();
    assert!(profile.rows.iter().all(|row| !row.overlaps));
    for pair in profile.rows.windows(2) {
        assert!(pair[1].start_ns >= pair[0].end_ns, "{profile}");
    }
    for row in &profile.rows {
        let figures = row.figure.throughput().unwrap_or_else(|| panic!("{profile}"));
        let expected = row.flops.unwrap() as f64 / row.duration_ns() as f64;
        assert!((figures.gflops.unwrap() - expected).abs() < 1e-9);
        assert!((figures.gbytes_per_s.unwrap() - 12.0 * expected).abs() < 1e-6);
    }
    // The same again: the times are kept with the submission, the slot is not.
    assert_eq!(submission.profile().unwrap().busy_ns(), profile.busy_ns());
}

#[test]
fn what_was_not_profiled_says_so() {
    let gpu = gpu();
    let a = ones(&gpu);
    let r = gpu.begin_recording().unwrap();
    let sum = r.add(&a, &a).unwrap();
    let _kept = r.keep(sum).unwrap();
    let refused = r.end_recording().unwrap().profile().unwrap_err();
    assert!(matches!(refused, Error::Profile(ProfileError::NotProfiled)), "{refused}");
}

#[test]
fn there_may_be_any_number_of_rows_and_slots_are_recycled() {
    let gpu = gpu_with(config().profiling(Profiling::Timeline).fusion(false));
    let a = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    for n in [300, 1, 700, 64] {
        let r = gpu.begin_recording().unwrap();
        let mut value = r.add(&a, &a).unwrap();
        for _ in 1..n {
            value = r.add(value, &a).unwrap();
        }
        let kept = r.keep(value).unwrap();
        let profile = r.end_recording().unwrap().profile().unwrap();
        assert_eq!(profile.rows.len(), n);
        assert!(profile.rows.windows(2).all(|pair| pair[1].start_ns >= pair[0].end_ns), "{n}");
        assert_eq!(kept.read::<f32>().unwrap()[0], (n + 1) as f32);
    }
}

#[test]
fn a_run_adds_up_on_one_clock() {
    let gpu = gpu_with(config().fusion(false));
    let warm = ones(&gpu);
    let _ = gpu.run(|r| diamond(r, &warm, &warm)).unwrap().read::<f32>().unwrap();
    let session = gpu.begin_profiling("three rounds", Profiling::Timeline).unwrap();
    let refused = gpu.begin_profiling("another", Profiling::Isolated).unwrap_err();
    assert_eq!(refused.to_string(), "a run is being profiled already; finish its Session first");
    for _ in 0..3 {
        let (a, b) = (ones(&gpu), ones(&gpu));
        let result = gpu.run(|r| diamond(r, &a, &b)).unwrap();
        assert_eq!(result.read::<f32>().unwrap()[N - 1], 1.0);
    }
    let run = session.finish().unwrap();
    println!("{run}");
    run.check().unwrap();
    assert_eq!((run.submissions, run.dispatches, run.barriers), (3, 9, 3));
    assert_eq!(run.bytes_up, 3 * 2 * 4 * N as u64);
    assert_eq!(run.bytes_down, 3 * 4 * N as u64);
    assert!(run.pool_hits + run.pool_misses >= 6);
    assert_eq!(run.rows().filter(|row| row.label.starts_with("mul")).count(), 3);
    let gpu_time = run.gpu.unwrap().unwrap();
    assert!(gpu_time.busy_ns > 0 && gpu_time.busy_ns <= run.wall_ns);
    match run.clock {
        Clock::Calibrated { .. } => {
            assert_eq!(gpu_time.idle_ns, Some(run.wall_ns - gpu_time.busy_ns));
            // Each submission's work lies between its submission and the end of the run.
            assert!(gpu_time.utilisation.unwrap() < 1.0);
        }
        // Nothing that needs both clocks is said.
        _ => assert_eq!((gpu_time.idle_ns, gpu_time.utilisation), (None, None)),
    }
    // The session is over: nothing is profiled any more.
    let r = gpu.begin_recording().unwrap();
    let sum = r.add(&warm, &warm).unwrap();
    let _kept = r.keep(sum).unwrap();
    assert!(r.end_recording().unwrap().profile().is_err());
}

#[test]
fn host_and_device_are_on_one_axis_in_a_trace() {
    let gpu = gpu();
    let session = gpu.begin_profiling("axis", Profiling::Timeline).unwrap();
    let a = ones(&gpu);
    let sum = gpu.run(|r| r.add(&a, &a)).unwrap();
    sum.read::<f32>().unwrap();
    let run = session.finish().unwrap();
    let trace = run.trace_json();
    assert!(trace.contains("add 65536 f32"), "{trace}");
    if matches!(run.clock, Clock::Calibrated { .. }) {
        let value = |line: &str, key: &str| -> f64 {
            let rest = line.split(key).nth(1).unwrap();
            rest.split([',', '}']).next().unwrap().parse().unwrap()
        };
        let of = |name: &str| {
            let line = trace.lines().find(|line| line.contains(&format!("\"name\":\"{name}\""))).unwrap();
            (value(line, "\"ts\":"), value(line, "\"dur\":"))
        };
        let (submit, row, read) = (of("submit"), of("add 65536 f32"), of("read"));
        assert!(row.0 >= submit.0 - 5.0, "the device began before the submission: {submit:?} {row:?}");
        assert!(
            row.0 + row.1 <= read.0 + read.1 + 5.0,
            "the device ended after its result was read: {row:?} {read:?}"
        );
    }
}

#[test]
fn a_measurement_gives_no_figure_before_it_is_complete_and_right() {
    use tidemill::error::MeasurementError;
    use tidemill::profile::RoundMode;
    let gpu = gpu();
    let a = ones(&gpu);
    let mut result = gpu.run(|r| r.add(&a, &a)).unwrap();
    let mut m = gpu.measure("add").flops(N as u64).bytes(12 * N as u64);
    let refused = |m: &tidemill::profile::Measurement| match m.throughput().unwrap_err() {
        Error::Profile(error) => error,
        other => panic!("{other}"),
    };
    let unfinished = "add: the measured work did not complete, so there is no figure";
    assert_eq!(refused(&m).to_string(), unfinished);
    m.verify(true);
    assert_eq!(refused(&m).to_string(), unfinished, "nothing has run");
    for mode in [RoundMode::Sync, RoundMode::Async] {
        m.run(5, mode, || {
            result = gpu.run(|r| r.add(&a, &a))?;
            Ok(())
        })
        .unwrap();
        let unseen = "add: nobody has verified the result, so there is no figure; call verify or checksum";
        assert_eq!(refused(&m).to_string(), unseen);
        m.verify_checksum(&result.read::<f32>().unwrap(), tidemill::profile::checksum(&[2.0f32; N]));
        let figures = m.throughput().unwrap();
        assert!(figures.gflops.unwrap() > 0.0 && figures.roofline.unwrap() < 1.3, "{figures:?}");
        assert!(m.ns_per_round().unwrap() > 0.0);
    }
    m.verify(false);
    assert_eq!(refused(&m).to_string(), "add: the result is wrong, so there is no figure");
    assert!(m.run(1, RoundMode::Sync, || Err(Error::Closed)).is_err());
    m.verify(true);
    assert_eq!(refused(&m).to_string(), unfinished);

    // Somebody counts wrong by a thousand.
    let mut m = gpu.measure("miracle").flops(N as u64 * 1_000_000);
    m.run(3, RoundMode::Async, || gpu.run(|r| r.add(&a, &a)).map(drop)).unwrap();
    m.verify(true);
    match refused(&m) {
        ProfileError::Implausible { error: MeasurementError::Compute { gflops, peak }, .. } => {
            assert!(gflops > peak)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn peaks_make_sense() {
    let gpu = gpu();
    let peaks = gpu.peaks().unwrap();
    println!("{peaks:?}");
    assert!(peaks.gflops > 0.1 && peaks.dispatch_floor_ns < 1e7);
    assert!(peaks.bandwidths.windows(2).all(|pair| pair[0].gbytes_per_s >= pair[1].gbytes_per_s));
    assert_eq!(gpu.peaks().unwrap(), peaks, "measured once");
}

#[test]
fn a_fused_row_counts_its_steps_and_what_must_cross_the_bus() {
    let gpu = gpu_with(config().profiling(Profiling::Timeline));
    let (a, b) = (ones(&gpu), ones(&gpu));
    let r = gpu.begin_recording().unwrap();
    let value = diamond(&r, &a, &b).unwrap();
    let _kept = r.keep(value).unwrap();
    let profile = r.end_recording().unwrap().profile().unwrap();
    assert_eq!(profile.rows.len(), 1, "{profile}");
    assert_eq!((profile.flops(), profile.bytes()), (3 * N as u64, 12 * N as u64), "{profile}");
    // A row that is added to every row is read once.
    let square = gpu.upload(&vec![1.0f32; N], [256, 256]).unwrap();
    let row = gpu.upload(&[1.0f32; 256], [256]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let sum = r.add(&square, &row).unwrap();
    let _kept = r.keep(sum).unwrap();
    let profile = r.end_recording().unwrap().profile().unwrap();
    assert_eq!(profile.bytes(), 4 * (2 * N as u64 + 256));
}

/// Figures for `docs/profiling.md`: `cargo test --release --test gpu what_profiling_costs -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures"]
fn what_profiling_costs() {
    use tidemill::{Accelerator, Config, Prewarm};
    const OPS: usize = 100;
    let gpu = Accelerator::new(&Config::new().no_cache().prewarm(Prewarm::Off).fusion(false)).unwrap();
    let a = gpu.upload(&[1.0f32; 1024], [1024]).unwrap();
    let mut best = [[f64::INFINITY; 2]; 3];
    for _ in 0..200 {
        for (mode, best) in [Profiling::Off, Profiling::Timeline, Profiling::Isolated].iter().zip(&mut best) {
            let begun = std::time::Instant::now();
            let r = gpu.begin_recording().unwrap();
            r.profiling(*mode);
            let mut value = r.add(&a, &a).unwrap();
            for _ in 1..OPS {
                value = r.add(value, &a).unwrap();
            }
            let kept = r.keep(value).unwrap();
            let submission = r.end_recording().unwrap();
            let recorded = begun.elapsed().as_secs_f64() * 1e6 / OPS as f64;
            submission.wait().unwrap();
            let done = begun.elapsed().as_secs_f64() * 1e6 / OPS as f64;
            drop(kept);
            *best = [best[0].min(recorded), best[1].min(done)];
        }
    }
    for (mode, [recorded, done]) in ["off", "timeline", "isolated"].iter().zip(best) {
        println!("{mode:<9} {recorded:.3} us per dispatch recorded and submitted, {done:.2} us completed");
    }
}
