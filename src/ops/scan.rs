//! Running sums, products and extremes.

use crate::error::Result;
use crate::ir::scan::{Key, Monoid, Scan};
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Operand, Recording, Value};
use crate::shape::DType;
use crate::shape::along::Along;
use crate::shape::axes::{Geometry, resolve_axis};

/// # Scans
///
/// A scan has the operand's shape. Each of its elements joins all elements of the operand from the beginning of the
/// axis up to its own place; [`Along`] says which axis, and can leave the own element out or begin at the end. The
/// order in which elements join is fixed: the same operand gives the same bits every time, on one device with one
/// choice of kernel variants.
impl Recording {
    /// Running sums: `out[i] = x[0] + … + x[i]`; f32, i32, u32. Integers wrap. An exclusive one begins with 0.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// let (rows, columns) = gpu.run(|r| Ok((r.cumsum(&x, -1)?, r.cumsum(&x, 0)?)))?;
    /// assert_eq!(rows.read::<f32>()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    /// assert_eq!(columns.read::<f32>()?, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// NaN, or infinities of both signs, give NaN from there on.
    ///
    /// # Accuracy
    ///
    /// Parts of up to 8,192 elements are added one after the other, and begin with the sum of the parts before. The
    /// error of a sum of n elements is at most n · 2⁻²⁴ · Σ|x|, and grows with the length of a part rather than with n.
    ///
    /// # Errors
    ///
    /// [`Error::Axis`](crate::Error::Axis), [`Error::Type`](crate::Error::Type);
    /// [`Error::BindingTooLarge`](crate::Error::BindingTooLarge) if a binding of the device can't span the operand.
    pub fn cumsum<'a>(&self, operand: impl IntoOperand<'a>, along: impl Into<Along>) -> Result<Value> {
        self.scan("cumsum", [Monoid::SumF32, Monoid::SumU32], operand.into(), along.into())
    }

    /// Running products: `out[i] = x[0] · … · x[i]`; f32, i32, u32. Integers wrap. An exclusive one begins with 1.
    ///
    /// # Accuracy
    ///
    /// A relative error of at most n · 2⁻²⁴ for n elements, as long as no product underflows.
    ///
    /// # Errors
    ///
    /// Those of [`cumsum`](Recording::cumsum).
    pub fn cumprod<'a>(&self, operand: impl IntoOperand<'a>, along: impl Into<Along>) -> Result<Value> {
        self.scan("cumprod", [Monoid::ProductF32, Monoid::ProductU32], operand.into(), along.into())
    }

    /// The largest element so far; f32, i32, u32. Exact, as [`amax`](Recording::amax): +0 is larger than −0, and from a
    /// NaN on the results are NaN. An exclusive one begins with the smallest value of the type, −∞ for f32.
    ///
    /// # Errors
    ///
    /// Those of [`cumsum`](Recording::cumsum).
    pub fn cummax<'a>(&self, operand: impl IntoOperand<'a>, along: impl Into<Along>) -> Result<Value> {
        self.scan("cummax", [Monoid::Largest; 2], operand.into(), along.into())
    }

    /// The smallest element so far; otherwise as [`cummax`](Recording::cummax). An exclusive one begins with the
    /// largest value of the type, ∞ for f32.
    ///
    /// # Errors
    ///
    /// Those of [`cumsum`](Recording::cumsum).
    pub fn cummin<'a>(&self, operand: impl IntoOperand<'a>, along: impl Into<Along>) -> Result<Value> {
        self.scan("cummin", [Monoid::Smallest; 2], operand.into(), along.into())
    }

    /// What an exclusive scan begins with is beyond the numbers of a narrower type.
    fn saturated(&self, result: Value, dtype: DType) -> Result<Value> {
        let [least, most] = match dtype {
            DType::I16 => [i16::MIN, i16::MAX].map(i32::from),
            DType::I8 => [i8::MIN, i8::MAX].map(i32::from),
            // As bits, all ones are the largest number of the others, too, and floats have infinities.
            _ => return Ok(result),
        };
        self.min_scalar(self.max_scalar(result, least)?, most)
    }

    fn scan(
        &self,
        op: &'static str,
        [of_floats, of_integers]: [Monoid; 2],
        operand: Operand<'_>,
        along: Along,
    ) -> Result<Value> {
        let input = self.resolve(op, operand)?;
        let (shape, dtype) = self.kind(input);
        let monoid = match dtype {
            DType::F32 => of_floats,
            DType::I32 | DType::U32 => of_integers,
            _ => {
                return self.all_or_nothing(|r| {
                    let wide = r.widened(input)?;
                    let result = r.scan(op, [of_floats, of_integers], r.handle(wide).into(), along)?;
                    match of_floats {
                        Monoid::Largest | Monoid::Smallest => r.cast(r.saturated(result, dtype)?, dtype),
                        _ => Ok(result),
                    }
                });
            }
        };
        let (axis, exclusive, reverse) = along.parts();
        let geometry = Geometry::along(&shape, resolve_axis(op, axis, shape.rank())?);
        let output = self.produce(op, shape, dtype)?;
        if shape.elements() > 0 {
            let key = Key::of(dtype);
            let scan = Scan { monoid, key, exclusive, reverse, input, geometry, output };
            self.push(self.label(op, output), scan)?;
        }
        Ok(self.handle(output))
    }
}
