//! What operations take: numbers on either side, iterators of operands, axes and ranges of every kind; and how they are
//! called.

use std::fmt;
use std::sync::Arc;
use std::thread;

use tidemill::{Axes, DType, Error, F16, Operand, Value};

use crate::harness::gpu;

#[test]
fn numbers_stand_on_either_side() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0, 4.0], [3]).unwrap();
    let n = gpu.upload(&[1i32, 2, 4], [3]).unwrap();
    let float = |of: &dyn Fn(&tidemill::Recording) -> tidemill::Result<Value>| {
        gpu.run(|r| of(r)).unwrap().read::<f32>().unwrap()
    };
    assert_eq!(float(&|r| r.sub(1.0, &x)), [0.0, -1.0, -3.0]);
    assert_eq!(float(&|r| r.sub(&x, 1.0)), [0.0, 1.0, 3.0]);
    assert_eq!(float(&|r| r.div(2.0, &x)), [2.0, 1.0, 0.5]);
    assert_eq!(float(&|r| r.pow(2.0, &x)), [2.0, 4.0, 16.0]);
    assert_eq!(float(&|r| r.max(&x, 3.0)), [3.0, 3.0, 4.0]);
    assert_eq!(float(&|r| r.add(2.0, 3.0)), [5.0]);
    assert_eq!(float(&|r| r.mul(r.sub(1.0, r.exp(r.mul(0.0, &x)?)?)?, &x)), [0.0; 3]);
    assert_eq!(float(&|r| r.select(r.gt(2.0, &x)?, &x, 7.0)), [1.0, 7.0, 7.0]);
    assert_eq!(float(&|r| r.sum(r.matmul(&x, r.broadcast_to(0.5, [3])?)?, Axes::ALL)), [3.5]);
    let y = gpu.run(|r| r.sub(10, &n)).unwrap();
    assert_eq!(y.read::<i32>().unwrap(), [9, 8, 6]);
    let less = gpu.run(|r| r.lt(1, &n)).unwrap();
    assert_eq!(less.read::<u32>().unwrap(), [0, 1, 1]);
    // An f32 scalar may be combined with f16, as an f16 scalar may.
    let half = gpu.upload(&[1.0, 2.0].map(F16::from_f32), [2]).unwrap();
    for y in [gpu.run(|r| r.sub(3.0, &half)), gpu.run(|r| r.sub(F16::from_f32(3.0), &half))] {
        assert_eq!(y.unwrap().read::<F16>().unwrap(), [2.0, 1.0].map(F16::from_f32));
    }
    let said = |refused: tidemill::Result<Value>| refused.unwrap_err().to_string();
    let r = gpu.begin_recording().unwrap();
    assert_eq!(said(r.sub(1, &x)), "sub: the lhs is i32, this needs f32");
    assert_eq!(said(r.add(&n, 1.5)), "add: the rhs is f32, this needs i32");
    assert_eq!(said(r.matmul(1.0, &x)), said(r.matmul(r.fill([], 1.0f32).unwrap(), &x)));
    assert_eq!((r.shape(1.0).unwrap(), r.dtype(1u32).unwrap()), ([].into(), DType::U32));
}

#[test]
fn a_number_beside_a_tensor_takes_no_dispatch_and_no_memory() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0, 4.0], [3]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let _kept = r.keep(r.sub(1.0, r.div(2.0, &x).unwrap()).unwrap()).unwrap();
    let explained = r.explain().unwrap();
    assert_eq!((explained.recorded.len(), explained.run.len()), (2, 1));
}

#[test]
fn operands_come_from_any_iterator() {
    let gpu = gpu();
    let parts: Vec<_> = (0..3u32).map(|i| gpu.upload(&[i, i + 10], [2]).unwrap()).collect();
    let joined = gpu.run(|r| r.concat(&parts, 0)).unwrap();
    assert_eq!(joined.read::<u32>().unwrap(), [0, 10, 1, 11, 2, 12]);
    // The iterator itself may record.
    let r = gpu.begin_recording().unwrap();
    let doubled = parts.iter().map(|part| r.add(part, part).unwrap());
    let joined = r.keep(r.concat(doubled, -1).unwrap()).unwrap();
    let mixed = [Operand::from(&parts[0]), r.add(&parts[1], 1u32).unwrap().into()];
    let stacked = r.keep(r.stack(mixed, 0).unwrap()).unwrap();
    drop(r.end_recording().unwrap());
    assert_eq!(joined.read::<u32>().unwrap(), [0, 20, 2, 22, 4, 24]);
    assert_eq!(stacked.shape(), [2, 2].into());
    assert_eq!(stacked.read::<u32>().unwrap(), [0, 10, 2, 12]);
}

