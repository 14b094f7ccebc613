//! The loops, as one writes them.

use tidemill::{Element, F16};

use super::SIDE;
use crate::cases::Array;
use crate::cases::elementwise::UNARY;

pub(super) fn each<A: Element, R: Element>(x: &[Array], out: &mut Array, f: impl Fn(A) -> R) {
    out.of_mut().iter_mut().zip(x[0].of()).for_each(|(o, x)| *o = f(*x));
}

pub(super) fn pairs<A: Element, R: Element>(x: &[Array], out: &mut Array, f: impl Fn(A, A) -> R) {
    out.of_mut().iter_mut().zip(x[0].of().iter().zip(x[1].of())).for_each(|(o, (a, b))| *o = f(*a, *b));
}

/// Adds to each element of a matrix the one of a vector that row and column choose.
pub(super) fn by_row(x: &[Array], out: &mut Array, choose: impl Fn(usize, usize) -> usize) {
    let (x, y): (&[f32], &[f32]) = (x[0].of(), x[1].of());
    for (i, (row, out)) in x.chunks_exact(SIDE).zip(out.of_mut().chunks_exact_mut(SIDE)).enumerate() {
        for (j, (x, out)) in row.iter().zip(out).enumerate() {
            *out = x + y[choose(i, j)];
        }
    }
}

/// One number from all elements.
pub(super) fn whole<R: Element>(x: &[Array], out: &mut Array, f: impl Fn(&[f32]) -> R) {
    out.of_mut()[0] = f(x[0].of());
}

pub(super) fn rows<R: Element>(x: &[Array], out: &mut Array, width: usize, f: impl Fn(&[f32]) -> R) {
    out.of_mut().iter_mut().zip(x[0].of().chunks_exact(width)).for_each(|(o, row)| *o = f(row));
}

pub(super) fn strided<T: Element>(x: &[Array], out: &mut Array, from: impl Fn(usize, usize) -> usize) {
    let x = x[0].of::<T>();
    for (i, out) in out.of_mut::<T>().chunks_exact_mut(SIDE).enumerate() {
        out.iter_mut().enumerate().for_each(|(j, o)| *o = x[from(i, j)]);
    }
}

pub(super) fn concat(x: &[Array], out: &mut Array, first: usize) {
    let (x, y): (&[u32], &[u32]) = (x[0].of(), x[1].of());
    for (i, out) in out.of_mut().chunks_exact_mut(SIDE).enumerate() {
        out[..first].copy_from_slice(&x[i * first..][..first]);
        out[first..].copy_from_slice(&y[i * (SIDE - first)..][..SIDE - first]);
    }
}

pub(super) fn stack(x: &[Array], out: &mut Array) {
    let pairs = x[0].of::<u32>().iter().zip(x[1].of::<u32>());
    for (out, (a, b)) in out.of_mut().chunks_exact_mut(2).zip(pairs) {
        out.copy_from_slice(&[*a, *b]);
    }
}

pub(super) fn pad(x: &[u32], out: &mut [u32]) {
    out.fill(99);
    for (row, out) in x.chunks_exact(SIDE).zip(out[SIDE + 2..].chunks_exact_mut(SIDE + 2)) {
        out[1..=SIDE].copy_from_slice(row);
    }
}

/// Rows outside of the table are zeros.
pub(super) fn gather(table: &[u32], rows: &[u32], out: &mut [u32]) {
    for (out, row) in out.chunks_exact_mut(SIDE).zip(rows) {
        match table.get(*row as usize * SIDE..(*row as usize + 1) * SIDE) {
            Some(row) => out.copy_from_slice(row),
            None => out.fill(0),
        }
    }
}

pub(super) fn clamp(x: &[Array], out: &mut Array) {
    let (x, low, high): (&[f32], &[f32], &[f32]) = (x[0].of(), x[1].of(), x[2].of());
    for (out, ((x, low), high)) in out.of_mut().iter_mut().zip(x.iter().zip(low).zip(high)) {
        *out = x.min(*high).max(*low);
    }
}

