//! Pooling.

use tidemill::cpu;
use tidemill::{DType, Pool, Recording, Result, Shape, Tensor, Value};

use super::data::{Random, SPECIAL, uniform};
use super::{Array, Bound, Case, Expected, Input, Kind};

/// One rounding of an f32.
const EPS: f64 = 1.0 / (1u64 << 24) as f64;

/// The windows of a case, in plain numbers, one of each for each dimension, outermost first.
#[derive(Clone, Debug)]
struct Windows {
    window: Vec<usize>,
    stride: Vec<usize>,
    padding: Vec<(usize, usize)>,
    dilation: Vec<usize>,
    ceil: bool,
    count_padding: bool,
}

impl Windows {
    fn new(window: &[usize]) -> Windows {
        let rank = window.len();
        Windows {
            window: window.to_vec(),
            stride: window.to_vec(),
            padding: vec![(0, 0); rank],
            dilation: vec![1; rank],
            ceil: false,
            count_padding: false,
        }
    }

    fn stride(self, stride: &[usize]) -> Windows {
        Windows { stride: stride.to_vec(), ..self }
    }

    fn padding(self, padding: &[(usize, usize)]) -> Windows {
        Windows { padding: padding.to_vec(), ..self }
    }

    fn dilation(self, dilation: &[usize]) -> Windows {
        Windows { dilation: dilation.to_vec(), ..self }
    }

    fn pool(&self) -> Pool {
        let pool =
            Pool::new(&self.window).stride(&self.stride).padding(&self.padding).dilation(&self.dilation);
        let pool = if self.ceil { pool.ceil() } else { pool };
        if self.count_padding { pool.count_padding() } else { pool }
    }

    /// How many windows there are in a dimension, by trying one after the other.
    fn count(&self, d: usize, extent: usize) -> usize {
        let (before, after) = self.padding[d];
        let reach = self.dilation[d] * (self.window[d] - 1) + 1;
        let fits = |begin: usize| begin + reach <= extent + before + after;
        let begins_inside = |begin: usize| begin < extent + before;
        let is_one = |i: &usize| {
            let begin = i * self.stride[d];
            // The last one may reach beyond the padding if the one before it did not end there.
            let left_over = *i > 0 && fits(begin - self.stride[d]) && !fits(begin) && {
                begin - self.stride[d] + reach < extent + before + after
            };
            fits(begin) || (self.ceil && left_over && begins_inside(begin))
        };
        (0..).take_while(is_one).count()
    }

    /// The coordinates of a window's elements in a dimension, `None` for padding.
    fn steps(&self, d: usize, extent: usize, at: usize) -> Vec<Option<usize>> {
        let (before, after) = self.padding[d];
        (0..self.window[d])
            .map(|k| at * self.stride[d] + k * self.dilation[d])
            .filter(|padded| *padded < extent + before + after)
            .map(|padded| padded.checked_sub(before).filter(|at| *at < extent))
            .collect()
    }
}

/// Which coordinates a window has, by its own, in each dimension.
type Steps = Box<dyn Fn(usize, usize) -> Vec<Option<usize>> + Send + Sync>;

/// A number for each window: of the elements, their places in the image, and the number of steps.
fn each_window(
    dims: &[usize],
    to: &[usize],
    rank: usize,
    steps: &Steps,
    mut f: impl FnMut(&[(usize, usize)], usize),
) {
    let (outer, inner) = dims.split_at(dims.len() - rank);
    let (images, image): (usize, usize) = (outer.iter().product(), inner.iter().product());
    let outputs = &to[to.len() - rank..];
    for n in 0..images {
        for i in 0..outputs.iter().product() {
            let mut rest: usize = i;
            let mut places = vec![(0usize, true)];
            let mut at = vec![0; rank];
            for d in (0..rank).rev() {
                at[d] = rest % outputs[d];
                rest /= outputs[d];
            }
            for d in 0..rank {
                let steps = steps(d, at[d]);
                places = places
                    .iter()
                    .flat_map(|(place, counts)| {
                        steps.iter().map(move |step| match step {
                            Some(step) => (place * inner[d] + step, *counts),
                            None => (0, false),
                        })
                    })
                    .collect();
            }
            let all = places.len();
            let inside: Vec<_> =
                places.iter().filter(|(_, counts)| *counts).map(|(p, _)| (n * image + p, *p)).collect();
            f(&inside, all);
        }
    }
}