#[test]
fn ranges_are_those_of_rust() {
    let gpu = gpu();
    let x = gpu.upload(&(0..12u32).collect::<Vec<_>>(), [3, 4]).unwrap();
    let of = |slice: &dyn Fn(&tidemill::Recording) -> tidemill::Result<Value>| {
        gpu.run(|r| slice(r)).unwrap().read::<u32>().unwrap()
    };
    assert_eq!(of(&|r| r.slice(&x, 2..)), [8, 9, 10, 11]);
    assert_eq!(of(&|r| r.slice(&x, ..1)), [0, 1, 2, 3]);
    assert_eq!(of(&|r| r.slice(&x, 1..=1)), [4, 5, 6, 7]);
    assert_eq!(of(&|r| r.slice(&x, (.., 3..))), [3, 7, 11]);
    assert_eq!(of(&|r| r.slice(&x, (..=1, 1..3))), [1, 2, 5, 6]);
    assert_eq!(of(&|r| r.slice(&x, ..)), (0..12).collect::<Vec<_>>());
    let r = gpu.begin_recording().unwrap();
    let said = |refused: tidemill::Result<Value>| refused.unwrap_err().to_string();
    assert_eq!(said(r.slice(&x, 4..)), said(r.slice(&x, 4..4)));
    assert_eq!(said(r.slice(&x, ..=3)), said(r.slice(&x, 0..4)));
    assert!(matches!(r.slice(&x, (.., .., ..)), Err(Error::SliceRange { dimension: 2, .. })));
}

#[test]
fn reductions_take_several_axes() {
    let gpu = gpu();
    let data: Vec<f32> = (0..2 * 3 * 5 * 4).map(|i| (i * 7 % 31) as f32 - 15.0).collect();
    let x = gpu.upload(&data, [2, 3, 5, 4]).unwrap();
    // Sums of small integers are exact, so the order of the axes must not show.
    let sums = |axes: Axes| gpu.run(|r| r.sum(&x, axes)).unwrap();
    let one_by_one = gpu.run(|r| r.sum(r.sum(r.sum(&x, 3)?, 2)?, 0)).unwrap();
    for axes in [Axes::from([0, 2, 3]), Axes::from([3, 0, 2]), Axes::from([-2isize, -1, 0])] {
        let sum = sums(axes);
        assert_eq!(sum.shape(), [3].into());
        assert_eq!(sum.read::<f32>().unwrap(), one_by_one.read::<f32>().unwrap());
        assert_eq!(sums(axes.keep()).shape(), [1, 3, 1, 1].into());
    }
    let all = sums(Axes::from([0, 1, 2, 3]));
    assert_eq!(all.read::<f32>().unwrap(), sums(Axes::ALL).read::<f32>().unwrap());
    // Of several axes, places count in their row-major order.
    let places = gpu.run(|r| r.argmax(&x, [1, 3])).unwrap().read::<u32>().unwrap();
    let mut expected = Vec::new();
    for (a, c) in (0..2).flat_map(|a| (0..5).map(move |c| (a, c))) {
        let line: Vec<f32> = (0..3)
            .flat_map(|b| (0..4).map(move |d| ((a * 3 + b) * 5 + c) * 4 + d))
            .map(|i| data[i])
            .collect();
        let best = line.iter().copied().fold(f32::MIN, f32::max);
        expected.push(line.iter().position(|&v| v == best).unwrap() as u32);
    }
    assert_eq!(places, expected);
    let mut on_cpu = [0u32; 10];
    tidemill::cpu::argmax((&data, [2, 3, 5, 4]), [1, 3], &mut on_cpu).unwrap();
    assert_eq!(on_cpu.as_slice(), expected);
    let r = gpu.begin_recording().unwrap();
    assert!(matches!(r.sum(&x, [1, -3]), Err(Error::AxisTwice { op: "sum", axis: 1 })));
    assert!(matches!(r.mean(&x, [0, 4]), Err(Error::Axis { axis: 4, rank: 4, .. })));
}

