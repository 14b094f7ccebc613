//! Operations of two operands.

use super::elementwise::Codes;
use crate::error::Result;
use crate::ir::elementwise::OpCode;
use crate::runtime::operand::IntoOperand;
use crate::runtime::recording::{Recording, Value};

/// What these operations have in common stands once.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident: $codes:expr;)*) => {
        /// # Operations of two operands
        ///
        /// Shapes broadcast as in NumPy: they are aligned at the last dimension, and an extent of 1 (or one that is
        /// missing) repeats. The operands have one element type, which is the result's, too. Either side may be a
        /// number: `r.sub(1.0, &x)`.
        impl Recording {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shapes`](crate::Error::Shapes) with the extents that disagree,
            /// [`Error::Type`](crate::Error::Type) if the operands' types differ or the operation has no such type.
            pub fn $name<'a>(
                &self,
                lhs: impl IntoOperand<'a>,
                rhs: impl IntoOperand<'a>,
            ) -> Result<Value> {
                self.binary(stringify!($name), $codes, lhs.into(), rhs.into(), false, None)
            }
        )*}
    };
}

binary! {
    /// `lhs + rhs`; f32, i32, u32. Integers wrap. Operands of different shapes broadcast as in NumPy.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// let row = gpu.upload(&[10.0f32, 20.0, 30.0], [3])?;
    /// let y = gpu.run(|r| r.add(&x, &row))?;
    /// assert_eq!(y.read::<f32>()?, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
    ///
    /// let short = gpu.upload(&[1.0f32, 2.0], [2])?;
    /// let refused = gpu.run(|r| r.add(&x, &short)).unwrap_err();
    /// assert_eq!(refused.to_string(), "add: lhs [2, 3] and rhs [2]: 3 != 2 in dimension 1");
    /// # Ok(()) }
    /// ```
    ///
    /// NaN, infinities and signed zeros as in IEEE 754 on lavapipe; Vulkan does not promise NaN and the signs of zeros.
    /// Denormals may be zeros on a device without
    /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
    ///
    /// # Accuracy
    ///
    /// Correctly rounded, to the nearest on lavapipe (½ ULP). Vulkan wants it correctly rounded, in a mode of the
    /// device's choice.
    add: Codes::all(OpCode::AddF32, OpCode::AddInt, OpCode::AddInt);

    /// `lhs - rhs`; f32, i32, u32. Integers wrap.
    ///
    /// NaN, infinities and signed zeros as in IEEE 754 on lavapipe; Vulkan does not promise NaN and the signs of zeros.
    /// Denormals may be zeros on a device without
    /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
    ///
    /// # Accuracy
    ///
    /// Correctly rounded, to the nearest on lavapipe (½ ULP). Vulkan wants it correctly rounded, in a mode of the
    /// device's choice.
    sub: Codes::all(OpCode::SubF32, OpCode::SubInt, OpCode::SubInt);

    /// `lhs * rhs`; f32, i32, u32. Integers wrap.
    ///
    /// NaN, infinities and signed zeros as in IEEE 754 on lavapipe; Vulkan does not promise NaN and the signs of zeros.
    /// Denormals may be zeros on a device without
    /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
    ///
    /// # Accuracy
    ///
    /// Correctly rounded, to the nearest on lavapipe (½ ULP). Vulkan wants it correctly rounded, in a mode of the
    /// device's choice.
    mul: Codes::all(OpCode::MulF32, OpCode::MulInt, OpCode::MulInt);

    /// `lhs / rhs`; f32, i32, u32.
    ///
    /// f32: NaN, infinities and zeros as in IEEE 754 (1 / −0 = −∞, 0 / 0 is NaN). Denormals may be zeros on a device
    /// without [`preserves_denormals`](crate::device::Features::preserves_denormals). Integers are cut towards zero; a
    /// division by 0 gives 0, and `i32::MIN / -1` wraps to `i32::MIN`.
    ///
    /// # Accuracy
    ///
    /// At most ½ ULP on lavapipe; Vulkan guarantees 2.5 ULP for divisors from 2⁻¹²⁶ to 2¹²⁶.
    div: Codes::all(OpCode::DivF32, OpCode::DivI32, OpCode::DivU32);

    /// `lhs` to the power of `rhs`; f32.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[2.0f32, -2.0, 9.0], [3])?;
    /// let y = gpu.upload(&[10.0f32, 3.0, 0.5], [3])?;
    /// let p = gpu.run(|r| r.pow(&x, &y))?;
    /// assert_eq!(p.read::<f32>()?, [1024.0, -8.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// Special values are those of [`f32::powf`] and C: 1 to any power and anything to the power of 0 are 1, NaN
    /// included; a negative number to a power that is not an integer is NaN; zeros and infinities keep their sign for
    /// odd integers only. Denormal operands and results may be zeros on a device without
    /// [`preserves_denormals`](crate::device::Features::preserves_denormals).
    ///
    /// # Accuracy
    ///
    /// At most 5 ULP, measured on lavapipe with powers of every size; 1.2 ULP for exponents as small as 1.5. Made of
    /// additions and multiplications, which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5
    /// ULP, whose error is made good.
    pow: Codes::f32(OpCode::PowF32);

    /// The smaller of the two; f32, i32, u32.
    ///
    /// If either is NaN the result is NaN, as NumPy's `minimum` has it; −0 is below +0. Exact, denormals included,
    /// on every device: it goes by the bits.
    min: Codes::all(OpCode::MinF32, OpCode::MinI32, OpCode::MinU32);

    /// The larger of the two; f32, i32, u32.
    ///
    /// If either is NaN the result is NaN, as NumPy's `maximum` has it; +0 is above −0. Exact, denormals included,
    /// on every device: it goes by the bits.
    max: Codes::all(OpCode::MaxF32, OpCode::MaxI32, OpCode::MaxU32);

    /// The remainder of `lhs / rhs` with the sign of `lhs`, as C's `fmod` and Rust's `%` have it; f32, i32, u32.
    ///
    /// Exact, on every device: it goes by the bits. f32: NaN if `rhs` is 0 or `lhs` is infinite; `lhs` itself if `rhs`
    /// is infinite. Integers: 0 if `rhs` is 0.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let (x, y) = (gpu.upload(&[7i32, -7, 7], [3])?, gpu.upload(&[3i32, 3, -3], [3])?);
    /// assert_eq!(gpu.run(|r| r.fmod(&x, &y))?.read::<i32>()?, [1, -1, 1]);
    /// assert_eq!(gpu.run(|r| r.modulo(&x, &y))?.read::<i32>()?, [1, 2, -2]);
    /// # Ok(()) }
    /// ```
    fmod: Codes::all(OpCode::FmodF32, OpCode::FmodI32, OpCode::FmodU32);

    /// The remainder of `lhs / rhs` with the sign of `rhs`, as NumPy's `mod` and Python's `%` have it; f32, i32, u32.
    ///
    /// f32: NaN if `rhs` is 0 or `lhs` is infinite; a zero has the sign of `rhs`. Integers: 0 if `rhs` is 0.
    ///
    /// # Accuracy
    ///
    /// That of one addition, ½ ULP, where the signs differ; exact elsewhere.
    modulo: Codes::all(OpCode::ModuloF32, OpCode::ModuloI32, OpCode::FmodU32);

    /// The angle of the point (`rhs`, `lhs`), from −π to π: `y.atan2(x)`; f32.
    ///
    /// Zeros and infinities as in C: the signs of zeros count, and of infinities only the signs count.
    /// NaN if either is NaN. A device may take denormals for zeros.
    ///
    /// # Accuracy
    ///
    /// At most 2.4 ULP, measured on lavapipe over floats of every exponent. Made of additions and multiplications,
    /// which Vulkan wants correctly rounded, and a division, for which it guarantees 2.5 ULP.
    atan2: Codes::f32(OpCode::Atan2F32);

    /// √(lhs² + rhs²), without overflow in between; f32. ∞ if either is infinite, else NaN if either is NaN.
    ///
    /// # Accuracy
    ///
    /// At most 1.3 ULP, measured on lavapipe over floats of every exponent. Made of additions and multiplications,
    /// which Vulkan wants correctly rounded, and a square root, whose error on the device adds to it.
    hypot: Codes::f32(OpCode::HypotF32);

    /// The magnitude of `lhs` with the sign of `rhs`, that of zeros and NaN included; f32. Exact, on every device.
    copysign: Codes::f32(OpCode::CopysignF32);
}
