//! Fused and unfused give the same bits, and fusion does what it is for.

use tidemill::{Accelerator, Axes, Config, Conv2d, DType, Recording, Result, Tensor, Value};

use crate::harness::{Gpu, config, gpu, gpu_with};
use crate::random::Random;

#[test]
fn a_chain_of_100_is_a_handful_of_dispatches_and_right() {
    let gpu = gpu();
    let x = gpu.upload(&[1.0f32; 1000], [1000]).unwrap();
    let before = gpu.stats().dispatches;
    let y = gpu
        .run(|r| {
            let mut v = r.add(&x, &x)?;
            for _ in 1..100 {
                v = r.add(v, &x)?;
            }
            Ok(v)
        })
        .unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [101.0; 1000]);
    assert_eq!(gpu.stats().dispatches - before, 7);
}

/// What comes out of one recording on both accelerators, and how many dispatches each took.
fn both(record: impl Fn(&Accelerator, &Recording) -> Result<Vec<Value>>) -> [(Vec<Vec<u32>>, u64); 2] {
    both_with(config(), record)
}

fn both_with(
    config: Config,
    record: impl Fn(&Accelerator, &Recording) -> Result<Vec<Value>>,
) -> [(Vec<Vec<u32>>, u64); 2] {
    on_each(&[gpu_with(config.clone()), gpu_with(config.fusion(false))], record)
}

pub(crate) fn on_each(
    gpus: &[Gpu; 2],
    record: impl Fn(&Accelerator, &Recording) -> Result<Vec<Value>>,
) -> [(Vec<Vec<u32>>, u64); 2] {
    gpus.each_ref().map(|gpu| {
        let before = gpu.stats().dispatches;
        let r = gpu.begin_recording().unwrap();
        let values = record(gpu, &r).unwrap();
        let kept: Vec<Tensor> = values.into_iter().map(|v| r.keep(v).unwrap()).collect();
        r.end_recording().unwrap().wait().unwrap();
        let bits = |t: &Tensor| match t.dtype() {
            DType::U32 => t.read::<u32>().unwrap(),
            DType::I32 => t.read::<i32>().unwrap().iter().map(|x| x.cast_unsigned()).collect(),
            _ => t.read::<f32>().unwrap().iter().map(|x| x.to_bits()).collect(),
        };
        (kept.iter().map(bits).collect(), gpu.stats().dispatches - before)
    })
}

pub(crate) fn noise(gpu: &Accelerator, seed: u64, shape: impl Into<tidemill::Shape>) -> Tensor {
    let (mut random, shape) = (Random(seed), shape.into());
    let data: Vec<f32> = (0..shape.elements()).map(|_| random.below(2001) as f32 / 500.0 - 2.0).collect();
    gpu.upload(&data, shape).unwrap()
}

pub(crate) type EpilogueOps = fn(&Accelerator, &Recording, Value) -> Result<Value>;

#[test]
fn epilogues_of_matmuls_give_the_same_bits_in_the_epilogue() {
    let bias_relu: EpilogueOps = |gpu, r, h| {
        let h = r.add(h, &noise(gpu, 3, [20]))?;
        r.relu(h)
    };
    let column: EpilogueOps = |gpu, r, h| r.mul(h, &noise(gpu, 4, [13, 1]));
    let residual: EpilogueOps = |gpu, r, h| {
        let h = r.scale(h, 0.25)?;
        let h = r.add(h, &noise(gpu, 5, [13, 20]))?;
        r.sub(&noise(gpu, 6, [1]), h)
    };
    let swish: EpilogueOps = |_, r, h| {
        let s = r.sigmoid(h)?;
        r.mul(h, s)
    };
    let transposed: EpilogueOps = |gpu, r, h| {
        let t = r.transpose(&noise(gpu, 7, [20, 13]))?;
        let t = r.add(h, t)?;
        r.neg(t)
    };
    for (epilogue, saved, name) in [
        (bias_relu, 2, "bias and relu"),
        (column, 1, "a factor for each row"),
        (residual, 3, "scaled, added, taken from"),
        (swish, 2, "a diamond"),
        (transposed, 2, "a transposed operand is no epilogue's"),
    ] {
        for batch in [&[][..], &[3]] {
            let shape = |dims: [usize; 2]| tidemill::Shape::new(&[batch, &dims].concat()).unwrap();
            let [(fused, few), (unfused, many)] = both(|gpu, r| {
                let h = r.matmul(&noise(gpu, 1, shape([13, 9])), &noise(gpu, 2, [9, 20]))?;
                Ok(vec![epilogue(gpu, r, h)?])
            });
            assert_eq!(fused, unfused, "{name}, batch {batch:?}");
            assert_eq!(many - few, saved, "{name}, batch {batch:?}");
        }
    }
}

