//! The Rust types of elements.

use super::{Bf16, Bool, DType, F16};

mod sealed {
    /// How an element travels as a scalar (the bits that kernels compute with), and as the word of a fill.
    pub trait Sealed: bytemuck::Pod {
        fn scalar_bits(self) -> u32;

        /// The element as often as a word has room for it.
        fn fill_word(self) -> u32 {
            let bytes = bytemuck::bytes_of(&self);
            let byte = |k: usize| bytes.get(k % bytes.len().max(1)).copied().unwrap_or(0);
            u32::from_ne_bytes([byte(0), byte(1), byte(2), byte(3)])
        }
    }
}

/// Rust types that a tensor's elements can be read and written as: `f32`, [`F16`], [`Bf16`], `i32`, `i16`, `i8`, `u32`,
/// `u16`, `u8` and [`Bool`]; with the feature `half` also `half::f16` and `half::bf16`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type of tensors",
    label = "expected `f32`, `F16`, `Bf16`, `i32`, `i16`, `i8`, `u32`, `u16`, `u8` or `Bool`",
    note = "for `f64`, convert to `f32`: `data.iter().map(|&x| x as f32)`",
    note = "for `i64`, `usize` and other wide integers, convert to `i32` or `u32`; `upload_indices` does it for an index list",
    note = "for `bool`, use `Bool`, which can be read from any byte: `data.iter().map(|&x| Bool::from(x))`"
)]
pub trait Element: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// The element type that this Rust type stands for.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty: $dtype:ident, |$x:ident| $bits:expr;)*) => {$(
        impl sealed::Sealed for $type {
            fn scalar_bits(self) -> u32 {
                let $x = self;
                $bits
            }
        }

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    f32: F32, |x| x.to_bits();
    F16: F16, |x| x.to_f32().to_bits();
    Bf16: Bf16, |x| x.to_f32().to_bits();
    i32: I32, |x| x as u32;
    i16: I16, |x| i32::from(x) as u32;
    i8: I8, |x| i32::from(x) as u32;
    u32: U32, |x| x;
    u16: U16, |x| u32::from(x);
    u8: U8, |x| u32::from(x);
    Bool: Bool, |x| u32::from(bool::from(x));
}

#[cfg(feature = "half")]
elements! {
    half_float::f16: F16, |x| F16::from(x).scalar_bits();
    half_float::bf16: Bf16, |x| Bf16::from(x).scalar_bits();
}

#[cfg(test)]
mod tests {
    use super::sealed::Sealed;
    use super::*;

    #[test]
    fn a_word_of_a_fill_is_full() {
        assert_eq!(0x12u8.fill_word(), 0x1212_1212);
        assert_eq!((-2i16).fill_word(), 0xfffe_fffe);
        assert_eq!(F16::from_f32(1.0).fill_word(), 0x3c00_3c00);
        assert_eq!(1.0f32.fill_word(), 0x3f80_0000);
        assert_eq!(((-2i16).scalar_bits(), Bool::TRUE.scalar_bits()), (0xffff_fffe, 1));
    }
}
