//! Operations of one operand.

use super::elementwise::Codes;
use crate::error::Result;
use crate::ir::elementwise::OpCode;
use crate::runtime::recording::{Operand, Recording, Value};

/// What these operations have in common stands once.
macro_rules! unary {
    ($title:literal; $($(#[$doc:meta])* $name:ident: $codes:expr;)*) => {
        #[doc = $title]
        impl Recording {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Type`](crate::Error::Type) if the operation has no such element type.
            pub fn $name<'a>(&mut self, operand: impl Into<Operand<'a>>) -> Result<Value> {
                self.unary(stringify!($name), $codes, operand.into(), &[])
            }
        )*}
    };
}
pub(super) use unary;

unary! { "# Operations of one operand\n\nWhat is said of floats, here and with the other operations, was measured on lavapipe, which rounds to \
the nearest (ties to even) and keeps denormals, NaN and the signs of zeros. Vulkan itself wants additions, subtractions, \
multiplications and conversions correctly rounded but leaves the mode of rounding to the device, and lets it take denormals for \
zeros and lose a NaN or the sign of a zero, unless a shader asks for float controls (`RoundingModeRTE`, `DenormPreserve`, \
`SignedZeroInfNanPreserve`). Not every device has those, and our shaders don't ask: what must hold everywhere goes by the bits, as \
integers, and the text then says: on every device.";
    /// The operand with the other sign; f32, i32. `-i32::MIN` wraps. Exact, on every device: NaN stays NaN, denormals are kept,
    /// 0 becomes −0, infinities change their sign.
    neg: Codes::signed(OpCode::NegF32, OpCode::NegI32);

    /// The magnitude; f32, i32. That of `i32::MIN` wraps to itself. Exact, on every device: NaN stays NaN, denormals are kept,
    /// −0 becomes 0, −∞ becomes ∞.
    abs: Codes::signed(OpCode::AbsF32, OpCode::AbsI32);

    /// 1 for what is above 0, −1 for what is below; f32, i32. Zeros keep their sign, NaN stays NaN, and denormals
    /// count as what they are, on every device; ±1 for ±∞.
    sign: Codes::signed(OpCode::SignF32, OpCode::SignI32);

    /// The largest integer that is not above; f32. Exact, as Vulkan guarantees. NaN, infinities and −0 stay what they are; a
    /// device may take denormals for zeros.
    floor: Codes::f32(OpCode::FloorF32);

    /// The smallest integer that is not below; f32. Exact, as Vulkan guarantees. NaN, infinities and −0 stay what they are,
    /// and what lies between −1 and 0 becomes −0; a device may take denormals for zeros.
    ceil: Codes::f32(OpCode::CeilF32);

    /// The nearest integer, of two the even one (2.5 becomes 2, as [`f32::round_ties_even`] and NumPy have it); f32.
    /// Exact, as Vulkan guarantees. NaN, infinities and −0 stay what they are, and what lies between −½ and 0 becomes −0; a
    /// device may take denormals for zeros.
    round: Codes::f32(OpCode::RoundF32);

    /// The square root; f32. √−0 = −0, √∞ = ∞; NaN for NaN and for what is below 0. Denormals count as what they are on
    /// lavapipe; a device may take them for zeros.
    ///
    /// # Accuracy
    ///
    /// At most ½ ULP on lavapipe. Vulkan derives it from a division (2.5 ULP) and an inverse square root (2
    /// ULP).
    sqrt: Codes::f32(OpCode::SqrtF32);

    /// 1 over the square root; f32. ∞ for 0, −∞ for −0, 0 for ∞; NaN for NaN and for what is below 0. Denormals count as
    /// what they are on lavapipe; a device may take them for zeros.
    ///
    /// # Accuracy
    ///
    /// At most 1.5 ULP on lavapipe over 2²⁷ floats of every exponent; Vulkan guarantees 2 ULP.
    rsqrt: Codes::f32(OpCode::RsqrtF32);

    /// 1 over the operand; f32. ±∞ for ±0, ±0 for ±∞, NaN for NaN. A device may take denormals for zeros, and make zeros of
    /// results that would be denormal.
    ///
    /// # Accuracy
    ///
    /// At most ½ ULP on lavapipe; Vulkan guarantees 2.5 ULP for magnitudes from 2⁻¹²⁶ to 2¹²⁶.
    recip: Codes::f32(OpCode::RecipF32);

    /// e to the power of the operand; f32. 0 for −∞, ∞ from 88.73 on, NaN for NaN; denormal results where the device
    /// has them.
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
    /// At most 1 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions, multiplications
    /// and integer operations alone: the same bits on every device that rounds to the nearest and keeps denormals.
    /// (Vulkan's own is good to 3 + 2·|x| ULP.)
    exp: Codes::f32(OpCode::ExpF32);

    /// The natural logarithm; f32. −∞ for zeros, ∞ for ∞; NaN for NaN and for what is below 0. Denormals count as what
    /// they are, on every device.
    ///
    /// # Accuracy
    ///
    /// At most 0.9 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of additions,
    /// multiplications and integer operations alone: the same bits on every device that rounds to the nearest. (Vulkan's
    /// own is good to 3 ULP outside [½, 2], and to 2⁻²¹ inside.)
    log: Codes::f32(OpCode::LogF32);

    /// The sine of an angle in radians; f32, at every magnitude. Zeros and denormals stay what they are, on every device; NaN
    /// for NaN and for infinities.
    ///
    /// # Accuracy
    ///
    /// At most 1.6 ULP, measured on lavapipe over 2²⁷ floats of every exponent, multiples of π and the largest
    /// numbers included. Made of additions, multiplications and integer operations alone: the same
    /// bits on every device that rounds to the nearest. (Vulkan's own is good to 2⁻¹¹ within [−π, π], and undefined
    /// elsewhere.)
    sin: Codes::f32(OpCode::SinF32);

    /// The cosine of an angle in radians; f32, at every magnitude. 1 for zeros and denormals, NaN for NaN and for infinities.
    ///
    /// # Accuracy
    ///
    /// At most 1.6 ULP, measured on lavapipe over 2²⁷ floats of every exponent. Made of the same operations as
    /// [`sin`](Recording::sin).
    cos: Codes::f32(OpCode::CosF32);
}
