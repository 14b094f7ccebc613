//! A small decoder writes a text of numbers: one plan for all tokens. The keys and values of earlier tokens stay on the
//! device, where each submission writes one row of them, and the token that it chooses is what the next one begins
//! with. Nothing is recorded or encoded after the first token, and the host waits for the last one alone.
//!
//! cargo run --release --example decode
//!
//! The weights are drawn by chance, so the text means nothing. A loop on the CPU in f64 checks each token and the last
//! scores; a wrong result is an error of the program.

use std::time::Instant;

use tidemill::args::Argument;
use tidemill::{Accelerator, Epilogue, Matmul, Plan, Recording, Result, Tensor, Value};

const VOCABULARY: usize = 96;
const HEADS: usize = 4;
const DEPTH: usize = 16;
const WIDTH: usize = HEADS * DEPTH;
const HIDDEN: usize = 4 * WIDTH;
const LAYERS: usize = 2;
/// The longest text.
const LENGTH: usize = 192;
const FIRST: u32 = 7;
const EPSILON: f32 = 1e-5;

/// SplitMix64, as numbers around 0.
struct Random(u64);

impl Random {
    fn matrix(&mut self, rows: usize, columns: usize, scale: f32) -> Vec<f32> {
        let number = |_| {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * scale
        };
        (0..rows * columns).map(number).collect()
    }
}

/// The weights of a layer: queries, keys and values side by side, what joins the heads, and the two of the network
/// behind.
struct Layer<M> {
    attend: M,
    join: M,
    widen: M,
    narrow: M,
}

/// A decoder; its matrices are on the host or on the device.
struct Decoder<M> {
    tokens: M,
    places: M,
    layers: Vec<Layer<M>>,
    answers: M,
}

impl Decoder<Vec<f32>> {
    fn random() -> Decoder<Vec<f32>> {
        let mut random = Random(11);
        let mut weights = |rows: usize, columns| random.matrix(rows, columns, 3.0 / (rows as f32).sqrt());
        let layer = |_| Layer {
            attend: weights(WIDTH, 3 * WIDTH),
            join: weights(WIDTH, WIDTH),
            widen: weights(WIDTH, HIDDEN),
            narrow: weights(HIDDEN, WIDTH),
        };
        let layers = (0..LAYERS).map(layer).collect();
        let tokens = random.matrix(VOCABULARY, WIDTH, 2.0);
        let places = random.matrix(LENGTH, WIDTH, 2.0);
        Decoder { tokens, places, layers, answers: random.matrix(WIDTH, VOCABULARY, 1.0) }
    }

    fn upload(&self, gpu: &Accelerator) -> Result<Decoder<Tensor>> {
        let layer = |layer: &Layer<Vec<f32>>| {
            Ok(Layer {
                attend: gpu.upload(&layer.attend, [WIDTH, 3 * WIDTH])?,
                join: gpu.upload(&layer.join, [WIDTH, WIDTH])?,
                widen: gpu.upload(&layer.widen, [WIDTH, HIDDEN])?,
                narrow: gpu.upload(&layer.narrow, [HIDDEN, WIDTH])?,
            })
        };
        Ok(Decoder {
            tokens: gpu.upload(&self.tokens, [VOCABULARY, WIDTH])?,
            places: gpu.upload(&self.places, [LENGTH, WIDTH])?,
            layers: self.layers.iter().map(layer).collect::<Result<_>>()?,
            answers: gpu.upload(&self.answers, [WIDTH, VOCABULARY])?,
        })
    }
}

/// What the device keeps from token to token: keys and values of each layer, the token that is next, and the text so
/// far.
struct State {
    caches: Vec<[Tensor; 2]>,
    token: Tensor,
    text: Tensor,
}

