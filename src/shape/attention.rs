//! Shapes of attention's operands, and which keys a query sees.

use smallvec::SmallVec;

use super::{MAX_RANK, Shape, product};
use crate::error::parameters::{finite, positive};
use crate::error::{Error, Result};

/// How scores are made and which of them count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    /// No query sees a key behind its own place.
    pub(crate) causal: bool,
    /// Places from the farthest key that is seen to the query's own, and 1.
    pub(crate) window: Option<u32>,
    /// The factor of scores, unless it is 1 / √depth.
    pub(crate) scale: Option<f32>,
    /// Scores become `cap * tanh(score / cap)`.
    pub(crate) cap: Option<f32>,
}

/// Bits of the number of a pair in rotary embedding.
pub(crate) const MOST_PAIR_BITS: usize = 9;

/// Which columns are a pair in [`rotary`](crate::Recording::rotary) embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotaryPairs {
    /// i and i + depth / 2.
    Halves,
    /// 2i and 2i + 1.
    Neighbours,
}

/// `[outer, tokens, depth]`, whose pairs are turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turned {
    pub(crate) outer: usize,
    pub(crate) tokens: usize,
    pub(crate) depth: usize,
}

/// What rotary embedding turns, by so many positions.
pub(crate) fn rotary(op: &'static str, x: Shape, positions: Shape, base: f32) -> Result<Turned> {
    let &[ref outer @ .., tokens, depth] = x.dims() else { return Err(Error::NotMatrix { op, shape: x }) };
    if !depth.is_multiple_of(2) || depth > 2 << MOST_PAIR_BITS {
        let rule = format!("be even and at most {}", 2 << MOST_PAIR_BITS);
        return Err(Error::Parameter { op, name: "depth", value: depth as f64, rule });
    }
    if positions.elements() != 1 && positions.elements() != tokens {
        let why =
            format!("{} positions for {tokens} tokens, there must be as many or 1", positions.elements());
        return Err(Error::Shapes { op, lhs: x, rhs: positions, why });
    }
    finite(op, "base", base)?;
    if base <= 1.0 {
        return Err(Error::Parameter {
            op,
            name: "base",
            value: f64::from(base),
            rule: "be above 1".to_owned(),
        });
    }
    Ok(Turned { outer: product(outer), tokens, depth })
}

/// `[batches, heads, tokens, depth]` with `[batches or 1, kv_heads, keys, depth]` and `[…, width]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extents {
    pub(crate) batches: usize,
    pub(crate) kv_heads: usize,
    /// Heads of q that read one head of k and v.
    pub(crate) group: usize,
    pub(crate) tokens: usize,
    pub(crate) keys: usize,
    pub(crate) depth: usize,
    pub(crate) width: usize,
    /// All batches read the same k and v.
    pub(crate) shared: bool,
}

impl Rules {
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        if let Some(scale) = self.scale {
            finite(op, "scale", scale)?;
        }
        if let Some(cap) = self.cap {
            positive(op, "soft_cap", cap)?;
        }
        if self.window == Some(0) {
            let rule = "be at least 1: a query's own place".to_owned();
            return Err(Error::Parameter { op, name: "window", value: 0.0, rule });
        }
        Ok(())
    }

    /// The factor of scores.
    pub(crate) fn scale(&self, depth: usize) -> f32 {
        self.scale.unwrap_or_else(|| (1.0 / (depth.max(1) as f64).sqrt()) as f32)
    }

    /// The keys that a token sees, of so many; queries are the last ones of them.
    pub(crate) fn seen(&self, token: usize, tokens: usize, keys: usize) -> std::ops::Range<usize> {
        let place = (token + keys) as i64 - tokens as i64;
        let window = i64::from(self.window.unwrap_or(u32::MAX));
        let first = if self.window.is_some() { place - window + 1 } else { 0 };
        let last = match (self.causal, self.window) {
            (true, _) => place,
            (false, Some(_)) => place + window - 1,
            (false, None) => keys as i64 - 1,
        };
        let end = (last.min(keys as i64 - 1) + 1).max(0);
        first.clamp(0, end) as usize..end as usize
    }
}

