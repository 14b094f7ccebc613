//! The programs: cases of the table, the tour's network, the examples' jobs, chains fused and not, plans and streams.
//!
//! Each runs on an accelerator of its own, so that no line depends on the others. Wherever it would depend on time what
//! the engine does, a program waits. (The example `hybrid` is missing for that reason: it goes by what it measures.)

use std::sync::Arc;

use tidemill::{Accelerator, Axes, DType, Epilogue, Matmul, Plan, Recording, Tensor, Value};

use crate::bench::baseline::fused::Fused;
use crate::bench::benchmark::{Result, expect};
use crate::bench::graph;
use crate::cases::{self, Array, Case};
use crate::tour;

/// Runs a program once, and checks what comes out.
type Run = dyn Fn(&Accelerator) -> Result<()>;

/// A program.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) fused: bool,
    pub(super) run: Box<Run>,
}

/// Of the table of cases, by the name under which benches time them: one or two of every family, on every path of its
/// own.
const CASES: [&str; 47] = [
    "op_add",
    "op_add_row",
    "op_add_column",
    "op_add_scalar",
    "op_gelu",
    "op_lt",
    "op_select",
    "op_cast",
    "op_cast_f16",
    "op_chain_f16",
    "op_permute_021",
    "op_transpose",
    "op_slice_unaligned",
    "op_broadcast_to",
    "op_concat",
    "op_concat_unaligned",
    "op_pad",
    "op_gather_rows",
    "op_fill",
    "op_random_normal",
    "op_sum",
    "op_variance",
    "op_sum_columns",
    "op_argmax_rows_of_10",
    "op_softmax_rows",
    "op_softmax_columns",
    "matmul_512",
    "matvec_4096",
    "op_matmul_f16",
    "op_conv2d_f16",
    "op_attention",
    "op_atan2",
    "op_slice_step",
    "op_moments",
    "op_add_layer_norm",
    "op_average_pool",
    "op_pixel_shuffle",
    "resize_linear_3x512_1024",
    "op_gather_elements",
    "op_gather_nd",
    "op_scatter_add",
    "op_segment_sum",
    "op_bincount",
    "op_cumsum",
    "op_sort",
    "op_unique",
    "op_searchsorted",
];

type Job = fn(&Accelerator) -> Result<()>;

/// Those that run as they are.
const JOBS: [(&str, Job); 19] = [
    ("conv_prepared_twice", conv_prepared_twice),
    ("kernel_by_hand", kernel_by_hand),
    ("example_one_off", one_off),
    ("example_chain", chain),
    ("example_plan", |gpu| plan_of_batches(gpu, 20)),
    ("example_stream_1", |gpu| stream(gpu, 1)),
    ("example_stream_3", |gpu| stream(gpu, 3)),
    ("example_asynchronous", powers),
    ("example_profile", product_and_softmax),
    ("in_place", in_place),
    ("attention", attention),
    ("branches", branches),
    ("plan_bound_in_turn", |gpu| plan_bound(gpu, 4, 3)),
    ("plan_bound_to_many", |gpu| plan_bound(gpu, 12, 2)),
    ("plan_kept_by_reader", plan_kept_by_reader),
    ("plan_of_4_mb_in_flight", plan_in_flight),
    ("training_in_flight", training_in_flight),
    ("state_in_flight", state_in_flight),
    ("arguments_in_flight", arguments_in_flight),
];

/// Those that run fused, and then with a dispatch for each operation.
const BOTH: [(&str, &str, Job); 5] = [
    ("tour", "tour_unfused", tour_network),
    ("relu_abcd", "relu_abcd_unfused", |gpu| graph_work(gpu, graph::relu_abcd_data(), graph::relu_abcd)),
    ("relu_sum", "relu_sum_unfused", |gpu| graph_work(gpu, graph::relu_sum_data(), graph::relu_sum)),
    ("mlp_3x64", "mlp_3x64_unfused", |gpu| graph_work(gpu, graph::mlp_data(), graph::mlp)),
    ("plan_of_100", "plan_of_100_unfused", plan_of_100),
];

