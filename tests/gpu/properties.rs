//! Random graphs equal a reference on the CPU, fused and unfused.
//!
//! A graph is a random sequence of phrases on random earlier values. Some phrases are written down here, the others are
//! random themselves, but drawn from this many and no more. Each ends in something no other phrase can be fused with,
//! so that however many graphs there are, the op lists they are fused into are bounded: compiling them is what would
//! take the time. (`schedule/fusion_properties.rs` has graphs without bounds, which no device runs.) Elements are small
//! integers, so that every order of summing gives the same and results are compared exactly. Fused and unfused are
//! compared with each other to a bit, with elements that get rounded, too.

use tidemill::{Accelerator, Axes, Operand, Recording, Result, Tensor, Value};

use crate::harness::{config, gpu, gpu_with};
use crate::random::Random;

/// Phrases that are written down.
const WRITTEN: usize = 18;
/// Rows of the first of several matmuls in a row.
const TALL: usize = 64;
/// More operations than a phrase has.
const LONGEST: usize = 32;
/// What values are cut to, so that products and sums of them stay exact.
const BOUND: f64 = 8.0;

/// A matrix of a graph, and what is in it.
#[derive(Clone)]
struct Known {
    value: Value,
    dims: [usize; 2],
    data: Vec<f64>,
}

impl Known {
    fn at(&self, row: usize, column: usize) -> f64 {
        // Dimensions of one element are stretched.
        self.data[row % self.dims[0] * self.dims[1] + column % self.dims[1]]
    }
}

/// A recording and its reference, grown together.
struct Twin {
    r: Recording,
    ops: usize,
    /// Tensors, what is in them, and how far off they may be.
    kept: Vec<(Tensor, Vec<f64>, f64)>,
}

type Made = Result<Known>;

impl Twin {
    fn known(&mut self, value: Value, dims: [usize; 2], element: impl Fn(usize, usize) -> f64) -> Known {
        self.ops += 1;
        let data = (0..dims[0] * dims[1]).map(|i| element(i / dims[1], i % dims[1])).collect();
        Known { value, dims, data }
    }

    fn binary(&mut self, op: &str, a: &Known, b: &Known) -> Made {
        let (x, y) = (a.value, b.value);
        let (value, f): (Value, fn(f64, f64) -> f64) = match op {
            "add" => (self.r.add(x, y)?, |a, b| a + b),
            "sub" => (self.r.sub(x, y)?, |a, b| a - b),
            "mul" => (self.r.mul(x, y)?, |a, b| a * b),
            "min" => (self.r.min(x, y)?, f64::min),
            _ => (self.r.max(x, y)?, f64::max),
        };
        let dims = [0, 1].map(|d| a.dims[d].max(b.dims[d]));
        Ok(self.known(value, dims, |i, j| f(a.at(i, j), b.at(i, j))))
    }

    fn unary(&mut self, op: &str, a: &Known) -> Made {
        let x = a.value;
        let (value, f): (Value, fn(f64) -> f64) = match op {
            "neg" => (self.r.neg(x)?, |a| -a),
            "abs" => (self.r.abs(x)?, f64::abs),
            "relu" => (self.r.relu(x)?, |a| a.max(0.0)),
            "clip" => (self.r.clip(x, -BOUND as f32, BOUND as f32)?, |a| a.clamp(-BOUND, BOUND)),
            _ => (self.r.copy(x)?, |a| a),
        };
        Ok(self.known(value, a.dims, |i, j| f(a.at(i, j))))
    }

    /// A sequence of operations of one operand, one after the other.
    fn all(&mut self, ops: &[&str], a: Known) -> Made {
        ops.iter().try_fold(a, |a, op| self.unary(op, &a))
    }

    fn reduce(&mut self, op: &str, a: &Known, axis: usize) -> Made {
        let axes = Axes::at(axis as isize).keep();
        let (value, f): (Value, fn(f64, f64) -> f64) = match op {
            "sum" => (self.r.sum(a.value, axes)?, |a, b| a + b),
            _ => (self.r.amax(a.value, axes)?, f64::max),
        };
        let mut dims = a.dims;
        dims[axis] = 1;
        let along = |i: usize, j: usize| {
            let elements = (0..a.dims[axis]).map(|k| if axis == 0 { a.at(k, j) } else { a.at(i, k) });
            elements.reduce(f).unwrap_or(0.0)
        };
        Ok(self.known(value, dims, along))
    }