impl Extents {
    /// What the operands' shapes say, and the result's shape.
    pub(crate) fn new(op: &'static str, q: Shape, k: Shape, v: Shape) -> Result<(Extents, Shape)> {
        let refused = |rhs, why| Err(Error::Shapes { op, lhs: q, rhs, why });
        for shape in [q, k, v] {
            if shape.rank() < 2 {
                return Err(Error::NotMatrix { op, shape });
            }
        }
        for (name, shape) in [("k", k), ("v", v)] {
            if shape.rank() != q.rank() {
                let why = format!("q has {} dimensions, {name} has {}", q.rank(), shape.rank());
                return refused(shape, why);
            }
        }
        let [
            [batches, heads, tokens, depth],
            [of_k, kv_heads, keys, k_depth],
            [of_v, v_heads, v_keys, width],
        ] = [q, k, v].map(by_four);
        let differ = |what: &str, q: usize, of: usize| format!("{what} {q} of q != {of} of k");
        if depth != k_depth {
            return refused(k, differ("head_dim", depth, k_depth));
        }
        if of_k != batches && of_k != 1 {
            return refused(k, format!("batch {batches} of q != {of_k} of k, which must be the same or 1"));
        }
        if !same_batches(q, k) {
            return refused(k, "the batch dimensions of q and k differ".to_owned());
        }
        if kv_heads == 0 && heads > 0 || kv_heads > 0 && !heads.is_multiple_of(kv_heads) {
            return refused(k, format!("{heads} heads of q are no multiple of the {kv_heads} of k"));
        }
        for (what, k_has, v_has) in
            [("batch", of_k, of_v), ("heads", kv_heads, v_heads), ("keys", keys, v_keys)]
        {
            if k_has != v_has {
                let why = format!("{what} {k_has} of k != {v_has} of v");
                return Err(Error::Shapes { op, lhs: k, rhs: v, why });
            }
        }
        if !same_batches(k, v) {
            let why = "the batch dimensions of k and v differ".to_owned();
            return Err(Error::Shapes { op, lhs: k, rhs: v, why });
        }
        let group = heads.checked_div(kv_heads).unwrap_or(1);
        let shared = of_k != batches;
        let mut result = q;
        result.dims[q.rank() - 1] = width;
        Ok((Extents { batches, kv_heads, group, tokens, keys, depth, width, shared }, result))
    }

    /// Rows of one head of k and v.
    pub(crate) fn rows(&self) -> usize {
        self.group * self.tokens
    }

    /// Heads of k and v, through all of q's batches.
    pub(crate) fn all_heads(&self) -> usize {
        self.batches * self.kv_heads
    }

    /// From one batch, head, token and key to the next in a mask that is stretched to all of them.
    pub(crate) fn mask_strides(&self, op: &'static str, mask: Shape, q: Shape) -> Result<[u32; 4]> {
        let full = [self.batches, self.kv_heads * self.group, self.tokens, self.keys];
        let refused = |why| Err(Error::Shapes { op, lhs: q, rhs: mask, why });
        if mask.rank() > q.rank() {
            return refused(format!("q has {} dimensions, the mask has {}", q.rank(), mask.rank()));
        }
        let own = by_four(mask);
        let names = ["batch", "heads", "tokens", "keys"];
        for d in 0..4 {
            if own[d] != full[d] && own[d] != 1 {
                let why = format!(
                    "{} {} of q and k != {} of the mask, which must be the same or 1",
                    names[d], full[d], own[d]
                );
                return refused(why);
            }
        }
        if !same_batches(q, mask) {
            return refused("the batch dimensions of q and of the mask differ".to_owned());
        }
        Ok(std::array::from_fn(|d| if own[d] == 1 { 0 } else { product(&own[d + 1..]) as u32 }))
    }

    /// Pairs of a query and a key that are looked at, where all keys are there.
    pub(crate) fn pairs(&self, rules: &Rules) -> u64 {
        let seen = (0..self.tokens).map(|token| rules.seen(token, self.tokens, self.keys).len() as u64);
        seen.sum::<u64>() * (self.all_heads() * self.group) as u64
    }
}

/// Four extents, with ones in front: of more, the first ones are one batch.
fn by_four(shape: Shape) -> [usize; 4] {
    let mut dims = [1; 4];
    let (batch, last) = shape.dims().split_at(shape.rank().saturating_sub(3));
    dims[0] = product(batch);
    dims[4 - last.len()..].copy_from_slice(last);
    dims
}

