//! 16-bit floats, as they are stored.

use std::fmt;

/// An IEEE 754 half-precision float: what tensors of [`DType::F16`](crate::DType::F16) are made of. For storage;
/// operations compute in f32.
///
/// Any 16-bit type of the same format can be cast to a slice of these, or from one, with `bytemuck`.
///
/// ```
/// use tidemill::F16;
/// let third = F16::from_f32(1.0 / 3.0);
/// assert_eq!(third.to_bits(), 0x3555);
/// assert_eq!(third.to_f32(), 0.33325195);
/// assert_eq!(F16::from_f32(65_520.0).to_f32(), f32::INFINITY);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct F16(u16);

impl F16 {
    /// From its bits.
    pub fn from_bits(bits: u16) -> F16 {
        F16(bits)
    }

    /// Its bits; two are equal if these are.
    pub fn to_bits(self) -> u16 {
        self.0
    }

    /// The nearest, ties to even; from 65,520 on infinity. As kernels do it, in `glsl/lib/f16_load.glsl`.
    pub fn from_f32(value: f32) -> F16 {
        let bits = value.to_bits();
        let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
        let half = match magnitude {
            0x7f80_0001.. => 0x7e00,
            0x477f_f000.. => 0x7c00,
            // Half of the last bit is added, and one less where the last bit is even.
            0x3880_0000.. => ((magnitude - 0x3800_0000 + 0x0fff + ((magnitude >> 13) & 1)) >> 13) as u16,
            // In the sum with 0.5 the last bit is that of the smallest half.
            _ => ((f32::from_bits(magnitude) + 0.5).to_bits() - 0x3f00_0000) as u16,
        };
        F16(sign | half)
    }

    /// The same number.
    pub fn to_f32(self) -> f32 {
        let (sign, magnitude) = (u32::from(self.0 & 0x8000) << 16, u32::from(self.0 & 0x7fff));
        let bits = match magnitude {
            0x7c00.. => 0x7f80_0000 | (magnitude & 0x3ff) << 13,
            0x0400.. => (magnitude << 13) + 0x3800_0000,
            _ => (magnitude as f32 * 2f32.powi(-24)).to_bits(),
        };
        f32::from_bits(sign | bits)
    }
}

#[cfg(feature = "half")]
impl From<half_float::f16> for F16 {
    fn from(number: half_float::f16) -> F16 {
        F16(number.to_bits())
    }
}

#[cfg(feature = "half")]
impl From<F16> for half_float::f16 {
    fn from(number: F16) -> half_float::f16 {
        half_float::f16::from_bits(number.0)
    }
}

impl fmt::Debug for F16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_f32(), f)
    }
}

impl From<F16> for f32 {
    fn from(half: F16) -> f32 {
        half.to_f32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            let half = F16::from_bits(bits);
            let back = F16::from_f32(half.to_f32());
            if half.to_f32().is_nan() {
                assert!(back.to_f32().is_nan());
            } else {
                assert_eq!(back, half, "{bits:#x}");
            }
        }
    }

    #[test]
    fn the_nearest_is_taken_and_ties_go_to_even() {
        for bits in 0..0x7bff_u16 {
            let (low, high) = (F16(bits).to_f32(), F16(bits + 1).to_f32());
            let middle = (low + high) / 2.0;
            let even = bits + (bits & 1);
            assert_eq!(F16::from_f32(middle).to_bits(), even);
            assert_eq!(F16::from_f32(middle.next_down()).to_bits(), bits);
            assert_eq!(F16::from_f32(middle.next_up()).to_bits(), bits + 1);
            assert_eq!(F16::from_f32(-middle).to_bits(), even | 0x8000);
        }
        assert_eq!(F16::from_f32(65_519.996).to_f32(), 65_504.0);
        assert_eq!(F16::from_f32(65_520.0).to_f32(), f32::INFINITY);
        assert_eq!(F16::from_f32(1e-30).to_bits(), 0);
    }
}
