//! Tensors that are updated: what is seen of them when, what is copied, and random programs on several threads against
//! a model.

use std::sync::Barrier;

use tidemill::explain::Role;
use tidemill::{Accelerator, Error, Plan, Tensor};

use crate::harness::{self, gpu};
use crate::in_flight::OpenAtEnd;
use crate::seam::{FakeMemory, Seam};

fn ramp(gpu: &Accelerator, n: usize) -> Tensor {
    gpu.upload(&(0..n as u32).collect::<Vec<_>>(), [n]).unwrap()
}

#[test]
fn a_value_sees_the_tensor_as_of_its_call() {
    let gpu = gpu();
    let t = ramp(&gpu, 8);
    let r = gpu.begin_recording().unwrap();
    let part = r.slice(&t, 2..6).unwrap();
    let view = r.reshape(&t, [2, 4]).unwrap();
    let nines = r.fill([3], 9u32).unwrap();
    r.update(&t, 3..6, nines).unwrap();
    let middle = r.reshape(&t, [4, 2]).unwrap();
    let one = r.fill([1], 1u32).unwrap();
    r.update(&t, 0..1, one).unwrap();
    let two = r.add(part, part).unwrap();
    let both = r.reshape(&t, [2, 4]).unwrap();
    let both = r.add(view, both).unwrap();
    let middle = r.add_scalar(middle, 100u32).unwrap();
    let [two, both, middle] = [two, both, middle].map(|value| r.keep(value).unwrap());
    let explained = r.explain().unwrap();
    let copies = explained.recorded.iter().filter(|step| step.label.starts_with("copy")).count();
    assert_eq!(copies, 2, "of the contents before each update: {explained}");
    assert!(explained.values.iter().any(|value| value.role == Role::State));
    let _ = r.end_recording().unwrap();
    assert_eq!(t.read::<u32>().unwrap(), [1, 1, 2, 9, 9, 9, 6, 7]);
    assert_eq!(two.read::<u32>().unwrap(), [4, 6, 8, 10]);
    assert_eq!(both.read::<u32>().unwrap(), [1, 2, 4, 12, 13, 14, 12, 14]);
    assert_eq!(middle.read::<u32>().unwrap(), [100, 101, 102, 109, 109, 109, 106, 107]);
}

#[test]
fn a_value_may_be_of_the_elements_that_it_overwrites() {
    let gpu = gpu();
    let t = ramp(&gpu, 10);
    let r = gpu.begin_recording().unwrap();
    let part = r.slice(&t, 0..6).unwrap();
    r.update(&t, 3..9, part).unwrap();
    let part = r.slice(&t, 4..10).unwrap();
    r.update(&t, 0..6, part).unwrap();
    let whole = r.reshape(&t, [10]).unwrap();
    r.update(&t, 0..10, whole).unwrap();
    let turned = r.reshape(&t, [2, 5]).unwrap();
    let turned = r.transpose(turned).unwrap();
    let turned = r.reshape(turned, [10]).unwrap();
    r.assign(&t, turned).unwrap();
    let _ = r.end_recording().unwrap();
    // 0 1 2 0 1 2 3 4 5 9, then 1 2 3 4 5 9 3 4 5 9, then by columns of [[1 2 3 4 5] [9 3 4 5 9]].
    assert_eq!(t.read::<u32>().unwrap(), [1, 9, 2, 3, 3, 4, 4, 5, 5, 9]);
}

