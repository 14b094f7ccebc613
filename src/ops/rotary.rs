//! Rotary embedding.

use crate::error::{Error, Result};
use crate::ir::rotary::Angles;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Recording, Value};
use crate::shape::attention::{RotaryPairs, Turned, rotary};
use crate::shape::layout::Strided;
use crate::shape::{DType, MAX_RANK, Shape};

/// # Rotary embedding
impl Recording {
    /// Turns pairs of columns by angles that grow with a token's position: pair i of `[…, tokens, depth]` by
    /// position · base^(−2i / depth); f32. The usual `base` is 10000.
    ///
    /// `positions` are u32: one for each token, or one alone, which is the first token's; those behind it follow. With
    /// [`RotaryPairs::Halves`] pair i are the columns i and i + depth / 2, with [`RotaryPairs::Neighbours`] 2i and 2i +
    /// 1.
    ///
    /// Two dispatches: cosines and sines, which calls with the same positions share, and the result.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::RotaryPairs;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 0.0, 1.0, 0.0], [2, 2])?;
    /// let y = gpu.run(|r| r.rotary(&x, 0u32, 10_000.0, RotaryPairs::Halves))?.read::<f32>()?;
    /// assert_eq!(y[..2], [1.0, 0.0]);
    /// assert!((y[2] - 1f32.cos()).abs() < 1e-6 && (y[3] - 1f32.sin()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Accuracy
    ///
    /// An error of at most 6 · 2⁻²⁴ · (|a| + |b|) for a pair of a and b, whatever the position below 2²⁴: angles are
    /// turns in fixed point.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] for other element types; [`Error::NotMatrix`] for a rank below 2, [`Error::Shapes`] unless there
    /// is one position or as many as tokens; [`Error::Parameter`] if the depth is odd or above 1024, or `base` is not
    /// finite and above 1.
    pub fn rotary<'a>(
        &self,
        x: impl IntoOperand<'a>,
        positions: impl IntoOperand<'a>,
        base: f32,
        pairs: RotaryPairs,
    ) -> Result<Value> {
        let op = "rotary";
        let (x, positions) = (self.resolve(op, x)?, self.resolve(op, positions)?);
        let ((shape, dtype), (of_positions, kind)) = (self.kind(x), self.kind(positions));
        if dtype != DType::F32 {
            return Err(Error::of_type(op, "operand", &[DType::F32], dtype));
        }
        if kind != DType::U32 {
            return Err(Error::of_type(op, "positions", &[DType::U32], kind));
        }
        let Turned { outer, tokens, depth } = rotary(op, shape, of_positions, base)?;
        if shape.elements() == 0 {
            return Ok(self.handle(self.produce(op, shape, DType::F32)?));
        }
        self.all_or_nothing(|r| {
            let output = r.produce(op, Shape::from([2, tokens, depth]), DType::F32)?;
            let start = of_positions.elements() == 1;
            let interleaved = pairs == RotaryPairs::Neighbours;
            let angles = Angles {
                positions,
                start,
                interleaved,
                base,
                tokens: tokens as u32,
                depth: depth as u32,
                output,
            };
            r.push(r.label("rotary_angles", output), angles)?;
            // The two of a pair change places, where they are an axis of their own.
            let (inner, axis) = if interleaved { ([depth / 2, 2], 3) } else { ([2, depth / 2], 2) };
            let columns = r.reshape(r.handle(x), [outer, tokens, inner[0], inner[1]])?;
            let mut steps = [1; 4];
            steps[axis] = -1;
            let others = r.slice_step(columns, [.., .., .., ..], &steps)?;
            // Seen in the shape of the columns, so that one program reads all of it.
            let whole = Shape::from([outer, tokens, inner[0], inner[1]]);
            let mut strides = [0; MAX_RANK];
            strides[1..4].copy_from_slice(&[depth, inner[1], 1]);
            let of_half =
                |k: usize| r.view(op, output, Strided { shape: whole, strides, offset: k * tokens * depth });
            let turned = r.mul(columns, of_half(0)?)?;
            let added = r.mul(others, of_half(1)?)?;
            r.reshape(r.add(turned, added)?, shape)
        })
    }
}
