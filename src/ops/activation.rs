//! Activation functions.

use super::elementwise::{Codes, finite, not_nan, parameter};
use super::unary::unary;
use crate::error::Result;
use crate::ir::elementwise::OpCode;
use crate::runtime::recording::{Operand, Recording, Value};

unary! { "# Activation functions";
    /// The operand where it is above 0, else 0; f32. Exact, on every device: NaN stays NaN, −0 becomes 0, denormals are kept, ∞ stays
    /// and −∞ becomes 0.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-1.0f32, 0.5, 2.0], [3])?;
    /// assert_eq!(gpu.run(|r| r.relu(&x))?.read::<f32>()?, [0.0, 0.5, 2.0]);
    /// # Ok(()) }
    /// ```
    relu: Codes::f32(OpCode::ReluF32);

    /// 1 / (1 + e⁻ˣ); f32. 0 for −∞, 1 for ∞, NaN for NaN; ½ for zeros and denormals. Results below −87.3 are denormal, and
    /// 0 where a device has none.
    ///
    /// # Accuracy
    ///
    /// At most 2.5 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions and
    /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5 ULP.
    sigmoid: Codes::f32(OpCode::SigmoidF32);

    /// The hyperbolic tangent; f32. ±1 for ±∞, NaN for NaN; zeros and denormals stay what they are.
    ///
    /// # Accuracy
    ///
    /// At most 1.4 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions and
    /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5 ULP.
    tanh: Codes::f32(OpCode::TanhF32);

    /// x / (1 + e⁻ˣ), also called SiLU; f32. −0 for −∞, ∞ for ∞, NaN for NaN; zeros keep their sign. Denormal operands and
    /// results are what they are on lavapipe; a device may take them for zeros.
    ///
    /// # Accuracy
    ///
    /// At most 2.5 ULP, measured on lavapipe over 2²⁷ floats of every exponent, the tail included. Made of
    /// additions and multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5 ULP.
    swish: Codes::f32(OpCode::SwishF32);

    /// The Gaussian error linear unit in its tanh form, x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))); f32. −0 for −∞,
    /// ∞ for ∞, NaN for NaN; zeros keep their sign. Denormal operands and results are what they are on lavapipe; a device may
    /// take them for zeros. [`gelu_erf`](Recording::gelu_erf) is the exact form.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[-1.0f32, 0.0, 1.0], [3])?;
    /// let y = gpu.run(|r| r.gelu(&x))?.read::<f32>()?;
    /// assert!((y[0] + 0.158808).abs() < 1e-6 && y[1] == 0.0 && (y[2] - 0.841192).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Accuracy
    ///
    /// At most 6 ULP from −1.5 up, measured on lavapipe. Further down, where the result vanishes, the relative
    /// error grows to 200 ULP (2·10⁻⁵, at x = −9.7 and results of 10⁻³⁴): the argument of the exponential is
    /// rounded once too often. Made of additions and multiplications, which Vulkan wants correctly rounded, and a
    /// division, for which it guarantees 2.5 ULP.
    gelu: Codes::f32(OpCode::GeluF32);

    /// The Gaussian error linear unit in its exact form, x/2 · (1 + erf(x / √2)); f32. −0 for −∞, ∞ for ∞, NaN for NaN;
    /// zeros keep their sign. Denormal operands and results are what they are on lavapipe; a device may take them for zeros.
    ///
    /// # Accuracy
    ///
    /// At most 4.5 ULP, measured on lavapipe over 2²⁷ floats of every exponent, the tail included. Made of
    /// additions and multiplications, which Vulkan wants correctly rounded, and two divisions, for which it guarantees 2.5
    /// ULP.
    gelu_erf: Codes::f32(OpCode::GeluErfF32);

    /// log(1 + eˣ); f32. 0 for −∞, ∞ for ∞, NaN for NaN; log 2 for zeros and denormals. Results below −87.3 are denormal, and
    /// 0 where a device has none.
    ///
    /// # Accuracy
    ///
    /// At most 1.8 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions,
    /// multiplications and integer operations alone: the same bits on every device that rounds to the nearest and keeps
    /// denormals.
    softplus: Codes::f32(OpCode::SoftplusF32);
}

/// # Activation functions with parameters
impl Recording {
    /// The operand where it is above 0, else `alpha` times the operand; f32. NaN stays NaN. What has no sign bit stays what it
    /// is, ∞, 0 and denormals included; what has one is multiplied as by [`mul`](Recording::mul), so that −0 becomes `alpha` ·
    /// −0, and −∞ becomes NaN if `alpha` is 0.
    ///
    /// # Accuracy
    ///
    /// Correctly rounded, as [`mul`](Recording::mul).
    ///
    /// # Errors
    ///
    /// [`Error::Type`](crate::Error::Type) if the operand is not f32, [`Error::Parameter`](crate::Error::Parameter) if
    /// `alpha` is not finite.
    pub fn leaky_relu<'a>(&mut self, operand: impl Into<Operand<'a>>, alpha: f32) -> Result<Value> {
        let op = "leaky_relu";
        finite(op, "alpha", alpha)?;
        self.unary(op, Codes::f32(OpCode::LeakyReluF32), operand.into(), &[alpha])
    }

    /// The operand where it is above 0, else `alpha` · (eˣ − 1); f32. −`alpha` for −∞, ∞ for ∞, NaN for NaN. What has no sign
    /// bit stays what it is; −0 and negative denormals are multiplied by `alpha` as by [`mul`](Recording::mul).
    ///
    /// # Accuracy
    ///
    /// At most 2 ULP, measured on lavapipe over floats of every exponent (`alpha` = 1.6732632; less where it is a power of
    /// two, by which nothing is rounded). Made of additions,
    /// multiplications and integer operations alone: the same bits on every device that rounds to the nearest and keeps
    /// denormals.
    ///
    /// # Errors
    ///
    /// [`Error::Type`](crate::Error::Type) if the operand is not f32, [`Error::Parameter`](crate::Error::Parameter) if
    /// `alpha` is not finite.
    pub fn elu<'a>(&mut self, operand: impl Into<Operand<'a>>, alpha: f32) -> Result<Value> {
        let op = "elu";
        finite(op, "alpha", alpha)?;
        self.unary(op, Codes::f32(OpCode::EluF32), operand.into(), &[alpha])
    }

    /// The operand, but not below `lo` and not above `hi`; f32. Exact, denormals included, on every device; NaN stays NaN, and
    /// infinities become the bounds. −0 is below 0: a bound of 0 makes 0 of −0 where it is the lower one, and a bound of −0
    /// makes −0 of 0 where it is the upper one. An infinite bound is none. [`min_scalar`](Recording::min_scalar) and [`max_scalar`](Recording::max_scalar) do integers.
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
    pub fn clip<'a>(&mut self, operand: impl Into<Operand<'a>>, lo: f32, hi: f32) -> Result<Value> {
        let op = "clip";
        not_nan(op, "lo", lo)?;
        not_nan(op, "hi", hi)?;
        if lo > hi {
            return Err(parameter(op, "lo", lo, &format!("not be above hi, which is {hi}")));
        }
        self.unary(op, Codes::f32(OpCode::ClipF32), operand.into(), &[lo, hi])
    }
}
