//! Arguments of plans: one encoding for all values, what operations make of them, what is refused, and random programs
//! on several threads against a model.

use std::sync::Barrier;

use tidemill::args::Argument;
use tidemill::error::ArgumentError;
use tidemill::explain::Role;
use tidemill::profile::Profiling;
use tidemill::{Accelerator, DType, Error, Plan, Recording, Tensor};

use crate::harness::{self, gpu};
use crate::in_flight::OpenAtEnd;
use crate::seam::{FakeMemory, Seam};

fn ramp(gpu: &Accelerator, n: usize) -> Tensor {
    gpu.upload(&(0..n as u32).collect::<Vec<_>>(), [n]).unwrap()
}

fn message<T>(result: tidemill::Result<T>) -> String {
    result.err().map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

#[test]
fn one_encoding_serves_a_thousand_values() {
    for memory in [None, Some(FakeMemory::discrete())] {
        let seam = Seam::take();
        if let Some(memory) = memory {
            seam.fake_memory(memory);
        }
        let gpu = harness::gpu_with(seam.config().max_in_flight(2000));
        let x = ramp(&gpu, 100);
        let log = gpu.upload(&[0u32; 1000], [1000]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let (plus, at) = (r.argument("plus", 0..=5000u32).unwrap(), r.argument("at", 0..=999i32).unwrap());
        let y = r.add(&x, plus).unwrap();
        let last = r.slice(y, 99..100).unwrap();
        r.update_at(&log, 0, at, last).unwrap();
        let y = r.keep(y).unwrap();
        let mut plan = r.into_plan().unwrap();
        plan.set(plus, 5000).unwrap();
        plan.set(at, 0).unwrap();
        plan.submit().unwrap().wait().unwrap();
        let _open = OpenAtEnd;
        // All in flight at once, then each for itself.
        for in_flight in [true, false] {
            gpu.synchronize().unwrap();
            let before = gpu.stats();
            if in_flight {
                seam.close_gate();
            }
            for i in 0..1000 {
                plan.set(plus, 3 * i).unwrap();
                plan.set(at, i as i32).unwrap();
                let submission = plan.submit().unwrap();
                if !in_flight && i % 100 == 7 {
                    submission.wait().unwrap();
                    assert_eq!(y.read::<u32>().unwrap()[..2], [3 * i, 3 * i + 1]);
                }
            }
            let after = gpu.stats();
            assert_eq!(
                after.commands.plan_encoded, before.commands.plan_encoded,
                "nothing of the plan is encoded"
            );
            assert_eq!(after.commands.plan_copies, before.commands.plan_copies);
            assert_eq!(after.commands.encoded, before.commands.encoded);
            if in_flight {
                assert_eq!(after.pool.live_blocks, before.pool.live_blocks);
                assert_eq!(after.pool.peak_bytes, before.pool.peak_bytes);
            }
            seam.open_gate();
            let logged = log.read::<u32>().unwrap();
            assert!(logged.iter().enumerate().all(|(i, &e)| e == 99 + 3 * i as u32), "{logged:?}");
            log.write(&[0u32; 1000]).unwrap();
        }
        // What stays the same is not brought there again.
        let pools = gpu.stats().commands.command_pools;
        gpu.synchronize().unwrap();
        for _ in 0..100 {
            let _ = plan.submit().unwrap();
        }
        assert_eq!(gpu.stats().commands.command_pools, pools);
        assert_eq!(y.read::<u32>().unwrap()[0], 2997);
        assert_eq!(log.read::<u32>().unwrap()[998..], [0, 99 + 2997]);
    }
}

#[test]
fn an_argument_stands_on_either_side() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0, 4.0, 8.0], [2, 2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let a = r.argument("a", f32::NEG_INFINITY..=f32::INFINITY).unwrap();
    let n = r.argument("n", i32::MIN..=i32::MAX).unwrap();
    let left = r.sub(a, &x).unwrap();
    let right = r.div(&x, a).unwrap();
    let chain = r.mul(r.add(right, a).unwrap(), a).unwrap();
    let alone = r.mul(n, n).unwrap();
    let as_float = r.add(&x, r.cast(n, DType::F32).unwrap()).unwrap();
    let rows = r.matmul(&x, &x).unwrap();
    let rows = r.mul(rows, a).unwrap();
    let itself = r.keep(a.into()).unwrap();
    let [left, right, chain, alone, as_float, rows] =
        [left, right, chain, alone, as_float, rows].map(|value| r.keep(value).unwrap());
    let mut plan = r.into_plan().unwrap();
    let mut kept = Vec::new();
    for (x, i) in [(2.0f32, -3), (0.5, 1 << 16), (-8.0, i32::MAX)] {
        plan.set(a, x).unwrap();
        plan.set_named("n", f64::from(i)).unwrap();
        let _ = plan.submit().unwrap();
        assert_eq!(left.read::<f32>().unwrap(), [x - 1.0, x - 2.0, x - 4.0, x - 8.0]);
        assert_eq!(right.read::<f32>().unwrap(), [1.0 / x, 2.0 / x, 4.0 / x, 8.0 / x]);
        assert_eq!(chain.read::<f32>().unwrap(), [1.0, 2.0, 4.0, 8.0].map(|e: f32| (e / x + x) * x));
        assert_eq!(alone.read::<i32>().unwrap(), [i.wrapping_mul(i)]);
        assert_eq!(as_float.read::<f32>().unwrap()[0], 1.0 + i as f32);
        assert_eq!(rows.read::<f32>().unwrap(), [9.0, 18.0, 36.0, 72.0].map(|e: f32| e * x));
        // A copy, which the next value does not change.
        kept.push((gpu.run(|r| r.reshape(&itself, [1])).unwrap(), x));
    }
    assert!(kept.iter().all(|(tensor, x)| tensor.read::<f32>().unwrap() == [*x]));
}

/// Slices and updates along each axis, of each length that matters, at each start.
#[test]
fn parts_begin_where_an_argument_says() {
    let gpu = gpu();
    for shape in [[3, 5, 4], [2, 7, 3], [1, 9, 1], [4, 1, 6], [2, 600, 8]] {
        let elements: usize = shape.iter().product();
        let x = gpu.upload(&(0..elements as u32).collect::<Vec<_>>(), shape).unwrap();
        for (axis, &extent) in shape.iter().enumerate() {
            for length in [1, 2, 4, extent].into_iter().filter(|&length| length <= extent) {
                let most = extent - length;
                let mut part = shape;
                part[axis] = length;
                let state = gpu.zeros::<u32>(shape).unwrap();
                let r = gpu.begin_recording().unwrap();
                let start = r.argument("start", 0..=most as u32).unwrap();
                let taken = r.slice_at(&x, axis as isize, start, length).unwrap();
                r.update_at(&state, axis as isize - 3, start, r.add_scalar(taken, 1u32).unwrap()).unwrap();
                let taken = r.keep(taken).unwrap();
                let mut plan = r.into_plan().unwrap();
                let inner: usize = shape[axis + 1..].iter().product();
                let at = |i: usize| i / inner % extent;
                for from in [most, 0, most / 2] {
                    state.write(&vec![0u32; elements]).unwrap();
                    plan.set(start, from as u32).unwrap();
                    let _ = plan.submit().unwrap();
                    let inside = |i: &usize| (from..from + length).contains(&at(*i));
                    let expected: Vec<u32> = (0..elements).filter(inside).map(|i| i as u32).collect();
                    assert_eq!(taken.read::<u32>().unwrap(), expected, "{shape:?} {axis} {from} {length}");
                    assert_eq!(taken.shape().dims(), part);
                    let expected: Vec<u32> =
                        (0..elements).map(|i| if inside(&i) { i as u32 + 1 } else { 0 }).collect();
                    assert_eq!(state.read::<u32>().unwrap(), expected, "{shape:?} {axis} {from} {length}");
                }
            }
        }
    }
}

#[test]
fn what_the_device_finds_outside_is_zeros_or_dropped() {
    let gpu = gpu();
    let (x, state) = (ramp(&gpu, 6), ramp(&gpu, 6));
    let nines = gpu.upload(&[9u32; 4], [4]).unwrap();
    for (from, taken, left) in [
        (-2i32, [0u32, 0, 0, 1], [9u32, 9, 2, 3, 4, 5]),
        (4, [4, 5, 0, 0], [0, 1, 2, 3, 9, 9]),
        (100, [0; 4], [0, 1, 2, 3, 4, 5]),
        (i32::MIN, [0; 4], [0, 1, 2, 3, 4, 5]),
    ] {
        let start = gpu.upload(&[from], [1]).unwrap();
        state.write(&[0u32, 1, 2, 3, 4, 5]).unwrap();
        let r = gpu.begin_recording().unwrap();
        let part = r.slice_at(&x, 0, &start, 4).unwrap();
        let part = r.keep(part).unwrap();
        r.update_at(&state, 0, &start, &nines).unwrap();
        let _ = r.end_recording().unwrap();
        assert_eq!(
            (part.read::<u32>().unwrap(), state.read::<u32>().unwrap()),
            (taken.to_vec(), left.to_vec())
        );
    }
    // A number needs no device to be refused, and may begin at an element of the tensor itself.
    let r = gpu.begin_recording().unwrap();
    assert!(matches!(r.slice_at(&x, 0, 3u32, 4), Err(Error::SliceRange { op: "slice_at", .. })));
    assert!(matches!(r.slice_at(&x, 0, -1i32, 4), Err(Error::Parameter { op: "slice_at", .. })));
    assert!(matches!(r.update_at(&state, 0, 3u32, &nines), Err(Error::SliceRange { op: "update_at", .. })));
    let own = r.slice(&state, 1..2).unwrap();
    r.update_at(&state, 0, 2u32, &nines).unwrap();
    r.update_at(&state, 0, own, r.fill([1], 7u32).unwrap()).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(state.read::<u32>().unwrap(), [0, 7, 9, 9, 9, 9]);
}

/// A reduction by its name, the elements that it leaves alone, and what the host makes of those in front.
type Masked = (&'static str, f32, fn(&[f32]) -> f32);

const MASKED: [Masked; 5] = [
    ("sum", 0.0, |row| row.iter().sum()),
    ("prod", 1.0, |row| row.iter().product()),
    ("amax", f32::NEG_INFINITY, |row| row.iter().copied().fold(f32::NEG_INFINITY, f32::max)),
    ("amin", f32::INFINITY, |row| row.iter().copied().fold(f32::INFINITY, f32::min)),
    ("norm", 0.0, |row| row.iter().map(|x| x * x).sum::<f32>().sqrt()),
];

fn reduced(r: &Recording, name: &str, x: tidemill::Value, axis: isize) -> tidemill::Result<tidemill::Value> {
    match name {
        "sum" => r.sum(x, axis),
        "prod" => r.prod(x, axis),
        "amax" => r.amax(x, axis),
        "amin" => r.amin(x, axis),
        _ => r.norm(x, axis),
    }
}

/// Rows that are aligned to groups of four and rows that are not, short, cut into parts, and columns; fused and not.
#[test]
fn lengths_mask_reductions_and_softmax() {
    for fusion in [true, false] {
        let gpu = harness::gpu_with(harness::config().fusion(fusion));
        for (rows, extent) in [(3, 40), (5, 37), (2, 3), (1, 1029), (3, 70_001), (300, 17)] {
            let element = |i: usize| ((i * 37 + i / 11) % 64) as f32 / 64.0 + 0.75;
            let data: Vec<f32> = (0..rows * extent).map(element).collect();
            let turned: Vec<f32> = (0..rows * extent).map(|i| data[i % rows * extent + i / rows]).collect();
            let x = gpu.upload(&data, [rows, extent]).unwrap();
            let x_turned = gpu.upload(&turned, [extent, rows]).unwrap();
            let r = gpu.begin_recording().unwrap();
            let n = r.argument("n", 0..=extent as u32).unwrap();
            let m = r.argument("m", i32::MIN..=i32::MAX).unwrap();
            let mut kept = Vec::new();
            for masked in MASKED {
                let seen = r.mask_from(&x, 1, n, masked.1).unwrap();
                let along = r.keep(reduced(&r, masked.0, seen, 1).unwrap()).unwrap();
                let seen = r.mask_from(&x_turned, 0, m, masked.1).unwrap();
                let down = r.keep(reduced(&r, masked.0, seen, 0).unwrap()).unwrap();
                kept.push((masked, along, down));
            }
            let seen = r.mask_from(r.scale(&x, 4.0f32).unwrap(), -1, n, f32::NEG_INFINITY).unwrap();
            let shares = r.keep(r.softmax(seen, -1).unwrap()).unwrap();
            let mut plan = r.into_plan().unwrap();
            for length in [extent, 1, extent / 2, extent - 1, 2.min(extent)] {
                plan.set(n, length as u32).unwrap();
                plan.set(m, length as i32).unwrap();
                let _ = plan.submit().unwrap();
                for ((name, _, host), along, down) in &kept {
                    let (along, down) = (along.read::<f32>().unwrap(), down.read::<f32>().unwrap());
                    for (row, elements) in data.chunks_exact(extent).enumerate() {
                        let exact = host(&elements[..length]);
                        for got in [along[row], down[row]] {
                            let close = (got - exact).abs() <= 1e-3 * exact.abs() || got == exact;
                            assert!(
                                close || !exact.is_finite(),
                                "{name} {rows}x{extent} to {length}: {got} for {exact}"
                            );
                        }
                    }
                }
                let shares = shares.read::<f32>().unwrap();
                for (row, elements) in shares.chunks_exact(extent).zip(data.chunks_exact(extent)) {
                    assert!(row[length..].iter().all(|&share| share == 0.0), "{rows}x{extent} to {length}");
                    let all: f64 = elements[..length].iter().map(|&x| f64::from(4.0 * x - 8.0).exp()).sum();
                    for (&share, &x) in row[..length].iter().zip(elements) {
                        let exact = f64::from(4.0 * x - 8.0).exp() / all;
                        assert!((f64::from(share) - exact).abs() <= 1e-5 * exact, "{share} for {exact}");
                    }
                }
            }
            // None at all: what is left is what does not show. A negative length is none, too.
            plan.set(n, 0).unwrap();
            plan.set(m, -1).unwrap();
            let _ = plan.submit().unwrap();
            for ((name, outside, _), along, down) in &kept {
                for got in [along, down] {
                    assert_eq!(got.read::<f32>().unwrap(), vec![*outside; rows], "{name} of nothing");
                }
            }
        }
    }
}

#[test]
fn masked_rows_are_not_stored() {
    let gpu = gpu();
    let x = gpu.upload(&vec![1.0f32; 64 * 500], [64, 500]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let n = r.argument("n", 1..=500i32).unwrap();
    let seen = r.mask_from(&x, 1, n, f32::NEG_INFINITY).unwrap();
    let _shares = r.keep(r.softmax(seen, 1).unwrap()).unwrap();
    let seen = r.mask_from(&x, -1, n, 0.0f32).unwrap();
    let _sums = r.keep(r.sum(seen, -1).unwrap()).unwrap();
    let explained = r.explain().unwrap();
    assert_eq!(explained.temporary_bytes, 0, "{explained}");
    assert!(explained.run.iter().all(|step| step.label.starts_with("mask_from+")), "{explained}");
    let argument = explained.values.iter().find(|value| value.role == Role::Argument).unwrap();
    let declared = argument.argument.as_ref().unwrap();
    assert_eq!((declared.name.as_str(), declared.least, declared.most), ("n", 1.0, 500.0));
    assert!(explained.to_string().contains("argument \"n\" from 1 to 500"), "{explained}");
    assert!(explained.to_dot().contains("argument \\\"n\\\" from 1 to 500"));
    assert!(explained.to_svg().contains("argument, block"));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let gpu = gpu();
    let x = ramp(&gpu, 8);
    let r = gpu.begin_recording().unwrap();
    let n = r.argument("n", 2..=6u32).unwrap();
    assert!(message(r.argument("n", 0..=1u32)).contains("there is an argument \"n\" already"));
    #[allow(clippy::reversed_empty_ranges, reason = "it is refused")]
    let empty = r.argument("e", 5..=4u32);
    assert!(matches!(empty, Err(Error::Argument(ArgumentError::EmptyRange { .. }))));
    assert!(message(r.argument("e", f32::NAN..=1.0)).contains("no number lies from NaN to 1"));
    assert!(message(r.argument_of("e", DType::F16, 0.0..=1.0)).contains("arguments are f32, i32 or u32"));
    assert!(message(r.argument_of("e", DType::I32, 0.5..=1.0)).contains("is i32, which has no 0.5"));
    let expected = "slice_at: 3 elements from argument \"n\" on, which is 2 to 6, reach out of axis 0 of 8; \
                    declare it within 0..=5";
    assert_eq!(message(r.slice_at(&x, 0, n, 3)), expected);
    assert!(message(r.slice_at(&x, 0, n, 9)).contains("range 0..9"));
    assert!(matches!(r.slice_at(&x, 1, n, 1), Err(Error::Axis { .. })));
    assert!(matches!(r.slice_at(&x, 0, &x, 1), Err(Error::Shapes { op: "slice_at", .. })));
    assert!(matches!(r.mask_from(&x, 0, n, 1.0f32), Err(Error::Type { op: "mask_from", .. })));
    assert!(matches!(r.mask_from(&x, 0, 1.5f32, 1u32), Err(Error::Type { op: "mask_from", .. })));
    let wide = r.reshape(&x, [2, 4]).unwrap();
    assert!(matches!(r.update_at(&x, 0, n, wide), Err(Error::Shapes { op: "update_at", .. })));
    assert!(matches!(r.update_at(&x, 0, n, r.fill([1], 1i32).unwrap()), Err(Error::Type { .. })));
    let i = r.argument("i", -1..=3i32).unwrap();
    assert!(
        message(r.update_at(&x, 0, i, r.fill([1], 1u32).unwrap()))
            .contains("from argument \"i\" on, which is -1 to 3")
    );
    let y = r.keep(r.slice_at(&x, 0, n, 2).unwrap()).unwrap();
    let y_i = r.keep(r.add(i, r.fill([1], 0i32).unwrap()).unwrap()).unwrap();
    let mut plan = r.into_plan().unwrap();
    plan.set(i, 3).unwrap();
    assert!(matches!(plan.submit(), Err(Error::Argument(ArgumentError::NotSet { name })) if name == "n"));
    assert!(matches!(y.read::<u32>(), Err(Error::NotSubmitted { .. })));
    plan.set(n, 6).unwrap();
    for (result, expected) in [
        (plan.set(n, 7), "argument \"n\" is 7; it was declared from 2 to 6"),
        (plan.set(n, 1), "argument \"n\" is 1; it was declared from 2 to 6"),
        (plan.set_named("n", f64::NAN), "argument \"n\" is NaN"),
        (plan.set_named("n", 2.5), "argument \"n\" is u32, which has no 2.5"),
        (plan.set_named("k", 2.5), "the plan has no argument \"k\"; it has: n, i"),
    ] {
        assert!(message(result).contains(expected), "{expected}");
    }
    let other = gpu.begin_recording().unwrap();
    let foreign: Argument<u32> = other.argument("n", 0..=9u32).unwrap();
    assert!(matches!(plan.set(foreign, 3), Err(Error::Argument(ArgumentError::Foreign))));
    let _ = plan.submit().unwrap();
    assert_eq!((y.read::<u32>().unwrap(), y_i.read::<i32>().unwrap()), (vec![6, 7], vec![3]));
    // Only a plan gives arguments values.
    let kept = other.keep(other.add(&x, foreign).unwrap()).unwrap();
    assert!(message(other.end_recording()).contains("end_recording: argument \"n\" has no value here"));
    assert!(matches!(kept.read::<u32>(), Err(Error::Discarded { .. })));
    let stream = gpu.stream().input::<u32>([8]).record(|r, x| {
        let n = r.argument("n", 0..=9u32)?;
        Ok([r.add(&x[0], n)?])
    });
    assert!(message(stream).contains("argument \"n\" has no value here"));
}

#[test]
fn profiled_submissions_have_their_own_values() {
    let seam = Seam::take();
    let gpu = harness::gpu_with(seam.config());
    let x = ramp(&gpu, 300);
    let r = gpu.begin_recording().unwrap();
    let n = r.argument("n", 0..=9u32).unwrap();
    let y = r.keep(r.add(&x, n).unwrap()).unwrap();
    let mut plan = r.into_plan().unwrap();
    plan.profiling(Profiling::Timeline);
    let outputs = [(); 4].map(|()| gpu.empty([300], DType::U32).unwrap());
    let _open = OpenAtEnd;
    seam.close_gate();
    let submissions: Vec<_> = (0..)
        .zip(&outputs)
        .map(|(i, output)| {
            plan.set(n, i / 2).unwrap();
            plan.bind(&y, output).unwrap();
            plan.submit().unwrap()
        })
        .collect();
    seam.open_gate();
    for (i, (submission, output)) in submissions.iter().zip(&outputs).enumerate() {
        let profile = submission.profile().unwrap();
        let uploads = profile.rows.iter().filter(|row| row.label == "upload").count();
        assert_eq!((profile.rows.len() - uploads, uploads), (1, 1 - i % 2), "{profile:?}");
        assert_eq!(output.read::<u32>().unwrap()[1], 1 + i as u32 / 2);
    }
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

/// What a step of a program does; numbers `by`, `from`, … name arguments.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A part of one tensor from an argument on, plus an argument, goes to a part of another, or of the same.
    Move { from: usize, to: usize, begin: usize, at: usize, plus: usize, length: usize },
    /// One tensor becomes itself times an argument, plus the sum of the first elements of another.
    Add { to: usize, other: usize, by: usize, first: usize },
    /// One tensor has a number from an argument on.
    Mask { to: usize, from: usize },
}

/// Arguments of a program: the first are starts, the next lengths, the others any number.
const STARTS: usize = 2;
const LENGTHS: usize = 2;
const NUMBERS: usize = 2;
const ARGUMENTS: usize = STARTS + LENGTHS + NUMBERS;

fn range(argument: usize) -> (u32, u32) {
    match argument {
        ..STARTS => (0, (LENGTH / 2) as u32),
        _ if argument < STARTS + LENGTHS => (0, LENGTH as u32 + 3),
        _ => (0, u32::MAX),
    }
}

fn steps(random: &mut Random) -> Vec<Step> {
    let step = |random: &mut Random| {
        let (from, to) = (random.below(3), random.below(3));
        let length = |random: &mut Random| STARTS + random.below(LENGTHS);
        let number = |random: &mut Random| STARTS + LENGTHS + random.below(NUMBERS);
        match random.below(4) {
            0 => Step::Add { to, other: from, by: number(random), first: length(random) },
            1 => Step::Mask { to, from: length(random) },
            _ => Step::Move {
                from,
                to,
                begin: random.below(STARTS),
                at: random.below(STARTS),
                plus: number(random),
                length: 1 + random.below(LENGTH / 2),
            },
        }
    };
    (0..1 + random.below(5)).map(|_| step(random)).collect()
}

fn model(steps: &[Step], values: &[u32], tensors: &mut [Vec<u32>]) {
    let place = |argument: usize| values[argument] as usize;
    for step in steps {
        match *step {
            Step::Move { from, to, begin, at, plus, length } => {
                let part: Vec<u32> = tensors[from][place(begin)..place(begin) + length]
                    .iter()
                    .map(|e| e.wrapping_add(values[plus]))
                    .collect();
                tensors[to][place(at)..place(at) + length].copy_from_slice(&part);
            }
            Step::Add { to, other, by, first } => {
                let seen = &tensors[other][..place(first).min(LENGTH)];
                let sum = seen.iter().fold(0u32, |sum, e| sum.wrapping_add(*e));
                tensors[to].iter_mut().for_each(|e| *e = e.wrapping_mul(values[by]).wrapping_add(sum));
            }
            Step::Mask { to, from } => tensors[to][place(from).min(LENGTH)..].fill(5),
        }
    }
}

fn record(r: &Recording, steps: &[Step], tensors: &[Tensor]) -> tidemill::Result<Vec<Argument<u32>>> {
    let declare = |i: usize| r.argument(&format!("argument {i}"), range(i).0..=range(i).1);
    let arguments: Vec<_> = (0..ARGUMENTS).map(declare).collect::<tidemill::Result<_>>()?;
    for step in steps {
        match *step {
            Step::Move { from, to, begin, at, plus, length } => {
                let part = r.slice_at(&tensors[from], 0, arguments[begin], length)?;
                let part = r.add(arguments[plus], part)?;
                r.update_at(&tensors[to], 0, arguments[at], part)?;
            }
            Step::Add { to, other, by, first } => {
                let sum = r.sum(r.mask_from(&tensors[other], 0, arguments[first], 0u32)?, 0)?;
                r.assign(&tensors[to], r.add(r.mul(&tensors[to], arguments[by])?, sum)?)?;
            }
            Step::Mask { to, from } => {
                r.assign(&tensors[to], r.mask_from(&tensors[to], 0, arguments[from], 5u32)?)?;
            }
        }
    }
    Ok(arguments)
}

/// A plan, what it does, its arguments, and their values.
struct Program {
    plan: Plan,
    steps: Vec<Step>,
    arguments: Vec<Argument<u32>>,
    values: Vec<u32>,
}

/// One thread: tensors of its own and plans on them, with new values between submissions that are all in flight.
fn random_program(gpu: &Accelerator, seed: u64, rounds: usize) {
    let mut random = Random(seed);
    let mut expected: Vec<Vec<u32>> =
        (0..3).map(|i| (0..LENGTH as u32).map(|e| 100 * i + e).collect()).collect();
    let tensors: Vec<Tensor> = expected.iter().map(|e| gpu.upload(e, [LENGTH]).unwrap()).collect();
    let mut programs: Vec<Program> = Vec::new();
    // What recordings have captured stays as it was.
    let mut captured: Vec<(Recording, Tensor, Vec<u32>)> = Vec::new();
    let mut seen: Vec<(Tensor, Vec<u32>)> = Vec::new();
    for _ in 0..rounds {
        match random.below(10) {
            0 => {
                let steps = steps(&mut random);
                let r = gpu.begin_recording().unwrap();
                let arguments = record(&r, &steps, &tensors).unwrap();
                let (plan, values) = (r.into_plan().unwrap(), Vec::new());
                programs.push(Program { plan, steps, arguments, values });
            }
            1 => {
                let i = random.below(3);
                expected[i] = vec![random.below(1000) as u32; LENGTH];
                tensors[i].write(&expected[i]).unwrap();
            }
            2 => {
                let i = random.below(3);
                assert_eq!(tensors[i].read::<u32>().unwrap(), expected[i], "seed {seed}");
            }
            3 => {
                let (i, r) = (random.below(3), gpu.begin_recording().unwrap());
                let copy = r.keep(r.copy(&tensors[i]).unwrap()).unwrap();
                captured.push((r, copy, expected[i].clone()));
            }
            4 if !captured.is_empty() => {
                let chosen = random.below(captured.len());
                let (r, copy, contents) = captured.swap_remove(chosen);
                let _ = r.end_recording().unwrap();
                seen.push((copy, contents));
            }
            _ if !programs.is_empty() => {
                let chosen = random.below(programs.len());
                let Program { plan, steps, arguments, values } = &mut programs[chosen];
                for (i, argument) in arguments.iter().enumerate() {
                    let (least, most) = range(i);
                    if values.len() > i && random.below(3) > 0 {
                        continue;
                    }
                    let value = least + random.below((most - least).min(1000) as usize + 1) as u32;
                    plan.set(*argument, value).unwrap();
                    assert!(most == u32::MAX || plan.set(*argument, most + 1).is_err());
                    if values.len() > i { values[i] = value } else { values.push(value) }
                }
                let _ = plan.submit().unwrap();
                model(steps, values, &mut expected);
            }
            _ => {}
        }
        if programs.len() > 4 {
            programs.remove(0);
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
            let begun = Barrier::new(threads);
            std::thread::scope(|scope| {
                for thread in 0..threads as u64 {
                    let (gpu, begun) = (&gpu, &begun);
                    scope.spawn(move || {
                        begun.wait();
                        random_program(gpu, 100 * seed + thread, rounds);
                    });
                }
            });
            gpu.synchronize().unwrap();
            assert_eq!(gpu.stats().pool.live_blocks, 0, "seed {seed}");
        }
    }
}

#[test]
fn random_programs_with_arguments_do_what_the_model_does() {
    check_all(0..3, 60);
}

#[test]
#[ignore = "minutes: ./dev test --long runs it"]
fn hundreds_of_random_programs_with_arguments() {
    check_all(1000..1100, 200);
}