    fn matmul(&mut self, a: &Known, b: &Known) -> Made {
        let value = self.r.matmul(a.value, b.value)?;
        let inner = a.dims[1];
        let element = |i, j| (0..inner).map(|k| a.at(i, k) * b.at(k, j)).sum();
        Ok(self.known(value, [a.dims[0], b.dims[1]], element))
    }

    fn transpose(&mut self, a: &Known) -> Made {
        let value = self.r.transpose(a.value)?;
        Ok(self.known(value, [a.dims[1], a.dims[0]], |i, j| a.at(j, i)))
    }

    /// The elements in another order: as if rows were columns.
    fn turn(&mut self, a: &Known) -> Made {
        let [rows, columns] = a.dims;
        let turned = self.r.reshape(a.value, [columns, rows])?;
        let value = self.r.transpose(turned)?;
        Ok(self.known(value, a.dims, |i, j| a.data[j * rows + i]))
    }

    fn softmax(&mut self, a: &Known) -> Made {
        let value = self.r.softmax(a.value, -1)?;
        let sum = |i| (0..a.dims[1]).map(|k| a.at(i, k).exp()).sum::<f64>();
        Ok(self.known(value, a.dims, |i, j| a.at(i, j).exp() / sum(i)))
    }

    fn keep(&mut self, a: &Known, tolerance: f64) -> Result<()> {
        self.kept.push((self.r.keep(a.value)?, a.data.clone(), tolerance));
        Ok(())
    }

    /// The rows from `cut` on, and then those before.
    fn rotate(&mut self, a: &Known, cut: usize) -> Made {
        let [rows, columns] = a.dims;
        let low = self.r.slice(a.value, [0..cut, 0..columns])?;
        let high = self.r.slice(a.value, [cut..rows, 0..columns])?;
        self.ops += 2;
        let value = self.r.concat([Operand::from(high), Operand::from(low)], 0)?;
        Ok(self.known(value, a.dims, |i, j| a.at((i + cut) % rows, j)))
    }

    fn select_smaller(&mut self, a: &Known, b: &Known) -> Made {
        let mask = self.r.lt(a.value, b.value)?;
        self.ops += 1;
        let value = self.r.select(mask, a.value, b.value)?;
        Ok(self.known(value, a.dims, |i, j| a.at(i, j).min(b.at(i, j))))
    }

    fn first_rows(&mut self, a: &Known, rows: usize) -> Made {
        let value = self.r.slice(a.value, [0..rows, 0..a.dims[1]])?;
        Ok(self.known(value, [rows, a.dims[1]], |i, j| a.at(i, j)))
    }

