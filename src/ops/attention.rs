//! Attention.

use std::borrow::Borrow;

use crate::error::{Error, Result};
use crate::ir::attention::{Attention as Op, Mask};
use crate::ir::value::{Label, LabelName, ValueId};
use crate::ops::width::check_float;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::attention::{Extents, Rules};
use crate::shape::{DType, Shape};

const OP: &str = "attention";

/// How attention is taken: which keys a query sees, and how scores are made.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::Attention;
/// let gpu = tidemill::Accelerator::global()?;
/// let q = gpu.upload(&[1.0f32; 8], [2, 4])?;
/// let k = gpu.upload(&[0.5f32; 8], [2, 4])?;
/// let v = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0, 6.0], [2, 4])?;
/// let y = gpu.run(|r| r.attention(&q, &k, &v, Attention::new().causal()))?;
/// assert_eq!(y.read::<f32>()?, [1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 5.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Attention<'a> {
    rules: Rules,
    mask: Option<Operand<'a>>,
    length: Option<Operand<'a>>,
}

impl<'a> Attention<'a> {
    /// Every query sees every key; scores are multiplied with 1 / √depth.
    pub fn new() -> Attention<'a> {
        Attention::default()
    }

    /// A query sees no key behind its own place. Queries are the last ones of the keys: query t of n has the place
    /// `keys - n + t`.
    pub fn causal(mut self) -> Attention<'a> {
        self.rules.causal = true;
        self
    }

    /// A query sees keys less than `places` away from its own place only; with [`causal`](Attention::causal) the last
    /// `places` up to its own.
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

    /// Numbers that are added to scores, f32; or u32, of which a 0 hides a key. It is stretched to `[batch, heads,
    /// tokens, keys]` as elementwise operations do it.
    pub fn mask(mut self, mask: impl IntoOperand<'a>) -> Attention<'a> {
        self.mask = Some(mask.into());
        self
    }

    /// How many of the keys there are, one u32: for a cache that is not full. Those behind are not read, whatever is
    /// there. More than there is room for counts as full.
    pub fn length(mut self, keys: impl IntoOperand<'a>) -> Attention<'a> {
        self.length = Some(keys.into());
        self
    }
}

/// # Attention
impl Recording {
    /// `softmax(scale · q kᵀ + mask) v` of each head; f32, f16 and bf16, the result as `q`, `k` and `v`
    /// if they are of one type, and f32 otherwise. Scores are never in
    /// memory, whatever the number of keys.
    ///
    /// - `q` is `[batch, heads, tokens, depth]`, `k` is `[batch, kv_heads, keys, depth]`, `v` is `[batch, kv_heads,
    ///   keys, width]`, and the result `[batch, heads, tokens, width]`. All have the same rank, at least 2; without a
    ///   batch or heads these are 1. Dimensions in front of the heads are all batches.
    /// - `kv_heads` divides `heads`: as many heads of q in turn read one head of k and v (grouped heads). A batch of k
    ///   and v of 1 is read by all of q's.
    /// - A query that sees no key, as in a row of the mask that hides all, has a row of zeros.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::Attention;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let q = gpu.upload(&[0.0f32; 8], [1, 2, 4])?;
    /// let kv = gpu.upload(&[2.0f32, 4.0, 6.0, 8.0, 4.0, 6.0, 8.0, 10.0], [1, 2, 4])?;
    /// let mask = gpu.upload(&[1u32, 1, 0, 0], [2, 2])?;
    /// let y = gpu.run(|r| r.attention(&q, &kv, &kv, Attention::new().mask(&mask)))?;
    /// assert_eq!(y.read::<f32>()?, [3.0, 5.0, 7.0, 9.0, 0.0, 0.0, 0.0, 0.0]);
    /// let narrow = gpu.upload(&[0.0f32; 4], [1, 2, 2])?;
    /// let refused = gpu.run(|r| r.attention(&q, &narrow, &kv, Attention::new())).unwrap_err();
    /// assert!(refused.to_string().contains("head_dim 4 of q != 2 of k"));
    /// # Ok(()) }
    /// ```
    ///
    /// Keys are gone through in blocks, and sums so far are scaled whenever a query's largest score rises. The same
    /// operands give the same bits. Depths and widths that are no multiple of four are padded first, which takes memory
    /// of their size.
    ///
    /// A NaN or +∞ among the scores of a query makes its row NaN. A hidden key has the weight 0: where its row of `v`
    /// has a NaN or an infinity, the product may be NaN. Keys behind [`length`](Attention::length) never count.
    ///
    /// # Accuracy
    ///
    /// The error is at most 16 · 2⁻²⁴ · (1 + S) · max|v|, with S the largest sum scale · Σ|q · k| + |mask| of the
    /// query's keys: rounding of a score changes its weight by as much. The result of halves is rounded once more.
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] with the two numbers that differ, if the shapes do not fit; [`Error::NotMatrix`] for ranks
    /// below 2; [`Error::Type`] for other element types, [`Error::Parameter`] for a scale that is not finite, a cap
    /// that is not above 0, and a window of 0; [`Error::BindingTooLarge`] if a binding of the device can't span an
    /// operand.
    pub fn attention<'a, 'b>(
        &self,
        q: impl IntoOperand<'a>,
        k: impl IntoOperand<'a>,
        v: impl IntoOperand<'a>,
        how: impl Borrow<Attention<'b>>,
    ) -> Result<Value> {
        let how = how.borrow();
        let [q, k, v] = [("q", q.into()), ("k", k.into()), ("v", v.into())].map(|(name, operand)| {
            let id = self.resolve(OP, operand)?;
            check_float(OP, name, self.kind(id).1)?;
            Ok::<ValueId, Error>(id)
        });
        let operands = [q?, k?, v?];
        let [of_q, of_k, of_v] = operands.map(|id| self.kind(id));
        let (extents, shape) = Extents::new(OP, of_q.0, of_k.0, of_v.0)?;
        how.rules.check(OP)?;
        let mask = how.mask.map(|mask| self.attention_mask(mask, &extents, of_q.0)).transpose()?;
        let length = how.length.map(|length| self.attention_length(length, of_q.0)).transpose()?;
        // Packed if all three are of one packed type.
        let one_type = [of_k, of_v].iter().all(|(_, dtype)| *dtype == of_q.1);
        self.all_or_nothing(|r| {
            let result = r.attend(operands, (extents, shape), how.rules, (mask, length))?;
            if one_type { r.cast(result, of_q.1) } else { Ok(result) }
        })
    }

    fn attention_mask(&self, mask: Operand<'_>, extents: &Extents, q: Shape) -> Result<Mask> {
        let mut value = self.resolve(OP, mask)?;
        let (shape, dtype) = self.kind(value);
        let strides = extents.mask_strides(OP, shape, q)?;
        match dtype {
            DType::F32 | DType::U32 => {}
            DType::Bool => value = self.widened(value)?,
            _ => return Err(Error::of_type(OP, "mask", &[DType::F32, DType::U32, DType::Bool], dtype)),
        }
        Ok(Mask { value, added: dtype == DType::F32, strides })
    }

    fn attention_length(&self, length: Operand<'_>, q: Shape) -> Result<ValueId> {
        let value = self.resolve(OP, length)?;
        let (shape, dtype) = self.kind(value);
        if dtype != DType::U32 {
            return Err(Error::of_type(OP, "length", &[DType::U32], dtype));
        }
        if shape.elements() != 1 {
            let why = format!("length has {} elements, it must have 1", shape.elements());
            return Err(Error::Shapes { op: OP, lhs: q, rhs: shape, why });
        }
        Ok(value)
    }

    /// The result in f32.
    fn attend(
        &self,
        operands: [ValueId; 3],
        (extents, shape): (Extents, Shape),
        rules: Rules,
        (mask, length): (Option<Mask>, Option<ValueId>),
    ) -> Result<Value> {
        let Extents { keys, depth, width, .. } = extents;
        if shape.elements() == 0 || keys == 0 {
            return self.fill(shape, 0.0f32);
        }
        // Zeros add nothing to a score, and columns of zeros are cut off again.
        let whole = |extent: usize| extent.next_multiple_of(4).max(4);
        let (padded_depth, padded_width) = (whole(depth), whole(width));
        let [q, k, v] = operands;
        let q = self.padded_rows(q, padded_depth - depth)?;
        let k = self.padded_rows(k, padded_depth - depth)?;
        let v = self.padded_rows(v, padded_width - width)?;
        let padded = Extents { depth: padded_depth, width: padded_width, ..extents };
        let mut dims = shape.dims().to_vec();
        let last = dims.len() - 1;
        dims[last] = padded_width;
        let whole = Shape::new(&dims).unwrap_or(shape);
        let output = self.produce(OP, whole, DType::F32)?;
        let scale = rules.scale(depth);
        let label = Label { op: LabelName::Op(OP), shape: whole, dtype: self.kind(q).1 };
        self.push(label, Op { extents: padded, rules, scale, q, k, v, mask, length, output })?;
        let result = self.handle(output);
        if padded_width == width {
            return Ok(result);
        }
        let ranges: Vec<_> = shape.dims().iter().map(|&extent| 0..extent).collect();
        self.slice(result, &ranges[..])
    }

    /// The operand with so many zeros behind each row.
    fn padded_rows(&self, id: ValueId, zeros: usize) -> Result<ValueId> {
        if zeros == 0 {
            return Ok(id);
        }
        let (shape, dtype) = self.kind(id);
        let mut value = self.handle(id);
        if dtype.is_packed() {
            value = self.cast(value, DType::F32)?;
        }
        let mut pads = vec![(0, 0); shape.rank()];
        pads[shape.rank() - 1] = (0, zeros);
        let padded = self.pad(value, pads, 0.0f32)?;
        self.own(OP, padded)
    }
}