/// All of them, in the order of the file.
pub(super) fn all() -> Result<Vec<Program>> {
    let table: Vec<Arc<Case>> =
        cases::all().into_iter().filter(|case| case.bench.is_some()).map(Arc::new).collect();
    let mut programs = Vec::new();
    for name in CASES {
        let case = table.iter().find(|case| case.bench.as_deref() == Some(name));
        let case = case.ok_or_else(|| format!("no case is timed as {name}"))?.clone();
        programs.push(Program { name, fused: true, run: Box::new(move |gpu| run_case(gpu, &case)) });
    }
    for (fused, unfused, job) in BOTH {
        programs.push(Program { name: fused, fused: true, run: Box::new(job) });
        programs.push(Program { name: unfused, fused: false, run: Box::new(job) });
    }
    programs.extend(JOBS.map(|(name, job)| Program { name, fused: true, run: Box::new(job) }));
    Ok(programs)
}

fn run_case(gpu: &Accelerator, case: &Case) -> Result<()> {
    let operands = case.operands();
    let record = case.upload(gpu, &operands)?;
    gpu.synchronize()?;
    let got = Array::read(&gpu.run(|r| record(r))?)?;
    let check = case.check(&case.expected(&operands), &got);
    if check.passed() { Ok(()) } else { Err(format!("the result is wrong: {}", check.at).into()) }
}

/// Ends a recording that keeps one value, waits, and reads.
fn finish(r: Recording, value: Value) -> Result<Vec<f32>> {
    let kept = r.keep(value)?;
    r.end_recording()?.wait()?;
    Ok(kept.read()?)
}

fn tour_network(gpu: &Accelerator) -> Result<()> {
    let host = tour::Network::new();
    tour::round(gpu, &host)?;
    gpu.synchronize()?;
    tour::round(gpu, &host)?;
    Ok(())
}

fn graph_work(gpu: &Accelerator, data: Vec<graph::Data>, record: graph::Record) -> Result<()> {
    let tensors = graph::upload(gpu, &data)?;
    let r = gpu.begin_recording()?;
    let value = record(&r, &tensors)?;
    finish(r, value).map(drop)
}

/// A layer whose weights are laid out once.
fn conv_prepared_twice(gpu: &Accelerator) -> Result<()> {
    let weights = gpu.upload(&vec![0.5f32; 32 * 8 * 9], [32, 8, 3, 3])?;
    let weights = gpu.prepare_weights(&weights, 1)?;
    gpu.synchronize()?;
    for _ in 0..2 {
        let x = gpu.upload(&vec![1.0f32; 8 * 16 * 16], [1, 8, 16, 16])?;
        let r = gpu.begin_recording()?;
        let y = r.conv2d_with(&x, &weights, tidemill::Conv2d::new().epilogue(Epilogue::new().relu()))?;
        let got = finish(r, y)?;
        expect("the convolution", &got, |_| 36.0)?;
    }
    Ok(())
}

fn kernel_by_hand(gpu: &Accelerator) -> Result<()> {
    const N: usize = 1 << 16;
    let kernel = Fused::new(N)?;
    let tensors = [2.0f32, 3.0, -1.0, 0.5].map(|x| gpu.upload(&vec![x; N], [N]));
    let tensors = tensors.into_iter().collect::<tidemill::Result<Vec<_>>>()?;
    let r = gpu.begin_recording()?;
    let value = kernel.record(&r, &tensors)?;
    expect("the kernel by hand", &finish(r, value)?, |_| 2.5)
}

fn one_off(gpu: &Accelerator) -> Result<()> {
    let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    let b = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], [3, 2])?;
    let product = gpu.run(|r| r.matmul(&a, &b))?.read::<f32>()?;
    expect("the product", &product, |i| [4.0, 5.0, 10.0, 11.0][i])
}

