//! Group `ops`: every op on about a million elements that are on the device, against the loop that one writes by hand.
//! Only on request: it is a list of what is slow, not a comparison with something strong.

use std::time::Instant;

use tidemill::{Accelerator, Axes, DType, Operand, Recording, Shape, Tensor, Value};

use super::work::{Bar, Make, Result, Unit, Work};

/// Elements of the vectors, and of the square matrices.
const N: usize = 1 << 20;
const SIDE: usize = 1 << 10;

/// What an operand holds.
#[derive(Clone, Copy)]
enum Fill {
    /// Positive floats, so that every function is defined, and of many sizes.
    Sizes,
    /// 1 and −1: their product is exact in any order, and no part of it overflows.
    Signs,
    /// Whole numbers below this, as u32.
    Below(usize),
}

/// `op_NAME`: the shapes of the operands (and what they hold, if not `Sizes`), how we record it, and the loop.
macro_rules! works {
    ($($name:literal $([$($fill:expr),*])?: $shapes:expr, $record:expr, $scalar:expr;)*) => {
        &[$((concat!("op_", $name), |gpu| compare(gpu, $shapes, &[$($($fill),*)?], $record, $scalar))),*]
    };
}

/// The group's works.
pub(crate) static WORKS: &[(&str, Make)] = works! {
    "copy": &[&[N]], |r, t| r.copy(&t[0]), |x, o| each(x, o, |x| x);
    "fill": &[&[N]], |r, _| r.fill([N], 0.5f32), |_, o| o.fill(0.5);
    "neg": &[&[N]], |r, t| r.neg(&t[0]), |x, o| each(x, o, |x| -x);
    "abs": &[&[N]], |r, t| r.abs(&t[0]), |x, o| each(x, o, f32::abs);
    "sign": &[&[N]], |r, t| r.sign(&t[0]), |x, o| each(x, o, |x| if x == 0.0 { x } else { x.signum() });
    "floor": &[&[N]], |r, t| r.floor(&t[0]), |x, o| each(x, o, f32::floor);
    "ceil": &[&[N]], |r, t| r.ceil(&t[0]), |x, o| each(x, o, f32::ceil);
    "round": &[&[N]], |r, t| r.round(&t[0]), |x, o| each(x, o, f32::round_ties_even);
    "sqrt": &[&[N]], |r, t| r.sqrt(&t[0]), |x, o| each(x, o, f32::sqrt);
    "rsqrt": &[&[N]], |r, t| r.rsqrt(&t[0]), |x, o| each(x, o, |x| 1.0 / x.sqrt());
    "recip": &[&[N]], |r, t| r.recip(&t[0]), |x, o| each(x, o, f32::recip);
    "exp": &[&[N]], |r, t| r.exp(&t[0]), |x, o| each(x, o, f32::exp);
    "log": &[&[N]], |r, t| r.log(&t[0]), |x, o| each(x, o, f32::ln);
    "sin": &[&[N]], |r, t| r.sin(&t[0]), |x, o| each(x, o, f32::sin);
    "cos": &[&[N]], |r, t| r.cos(&t[0]), |x, o| each(x, o, f32::cos);
    "relu": &[&[N]], |r, t| r.relu(&t[0]), |x, o| each(x, o, |x| x.max(0.0));
    "leaky_relu": &[&[N]], |r, t| r.leaky_relu(&t[0], 0.1), |x, o| each(x, o, |x| if x < 0.0 { 0.1 * x } else { x });
    "elu": &[&[N]], |r, t| r.elu(&t[0], 1.0), |x, o| each(x, o, |x| if x < 0.0 { x.exp_m1() } else { x });
    "clip": &[&[N]], |r, t| r.clip(&t[0], 1.0, 2.0), |x, o| each(x, o, |x| x.clamp(1.0, 2.0));
    "sigmoid": &[&[N]], |r, t| r.sigmoid(&t[0]), |x, o| each(x, o, |x| 1.0 / (1.0 + (-x).exp()));
    "tanh": &[&[N]], |r, t| r.tanh(&t[0]), |x, o| each(x, o, f32::tanh);
    "swish": &[&[N]], |r, t| r.swish(&t[0]), |x, o| each(x, o, |x| x / (1.0 + (-x).exp()));
    "gelu": &[&[N]], |r, t| r.gelu(&t[0]), |x, o| each(x, o, gelu);
    "gelu_erf": &[&[N]], |r, t| r.gelu_erf(&t[0]), |x, o| each(x, o, gelu_erf);
    "softplus": &[&[N]], |r, t| r.softplus(&t[0]), |x, o| each(x, o, |x| x.exp().ln_1p());
    "add": &[&[N], &[N]], |r, t| r.add(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| a + b);
    "sub": &[&[N], &[N]], |r, t| r.sub(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| a - b);
    "mul": &[&[N], &[N]], |r, t| r.mul(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| a * b);
    "div": &[&[N], &[N]], |r, t| r.div(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| a / b);
    "pow": &[&[N], &[N]], |r, t| r.pow(&t[0], &t[1]), |x, o| pairs(x, o, f32::powf);
    "min": &[&[N], &[N]], |r, t| r.min(&t[0], &t[1]), |x, o| pairs(x, o, f32::min);
    "max": &[&[N], &[N]], |r, t| r.max(&t[0], &t[1]), |x, o| pairs(x, o, f32::max);
    "eq": &[&[N], &[N]], |r, t| r.eq(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| truth(a == b));
    "ne": &[&[N], &[N]], |r, t| r.ne(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| truth(a != b));
    "lt": &[&[N], &[N]], |r, t| r.lt(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| truth(a < b));
    "le": &[&[N], &[N]], |r, t| r.le(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| truth(a <= b));
    "gt": &[&[N], &[N]], |r, t| r.gt(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| truth(a > b));
    "ge": &[&[N], &[N]], |r, t| r.ge(&t[0], &t[1]), |x, o| pairs(x, o, |a, b| truth(a >= b));
    "select"[Fill::Below(2)]: &[&[N], &[N], &[N]], |r, t| r.select(&t[0], &t[1], &t[2]), select;
    "sub_scalar": &[&[N]], |r, t| r.sub_scalar(&t[0], 3.0f32), |x, o| each(x, o, |x| x - 3.0);
    "div_scalar": &[&[N]], |r, t| r.div_scalar(&t[0], 3.0f32), |x, o| each(x, o, |x| x / 3.0);
    "pow_scalar": &[&[N]], |r, t| r.pow_scalar(&t[0], 2.5f32), |x, o| each(x, o, |x| x.powf(2.5));
    "min_scalar": &[&[N]], |r, t| r.min_scalar(&t[0], 2.0f32), |x, o| each(x, o, |x| x.min(2.0));
    "max_scalar": &[&[N]], |r, t| r.max_scalar(&t[0], 2.0f32), |x, o| each(x, o, |x| x.max(2.0));
    "eq_scalar": &[&[N]], |r, t| r.eq_scalar(&t[0], 2.0f32), |x, o| each(x, o, |x| truth(x == 2.0));
    "ne_scalar": &[&[N]], |r, t| r.ne_scalar(&t[0], 2.0f32), |x, o| each(x, o, |x| truth(x != 2.0));
    "lt_scalar": &[&[N]], |r, t| r.lt_scalar(&t[0], 2.0f32), |x, o| each(x, o, |x| truth(x < 2.0));
    "le_scalar": &[&[N]], |r, t| r.le_scalar(&t[0], 2.0f32), |x, o| each(x, o, |x| truth(x <= 2.0));
    "gt_scalar": &[&[N]], |r, t| r.gt_scalar(&t[0], 2.0f32), |x, o| each(x, o, |x| truth(x > 2.0));
    "ge_scalar": &[&[N]], |r, t| r.ge_scalar(&t[0], 2.0f32), |x, o| each(x, o, |x| truth(x >= 2.0));
    "scale": &[&[N]], |r, t| r.scale(&t[0], 3.0f32), |x, o| each(x, o, |x| 3.0 * x);
    "add_scalar": &[&[N]], |r, t| r.add_scalar(&t[0], 3.0f32), |x, o| each(x, o, |x| x + 3.0);
    "add_row": &[&[SIDE, SIDE], &[SIDE]], |r, t| r.add(&t[0], &t[1]), |x, o| by_row(x, o, |_, j| j);
    "add_column": &[&[SIDE, SIDE], &[SIDE, 1]], |r, t| r.add(&t[0], &t[1]), |x, o| by_row(x, o, |i, _| i);
    "cast": &[&[N]], |r, t| r.cast(&t[0], DType::U32), |x, o| each(x, o, |x| (x as u32) as f32);
    "sum": &[&[N]], |r, t| r.sum(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().sum();
    "mean": &[&[N]], |r, t| r.mean(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().sum::<f32>() / N as f32;
    "prod"[Fill::Signs]: &[&[N]], |r, t| r.prod(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().product();
    "amin": &[&[N]], |r, t| r.amin(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().copied().fold(f32::MAX, f32::min);
    "argmin": &[&[N]], |r, t| r.argmin(&t[0], Axes::ALL), |x, o| o[0] = best(&x[0], |a, b| a < b);
    "amax": &[&[N]], |r, t| r.amax(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().copied().fold(f32::MIN, f32::max);
    "argmax": &[&[N]], |r, t| r.argmax(&t[0], Axes::ALL), |x, o| o[0] = best(&x[0], |a, b| a > b);
    "norm": &[&[N]], |r, t| r.norm(&t[0], Axes::ALL), |x, o| o[0] = x[0].iter().map(|x| x * x).sum::<f32>().sqrt();
    "dot": &[&[N], &[N]], |r, t| r.dot(&t[0], &t[1]), |x, o| o[0] = x[0].iter().zip(&x[1]).map(|(a, b)| a * b).sum();
    "variance": &[&[N]], |r, t| r.variance(&t[0], Axes::ALL), |x, o| o[0] = variance(&x[0]);
    "sum_rows": &[&[SIDE, SIDE]], |r, t| r.sum(&t[0], 1), |x, o| rows(x, o, SIDE, |row| row.iter().sum());
    "sum_rows_of_4": &[&[N / 4, 4]], |r, t| r.sum(&t[0], 1), |x, o| rows(x, o, 4, |row| row.iter().sum());
    "sum_rows_of_3": &[&[N / 3, 3]], |r, t| r.sum(&t[0], 1), |x, o| rows(x, o, 3, |row| row.iter().sum());
    "argmax_rows_of_10": &[&[N / 10, 10]], |r, t| r.argmax(&t[0], 1), |x, o| rows(x, o, 10, |row| best(row, |a, b| a > b));
    "sum_columns": &[&[SIDE, SIDE]], |r, t| r.sum(&t[0], 0), |x, o| sum_columns(&x[0], o);
    "softmax_rows": &[&[SIDE, SIDE]], |r, t| r.softmax(&t[0], 1), |x, o| softmax(&x[0], o, SIDE);
    "softmax_rows_of_10": &[&[N / 10, 10]], |r, t| r.softmax(&t[0], 1), |x, o| softmax(&x[0], o, 10);
    "softmax_columns": &[&[SIDE, SIDE]], |r, t| r.softmax(&t[0], 0), |x, o| softmax_columns(&x[0], o);
    "log_softmax_rows": &[&[SIDE, SIDE]], |r, t| r.log_softmax(&t[0], 1), |x, o| log_softmax(&x[0], o, SIDE);
    "permute_021": &[&[64, 128, 128]], |r, t| r.permute(&t[0], &[0, 2, 1]), |x, o| permute(&x[0], o, [64, 128, 128], [0, 2, 1]);
    "permute_102": &[&[64, 128, 128]], |r, t| r.permute(&t[0], &[1, 0, 2]), |x, o| permute(&x[0], o, [64, 128, 128], [1, 0, 2]);
    "permute_210": &[&[64, 128, 128]], |r, t| r.permute(&t[0], &[2, 1, 0]), |x, o| permute(&x[0], o, [64, 128, 128], [2, 1, 0]);
    "permute_0231": &[&[4, 64, 64, 64]], |r, t| r.permute(&t[0], &[0, 2, 3, 1]), |x, o| permute(&x[0], o, [4, 64, 64, 64], [0, 2, 3, 1]);
    "broadcast_to": &[&[SIDE]], |r, t| r.broadcast_to(&t[0], [SIDE, SIDE]), |x, o| strided(x, o, |_, j| j);
    "stack": &[&[N / 2], &[N / 2]], |r, t| r.stack(&both(t), 1), stack;
    "gather_rows"[Fill::Sizes, Fill::Below(SIDE)]: &[&[SIDE, SIDE], &[SIDE]], |r, t| r.gather_rows(&t[0], &t[1]), gather;
    "random_uniform": &[&[N]], |r, _| r.random_uniform([N], 7), |_, o| random(o, |u, v| [unit(u), unit(v)]);
    "random_normal": &[&[N]], |r, _| r.random_normal([N], 7), |_, o| random(o, normal);
    "transpose": &[&[SIDE, SIDE]], |r, t| r.transpose(&t[0]), |x, o| strided(x, o, |i, j| j * SIDE + i);
    "slice": &[&[SIDE, SIDE + 4]], |r, t| r.slice(&t[0], [0..SIDE, 4..SIDE + 4]), |x, o| strided(x, o, |i, j| i * (SIDE + 4) + j + 4);
    "slice_unaligned": &[&[SIDE, SIDE + 1]], |r, t| r.slice(&t[0], [0..SIDE, 1..SIDE + 1]), |x, o| strided(x, o, |i, j| i * (SIDE + 1) + j + 1);
    "concat": &[&[SIDE, SIDE / 2], &[SIDE, SIDE / 2]], |r, t| r.concat(&both(t), 1), |x, o| concat(x, o, SIDE / 2);
    "concat_unaligned": &[&[SIDE, 511], &[SIDE, 513]], |r, t| r.concat(&both(t), 1), |x, o| concat(x, o, 511);
    "pad": &[&[SIDE, SIDE]], |r, t| r.pad(&t[0], &[(1, 1), (1, 1)], 0.0f32), |x, o| pad(&x[0], o);
    "iota": &[&[N]], |r, _| r.iota::<f32>([N]), |_, o| o.iter_mut().enumerate().for_each(|(i, o)| *o = i as f32);
};

fn each(x: &[Vec<f32>], out: &mut [f32], f: impl Fn(f32) -> f32) {
    out.iter_mut().zip(&x[0]).for_each(|(o, x)| *o = f(*x));
}

fn pairs(x: &[Vec<f32>], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    out.iter_mut().zip(x[0].iter().zip(&x[1])).for_each(|(o, (a, b))| *o = f(*a, *b));
}

/// Adds to each element of a matrix the one of a vector that row and column choose.
fn by_row(x: &[Vec<f32>], out: &mut [f32], choose: impl Fn(usize, usize) -> usize) {
    for (i, (row, out)) in x[0].chunks_exact(SIDE).zip(out.chunks_exact_mut(SIDE)).enumerate() {
        for (j, (x0, out)) in row.iter().zip(out).enumerate() {
            *out = x0 + x[1][choose(i, j)];
        }
    }
}

fn rows(x: &[Vec<f32>], out: &mut [f32], width: usize, f: impl Fn(&[f32]) -> f32) {
    out.iter_mut().zip(x[0].chunks_exact(width)).for_each(|(o, row)| *o = f(row));
}

fn strided(x: &[Vec<f32>], out: &mut [f32], from: impl Fn(usize, usize) -> usize) {
    for (i, out) in out.chunks_exact_mut(SIDE).enumerate() {
        out.iter_mut().enumerate().for_each(|(j, o)| *o = x[0][from(i, j)]);
    }
}

fn both(tensors: &[Tensor]) -> [Operand<'_>; 2] {
    [(&tensors[0]).into(), (&tensors[1]).into()]
}

fn concat(x: &[Vec<f32>], out: &mut [f32], first: usize) {
    for (i, out) in out.chunks_exact_mut(SIDE).enumerate() {
        out[..first].copy_from_slice(&x[0][i * first..][..first]);
        out[first..].copy_from_slice(&x[1][i * (SIDE - first)..][..SIDE - first]);
    }
}

fn pad(x: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for (row, out) in x.chunks_exact(SIDE).zip(out[SIDE + 2..].chunks_exact_mut(SIDE + 2)) {
        out[1..=SIDE].copy_from_slice(row);
    }
}

fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())
}

/// The place of the first element that none is better than.
fn best(x: &[f32], better: impl Fn(f32, f32) -> bool) -> f32 {
    let mut best = 0;
    for (i, v) in x.iter().enumerate() {
        if better(*v, x[best]) {
            best = i;
        }
    }
    best as f32
}

fn truth(b: bool) -> f32 {
    f32::from(u8::from(b))
}

fn select(x: &[Vec<f32>], out: &mut [f32]) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = if x[0][i] != 0.0 { x[1][i] } else { x[2][i] };
    }
}

fn stack(x: &[Vec<f32>], out: &mut [f32]) {
    for (out, (a, b)) in out.chunks_exact_mut(2).zip(x[0].iter().zip(&x[1])) {
        out.copy_from_slice(&[*a, *b]);
    }
}

fn gather(x: &[Vec<f32>], out: &mut [f32]) {
    for (out, row) in out.chunks_exact_mut(SIDE).zip(&x[1]) {
        out.copy_from_slice(&x[0][*row as usize * SIDE..][..SIDE]);
    }
}

/// Loop in loop over the result, as one writes it for a number of dimensions.
fn permute<const D: usize>(x: &[f32], out: &mut [f32], shape: [usize; D], order: [usize; D]) {
    let stride = |d: usize| shape[d + 1..].iter().product::<usize>();
    // Always four, the first of one element if there are fewer.
    let of = |k: usize, f: &dyn Fn(usize) -> usize, none: usize| {
        (k + D).checked_sub(4).map_or(none, |i| f(order[i]))
    };
    let extents = [0, 1, 2, 3].map(|k| of(k, &|d| shape[d], 1));
    let strides = [0, 1, 2, 3].map(|k| of(k, &stride, 0));
    let mut out = out.iter_mut();
    for a in 0..extents[0] {
        for b in 0..extents[1] {
            for c in 0..extents[2] {
                let from = a * strides[0] + b * strides[1] + c * strides[2];
                for (d, out) in (0..extents[3]).zip(&mut out) {
                    *out = x[from + d * strides[3]];
                }
            }
        }
    }
}

/// Philox 4x32-10 with the seed 7: two numbers of each pair of words.
fn random(out: &mut [f32], f: impl Fn(u32, u32) -> [f32; 2]) {
    for (counter, out) in (0u32..).zip(out.chunks_exact_mut(4)) {
        let (mut c, mut k) = ([counter, 0, 0, 0], [7u32, 0]);
        for _ in 0..10 {
            let (p, q) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
            c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
            k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
        }
        out[..2].copy_from_slice(&f(c[0], c[1]));
        out[2..].copy_from_slice(&f(c[2], c[3]));
    }
}

fn unit(word: u32) -> f32 {
    (word >> 8) as f32 / (1 << 24) as f32
}

/// Box and Muller's transform.
fn normal(u: u32, v: u32) -> [f32; 2] {
    let radius = (-2.0 * (((u >> 8) + 1) as f32 / (1 << 24) as f32).ln()).sqrt();
    let (sin, cos) = (std::f32::consts::TAU * unit(v)).sin_cos();
    [radius * cos, radius * sin]
}

/// With the error function of Abramowitz and Stegun (7.1.26), which is good to 1.5e-7.
fn gelu_erf(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series =
        ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t + 0.254_829_6) * t;
    0.5 * x * (1.0 + (1.0 - series * (-z * z).exp()).copysign(x))
}

