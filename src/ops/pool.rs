//! Pooling.

use super::elementwise::positive;
use super::width::check_float;
use crate::error::Result;
use crate::ir::pool::{PoolKind, Pooling};
use crate::ir::value::ValueId;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::windows::{Pool, Windows, adaptive};
use crate::shape::{DType, Shape};

/// # Pooling
///
/// One number from each window of an image. The windows' dimensions, one to three, are the last ones of the operand;
/// what lies before them are images and channels, each for itself: `[n, c, h, w]` with windows of `[3, 3]`.
impl Recording {
    /// The largest element of each window; f32. As [`amax`](Recording::amax): exact, on every device; NaN is the result
    /// where there is one. Padding is never the largest; a window of padding alone, which a dilation can make, has −∞.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::Pool;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 5.0, 2.0, 4.0, 3.0], [5])?;
    /// let windows = Pool::new(&[3]).stride(&[2]).padding(&[(1, 1)]);
    /// assert_eq!(gpu.run(|r| r.max_pool(&x, &windows))?.read::<f32>()?, [5.0, 5.0, 4.0]);
    /// let refused = gpu.run(|r| r.max_pool(&x, Pool::new(&[7]))).unwrap_err();
    /// let said = "max_pool: window is 7; it must not reach beyond the padded extent, 5";
    /// assert_eq!(refused.to_string(), said);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`](crate::Error::Parameter) if the windows do not fit the operand,
    /// [`Error::Type`](crate::Error::Type) unless it is f32; [`Error::BindingTooLarge`](crate::Error::BindingTooLarge)
    /// if a binding of the device can't span the operand.
    pub fn max_pool<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        pool: impl std::borrow::Borrow<Pool>,
    ) -> Result<Value> {
        let op = "max_pool";
        let (input, shape) = self.image(op, operand.into())?;
        self.pooled(op, PoolKind::Max, input, pool.borrow().plan(op, shape)?)
    }

    /// [`max_pool`](Recording::max_pool), and the places of the largest elements, as u32: counted through the
    /// dimensions of the windows, row by row. Of equal ones the first counts, zeros are equal, and the first NaN counts
    /// before all.
    ///
    /// # Errors
    ///
    /// Those of [`max_pool`](Recording::max_pool).
    pub fn max_pool_with_places<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        pool: impl std::borrow::Borrow<Pool>,
    ) -> Result<(Value, Value)> {
        let op = "max_pool_with_places";
        let (input, shape) = self.image(op, operand.into())?;
        let plan = pool.borrow().plan(op, shape)?;
        self.all_or_nothing(|r| {
            Ok((r.pooled(op, PoolKind::Max, input, plan)?, r.pooled(op, PoolKind::Place, input, plan)?))
        })
    }

    /// The mean of each window; f32. It is that of the elements inside, or with [`Pool::count_padding`] of those and
    /// the padding's zeros. A NaN or infinities count as in a sum; the mean of no element is NaN.
    ///
    /// # Accuracy
    ///
    /// The error is at most (n + 2) · 2⁻²⁴ · Σ|x| / n for n elements: they are added one after the other. Vulkan
    /// guarantees 2.5 ULP for the division, where lavapipe has ½.
    ///
    /// # Errors
    ///
    /// Those of [`max_pool`](Recording::max_pool).
    pub fn average_pool<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        pool: impl std::borrow::Borrow<Pool>,
    ) -> Result<Value> {
        let (op, pool) = ("average_pool", pool.borrow());
        let (input, shape) = self.image(op, operand.into())?;
        let kind = if pool.counts_padding() { PoolKind::MeanOfAll } else { PoolKind::Mean };
        self.pooled(op, kind, input, pool.plan(op, shape)?)
    }

    /// (Σ|x|ᵖ)^(1/`p`) of each window; f32. That of no element is 0.
    ///
    /// # Accuracy
    ///
    /// A relative error of at most (n + 4) · 2⁻²⁴ for n elements and a `p` of 1 or 2, of which the latter takes the
    /// device's square root. Other powers add those of [`pow`](Recording::pow), twice.
    ///
    /// # Errors
    ///
    /// Those of [`max_pool`](Recording::max_pool), and [`Error::Parameter`](crate::Error::Parameter) unless `p` is
    /// finite and above 0.
    pub fn norm_pool<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        p: f32,
        pool: impl std::borrow::Borrow<Pool>,
    ) -> Result<Value> {
        let op = "norm_pool";
        positive(op, "p", p)?;
        let (input, shape) = self.image(op, operand.into())?;
        self.pooled(op, PoolKind::Norm(p), input, pool.borrow().plan(op, shape)?)
    }

    /// [`max_pool`](Recording::max_pool) with windows that cut the last dimensions into this many `parts`: part i of n
    /// of an extent e is from ⌊i · e / n⌋ up to ⌈(i + 1) · e / n⌉. Parts of 1 are a global pooling.
    ///
    /// # Errors
    ///
    /// Those of [`max_pool`](Recording::max_pool).
    pub fn adaptive_max_pool<'a>(&self, operand: impl IntoOperand<'a>, parts: &[usize]) -> Result<Value> {
        let op = "adaptive_max_pool";
        let (input, shape) = self.image(op, operand.into())?;
        self.pooled(op, PoolKind::Max, input, adaptive(op, shape, parts)?)
    }

    /// [`average_pool`](Recording::average_pool) with the windows of
    /// [`adaptive_max_pool`](Recording::adaptive_max_pool).
    ///
    /// # Errors
    ///
    /// Those of [`max_pool`](Recording::max_pool).
    pub fn adaptive_average_pool<'a>(&self, operand: impl IntoOperand<'a>, parts: &[usize]) -> Result<Value> {
        let op = "adaptive_average_pool";
        let (input, shape) = self.image(op, operand.into())?;
        self.pooled(op, PoolKind::Mean, input, adaptive(op, shape, parts)?)
    }

    fn image(&self, op: &'static str, operand: Operand<'_>) -> Result<(ValueId, Shape)> {
        let input = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(input);
        check_float(op, "operand", dtype)?;
        Ok((input, shape))
    }

    fn pooled(
        &self,
        op: &'static str,
        kind: PoolKind,
        input: ValueId,
        (windows, shape): (Windows, Shape),
    ) -> Result<Value> {
        let of = self.kind(input).1;
        if of.is_packed() {
            return self.all_or_nothing(|r| {
                let wide = r.widened(input)?;
                let result = r.pooled(op, kind, wide, (windows, shape))?;
                if kind == PoolKind::Place { Ok(result) } else { r.cast(result, of) }
            });
        }
        let dtype = if kind == PoolKind::Place { DType::U32 } else { DType::F32 };
        let output = self.produce(op, shape, dtype)?;
        self.push(self.label(op, output), Pooling { kind, windows, input, output })?;
        Ok(self.handle(output))
    }
}
