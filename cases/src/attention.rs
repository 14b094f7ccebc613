//! Attention and rotary embedding.

use tidemill::{Attention, F16, Recording, Result, RotaryPairs, Shape, Tensor, Value, cpu};

use super::data::uniform;
use super::{Array, Bound, Case, Expected, Input, Kind};

const EPS: f64 = 1.0 / (1u64 << 24) as f64;

/// What is told of queries and keys besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Masked {
    No,
    /// Numbers to add, -∞ among them, in this shape.
    Added([usize; 4]),
    /// Zeros where a key is hidden.
    Seen([usize; 4]),
}

/// What the elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Ordinary,
    /// Large scores.
    Steep,
    /// NaNs in k and v behind the keys that there are.
    Stale,
    /// A NaN or an infinity in a query, so in all of its scores.
    Special,
}

#[derive(Clone, Debug)]
struct Problem {
    /// `[batches, heads, tokens, depth]`
    q: [usize; 4],
    /// `[batches, heads, keys, width]`
    v: [usize; 4],
    rank: usize,
    causal: bool,
    window: Option<u32>,
    scale: Option<f32>,
    cap: Option<f32>,
    masked: Masked,
    length: Option<u32>,
    halves: [bool; 3],
    data: Data,
}

fn problem(heads: [usize; 2], [tokens, keys]: [usize; 2], [depth, width]: [usize; 2]) -> Problem {
    Problem {
        q: [1, heads[0], tokens, depth],
        v: [1, heads[1], keys, width],
        rank: 3,
        causal: false,
        window: None,
        scale: None,
        cap: None,
        masked: Masked::No,
        length: None,
        halves: [false; 3],
        data: Data::Ordinary,
    }
}

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    let mut all = Vec::new();
    // Rows and keys around those of tiles and blocks; depths and widths around whole groups, steps and tiles of
    // columns.
    for tokens in [1, 2, 4, 5, 8, 9, 16, 17, 31, 32, 33, 65] {
        let keys = 2 * tokens + 1;
        all.push(problem([2, 2], [tokens, keys], [16, 32]));
        all.push(Problem { causal: true, ..problem([2, 2], [tokens, keys], [16, 32]) });
    }
    for keys in [1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 513, 1025] {
        all.push(problem([2, 2], [3, keys], [20, 8]));
        all.push(problem([1, 1], [1, keys], [8, 8]));
    }
    for depth in [1, 2, 3, 4, 8, 12, 15, 16, 17, 60, 64, 68, 128, 256] {
        all.push(problem([2, 2], [9, 40], [depth, 12]));
    }
    for width in [1, 3, 4, 31, 32, 33, 36, 64, 68, 96, 100, 128, 132, 256, 260] {
        all.push(problem([2, 2], [9, 40], [16, width]));
        all.push(problem([2, 2], [1, 40], [16, width]));
    }
    // Grouped heads, batches, ranks.
    for heads in [[4, 2], [6, 3], [4, 1], [12, 4]] {
        for tokens in [1, 3, 20] {
            all.push(Problem { causal: true, ..problem(heads, [tokens, 50], [16, 16]) });
        }
    }
    for of_kv in [3, 1] {
        let two = problem([4, 2], [5, 37], [12, 20]);
        let (q, v) = ([3, 4, 5, 12], [of_kv, 2, 37, 20]);
        let batches = Problem { q, v, rank: 4, causal: true, ..two };
        all.push(Problem { masked: Masked::Added([3, 1, 5, 37]), ..batches.clone() });
        all.push(Problem { masked: Masked::Seen([1, 4, 1, 37]), ..batches.clone() });
        all.push(batches);
    }
    all.push(Problem { rank: 2, causal: true, ..problem([1, 1], [33, 70], [24, 24]) });
    masks(&mut all);
    scores(&mut all);
    out.extend(all.into_iter().map(Problem::case));
    // More iterations than lavapipe runs, of 16 rows.
    out.push(problem([4, 1], [16, 40_000], [244, 4]).case().large());
    rotations(out);
    timed(out);
}