fn variance(x: &[f32]) -> f32 {
    let mean = x.iter().sum::<f32>() / x.len() as f32;
    x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / x.len() as f32
}

fn sum_columns(x: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for row in x.chunks_exact(SIDE) {
        out.iter_mut().zip(row).for_each(|(o, x)| *o += x);
    }
}

/// As in group `reduce`.
fn softmax(x: &[f32], out: &mut [f32], width: usize) {
    super::reduce::scalar_softmax(x, width, out);
}

fn log_softmax(x: &[f32], out: &mut [f32], width: usize) {
    for (row, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let largest = row.iter().copied().fold(f32::MIN, f32::max);
        let log = row.iter().map(|x| (x - largest).exp()).sum::<f32>().ln();
        out.iter_mut().zip(row).for_each(|(o, x)| *o = (x - largest) - log);
    }
}

fn softmax_columns(x: &[f32], out: &mut [f32]) {
    for j in 0..SIDE {
        let column = || (j..x.len()).step_by(SIDE);
        let largest = column().map(|i| x[i]).fold(f32::MIN, f32::max);
        let mut sum = 0.0;
        for i in column() {
            out[i] = (x[i] - largest).exp();
            sum += out[i];
        }
        column().for_each(|i| out[i] /= sum);
    }
}