/// Elements of other places are in memory, or nowhere: what is read in a second layout is stored before.
#[test]
fn what_is_read_in_two_layouts_gives_the_same_bits() {
    let gpus = [gpu(), gpu_with(config().fusion(false))];
    let [(fused, few), (unfused, many)] = on_each(&gpus, |gpu, r| {
        let (a, b) = (noise(gpu, 1, [64, 64]), noise(gpu, 2, [64, 64]));
        let x = r.mul(&a, &b)?;
        let t = r.transpose(x)?;
        let plain = r.add(x, t)?;
        let y = r.scale(&a, 2.5)?;
        let t = r.transpose(y)?;
        let t = r.neg(t)?;
        let kept_too = r.add(y, t)?;
        let cube = r.sub(&noise(gpu, 3, [9, 9, 9]), &noise(gpu, 4, [9, 9, 9]))?;
        let (p, q) = (r.permute(cube, [1, 0, 2])?, r.permute(cube, [2, 1, 0])?);
        let sum = r.add(p, q)?;
        let permuted = r.mul(cube, sum)?;
        // Another way to the elements: as if the rows were columns.
        let z = r.abs(&noise(gpu, 5, [6, 8]))?;
        let turned = r.reshape(z, [8, 6])?;
        let turned = r.transpose(turned)?;
        let reshaped = r.sub(z, turned)?;
        Ok(vec![plain, kept_too, y, permuted, reshaped])
    });
    assert_eq!(fused, unfused);
    assert_eq!(many - few, 1 + 2 + 3 + 1, "what reads is joined, and what is read is not");
}

#[test]
fn matmuls_that_are_read_in_two_layouts_give_the_same_bits() {
    let [(fused, few), (unfused, many)] = both(|gpu, r| {
        let (a, b) = (noise(gpu, 1, [6, 6, 8]), noise(gpu, 2, [8, 12]));
        let h = r.matmul(&a, &b)?;
        let t = r.permute(h, [1, 0, 2])?;
        let batches = r.add(h, t)?;
        let h = r.matmul(&a, &b)?;
        let same = r.reshape(h, [6, 6, 12])?;
        let squares = r.mul(h, same)?;
        let (x, w) = (noise(gpu, 3, [5, 4, 6, 7]), noise(gpu, 4, [5, 4, 3, 3]));
        let h = r.conv2d_with(&x, &w, Conv2d::new().padding([1, 1]))?;
        let t = r.permute(h, [1, 0, 2, 3])?;
        let images = r.mul(h, t)?;
        Ok(vec![batches, squares, images])
    });
    assert_eq!(fused, unfused);
    assert_eq!(many - few, 1 + 1 + 1, "one layout alone is an epilogue's");
}

