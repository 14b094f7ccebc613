//! How long pipelines live.

use tidemill::{Accelerator, DType, Dispatch, Tensor};

use crate::fixtures::kernel;
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
    assert_eq!((stats.live, stats.let_go), (before, 20), "nobody can ask for them any more");
    assert_eq!(destroyed, 0, "work in flight uses them");
    seam.open_gate();
    gpu.synchronize().unwrap();
    assert_eq!(seam.calls("vkDestroyPipeline"), 20);
    for (i, result) in results.iter().enumerate() {
        assert_eq!(result.read::<f32>().unwrap(), [i as f32; 64]);
    }
    // A plan keeps its own, with the kernel that is recorded in it.
    let mut r = gpu.begin_recording().unwrap();
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
    let mut r = gpu.begin_recording().unwrap();
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