/// An application's own error.
#[derive(Debug)]
enum Own {
    Engine(Error),
    NoModel(&'static str),
}

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl From<Error> for Own {
    fn from(error: Error) -> Own {
        Own::Engine(error)
    }
}

#[test]
fn closures_fail_with_errors_of_the_callers_own() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let before = gpu.stats().submissions;
    let run = |model: Option<f32>| {
        gpu.try_run(|r| {
            let factor = model.ok_or(Own::NoModel("factor"))?;
            Ok::<_, Own>((r.mul(&x, factor)?, r.add(&x, factor)?))
        })
    };
    assert!(matches!(run(None), Err(Own::NoModel("factor"))));
    assert_eq!(gpu.stats().submissions, before, "nothing is submitted");
    let (product, sum) = run(Some(3.0)).unwrap();
    assert_eq!((product.read().unwrap(), sum.read().unwrap()), (vec![3.0f32, 6.0], vec![4.0f32, 5.0]));
    let refused = gpu.try_run(|r| Ok::<_, Own>(r.sum(&x, 1)?));
    assert!(matches!(refused, Err(Own::Engine(Error::Axis { .. }))));

    let stream = || gpu.stream().input::<f32>([2]);
    let refused = stream().try_record(|_, _| Err::<Vec<Value>, _>(Own::NoModel("layer")));
    assert!(matches!(refused, Err(Own::NoModel("layer"))));
    let mut stream = stream().record(|r, x| Ok([r.add(&x[0], 1.0)?])).unwrap();
    let mut sums = Vec::new();
    let failed = stream.try_run(
        0..10u8,
        |n, slot| {
            slot.fill(0, |f| f.extend([f32::from(n); 2]))?;
            if n == 4 { Err(Own::NoModel("batch 4")) } else { Ok(()) }
        },
        |batch| {
            sums.push(batch.read::<f32>(0)?[0]);
            Ok(())
        },
    );
    assert!(matches!(failed, Err(Own::NoModel("batch 4"))));
    // What was pushed before is there, and the stream goes on.
    while let Some(batch) = stream.pop().unwrap() {
        sums.push(batch.read::<f32>(0).unwrap()[0]);
    }
    assert_eq!(sums, [1.0, 2.0, 3.0, 4.0]);
    stream.push(|slot| slot.fill(0, |f| f.extend([9.0f32; 2]))).unwrap();
    assert_eq!(stream.pop().unwrap().unwrap().read::<f32>(0).unwrap(), [10.0; 2]);
}

#[test]
fn a_run_gives_its_submission() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0], [2]).unwrap();
    let (sum, done) = gpu.run_submitted(|r| r.add(&x, 1.0)).unwrap();
    let (next, later) = gpu.run_submitted(|r| r.mul(&sum, 2.0)).unwrap();
    assert!(later.number() > done.number());
    later.wait().unwrap();
    assert!(done.is_complete().unwrap());
    assert_eq!(next.read::<f32>().unwrap(), [4.0, 6.0]);
}

#[test]
fn a_recording_is_shared_by_a_lock() {
    let gpu = gpu();
    let x = gpu.upload(&[1u32; 4], [4]).unwrap();
    let r = Arc::new(std::sync::Mutex::new(gpu.begin_recording().unwrap()));
    let kept: Vec<_> = thread::scope(|s| {
        let threads: Vec<_> = (0..4u32)
            .map(|i| {
                let (r, x) = (r.clone(), &x);
                s.spawn(move || {
                    let r = r.lock().unwrap();
                    r.keep(r.add(x, i).unwrap()).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let r = Arc::into_inner(r).unwrap().into_inner().unwrap();
    drop(r.end_recording().unwrap());
    for (i, kept) in (1..).zip(kept) {
        assert_eq!(kept.read::<u32>().unwrap(), [i; 4]);
    }
}

#[cfg(feature = "half")]
#[test]
fn halves_of_the_crate_half_are_elements() {
    use half_float::f16;
    let gpu = gpu();
    let x = gpu.upload(&[1.0, 2.5].map(f16::from_f32), [2]).unwrap();
    assert_eq!(x.dtype(), DType::F16);
    let y = gpu.run(|r| r.mul(&x, f16::from_f32(2.0))).unwrap();
    assert_eq!(y.read::<f16>().unwrap(), [2.0, 5.0].map(f16::from_f32));
    let filled = gpu.run(|r| r.fill([3], f16::from_f32(1.5))).unwrap();
    assert_eq!(filled.read::<F16>().unwrap(), [F16::from(f16::from_f32(1.5)); 3]);
    assert_eq!(f16::from(F16::from_f32(0.25)), f16::from_f32(0.25));
}
