//! The upper halves of 32-bit floats.

use std::fmt;

/// The upper half of an f32: what tensors of [`DType::Bf16`](crate::DType::Bf16) are made of. For storage; operations
/// compute in f32.
///
/// Any 16-bit type of the same format can be cast to a slice of these, or from one, with `bytemuck`.
///
/// ```
/// use tidemill::Bf16;
/// let third = Bf16::from_f32(1.0 / 3.0);
/// assert_eq!(third.to_bits(), 0x3eab);
/// assert_eq!(third.to_f32(), 0.33398438);
/// assert_eq!(Bf16::from_f32(f32::MAX).to_f32(), f32::INFINITY);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bf16(u16);

impl Bf16 {
    /// From its bits.
    pub fn from_bits(bits: u16) -> Bf16 {
        Bf16(bits)
    }

    /// Its bits; two are equal if these are.
    pub fn to_bits(self) -> u16 {
        self.0
    }

    /// The nearest, ties to even; from 3.3961776e38 on infinity. Of a NaN the upper bits stay, and it is a quiet one.
    /// As kernels do it, in `glsl/lib/packed_store.glsl`.
    pub fn from_f32(value: f32) -> Bf16 {
        let bits = value.to_bits();
        if value.is_nan() {
            return Bf16((bits >> 16) as u16 | 0x40);
        }
        // Half of the last bit is added, and one less where the last bit is even.
        Bf16(((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16)
    }

    /// The same number.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

#[cfg(feature = "half")]
impl From<half_float::bf16> for Bf16 {
    fn from(number: half_float::bf16) -> Bf16 {
        Bf16(number.to_bits())
    }
}

#[cfg(feature = "half")]
impl From<Bf16> for half_float::bf16 {
    fn from(number: Bf16) -> half_float::bf16 {
        half_float::bf16::from_bits(number.0)
    }
}

impl fmt::Debug for Bf16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_f32(), f)
    }
}

impl From<Bf16> for f32 {
    fn from(number: Bf16) -> f32 {
        number.to_f32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_survives_the_way_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            let number = Bf16::from_bits(bits);
            let back = Bf16::from_f32(number.to_f32());
            if number.to_f32().is_nan() {
                assert_eq!(back.to_bits(), bits | 0x40, "{bits:#x}");
            } else {
                assert_eq!(back, number, "{bits:#x}");
            }
        }
    }

    #[test]
    fn the_nearest_is_taken_and_ties_go_to_even() {
        for bits in 0..0x7f7f_u16 {
            let middle = f32::from_bits(u32::from(bits) << 16 | 0x8000);
            let even = bits + (bits & 1);
            assert_eq!(Bf16::from_f32(middle).to_bits(), even);
            assert_eq!(Bf16::from_f32(middle.next_down()).to_bits(), bits);
            assert_eq!(Bf16::from_f32(middle.next_up()).to_bits(), bits + 1);
            assert_eq!(Bf16::from_f32(-middle).to_bits(), even | 0x8000);
        }
        assert_eq!(Bf16::from_f32(f32::MAX).to_f32(), f32::INFINITY);
        assert_eq!(Bf16::from_f32(f32::from_bits(0x7f80_0001)).to_bits(), 0x7fc0, "a NaN stays one");
    }
}
