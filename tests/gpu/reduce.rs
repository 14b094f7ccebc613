//! Reductions: what the table of cases can't say.

use tidemill::{Axes, DType, Error};

use crate::harness::{config, gpu, gpu_with};

fn noise(n: usize) -> Vec<f32> {
    (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

#[test]
fn the_same_operand_gives_the_same_bits_every_time() {
    let gpu = gpu();
    let (x, other) =
        (gpu.upload(&noise(300_007), [300_007]).unwrap(), gpu.upload(&noise(1 << 20), [1 << 20]).unwrap());
    let all = || {
        let results = gpu.run(|r| {
            let columns = r.reshape(&other, [1 << 10, 1 << 10])?;
            Ok(vec![
                r.sum(&x, Axes::ALL)?,
                r.norm(&x, Axes::ALL)?,
                r.variance(&x, 0)?,
                r.dot(&x, &x)?,
                r.mean(columns, 0)?,
                r.prod(columns, 1)?,
            ])
        });
        let bits = results.unwrap().into_iter().flat_map(|t| t.read::<f32>().unwrap()).map(f32::to_bits);
        bits.collect::<Vec<_>>()
    };
    let first = all();
    for _ in 0..5 {
        assert_eq!(all(), first);
    }
}

#[test]
fn results_feed_further_operations_in_one_recording() {
    let gpu = gpu();
    let x = gpu.upload(&noise(12 * 34), [12, 34]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let doubled = r.add(&x, &x).unwrap();
    let mean = r.mean(doubled, Axes::at(1).keep()).unwrap();
    let centred = r.sub(doubled, mean).unwrap();
    let sums = r.sum(centred, -1).unwrap();
    let worst = r.amax(sums, Axes::ALL).unwrap();
    let worst = r.keep(worst).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(worst.shape(), [].into());
    assert!(worst.read::<f32>().unwrap()[0].abs() < 1e-5);
}

#[test]
fn nothing_to_reduce() {
    let gpu = gpu();
    let x = gpu.upload::<f32>(&[], [3, 0]).unwrap();
    let of = |f: &dyn Fn(&tidemill::Recording) -> tidemill::Result<tidemill::Value>| gpu.run(f).unwrap();
    assert_eq!(of(&|r| r.sum(&x, 1)).read::<f32>().unwrap(), [0.0; 3]);
    assert_eq!(of(&|r| r.prod(&x, Axes::ALL)).read::<f32>().unwrap(), [1.0]);
    assert_eq!(of(&|r| r.norm(&x, Axes::ALL)).read::<f32>().unwrap(), [0.0]);
    assert!(of(&|r| r.mean(&x, 1)).read::<f32>().unwrap().iter().all(|m| m.is_nan()));
    assert!(of(&|r| r.variance(&x, 1)).read::<f32>().unwrap().iter().all(|v| v.is_nan()));
    // No results, no work.
    let none = of(&|r| r.amax(&x, 0));
    assert_eq!((none.shape(), none.read::<f32>().unwrap()), ([0].into(), vec![]));
    let integers = gpu.upload::<i32>(&[], [0]).unwrap();
    assert_eq!(of(&|r| r.sum(&integers, 0)).read::<i32>().unwrap(), [0]);
    for op in ["amax", "amin", "argmax", "argmin"] {
        let refused = gpu.run(|r| match op {
            "amax" => r.amax(&x, 1),
            "amin" => r.amin(&x, 1),
            "argmax" => r.argmax(&x, 1),
            _ => r.argmin(&x, 1),
        });
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::EmptyReduction { .. }), "{refused}");
        let said =
            format!("{op}: shape [3, 0] leaves nothing to choose from: the reduced axes hold 0 elements");
        assert_eq!(refused.to_string(), said);
    }
}

#[test]
fn mistakes_are_named_and_leave_the_recording_usable() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3]).unwrap();
    let counts = gpu.upload(&[1u32, 2], [2]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let scalar = r.sum(&x, Axes::ALL).unwrap();
    let said = [
        r.sum(&x, 1).unwrap_err(),
        r.argmax(&x, -2).unwrap_err(),
        r.sum(scalar, 0).unwrap_err(),
        r.norm(&counts, 0).unwrap_err(),
        r.dot(&x, &counts).unwrap_err(),
        r.softmax(&counts, 0).unwrap_err(),
        r.softmax(&x, 1).unwrap_err(),
    ]
    .map(|e| e.to_string());
    assert_eq!(
        said,
        [
            "sum: axis 1 is out of range for rank 1",
            "argmax: axis -2 is out of range for rank 1",
            "sum: axis 0 is out of range for rank 0",
            "norm: the operand is u32, this needs f32, f16 or bf16",
            "dot: the rhs is u32, this needs f32, f16 or bf16",
            "softmax: the operand is u32, this needs f32, f16 or bf16",
            "softmax: axis 1 is out of range for rank 1",
        ]
    );
    let pair = r.fill([2], 1.0f32).unwrap();
    assert_eq!(r.dot(&x, pair).unwrap_err().to_string(), "dot: lhs [3] and rhs [2]: 3 != 2");
    let square = r.fill([3, 1], 1.0f32).unwrap();
    let refused = r.dot(square, square).unwrap_err();
    assert_eq!(refused.to_string(), "dot: lhs [3, 1] and rhs [3, 1]: both must be of rank 1");
    let scalar = r.keep(scalar).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert_eq!(scalar.read::<f32>().unwrap(), [6.0]);
}

#[test]
fn a_scalar_reduces_to_itself() {
    let gpu = gpu();
    let x = gpu.upload(&[-2.5f32], []).unwrap();
    let (sum, place) = gpu.run(|r| Ok((r.sum(&x, Axes::ALL)?, r.argmin(&x, Axes::ALL.keep())?))).unwrap();
    assert_eq!((sum.shape(), sum.read::<f32>().unwrap()), ([].into(), vec![-2.5]));
    assert_eq!((place.dtype(), place.read::<u32>().unwrap()), (DType::U32, vec![0]));
}

#[test]
fn every_variant_keeps_its_promise_about_special_values() {
    for variant in gpu().variants().into_iter().filter(|v| v.family == "reduce") {
        let gpu = gpu_with(config().variant("reduce", variant.name));
        // NaNs of either sign, in any place of long and short rows.
        for n in [1, 3, 130, 5000] {
            for nan in [f32::NAN, -f32::NAN] {
                for at in [0, n / 2, n - 1] {
                    let mut x = noise(n);
                    x[at] = nan;
                    let x = gpu.upload(&x, [n]).unwrap();
                    let (max, min, places) = gpu
                        .run(|r| {
                            Ok((r.amax(&x, 0)?, r.amin(&x, 0)?, vec![r.argmax(&x, 0)?, r.argmin(&x, 0)?]))
                        })
                        .unwrap();
                    assert!(max.read::<f32>().unwrap()[0].is_nan() && min.read::<f32>().unwrap()[0].is_nan());
                    for place in places {
                        assert_eq!(place.read::<u32>().unwrap(), [at as u32], "{} {n}", variant.name);
                    }
                }
            }
        }
    }
}
