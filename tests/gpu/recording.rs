//! Recordings and submissions: the order of things, many threads, many in flight, and whatever is dropped too early.

use std::thread;

use tidemill::Error;

use crate::fixtures::ten_thousand_steps;
use crate::harness::{config, gpu, gpu_with};

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

#[test]
fn run_keeps_one_value_or_many() {
    let gpu = gpu();
    let a = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let (sum, (difference, all)) =
        gpu.run(|r| Ok((r.add(&a, &a)?, (r.sub(&a, &a)?, vec![r.mul(&a, &a)?, r.div(&a, &a)?])))).unwrap();
    assert_eq!(sum.read::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(difference.read::<f32>().unwrap(), [0.0, 0.0]);
    assert_eq!(all[0].read::<f32>().unwrap(), [1.0, 4.0]);
    assert_eq!(all[1].read::<f32>().unwrap(), [1.0, 1.0]);
}

#[test]
fn begin_and_end_make_one_submission() {
    let gpu = gpu();
    let a = gpu.upload(&ramp(1000), [1000]).unwrap();
    let before = gpu.stats();
    let r = gpu.begin_recording().unwrap();
    let mut x = r.copy(&a).unwrap();
    for _ in 0..5 {
        x = r.add(x, &a).unwrap();
    }
    let kept = r.keep(x).unwrap();
    let again = r.keep(x).unwrap();
    assert_eq!(gpu.stats().submissions, before.submissions, "a recording is plain data until it ends");
    let done = r.end_recording().unwrap();
    done.wait().unwrap();
    assert!(done.is_complete().unwrap());
    let after = gpu.stats();
    assert_eq!(after.submissions, before.submissions + 1);
    assert_eq!(after.in_flight, 0);
    let expected: Vec<f32> = ramp(1000).iter().map(|x| 6.0 * x).collect();
    assert_eq!(kept.read::<f32>().unwrap(), expected);
    assert_eq!(again.read::<f32>().unwrap(), expected);
}

#[test]
fn operations_nest_in_the_order_of_their_calls() {
    let gpu = gpu();
    let a = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let b = gpu.upload(&[10.0f32, 20.0], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let result = r.mul(r.add(&a, &b).unwrap(), r.sub(&b, &a).unwrap()).unwrap();
    let names: Vec<String> = r.explain().unwrap().recorded.iter().map(|step| step.label.clone()).collect();
    assert_eq!(names, ["add 2 f32", "sub 2 f32", "mul 2 f32"]);
    // What fails between others leaves nothing behind.
    let sum = r.concat([result, r.add(&a, &b).unwrap()], 7).and_then(|whole| r.sum(whole, 0));
    assert!(matches!(sum, Err(Error::Axis { op: "concat", .. })), "{sum:?}");
    // A recording moves between threads, with what was recorded.
    let (r, kept) = thread::spawn(move || r.keep(result).map(|kept| (r, kept))).join().unwrap().unwrap();
    drop(r.end_recording().unwrap());
    assert_eq!(kept.read::<f32>().unwrap(), [99.0, 396.0]);
    let nested = gpu.run(|r| r.mul(r.add(&a, &b)?, &a)).unwrap();
    assert_eq!(nested.read::<f32>().unwrap(), [11.0, 44.0]);
}

#[test]
fn numbers_grow_and_an_empty_recording_is_one_too() {
    let gpu = gpu();
    let first = gpu.begin_recording().unwrap().end_recording().unwrap();
    let second = gpu.begin_recording().unwrap().end_recording().unwrap();
    assert!(second.number() > first.number());
    second.wait().unwrap();
    assert!(first.is_complete().unwrap(), "numbers complete in order");
}

#[test]
fn barriers_only_where_needed() {
    let gpu = gpu();
    let a = gpu.upload(&ramp(500), [500]).unwrap();
    let barriers = |record: &dyn Fn(&tidemill::Recording)| {
        let before = gpu.stats().barriers;
        let r = gpu.begin_recording().unwrap();
        record(&r);
        r.end_recording().unwrap().wait().unwrap();
        gpu.stats().barriers - before
    };
    let independent = barriers(&|r| {
        for _ in 0..4 {
            let x = r.add(&a, &a).unwrap();
            let _ = r.keep(x).unwrap();
        }
    });
    assert_eq!(independent, 0, "four branches run side by side");
    let chain = barriers(&|r| {
        let mut x = r.copy(&a).unwrap();
        for _ in 0..3 {
            x = r.copy(x).unwrap();
        }
        let _ = r.keep(x).unwrap();
    });
    assert_eq!(chain, 3);
}

#[test]
fn what_was_never_submitted_is_a_typed_error() {
    let gpu = gpu();
    let a = gpu.upload(&[1.0f32], [1]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let value = r.add(&a, &a).unwrap();
    let kept = r.keep(value).unwrap();

    let read = kept.read::<f32>().unwrap_err();
    assert!(matches!(read, Error::NotSubmitted { .. }));
    assert_eq!(
        read.to_string(),
        "read: tensor [1] comes from a recording that was not submitted; call end_recording, or submit its plan, first"
    );
    let write = kept.write(&[2.0f32]).unwrap_err();
    assert!(matches!(write, Error::NotSubmitted { op: "write", .. }), "{write}");
    let other = gpu.begin_recording().unwrap();
    let used = other.add(&kept, &a).unwrap_err();
    assert!(matches!(used, Error::NotSubmitted { op: "add", .. }), "{used}");
    let foreign = other.add(value, &a).unwrap_err();
    assert_eq!(
        foreign.to_string(),
        "add: the value belongs to another recording; keep() it there and use the tensor here"
    );
    assert!(matches!(other.keep(value), Err(Error::ForeignValue { op: "keep" })));
    assert!(matches!(other.shape(value), Err(Error::ForeignValue { op: "shape" })));

    // All of these left both recordings usable.
    let fine = other.mul(&a, &a).unwrap();
    let fine = other.keep(fine).unwrap();
    let _ = other.end_recording().unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(fine.read::<f32>().unwrap(), [1.0]);
    assert_eq!(kept.read::<f32>().unwrap(), [2.0]);
    assert_eq!(gpu.run(|r| r.add(&kept, &fine)).unwrap().read::<f32>().unwrap(), [3.0]);
}

#[test]
fn what_a_dropped_recording_promised_has_no_contents() {
    let gpu = gpu();
    let a = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let value = r.add(&a, &a).unwrap();
    let kept = r.keep(value).unwrap();
    drop(r);
    let read = kept.read::<f32>().unwrap_err();
    assert!(matches!(read, Error::Discarded { .. }));
    assert_eq!(
        read.to_string(),
        "read: tensor [2] comes from a recording that was dropped or failed; it has no contents"
    );
    let r = gpu.begin_recording().unwrap();
    assert!(matches!(r.add(&kept, &a), Err(Error::Discarded { op: "add", .. })));
    // The host may give it contents.
    kept.write(&[5.0f32, 6.0]).unwrap();
    assert_eq!(kept.read::<f32>().unwrap(), [5.0, 6.0]);
}

#[test]
fn a_closure_that_fails_submits_nothing() {
    let gpu = gpu();
    let a = gpu.upload(&[1.0f32], [1]).unwrap();
    let b = gpu.upload(&[1.0f32, 2.0, 3.0], [3]).unwrap();
    let before = gpu.stats().submissions;
    let error = gpu
        .run(|r| {
            let _ = r.add(&b, &b)?;
            r.reshape(&a, [2])
        })
        .unwrap_err();
    assert!(matches!(error, Error::Length { .. }), "{error}");
    assert_eq!(gpu.stats().submissions, before);
}

#[test]
fn a_tensor_of_another_accelerator_is_refused() {
    let (here, there) = (gpu(), gpu());
    let ours = here.upload(&[1.0f32], [1]).unwrap();
    let theirs = there.upload(&[1.0f32], [1]).unwrap();
    let r = here.begin_recording().unwrap();
    let error = r.add(&ours, &theirs).unwrap_err();
    assert!(matches!(error, Error::ForeignTensor { op: "add", .. }));
    let (name, said) = (&here.device().name, error.to_string());
    let (theirs, ours) = said.split_once(", this accelerator is ").unwrap();
    assert!(theirs.starts_with(&format!("add: the tensor belongs to {name} (accelerator ")), "{said}");
    assert!(ours.starts_with(&format!("{name} (accelerator ")), "{said}");
    // Both are on one device, and told apart.
    assert!(!ours.starts_with(&theirs["add: the tensor belongs to ".len()..]), "{said}");
}

#[test]
fn a_value_that_is_kept_twice_is_two_tensors() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    for plan in [false, true] {
        let r = gpu.begin_recording().unwrap();
        let twice = r.add(&x, &x).unwrap();
        let flat = r.reshape(&x, [1, 2]).unwrap();
        let (a, b) = (r.keep(twice).unwrap(), r.keep(twice).unwrap());
        let (c, d) = (r.keep(flat).unwrap(), r.keep(flat).unwrap());
        if plan {
            let mut plan = r.into_plan().unwrap();
            let _ = plan.submit().unwrap();
        } else {
            let _ = r.end_recording().unwrap();
        }
        for (one, other, was) in [(&a, &b, [2.0f32, 4.0]), (&c, &d, [1.0, 2.0])] {
            one.write(&[7.0f32, 8.0]).unwrap();
            assert_eq!(other.read::<f32>().unwrap(), was);
            assert_eq!(one.read::<f32>().unwrap(), [7.0, 8.0]);
        }
        assert_eq!(x.read::<f32>().unwrap(), [1.0, 2.0]);
    }
}

#[test]
fn errors_name_what_was_called_and_show_their_sentence() {
    let gpu = gpu();
    let error = gpu.zeros::<f32>([1 << 20, 1 << 20]).unwrap_err();
    assert!(error.to_string().starts_with("zeros: shape [1048576, 1048576] needs "), "{error}");
    // What `fn main() -> tidemill::Result<()>` prints.
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn ten_thousand_dispatches_in_one_recording() {
    let gpu = gpu();
    let before = gpu.stats().dispatches;
    let x = ten_thousand_steps(&gpu);
    assert_eq!(x.read::<f32>().unwrap(), [10_000.0; 64]);
    assert_eq!(gpu.stats().dispatches - before, 10_001, "and a fill");
    assert!(gpu.stats().pool.peak_bytes < 64 << 10, "temporaries share memory: {:?}", gpu.stats().pool);
}

/// A chain that depends on its seed everywhere.
fn chain(gpu: &tidemill::Accelerator, seed: usize) -> Vec<f32> {
    let start: Vec<f32> = (0..777).map(|i| ((i * 31 + seed * 17) % 101) as f32).collect();
    let x = gpu.upload(&start, [777]).unwrap();
    let mut kept = Vec::new();
    for _ in 0..8 {
        let r = gpu.begin_recording().unwrap();
        let mut y = r.copy(&x).unwrap();
        for _ in 0..2 {
            let z = r.mul(y, &x).unwrap();
            y = r.sub(z, y).unwrap();
            let half = r.fill([777], 0.5f32).unwrap();
            let z = r.mul(y, half).unwrap();
            y = r.div(z, y).unwrap();
        }
        let y = r.keep(y).unwrap();
        let _ = r.end_recording().unwrap();
        kept.push(gpu.run(|r| r.add(&y, &x)).unwrap());
    }
    kept.iter().flat_map(|t| t.read::<f32>().unwrap()).collect()
}

#[test]
fn eight_threads_give_what_one_gives() {
    // Every chain has its own list of operations, and compiling one takes much longer than running it.
    let gpu = gpu_with(config().fusion(false));
    let serial: Vec<Vec<f32>> = (0..8).map(|seed| chain(&gpu, seed)).collect();
    let bits = |all: &[Vec<f32>]| -> Vec<u32> { all.iter().flatten().map(|x| x.to_bits()).collect() };
    let parallel: Vec<Vec<f32>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|seed| {
                let gpu = (*gpu).clone();
                scope.spawn(move || chain(&gpu, seed))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(bits(&parallel), bits(&serial));
}

#[test]
fn chains_across_submissions_see_each_other() {
    let gpu = gpu();
    let n = 10_007;
    let a = gpu.upload(&ramp(n), [n]).unwrap();
    // Read after write, submission after submission, nothing waited for in between.
    let mut x = gpu.run(|r| r.copy(&a)).unwrap();
    for _ in 0..100 {
        x = gpu.run(|r| r.add(&x, &a)).unwrap();
    }
    // Each round gives two blocks back, which later rounds write again.
    let expected: Vec<f32> = ramp(n).iter().map(|x| 101.0 * x).collect();
    assert_eq!(x.read::<f32>().unwrap(), expected);
    assert!(gpu.stats().pool.hits > 10, "{:?}", gpu.stats().pool);
}

#[test]
fn a_fire_and_forget_loop_is_pressed_back() {
    let gpu = gpu_with(config().max_in_flight(2));
    let a = gpu.upload(&ramp(200_000), [200_000]).unwrap();
    let mut last = None;
    for _ in 0..50 {
        last = Some(gpu.run(|r| r.mul(&a, &a)).unwrap());
        assert!(gpu.stats().in_flight <= 2);
    }
    assert!(gpu.stats().pool.peak_bytes < 8 * (200_000 * 4 + 100_000), "{:?}", gpu.stats().pool);
    assert_eq!(last.unwrap().read::<f32>().unwrap()[100], 10_000.0);
}

#[test]
fn dropping_everything_in_flight_is_safe() {
    let gpu = gpu_with(config().fusion(false));
    let a = gpu.upload(&ramp(300_000), [300_000]).unwrap();
    for _ in 0..3 {
        let r = gpu.begin_recording().unwrap();
        let mut x = r.copy(&a).unwrap();
        for _ in 0..20 {
            x = r.mul(x, &a).unwrap();
        }
        let kept = r.keep(x).unwrap();
        let done = r.end_recording().unwrap();
        drop(done);
        drop(kept);
    }
    drop(a);
    // What is in flight still holds its blocks: what is written now must be others.
    let b = gpu.upload(&[7.0f32; 300_000], [300_000]).unwrap();
    assert!(b.read::<f32>().unwrap().iter().all(|&x| x == 7.0));
    let open = gpu.begin_recording().unwrap();
    drop(gpu);
    // Tensors and recordings keep their accelerator alive.
    assert_eq!(b.read::<f32>().unwrap()[0], 7.0);
    drop(open);
}

#[test]
fn reshape_shares_contents_and_copies_nothing() {
    let gpu = gpu();
    let a = gpu.upload(&ramp(12), [3, 4]).unwrap();
    let b = a.reshape([2, 6]).unwrap();
    assert_eq!(b.shape().dims(), [2, 6]);
    assert_eq!(b.read::<f32>().unwrap(), ramp(12));
    let error = a.reshape([5]).unwrap_err();
    assert_eq!(error.to_string(), "reshape: shape [5] holds 5 elements, the data has 12");
    let before = gpu.stats().dispatches;
    let kept = gpu
        .run(|r| {
            let flat = r.reshape(&a, [12])?;
            r.reshape(flat, [4, 3])
        })
        .unwrap();
    assert_eq!(gpu.stats().dispatches, before);
    // Now two tensors have one block: a write to one must not show in the other.
    a.write(&[0.0f32; 12]).unwrap();
    assert_eq!(kept.read::<f32>().unwrap(), ramp(12));
    assert_eq!(b.read::<f32>().unwrap(), [0.0; 12]);
}
