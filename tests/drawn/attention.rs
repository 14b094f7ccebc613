//! Problems of attention: tiles of rows, of columns and of keys, parts of the keys, and all that scores can get.

use tidemill::{Attention, Result, RotaryPairs, Tensor};

use crate::twin::{Known, Made, Twin};

/// What is drawn of a problem besides extents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    pub causal: bool,
    pub window: Option<u32>,
    pub cap: Option<f32>,
    /// A mask for all tokens and keys: of numbers to add, or of zeros and ones.
    pub mask: Option<bool>,
    pub length: Option<u32>,
}

impl Twin<'_> {
    /// One of them.
    pub fn any_attention(&mut self) -> Made {
        let heads = self.random.pick(&[[1, 1], [2, 2], [4, 2], [3, 1]]);
        let tokens = self.random.near_one_of(&[1, 4, 8, 16, 32]);
        let keys = self.random.near_one_of(&[1, 32, 64, 128, 513]);
        let depth = self.random.pick(&[4, 5, 8, 16, 20, 64]);
        let width = self.random.pick(&[3, 4, 8, 32, 40, 64, 68, 132]);
        let told = Told {
            causal: self.random.once_in(2),
            window: self.random.pick(&[None, None, Some(3), Some(40)]),
            cap: self.random.pick(&[None, None, Some(2.0)]),
            mask: self.random.pick(&[None, Some(false), Some(true)]),
            length: self.random.pick(&[None, None, Some(0), Some(20), Some(1000)]),
        };
        self.attend(heads, [tokens, keys], [depth, width], told)
    }

    /// Attention of whole numbers.
    pub fn attend(
        &mut self,
        heads: [usize; 2],
        [tokens, keys]: [usize; 2],
        [depth, width]: [usize; 2],
        told: Told,
    ) -> Made {
        let q = self.tensor(&[heads[0], tokens, depth])?;
        let k = self.tensor(&[heads[1], keys, depth])?;
        let v = self.tensor(&[heads[1], keys, width])?;
        self.attend_these([&q, &k, &v], told)
    }

    pub fn attend_these(&mut self, [q, k, v]: [&Known; 3], told: Told) -> Made {
        let ([heads, tokens, depth], [kv_heads, keys, width]) =
            ([q.dims[0], q.dims[1], q.dims[2]], [v.dims[0], v.dims[1], v.dims[2]]);
        // Scores of a few, so that rounding shows little.
        let scale = 1.0 / (8 * depth) as f32;
        let mut how = Attention::new().scale(scale);
        how = if told.causal { how.causal() } else { how };
        how = told.window.map_or(how, |window| how.window(window));
        how = told.cap.map_or(how, |cap| how.soft_cap(cap));
        let length = told.length.map(|length| self.gpu.upload(&[length], [1])).transpose()?;
        how = length.as_ref().map_or(how, |length| how.length(length));
        let bits: Vec<u32> = (0..tokens * keys).map(|_| u32::from(self.random.once_in(3))).collect();
        let numbers: Vec<f32> = bits.iter().map(|bit| *bit as f32 - 0.5).collect();
        let mask = match told.mask {
            Some(true) => Some(self.gpu.upload(&numbers, [tokens, keys])?),
            Some(false) => Some(self.gpu.upload(&bits, [tokens, keys])?),
            None => None,
        };
        how = mask.as_ref().map_or(how, |mask| how.mask(mask));
        let value = self.r.attention(q.value, k.value, v.value, how)?;
        let known = told.length.map_or(keys, |length| keys.min(length as usize));
        let mut data = Vec::with_capacity(heads * tokens * width);
        for row in 0..heads * tokens {
            let (token, own) = (row % tokens, row / tokens / (heads / kv_heads));
            let place = (token + known) as i64 - tokens as i64;
            let window = i64::from(told.window.unwrap_or(u32::MAX));
            let score = |key: usize| {
                let distance = place - key as i64;
                let hidden = told.mask == Some(false) && bits[token * keys + key] == 0;
                if (told.causal && distance < 0) || distance.abs() >= window || hidden {
                    return None;
                }
                let (query, key_row) =
                    (&q.data[row * depth..][..depth], &k.data[(own * keys + key) * depth..]);
                let sum: f64 = query.iter().zip(key_row).map(|(a, b)| f64::from(a * b)).sum();
                let score = f64::from(scale) * sum;
                let score = told.cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh());
                let added = if told.mask == Some(true) { numbers[token * keys + key] } else { 0.0 };
                Some((key, (score + f64::from(added)).exp()))
            };
            let weights: Vec<(usize, f64)> = (0..known).filter_map(score).collect();
            let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
            let of = |column: usize| {
                let at = |key: usize| f64::from(v.data[(own * keys + key) * width + column]);
                weights.iter().map(|(key, weight)| weight / all * at(*key)).sum::<f64>()
            };
            data.extend((0..width).map(|column| of(column) as f32));
        }
        let what = format!("attention(%{}, %{}, %{}, {told:?})", q.number, k.number, v.number);
        let made = self.known(what, value, vec![heads, tokens, width], data);
        Ok(Known { tolerance: 1e-4, ..made })
    }

    /// The same twice, and with another mask.
    pub fn attend_twice(&mut self) -> Result<Known> {
        let [q, k, v] = [self.tensor(&[2, 5, 8])?, self.tensor(&[2, 9, 8])?, self.tensor(&[2, 9, 8])?];
        let causal = Told { causal: true, ..Told::default() };
        let once = self.attend_these([&q, &k, &v], causal)?;
        let again = self.attend_these([&q, &k, &v], causal)?;
        let other = self.attend_these([&q, &k, &v], Told::default())?;
        self.keep(&once)?;
        self.keep(&other)?;
        self.unary("neg", &again)
    }

    /// Rotary embedding of two tensors at the same positions, which share their angles, and of one at others.
    pub fn rotated(&mut self) -> Made {
        let [x, y] = [self.tensor(&[2, 3, 8])?, self.tensor(&[3, 8])?];
        let starts = self.gpu.upload(&[5u32], [1])?;
        let x = self.rotated_from(&x, &starts, 5)?;
        let y = self.rotated_from(&y, &starts, 5)?;
        self.keep(&x)?;
        self.keep(&y)?;
        let z = self.tensor(&[3, 8])?;
        let others = self.gpu.upload(&[7u32], [1])?;
        self.rotated_from(&z, &others, 7)
    }

    fn rotated_from(&mut self, x: &Known, starts: &Tensor, start: u32) -> Made {
        let (tokens, depth) = (x.dims[x.rank() - 2], x.dims[x.rank() - 1]);
        let value = self.r.rotary(x.value, starts, 100.0, RotaryPairs::Neighbours)?;
        let turned = |i: usize| {
            let (token, pair) = (i / depth % tokens, i % depth / 2);
            let angle = f64::from(start + token as u32) * 100f64.powf(-2.0 * pair as f64 / depth as f64);
            let (own, other) = (f64::from(x.data[i]), f64::from(x.data[i ^ 1]));
            let sign = if i.is_multiple_of(2) { -1.0 } else { 1.0 };
            (own * angle.cos() + sign * other * angle.sin()) as f32
        };
        let data = (0..x.elements()).map(turned).collect();
        let made = self.known(format!("rotary(%{}, {start})", x.number), value, x.dims.clone(), data);
        Ok(Known { tolerance: 1e-5, ..made })
    }
}