fn masks(all: &mut Vec<Problem>) {
    for shape in [[1, 2, 9, 40], [1, 1, 9, 40], [1, 1, 1, 40], [1, 2, 9, 1], [1, 1, 1, 1]] {
        for tall in [problem([2, 2], [9, 40], [16, 16]), problem([2, 1], [9, 40], [16, 16])] {
            all.push(Problem { masked: Masked::Added(shape), ..tall.clone() });
            all.push(Problem { masked: Masked::Seen(shape), causal: true, ..tall });
        }
    }
    for keys in [37, 129, 300] {
        let odd = problem([2, 2], [5, keys], [16, 16]);
        all.push(Problem { masked: Masked::Added([1, 2, 5, keys]), ..odd.clone() });
        all.push(Problem { masked: Masked::Seen([1, 1, 5, keys]), ..odd });
    }
    for window in [1, 2, 7, 31, 33, 1000, u32::MAX] {
        for causal in [true, false] {
            let near = Problem { window: Some(window), causal, ..problem([2, 2], [40, 150], [16, 16]) };
            all.push(Problem { length: Some(77), data: Data::Stale, ..near.clone() });
            all.push(near);
        }
    }
    // Queries before the first key see none.
    for causal in [true, false] {
        all.push(Problem { causal, window: Some(3), ..problem([2, 2], [40, 9], [16, 16]) });
    }
    all.push(Problem { causal: true, ..problem([2, 2], [40, 9], [16, 16]) });
    for length in [0, 1, 3, 32, 33, 64, 100, 128, 129, 150, 1000] {
        for tokens in [1, 4, 20] {
            let part = problem([4, 2], [tokens, 150], [16, 16]);
            let part = Problem { length: Some(length), data: Data::Stale, ..part };
            all.push(Problem { causal: true, ..part.clone() });
            all.push(part);
        }
    }
}

fn scores(all: &mut Vec<Problem>) {
    let plain = problem([2, 2], [33, 130], [64, 64]);
    for data in [Data::Steep, Data::Special] {
        for causal in [true, false] {
            all.push(Problem { data, causal, ..plain.clone() });
            all.push(Problem { data, causal, cap: Some(5.0), ..plain.clone() });
        }
    }
    for scale in [0.0, 1.0, -0.5] {
        all.push(Problem { scale: Some(scale), ..plain.clone() });
    }
    for cap in [0.5, 30.0] {
        all.push(Problem { cap: Some(cap), masked: Masked::Added([1, 1, 33, 130]), ..plain.clone() });
    }
    for empty in [
        problem([0, 0], [3, 5], [8, 8]),
        problem([2, 2], [0, 5], [8, 8]),
        problem([2, 2], [3, 0], [8, 8]),
        problem([2, 2], [3, 5], [8, 0]),
        problem([2, 2], [3, 5], [0, 8]),
    ] {
        all.push(empty);
    }
    for halves in [[true; 3], [true, false, false], [false, true, true]] {
        for (tokens, depth) in [(1, 64), (3, 12), (20, 16), (33, 5), (40, 64)] {
            all.push(Problem { halves, causal: true, ..problem([4, 2], [tokens, 70], [depth, depth]) });
        }
    }
}

const BASE: f32 = 10_000.0;