#[test]
fn an_update_moves_its_range_alone_and_an_assignment_nothing_more_than_its_operation() {
    let gpu = gpu();
    let n = 1 << 20;
    let (w, g) = (
        gpu.upload(&vec![2.0f32; n], [1024, 1024]).unwrap(),
        gpu.upload(&vec![1.0f32; n], [1024, 1024]).unwrap(),
    );
    let row = gpu.upload(&[5.0f32; 1024], [1, 1024]).unwrap();
    let r = gpu.begin_recording().unwrap();
    r.update(&w, 7..8, &row).unwrap();
    let before = gpu.stats();
    r.end_recording().unwrap().wait().unwrap();
    let after = gpu.stats();
    assert_eq!(
        (after.bytes_moved - before.bytes_moved, after.pool.live_blocks),
        (8 * 1024, before.pool.live_blocks)
    );

    let r = gpu.begin_recording().unwrap();
    let step = r.scale(&g, 0.5f32).unwrap();
    let next = r.sub(&w, step).unwrap();
    r.assign(&w, next).unwrap();
    let explained = r.explain().unwrap();
    assert_eq!((explained.run.len(), explained.temporary_bytes), (1, 0), "{explained}");
    let mut plan = r.into_plan().unwrap();
    plan.submit().unwrap().wait().unwrap();
    let before = gpu.stats();
    for _ in 0..10 {
        let _ = plan.submit().unwrap();
    }
    gpu.synchronize().unwrap();
    let after = gpu.stats();
    assert_eq!(after.bytes_moved - before.bytes_moved, 10 * 3 * 4 * n as u64);
    assert_eq!(after.commands, before.commands, "nothing is encoded");
    let read = w.read::<f32>().unwrap();
    assert!(read.iter().enumerate().all(|(i, &w)| w == if i / 1024 == 7 { -0.5 } else { -3.5 }));
}

#[test]
fn work_in_flight_forces_no_copy_and_a_capture_does() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config().max_in_flight(1000));
    let t = ramp(&gpu, 500);
    let r = gpu.begin_recording().unwrap();
    let part = r.slice(&t, 0..100).unwrap();
    let part = r.add_scalar(part, 1u32).unwrap();
    r.update(&t, 0..100, part).unwrap();
    let sum = r.slice(&t, 99..101).unwrap();
    let sum = r.keep(sum).unwrap();
    let mut plan = r.into_plan().unwrap();
    plan.submit().unwrap().wait().unwrap();
    let _open = OpenAtEnd;
    seam.close_gate();
    let before = gpu.stats();
    for _ in 0..50 {
        let _ = plan.submit().unwrap();
    }
    let after = gpu.stats();
    assert_eq!((after.pool.live_blocks, after.commands), (before.pool.live_blocks, before.commands));
    assert_eq!(after.dispatches - before.dispatches, 50 * (before.dispatches));
    // A recording that has read it keeps what it saw.
    let r = gpu.begin_recording().unwrap();
    let seen = r.slice(&t, 0..1).unwrap();
    let seen = r.keep(seen).unwrap();
    let before = gpu.stats();
    let _ = plan.submit().unwrap();
    let after = gpu.stats();
    assert_eq!(after.dispatches - before.dispatches, 1 + before.dispatches / 51, "the tensor is copied once");
    let _ = plan.submit().unwrap();
    let _ = r.end_recording().unwrap();
    seam.open_gate();
    assert_eq!(seen.read::<u32>().unwrap(), [51]);
    assert_eq!(sum.read::<u32>().unwrap(), [99 + 53, 100]);
    assert_eq!(t.read::<u32>().unwrap()[..2], [53, 54]);
}

#[test]
fn recordings_that_update_one_tensor_are_as_if_serial() {
    let gpu = gpu();
    let t = ramp(&gpu, 4);
    let [first, second] = [0; 2].map(|_| gpu.begin_recording().unwrap());
    let ones = first.fill([1], 1000u32).unwrap();
    first.update(&t, 0..1, ones).unwrap();
    let twos = second.fill([1], 2000u32).unwrap();
    second.update(&t, 3..4, twos).unwrap();
    let seen = second.reshape(&t, [2, 2]).unwrap();
    let seen = second.keep(seen).unwrap();
    let _ = second.end_recording().unwrap();
    t.write(&[5u32, 6, 7, 8]).unwrap();
    let _ = first.end_recording().unwrap();
    assert_eq!(seen.read::<u32>().unwrap(), [0, 1, 2, 2000]);
    assert_eq!(t.read::<u32>().unwrap(), [1000, 6, 7, 8]);
}

