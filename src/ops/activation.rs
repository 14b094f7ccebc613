//! Activation functions with parameters.

use super::elementwise::{Arg, Codes, finite, not_nan, parameter, positive};
use super::width::check_number;
use crate::error::{Error, Result};
use crate::ir::elementwise::OpCode;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Recording, Value};

/// # Activation functions with parameters
impl Recording {
    /// The operand where it is above 0, else `alpha` times the operand; f32. NaN stays NaN. What has no sign bit stays
    /// what it is, ∞, 0 and denormals included; what has one is multiplied as by [`mul`](Recording::mul), so that −0
    /// becomes `alpha` · −0, and −∞ becomes NaN if `alpha` is 0.
    ///
    /// # Accuracy
    ///
    /// Correctly rounded, as [`mul`](Recording::mul).
    ///
    /// # Errors
    ///
    /// [`Error::Type`](crate::Error::Type) if the operand is not f32, [`Error::Parameter`](crate::Error::Parameter) if
    /// `alpha` is not finite.
    pub fn leaky_relu<'a>(&self, operand: impl IntoOperand<'a>, alpha: f32) -> Result<Value> {
        let op = "leaky_relu";
        finite(op, "alpha", alpha)?;
        self.unary(op, Codes::f32(OpCode::LeakyReluF32), operand.into(), &[alpha])
    }

    /// The operand where it is above 0, else `alpha` · (eˣ − 1); f32. −`alpha` for −∞, ∞ for ∞, NaN for NaN. What has
    /// no sign bit stays what it is; −0 and negative denormals are multiplied by `alpha` as by [`mul`](Recording::mul).
    ///
    /// # Accuracy
    ///
    /// At most 2 ULP, measured on lavapipe over floats of every exponent (`alpha` = 1.6732632; less where it is a power
    /// of two, by which nothing is rounded). Made of additions, multiplications and integer operations alone: the same
    /// bits on every device that rounds to the nearest and keeps denormals.
    ///
    /// # Errors
    ///
    /// [`Error::Type`](crate::Error::Type) if the operand is not f32, [`Error::Parameter`](crate::Error::Parameter) if
    /// `alpha` is not finite.
    pub fn elu<'a>(&self, operand: impl IntoOperand<'a>, alpha: f32) -> Result<Value> {
        let op = "elu";
        finite(op, "alpha", alpha)?;
        self.unary(op, Codes::f32(OpCode::EluF32), operand.into(), &[alpha])
    }

    /// The operand where it is above 0, else `alpha` · (e^(x / `alpha`) − 1), whose slope at 0 is 1; f32. −`alpha` for
    /// −∞, ∞ for ∞, NaN for NaN. What has no sign bit stays what it is. A device may take denormals for zeros.
    ///
    /// # Accuracy
    ///
    /// At most 2.4 ULP, measured on lavapipe over floats of every exponent (`alpha` = 1.6732632). Made of additions and
    /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5 ULP.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if the operand is not f32, [`Error::Parameter`] if `alpha` is not finite and above 0.
    pub fn celu<'a>(&self, operand: impl IntoOperand<'a>, alpha: f32) -> Result<Value> {
        let op = "celu";
        positive(op, "alpha", alpha)?;
        self.unary(op, Codes::f32(OpCode::CeluF32), operand.into(), &[alpha])
    }

    /// [`leaky_relu`](Recording::leaky_relu) with a tensor of slopes, which broadcasts: a slope for each channel of
    /// `[n, c, h, w]` has the shape `[c, 1, 1]`; f32.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-1.0f32, 2.0, -3.0, -4.0], [2, 2])?;
    /// let slopes = gpu.upload(&[0.5f32, 0.25], [2, 1])?;
    /// assert_eq!(gpu.run(|r| r.prelu(&x, &slopes))?.read::<f32>()?, [-0.5, 2.0, -0.75, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Accuracy
    ///
    /// Correctly rounded, as [`mul`](Recording::mul).
    ///
    /// # Errors
    ///
    /// [`Error::Type`] if an operand is not f32 or their types differ, [`Error::Shapes`] with the extents that
    /// disagree.
    pub fn prelu<'a>(&self, operand: impl IntoOperand<'a>, slopes: impl IntoOperand<'a>) -> Result<Value> {
        self.binary("prelu", Codes::f32(OpCode::LeakyReluF32), operand.into(), slopes.into(), false, None)
    }

    /// [`clip`](Recording::clip) with tensors of bounds; all three broadcast. Floats and integers of any size. Where
    /// `lo` is above `hi` the result is `lo`; it is NaN where one of the three is. Exact, on every device.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-2.0f32, 0.5, 7.0], [3])?;
    /// let (lo, hi) = (gpu.upload(&[-1.0f32, 1.0, 0.0], [3])?, gpu.upload(&[3.0f32], [1])?);
    /// assert_eq!(gpu.run(|r| r.clamp(&x, &lo, &hi))?.read::<f32>()?, [-1.0, 1.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shapes`] with the extents that disagree, [`Error::Type`] if an operand is bool or their types differ.
    pub fn clamp<'a>(
        &self,
        operand: impl IntoOperand<'a>,
        lo: impl IntoOperand<'a>,
        hi: impl IntoOperand<'a>,
    ) -> Result<Value> {
        let op = "clamp";
        let ids = [self.resolve(op, operand)?, self.resolve(op, lo)?, self.resolve(op, hi)?];
        let [dtype, of_lo, of_hi] = ids.map(|id| self.kind(id).1);
        check_number(op, "operand", dtype)?;
        for (name, got) in [("lo", of_lo), ("hi", of_hi)] {
            if got != dtype {
                return Err(Error::of_type(op, name, &[dtype], got));
            }
        }
        if dtype.is_float() {
            return self.elementwise(op, OpCode::ClipF32, &ids.map(Arg::Value), dtype);
        }
        let [x, lo, hi] = ids.map(|id| self.handle(id));
        self.all_or_nothing(|r| r.max(r.min(x, hi)?, lo))
    }

    /// The operand, but not below `lo` and not above `hi`; f32. Exact, denormals included, on every device; NaN stays
    /// NaN, and infinities become the bounds. −0 is below 0: a bound of 0 makes 0 of −0 where it is the lower one, and
    /// a bound of −0 makes −0 of 0 where it is the upper one. An infinite bound means no bound.
    /// [`min_scalar`](Recording::min_scalar) and [`max_scalar`](Recording::max_scalar) do integers.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-2.0f32, 0.5, 7.0], [3])?;
    /// assert_eq!(gpu.run(|r| r.clip(&x, -1.0, 1.0))?.read::<f32>()?, [-1.0, 0.5, 1.0]);
    /// let refused = gpu.run(|r| r.clip(&x, 2.0, 1.0)).unwrap_err();
    /// assert_eq!(refused.to_string(), "clip: lo is 2; it must not be above hi, which is 1");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Type`](crate::Error::Type) if the operand is not f32, [`Error::Parameter`](crate::Error::Parameter) if
    /// a bound is NaN or `lo` is above `hi`.
    pub fn clip<'a>(&self, operand: impl IntoOperand<'a>, lo: f32, hi: f32) -> Result<Value> {
        let op = "clip";
        not_nan(op, "lo", lo)?;
        not_nan(op, "hi", hi)?;
        if lo > hi {
            return Err(parameter(op, "lo", lo, &format!("not be above hi, which is {hi}")));
        }
        self.unary(op, Codes::f32(OpCode::ClipF32), operand.into(), &[lo, hi])
    }
}
