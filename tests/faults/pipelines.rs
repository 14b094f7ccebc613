//! How pipelines are made, and how long they live.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use ash::vk;
use tidemill::stats::PrepareProgress;
use tidemill::{Accelerator, DType, Dispatch, Error, Prewarm, Recording, Result, Tensor, Value};

use crate::fixtures::kernel;
use crate::harness::{self, Gpu};
use crate::seam::Seam;

/// Runs a kernel of its own, which is dropped before the device has begun.
fn scaled(gpu: &Accelerator, x: &Tensor, factor: f32) -> Tensor {
    let scale = kernel("scale");
    let run = Dispatch::new(&scale).input(x).output([64], DType::F32).push(&[factor]).specialize(0, 64u32);
    gpu.run(|r| Ok(r.dispatch(run.groups([1, 1, 1]))?[0])).unwrap()
}

#[test]
fn kernels_that_are_dropped_take_their_pipelines_along() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let x = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    let before = gpu.stats().pipelines.live;
    seam.close_gate();
    let results: Vec<_> = (0..20).map(|i| scaled(&gpu, &x, i as f32)).collect();
    let destroyed = seam.calls("vkDestroyPipeline");
    let stats = gpu.stats().pipelines;
    assert_eq!((stats.live, stats.let_go), (before, 20), "nothing can ask for them any more");
    assert_eq!(destroyed, 0, "work in flight uses them");
    seam.open_gate();
    gpu.synchronize().unwrap();
    assert_eq!(seam.calls("vkDestroyPipeline"), 20);
    for (i, result) in results.iter().enumerate() {
        assert_eq!(result.read::<f32>().unwrap(), [i as f32; 64]);
    }
    // A plan keeps its own, with the kernel that is recorded in it.
    let r = gpu.begin_recording().unwrap();
    let scale = kernel("scale");
    let run = Dispatch::new(&scale).input(&x).output([64], DType::F32).push(&[3.0f32]);
    let y = r.dispatch(run.specialize(0, 64u32).groups([1, 1, 1])).unwrap()[0];
    let y = r.keep(y).unwrap();
    let mut plan = r.into_plan().unwrap();
    drop(scale);
    for _ in 0..2 {
        gpu.trim();
        plan.submit().unwrap().wait().unwrap();
        assert_eq!(y.read::<f32>().unwrap(), [3.0; 64]);
    }
    assert_eq!(gpu.stats().pipelines.live, before + 1);
    drop(plan);
    assert_eq!(gpu.stats().pipelines.live, before);
    assert_eq!(seam.calls("vkDestroyPipeline"), 21);
}

#[test]
fn trim_frees_the_engines_own_that_nothing_uses() {
    let seam = Seam::take();
    let gpu = seam.gpu();
    let x = gpu.upload(&[4.0f32; 64], [64]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.neg(&x).unwrap();
    let y = r.keep(y).unwrap();
    let mut plan = r.into_plan().unwrap();
    seam.close_gate();
    let root = gpu.run(|r| r.sqrt(&x)).unwrap();
    assert_eq!(gpu.stats().pipelines.live, 2);
    gpu.trim();
    assert_eq!(
        (gpu.stats().pipelines.live, seam.calls("vkDestroyPipeline")),
        (2, 0),
        "a plan has one, the queue the other"
    );
    seam.open_gate();
    assert_eq!(root.read::<f32>().unwrap(), [2.0; 64]);
    gpu.trim();
    assert_eq!((gpu.stats().pipelines.live, seam.calls("vkDestroyPipeline")), (1, 1));
    plan.submit().unwrap().wait().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [-4.0; 64]);
    drop(plan);
    gpu.trim();
    let stats = gpu.stats().pipelines;
    assert_eq!((stats.made, stats.live, stats.let_go, seam.calls("vkDestroyPipeline")), (2, 0, 2, 2));
    assert_eq!(gpu.run(|r| r.neg(&x)).unwrap().read::<f32>().unwrap(), [-4.0; 64]);
    assert_eq!(gpu.stats().pipelines.made, 3, "made again");
}

/// Operations that have nothing in common but their operand.
const OPS: [fn(&Recording, &Tensor) -> Result<Value>; 6] = [
    |r, x| r.neg(x),
    |r, x| r.abs(x),
    |r, x| r.sqrt(x),
    |r, x| r.floor(x),
    |r, x| r.ceil(x),
    |r, x| r.sign(x),
];

