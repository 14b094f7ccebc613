//! Attention. Scores and sums are in f64.

use std::borrow::Borrow;

use super::parallel::{self, HEAVY};
use super::view::{View, check_length};
use crate::error::Result;
use crate::shape::attention::{Extents, RotaryPairs, Rules, Turned};
use crate::shape::{self, Shape};

const OP: &str = "attention";

/// What is told of pairs of a query and a key.
#[derive(Clone, Copy, Debug)]
pub enum Mask<'a> {
    /// Numbers that are added to scores.
    Added(View<'a, f32>),
    /// A 0 hides a key.
    Seen(View<'a, u32>),
}

/// As [`Attention`](crate::Attention), for [`attention`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Attention<'a> {
    rules: Rules,
    mask: Option<Mask<'a>>,
    length: Option<usize>,
}

impl<'a> Attention<'a> {
    /// Every query sees every key; scores are multiplied with 1 / √depth.
    pub fn new() -> Attention<'a> {
        Attention::default()
    }

    /// A query sees no key behind its own place.
    pub fn causal(mut self) -> Attention<'a> {
        self.rules.causal = true;
        self
    }

    /// A query sees keys less than `places` away from its own place only.
    pub fn window(mut self, places: u32) -> Attention<'a> {
        self.rules.window = Some(places);
        self
    }

    /// The factor of scores, instead of 1 / √depth.
    pub fn scale(mut self, scale: f32) -> Attention<'a> {
        self.rules.scale = Some(scale);
        self
    }

    /// Scores become `cap · tanh(score / cap)`, before the mask.
    pub fn soft_cap(mut self, cap: f32) -> Attention<'a> {
        self.rules.cap = Some(cap);
        self
    }

    /// A mask, stretched to `[batch, heads, tokens, keys]`.
    pub fn mask(mut self, mask: Mask<'a>) -> Attention<'a> {
        self.mask = Some(mask);
        self
    }

    /// How many of the keys there are.
    pub fn length(mut self, keys: usize) -> Attention<'a> {
        self.length = Some(keys);
        self
    }
}