fn chain(gpu: &Accelerator) -> Result<()> {
    const N: usize = 100_000;
    let x: Vec<f32> = (0..N).map(|i| (i % 200) as f32 / 100.0 - 1.0).collect();
    let (a, b) = (gpu.upload(&x, [N])?, gpu.upload(&[0.5f32], [1])?);
    let r = gpu.begin_recording()?;
    let square = r.mul(&a, &a)?;
    let shifted = r.sub(square, &b)?;
    let positive = r.relu(shifted)?;
    let total = r.sum(positive, -1)?;
    let (positive, total) = (r.keep(positive)?, r.keep(total)?);
    r.end_recording()?.wait()?;
    total.read::<f32>()?;
    expect("the chain", &positive.read()?, |i| (x[i] * x[i] - 0.5).max(0.0))
}

/// Two layers as a plan; its input is written before each submission, and the one before is waited for.
fn plan_of_batches(gpu: &Accelerator, batches: usize) -> Result<()> {
    const BATCH: usize = 64;
    let weights = |n: usize| (0..n).map(|i| ((i * 31) % 17) as f32 / 100.0 - 0.08).collect::<Vec<_>>();
    let (w1, b1) = (gpu.upload(&weights(784 * 128), [784, 128])?, gpu.upload(&weights(128), [128])?);
    let w2 = gpu.upload(&weights(128 * 10), [128, 10])?;
    let x = gpu.zeros::<f32>([BATCH, 784])?;
    gpu.synchronize()?;
    let r = gpu.begin_recording()?;
    let hidden = r.matmul_with(&x, &w1, Epilogue::bias(&b1).relu())?;
    let scores = r.matmul(hidden, &w2)?;
    let shares = r.softmax(scores, -1)?;
    let shares = r.keep(shares)?;
    let mut plan = r.into_plan()?;
    for n in 0..batches {
        x.write_with(|f| f.extend((0..BATCH * 784).map(|i| ((i + n) % 29) as f32 / 29.0)))?;
        plan.submit()?.wait()?;
        shares.read::<f32>()?;
    }
    Ok(())
}

/// Batches through this many slots: one is taken out before a slot is filled again.
fn stream(gpu: &Accelerator, slots: usize) -> Result<()> {
    const ROWS: usize = 128;
    const WIDTH: usize = 512;
    let diagonal = |i: usize| if i.is_multiple_of(WIDTH + 1) { 2.0f32 } else { 0.0 };
    let weights = gpu.upload(&(0..WIDTH * WIDTH).map(diagonal).collect::<Vec<_>>(), [WIDTH, WIDTH])?;
    let stream = gpu.stream().slots(slots).input::<f32>([ROWS, WIDTH]);
    let mut stream = stream.record(|r, x| Ok([r.matmul(&x[0], &weights)?]))?;
    let element = |n: u64, i: usize| ((i as u64 + n) % 100) as f32;
    let consume = |stream: &mut tidemill::Stream| -> Result<bool> {
        let Some(batch) = stream.pop()? else { return Ok(false) };
        expect("a batch", &batch.read::<f32>(0)?, |i| 2.0 * element(batch.number(), i))?;
        Ok(true)
    };
    for n in 0..10 {
        if stream.is_full() {
            consume(&mut stream)?;
        }
        stream.push(|slot| slot.fill(0, |f| f.extend((0..ROWS * WIDTH).map(|i| element(n, i)))))?;
    }
    while consume(&mut stream)? {}
    Ok(())
}

fn powers(gpu: &Accelerator) -> Result<()> {
    let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3])?;
    for steps in [1, 2] {
        let r = gpu.begin_recording()?;
        let mut y = r.copy(&x)?;
        for _ in 0..steps {
            y = r.mul(y, &x)?;
        }
        expect("powers", &finish(r, y)?, |i| ((i + 1) as f32).powi(steps + 1))?;
    }
    Ok(())
}