#[test]
fn a_matmul_that_others_need_is_stored_as_it_is() {
    let [(fused, _), (unfused, _)] = both(|gpu, r| {
        let h = r.matmul(&noise(gpu, 1, [8, 8]), &noise(gpu, 2, [8, 8]))?;
        let (activated, total) = (r.relu(h)?, r.sum(h, -1)?);
        let matrix_vector = r.matmul(&noise(gpu, 1, [8, 8]), &noise(gpu, 3, [8]))?;
        let biased = r.add(matrix_vector, &noise(gpu, 4, [8]))?;
        Ok(vec![activated, total, h, biased])
    });
    assert_eq!(fused, unfused);
}

#[test]
fn epilogues_of_convolutions_give_the_same_bits_in_the_epilogue() {
    let bias_relu: EpilogueOps = |gpu, r, h| {
        let h = r.add(h, &noise(gpu, 3, [5, 1, 1]))?;
        r.relu(h)
    };
    let per_image: EpilogueOps = |gpu, r, h| r.mul(h, &noise(gpu, 4, [2, 1, 1, 1]));
    let residual: EpilogueOps = |gpu, r, h| {
        let h = r.scale(h, 0.25)?;
        let h = r.add(h, &noise(gpu, 5, [2, 5, 6, 7]))?;
        r.sub(&noise(gpu, 6, [1]), h)
    };
    let mask: EpilogueOps = |gpu, r, h| r.mul(h, &noise(gpu, 7, [6, 7]));
    let swish: EpilogueOps = |_, r, h| {
        let s = r.sigmoid(h)?;
        r.mul(h, s)
    };
    let columns: EpilogueOps = |gpu, r, h| {
        let h = r.add(h, &noise(gpu, 8, [7]))?;
        r.neg(h)
    };
    let rows: EpilogueOps = |gpu, r, h| r.add(h, &noise(gpu, 9, [6, 1]));
    let epilogues = [
        (bias_relu, 2, "bias and relu"),
        (per_image, 1, "a factor for each image"),
        (residual, 3, "scaled, added, taken from"),
        (mask, 1, "a mask for all channels"),
        (swish, 2, "a diamond"),
        (columns, 1, "one row for all rows is no epilogue's"),
        (rows, 0, "nor is one column for all columns"),
    ];
    // Two images by two kernels, in sums that are split and that are not.
    for variant in ["texel-direct", "buffer-direct", "texel-tile", "buffer-tile-64"] {
        let gpus = [true, false].map(|fusion| gpu_with(config().variant("conv2d", variant).fusion(fusion)));
        for (epilogue, saved, name) in epilogues {
            let [(fused, few), (unfused, many)] = on_each(&gpus, |gpu, r| {
                let (x, w) = (noise(gpu, 1, [2, 8, 6, 7]), noise(gpu, 2, [5, 8, 3, 3]));
                let h = r.conv2d_with(&x, &w, Conv2d::new().padding([1, 1]))?;
                Ok(vec![epilogue(gpu, r, h)?])
            });
            assert_eq!(fused, unfused, "{name}, {variant}");
            assert_eq!(many - few, saved, "{name}, {variant}");
        }
    }
}

type PrologueOps = fn(&Recording, &Tensor, &Tensor, &Tensor) -> Result<Value>;

/// Programs on two tensors of one shape and one of one element.
const PROLOGUES: [PrologueOps; 6] = [
    |r, x, _, _| {
        let h = r.scale(x, 1.7)?;
        r.add_scalar(h, 0.3)
    },
    |r, x, _, _| r.relu(x),
    // What a driver must not take apart,
    |r, x, y, _| {
        let h = r.add(x, y)?;
        r.sub(h, x)
    },
    // and not contract.
    |r, x, y, one| {
        let h = r.mul(x, y)?;
        r.add(h, one)
    },
    |r, x, y, one| {
        let smaller = r.lt(x, y)?;
        r.select(smaller, one, x)
    },
    |r, x, _, _| {
        let h = r.scale(x, 100.0)?;
        let h = r.cast(h, DType::I32)?;
        r.abs(h)
    },
];

type Reduction = fn(&Recording, Value, Axes) -> Result<Value>;

