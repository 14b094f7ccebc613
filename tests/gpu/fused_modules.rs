//! Fused elementwise ops on every variant, and so in every module that runs them: the same bits as unfused.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use tidemill::profile::Profiling;
use tidemill::{Accelerator, Recording, Result, Value};

use crate::fusion::{noise, on_each};
use crate::harness::{Gpu, config, gpu, gpu_with};

type Fused = fn(&Accelerator, &Recording, usize) -> Result<Vec<Value>>;

/// Programs on as many elements, and the end of the name of the modules that have room for them.
const PROGRAMS: [(Fused, &str); 4] = [
    (
        |gpu, r, n| {
            let v = r.add(&noise(gpu, 1, [n]), &noise(gpu, 2, [n]))?;
            let v = r.mul(v, &noise(gpu, 3, [n]))?;
            let v = r.sub(v, &noise(gpu, 4, [n]))?;
            Ok(vec![r.relu(v)?])
        },
        ".inputs4-steps4-outputs1.plain",
    ),
    (
        |gpu, r, n| {
            let v = r.scale(&noise(gpu, 1, [n]), 0.7)?;
            let v = r.exp(v)?;
            let v = r.sub(v, &noise(gpu, 2, [n]))?;
            Ok(vec![r.tanh(v)?])
        },
        ".inputs4-steps4-outputs1.all",
    ),
    (
        |gpu, r, n| {
            let v = r.scale(&noise(gpu, 1, [n]), 0.7)?;
            let v = r.log1p(r.abs(v)?)?;
            Ok(vec![r.atan2(v, &noise(gpu, 2, [n]))?])
        },
        ".inputs4-steps4-outputs1.every",
    ),
    (
        |gpu, r, n| {
            let others = [2, 3, 4].map(|seed| noise(gpu, seed, [n]));
            let mut values = vec![r.abs(&noise(gpu, 1, [n]))?];
            for i in 1..16 {
                let last = values[i - 1];
                values.push(match i % 3 {
                    0 => r.mul(last, &others[i / 3 % 3])?,
                    1 => r.sub(&others[i % 3], last)?,
                    _ => r.max(last, values[i / 2])?,
                });
            }
            Ok([3, 8, 12, 15].map(|i| values[i]).to_vec())
        },
        ".inputs4-steps16-outputs4.light",
    ),
];

/// Whole workgroups, and elements under masks.
const SIZES: [usize; 2] = [1 << 14, 1003];

/// One accelerator that fuses and one that does not, for each variant of a family.
fn each_variant(family: &'static str) -> impl Iterator<Item = (&'static str, [Gpu; 2])> {
    let all = gpu().variants();
    let of_family = all.into_iter().filter(move |variant| variant.family == family);
    of_family.map(move |variant| {
        let with = |fusion| gpu_with(config().variant(family, variant.name).fusion(fusion));
        (variant.name, [with(true), with(false)])
    })
}

/// Compares what comes out of both accelerators, bit for bit, and gives the modules that the first has run.
fn compare(
    what: &str,
    gpus: &[Gpu; 2],
    record: impl Fn(&Accelerator, &Recording) -> Result<Vec<Value>>,
) -> BTreeSet<String> {
    let session = gpus[0].begin_profiling("fused", Profiling::Timeline).unwrap();
    let [(fused, few), (unfused, many)] = on_each(gpus, record);
    assert_eq!(fused, unfused, "{what}");
    assert!(few < many, "{what}: {few} dispatches, and {many} without fusion");
    session.finish().unwrap().rows().map(|row| row.kernel.clone()).collect()
}

/// Rows of which this many elements are seen.
fn masked(gpu: &Accelerator, r: &Recording, shape: [usize; 2], length: usize, outside: f32) -> Result<Value> {
    let length = r.fill([1], length as u32)?;
    r.mask_from(r.scale(&noise(gpu, 1, shape), 0.125)?, 1, length, outside)
}