/// [`Recording::attention`](crate::Recording::attention); f32.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::cpu::{Attention, attention};
/// let (q, k, v) = ([1.0f32; 4], [0.5f32; 4], [1.0f32, 2.0, 3.0, 4.0]);
/// let mut y = [0.0; 4];
/// attention((&q, [2, 2]), (&k, [2, 2]), (&v, [2, 2]), Attention::new().causal(), &mut y)?;
/// assert_eq!(y, [1.0, 2.0, 2.0, 3.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// Those of `Recording::attention`, and [`Error::Length`](crate::Error::Length) if data and shape, or shape and output,
/// do not fit.
pub fn attention<'a, 'b>(
    q: impl Into<View<'a, f32>>,
    k: impl Into<View<'a, f32>>,
    v: impl Into<View<'a, f32>>,
    how: impl Borrow<Attention<'b>>,
    out: &mut [f32],
) -> Result<Shape> {
    let (q, k, v) = (q.into().checked(OP)?, k.into().checked(OP)?, v.into().checked(OP)?);
    let &Attention { rules, mask, length } = how.borrow();
    let (extents, shape) = Extents::new(OP, q.shape(), k.shape(), v.shape())?;
    rules.check(OP)?;
    let strides = match mask {
        None => [0; 4],
        Some(Mask::Added(mask)) => extents.mask_strides(OP, mask.checked(OP)?.shape(), q.shape())?,
        Some(Mask::Seen(mask)) => extents.mask_strides(OP, mask.checked(OP)?.shape(), q.shape())?,
    };
    check_length(OP, shape, out.len())?;
    let Extents { kv_heads, group, tokens, keys, depth, width, shared, .. } = extents;
    let known = length.map_or(keys, |length| length.min(keys));
    let (q, k, v, scale) = (q.data(), k.data(), v.data(), f64::from(rules.scale(depth)));
    if out.is_empty() {
        return Ok(shape);
    }
    parallel::rows(out, width, known * (depth + width), HEAVY, |first, out| {
        let (mut scores, mut sums) = (Vec::new(), vec![0.0f64; width]);
        for (i, out) in out.chunks_mut(width).enumerate() {
            let (token, head) = ((first + i) % tokens, (first + i) / tokens);
            let (batch, head, of_kv) = (head / (kv_heads * group), head % (kv_heads * group), head / group);
            let of_kv = if shared { of_kv % kv_heads } else { of_kv };
            let seen = rules.seen(token, tokens, known);
            let at = [batch, head, token]
                .iter()
                .zip(strides)
                .map(|(i, stride)| i * stride as usize)
                .sum::<usize>();
            let query = &q[(first + i) * depth..][..depth];
            scores.clear();
            scores.extend(seen.clone().map(|key| {
                let own = &k[(of_kv * keys + key) * depth..][..depth];
                let score =
                    scale * query.iter().zip(own).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
                let score = rules.cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh());
                let at = at + key * strides[3] as usize;
                match mask {
                    None => score,
                    Some(Mask::Added(mask)) => score + f64::from(mask.data()[at]),
                    Some(Mask::Seen(mask)) if mask.data()[at] == 0 => f64::NEG_INFINITY,
                    Some(Mask::Seen(_)) => score,
                }
            }));
            let top = scores.iter().fold(f64::MIN, |top, score| top.max(*score));
            let mut all = 0.0;
            sums.fill(0.0);
            for (key, score) in seen.zip(&scores) {
                let weight = (score - top).exp();
                all += weight;
                let own = &v[(of_kv * keys + key) * width..][..width];
                sums.iter_mut().zip(own).for_each(|(sum, v)| *sum += weight * f64::from(*v));
            }
            let share = if all == 0.0 { 0.0 } else { 1.0 / all };
            out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = (sum * share) as f32);
        }
    });
    Ok(shape)
}

/// [`Recording::rotary`](crate::Recording::rotary); f32.
///
/// # Errors
///
/// Those of `Recording::rotary`, and [`Error::Length`](crate::Error::Length) if data and shape, or shape and output, do
/// not fit.
pub fn rotary<'a>(
    x: impl Into<View<'a, f32>>,
    positions: impl Into<View<'a, u32>>,
    base: f32,
    pairs: RotaryPairs,
    out: &mut [f32],
) -> Result<Shape> {
    let op = "rotary";
    let (x, positions) = (x.into().checked(op)?, positions.into().checked(op)?);
    let shape = x.shape();
    let Turned { tokens, depth, .. } = shape::attention::rotary(op, shape, positions.shape(), base)?;
    check_length(op, shape, out.len())?;
    let (x, positions) = (x.data(), positions.data());
    parallel::rows(out, depth, 16 * depth, HEAVY, |first, out| {
        for (row, out) in out.chunks_mut(depth.max(1)).enumerate() {
            let (row, token) = (first + row, (first + row) % tokens);
            let position = match positions {
                [start] => start.wrapping_add(token as u32),
                _ => positions[token],
            };
            let x = &x[row * depth..][..depth];
            for pair in 0..depth / 2 {
                let (a, b) = match pairs {
                    RotaryPairs::Halves => (pair, pair + depth / 2),
                    RotaryPairs::Neighbours => (2 * pair, 2 * pair + 1),
                };
                let angle = f64::from(position) * f64::from(base).powf(-2.0 * pair as f64 / depth as f64);
                let (sin, cos) = angle.sin_cos();
                let (of_a, of_b) = (f64::from(x[a]), f64::from(x[b]));
                out[a] = (of_a * cos - of_b * sin) as f32;
                out[b] = (of_b * cos + of_a * sin) as f32;
            }
        }
    });
    Ok(shape)
}