/// The largest of some elements and its place among them; NaN above all.
fn largest(x: &[f32], inside: &[(usize, usize)]) -> (f32, usize) {
    let above = |a: f32, b: f32| !b.is_nan() && (a.is_nan() || a > b);
    let mut best = (f32::NEG_INFINITY, usize::MAX);
    for &(at, place) in inside {
        if best.1 == usize::MAX || above(x[at], best.0) {
            best = (x[at], place);
        }
    }
    (best.0, if best.1 == usize::MAX { 0 } else { best.1 })
}

/// The larger of two zeros is the positive one.
fn signed_largest(x: &[f32], inside: &[(usize, usize)]) -> f32 {
    let (value, _) = largest(x, inside);
    let positive = inside.iter().any(|&(at, _)| x[at].to_bits() == 0);
    if value == 0.0 && positive { 0.0 } else { value }
}

/// What is made of the windows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Max,
    Places,
    Mean,
    Norm(f32),
}

/// A mean or a norm, and what its error is measured by.
fn number(what: What, x: &[f32], inside: &[(usize, usize)], divisor: usize) -> (f64, f64) {
    let elements = || inside.iter().map(|&(at, _)| f64::from(x[at]));
    match what {
        What::Norm(p) => {
            let norm = elements().map(|x| x.abs().powf(f64::from(p))).sum::<f64>().powf(1.0 / f64::from(p));
            (norm, norm)
        }
        _ => {
            let n = divisor as f64;
            (elements().sum::<f64>() / n, elements().map(f64::abs).sum::<f64>() / n)
        }
    }
}

struct Pooling {
    what: What,
    name: &'static str,
    described: String,
    dims: Vec<usize>,
    to: Vec<usize>,
    rank: usize,
    count_padding: bool,
    most: usize,
    special: bool,
}