pub(super) fn select(x: &[Array], out: &mut Array) {
    let (mask, a, b): (&[u32], &[f32], &[f32]) = (x[0].of(), x[1].of(), x[2].of());
    for (i, out) in out.of_mut().iter_mut().enumerate() {
        *out = if mask[i] != 0 { a[i] } else { b[i] };
    }
}

/// The place of the first element that none is better than.
pub(super) fn best(x: &[f32], better: impl Fn(f32, f32) -> bool) -> u32 {
    let mut best = 0;
    for (i, v) in x.iter().enumerate() {
        if better(*v, x[best]) {
            best = i;
        }
    }
    best as u32
}

/// Loop in loop over the result, as one writes it for a number of dimensions.
pub(super) fn permute<const D: usize>(x: &[Array], out: &mut Array, shape: [usize; D], order: [usize; D]) {
    let stride = |d: usize| shape[d + 1..].iter().product::<usize>();
    // Always four, the first of one element if there are fewer.
    let of = |k: usize, f: &dyn Fn(usize) -> usize, none: usize| {
        (k + D).checked_sub(4).map_or(none, |i| f(order[i]))
    };
    let extents = [0, 1, 2, 3].map(|k| of(k, &|d| shape[d], 1));
    let strides = [0, 1, 2, 3].map(|k| of(k, &stride, 0));
    let (x, mut out) = (x[0].of::<u32>(), out.of_mut().iter_mut());
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
pub(super) fn random(out: &mut [f32], f: impl Fn(u32, u32) -> [f32; 2]) {
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

pub(super) fn unit(word: u32) -> f32 {
    (word >> 8) as f32 / (1 << 24) as f32
}

/// Box and Muller's transform.
pub(super) fn normal(u: u32, v: u32) -> [f32; 2] {
    let radius = (-2.0 * (((u >> 8) + 1) as f32 / (1 << 24) as f32).ln()).sqrt();
    let (sin, cos) = (std::f32::consts::TAU * unit(v)).sin_cos();
    [radius * cos, radius * sin]
}

/// That of an operation of one operand.
pub(super) fn by_hand(name: &str, x: &[Array], out: &mut Array) {
    if let Some(op) = UNARY.iter().find(|op| op.name == name) {
        (op.by_hand)(x[0].of(), out.of_mut());
    }
}

pub(super) fn variance(x: &[f32]) -> f32 {
    let mean = x.iter().sum::<f32>() / x.len() as f32;
    x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / x.len() as f32
}

pub(super) fn sum_columns(x: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for row in x.chunks_exact(SIDE) {
        out.iter_mut().zip(row).for_each(|(o, x)| *o += x);
    }
}

pub(super) fn log_softmax(x: &[f32], out: &mut [f32], width: usize) {
    for (row, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let largest = row.iter().copied().fold(f32::MIN, f32::max);
        let log = row.iter().map(|x| (x - largest).exp()).sum::<f32>().ln();
        out.iter_mut().zip(row).for_each(|(o, x)| *o = (x - largest) - log);
    }
}

pub(super) fn softmax_columns(x: &[f32], out: &mut [f32]) {
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

/// A row by its mean, if it has one, and its variance; each element with its factor and what is added.
fn normalise(row: &[f32], out: &mut [f32], centred: bool, weights: impl Fn(usize) -> [f32; 2]) {
    let n = row.len() as f32;
    let mean = if centred { row.iter().sum::<f32>() / n } else { 0.0 };
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n;
    let scale = 1.0 / (variance + 1e-5).sqrt();
    for (k, (o, x)) in out.iter_mut().zip(row).enumerate() {
        let [gamma, beta] = weights(k);
        *o = (x - mean) * scale * gamma + beta;
    }
}

/// The sum of two matrices, each row normalised.
pub(super) fn add_norm(x: &[Array], out: &mut Array, centred: bool) {
    let (a, b, gamma): (&[f32], &[f32], &[f32]) = (x[0].of(), x[1].of(), x[2].of());
    let beta = x.get(3).map(Array::of::<f32>);
    let mut sums = vec![0.0; SIDE];
    let rows = a.chunks_exact(SIDE).zip(b.chunks_exact(SIDE));
    for ((a, b), out) in rows.zip(out.of_mut().chunks_exact_mut(SIDE)) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum = a + b);
        normalise(&sums, out, centred, |k| [gamma[k], beta.map_or(0.0, |beta| beta[k])]);
    }
}

/// Some channels of an image at a time.
pub(super) fn channel_norm(x: &[Array], out: &mut Array, channels: usize) {
    let (data, gamma, beta): (&[f32], &[f32], &[f32]) = (x[0].of(), x[1].of(), x[2].of());
    let pixels = data.len() / gamma.len();
    let rows = data.chunks_exact(channels * pixels).zip(out.of_mut().chunks_exact_mut(channels * pixels));
    for (i, (row, out)) in rows.enumerate() {
        normalise(row, out, true, |k| [gamma, beta].map(|weights| weights[i * channels + k / pixels]));
    }
}

pub(super) fn batch_norm(x: &[Array], out: &mut Array) {
    let [data, mean, variance, gamma, beta] = [0, 1, 2, 3, 4].map(|k| x[k].of::<f32>());
    let pixels = data.len() / mean.len();
    let rows = data.chunks_exact(pixels).zip(out.of_mut().chunks_exact_mut(pixels));
    for (c, (row, out)) in rows.enumerate() {
        let scale = gamma[c] / (variance[c] + 1e-5).sqrt();
        out.iter_mut().zip(row).for_each(|(o, x)| *o = (x - mean[c]) * scale + beta[c]);
    }
}

/// Rounded to a half after each step.
pub(super) fn chain(a: F16, b: F16) -> F16 {
    let half = |x: f32| F16::from_f32(x).to_f32();
    F16::from_f32(half(half(a.to_f32() * b.to_f32()) + a.to_f32()).max(0.0) * 3.0)
}

/// Square matrices of 16-bit floats and a bias: rows of the right one are added up.
pub(super) fn product<T: Element + Into<f32>>(
    x: &[Array],
    out: &mut [T],
    n: usize,
    round: impl Fn(f32) -> T,
) {
    let [a, b, bias] = [0, 1, 2].map(|k| x[k].of::<T>());
    let mut sums = vec![0.0; n];
    for (row, out) in a.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        sums.iter_mut().zip(bias).for_each(|(sum, bias)| *sum = (*bias).into());
        for (a, b) in row.iter().zip(b.chunks_exact(n)) {
            let a: f32 = (*a).into();
            sums.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * (*b).into());
        }
        out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = round(*sum));
    }
}