#[test]
fn what_was_kept_or_captured_stays_as_it_was() {
    let gpu = gpu();
    let t = ramp(&gpu, 4);
    let early = gpu.run(|r| r.reshape(&t, [2, 2])).unwrap();
    let r = gpu.begin_recording().unwrap();
    let view = r.reshape(&t, [2, 2]).unwrap();
    let view = r.keep(view).unwrap();
    let zeros = r.fill([4], 0u32).unwrap();
    r.assign(&t, zeros).unwrap();
    let after = r.reshape(&t, [4, 1]).unwrap();
    let after = r.keep(after).unwrap();
    let _ = r.end_recording().unwrap();
    t.write(&[9u32; 4]).unwrap();
    for old in [&early, &view] {
        assert_eq!(old.read::<u32>().unwrap(), [0, 1, 2, 3]);
    }
    assert_eq!(after.read::<u32>().unwrap(), [0; 4]);
}

#[test]
fn what_does_not_fit_is_refused_and_loses_nothing() {
    let gpu = gpu();
    let (t, row) = (gpu.upload(&[1.0f32; 6], [3, 2]).unwrap(), gpu.upload(&[2.0f32; 2], [1, 2]).unwrap());
    let r = gpu.begin_recording().unwrap();
    let text = |result: tidemill::Result<()>| result.unwrap_err().to_string();
    assert!(matches!(r.update(&t, 3..4, &row), Err(Error::SliceRange { op: "update", .. })));
    assert!(text(r.update(&t, 0..2, &row)).contains("the value must have the shape [2, 2]"));
    let whole = r.cast(&row, tidemill::DType::U32).unwrap();
    assert!(matches!(r.update(&t, 0..1, whole), Err(Error::Type { op: "update", .. })));
    assert!(matches!(r.assign(&t, &row), Err(Error::Shapes { op: "assign", .. })));
    let empty = gpu.empty([3, 2], tidemill::DType::F32).unwrap();
    assert!(matches!(r.update(&empty, 0..1, &row), Err(Error::NotWritten { op: "update", .. })));
    let other = gpu.begin_recording().unwrap();
    drop(other);
    r.update(&t, 1..2, &row).unwrap();
    r.assign(&empty, &t).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(t.read::<f32>().unwrap(), [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]);
    assert_eq!(empty.read::<f32>().unwrap(), t.read::<f32>().unwrap());
}