impl Pooling {
    fn case(
        self,
        steps: Steps,
        record: impl Fn(&Recording, &Tensor) -> Result<Value> + Send + Sync + 'static,
        on_cpu: impl Fn(cpu::View<'_, f32>, &mut Array) -> Result<Shape> + Send + Sync + 'static,
    ) -> Case {
        let Pooling { what, name, described, dims, to, rank, count_padding, most, special } = self;
        let n = dims.iter().product();
        let input = Input::new(&dims, move || if special { specials(n) } else { few(n, what) });
        let dtype = if what == What::Places { DType::U32 } else { DType::F32 };
        let (result, outputs) = (Kind::new(dtype, &to), to.iter().product::<usize>());
        let expected = move |x: &[Array]| {
            let x = x[0].of::<f32>();
            let (mut words, mut scaled) = (Vec::new(), Vec::new());
            each_window(&dims, &to, rank, &steps, |inside, all| match what {
                What::Max => words.push(signed_largest(x, inside).to_bits()),
                What::Places => words.push(largest(x, inside).1 as u32),
                _ => scaled.push(number(what, x, inside, if count_padding { all } else { inside.len() })),
            });
            match what {
                What::Max => Expected::Floats(words.iter().map(|w| f64::from(f32::from_bits(*w))).collect()),
                What::Places => Expected::Words(words),
                _ => Expected::Scaled(scaled),
            }
        };
        let bound = match what {
            What::Max | What::Places => Bound::Exact,
            What::Norm(p) if p != 1.0 && p != 2.0 => Bound::Scaled((most as f64 + 16.0) * EPS),
            _ => Bound::Scaled((most as f64 + 4.0) * EPS),
        };
        let record = move |r: &Recording, t: &[Tensor]| record(r, &t[0]);
        Case::new(name, "elementwise", described, vec![input], result, record, expected)
            .bound(bound)
            .flops(outputs * most)
            .twin(move |x, out| on_cpu(x[0].view(), out))
    }
}

/// Of few different values: the first of many equals is asked for. Sums get more of them.
fn few(n: usize, what: What) -> Vec<f32> {
    let mut random = Random::new(n as u64);
    match what {
        What::Max | What::Places => (0..n).map(|_| (random.bits() % 20) as f32 - 10.0).collect(),
        _ => uniform(n, -4.0, 4.0, 11),
    }
}

fn specials(n: usize) -> Vec<f32> {
    let mut random = Random::new(5);
    let special = |bits: u64| SPECIAL.get((bits % 32) as usize).copied().unwrap_or(-2.0);
    (0..n).map(|_| special(random.bits())).collect()
}

fn sliding(what: What, dims: &[usize], windows: &Windows, special: bool) -> Case {
    let rank = windows.window.len();
    let mut to = dims.to_vec();
    for d in 0..rank {
        let at = dims.len() - rank + d;
        to[at] = windows.count(d, dims[at]);
    }
    let name = match what {
        What::Max => "max_pool",
        What::Places => "max_pool_with_places",
        What::Mean => "average_pool",
        What::Norm(_) => "norm_pool",
    };
    let note = if special { " special" } else { "" };
    let power = if let What::Norm(p) = what { format!(" p {p}") } else { String::new() };
    let Windows { window, stride, padding, dilation, ceil, count_padding } = windows;
    let described = format!(
        "{dims:?} by {window:?} stride {stride:?} padding {padding:?} dilation {dilation:?}{}{}{power}{note}",
        if *ceil { " ceil" } else { "" },
        if *count_padding { " counted" } else { "" },
    );
    let extents = dims[dims.len() - rank..].to_vec();
    let own = windows.clone();
    let steps: Steps = Box::new(move |d, at| own.steps(d, extents[d], at));
    let pooling = Pooling {
        what,
        name,
        described,
        dims: dims.to_vec(),
        to,
        rank,
        count_padding: *count_padding,
        most: window.iter().product(),
        special,
    };
    let (pool, twin) = (windows.pool(), windows.pool());
    let record = move |r: &Recording, x: &Tensor| match what {
        What::Max => r.max_pool(x, &pool),
        What::Places => Ok(r.max_pool_with_places(x, &pool)?.1),
        What::Mean => r.average_pool(x, &pool),
        What::Norm(p) => r.norm_pool(x, p, &pool),
    };
    pooling.case(steps, record, move |x, out| match what {
        What::Max => cpu::max_pool(x, &twin, out.of_mut()),
        What::Places => cpu::max_pool_places(x, &twin, out.of_mut()),
        What::Mean => cpu::average_pool(x, &twin, out.of_mut()),
        What::Norm(p) => cpu::norm_pool(x, p, &twin, out.of_mut()),
    })
}

fn adaptive(what: What, dims: &[usize], parts: &[usize]) -> Case {
    let rank = parts.len();
    let extents = dims[dims.len() - rank..].to_vec();
    let mut to = dims.to_vec();
    to[dims.len() - rank..].copy_from_slice(parts);
    let pooling = Pooling {
        what,
        name: if what == What::Max { "adaptive_max_pool" } else { "adaptive_average_pool" },
        described: format!("{dims:?} into {parts:?}"),
        dims: dims.to_vec(),
        to,
        rank,
        count_padding: false,
        most: extents.iter().zip(parts).map(|(extent, parts)| extent.div_ceil(*parts) + 1).product(),
        special: false,
    };
    let counts = parts.to_vec();
    let steps: Steps = Box::new(move |d, at| {
        let (extent, parts) = (extents[d], counts[d]);
        (at * extent / parts..((at + 1) * extent).div_ceil(parts)).map(Some).collect()
    });
    let (parts, twin) = (parts.to_vec(), parts.to_vec());
    let record = move |r: &Recording, x: &Tensor| match what {
        What::Max => r.adaptive_max_pool(x, &parts),
        _ => r.adaptive_average_pool(x, &parts),
    };
    pooling.case(steps, record, move |x, out| match what {
        What::Max => cpu::adaptive_max_pool(x, &twin, out.of_mut()),
        _ => cpu::adaptive_average_pool(x, &twin, out.of_mut()),
    })
}

/// Adds the cases.
pub(crate) fn cases(out: &mut Vec<Case>) {
    let three = Windows::new(&[3, 3]).stride(&[2, 2]).padding(&[(1, 1), (1, 1)]);
    for what in [What::Max, What::Places, What::Mean, What::Norm(2.0)] {
        for n in [1, 4, 5, 257, 2049] {
            out.push(sliding(what, &[n], &Windows::new(&[1]), false));
        }
        for dims in [&[7, 9][..], &[2, 8, 8], &[1, 3, 14, 14], &[2, 3, 15, 13], &[1, 5, 1, 1]] {
            out.push(sliding(what, dims, &three, false));
            out.push(sliding(what, dims, &Windows { ceil: true, ..three.clone() }, false));
            let counted = Windows { ceil: true, count_padding: true, ..three.clone() };
            out.push(sliding(what, dims, &counted, false));
        }
        out.push(sliding(what, &[3, 40], &Windows::new(&[4]), false));
        out.push(sliding(what, &[3, 41], &Windows { ceil: true, ..Windows::new(&[4]) }, false));
        out.push(sliding(what, &[3, 41], &Windows::new(&[5]).stride(&[3]).padding(&[(0, 4)]), false));
        let apart = Windows::new(&[2, 3]).stride(&[1, 2]).dilation(&[3, 2]).padding(&[(2, 0), (1, 3)]);
        out.push(sliding(what, &[2, 9, 10], &apart, false));
        // A window that sees padding alone, in spite of its reach.
        out.push(sliding(
            what,
            &[4, 1],
            &Windows::new(&[2]).stride(&[1]).dilation(&[3]).padding(&[(2, 2)]),
            false,
        ));
        let deep = Windows::new(&[2, 3, 2]).stride(&[2, 1, 2]).padding(&[(0, 1), (1, 1), (1, 0)]);
        out.push(sliding(what, &[5, 6, 7], &deep, false));
        out.push(sliding(what, &[3, 4, 5, 6], &deep, false));
        out.push(sliding(what, &[6, 30, 30], &Windows::new(&[30, 30]), false));
        out.push(sliding(what, &[0, 4, 4], &Windows::new(&[2, 2]), false));
        let large = sliding(what, &[1, 64, 112, 112], &three, false);
        out.push(large.bench(match what {
            What::Max => "max_pool_64x112_3x3s2",
            What::Places => "op_max_pool_with_places",
            What::Mean => "op_average_pool",
            What::Norm(_) => "op_norm_pool",
        }));
    }
    for what in [What::Max, What::Places] {
        out.push(sliding(what, &[2, 31, 33], &three, true));
        out.push(sliding(what, &[257], &Windows::new(&[2]), true));
    }
    for p in [1.0, 3.0, 0.5] {
        out.push(sliding(What::Norm(p), &[2, 14, 14], &three, false));
    }
    for what in [What::Max, What::Mean] {
        for (dims, parts) in [
            (&[10][..], &[3][..]),
            (&[3, 7], &[7]),
            (&[2, 3, 14, 14], &[1, 1]),
            (&[2, 3, 13, 7], &[6, 5]),
            (&[2, 5, 6, 7], &[2, 4, 3]),
            (&[1, 3, 4], &[7, 9]),
        ] {
            out.push(adaptive(what, dims, parts));
        }
        let name = if what == What::Max { "op_adaptive_max_pool" } else { "op_adaptive_average_pool" };
        out.push(adaptive(what, &[1, 64, 112, 112], &[7, 7]).bench(name));
    }
}