/// Reductions beside the sum.
const REDUCTIONS: [Reduction; 6] = [
    |r, h, axes| r.mean(h, axes),
    |r, h, axes| r.prod(h, axes),
    |r, h, axes| r.amax(h, axes),
    |r, h, axes| r.argmax(h, axes),
    |r, h, axes| r.argmin(h, axes),
    |r, h, axes| r.norm(h, axes),
];

#[test]
fn heads_of_reductions_give_the_same_bits() {
    // An invocation for each row, several, and parts that are joined; whole blocks, and what is left under masks.
    let shapes: [(&[usize], Axes); 3] =
        [(&[7, 1003], Axes::at(1)), (&[5, 3, 7], Axes::at(-1)), (&[3, 33_335], Axes::ALL)];
    for variant in ["texel-shuffle", "buffer-shared", "buffer-shuffle"] {
        let config = config().variant("reduce", variant);
        let [(fused, few), (unfused, many)] = both_with(config, |gpu, r| {
            let mut values = Vec::new();
            for (i, (dims, axes)) in shapes.into_iter().enumerate() {
                let shape = tidemill::Shape::new(dims).unwrap();
                let (x, y, one) = (noise(gpu, 1, shape), noise(gpu, 2, shape), noise(gpu, 3, [1]));
                // All of them for one shape: each is a pipeline.
                let (prologues, reductions) =
                    if i == 0 { (&PROLOGUES[..], &REDUCTIONS[..]) } else { (&PROLOGUES[..1], &[][..]) };
                for prologue in prologues {
                    let h = prologue(r, &x, &y, &one)?;
                    values.push(r.sum(h, axes)?);
                }
                for reduction in reductions {
                    let h = r.mul(&x, &y)?;
                    values.push(reduction(r, h, axes)?);
                }
            }
            Ok(values)
        });
        assert_eq!(fused, unfused, "{variant}");
        let operations: u64 = (2 + 1 + 2 + 2 + 2 + 3) + 6 + 2 * 2;
        assert_eq!(many - few, operations, "{variant}: without fusion each is a dispatch");
    }
}

#[test]
fn heads_of_softmax_give_the_same_bits() {
    // Rows that a subgroup stores together, rows with ends under masks, short ones, and rows that are swept.
    let shapes = [[16, 512], [7, 1003], [40, 6], [3, 3001]];
    for variant in ["texel-uniform", "texel-shuffle", "buffer-shared", "buffer-shuffle"] {
        let config = config().variant("softmax", variant);
        let [(fused, few), (unfused, many)] = both_with(config, |gpu, r| {
            let mut values = Vec::new();
            for shape in shapes {
                let (x, y) = (noise(gpu, 1, shape), noise(gpu, 2, shape));
                // As attention has it: scaled, and masked by a sum.
                let h = r.scale(&x, 0.125)?;
                let h = r.add(h, &y)?;
                values.push(r.softmax(h, -1)?);
                let h = r.relu(&x)?;
                values.push(r.log_softmax(h, -1)?);
            }
            Ok(values)
        });
        assert_eq!(fused, unfused, "{variant}");
        assert_eq!(many - few, 4 * 3, "{variant}: without fusion each is a dispatch");
    }
}

#[test]
fn what_no_softmax_can_take_in_is_a_dispatch_of_its_own() {
    let [(fused, few), (unfused, many)] = both(|gpu, r| {
        let x = noise(gpu, 1, [40, 52]);
        let mut values = Vec::new();
        // Columns; a long row; an operation that takes long to compile; what somebody else reads.
        let h = r.relu(&x)?;
        values.push(r.softmax(h, 0)?);
        let long = noise(gpu, 2, [1, 20_000]);
        let h = r.relu(&long)?;
        values.push(r.softmax(h, 1)?);
        let h = r.exp(&x)?;
        values.push(r.softmax(h, 1)?);
        let h = r.neg(&x)?;
        values.extend([r.softmax(h, 1)?, h]);
        Ok(values)
    });
    assert_eq!((&fused, few), (&unfused, many));
}