impl State {
    fn new(gpu: &Accelerator) -> Result<State> {
        let cache = || gpu.zeros::<f32>([HEADS, LENGTH, DEPTH]);
        let caches = (0..LAYERS).map(|_| Ok([cache()?, cache()?])).collect::<Result<_>>()?;
        let (token, text) = (gpu.upload(&[FIRST], [1])?, gpu.zeros::<u32>([LENGTH])?);
        Ok(State { caches, token, text })
    }
}

/// One token as a plan.
struct Step {
    plan: Plan,
    /// Where the token stands, and how many there are with it.
    place: Argument<u32>,
    count: Argument<u32>,
    scores: Tensor,
}

impl Step {
    fn record(gpu: &Accelerator, decoder: &Decoder<Tensor>, state: &State) -> Result<Step> {
        let r = gpu.begin_recording()?;
        let place = r.argument("place", 0..=LENGTH as u32 - 1)?;
        let count = r.argument("count", 1..=LENGTH as u32)?;
        let token = r.gather_rows(&decoder.tokens, &state.token)?;
        let mut x = r.add(token, r.slice_at(&decoder.places, 0, place, 1)?)?;
        let ones = gpu.upload(&[1.0f32; WIDTH], [WIDTH])?;
        for (layer, cache) in decoder.layers.iter().zip(&state.caches) {
            let normal = r.rms_norm(x, &ones, EPSILON)?;
            let heads = attention(&r, normal, layer, cache, (place, count))?;
            x = r.add(x, r.matmul(heads, &layer.join)?)?;
            let normal = r.rms_norm(x, &ones, EPSILON)?;
            let hidden = r.matmul_with(normal, &layer.widen, Epilogue::new().relu())?;
            x = r.add(x, r.matmul(hidden, &layer.narrow)?)?;
        }
        let scores = r.matmul(x, &decoder.answers)?;
        let next = r.argmax(scores, -1)?;
        r.assign(&state.token, r.reshape(next, [1])?)?;
        r.update_at(&state.text, 0, place, r.reshape(next, [1])?)?;
        let scores = r.keep(scores)?;
        println!("{} dispatches for a token", r.explain()?.run.len());
        Ok(Step { plan: r.into_plan()?, place, count, scores })
    }
}

/// Writes the token's key and value to their rows, and weighs the values so far.
fn attention(
    r: &Recording,
    x: Value,
    layer: &Layer<Tensor>,
    [keys, values]: &[Tensor; 2],
    (place, count): (Argument<u32>, Argument<u32>),
) -> Result<Value> {
    let all = r.matmul(x, &layer.attend)?;
    let part = |i: usize| r.reshape(r.slice(all, (.., i * WIDTH..(i + 1) * WIDTH))?, [HEADS, 1, DEPTH]);
    r.update_at(keys, 1, place, part(1)?)?;
    r.update_at(values, 1, place, part(2)?)?;
    let scale = 1.0 / (DEPTH as f32).sqrt();
    let scores = r.matmul_with(part(0)?, keys, Matmul::new().transpose_rhs().alpha(scale))?;
    let shares = r.softmax(r.mask_from(scores, -1, count, f32::NEG_INFINITY)?, -1)?;
    r.reshape(r.matmul(shares, values)?, [1, WIDTH])
}

/// The same on the CPU, in f64, with keys and values of its own.
struct Reference<'a> {
    decoder: &'a Decoder<Vec<f32>>,
    caches: Vec<[Vec<Vec<f64>>; 2]>,
}

fn product(x: &[f64], matrix: &[f32]) -> Vec<f64> {
    let columns = matrix.len() / x.len();
    let sum = |c: usize| x.iter().enumerate().map(|(k, x)| x * f64::from(matrix[k * columns + c])).sum();
    (0..columns).map(sum).collect()
}

fn normal(x: &[f64]) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().map(|x| x / (mean + f64::from(EPSILON)).sqrt()).collect()
}

fn add(x: &mut [f64], other: &[f64]) {
    x.iter_mut().zip(other).for_each(|(x, other)| *x += other);
}