/// Runs fused ops on every variant of elementwise kernels, reductions, softmax and matmuls; gives the modules that ran.
pub(crate) fn run() -> BTreeSet<String> {
    static MODULES: OnceLock<BTreeSet<String>> = OnceLock::new();
    MODULES.get_or_init(run_all).clone()
}

fn run_all() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (name, gpus) in each_variant("elementwise") {
        for (program, module) in PROGRAMS {
            let kernels = compare(&format!("elementwise {name}, {module}"), &gpus, |gpu, r| {
                SIZES.iter().map(|n| program(gpu, r, *n)).collect::<Result<Vec<_>>>().map(|all| all.concat())
            });
            assert!(
                kernels.iter().all(|kernel| kernel.ends_with(module)),
                "{name}: {kernels:?} for {module}"
            );
            all.extend(kernels);
        }
    }
    for (name, gpus) in each_variant("reduce") {
        all.extend(compare(&format!("reduce {name}"), &gpus, |gpu, r| {
            let h = r.mul(&noise(gpu, 1, [7, 1003]), &noise(gpu, 2, [7, 1003]))?;
            Ok(vec![r.sum(h, 1)?])
        }));
        all.extend(compare(&format!("masked, reduce {name}"), &gpus, |gpu, r| {
            [[7, 1003, 1000], [16, 512, 301], [2, 70_001, 69_998]]
                .map(|[rows, extent, length]| {
                    let seen = masked(gpu, r, [rows, extent], length, f32::NEG_INFINITY)?;
                    r.amax(seen, 1)
                })
                .into_iter()
                .collect()
        }));
    }
    for (name, gpus) in each_variant("softmax") {
        all.extend(compare(&format!("softmax {name}"), &gpus, |gpu, r| {
            let shapes = [[16, 512], [7, 1003]].into_iter();
            let softmax = |r: &Recording, shape| {
                let h = r.scale(&noise(gpu, 1, shape), 0.125)?;
                r.softmax(h, -1)
            };
            shapes.map(|shape| softmax(r, shape)).collect()
        }));
        all.extend(compare(&format!("masked, softmax {name}"), &gpus, |gpu, r| {
            [[16, 512, 301], [7, 1003, 1000], [3, 2, 1]]
                .map(|[rows, extent, length]| {
                    r.softmax(masked(gpu, r, [rows, extent], length, f32::NEG_INFINITY)?, -1)
                })
                .into_iter()
                .collect()
        }));
    }
    for (name, gpus) in each_variant("matmul") {
        for k in [24, 20, 33] {
            let layers = |gpu: &Accelerator, r: &Recording| {
                let h = r.matmul(&noise(gpu, 1, [66, k]), &noise(gpu, 2, [k, 64]))?;
                let h = r.add(h, &noise(gpu, 3, [64]))?;
                let h = r.relu(h)?;
                let h = r.matmul(h, &noise(gpu, 4, [64, 10]))?;
                Ok(vec![r.tanh(h)?])
            };
            all.extend(compare(&format!("matmul {name}, {k}"), &gpus, layers));
        }
    }
    all
}

#[test]
fn fused_programs_give_the_same_bits_on_every_variant() {
    let modules = run();
    for module in [
        "elementwise.buffer.inputs4-steps4-outputs1.plain",
        "elementwise.buffer.inputs4-steps4-outputs1.all",
        "elementwise.buffer.inputs4-steps4-outputs1.every",
        "elementwise.texel.inputs4-steps4-outputs1.every",
        "elementwise.buffer.inputs4-steps16-outputs4.light",
        "elementwise.texel.inputs4-steps4-outputs1.plain",
        "elementwise.texel.inputs4-steps4-outputs1.all",
        "elementwise.texel.inputs4-steps16-outputs4.light",
        "elementwise.texel.uniform.inputs4-steps4-outputs1.plain",
    ] {
        assert!(modules.contains(module), "{module} is not among {modules:?}");
    }
}
