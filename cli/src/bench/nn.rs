//! Group `nn`: what networks consist of beside products and convolutions.

use std::time::Instant;

use tidemill::{Accelerator, Matmul};

use super::benchmark::{Benchmark, Make, Result, Side, Unit, expect};
use super::timed::Timed;
use crate::cases::Array;

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("max_pool_64x112_3x3s2", |gpu| against_copy(gpu, "max_pool_64x112_3x3s2", 112)),
    ("layer_norm_4096x1024", |gpu| beside_add(gpu, "layer_norm_4096x1024", 0.55)),
    ("rms_norm_4096x1024", |gpu| beside_add(gpu, "rms_norm_4096x1024", 0.55)),
    ("resize_linear_3x512_1024", |gpu| against_copy(gpu, "resize_linear_3x512_1024", 1024)),
    ("attention_12x1024x64", |gpu| against_composed(gpu, "attention_12x1024x64", false, 0.9)),
    ("attention_causal_12x1024x64", |gpu| against_composed(gpu, "attention_causal_12x1024x64", true, 1.5)),
    ("attention_decode_12x4096x64", |gpu| against_composed(gpu, "attention_decode_12x4096x64", false, 1.0)),
];

/// Against our own copy of as many bytes.
fn against_copy(gpu: &Accelerator, name: &'static str, n: usize) -> Result<Benchmark> {
    let timed = Timed::new(name)?;
    // A copy reads and writes each of them.
    let elements = timed.case.size_bytes() as usize / 8;
    let (gpu_of_copy, x) = (gpu.clone(), gpu.upload(&vec![1.0f32; elements], [elements])?);
    let copy: Side = Box::new(move |check| {
        let begun = Instant::now();
        let r = gpu_of_copy.begin_recording()?;
        let kept = r.keep(r.copy(&x)?)?;
        r.end_recording()?.wait()?;
        let time = begun.elapsed();
        if check {
            expect("the copy", &kept.read::<f32>()?, |_| 1.0)?;
        }
        Ok(time)
    });
    timed.benchmark(gpu, n, Unit::GigabytesPerSecond, 0.3, ("our own copy of as many bytes", copy))
}

/// Against the same of our own products and softmax, with all scores in memory; with a mask that is added, if it is
/// causal.
fn against_composed(gpu: &Accelerator, name: &'static str, causal: bool, ratio: f64) -> Result<Benchmark> {
    let timed = Timed::new(name)?;
    let shapes = [0, 1].map(|i| timed.operands[i].kind.shape);
    let [tokens, keys] = shapes.map(|shape| shape.dims()[1]);
    let tensors = timed
        .operands
        .iter()
        .map(|operand| operand.upload(gpu))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let hidden = |i: usize| if i % keys > i / keys + keys - tokens { f32::NEG_INFINITY } else { 0.0 };
    let mask: Vec<f32> = (0..tokens * keys).map(hidden).collect();
    let mask = gpu.upload(&mask, [tokens, keys])?;
    let gpu_of_composed = gpu.clone();
    let composed = timed.baseline(timed.case.bound, move |check, _, out| {
        let begun = Instant::now();
        let r = gpu_of_composed.begin_recording()?;
        let scores = r.matmul_with(&tensors[0], &tensors[1], Matmul::new().transpose_rhs().alpha(0.125))?;
        let scores = if causal { r.add(scores, &mask)? } else { scores };
        let weights = r.softmax(scores, -1)?;
        let kept = r.keep(r.matmul(weights, &tensors[2])?)?;
        r.end_recording()?.wait()?;
        let time = begun.elapsed();
        if check {
            *out = Array::read(&kept)?;
        }
        Ok(time)
    });
    timed.benchmark(
        gpu,
        tokens,
        Unit::GigaflopsPerSecond,
        ratio,
        ("our own matmul, softmax, matmul", composed),
    )
}

/// Against our own add of 16M elements on the same device, by bytes.
fn beside_add(gpu: &Accelerator, name: &'static str, ratio: f64) -> Result<Benchmark> {
    let (timed, add) = (Timed::new(name)?, Timed::new("add_16m")?);
    let (n, unit) = (timed.case.result.shape.elements(), Unit::GigabytesPerSecond);
    // For each byte that we move the add may have its time.
    let (ours, theirs) = (timed.amount(unit), add.amount(unit));
    let mut run = add.ours(gpu)?;
    let baseline = Box::new(move |check| Ok(run(check)?.mul_f64(ours / theirs)));
    timed.benchmark(gpu, n, unit, ratio, ("our own add_16m, by bytes", baseline))
}
