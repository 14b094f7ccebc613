//! Softmax and its logarithm.

use super::width::check_float;
use crate::error::Result;
use crate::ir::softmax::Softmax;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::axes::{Geometry, resolve_axis};

impl Recording {
    /// Softmax along `axis` (negative axes count from the end): exp(x) / Σ exp(x), each computed as exp(x − max), so
    /// that no large element overflows; f32. The result has the operand's shape.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1000.0f32, 1000.0, f32::NEG_INFINITY, 0.0], [2, 2])?;
    /// let p = gpu.run(|r| r.softmax(&x, -1))?;
    /// assert_eq!(p.read::<f32>()?, [0.5, 0.5, 0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// −∞ has the share 0. Elements more than 87 below the largest have it, too (they would be denormal). A row with a
    /// NaN or +∞, or with only −∞, is not a distribution: all of it becomes NaN. The same operand gives the same bits
    /// every time, on one device with one driver and one choice of kernel variants. A denormal operand counts as 0 or
    /// as what it is, which makes no difference to any result.
    ///
    /// # Accuracy
    ///
    /// A relative error of at most (8 + |x − max|) · 2⁻²⁴ in each result: the difference is rounded before it is an
    /// exponent. Measured on lavapipe: 0.95 of that. It is made of additions and multiplications, which Vulkan wants
    /// correctly rounded, and one division for each row, for which it guarantees 2.5 ULP where lavapipe has ½.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`](crate::Error::Axis) if there is no such axis, [`Error::Type`](crate::Error::Type) for other
    /// element types.
    pub fn softmax<'a>(&self, operand: impl IntoOperand<'a>, axis: isize) -> Result<Value> {
        self.softmax_of("softmax", false, operand.into(), axis)
    }

    /// The logarithm of [`softmax`](Recording::softmax): (x − max) − log Σ exp(x − max), which is finite where a share
    /// is too small for a float.
    ///
    /// Special values are those of `softmax`, with log 0 = −∞ for −∞ only; the logarithm of a whole share is 0. The
    /// sign of a zero or a denormal among the operands makes no difference.
    ///
    /// # Accuracy
    ///
    /// An error of at most 8 · 2⁻²⁴ times the larger of 1 and the result's magnitude; measured on lavapipe: 3.4 · 2⁻²⁴.
    /// It is made of additions and multiplications alone, which Vulkan wants correctly rounded.
    ///
    /// # Errors
    ///
    /// Those of `softmax`.
    pub fn log_softmax<'a>(&self, operand: impl IntoOperand<'a>, axis: isize) -> Result<Value> {
        self.softmax_of("log_softmax", true, operand.into(), axis)
    }

    fn softmax_of(
        &self,
        op: &'static str,
        logarithm: bool,
        operand: Operand<'_>,
        axis: isize,
    ) -> Result<Value> {
        let input = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(input);
        check_float(op, "operand", dtype)?;
        if dtype.is_packed() {
            return self.all_or_nothing(|r| {
                let wide = r.widened(input)?;
                let result = r.softmax_of(op, logarithm, r.handle(wide).into(), axis)?;
                r.cast(result, dtype)
            });
        }
        let geometry = Geometry::along(&shape, resolve_axis(op, axis, shape.rank())?);
        let output = self.produce(op, shape, dtype)?;
        if shape.elements() > 0 {
            let softmax = Softmax { op, logarithm, input, prologue: None, geometry, output };
            self.push(self.label(op, input), softmax)?;
        }
        Ok(self.handle(output))
    }
}
