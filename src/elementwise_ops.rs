//! The table of elementwise operations. Recording, Epilogue, `cpu`, Hybrid, the C library, the cases and the benches
//! make their methods, constants and names from its rows.

/// What an operation costs, which decides where its code is compiled and how its work is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// One or two instructions, and used most: every module has it.
    Plain,
    /// Limited by memory.
    Light,
    /// Some tens of instructions, which take long to compile.
    Heavy,
    /// As heavy, and used in few applications: only a few modules of elementwise ops have it.
    Rare,
}

/// Calls a macro with the whole table; the macro matches what it needs of each row:
///
/// ```text
/// /// The documentation of the method of Recording, to which the others refer.
/// name(Name) {                                     // the methods' name, and the variant of `hybrid::Op`
///     cost: Heavy,                                 // a `Cost`
///     codes: [NameF32 = 37],                       // variants of `OpCode`, `OP_NAME_F32` in glsl/lib/ops.glsl
///     cpu: math::name,                             // one element in `cpu`, as src/cpu/unary.rs sees it
///     c: TM_NAME = 9 "What the C header says.",    // for `tm_unary`
///     step: TM_STEP_NAME = 14                      // only if it is a method of Epilogue
/// }
/// ```
///
/// Numbers are part of the C interface: they stay what they are, and a new row takes the next ones.
#[doc(hidden)]
#[macro_export]
macro_rules! elementwise_ops {
    ($then:ident) => {
        $then! {
        one_operand {
            // One operand, f32 or i32.
            signed {
                /// The operand with the other sign; f32, i32. `-i32::MIN` wraps. Exact, on every device: NaN stays NaN,
                /// denormals are kept, 0 becomes −0, infinities change their sign.
                neg(Neg) {
                    cost: Light, codes: [NegF32 = 28, NegI32 = 51], cpu: Signed::negated,
                    c: TM_NEG = 0 "-x; floats and i32.", step: TM_STEP_NEG = 17
                }

                /// The magnitude; f32, i32. That of `i32::MIN` wraps to itself. Exact, on every device: NaN stays NaN,
                /// denormals are kept, −0 becomes 0, −∞ becomes ∞.
                abs(Abs) {
                    cost: Light, codes: [AbsF32 = 29, AbsI32 = 52], cpu: Signed::magnitude,
                    c: TM_ABS = 1 "The magnitude; floats and i32.", step: TM_STEP_ABS = 16
                }

                /// 1 for what is above 0, −1 for what is below; f32, i32. Zeros keep their sign, NaN stays NaN, and
                /// denormals count as what they are, on every device; ±1 for ±∞.
                sign(Sign) {
                    cost: Light, codes: [SignF32 = 30, SignI32 = 53], cpu: Signed::sign,
                    c: TM_SIGN = 2 "-1, 0 or 1; floats and i32."
                }
            }
            // One operand, f32.
            floats {
                /// The largest integer that is not above; f32. Exact, as Vulkan guarantees. NaN, infinities and −0 stay
                /// what they are. Denormals may be zeros on a device without
                /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
                floor(Floor) {
                    cost: Light, codes: [FloorF32 = 31], cpu: f32::floor,
                    c: TM_FLOOR = 3 "The largest whole number that is not above; floats, as all that follow."
                }

                /// The smallest integer that is not below; f32. Exact, as Vulkan guarantees. NaN, infinities and −0
                /// stay what they are, and what lies between −1 and 0 becomes −0. Denormals may be zeros on a
                /// device without [`preserves_denormals`](crate::device::Features::preserves_denormals).
                ceil(Ceil) {
                    cost: Light, codes: [CeilF32 = 32], cpu: f32::ceil,
                    c: TM_CEIL = 4 "The smallest whole number that is not below."
                }

                /// The nearest integer, of two the even one (2.5 becomes 2, as [`f32::round_ties_even`] and NumPy have
                /// it); f32. Exact, as Vulkan guarantees. NaN, infinities and −0 stay what they are, and what lies
                /// between −½ and 0 becomes −0. Denormals may be zeros on a device without
                /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
                round(Round) {
                    cost: Light, codes: [RoundF32 = 33], cpu: f32::round_ties_even,
                    c: TM_ROUND = 5 "The nearest whole number."
                }

                /// The square root; f32. √−0 = −0, √∞ = ∞; NaN for NaN and for what is below 0. Denormals may be
                /// zeros on a device without [`preserves_denormals`](crate::device::Features::preserves_denormals).
                ///
                /// # Accuracy
                ///
                /// At most ½ ULP on lavapipe. Vulkan derives it from a division (2.5 ULP) and an inverse square root (2
                /// ULP).
                sqrt(Sqrt) {
                    cost: Light, codes: [SqrtF32 = 34], cpu: f32::sqrt,
                    c: TM_SQRT = 6 "The square root.", step: TM_STEP_SQRT = 15
                }

                /// 1 over the square root; f32. ∞ for 0, −∞ for −0, 0 for ∞; NaN for NaN and for what is below 0.
                /// Denormals may be zeros on a device without
                /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
                ///
                /// # Accuracy
                ///
                /// At most 1.5 ULP on lavapipe over 2²⁷ floats of every exponent; Vulkan guarantees 2 ULP.
                rsqrt(Rsqrt) {
                    cost: Light, codes: [RsqrtF32 = 35], cpu: |x: f32| 1.0 / x.sqrt(),
                    c: TM_RSQRT = 7 "1 / sqrt(x)."
                }

                /// 1 over the operand; f32. ±∞ for ±0, ±0 for ±∞, NaN for NaN. Denormal operands and results may be
                /// zeros on a device without [`preserves_denormals`](crate::device::Features::preserves_denormals).
                ///
                /// # Accuracy
                ///
                /// At most ½ ULP on lavapipe; Vulkan guarantees 2.5 ULP for magnitudes from 2⁻¹²⁶ to 2¹²⁶.
                recip(Recip) {
                    cost: Light, codes: [RecipF32 = 36], cpu: f32::recip,
                    c: TM_RECIP = 8 "1 / x."
                }

                /// e to the power of the operand; f32. 0 for −∞, ∞ from 88.73 on, NaN for NaN; denormal results where
                /// the device has them.
                ///
                /// ```
                /// # fn main() -> tidemill::Result<()> {
                /// let gpu = tidemill::Accelerator::global()?;
                /// let x = gpu.upload(&[0.0f32, 1.0, f32::NEG_INFINITY], [3])?;
                /// let y = gpu.run(|r| r.exp(&x))?;
                /// assert_eq!(y.read::<f32>()?, [1.0, std::f32::consts::E, 0.0]);
                /// # Ok(()) }
                /// ```
                ///
                /// # Accuracy
                ///
                /// At most 1 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions,
                /// multiplications and integer operations alone: the same bits on every device that rounds to the
                /// nearest and keeps denormals. (Vulkan's own is good to 3 + 2·|x| ULP.)
                exp(Exp) {
                    cost: Heavy, codes: [ExpF32 = 37], cpu: math::exp,
                    c: TM_EXP = 9 "e to the power of x.", step: TM_STEP_EXP = 14
                }

                /// The natural logarithm; f32. −∞ for zeros, ∞ for ∞; NaN for NaN and for what is below 0. Denormals
                /// count as what they are, on every device.
                ///
                /// # Accuracy
                ///
                /// At most 0.9 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions,
                /// multiplications and integer operations alone: the same bits on every device that rounds to the
                /// nearest. (Vulkan's own is good to 3 ULP outside [½, 2], and to 2⁻²¹ inside.)
                log(Log) {
                    cost: Heavy, codes: [LogF32 = 38], cpu: math::log,
                    c: TM_LOG = 10 "The natural logarithm."
                }

                /// The sine of an angle in radians; f32, at every magnitude. Zeros and denormals stay what they are, on
                /// every device; NaN for NaN and for infinities.
                ///
                /// # Accuracy
                ///
                /// At most 1.6 ULP, measured on lavapipe over 2²⁷ floats of every exponent, multiples of π and the
                /// largest numbers included. Made of additions, multiplications and integer operations alone: the same
                /// bits on every device that rounds to the nearest. (Vulkan's own is good to 2⁻¹¹ within [−π, π], and
                /// undefined elsewhere.)
                sin(Sin) {
                    cost: Heavy, codes: [SinF32 = 39], cpu: math::sin,
                    c: TM_SIN = 11 "The sine."
                }

                /// The cosine of an angle in radians; f32, at every magnitude. 1 for zeros and denormals, NaN for NaN
                /// and for infinities.
                ///
                /// # Accuracy
                ///
                /// At most 1.6 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of the same operations
                /// as [`sin`](crate::Recording::sin).
                cos(Cos) {
                    cost: Heavy, codes: [CosF32 = 40], cpu: math::cos,
                    c: TM_COS = 12 "The cosine."
                }

                /// The error function, 2/√π times the integral of e^(−t²) from 0 to the operand; f32. ±1 for ±∞ and
                /// from ±3.92 on, NaN for NaN; zeros keep their sign. Denormals may be zeros on a device without
                /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
                ///
                /// # Accuracy
                ///
                /// At most 1.4 ULP, measured over all floats. Made of additions, multiplications and integer operations
                /// alone: the same bits on every device that rounds to the nearest and keeps denormals.
                erf(Erf) {
                    cost: Heavy, codes: [ErfF32 = 59], cpu: math::erf,
                    c: TM_ERF = 20 "The error function.", step: TM_STEP_ERF = 21
                }

                /// The integer next to it on the side of 0; f32. Exact, as Vulkan guarantees. NaN, infinities and −0
                /// stay what they are, and what lies between −1 and 0 becomes −0; a device may take denormals for
                /// zeros.
                trunc(Trunc) {
                    cost: Light, codes: [TruncF32 = 60], cpu: f32::trunc,
                    c: TM_TRUNC = 21 "The whole number towards 0."
                }

                /// 2 to the power of the operand; f32. 0 for −∞, ∞ from 128 on, NaN for NaN; exact for integers.
                /// Denormal results where the device has them.
                ///
                /// # Accuracy
                ///
                /// At most 1.1 ULP, measured on lavapipe over floats of every exponent. Made of additions,
                /// multiplications and integer operations alone: the same bits on every device that rounds to the
                /// nearest and keeps denormals.
                exp2(Exp2) {
                    cost: Rare, codes: [Exp2F32 = 64], cpu: rare::exp2,
                    c: TM_EXP2 = 25 "2 to the power of x."
                }

                /// eˣ − 1, also where x is small; f32. −1 for −∞, ∞ from 88.73 on, NaN for NaN; zeros and denormals
                /// stay what they are.
                ///
                /// ```
                /// # fn main() -> tidemill::Result<()> {
                /// let gpu = tidemill::Accelerator::global()?;
                /// let x = gpu.upload(&[1e-10f32, -0.0, f32::NEG_INFINITY], [3])?;
                /// assert_eq!(gpu.run(|r| r.expm1(&x))?.read::<f32>()?, [1e-10, 0.0, -1.0]);
                /// # Ok(()) }
                /// ```
                ///
                /// # Accuracy
                ///
                /// At most 1.7 ULP, measured on lavapipe over floats of every exponent. Made of additions,
                /// multiplications and integer operations alone: the same bits on every device that rounds to the
                /// nearest and keeps denormals.
                expm1(Expm1) {
                    cost: Rare, codes: [Expm1F32 = 65], cpu: rare::expm1,
                    c: TM_EXPM1 = 26 "e to the power of x, less 1."
                }

                /// The logarithm to base 2; f32. −∞ for zeros, ∞ for ∞; NaN for NaN and for what is below 0. Exact for
                /// powers of two. Denormals count as what they are, on every device.
                ///
                /// # Accuracy
                ///
                /// At most 0.6 ULP, measured on lavapipe over floats of every exponent. Made of additions,
                /// multiplications, integer operations and a division whose error is made good.
                log2(Log2) {
                    cost: Rare, codes: [Log2F32 = 66], cpu: rare::log2,
                    c: TM_LOG2 = 27 "The logarithm to base 2."
                }

                /// The natural logarithm of 1 + x, also where x is small; f32. −∞ for −1, ∞ for ∞; NaN for NaN and for
                /// what is below −1. Zeros and denormals stay what they are.
                ///
                /// # Accuracy
                ///
                /// At most 1.5 ULP, measured on lavapipe over floats of every exponent. Made of additions,
                /// multiplications and integer operations alone: the same bits on every device that rounds to the
                /// nearest and keeps denormals.
                log1p(Log1p) {
                    cost: Rare, codes: [Log1pF32 = 67], cpu: rare::log1p,
                    c: TM_LOG1P = 28 "The natural logarithm of 1 + x."
                }

                /// The hyperbolic sine; f32. ±∞ from ±89.42 on, NaN for NaN; zeros and denormals stay what they are.
                ///
                /// # Accuracy
                ///
                /// At most 1.8 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                sinh(Sinh) {
                    cost: Rare, codes: [SinhF32 = 68], cpu: rare::sinh,
                    c: TM_SINH = 29 "The hyperbolic sine."
                }

                /// The hyperbolic cosine; f32. ∞ from ±89.42 on, 1 for zeros and denormals, NaN for NaN.
                ///
                /// # Accuracy
                ///
                /// At most 1.6 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                cosh(Cosh) {
                    cost: Rare, codes: [CoshF32 = 69], cpu: rare::cosh,
                    c: TM_COSH = 30 "The hyperbolic cosine."
                }

                /// The inverse hyperbolic sine, log(x + √(x² + 1)); f32. ±∞ for ±∞, NaN for NaN; zeros and denormals
                /// stay what they are.
                ///
                /// # Accuracy
                ///
                /// At most 2 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a square root and a division, whose
                /// errors on the device add to it.
                asinh(Asinh) {
                    cost: Rare, codes: [AsinhF32 = 70], cpu: rare::asinh,
                    c: TM_ASINH = 31 "The inverse hyperbolic sine."
                }

                /// The inverse hyperbolic cosine, log(x + √(x² − 1)); f32. 0 for 1, ∞ for ∞; NaN for NaN and for what
                /// is below 1.
                ///
                /// # Accuracy
                ///
                /// At most 2.4 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a square root, whose error on the device
                /// adds to it.
                acosh(Acosh) {
                    cost: Rare, codes: [AcoshF32 = 71], cpu: rare::acosh,
                    c: TM_ACOSH = 32 "The inverse hyperbolic cosine."
                }

                /// The inverse hyperbolic tangent, log((1 + x) / (1 − x)) / 2; f32. ±∞ for ±1; NaN for NaN and for what
                /// is beyond; zeros and denormals stay what they are.
                ///
                /// # Accuracy
                ///
                /// At most 2.2 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                atanh(Atanh) {
                    cost: Rare, codes: [AtanhF32 = 72], cpu: rare::atanh,
                    c: TM_ATANH = 33 "The inverse hyperbolic tangent."
                }

                /// The inverse sine, from −π/2 to π/2; f32. NaN for NaN and for what is beyond ±1; zeros and denormals
                /// stay what they are.
                ///
                /// # Accuracy
                ///
                /// At most 2.6 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a square root, whose error on the device
                /// adds to it.
                asin(Asin) {
                    cost: Rare, codes: [AsinF32 = 73], cpu: rare::asin,
                    c: TM_ASIN = 34 "The inverse sine."
                }

                /// The inverse cosine, from 0 to π; f32. 0 for 1, π for −1; NaN for NaN and for what is beyond.
                ///
                /// # Accuracy
                ///
                /// At most 1.3 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a square root, whose error on the device
                /// adds to it.
                acos(Acos) {
                    cost: Rare, codes: [AcosF32 = 74], cpu: rare::acos,
                    c: TM_ACOS = 35 "The inverse cosine."
                }

                /// The inverse tangent, from −π/2 to π/2; f32. ±π/2 for ±∞, NaN for NaN; zeros and denormals stay what
                /// they are. [`atan2`](crate::Recording::atan2) has the angle of a point.
                ///
                /// # Accuracy
                ///
                /// At most 2.4 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                atan(Atan) {
                    cost: Rare, codes: [AtanF32 = 75], cpu: rare::atan,
                    c: TM_ATAN = 36 "The inverse tangent."
                }

                /// 1 − [`erf`](crate::Recording::erf), without its loss of digits where that is near 1; f32. 2 for −∞,
                /// 0 for ∞ and from 10.06 on, NaN for NaN. Results from 9.2 on are denormal, and 0 where a device has
                /// none.
                ///
                /// # Accuracy
                ///
                /// At most 4.7 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                erfc(Erfc) {
                    cost: Rare, codes: [ErfcF32 = 76], cpu: rare::erfc,
                    c: TM_ERFC = 37 "1 less the error function."
                }
            }
            // One operand, f32; documented as activation functions.
            activations {
                /// The operand where it is above 0, else 0; f32. Exact, on every device: NaN stays NaN, −0 becomes 0,
                /// denormals are kept, ∞ stays and −∞ becomes 0.
                ///
                /// ```
                /// # fn main() -> tidemill::Result<()> {
                /// let gpu = tidemill::Accelerator::global()?;
                /// let x = gpu.upload(&[-1.0f32, 0.5, 2.0], [3])?;
                /// assert_eq!(gpu.run(|r| r.relu(&x))?.read::<f32>()?, [0.0, 0.5, 2.0]);
                /// # Ok(()) }
                /// ```
                relu(Relu) {
                    cost: Plain, codes: [ReluF32 = 41], cpu: |x| math::max(x, 0.0),
                    c: TM_RELU = 13 "The larger of x and 0.", step: TM_STEP_RELU = 7
                }

                /// 1 / (1 + e⁻ˣ); f32. 0 for −∞, 1 for ∞, NaN for NaN; ½ for zeros and denormals. Results below −87.3
                /// are denormal, and 0 where a device has none.
                ///
                /// # Accuracy
                ///
                /// At most 2.5 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                sigmoid(Sigmoid) {
                    cost: Heavy, codes: [SigmoidF32 = 45], cpu: math::sigmoid,
                    c: TM_SIGMOID = 14 "1 / (1 + exp(-x)).", step: TM_STEP_SIGMOID = 8
                }

                /// The hyperbolic tangent; f32. ±1 for ±∞, NaN for NaN; zeros and denormals stay what they are.
                ///
                /// # Accuracy
                ///
                /// At most 1.4 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                tanh(Tanh) {
                    cost: Heavy, codes: [TanhF32 = 46], cpu: math::tanh,
                    c: TM_TANH = 15 "The hyperbolic tangent.", step: TM_STEP_TANH = 9
                }

                /// x / (1 + e⁻ˣ), also called SiLU; f32. −0 for −∞, ∞ for ∞, NaN for NaN; zeros keep their sign.
                /// Denormal operands and results may be zeros on a device without
                /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
                ///
                /// # Accuracy
                ///
                /// At most 2.5 ULP, measured on lavapipe over 2²⁷ floats of every exponent, the tail included. Made of
                /// additions and multiplications, which Vulkan wants correctly rounded, and a division, for which it
                /// guarantees 2.5 ULP.
                swish(Swish) {
                    cost: Heavy, codes: [SwishF32 = 47], cpu: math::swish,
                    c: TM_SWISH = 16 "x * sigmoid(x).", step: TM_STEP_SWISH = 10
                }

                /// The Gaussian error linear unit in its tanh form, x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))); f32.
                /// −0 for −∞, ∞ for ∞, NaN for NaN; zeros keep their sign. Denormal operands and results may be
                /// zeros on a device without [`preserves_denormals`](crate::device::Features::preserves_denormals).
                /// [`gelu_erf`](crate::Recording::gelu_erf) is the
                /// exact form.
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
                /// At most 6 ULP from −1.5 up, measured on lavapipe. Further down, where the result vanishes, the
                /// relative error grows to 200 ULP (2·10⁻⁵, at x = −9.7 and results of 10⁻³⁴): the argument of the
                /// exponential is rounded once too often. Made of additions and multiplications, which Vulkan wants
                /// correctly rounded, and a division, for which it guarantees 2.5 ULP.
                gelu(Gelu) {
                    cost: Heavy, codes: [GeluF32 = 48], cpu: math::gelu,
                    c: TM_GELU = 17 "The Gaussian error linear unit, by tanh.", step: TM_STEP_GELU = 11
                }

                /// The Gaussian error linear unit in its exact form, x/2 · (1 + erf(x / √2)); f32. −0 for −∞, ∞ for ∞,
                /// NaN for NaN; zeros keep their sign. Denormal operands and results may be zeros on a device
                /// without [`preserves_denormals`](crate::device::Features::preserves_denormals).
                ///
                /// # Accuracy
                ///
                /// At most 4.5 ULP, measured on lavapipe over 2²⁷ floats of every exponent, the tail included. Made of
                /// additions and multiplications, which Vulkan wants correctly rounded, and two divisions, for which it
                /// guarantees 2.5 ULP.
                gelu_erf(GeluErf) {
                    cost: Heavy, codes: [GeluErfF32 = 49], cpu: math::gelu_erf,
                    c: TM_GELU_ERF = 18 "The Gaussian error linear unit, by erf.", step: TM_STEP_GELU_ERF = 12
                }

                /// log(1 + eˣ); f32. 0 for −∞, ∞ for ∞, NaN for NaN; log 2 for zeros and denormals. Results below −87.3
                /// are denormal, and 0 where a device has none.
                ///
                /// # Accuracy
                ///
                /// At most 1.8 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions,
                /// multiplications and integer operations alone: the same bits on every device that rounds to the
                /// nearest and keeps denormals.
                softplus(Softplus) {
                    cost: Heavy, codes: [SoftplusF32 = 50], cpu: math::softplus,
                    c: TM_SOFTPLUS = 19 "log(1 + exp(x)).", step: TM_STEP_SOFTPLUS = 13
                }

                /// (x + 3) / 6, but not below 0 and not above 1; f32. 0 for −∞, 1 for ∞, NaN for NaN.
                ///
                /// # Accuracy
                ///
                /// At most 1.5 ULP, measured on lavapipe over floats of every exponent. Made of an addition and a
                /// multiplication, which Vulkan wants correctly rounded.
                hard_sigmoid(HardSigmoid) {
                    cost: Light, codes: [HardSigmoidF32 = 61], cpu: math::hard_sigmoid,
                    c: TM_HARD_SIGMOID = 22 "x / 6 + 1/2, between 0 and 1.", step: TM_STEP_HARD_SIGMOID = 22
                }

                /// x times [`hard_sigmoid`](crate::Recording::hard_sigmoid) of x; f32. −0 from −3 down, x itself from 3
                /// up, NaN for NaN. A device may take denormals for zeros.
                ///
                /// # Accuracy
                ///
                /// At most 2.5 ULP, measured on lavapipe over floats of every exponent. Made of an addition and
                /// multiplications, which Vulkan wants correctly rounded.
                hard_swish(HardSwish) {
                    cost: Light, codes: [HardSwishF32 = 62], cpu: math::hard_swish,
                    c: TM_HARD_SWISH = 23 "x * hard_sigmoid(x).", step: TM_STEP_HARD_SWISH = 23
                }

                /// x / (1 + |x|); f32. ±1 for ±∞, NaN for NaN; zeros keep their sign. A device may take denormals for
                /// zeros.
                ///
                /// # Accuracy
                ///
                /// At most 1.6 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                softsign(Softsign) {
                    cost: Light, codes: [SoftsignF32 = 63], cpu: math::softsign,
                    c: TM_SOFTSIGN = 24 "x / (1 + |x|)."
                }

                /// x · tanh(log(1 + eˣ)); f32. −0 for −∞, ∞ for ∞, NaN for NaN; zeros keep their sign. Denormal
                /// operands and results are what they are on lavapipe; a device may take them for zeros.
                ///
                /// # Accuracy
                ///
                /// At most 4.5 ULP, measured on lavapipe over floats of every exponent. Made of additions and
                /// multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
                /// ULP.
                mish(Mish) {
                    cost: Rare, codes: [MishF32 = 77], cpu: rare::mish,
                    c: TM_MISH = 38 "x * tanh(log(1 + exp(x)))."
                }

                /// 1.0507010 · x above 0, 1.7580993 · (eˣ − 1) below; f32. −1.7580993 for −∞, ∞ for ∞, NaN for NaN;
                /// zeros keep their sign. A device may take denormals for zeros.
                ///
                /// # Accuracy
                ///
                /// At most 2 ULP, measured on lavapipe over floats of every exponent. Made of additions,
                /// multiplications and integer operations alone: the same bits on every device that rounds to the
                /// nearest and keeps denormals.
                selu(Selu) {
                    cost: Rare, codes: [SeluF32 = 78], cpu: rare::selu,
                    c: TM_SELU = 39 "elu(x) with the constants of self-normalising networks."
                }
            }
        }
        // The codes of operations with other operands: `src/ops/` has their methods.
        other_codes {
            Copy = 0 Plain;
            AddF32 = 1 Plain;
            SubF32 = 2 Plain;
            MulF32 = 3 Plain;
            DivF32 = 4 Plain;
            PowF32 = 5 Heavy;
            MinF32 = 6 Light;
            MaxF32 = 7 Light;
            AddInt = 8 Light;
            SubInt = 9 Light;
            MulInt = 10 Light;
            DivI32 = 11 Light;
            DivU32 = 12 Light;
            MinI32 = 13 Light;
            MaxI32 = 14 Light;
            MinU32 = 15 Light;
            MaxU32 = 16 Light;
            EqF32 = 17 Light;
            NeF32 = 18 Light;
            LtF32 = 19 Light;
            LeF32 = 20 Light;
            EqInt = 21 Light;
            NeInt = 22 Light;
            LtI32 = 23 Light;
            LeI32 = 24 Light;
            LtU32 = 25 Light;
            LeU32 = 26 Light;
            Select = 27 Light;
            LeakyReluF32 = 42 Light;
            EluF32 = 43 Heavy;
            ClipF32 = 44 Light;
            F32ToI32 = 54 Light;
            F32ToU32 = 55 Light;
            I32ToF32 = 56 Light;
            U32ToF32 = 57 Light;
            RoundToF16 = 58 Light;
            CeluF32 = 79 Rare;
            Atan2F32 = 80 Rare;
            HypotF32 = 81 Rare;
            FmodF32 = 82 Rare;
            ModuloF32 = 83 Rare;
            CopysignF32 = 84 Light;
            FmodI32 = 85 Rare;
            FmodU32 = 86 Rare;
            ModuloI32 = 87 Rare;
            IsNanF32 = 88 Light;
            IsInfF32 = 89 Light;
            LogicalAnd = 90 Light;
            LogicalOr = 91 Light;
            LogicalXor = 92 Light;
        }
        }
    };
}