fn turned(x: &[usize], positions: &[u32], pairs: RotaryPairs) -> Case {
    let (count, depth) = (x.iter().product(), x[x.len() - 1]);
    let tokens = x[x.len() - 2];
    let own = positions.to_vec();
    let inputs = vec![
        Input::new(x, move || uniform(count, -2.0, 3.0, 6)),
        Input::new(&[positions.len()], move || own.clone()),
    ];
    let what = match positions {
        [start] => format!("{x:?} from {start}, {pairs:?}"),
        _ => format!("{x:?} at {} positions, {pairs:?}", positions.len()),
    };
    let expected = move |x: &[Array]| {
        let (x, positions) = (x[0].of::<f32>(), x[1].of::<u32>());
        let one = |i: usize| {
            let (row, column) = (i / depth, i % depth);
            let (pair, other, sign) = match pairs {
                RotaryPairs::Halves if column < depth / 2 => (column, i + depth / 2, -1.0),
                RotaryPairs::Halves => (column - depth / 2, i - depth / 2, 1.0),
                RotaryPairs::Neighbours => (column / 2, i ^ 1, if column % 2 == 0 { -1.0 } else { 1.0 }),
            };
            let token = row % tokens;
            let position = if positions.len() == 1 { positions[0] + token as u32 } else { positions[token] };
            let angle = f64::from(position) * f64::from(BASE).powf(-2.0 * pair as f64 / depth as f64);
            let (a, b) = (f64::from(x[i]), f64::from(x[other]));
            (a * angle.cos() + sign * b * angle.sin(), a.abs() + b.abs())
        };
        Expected::Scaled((0..count).map(one).collect())
    };
    let record = move |r: &Recording, t: &[Tensor]| r.rotary(&t[0], &t[1], BASE, pairs);
    Case::new("rotary", "elementwise", what, inputs, Kind::of::<f32>(x), record, expected)
        .bound(Bound::Scaled(6.0 * EPS))
        .flops(3 * count)
        .twin(move |x, out| cpu::rotary(x[0].view(), x[1].view(), BASE, pairs, out.of_mut()))
}

fn rotations(out: &mut Vec<Case>) {
    for pairs in [RotaryPairs::Halves, RotaryPairs::Neighbours] {
        for depth in [2, 4, 6, 8, 10, 64, 130, 1024] {
            out.push(turned(&[2, 3, 5, depth], &[0], pairs));
            out.push(turned(&[3, depth], &[1_000_003], pairs));
        }
        let positions: Vec<u32> = (0..7).map(|i| i * i * 311).collect();
        out.push(turned(&[7, 12], &positions, pairs));
        out.push(turned(&[4, 7, 64], &positions, pairs));
        out.push(turned(&[2, 1, 64], &[(1 << 24) - 1], pairs));
        out.push(turned(&[0, 7, 64], &positions, pairs));
    }
    out.push(turned(&[12, 1024, 64], &[5], RotaryPairs::Halves).bench("op_rotary"));
}

/// Those that benches time: a layer of GPT-2, with all keys, with those before, and one token more.
fn timed(out: &mut Vec<Case>) {
    let layer = problem([12, 12], [1024, 1024], [64, 64]);
    out.push(layer.clone().case().bench("attention_12x1024x64"));
    out.push(Problem { causal: true, ..layer }.case().bench("attention_causal_12x1024x64"));
    out.push(problem([12, 12], [1, 4096], [64, 64]).case().bench("attention_decode_12x4096x64"));
    out.push(problem([4, 4], [128, 128], [64, 64]).case().bench("op_attention"));
    let halves = Problem { halves: [true; 3], ..problem([4, 4], [128, 128], [64, 64]) };
    out.push(halves.case().bench("op_attention_f16"));
}

/// The last dimensions of four.
fn last(dims: &[usize; 4], rank: usize) -> &[usize] {
    &dims[4 - rank..]
}

fn floats(dims: &[usize], half: bool, make: impl Fn() -> Vec<f32> + Send + Sync + 'static) -> Input {
    if half {
        Input::new(dims, move || make().into_iter().map(F16::from_f32).collect())
    } else {
        Input::new(dims, make)
    }
}

impl Problem {
    fn keys(&self) -> usize {
        self.length.map_or(self.v[2], |length| (length as usize).min(self.v[2]))
    }

    /// The keys that a token sees, by their places.
    fn sees(&self, token: usize, key: usize) -> bool {
        let place = token as i64 + self.keys() as i64 - self.q[2] as i64;
        let distance = place - key as i64;
        let window = i64::from(self.window.unwrap_or(u32::MAX));
        (!self.causal || distance >= 0) && (self.window.is_none() || distance.abs() < window)
    }

