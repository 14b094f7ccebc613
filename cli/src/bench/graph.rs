//! Group `graph`: what is won because a recording is known before it runs.

use std::time::{Duration, Instant};

use tidemill::stats::Stats;
use tidemill::{Accelerator, Config, DType, Prewarm, Recording, Tensor, Value};

use super::baseline::clock::Spent;
use super::baseline::fused::Fused;
use super::benchmark::{Benchmark, Make, Result, Side, Target, Unit, expect};

/// The group's benchmarks; names are stable and listed in `docs/benchmarks.md`.
pub(crate) static BENCHMARKS: &[(&str, Make)] = &[
    ("chain100_fused", chain100_fused),
    ("relu_abcd_4m", relu_abcd_4m),
    ("relu_abcd_4m_vs_hand", relu_abcd_4m_vs_hand),
    ("relu_sum_4m", relu_sum_4m),
    ("plan_submit_100", plan_submit_100),
    ("mlp_3x64", mlp_3x64),
];

/// The same device without fusion.
fn unfused(gpu: &Accelerator) -> Result<Accelerator> {
    let config = Config::new().device_index(gpu.device().index).fusion(false).prewarm(Prewarm::Off);
    Ok(Accelerator::new(&config)?)
}

/// Records the operation of a benchmark.
pub(crate) type Record = fn(&Recording, &[Tensor]) -> tidemill::Result<Value>;

/// An operand on the host, and its extents.
pub(crate) type Data = (Vec<f32>, Vec<usize>);

/// The operands of a benchmark.
pub(crate) fn upload(gpu: &Accelerator, data: &[Data]) -> Result<Vec<Tensor>> {
    let upload = |(data, dims): &Data| -> Result<Tensor> {
        let shape = tidemill::Shape::new(dims).ok_or("a shape of rank 4 at most")?;
        Ok(gpu.upload(data, shape)?)
    };
    data.iter().map(upload).collect()
}

/// Records, submits and waits: from begin to completed. The result is given too, if it is asked for.
fn timed(
    gpu: &Accelerator,
    tensors: &[Tensor],
    record: impl Fn(&Recording, &[Tensor]) -> tidemill::Result<Value>,
    check: bool,
) -> Result<(Duration, Option<Vec<f32>>)> {
    let begun = Instant::now();
    let r = gpu.begin_recording()?;
    let value = record(&r, tensors)?;
    let kept = r.keep(value)?;
    r.end_recording()?.wait()?;
    let time = begun.elapsed();
    Ok((time, check.then(|| kept.read()).transpose()?))
}

/// One side of a comparison: the same recording on an accelerator of its choice.
fn side(
    gpu: Accelerator,
    data: &[Data],
    record: Record,
    expected: impl Fn(usize) -> f32 + 'static,
    what: &'static str,
) -> Result<Side> {
    let tensors = upload(&gpu, data)?;
    Ok(Box::new(move |check| {
        let (time, got) = timed(&gpu, &tensors, record, check)?;
        got.map_or(Ok(()), |got| expect(what, &got, &expected))?;
        Ok(time)
    }))
}

/// 100 dependent adds of 1,024 elements.
fn chain100_fused(gpu: &Accelerator) -> Result<Benchmark> {
    const N: usize = 1024;
    const STEPS: usize = 100;
    let data = [((0..N).map(|i| i as f32).collect(), vec![N]), (vec![0.5; N], vec![N])];
    let record: Record = |r, t| (1..STEPS).try_fold(r.add(&t[0], &t[1])?, |v, _| r.add(v, &t[1]));
    let expected = |i: usize| i as f32 + 0.5 * STEPS as f32;
    Ok(Benchmark {
        n: N,
        unit: Unit::Micros,
        amount: STEPS as f64,
        target: Target::Ratio(5.0),
        ours: side(gpu.clone(), &data, record, expected, "the fused chain")?,
        baseline: Some((
            "without fusion",
            side(unfused(gpu)?, &data, record, expected, "the chain without fusion")?,
        )),
    })
}

const ABCD: usize = 1 << 22;

/// Operands whose results are exact.
pub(crate) fn relu_abcd_data() -> Vec<Data> {
    let tensor = |element: fn(usize) -> f32| ((0..ABCD).map(element).collect(), vec![ABCD]);
    vec![
        tensor(|i| (i % 64) as f32),
        tensor(|_| 0.5),
        tensor(|i| -((i % 5) as f32)),
        tensor(|i| (i % 3) as f32),
    ]
}