impl Reference<'_> {
    /// The scores of the token behind this one.
    fn scores(&mut self, token: u32, place: usize) -> Vec<f64> {
        let row = |matrix: &[f32], i: usize| -> Vec<f64> {
            matrix[i * WIDTH..(i + 1) * WIDTH].iter().map(|&x| f64::from(x)).collect()
        };
        let mut x = row(&self.decoder.tokens, token as usize);
        add(&mut x, &row(&self.decoder.places, place));
        for (layer, [keys, values]) in self.decoder.layers.iter().zip(&mut self.caches) {
            let all = product(&normal(&x), &layer.attend);
            keys.push(all[WIDTH..2 * WIDTH].to_vec());
            values.push(all[2 * WIDTH..].to_vec());
            let mut heads = vec![0.0; WIDTH];
            for head in 0..HEADS {
                let part = head * DEPTH..(head + 1) * DEPTH;
                let dot = |key: &Vec<f64>| {
                    all[part.clone()].iter().zip(&key[part.clone()]).map(|(q, k)| q * k).sum::<f64>()
                };
                let weights: Vec<f64> =
                    keys.iter().map(|key| (dot(key) / (DEPTH as f64).sqrt()).exp()).collect();
                let sum: f64 = weights.iter().sum();
                for (weight, value) in weights.iter().zip(values.iter()) {
                    let weighed: Vec<f64> = value[part.clone()].iter().map(|v| weight / sum * v).collect();
                    add(&mut heads[part.clone()], &weighed);
                }
            }
            add(&mut x, &product(&heads, &layer.join));
            let hidden: Vec<f64> = product(&normal(&x), &layer.widen).iter().map(|x| x.max(0.0)).collect();
            add(&mut x, &product(&hidden, &layer.narrow));
        }
        product(&x, &self.decoder.answers)
    }
}

fn main() -> Result<()> {
    let gpu = Accelerator::global()?;
    let decoder = Decoder::random();
    let (on_device, state) = (decoder.upload(&gpu)?, State::new(&gpu)?);
    let mut step = Step::record(&gpu, &on_device, &state)?;
    let encoded = |gpu: &Accelerator| (gpu.stats().commands.encoded, gpu.stats().commands.plan_encoded);
    let (mut begun, mut first) = (Instant::now(), encoded(&gpu));
    for i in 0..LENGTH as u32 {
        step.plan.set(step.place, i)?;
        step.plan.set(step.count, i + 1)?;
        let submission = step.plan.submit()?;
        if i == 0 {
            // What drivers compile at the first dispatch is no part of the time.
            submission.wait()?;
            (begun, first) = (Instant::now(), encoded(&gpu));
        }
    }
    let text = state.text.read::<u32>()?;
    let elapsed = begun.elapsed();
    assert_eq!(encoded(&gpu), first, "a token encodes nothing");
    println!("{} tokens in {elapsed:.1?}: {:.1?} each", LENGTH - 1, elapsed / (LENGTH as u32 - 1));

    let caches = (0..LAYERS).map(|_| [Vec::new(), Vec::new()]).collect();
    let mut reference = Reference { decoder: &decoder, caches };
    let (mut token, mut exact) = (FIRST, Vec::new());
    for (i, &next) in text.iter().enumerate() {
        exact = reference.scores(token, i);
        let best = exact.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let chosen = exact[next as usize];
        assert!(
            best - chosen <= 1e-3 * best.abs(),
            "token {i} is {next} with {chosen:.4}, the best has {best:.4}"
        );
        token = next;
    }
    let scores = step.scores.read::<f32>()?;
    let largest = exact.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    for (got, exact) in scores.iter().zip(&exact) {
        assert!((f64::from(*got) - exact).abs() <= 1e-4 * largest, "a score is {got}, and should be {exact}");
    }
    assert!(text.windows(2).any(|pair| pair[0] != pair[1]), "always the same token: {text:?}");
    println!("every token is right: {:?} …", &text[..16]);
    Ok(())
}