/// Bytes that wrap after each step.
pub(super) fn chain_of_bytes(a: u8, b: u8) -> u8 {
    a.wrapping_mul(b).wrapping_add(a).checked_div(b).unwrap_or(0).max(a)
}

/// 16 channels of 32 x 32 halves to as many, 3 x 3 with a border of zeros, and a residual.
pub(super) fn convolution(x: &[Array], out: &mut [F16]) {
    const CHANNELS: usize = 16;
    const SIZE: usize = 32;
    let [x, w, residual] = [0, 1, 2].map(|k| x[k].of::<F16>());
    for (at, (out, residual)) in out.iter_mut().zip(residual).enumerate() {
        let (row, y, column) = (at / (SIZE * SIZE), at / SIZE % SIZE, at % SIZE);
        let mut sum = residual.to_f32();
        for channel in 0..CHANNELS {
            for tap in 0..9 {
                let (from_y, from_x) = (y + tap / 3, column + tap % 3);
                if (1..=SIZE).contains(&from_y) && (1..=SIZE).contains(&from_x) {
                    let x = x[(channel * SIZE + from_y - 1) * SIZE + from_x - 1];
                    sum += x.to_f32() * w[(row * CHANNELS + channel) * 9 + tap].to_f32();
                }
            }
        }
        *out = F16::from_f32(sum);
    }
}

/// One line of elements behind the other.
pub(super) fn joined<T: Element>(x: &[Array], out: &mut [T]) {
    let (first, second) = (x[0].of::<T>(), x[1].of::<T>());
    let (front, back) = out.split_at_mut(first.len());
    front.copy_from_slice(first);
    back.copy_from_slice(second);
}