/// A result as floats, whatever its type.
fn floats(tensor: &Tensor) -> Result<Vec<f32>> {
    Ok(match tensor.dtype() {
        DType::U32 => tensor.read::<u32>()?.into_iter().map(|x| x as f32).collect(),
        _ => tensor.read::<f32>()?,
    })
}

fn compare(
    gpu: &Accelerator,
    shapes: &[&[usize]],
    fills: &[Fill],
    record: fn(&mut Recording, &[Tensor]) -> tidemill::Result<Value>,
    scalar: fn(&[Vec<f32>], &mut [f32]),
) -> Result<Work> {
    let fill = |k: usize| fills.get(k).copied().unwrap_or(Fill::Sizes);
    let element = |k: usize, i: usize| {
        let turn = (i * 37 + k * 11) % 1009;
        match fill(k) {
            Fill::Sizes => 0.25 + turn as f32 / 256.0,
            Fill::Signs => {
                if i.is_multiple_of(7) {
                    -1.0
                } else {
                    1.0
                }
            }
            Fill::Below(limit) => (i * 37 % limit) as f32,
        }
    };
    let (mut host, mut tensors): (Vec<Vec<f32>>, Vec<Tensor>) = (Vec::new(), Vec::new());
    for (k, shape) in shapes.iter().enumerate() {
        let data: Vec<f32> = (0..shape.iter().product()).map(|i| element(k, i)).collect();
        let shape = Shape::new(shape).unwrap_or_default();
        tensors.push(match fill(k) {
            Fill::Below(_) => gpu.upload(&data.iter().map(|x| *x as u32).collect::<Vec<_>>(), shape)?,
            Fill::Sizes | Fill::Signs => gpu.upload(&data, shape)?,
        });
        host.push(data);
    }
    let length = gpu.run(|r| record(r, &tensors))?.shape().elements();
    let elements = host.iter().map(Vec::len).max().unwrap_or(0).max(length);
    let mut out = vec![0.0; length];
    scalar(&host, &mut out);
    let expected = out.clone();
    let gpu = gpu.clone();
    Ok(Work {
        n: elements,
        unit: Unit::Micros,
        amount: 1.0,
        bar: Bar::Ratio(1.0),
        ours: Box::new(move |check| {
            let begun = Instant::now();
            let mut r = gpu.begin_recording()?;
            let value = record(&mut r, &tensors)?;
            let kept = r.keep(value)?;
            r.end_recording()?.wait()?;
            let time = begun.elapsed();
            if check {
                // The loop adds up in f32, one after the other: it is the one that is off.
                let near = |g: f32, e: f32| (g - e).abs() <= 1e-3 * e.abs().max(1.0);
                let got = floats(&kept)?;
                if let Some(i) = got.iter().zip(&expected).position(|(g, e)| !near(*g, *e)) {
                    return Err(format!("[{i}] is {}, the loop says {}", got[i], expected[i]).into());
                }
            }
            Ok(time)
        }),
        anchor: Some((
            "a loop in Rust, one thread",
            Box::new(move |_| {
                let begun = Instant::now();
                scalar(&host, &mut out);
                std::hint::black_box(&mut out);
                Ok(begun.elapsed())
            }),
        )),
    })
}

#[cfg(test)]
mod tests {
    use tidemill::{Config, Prewarm};

    use super::*;

    #[test]
    fn every_op_gives_what_its_loop_gives() {
        let gpu = Accelerator::new(&Config::new().no_cache().prewarm(Prewarm::Off)).unwrap();
        for (name, make) in WORKS {
            let mut work = make(&gpu).unwrap();
            if let Err(error) = (work.ours)(true) {
                panic!("{name}: {error}");
            }
        }
    }
}
