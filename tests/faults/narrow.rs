//! Devices whose grids and bindings are narrow: what one dispatch can't do is cut into several, or refused by name.

use std::collections::BTreeMap;

use tidemill::{Config, Conv2d, Error, Recording, Result, Tensor, Value};

use crate::harness::{Gpu, gpu_with};
use crate::seam::{Narrow, Seam};
use tidemill_cases::report::Report;
use tidemill_cases::{self as table, Case};

/// Grids wrap after 7 workgroups, and a binding spans 64 KiB.
const NARROW: Narrow = Narrow { groups: [7, 65_535, 65_535], storage_range_bytes: 1 << 16 };

/// The device's own variants (texel loads here, so that outputs alone are bound in windows), those of software drivers
/// that load from buffers, and those of GPUs.
const VARIANTS: [(&str, &[(&str, &str)]); 3] = [
    ("software", &[]),
    (
        "buffers",
        &[("elementwise", "buffer-64x8"), ("reduce", "buffer-shuffle"), ("softmax", "buffer-shuffle")],
    ),
    (
        "GPUs",
        &[
            ("elementwise", "buffer-256x1"),
            ("reduce", "buffer-shared"),
            ("softmax", "buffer-shared"),
            ("matmul", "buffer-shared"),
            ("conv2d", "buffer-tile"),
        ],
    ),
];

fn with_variants(config: Config, variants: &[(&str, &str)]) -> Gpu {
    gpu_with(variants.iter().fold(config, |config, (family, name)| config.variant(family, name)))
}

const SORTS: [&str; 3] = ["argsort ", "sort ", "sort_by_key "];

/// Of each operation some cases of the table, spread over all that are not too slow.
fn some_of<'a>(cases: &'a [Case]) -> Vec<&'a Case> {
    let mut by_op: BTreeMap<&str, Vec<&'a Case>> = BTreeMap::new();
    for case in cases.iter().filter(|case| !case.large) {
        by_op.entry(case.op).or_default().push(case);
    }
    let spread = |of_op: Vec<&'a Case>| {
        let wanted = if matches!(of_op[0].family, "matmul" | "conv2d") { 8 } else { 3 };
        let step = of_op.len().div_ceil(wanted);
        of_op.into_iter().skip(step / 2).step_by(step)
    };
    by_op.into_values().flat_map(spread).collect()
}

#[test]
fn cases_come_out_right_in_pieces() {
    let cases = table::all();
    let some = some_of(&cases);
    for (name, variants) in VARIANTS {
        let seam = Seam::take();
        seam.narrow(NARROW);
        let gpu = with_variants(seam.config(), variants);
        let mut report = Report::default();
        report.run(&gpu, &format!(" with variants for {name}"), some.iter().copied()).unwrap();
        let failures: Vec<_> = report.rows.values().flat_map(|row| &row.failures).collect();
        // Where operands are loaded from buffers, some reach too far.
        let (refused, wrong): (Vec<_>, Vec<_>) = failures
            .into_iter()
            .partition(|failure| failure.contains(" bytes in one binding, the device allows 65536"));
        assert!(wrong.is_empty(), "{wrong:#?}");
        // Sorts go by places that may be anywhere: their keys are in one binding, or they are refused by name.
        let (_, refused): (Vec<_>, Vec<_>) =
            refused.into_iter().partition(|failure| SORTS.iter().any(|op| failure.starts_with(op)));
        let most = if variants.is_empty() { 0 } else { some.len() / 20 };
        assert!(refused.len() <= most, "{} of {} refused: {refused:#?}", refused.len(), some.len());
        assert_eq!(seam.violations(), Vec::<String>::new(), "{name}");
        assert!(seam.wrapped() > 0, "no grid has wrapped");
    }
}

fn numbers(n: usize) -> Vec<u32> {
    (0..n as u32).collect()
}

#[test]
fn parts_of_large_tensors_are_bound_where_they_lie() {
    let seam = Seam::take();
    seam.narrow(NARROW);
    seam.edit_properties(|p| p.limits.min_storage_buffer_offset_alignment = 256);
    let gpu = with_variants(seam.config(), VARIANTS[1].1);
    let host = numbers(100_000);
    let x = gpu.upload(&host, [100_000]).unwrap();
    // One element; as many as a binding spans, from where none begins; more than that; every other row.
    for range in [50_001..50_002, 99_999..100_000, 4..4 + (1 << 14), 8..90_000, 90_001..100_000] {
        let got = gpu.run(|r| r.slice(&x, range.clone())).unwrap().read::<u32>().unwrap();
        assert!(got == host[range.clone()], "{range:?}");
    }
    let got = gpu
        .run(|r| {
            let table = r.reshape(&x, [1000, 100])?;
            r.slice(table, [500..520, 3..50])
        })
        .unwrap();
    let expected = (500..520).flat_map(|row| (3..50).map(move |column| row * 100 + column));
    assert_eq!(got.read::<u32>().unwrap(), expected.collect::<Vec<u32>>());
    assert_eq!(seam.violations(), Vec::<String>::new());
}