/// What they make of 2.25.
const RESULTS: [f32; OPS.len()] = [-2.25, 2.25, 1.5, 2.0, 3.0, 1.0];

/// Records all of them, each for itself.
fn record(gpu: &Accelerator) -> (Recording, Vec<Tensor>) {
    let x = gpu.upload(&[2.25f32; 64], [64]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let keep = |op: fn(&Recording, &Tensor) -> Result<Value>| {
        let y = op(&r, &x)?;
        r.keep(y)
    };
    let kept = OPS.into_iter().map(|op| keep(op).unwrap()).collect();
    (r, kept)
}

fn are_right(kept: &[Tensor]) {
    for (y, expected) in kept.iter().zip(RESULTS) {
        assert_eq!(y.read::<f32>().unwrap(), [expected; 64]);
    }
}

/// Without fusion, so that there is a pipeline for each.
fn apart(seam: &Seam) -> Gpu {
    harness::gpu_with(seam.config().fusion(false))
}

const MAKE: &str = "vkCreateComputePipelines";

#[test]
fn what_a_recording_or_a_plan_needs_is_made_on_several_threads() {
    let seam = Seam::take();
    // No call returns before two of them have met.
    seam.compile_together(2);
    let gpu = apart(&seam);
    let (r, kept) = record(&gpu);
    let _ = r.end_recording().unwrap();
    are_right(&kept);
    assert!(seam.most_compiling() >= 2);
    assert_eq!((seam.calls(MAKE), gpu.stats().pipelines.made), (6, 6));
    // All of it is there now.
    let (r, kept) = record(&gpu);
    let _ = r.end_recording().unwrap();
    are_right(&kept);
    assert_eq!(seam.calls(MAKE), 6);

    seam.compile_together(2);
    let gpu = apart(&seam);
    let (r, kept) = record(&gpu);
    let mut plan = r.into_plan().unwrap();
    assert!(seam.most_compiling() >= 2);
    assert_eq!(seam.calls(MAKE), 12);
    let _ = plan.submit().unwrap();
    are_right(&kept);
    assert_eq!(seam.calls(MAKE), 12);

    seam.compile_together(2);
    seam.pretend_driver(vk::DriverId::GOOGLE_SWIFTSHADER);
    let gpu = harness::gpu_with(seam.config().prewarm(Prewarm::Blocking));
    let status = gpu.prewarm_status();
    assert!(status.finished && status.warmed == status.catalog && status.warmed > 2);
    assert!(seam.most_compiling() >= 2);
}

#[test]
fn two_who_want_the_same_pipelines_make_them_once() {
    let seam = Seam::take();
    seam.compile_together(2);
    let gpu = apart(&seam);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (r, kept) = record(&gpu);
                let _ = r.end_recording().unwrap();
                are_right(&kept);
            });
        }
    });
    assert_eq!((seam.calls(MAKE), gpu.stats().pipelines.made), (6, 6));
}

#[test]
fn a_driver_that_can_t_is_given_one_at_a_time() {
    let seam = Seam::take();
    seam.pretend_driver(vk::DriverId::QUALCOMM_PROPRIETARY);
    seam.compile_slowly(Duration::from_millis(5));
    let gpu = apart(&seam);
    let (r, kept) = record(&gpu);
    let _ = r.end_recording().unwrap();
    are_right(&kept);
    assert_eq!((seam.calls(MAKE), seam.most_compiling()), (6, 1));
}

#[test]
fn preparing_tells_of_every_pipeline_and_can_be_ended() {
    let seam = Seam::take();
    // It compiles when pipelines are made.
    seam.pretend_driver(vk::DriverId::GOOGLE_SWIFTSHADER);
    let gpu = apart(&seam);
    let (r, kept) = record(&gpu);
    // Before anything is made.
    let error = r.prepare(|_| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(error, Error::Cancelled { op: "prepare", ready: 0, total: 6 }), "{error}");
    assert_eq!(seam.calls(MAKE), 0);
    // After two.
    let enough =
        |p: PrepareProgress| if p.ready == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let error = r.prepare(enough).unwrap_err();
    assert!(matches!(error, Error::Cancelled { ready: 2, total: 6, .. }), "{error}");
    let made = seam.calls(MAKE);
    assert!((2..6).contains(&made) || gpu.stats().pipelines.made == 6, "what was under way was finished");
    // The rest, from there on.
    let mut told = Vec::new();
    r.prepare(|p| {
        told.push((p.ready, p.total));
        ControlFlow::Continue(())
    })
    .unwrap();
    let expected: Vec<_> = (made as usize..=6).map(|ready| (ready, 6)).collect();
    assert_eq!(told, expected);
    assert_eq!(seam.calls(MAKE), 6);
    let plan = r.into_plan().unwrap();
    plan.prepare(|_| ControlFlow::Continue(())).unwrap();
    let mut plan = plan;
    let _ = plan.submit().unwrap();
    are_right(&kept);
    assert_eq!(seam.calls(MAKE), 6, "nothing is made twice");
}