fn product_and_softmax(gpu: &Accelerator) -> Result<()> {
    let n = 256;
    let x = gpu.upload(&vec![0.01f32; n * n], [n, n])?;
    let r = gpu.begin_recording()?;
    let product = r.matmul(&x, &x)?;
    let shares = r.softmax(product, -1)?;
    finish(r, shares).map(drop)
}

/// A tensor that replaces itself, again and again.
fn in_place(gpu: &Accelerator) -> Result<()> {
    let mut x = gpu.upload(&vec![1.0f32; 1000], [1000])?;
    for _ in 0..8 {
        x = gpu.run(|r| r.add(&x, &x))?;
        gpu.synchronize()?;
    }
    expect("doubled", &x.read()?, |_| 256.0)
}

/// One head: scores, scaled, their shares, and the values that these weigh.
fn attention(gpu: &Accelerator) -> Result<()> {
    let (rows, width) = (128, 64);
    let wave = |step: f32| (0..rows * width).map(|i| (i as f32 * step).sin()).collect::<Vec<_>>();
    let tensors = [0.37, 0.11, 0.73].map(|step| gpu.upload(&wave(step), [rows, width]));
    let [q, k, v] = tensors;
    let (q, k, v) = (q?, k?, v?);
    let r = gpu.begin_recording()?;
    let scores = r.matmul_with(&q, &k, Matmul::new().transpose_rhs().alpha(0.125))?;
    let shares = r.softmax(scores, -1)?;
    let out = r.matmul(shares, &v)?;
    finish(r, out).map(drop)
}

/// Two branches that meet again, and a third that is kept.
fn branches(gpu: &Accelerator) -> Result<()> {
    let n = 256;
    let x = gpu.upload(&vec![0.5f32; n * n], [n, n])?;
    let r = gpu.begin_recording()?;
    let left = r.matmul(&x, &x)?;
    let right = r.transpose(&x)?;
    let rows = r.sum(left, -1)?;
    let columns = r.sum(right, 0)?;
    let both = r.add(rows, columns)?;
    let most = r.amax(left, Axes::ALL)?;
    let most = r.keep(most)?;
    finish(r, both)?;
    expect("the largest", &most.read()?, |_| 64.0)
}

/// A plan that doubles what stands in `x`.
fn doubling(gpu: &Accelerator, x: &Tensor) -> Result<(Plan, Tensor)> {
    let r = gpu.begin_recording()?;
    let y = r.add(x, x)?;
    let y = r.keep(y)?;
    Ok((r.into_plan()?, y))
}

/// A plan whose result goes to this many tensors in turn, several times round: a copy for each, as far as there are
/// copies.
fn plan_bound(gpu: &Accelerator, outputs: usize, rounds: usize) -> Result<()> {
    let x = gpu.upload(&vec![1.0f32; 1024], [1024])?;
    let (mut plan, y) = doubling(gpu, &x)?;
    let outputs: Vec<Tensor> =
        (0..outputs).map(|_| gpu.empty([1024], DType::F32)).collect::<tidemill::Result<_>>()?;
    for output in (0..rounds).flat_map(|_| &outputs) {
        plan.bind(&y, output)?;
        plan.submit()?.wait()?;
        expect("the plan", &output.read()?, |_| 2.0)?;
    }
    Ok(())
}

/// A plan whose result another recording still holds when it is due again: it moves to another block.
fn plan_kept_by_reader(gpu: &Accelerator) -> Result<()> {
    let x = gpu.upload(&vec![1.0f32; 1024], [1024])?;
    let (mut plan, y) = doubling(gpu, &x)?;
    for _ in 0..3 {
        plan.submit()?.wait()?;
        let reader = gpu.begin_recording()?;
        let negative = reader.neg(&y)?;
        let negative = reader.keep(negative)?;
        plan.submit()?.wait()?;
        reader.end_recording()?.wait()?;
        expect("the reader", &negative.read()?, |_| -2.0)?;
    }
    Ok(())
}