#[test]
fn large_tensors_are_put_together_from_pieces() {
    let seam = Seam::take();
    seam.narrow(NARROW);
    for (name, variants) in VARIANTS {
        let gpu = with_variants(seam.config(), variants);
        // Rows beyond a binding, odd ones, few and many.
        for (rows, widths) in
            [(3, [20_001, 17_003]), (5, [5_001, 16_387]), (9, [4_096, 20_000]), (700, [33, 31])]
        {
            let host = widths.map(|width| numbers(rows * width));
            let [x, y] = [0, 1].map(|k| gpu.upload(&host[k], [rows, widths[k]]).unwrap());
            let joined = gpu.run(|r| r.concat([&x, &y], 1)).unwrap().read::<u32>().unwrap();
            let row = |k: usize, i: usize| &host[k][i * widths[k]..][..widths[k]];
            let expected: Vec<u32> = (0..rows).flat_map(|i| [row(0, i), row(1, i)].concat()).collect();
            assert!(joined == expected, "{name}: {rows} rows of {widths:?}");
            let padded = gpu.run(|r| r.pad(&x, [(1, 0), (3, 2)], 7u32)).unwrap().read::<u32>().unwrap();
            let width = widths[0] + 5;
            let around = |i: usize| [&[7; 3][..], row(0, i), &[7; 2]].concat();
            let expected: Vec<u32> = vec![7; width].into_iter().chain((0..rows).flat_map(around)).collect();
            assert!(padded == expected, "{name}: {rows} rows of {width}");
        }
        let host = numbers(40_000);
        let x = gpu.upload(&host, [40_000]).unwrap();
        let pairs = gpu.run(|r| r.stack([&x, &x], 1)).unwrap().read::<u32>().unwrap();
        assert!(pairs.iter().enumerate().all(|(i, x)| *x == i as u32 / 2), "{name}");
    }
    assert_eq!(seam.violations(), Vec::<String>::new());
}

/// Apart, what is added is bound in windows. As a part of the matmul all of it would be bound at once.
#[test]
fn what_only_fusion_makes_too_large_runs_apart() {
    let seam = Seam::take();
    seam.narrow(NARROW);
    for (name, variants) in &VARIANTS[1..] {
        let gpu = with_variants(seam.config(), variants);
        let a = gpu.upload(&[0.5f32; 400 * 8], [400, 8]).unwrap();
        let b = gpu.upload(&[0.25f32; 8 * 100], [8, 100]).unwrap();
        let large = gpu.upload(&vec![2.0f32; 40_000], [400, 100]).unwrap();
        let sum = |r: &Recording| {
            let matmul = r.matmul(&a, &b)?;
            r.add(matmul, &large)
        };
        assert!(gpu.run(sum).unwrap().read::<f32>().unwrap().iter().all(|x| *x == 3.0), "{name}");
    }
    assert_eq!(seam.violations(), Vec::<String>::new());
}

#[test]
fn what_a_binding_cannot_span_is_refused_by_the_operation() {
    let seam = Seam::take();
    seam.narrow(NARROW);
    let gpu = with_variants(seam.config(), VARIANTS[2].1);
    let x = gpu.upload(&vec![1.0f32; 40_000], [200, 200]).unwrap();
    let wide = x.reshape([2, 20_000]).unwrap();
    let rows = gpu.upload(&[0u32, 1], [2]).unwrap();
    let two = gpu.upload(&[1.0f32; 400], [2, 200]).unwrap();
    let r = gpu.begin_recording().unwrap();
    let before = r.add(&x, &x).unwrap();
    let weights = gpu.prepare_weights(&gpu.upload(&[1.0f32], [1, 1, 1, 1]).unwrap(), 1).unwrap();
    let image = x.reshape([1, 1, 200, 200]).unwrap();
    type Op<'a> = &'a dyn Fn(&Recording) -> Result<Value>;
    let refused: [(&str, &Tensor, Op<'_>); 10] = [
        ("permute", &x, &|r| r.permute(&x, [1, 0])),
        ("transpose", &x, &|r| r.transpose(&x)),
        ("gather_rows", &x, &|r| r.gather_rows(&x, &rows)),
        ("gather", &x, &|r| r.gather(&x, &rows, 1)),
        ("scatter_max", &x, &|r| r.scatter_max(&x, &rows, &two, 0)),
        ("sum", &wide, &|r| r.sum(&wide, 0)),
        ("variance", &wide, &|r| r.variance(&wide, 0)),
        ("softmax", &wide, &|r| r.softmax(&wide, 0)),
        ("matmul", &x, &|r| r.matmul(&x, &x)),
        ("conv2d", &x, &|r| r.conv2d_with(&image, &weights, Conv2d::new().stride([4, 4]))),
    ];
    for (name, x, op) in refused {
        let error = op(&r).unwrap_err();
        assert!(matches!(error, Error::BindingTooLarge { op, limit: 65_536, .. } if op == name), "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&format!("{name}: shape {} needs ", x.shape())), "{text}");
        assert!(
            text.ends_with(" bytes in one binding, the device allows 65536; work in smaller pieces"),
            "{text}"
        );
        assert_eq!(r.explain().unwrap().recorded.len(), 1, "{name} left something behind");
    }
    let kept = r.keep(before).unwrap();
    r.end_recording().unwrap().wait().unwrap();
    assert!(kept.read::<f32>().unwrap().iter().all(|x| *x == 2.0));
    assert_eq!(seam.violations(), Vec::<String>::new());
}