    fn case(self) -> Case {
        let Problem { q, v, rank, causal, window, scale, cap, masked, length, halves, data } = self;
        let k = [v[0], v[1], v[2], q[3]];
        let mut what = format!("{:?} with {:?} and {:?}", last(&q, rank), last(&k, rank), last(&v, rank));
        let mut add =
            |told: Option<String>| what.extend(told.into_iter().flat_map(|told| [" ".to_owned(), told]));
        add(causal.then(|| "causal".to_owned()));
        add(window.map(|window| format!("window {window}")));
        add(scale.map(|scale| format!("scale {scale}")));
        add(cap.map(|cap| format!("cap {cap}")));
        add(length.map(|length| format!("length {length}")));
        add((masked != Masked::No).then(|| format!("{masked:?}").to_lowercase()));
        add((data != Data::Ordinary).then(|| format!("{data:?}").to_lowercase()));
        add(halves.contains(&true).then(|| format!("halves {halves:?}")));
        let count = |dims: [usize; 4]| dims.iter().product::<usize>();
        let known = self.keys();
        // Rows of k and v behind the keys that there are.
        let stale = move |mut x: Vec<f32>, dims: [usize; 4]| {
            if data == Data::Stale {
                for (i, row) in x.chunks_mut(dims[3].max(1)).enumerate() {
                    if i % dims[2] >= known {
                        row.fill(f32::NAN);
                    }
                }
            }
            x
        };
        let reach = if data == Data::Steep { 12.0 } else { 2.0 };
        let queries = move || {
            let mut x = uniform(count(q), -reach, reach, 1);
            if data == Data::Special {
                for (i, row) in x.chunks_mut(q[3]).enumerate().step_by(3) {
                    row[i % q[3]] = [f32::NAN, f32::INFINITY][i % 2];
                }
            }
            x
        };
        let keys = move || stale(uniform(count(k), -reach, reach, 2), k);
        let values = move || stale(uniform(count(v), -2.0, 3.0, 3), v);
        let mut inputs = vec![
            floats(last(&q, rank), halves[0], queries),
            floats(last(&k, rank), halves[1], keys),
            floats(last(&v, rank), halves[2], values),
        ];
        match masked {
            Masked::No => {}
            Masked::Added(dims) => inputs.push(Input::new(last(&dims, rank), move || {
                let mut x = uniform(count(dims), -3.0, 3.0, 4);
                x.iter_mut().skip(1).step_by(5).for_each(|x| *x = f32::NEG_INFINITY);
                x
            })),
            Masked::Seen(dims) => inputs.push(Input::new(last(&dims, rank), move || {
                uniform(count(dims), 0.0, 4.0, 5).into_iter().map(|x| x as u32).collect()
            })),
        }
        inputs.extend(length.map(|length| Input::new(&[1], move || vec![length])));
        let result = [q[0], q[1], q[2], v[3]];
        let whole = halves == [true; 3];
        let kind =
            if whole { Kind::of::<F16>(last(&result, rank)) } else { Kind::of::<f32>(last(&result, rank)) };
        let seen = (0..q[2]).flat_map(|t| (0..known).map(move |key| (t, key)));
        let pairs = seen.filter(|(token, key)| self.sees(*token, *key)).count() * q[0] * q[1];
        let (recorded, referred, twin) = (self.clone(), self.clone(), self);
        let op = if halves.contains(&true) { "attention_f16" } else { "attention" };
        let record = move |r: &Recording, t: &[Tensor]| recorded.record(r, t);
        let case = Case::new(op, "attention", what, inputs, kind, record, move |x| referred.expected(x))
            // A half has 11 bits.
            .bound(Bound::Scaled(if whole { 5e-4 } else { 16.0 * EPS }))
            .flops(2 * pairs * (q[3] + v[3]));
        if op == "attention" { case.twin(move |x, out| twin.on_cpu(x, out)) } else { case }
    }

    fn record(&self, r: &Recording, t: &[Tensor]) -> Result<Value> {
        let mut how = Attention::new();
        how = if self.causal { how.causal() } else { how };
        how = self.window.map_or(how, |window| how.window(window));
        how = self.scale.map_or(how, |scale| how.scale(scale));
        how = self.cap.map_or(how, |cap| how.soft_cap(cap));
        let mut more = t[3..].iter();
        if self.masked != Masked::No {
            how = more.next().map_or(how, |mask| how.mask(mask));
        }
        how = more.next().map_or(how, |length| how.length(length));
        r.attention(&t[0], &t[1], &t[2], how)
    }