/// A plan with an output of 4 MB, submitted 100 times without a wait: one block and one encoding serve all.
fn plan_in_flight(gpu: &Accelerator) -> Result<()> {
    let n = 1 << 20;
    let x = gpu.upload(&vec![1.0f32; n], [n])?;
    let (mut plan, y) = doubling(gpu, &x)?;
    for _ in 0..100 {
        let _ = plan.submit()?;
    }
    expect("the plan", &y.read()?, |_| 2.0)
}

/// A training loop that never waits: a step makes new weights of the old, and a copy puts them in their place.
fn training_in_flight(gpu: &Accelerator) -> Result<()> {
    let weights = gpu.upload(&[0.0f32; 500], [500])?;
    let r = gpu.begin_recording()?;
    let stepped = r.add_scalar(&weights, 1.0f32)?;
    let stepped = r.keep(stepped)?;
    let mut step = r.into_plan()?;
    let _ = step.submit()?;
    let r = gpu.begin_recording()?;
    let copied = r.copy(&stepped)?;
    let copied = r.keep(copied)?;
    let mut update = r.into_plan()?;
    update.bind(&copied, &weights)?;
    let _ = update.submit()?;
    for _ in 1..300 {
        let _ = step.submit()?;
        let _ = update.submit()?;
    }
    expect("the weights", &weights.read()?, |_| 300.0)
}

/// The same in place: one plan gives the weights their new value, and writes one row of a log.
fn state_in_flight(gpu: &Accelerator) -> Result<()> {
    let weights = gpu.upload(&[0.0f32; 500], [500])?;
    let log = gpu.upload(&[0.0f32; 4000], [8, 500])?;
    let r = gpu.begin_recording()?;
    r.assign(&weights, r.add_scalar(&weights, 1.0f32)?)?;
    r.update(&log, [3..4, 0..500], r.reshape(&weights, [1, 500])?)?;
    let mut step = r.into_plan()?;
    for _ in 0..300 {
        let _ = step.submit()?;
    }
    expect("the log", &log.read()?, |i| if i / 500 == 3 { 300.0 } else { 0.0 })?;
    expect("the weights", &weights.read()?, |_| 300.0)
}

/// A plan that writes a row of a table, by its number, and takes the largest elements of the rows so far: a new number
/// each time, and one encoding.
fn arguments_in_flight(gpu: &Accelerator) -> Result<()> {
    let table = gpu.upload(&[0.0f32; 8000], [16, 500])?;
    let row = gpu.upload(&[1.0f32; 500], [1, 500])?;
    let r = gpu.begin_recording()?;
    let (at, factor) = (r.argument("at", 0..=15u32)?, r.argument("factor", 0.0..=1e6f32)?);
    r.update_at(&table, 0, at, r.mul(&row, factor)?)?;
    let columns = r.transpose(&table)?;
    let seen = r.mask_from(columns, -1, at, f32::NEG_INFINITY)?;
    let largest = r.keep(r.amax(seen, -1)?)?;
    let mut step = r.into_plan()?;
    for i in 0..300 {
        step.set(at, i % 16)?;
        step.set(factor, i as f32)?;
        let _ = step.submit()?;
    }
    expect("the largest", &largest.read()?, |_| 298.0)?;
    expect("the table", &table.read()?, |i| {
        if i / 500 < 12 { (288 + i / 500) as f32 } else { (272 + i / 500) as f32 }
    })
}

/// A hundred additions as a plan: without fusion, several command buffers.
fn plan_of_100(gpu: &Accelerator) -> Result<()> {
    let (a, b) = (gpu.upload(&vec![1.0f32; 1024], [1024])?, gpu.upload(&vec![0.5f32; 1024], [1024])?);
    let r = gpu.begin_recording()?;
    let last = (1..100).try_fold(r.add(&a, &b)?, |value, _| r.add(value, &b))?;
    let result = r.keep(last)?;
    let mut plan = r.into_plan()?;
    for _ in 0..5 {
        plan.submit()?.wait()?;
        expect("the plan", &result.read()?, |_| 51.0)?;
    }
    Ok(())
}