#[test]
fn a_plan_may_read_what_it_has_kept() {
    let gpu = gpu();
    let x = gpu.upload(&[1u32; 100], [100]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let y = r.add(&x, &x).unwrap();
    let y = r.keep(y).unwrap();
    let mut plan = r.into_plan().unwrap();
    let _ = plan.submit().unwrap();
    plan.bind(&x, &y).unwrap();
    for _ in 0..9 {
        let _ = plan.submit().unwrap();
    }
    assert_eq!(y.read::<u32>().unwrap(), [1024; 100]);
}

#[test]
fn another_tensor_stands_in_the_place_of_one_that_is_updated() {
    let gpu = gpu();
    let [t, other, x] = [0; 3].map(|_| ramp(&gpu, 4));
    let r = gpu.begin_recording().unwrap();
    let next = r.add(&t, &x).unwrap();
    r.assign(&t, next).unwrap();
    let mut plan = r.into_plan().unwrap();
    assert!(matches!(plan.bind(&t, &x), Err(Error::BoundTwice { .. })));
    assert!(matches!(plan.bind(&x, &t), Err(Error::BoundTwice { .. })));
    for tensor in [&other, &t, &other] {
        plan.bind(&t, tensor).unwrap();
        let _ = plan.submit().unwrap();
    }
    assert_eq!(t.read::<u32>().unwrap(), [0, 2, 4, 6]);
    assert_eq!(other.read::<u32>().unwrap(), [0, 3, 6, 9]);
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

const LENGTH: usize = 70;

/// What a step of a program does to the tensors of the model, and to a recording.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A part of one tensor, plus a number, goes to a part of another, or of the same.
    Move { from: usize, to: usize, begin: usize, at: usize, length: usize, plus: u32 },
    /// One tensor becomes the sum of itself and another.
    Add { to: usize, other: usize },
    /// What was read as one thing is written after something else has changed.
    Late { from: usize, to: usize },
}

fn steps(random: &mut Random, tensors: usize) -> Vec<Step> {
    let step = |random: &mut Random| {
        let (from, to) = (random.below(tensors), random.below(tensors));
        match random.below(5) {
            0 => Step::Add { to, other: from },
            1 => Step::Late { from, to },
            _ => {
                let length = 1 + random.below(LENGTH);
                let (begin, at) = (random.below(LENGTH - length + 1), random.below(LENGTH - length + 1));
                Step::Move { from, to, begin, at, length, plus: random.below(100) as u32 }
            }
        }
    };
    (0..1 + random.below(5)).map(|_| step(random)).collect()
}

fn model(steps: &[Step], tensors: &mut [Vec<u32>]) {
    for step in steps {
        match *step {
            Step::Move { from, to, begin, at, length, plus } => {
                let part: Vec<u32> =
                    tensors[from][begin..begin + length].iter().map(|e| e.wrapping_add(plus)).collect();
                tensors[to][at..at + length].copy_from_slice(&part);
            }
            Step::Add { to, other } => {
                let sum = tensors[to].iter().zip(&tensors[other]).map(|(a, b)| a.wrapping_add(*b)).collect();
                tensors[to] = sum;
            }
            Step::Late { from, to } => {
                let old = tensors[from].clone();
                tensors[from].fill(7);
                let sum = old.iter().zip(&tensors[to]).map(|(a, b)| a.wrapping_add(*b)).collect();
                tensors[to] = sum;
            }
        }
    }
}

fn record(r: &tidemill::Recording, steps: &[Step], tensors: &[Tensor]) {
    for step in steps {
        match *step {
            Step::Move { from, to, begin, at, length, plus } => {
                let part = r.slice(&tensors[from], begin..begin + length).unwrap();
                let part = r.add_scalar(part, plus).unwrap();
                r.update(&tensors[to], at..at + length, part).unwrap();
            }
            Step::Add { to, other } => {
                let sum = r.add(&tensors[to], &tensors[other]).unwrap();
                r.assign(&tensors[to], sum).unwrap();
            }
            Step::Late { from, to } => {
                let old = r.reshape(&tensors[from], [LENGTH]).unwrap();
                let sevens = r.fill([LENGTH], 7u32).unwrap();
                r.assign(&tensors[from], sevens).unwrap();
                let sum = r.add(old, &tensors[to]).unwrap();
                r.assign(&tensors[to], sum).unwrap();
            }
        }
    }
}

/// One thread: tensors of its own, plans and recordings on them, held back by the gate of the test that runs it.
fn random_program(gpu: &Accelerator, seed: u64, rounds: usize) {
    let mut random = Random(seed);
    let mut expected: Vec<Vec<u32>> =
        (0..3).map(|i| (0..LENGTH as u32).map(|e| 100 * i + e).collect()).collect();
    let tensors: Vec<Tensor> = expected.iter().map(|e| gpu.upload(e, [LENGTH]).unwrap()).collect();
    let mut plans: Vec<(Plan, Vec<Step>)> = Vec::new();
    let mut captured: Vec<(tidemill::Recording, Tensor, Vec<u32>)> = Vec::new();
    let mut seen: Vec<(Tensor, Vec<u32>)> = Vec::new();
    for _ in 0..rounds {
        match random.below(10) {
            0 | 1 => {
                let steps = steps(&mut random, 3);
                let r = gpu.begin_recording().unwrap();
                record(&r, &steps, &tensors);
                plans.push((r.into_plan().unwrap(), steps));
            }
            2 => {
                let steps = steps(&mut random, 3);
                let r = gpu.begin_recording().unwrap();
                record(&r, &steps, &tensors);
                let _ = r.end_recording().unwrap();
                model(&steps, &mut expected);
            }
            3 => {
                let i = random.below(3);
                expected[i] = vec![random.below(1000) as u32; LENGTH];
                tensors[i].write(&expected[i]).unwrap();
            }
            4 => {
                let i = random.below(3);
                let r = gpu.begin_recording().unwrap();
                let copy = if random.below(2) == 0 {
                    r.copy(&tensors[i])
                } else {
                    r.reshape(&tensors[i], [LENGTH, 1])
                };
                let copy = r.keep(copy.unwrap()).unwrap();
                captured.push((r, copy, expected[i].clone()));
            }
            5 if !captured.is_empty() => {
                let chosen = random.below(captured.len());
                let (r, copy, contents) = captured.swap_remove(chosen);
                let _ = r.end_recording().unwrap();
                seen.push((copy, contents));
            }
            _ if !plans.is_empty() => {
                let chosen = random.below(plans.len());
                let (plan, steps) = &mut plans[chosen];
                let _ = plan.submit().unwrap();
                model(steps, &mut expected);
            }
            _ => {}
        }
        if plans.len() > 4 {
            plans.remove(0);
        }
    }
    for (tensor, contents) in tensors.iter().zip(&expected).chain(seen.iter().map(|(t, e)| (t, e))) {
        assert_eq!(&tensor.read::<u32>().unwrap(), contents, "seed {seed}");
    }
}

fn check_all(seeds: std::ops::Range<u64>, rounds: usize) {
    for seed in seeds {
        for memory in [None, Some(FakeMemory::discrete())] {
            let seam = Seam::take();
            if let Some(memory) = memory {
                seam.fake_memory(memory);
            }
            let gpu = harness::gpu_with(seam.config().max_in_flight(1000));
            let threads = 3;
            let submitted = Barrier::new(threads);
            std::thread::scope(|scope| {
                for thread in 0..threads as u64 {
                    let (gpu, submitted) = (&gpu, &submitted);
                    scope.spawn(move || {
                        submitted.wait();
                        random_program(gpu, 100 * seed + thread, rounds);
                    });
                }
            });
            gpu.synchronize().unwrap();
            assert_eq!(gpu.stats().pool.live_blocks, 0, "seed {seed}");
        }
    }
}

/// Several threads update their own parts of one tensor, by recordings and by plans.
fn one_tensor_of_many(rounds: usize) {
    let gpu = gpu();
    let threads = 3;
    let t = gpu.upload(&vec![0u32; 10 * threads], [threads, 10]).unwrap();
    std::thread::scope(|scope| {
        for i in 0..threads {
            let (gpu, t) = (&gpu, &t);
            scope.spawn(move || {
                let record = || {
                    let r = gpu.begin_recording().unwrap();
                    let none = t_rows(&r, 0, 0);
                    r.update(t, 0..0, none).unwrap();
                    let row = t_rows(&r, 1, 1 + i as u32);
                    r.update(t, i..i + 1, row).unwrap();
                    r
                };
                let mut plan = record().into_plan().unwrap();
                for round in 0..rounds {
                    let _ = if round % 3 == 0 { record().end_recording() } else { plan.submit() }.unwrap();
                    // A read under way, and a capture, make the tensor move; no part is lost.
                    if round % 5 == 0 {
                        assert_eq!(t.read::<u32>().unwrap()[10 * i], 1 + i as u32);
                    }
                }
            });
        }
    });
    let expected: Vec<u32> = (0..10 * threads).map(|e| 1 + (e / 10) as u32).collect();
    assert_eq!(t.read::<u32>().unwrap(), expected);
}

fn t_rows(r: &tidemill::Recording, rows: usize, element: u32) -> tidemill::Value {
    r.fill([rows, 10], element).unwrap()
}

#[test]
fn random_updates_on_several_threads_do_what_the_model_does() {
    check_all(0..3, 60);
    one_tensor_of_many(30);
}

#[test]
#[ignore = "minutes: ./dev test --long runs it"]
fn hundreds_of_random_updates_on_several_threads() {
    check_all(1000..1100, 200);
    one_tensor_of_many(1000);
}