    /// One phrase on matrices of the graph's shape; `parts` are a row, a column, a square matrix, and four that make a
    /// matrix tall, wide, another one, and narrow again.
    fn phrase(&mut self, which: usize, x: &Known, y: &Known, parts: &[Known; 7]) -> Result<Vec<Known>> {
        if which >= WRITTEN {
            let last = self.random_phrase(which, x, y, parts)?;
            return Ok(vec![self.all(&["clip", "copy"], last)?]);
        }
        let [row, column, square, tall, wide, deep, narrow] = parts;
        let last = match which {
            0 => self.binary("add", x, y)?,
            1 => {
                let v = self.binary("sub", x, y)?;
                self.unary("relu", &v)?
            }
            2 => {
                // A diamond.
                let (left, right) = (self.unary("neg", x)?, self.unary("abs", x)?);
                let right = self.binary("min", y, &right)?;
                self.binary("max", &left, &right)?
            }
            3 => {
                let v = self.binary("mul", x, row)?;
                self.binary("add", &v, y)?
            }
            4 => self.binary("sub", x, column)?,
            5 => {
                // Two results that are needed later.
                let v = self.binary("add", x, y)?;
                let first = self.unary("clip", &v)?;
                let second = self.unary("neg", &first)?;
                return Ok(vec![self.unary("copy", &first)?, self.unary("copy", &second)?]);
            }
            6 => {
                let sums = self.reduce("sum", x, 1)?;
                let sums = self.unary("clip", &sums)?;
                self.binary("add", x, &sums)?
            }
            7 => {
                let most = self.reduce("max", x, 0)?;
                self.binary("sub", x, &most)?
            }
            8 => {
                // All of it becomes one dispatch.
                let v = self.matmul(x, square)?;
                let v = self.binary("add", &v, row)?;
                self.unary("relu", &v)?
            }
            9 => {
                let v = self.transpose(x)?;
                let v = self.unary("neg", &v)?;
                self.transpose(&v)?
            }
            10 => self.rotate(x, x.dims[0] / 2)?,
            11 => self.select_smaller(x, y)?,
            12 => {
                // The prologue of a reduction.
                let v = self.binary("sub", x, y)?;
                let v = self.unary("abs", &v)?;
                let sums = self.reduce("sum", &v, 1)?;
                self.binary("sub", x, &sums)?
            }
            13 => {
                // The prologue of a softmax, which nothing exact follows.
                let v = self.binary("sub", x, y)?;
                let v = self.unary("relu", &v)?;
                let shares = self.softmax(&v)?;
                self.keep(&shares, 1e-6)?;
                self.binary("max", x, y)?
            }
            14 => {
                // Read in two layouts.
                let v = self.binary("add", x, y)?;
                let turned = self.turn(&v)?;
                self.binary("sub", &v, &turned)?
            }
            15 => {
                let v = self.matmul(x, square)?;
                let turned = self.turn(&v)?;
                self.binary("add", &v, &turned)?
            }
            16 => {
                // Matmuls that feed matmuls.
                let v = self.matmul(x, wide)?;
                let v = self.unary("clip", &v)?;
                let v = self.matmul(tall, &v)?;
                let v = self.unary("clip", &v)?;
                let v = self.matmul(&v, deep)?;
                let v = self.unary("clip", &v)?;
                let v = self.matmul(&v, narrow)?;
                let v = self.binary("add", &v, row)?;
                self.first_rows(&v, x.dims[0])?
            }
            _ => {
                // Longer than an op list can be.
                let mut v = self.binary("sub", x, y)?;
                for _ in 0..9 {
                    v = self.all(&["clip", "abs"], v)?;
                    v = self.binary("sub", &v, y)?;
                }
                v
            }
        };
        Ok(vec![self.all(&["clip", "copy"], last)?])
    }

    /// The phrase of that number: steps that are random, but always the same. Some of what it makes on the way is kept.
    fn random_phrase(&mut self, number: usize, x: &Known, y: &Known, parts: &[Known; 7]) -> Made {
        let [row, column, square, ..] = parts;
        let mut random = Random(number as u64);
        let mut known = vec![x.clone(), y.clone()];
        for _ in 0..3 + random.below(6) {
            let mut pick = || known[known.len() - 1 - random.below(known.len().min(3))].clone();
            let (a, b) = (pick(), pick());
            let new = match random.below(12) {
                which @ 0..4 => self.binary(["add", "sub", "min", "max"][which], &a, &b)?,
                which @ 4..7 => self.unary(["neg", "abs", "relu"][which - 4], &a)?,
                7 => {
                    let v = self.binary("mul", &a, if random.below(2) == 0 { row } else { column })?;
                    self.unary("clip", &v)?
                }
                8 => self.select_smaller(&a, &b)?,
                9 => self.turn(&a)?,
                10 => {
                    let v = self.matmul(&a, square)?;
                    self.unary("clip", &v)?
                }
                _ => {
                    let sums = self.reduce("sum", &a, random.below(2))?;
                    let sums = self.unary("clip", &sums)?;
                    self.binary("add", &b, &sums)?
                }
            };
            if random.below(4) == 0 {
                self.keep(&new, 0.0)?;
            }
            known.push(new);
        }
        Ok(known[known.len() - 1].clone())
    }
}

/// A tensor of small multiples of `grain`, and the same as a value of the recording.
fn multiples(twin: &mut Twin, gpu: &Accelerator, random: &mut Random, grain: f64, dims: [usize; 2]) -> Made {
    let data: Vec<f64> = (0..dims[0] * dims[1]).map(|_| grain * (random.below(9) as f64 - 4.0)).collect();
    let tensor = gpu.upload(&data.iter().map(|x| *x as f32).collect::<Vec<_>>(), dims)?;
    let value = twin.r.reshape(&tensor, dims)?;
    Ok(Known { value, dims, data })
}

