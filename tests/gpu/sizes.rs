//! The first ops at every size: empty, one, around a workgroup, beyond 65,535 workgroups of 256, beyond one binding.

use tidemill::{Error, Recording, Result, Value};

use crate::harness::{Gpu, config, gpu, gpu_with};

fn data(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| 1.0 + ((i * 7 + seed) % 1013) as f32 / 8.0).collect()
}

type Op = (fn(&Recording, Value, Value) -> Result<Value>, fn(f32, f32) -> f32);

fn check_all(gpu: &Gpu, n: usize) {
    let (a, b) = (data(n, 1), data(n, 500));
    let (ta, tb) = (gpu.upload(&a, [n]).unwrap(), gpu.upload(&b, [n]).unwrap());
    let ops: [Op; 4] = [
        (|r, a, b| r.add(a, b), |a, b| a + b),
        (|r, a, b| r.sub(a, b), |a, b| a - b),
        (|r, a, b| r.mul(a, b), |a, b| a * b),
        (|r, a, b| r.div(a, b), |a, b| a / b),
    ];
    let copies = gpu.run(|r| Ok((r.copy(&ta)?, r.copy(&tb)?, r.fill([n], -2.5f32)?))).unwrap();
    assert!(copies.0.read::<f32>().unwrap() == a, "copy {n}");
    assert!(copies.2.read::<f32>().unwrap() == vec![-2.5; n], "fill {n}");
    for (k, (on_device, on_host)) in ops.into_iter().enumerate() {
        let got = gpu
            .run(|r| {
                let (a, b) = (r.reshape(&copies.0, [n])?, r.reshape(&copies.1, [n])?);
                on_device(r, a, b)
            })
            .unwrap()
            .read::<f32>()
            .unwrap();
        for (i, got) in got.iter().enumerate() {
            let expected = on_host(a[i], b[i]);
            // Division may be off by 2.5 units in the last place; the others are exact.
            let slack = if k == 3 { 3.0 * f32::EPSILON * expected.abs() } else { 0.0 };
            assert!(
                (got - expected).abs() <= slack,
                "op {k}, {n} elements, at {i}: {got} and not {expected}"
            );
        }
    }
}

#[test]
fn every_variant_at_small_sizes() {
    let names: Vec<_> =
        gpu().variants().into_iter().filter(|v| v.family == "elementwise").map(|v| v.name).collect();
    assert!(
        names.iter().any(|name| name.starts_with("buffer"))
            && names.iter().any(|name| name.starts_with("texel"))
    );
    for name in names {
        let gpu = gpu_with(config().variant("elementwise", name));
        assert!(gpu.variants().iter().any(|v| v.name == name && v.in_use));
        for n in [0, 1, 2, 3, 4, 5, 7, 255, 256, 257, 2047, 2048, 2049] {
            check_all(&gpu, n);
        }
    }
}

#[test]
fn what_does_not_fill_a_workgroup_runs_apart() {
    for name in ["texel-64x8", "buffer-64x8"] {
        let gpu = gpu_with(config().variant("elementwise", name));
        // Whole workgroups alone, and a few elements more.
        for (n, dispatches) in [(1 << 18, 1), ((1 << 18) + 1, 2), ((1 << 18) + 2047, 2)] {
            let before = gpu.stats();
            check_all(&gpu, n);
            let after = gpu.stats();
            assert_eq!(after.dispatches - before.dispatches, 4 * dispatches + 3, "{name}, {n} elements");
            assert_eq!(after.barriers, before.barriers, "{name}, {n} elements");
        }
    }
}

#[test]
fn beyond_65535_workgroups_of_256() {
    let n = 65_535 * 256 + 1;
    for name in ["texel-64x8", "buffer-256x1"] {
        let gpu = gpu_with(config().memory_checks(false).variant("elementwise", name));
        let (a, b) = (data(n, 3), data(n, 4));
        let (ta, tb) = (gpu.upload(&a, [n]).unwrap(), gpu.upload(&b, [n]).unwrap());
        let sum = gpu.run(|r| r.add(&ta, &tb)).unwrap().read::<f32>().unwrap();
        assert!(sum.iter().zip(a.iter().zip(&b)).all(|(s, (a, b))| *s == a + b), "{name}");
    }
}

#[test]
fn beyond_one_binding() {
    for name in ["texel-64x8", "buffer-64x8"] {
        let gpu = gpu_with(config().memory_checks(false).variant("elementwise", name));
        // One window and a bit, and an odd number of elements.
        let limit = gpu.device().limits.storage_range_bytes;
        let n = ((limit / 4) as usize).min(40_000_000 - 4_001) + 4_001;
        let before = gpu.stats();
        let a = gpu.upload_with([n], |f| f.extend((0..n).map(|i| (i % 8191) as f32))).unwrap();
        let b = gpu.run(|r| r.fill([n], 0.5f32)).unwrap();
        let (product, copy) = gpu.run(|r| Ok((r.mul(&a, &b)?, r.copy(&a)?))).unwrap();
        let after = gpu.stats();
        if n as u64 * 4 > limit {
            assert_eq!(after.dispatches - before.dispatches, 4, "a fill, a copy, and two windows");
            assert_eq!(after.barriers, before.barriers, "windows write apart and run side by side");
        }
        let product = product.read::<f32>().unwrap();
        assert!(product.iter().enumerate().all(|(i, x)| *x == (i % 8191) as f32 * 0.5), "{name}");
        drop(product);
        assert!(
            copy.read::<f32>().unwrap().iter().enumerate().all(|(i, x)| *x == (i % 8191) as f32),
            "{name}"
        );
    }
}

#[test]
fn an_unknown_variant_is_named_with_those_there_are() {
    let error = tidemill::Accelerator::new(&config().variant("elementwise", "abacus")).unwrap_err();
    assert!(matches!(error, Error::NoSuchVariant { .. }));
    let text = error.to_string();
    assert!(text.starts_with("no kernel variant elementwise abacus; there are: "), "{text}");
    assert!(text.contains("elementwise texel-64x8"), "{text}");
}

#[test]
fn shapes_and_types_that_disagree() {
    let gpu = gpu();
    let a = gpu.upload(&[1.0f32; 6], [2, 3]).unwrap();
    let b = gpu.upload(&[1.0f32; 4], [4]).unwrap();
    let words = gpu.upload(&[1u32; 6], [2, 3]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let error = r.add(&a, &b).unwrap_err();
    assert!(matches!(error, Error::Shapes { op: "add", .. }));
    assert!(error.to_string().starts_with("add: lhs [2, 3] and rhs [4]: "), "{error}");
    let error = r.add(&a, &words).unwrap_err();
    assert!(matches!(error, Error::Type { .. }));
    assert_eq!(error.to_string(), "add: the rhs is u32, this needs f32");
    let fine = r.add(&a, &a).unwrap();
    let fine = r.keep(fine).unwrap();
    let _ = r.end_recording().unwrap();
    assert_eq!(fine.read::<f32>().unwrap(), [2.0; 6]);
}