/// There each pipeline gets an empty dispatch.
#[test]
fn preparing_compiles_on_drivers_that_do_so_at_the_first_dispatch() {
    let seam = Seam::take();
    let gpu = apart(&seam);
    let (r, kept) = record(&gpu);
    let mut plan = r.into_plan().unwrap();
    let before = seam.calls("vkQueueSubmit2");
    let error =
        plan.prepare(|p| if p.ready == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    assert!(matches!(error, Err(Error::Cancelled { ready: 3, total: 6, .. })));
    assert_eq!(seam.calls("vkQueueSubmit2") - before, 3);
    let mut told = Vec::new();
    plan.prepare(|p| {
        told.push(p.ready);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(told, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(seam.calls(MAKE), 6);
    let _ = plan.submit().unwrap();
    are_right(&kept);
}

#[test]
fn one_that_fails_is_an_error_and_the_others_stay() {
    let seam = Seam::take();
    let gpu = apart(&seam);
    seam.fail(MAKE, 2, 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let (r, kept) = record(&gpu);
    let error = r.end_recording().unwrap_err();
    assert!(matches!(error, Error::Vulkan { call: MAKE, .. }), "{error}");
    assert!(matches!(kept[0].read::<f32>(), Err(Error::Discarded { .. })));
    let made = gpu.stats().pipelines.made;
    assert!((1..6).contains(&made), "{made}");
    let (r, kept) = record(&gpu);
    let _ = r.end_recording().unwrap();
    are_right(&kept);
    assert_eq!(gpu.stats().pipelines.made, 6);
}

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts an application and waits for its background work: how many pipelines it wanted, and how many it made.
fn start(seam: &Seam, folder: &Folder, application: &str, work: impl FnOnce(&Gpu)) -> (usize, u64) {
    let config = seam.config().cache_dir(&folder.0).application(application);
    let before = seam.calls(MAKE);
    let gpu = harness::gpu_with(config.prewarm(Prewarm::Background));
    let wanted = gpu.wait_prewarmed().catalog;
    let made = seam.calls(MAKE) - before;
    work(&gpu);
    (wanted, made)
}

#[test]
fn a_known_application_has_a_second_of_background_work_and_others_cost_it_nothing() {
    // This many calls take a second.
    const MOST: u64 = 10;
    const EACH: Duration = Duration::from_millis(100);
    let seam = Seam::take();
    // It compiles when pipelines are made.
    seam.pretend_driver(vk::DriverId::GOOGLE_SWIFTSHADER);
    let folder = Folder(std::env::temp_dir().join(format!("tidemill-known-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let (catalog, made) = start(&seam, &folder, "one", |_| ());
    assert_eq!(made, catalog as u64, "the first start makes all of the catalog");
    assert!(made > 2 * MOST);

    // It used nothing, and is known all the same.
    seam.compile_slowly(EACH);
    let used = |gpu: &Gpu| {
        let x = gpu.upload(&[-4.0f32; 64], [64]).unwrap();
        let y = gpu.run(|r| {
            let y = r.neg(&x)?;
            let y = r.sqrt(y)?;
            r.neg(y)
        });
        assert_eq!(y.unwrap().read::<f32>().unwrap(), [-2.0; 64]);
    };
    let (wanted, made) = start(&seam, &folder, "one", used);
    assert_eq!(wanted, catalog);
    assert!((1..=MOST).contains(&made), "{made} pipelines of {EACH:?} each");
    // What it used comes first.
    let (wanted, made) = start(&seam, &folder, "one", |gpu| {
        let before = seam.calls(MAKE);
        used(gpu);
        assert_eq!(seam.calls(MAKE), before, "made ahead");
    });
    assert_eq!(wanted, catalog + 1);
    assert!((1..=MOST).contains(&made), "{made} pipelines of {EACH:?} each");

    // Another one has none of that.
    seam.compile_slowly(Duration::ZERO);
    assert_eq!(start(&seam, &folder, "another", |_| ()), (catalog, catalog as u64));
}
