//! Tensors that share a block: a kept view is a tensor of its own, whatever memory it begins with.

use tidemill::{DType, Error, Plan, Recording, Result, Tensor, Value};

use crate::harness::gpu;

/// What is `x`'s contents as they are.
type View = fn(&Recording, &Tensor) -> Result<Value>;

const VIEWS: [(&str, View); 2] =
    [("reshape", |r, x| r.reshape(x, [4])), ("cast", |r, x| r.cast(x, DType::F32))];

/// A plan of `x - y`.
fn difference(x: &Tensor, y: &Tensor) -> (Plan, Tensor) {
    let r = x.accelerator().begin_recording().unwrap();
    let difference = r.sub(x, y).unwrap();
    let kept = r.keep(difference).unwrap();
    (r.into_plan().unwrap(), kept)
}

#[test]
fn a_plan_reads_each_of_two_tensors_that_shared_a_block() {
    let gpu = gpu();
    for (name, view) in VIEWS {
        let x = gpu.upload(&[1.0f32; 4], [4]).unwrap();
        let y = gpu.run(|r| view(r, &x)).unwrap();
        let (mut plan, result) = difference(&x, &y);
        let check = |plan: &mut Plan, expected: f32| {
            plan.submit().unwrap().wait().unwrap();
            assert_eq!(result.read::<f32>().unwrap(), [expected; 4], "{name}");
        };
        check(&mut plan, 0.0);
        y.write(&[10.0f32; 4]).unwrap();
        check(&mut plan, -9.0);
        x.write(&[5.0f32; 4]).unwrap();
        check(&mut plan, -5.0);
        // Each has a place of its own.
        plan.bind(&y, &gpu.upload(&[100.0f32; 4], [4]).unwrap()).unwrap();
        check(&mut plan, -95.0);
        plan.bind(&x, &gpu.upload(&[1000.0f32; 4], [4]).unwrap()).unwrap();
        check(&mut plan, 900.0);
    }
}

#[test]
fn a_plan_reads_another_plans_kept_view_apart_from_what_it_views() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 4], [4]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let view = r.reshape(&x, [2, 2]).unwrap();
    let view = r.keep(view).unwrap();
    let mut viewing = r.into_plan().unwrap();
    drop(viewing.submit().unwrap());
    let (mut plan, result) = difference(&x, &view.reshape([4]).unwrap());
    drop(plan.submit().unwrap());
    assert_eq!(result.read::<f32>().unwrap(), [0.0; 4]);
    // The view stays behind until its plan is submitted again.
    x.write(&[3.0f32; 4]).unwrap();
    drop(plan.submit().unwrap());
    assert_eq!(result.read::<f32>().unwrap(), [2.0; 4]);
    drop(viewing.submit().unwrap());
    drop(plan.submit().unwrap());
    assert_eq!(result.read::<f32>().unwrap(), [0.0; 4]);
}

#[test]
fn tensors_that_share_a_block_are_explained_by_one_block() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 4], [4]).unwrap();
    let y = gpu.run(|r| r.reshape(&x, [4])).unwrap();
    let r = gpu.begin_recording().unwrap();
    let sum = r.add(&x, &y).unwrap();
    let sum = r.keep(sum).unwrap();
    let explained = r.explain().unwrap();
    assert_eq!(explained.values[0].block, explained.values[1].block, "{explained}");
    assert_eq!((explained.input_bytes, explained.barriers), (16, 0), "{explained}");
    drop(r.end_recording().unwrap());
    assert_eq!(sum.read::<f32>().unwrap(), [2.0; 4]);
}

#[test]
fn a_kept_view_of_a_plan_is_no_place_for_another_result() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 4], [4]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let (view, negative) = (r.reshape(&x, [2, 2]).unwrap(), r.neg(&x).unwrap());
    let negative = r.reshape(negative, [2, 2]).unwrap();
    let (view, negative) = (r.keep(view).unwrap(), r.keep(negative).unwrap());
    let mut plan = r.into_plan().unwrap();
    let text = |result: Result<()>| result.unwrap_err().to_string();
    assert!(matches!(plan.bind(&negative, &view), Err(Error::BoundTwice { .. })));
    assert_eq!(
        text(plan.bind(&view, &gpu.empty([2, 2], DType::F32).unwrap())),
        "bind: tensor [2, 2] is a kept view of one of the plan's inputs and follows that one; bind a tensor to the input"
    );
    // All of that changed nothing.
    drop(plan.submit().unwrap());
    assert_eq!(negative.read::<f32>().unwrap(), [-1.0; 4]);
    assert_eq!(view.read::<f32>().unwrap(), [1.0; 4]);
    // And it does follow.
    plan.bind(&x, &gpu.upload(&[7.0f32; 4], [4]).unwrap()).unwrap();
    drop(plan.submit().unwrap());
    assert_eq!(negative.read::<f32>().unwrap(), [-7.0; 4]);
    assert_eq!(view.read::<f32>().unwrap(), [7.0; 4]);
}