    fn on_cpu(&self, x: &[Array], out: &mut Array) -> Result<Shape> {
        let mut how = cpu::Attention::new();
        how = if self.causal { how.causal() } else { how };
        how = self.window.map_or(how, |window| how.window(window));
        how = self.scale.map_or(how, |scale| how.scale(scale));
        how = self.cap.map_or(how, |cap| how.soft_cap(cap));
        how = self.length.map_or(how, |length| how.length(length as usize));
        how = match self.masked {
            Masked::No => how,
            Masked::Added(_) => how.mask(cpu::Mask::Added(x[3].view())),
            Masked::Seen(_) => how.mask(cpu::Mask::Seen(x[3].view())),
        };
        cpu::attention(x[0].view(), x[1].view(), x[2].view(), how, out.of_mut())
    }

    fn expected(&self, x: &[Array]) -> Expected {
        let (q, k, v) = (x[0].floats(), x[1].floats(), x[2].floats());
        let [batches, heads, tokens, depth] = self.q;
        let [of_kv, kv_heads, keys, width] = self.v;
        let scale = self.scale.map_or(1.0 / (depth.max(1) as f64).sqrt(), f64::from);
        let known = self.keys();
        // What the mask adds to a score.
        let added = |at: [usize; 4]| {
            let place = |dims: [usize; 4]| {
                at.iter().zip(dims).fold(0, |place, (at, extent)| place * extent + at % extent)
            };
            match self.masked {
                Masked::No => 0.0,
                Masked::Added(dims) => f64::from(x[3].of::<f32>()[place(dims)]),
                Masked::Seen(dims) if x[3].of::<u32>()[place(dims)] == 0 => f64::NEG_INFINITY,
                Masked::Seen(_) => 0.0,
            }
        };
        let mut expected = Vec::with_capacity(batches * heads * tokens * width);
        let mut scores = Vec::with_capacity(known);
        for row in 0..batches * heads * tokens {
            let (token, head, batch) = (row % tokens, row / tokens % heads, row / tokens / heads);
            let own = (if of_kv == 1 { 0 } else { batch }) * kv_heads + head / (heads / kv_heads);
            let query = &q[row * depth..][..depth];
            let (mut size, mut largest) = (0.0f64, 0.0f64);
            scores.clear();
            for key in (0..known).filter(|key| self.sees(token, *key)) {
                let of_key = &k[(own * keys + key) * depth..][..depth];
                let (mut sum, mut sizes) = (0.0, 0.0);
                for (a, b) in query.iter().zip(of_key) {
                    let product = f64::from(*a) * f64::from(*b);
                    sum += product;
                    sizes += product.abs();
                }
                let score = self
                    .cap
                    .map_or(scale * sum, |cap| f64::from(cap) * (scale * sum / f64::from(cap)).tanh());
                let more = added([batch, head, token, key]);
                if more == f64::NEG_INFINITY {
                    continue;
                }
                size = size.max(scale.abs() * sizes + more.abs());
                largest = v[(own * keys + key) * width..][..width]
                    .iter()
                    .fold(largest, |m, v| m.max(f64::from(v.abs())));
                scores.push((key, score + more));
            }
            let top = scores.iter().fold(f64::MIN, |top, (_, score)| top.max(*score));
            let mut sums = vec![0.0; width];
            let mut all = 0.0;
            for (key, score) in &scores {
                let weight = (score - top).exp();
                all += weight;
                let of_key = &v[(own * keys + key) * width..][..width];
                sums.iter_mut().zip(of_key).for_each(|(sum, v)| *sum += weight * f64::from(*v));
            }
            let share = if all == 0.0 { 0.0 } else { 1.0 / all };
            expected.extend(sums.into_iter().map(|sum| (sum * share, (1.0 + size) * largest)));
        }
        Expected::Scaled(expected)
    }
}