/// Records a graph of up to 200 operations, runs it, and gives everything that was kept, compared with the reference if
/// that is exact: if elements are integers.
fn run(gpu: &Accelerator, seed: u64, grain: f64, phrases: usize) -> Result<Vec<Vec<u32>>> {
    let mut random = Random(seed);
    let dims = [[6, 8], [5, 7], [8, 8]][random.below(3)];
    let nodes = [8, 40, 190][random.below(3)];
    let mut twin = Twin { r: gpu.begin_recording()?, ops: 0, kept: Vec::new() };
    let mut make = |twin: &mut Twin, dims| multiples(twin, gpu, &mut random, grain, dims);
    let mut known = vec![make(&mut twin, dims)?, make(&mut twin, dims)?];
    let [rows, columns] = dims;
    let parts = [
        make(&mut twin, [1, columns])?,
        make(&mut twin, [rows, 1])?,
        make(&mut twin, [columns; 2])?,
        make(&mut twin, [TALL, rows])?,
        make(&mut twin, [columns, 32])?,
        make(&mut twin, [32, 32])?,
        make(&mut twin, [32, columns])?,
    ];
    let mut story = Vec::new();
    while twin.ops + LONGEST < nodes || story.is_empty() {
        // Two of the last five: an operand that comes twice would be other op lists.
        let late = &known[known.len().saturating_sub(5)..];
        let first = random.below(late.len());
        let second = (first + 1 + random.below(late.len() - 1)) % late.len();
        let (x, y) = (late[first].clone(), late[second].clone());
        let which = random.below(phrases);
        story.push(which);
        for new in twin.phrase(which, &x, &y, &parts)? {
            if random.below(4) == 0 {
                twin.keep(&new, 0.0)?;
            }
            known.push(new);
        }
    }
    if let Some(last) = known.last() {
        twin.keep(last, 0.0)?;
    }
    let Twin { r, ops, kept } = twin;
    assert!(ops <= 200, "{ops} operations");
    drop(r.end_recording()?);
    let mut bits = Vec::new();
    for (tensor, expected, tolerance) in kept {
        let got = tensor.read::<f32>()?;
        if grain == 1.0 {
            let near = |(got, expected): (&f32, &f64)| (f64::from(*got) - expected).abs() <= tolerance;
            let right = got.len() == expected.len() && got.iter().zip(&expected).all(near);
            assert!(right, "seed {seed}, {dims:?}, phrases {story:?}: {got:?} is not {expected:?}");
        }
        bits.push(got.into_iter().map(f32::to_bits).collect());
    }
    Ok(bits)
}

/// Runs the graphs, whose phrases are those that are written down and this many random ones.
fn check_all(seeds: std::ops::Range<u64>, random_phrases: usize, most_pipelines: u64) {
    let (fused, unfused) = (gpu(), gpu_with(config().fusion(false)));
    for seed in seeds {
        for grain in if seed % 5 == 0 { &[1.0, 0.37][..] } else { &[1.0] } {
            let run = |gpu: &Accelerator| run(gpu, seed, *grain, WRITTEN + random_phrases).unwrap();
            assert_eq!(run(&fused), run(&unfused), "seed {seed}: other bits");
        }
    }
    let (few, many) = (fused.stats(), unfused.stats());
    assert!(few.dispatches * 4 < many.dispatches * 3, "{} and {}", few.dispatches, many.dispatches);
    let made = few.pipelines.made + many.pipelines.made;
    println!("dispatches: {} fused, {} unfused; pipelines: {made}", few.dispatches, many.dispatches);
    assert!(made <= most_pipelines, "{made} pipelines: the phrases are to be bounded");
}

#[test]
fn random_graphs_equal_the_reference_fused_and_unfused() {
    check_all(0..200, 16, 300);
}

#[test]
#[ignore = "minutes: ./dev test --long runs it"]
fn two_thousand_random_graphs() {
    check_all(1000..3000, 400, 4000);
}
