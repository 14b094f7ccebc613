//! What nothing needs does not run, and what is the same is computed once.

use tidemill::explain::Explanation;
use tidemill::{Axes, Config, DType, Dispatch, Recording, Result, Value};

use crate::fixtures::kernel;
use crate::fusion::{noise, on_each};
use crate::harness::{Gpu, config, gpu, gpu_with};

fn pair(config: Config) -> [Gpu; 2] {
    [gpu_with(config.clone()), gpu_with(config.fusion(false))]
}

/// The labels of what was recorded and will not run.
fn dropped(explanation: &Explanation) -> Vec<&str> {
    let dropped = explanation.recorded.iter().filter(|step| step.dropped);
    dropped.map(|step| step.label.as_str()).collect()
}

#[test]
fn what_nothing_needs_does_not_run() {
    let scale = kernel("scale");
    for gpu in &pair(config()) {
        let x = gpu.upload(&[1.0f32, -2.0, 3.0, -4.0], [2, 2]).unwrap();
        let unread = gpu.upload(&[1.0f32; 100], [100]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let twice = r.add(&x, &x).unwrap();
        let matmul = r.matmul(twice, &x).unwrap();
        let _shares = r.softmax(matmul, -1).unwrap();
        let run = Dispatch::new(&scale).input(&unread).output([100], DType::F32).push(&[1.0f32]);
        let _scaled = r.dispatch(run.specialize(0, 64u32).groups([2, 1, 1])).unwrap();
        let kept = r.neg(twice).unwrap();
        let kept = r.keep(kept).unwrap();
        let explanation = r.explain().unwrap();
        assert_eq!(dropped(&explanation), ["matmul 2x2x2 f32", "softmax 2x2 f32", "scale 100 f32"]);
        let text = explanation.to_string();
        assert!(text.contains("recorded: 5 operations, 3 dropped\n"), "{text}");
        let line = "softmax 2x2 f32 <- t1  (dropped: nothing that is kept needs it)\n";
        assert!(text.contains(line), "{text}");
        assert_eq!(explanation.to_dot().matches("style=dotted").count(), 3);
        assert_eq!(explanation.to_svg().matches("<rect class=\"dropped\"").count(), 3);
        assert_eq!(explanation.input_bytes, 16, "of what is read: {text}");
        let before = gpu.stats().dispatches;
        r.end_recording().unwrap().wait().unwrap();
        assert_eq!(gpu.stats().dispatches - before, explanation.run.len() as u64);
        assert!(explanation.run.len() <= 2, "{text}");
        assert_eq!(kept.read::<f32>().unwrap(), [-2.0, 4.0, -6.0, 8.0]);
    }
}

#[test]
fn a_recording_that_nothing_needs_is_an_empty_submission() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 8], [8]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.exp(&x).unwrap();
    let _ = r.sum(y, 0).unwrap();
    let before = gpu.stats();
    let done = r.end_recording().unwrap();
    done.wait().unwrap();
    let after = gpu.stats();
    assert_eq!(
        (after.submissions - before.submissions, after.dispatches - before.dispatches),
        (1, 0),
        "it has its number on the timeline all the same"
    );
}

#[test]
fn a_plan_runs_what_is_needed() {
    let outputs = kernel("outputs");
    for gpu in &pair(config()) {
        let (x, y) = (gpu.upload(&[1, 2, 3], [3]).unwrap(), gpu.upload(&[5, 6, 7], [3]).unwrap());
        let r = gpu.begin_recording().unwrap();
        let run = |t| Dispatch::new(&outputs).input(t).output([3], DType::I32).output([1], DType::I32);
        // One of two results is kept; nothing of the second run is.
        let first = r.dispatch(run(&x)).unwrap();
        let _second = r.dispatch(run(&y)).unwrap();
        let sum = r.keep(first[1]).unwrap();
        assert_eq!(dropped(&r.explain().unwrap()), ["zero 1 i32", "outputs 1 i32"]);
        let mut plan = r.into_plan().unwrap();
        let before = gpu.stats().dispatches;
        for round in 1..=3 {
            let _ = plan.submit().unwrap();
            assert_eq!(sum.read::<i32>().unwrap(), [6]);
            assert_eq!(gpu.stats().dispatches - before, 2 * round, "a fill and a dispatch each time");
        }
        // Its inputs are the tensors that were recorded, whatever is left to read them.
        plan.bind(&y, &gpu.upload(&[0, 0, 0], [3]).unwrap()).unwrap();
        let _ = plan.submit().unwrap();
        assert_eq!(sum.read::<i32>().unwrap(), [6]);
    }
}

/// The dispatches of a recording, fused and unfused; its results have the same bits.
fn dispatches(record: impl Fn(&tidemill::Accelerator, &Recording) -> Result<Vec<Value>>) -> [u64; 2] {
    let [(fused, few), (unfused, many)] = on_each(&pair(config()), record);
    assert_eq!(fused, unfused);
    [few, many]
}

#[test]
fn what_is_the_same_is_computed_once() {
    let both = dispatches(|gpu, r| {
        let x = noise(gpu, 1, [33, 65]);
        let (first, second) = (r.exp(&x)?, r.exp(&x)?);
        Ok(vec![r.add(first, second)?])
    });
    assert_eq!(both, [1, 3]);
    // The mean is a part of the variance, in whatever shape it is wanted.
    let both = dispatches(|gpu, r| {
        let x = noise(gpu, 2, [33, 65]);
        Ok(vec![r.mean(&x, Axes::at(-1).keep())?, r.variance(&x, -1)?])
    });
    assert_eq!(both, [2, 3]);
    let both = dispatches(|gpu, r| {
        let x = noise(gpu, 3, [40, 40]);
        let (first, second) = (r.matmul(&x, &x)?, r.matmul(&x, &x)?);
        let first = r.relu(first)?;
        Ok(vec![r.add(first, second)?])
    });
    assert_eq!(both, [1, 4]);
    // Both are kept: two tensors, each in a block of its own.
    let both = dispatches(|gpu, r| {
        let x = noise(gpu, 4, [33, 65]);
        Ok(vec![r.sum(&x, 0)?, r.sum(&x, 0)?])
    });
    assert_eq!(both[0], both[1]);
}

#[test]
fn what_the_host_writes_in_between_is_not_the_same() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let before = r.sum(&x, 0).unwrap();
    x.write(&[2.0f32; 64]).unwrap();
    let after = r.sum(&x, 0).unwrap();
    let both = r.sub(after, before).unwrap();
    let both = r.keep(both).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(both.read::<f32>().unwrap(), [64.0]);
}

#[test]
fn users_kernels_run_as_often_as_they_are_recorded() {
    let gpu = gpu();
    let scale = kernel("scale");
    let x = gpu.upload(&[1.0f32; 64], [64]).unwrap();
    let before = gpu.stats().dispatches;
    let sum = gpu
        .run(|r| {
            let run = || Dispatch::new(&scale).input(&x).output([64], DType::F32).push(&[3.0f32]);
            let run = || run().specialize(0, 64u32);
            let (first, second) = (r.dispatch(run())?[0], r.dispatch(run())?[0]);
            r.add(first, second)
        })
        .unwrap();
    assert_eq!(sum.read::<f32>().unwrap(), [6.0; 64]);
    assert_eq!(gpu.stats().dispatches - before, 3);
}