#[test]
fn a_convolution_with_its_tail_is_one_step_of_the_explanation() {
    let gpu = gpu();
    let (x, w, bias) =
        (noise(&gpu, 1, [1, 2, 8, 8]), noise(&gpu, 2, [4, 2, 1, 1]), noise(&gpu, 3, [4, 1, 1]));
    let weights = gpu.prepare_weights(&w, 1).unwrap();
    let r = gpu.begin_recording().unwrap();
    let h = r.conv2d_with(&x, &weights, Conv2d::new()).unwrap();
    let h = r.add(h, &bias).unwrap();
    let h = r.relu(h).unwrap();
    let _kept = r.keep(h).unwrap();
    let explanation = r.explain().unwrap();
    let labels = |steps: &[tidemill::explain::ExplainedStep]| {
        steps.iter().map(|s| s.label.clone()).collect::<Vec<_>>()
    };
    let recorded = ["conv2d 1x4x8x8 f32", "add 1x4x8x8 f32", "relu 1x4x8x8 f32"];
    assert_eq!(labels(&explanation.recorded), recorded);
    assert_eq!(labels(&explanation.run), ["conv2d+add+relu 1x4x8x8 f32"]);
    assert!(explanation.run[0].kernel.as_ref().unwrap().starts_with("conv_"));
}

#[test]
fn a_convolution_of_halves_is_rounded_before_its_tail() {
    let [(fused, few), (unfused, many)] = both(|gpu, r| {
        let x = r.cast(&noise(gpu, 1, [1, 3, 5, 6]), DType::F16)?;
        let h = r.conv2d_with(x, &noise(gpu, 2, [4, 3, 3, 3]), Conv2d::new())?;
        let h = r.scale(h, 1.0 / 3.0)?;
        Ok(vec![r.cast(h, DType::F32)?])
    });
    assert_eq!(fused, unfused);
    assert_eq!(many - few, 3, "rounded in the epilogue, and stored once");
}

#[test]
fn what_no_reduction_can_take_in_is_a_dispatch_of_its_own() {
    let [(fused, few), (unfused, many)] = both(|gpu, r| {
        let (x, row) = (noise(gpu, 1, [40, 50]), noise(gpu, 2, [50]));
        let mut values = Vec::new();
        // Columns; a row that stretches; a variance, which reads twice; an operation that takes long to compile.
        let h = r.relu(&x)?;
        values.push(r.sum(h, 0)?);
        let h = r.mul(&x, &row)?;
        values.push(r.sum(h, 1)?);
        let h = r.scale(&x, 3.0)?;
        values.push(r.variance(h, 1)?);
        let h = r.exp(&x)?;
        values.push(r.sum(h, 1)?);
        let h = r.neg(&x)?;
        values.extend([r.sum(h, 1)?, h]);
        Ok(values)
    });
    assert_eq!((&fused, few), (&unfused, many));
}

#[test]
fn a_head_is_shown_and_never_stored() {
    let gpu = gpu();
    let x = noise(&gpu, 1, [64, 500]);
    let r = gpu.begin_recording().unwrap();
    let h = r.relu(&x).unwrap();
    let h = r.reshape(h, [32_000]).unwrap();
    let sum = r.sum(h, Axes::ALL).unwrap();
    let _kept = r.keep(sum).unwrap();
    let explained = r.explain().unwrap();
    assert_eq!(explained.run[0].label, "relu+sum 32000 f32");
    let kernel = explained.run[0].kernel.as_deref();
    assert!(kernel.is_some_and(|kernel| kernel.starts_with("reduce_rows.")), "{kernel:?}");
    assert_eq!(explained.recorded.len(), 2);
    assert!(explained.temporary_bytes < 64 * 500, "{}", explained.temporary_bytes);
}