fn relu_abcd_expected(i: usize) -> f32 {
    ((i % 64) as f32 * 0.5 - (i % 5) as f32).max(0.0) * (i % 3) as f32
}

pub(crate) fn relu_abcd(r: &Recording, t: &[Tensor]) -> tidemill::Result<Value> {
    let v = r.mul(&t[0], &t[1])?;
    let v = r.add(v, &t[2])?;
    let v = r.relu(v)?;
    r.mul(v, &t[3])
}

/// `relu(a * b + c) * d`; bytes count as fused, four loads and a store.
fn relu_abcd_benchmark(gpu: &Accelerator, target: f64, baseline: (&'static str, Side)) -> Result<Benchmark> {
    Ok(Benchmark {
        n: ABCD,
        unit: Unit::GigabytesPerSecond,
        amount: 20.0 * ABCD as f64,
        target: Target::Ratio(target),
        ours: side(gpu.clone(), &relu_abcd_data(), relu_abcd, relu_abcd_expected, "relu_abcd_4m")?,
        baseline: Some(baseline),
    })
}

fn relu_abcd_4m(gpu: &Accelerator) -> Result<Benchmark> {
    let what = "relu_abcd_4m in four dispatches";
    let baseline = side(unfused(gpu)?, &relu_abcd_data(), relu_abcd, relu_abcd_expected, what)?;
    relu_abcd_benchmark(gpu, 2.0, ("four dispatches", baseline))
}

/// Against a kernel that does this and nothing else, run by the same engine.
fn relu_abcd_4m_vs_hand(gpu: &Accelerator) -> Result<Benchmark> {
    let fused = Fused::new(ABCD)?;
    let by_hand = gpu.clone();
    let tensors = upload(gpu, &relu_abcd_data())?;
    let baseline: Side = Box::new(move |check| {
        let (time, got) = timed(&by_hand, &tensors, |r, t| fused.record(r, t), check)?;
        got.map_or(Ok(()), |got| expect("the kernel by hand", &got, relu_abcd_expected))?;
        Ok(time)
    });
    relu_abcd_benchmark(gpu, 0.9, ("fused by hand", baseline))
}

pub(crate) fn relu_sum_data() -> Vec<Data> {
    vec![((0..ABCD).map(|i| (i % 4) as f32 - 1.0).collect(), vec![ABCD])]
}

pub(crate) fn relu_sum(r: &Recording, t: &[Tensor]) -> tidemill::Result<Value> {
    let v = r.relu(&t[0])?;
    r.sum(v, tidemill::Axes::ALL)
}

/// The sum of a relu, against the two as dispatches of their own; bytes count as fused, one load.
fn relu_sum_4m(gpu: &Accelerator) -> Result<Benchmark> {
    let data = relu_sum_data();
    let expected = |_| (ABCD / 4 * 3) as f32;
    let baseline = side(unfused(gpu)?, &data, relu_sum, expected, "relu_sum_4m in dispatches")?;
    Ok(Benchmark {
        n: ABCD,
        unit: Unit::GigabytesPerSecond,
        amount: 4.0 * ABCD as f64,
        target: Target::Ratio(2.0),
        ours: side(gpu.clone(), &data, relu_sum, expected, "relu_sum_4m")?,
        baseline: Some(("a dispatch each", baseline)),
    })
}

/// The CPU's time to submit a plan of 100 dispatches. Eight are in flight at a time, as in a stream: a submission to a
/// queue that sleeps pays for waking it, which is several times as much and the driver's.
fn plan_submit_100(gpu: &Accelerator) -> Result<Benchmark> {
    const N: usize = 1024;
    const DISPATCHES: usize = 100;
    const IN_FLIGHT: usize = 8;
    const ROUNDS: usize = 4;
    let gpu = unfused(gpu)?;
    let (a, b) = (gpu.upload(&vec![1.0f32; N], [N])?, gpu.upload(&vec![0.5f32; N], [N])?);
    let r = gpu.begin_recording()?;
    let last = (1..DISPATCHES).try_fold(r.add(&a, &b)?, |v, _| r.add(v, &b))?;
    let result = r.keep(last)?;
    let mut plan = r.into_plan()?;
    let outputs = [(); IN_FLIGHT].map(|()| gpu.empty([N], DType::F32));
    let outputs = outputs.into_iter().collect::<tidemill::Result<Vec<_>>>()?;
    let mut round = move || -> Result<(Duration, Stats, Stats)> {
        let before = gpu.stats();
        let spent = Spent::begin();
        for output in &outputs {
            plan.bind(&result, output)?;
            drop(plan.submit()?);
        }
        let time = spent.elapsed();
        gpu.synchronize()?;
        for output in &outputs {
            expect("the plan", &output.read()?, |_| 1.0 + 0.5 * DISPATCHES as f32)?;
        }
        Ok((time, before, gpu.stats()))
    };
    round()?;
    Ok(Benchmark {
        n: DISPATCHES,
        unit: Unit::Micros,
        amount: (IN_FLIGHT * ROUNDS) as f64,
        target: Target::AtMost(5.0),
        ours: Box::new(move |_| {
            let mut time = Duration::ZERO;
            for _ in 0..ROUNDS {
                let (spent, before, after) = round()?;
                let dispatches = after.dispatches - before.dispatches;
                if dispatches != (IN_FLIGHT * DISPATCHES) as u64 || after.commands != before.commands {
                    return Err("a plan was not replayed as it was encoded".into());
                }
                time += spent;
            }
            Ok(time)
        }),
        baseline: None,
    })
}

/// Rows of a batch for a network of three layers, and their widths.
const BATCH: usize = 64;
const LAYERS: [usize; 4] = [784, 256, 256, 10];

pub(crate) fn mlp_data() -> Vec<Data> {
    // Every product is of small multiples of powers of two, so that every order of summing gives the same.
    let mut data = vec![((0..BATCH * LAYERS[0]).map(|i| (i % 3) as f32).collect(), vec![BATCH, LAYERS[0]])];
    for pair in LAYERS.windows(2) {
        let weights = (0..pair[0] * pair[1]).map(|i| ((i % 5) as f32 - 2.0) / 256.0).collect();
        data.push((weights, pair.to_vec()));
        data.push(((0..pair[1]).map(|i| (i % 7) as f32 / 8.0).collect(), vec![pair[1]]));
    }
    data
}

pub(crate) fn mlp(r: &Recording, t: &[Tensor]) -> tidemill::Result<Value> {
    let mut h = r.matmul(&t[0], &t[1])?;
    h = r.add(h, &t[2])?;
    for layer in t[3..].chunks_exact(2) {
        h = r.relu(h)?;
        h = r.matmul(h, &layer[0])?;
        h = r.add(h, &layer[1])?;
    }
    Ok(h)
}

/// Three layers, 784-256-256-10, for a batch of 64, with bias and relu between, written as plain operations.
fn mlp_3x64(gpu: &Accelerator) -> Result<Benchmark> {
    let data = mlp_data();
    let reference = mlp_reference(&data, BATCH);
    let (ours, theirs) = (reference.clone(), reference);
    Ok(Benchmark {
        n: BATCH,
        unit: Unit::Micros,
        amount: 1.0,
        target: Target::Ratio(1.1),
        ours: side(gpu.clone(), &data, mlp, move |i| ours[i], "mlp_3x64")?,
        baseline: Some((
            "without fusion",
            side(unfused(gpu)?, &data, mlp, move |i| theirs[i], "mlp_3x64 without fusion")?,
        )),
    })
}

/// The network in f64.
fn mlp_reference(data: &[Data], batch: usize) -> Vec<f32> {
    let mut h: Vec<f64> = data[0].0.iter().map(|x| f64::from(*x)).collect();
    for (layer, pair) in data[1..].chunks_exact(2).enumerate() {
        let (weights, bias) = (&pair[0], &pair[1].0);
        let (inner, outer) = (weights.1[0], weights.1[1]);
        let activate = |x: f64| if layer == 0 { x } else { x.max(0.0) };
        h = (0..batch * outer)
            .map(|i| {
                let (row, column) = (i / outer, i % outer);
                let product = (0..inner)
                    .map(|k| activate(h[row * inner + k]) * f64::from(weights.0[k * outer + column]));
                product.sum::<f64>() + f64::from(bias[column])
            })
            .collect();
    }
    h.into_iter().map(|x| x as f32).collect()
}