/// Whether batches of the same number are the same: all of their dimensions agree, or there is one batch.
fn same_batches(lhs: Shape, rhs: Shape) -> bool {
    let [lhs, rhs] = [&lhs, &rhs].map(|shape| {
        let batch = &shape.dims()[..shape.rank().saturating_sub(3)];
        batch.iter().copied().skip_while(|&extent| extent == 1).collect::<SmallVec<[usize; MAX_RANK]>>()
    });
    product(&rhs) == 1 || lhs == rhs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(q: &[usize], k: &[usize], v: &[usize]) -> String {
        let [q, k, v] = [q, k, v].map(|dims| Shape::new(dims).unwrap());
        Extents::new("attention", q, k, v).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_numbers_that_differ() {
        for (q, k, v, why) in [
            (&[4, 8][..], &[5, 7][..], &[5, 8][..], "head_dim 8 of q != 7 of k"),
            (&[4, 8], &[5, 8], &[6, 8], "keys 5 of k != 6 of v"),
            (&[4, 8], &[1, 5, 8], &[1, 5, 8], "q has 2 dimensions, k has 3"),
            (&[6, 4, 8], &[4, 5, 8], &[4, 5, 8], "6 heads of q are no multiple of the 4 of k"),
            (&[6, 4, 8], &[3, 5, 8], &[2, 5, 8], "heads 3 of k != 2 of v"),
            (&[3, 6, 4, 8], &[2, 3, 5, 8], &[2, 3, 5, 8], "batch 3 of q != 2 of k"),
            (&[3, 6, 4, 8], &[3, 3, 5, 8], &[1, 3, 5, 8], "batch 3 of k != 1 of v"),
            (&[2, 3, 6, 4, 8], &[3, 2, 3, 5, 8], &[3, 2, 3, 5, 8], "the batch dimensions of q and k differ"),
            (&[2, 3, 6, 4, 8], &[2, 3, 3, 5, 8], &[3, 2, 3, 5, 8], "the batch dimensions of k and v differ"),
        ] {
            let told = refused(q, k, v);
            assert!(told.contains(why), "{told}");
        }
        assert!(refused(&[8], &[5, 8], &[5, 8]).contains("[8]"));
    }

    #[test]
    fn queries_are_the_last_of_the_keys() {
        let rules = |causal, window| Rules { causal, window, ..Rules::default() };
        assert_eq!(rules(false, None).seen(0, 3, 5), 0..5);
        assert_eq!(rules(true, None).seen(0, 3, 5), 0..3);
        assert_eq!(rules(true, None).seen(2, 3, 5), 0..5);
        assert_eq!(rules(true, Some(2)).seen(2, 3, 5), 3..5);
        assert_eq!(rules(false, Some(2)).seen(0, 3, 5), 1..4);
        assert_eq!(rules(true, None).seen(0, 5, 3), 0..0);
        assert_eq!(rules(true, Some(1)).seen(1, 5, 3), 0..0);
        assert_eq!(rules(false, Some(2)).seen(1, 5, 3), 0..1);
    }

    #[test]
    fn masks_stretch() {
        let q = Shape::from([2, 6, 4, 8]);
        let (extents, shape) =
            Extents::new("attention", q, [2, 3, 5, 8].into(), [2, 3, 5, 16].into()).unwrap();
        assert_eq!((shape, extents.group), ([2, 6, 4, 16].into(), 2));
        let strides = |mask: &[usize]| extents.mask_strides("attention", Shape::new(mask).unwrap(), q);
        assert_eq!(strides(&[4, 5]).unwrap(), [0, 0, 5, 1]);
        assert_eq!(strides(&[2, 1, 4, 5]).unwrap(), [20, 0, 5, 1]);
        assert_eq!(strides(&[6, 1, 5]).unwrap(), [0, 5, 0, 1]);
        assert_eq!(strides(&[4, 1]).unwrap(), [0, 0, 1, 0]);
        let told = strides(&[3, 5]).unwrap_err().to_string();
        assert!(told.contains("tokens 4 of q and k != 3 of the mask"), "{told}");
    }
}
