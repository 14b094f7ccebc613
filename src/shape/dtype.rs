//! Element types, and how they lie in memory.

use std::fmt;

/// What a tensor's elements are.
///
/// The types of less than four bytes are packed: two or four elements to a 32-bit word, on every device. Kernels widen
/// them as they load and narrow them as they store: floats compute in f32 and round to the nearest (ties to even),
/// integers compute in 32 bits and wrap. Where an operation says f32, it takes f16 and bf16, too; so i32 stands for i16
/// and i8, and u32 for u16 and u8. Operations other than elementwise ones, matmul and convolutions take a dispatch or
/// two more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// 32-bit IEEE 754 float.
    F32,
    /// 16-bit IEEE 754 float, for storage: operations compute in f32 and round what they store.
    F16,
    /// The upper half of an f32: its range with 8 bits of precision. For storage, as [`F16`](DType::F16).
    Bf16,
    /// 32-bit signed integer.
    I32,
    /// 16-bit signed integer, for storage: operations compute in 32 bits and wrap as they store.
    I16,
    /// 8-bit signed integer, for storage, as [`I16`](DType::I16).
    I8,
    /// 32-bit unsigned integer; also what comparisons (0 or 1) and index results are.
    U32,
    /// 16-bit unsigned integer, for storage, as [`I16`](DType::I16).
    U16,
    /// 8-bit unsigned integer, for storage, as [`I16`](DType::I16).
    U8,
    /// A truth value in a byte: 0 or 1.
    Bool,
}

/// How elements lie in words, by the numbers of `glsl/lib/format.glsl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Format {
    Word = 0,
    F16 = 1,
    Bf16 = 2,
    U16 = 3,
    I16 = 4,
    U8 = 5,
    I8 = 6,
    Bool = 7,
}

impl DType {
    /// Every element type.
    pub const ALL: &'static [DType] = &[
        DType::F32,
        DType::F16,
        DType::Bf16,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::Bool,
    ];

    /// The types whose elements are words, which every operation takes.
    pub(crate) const WORDS: &'static [DType] = &[DType::F32, DType::I32, DType::U32];

    /// The types that are computed with as f32.
    pub(crate) const FLOATS: &'static [DType] = &[DType::F32, DType::F16, DType::Bf16];

    /// What there is to say of a type: its name, how it lies in memory, and what kernels compute with instead.
    const fn row(self) -> (&'static str, Format, DType) {
        match self {
            DType::F32 => ("f32", Format::Word, DType::F32),
            DType::F16 => ("f16", Format::F16, DType::F32),
            DType::Bf16 => ("bf16", Format::Bf16, DType::F32),
            DType::I32 => ("i32", Format::Word, DType::I32),
            DType::I16 => ("i16", Format::I16, DType::I32),
            DType::I8 => ("i8", Format::I8, DType::I32),
            DType::U32 => ("u32", Format::Word, DType::U32),
            DType::U16 => ("u16", Format::U16, DType::U32),
            DType::U8 => ("u8", Format::U8, DType::U32),
            DType::Bool => ("bool", Format::Bool, DType::U32),
        }
    }

    /// The size of one element.
    pub fn size_bytes(self) -> usize {
        match self.format() {
            Format::Word => 4,
            Format::F16 | Format::Bf16 | Format::U16 | Format::I16 => 2,
            Format::U8 | Format::I8 | Format::Bool => 1,
        }
    }

    /// What so many elements take in memory: whole words.
    pub(crate) fn storage_bytes(self, elements: usize) -> u64 {
        (elements.saturating_mul(self.size_bytes()) as u64).next_multiple_of(4)
    }

    pub(crate) fn format(self) -> Format {
        self.row().1
    }

    /// The type with the same numbers, and more, whose elements are words.
    pub(crate) fn wide(self) -> DType {
        self.row().2
    }

    /// Whether several elements share a word.
    pub(crate) fn is_packed(self) -> bool {
        self.format() != Format::Word
    }

    /// Whether it is computed with as f32.
    pub(crate) fn is_float(self) -> bool {
        self.wide() == DType::F32
    }

    /// Whether it is an integer, of whatever size; truth values are none.
    pub(crate) fn is_integer(self) -> bool {
        !self.is_float() && self != DType::Bool
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_the_shader() {
        let source = include_str!("../../glsl/lib/format.glsl");
        for dtype in DType::ALL.iter().filter(|dtype| dtype.is_packed()) {
            let (name, format) = (dtype.to_string().to_uppercase(), dtype.format());
            let line = format!("#define FORMAT_{name} {}\n", format as u32);
            assert!(source.contains(&line), "{line}");
        }
    }

    #[test]
    fn memory_is_whole_words() {
        for (dtype, bytes) in
            [(DType::U8, [0, 4, 4, 8]), (DType::Bf16, [0, 4, 8, 12]), (DType::U32, [0, 4, 16, 20])]
        {
            assert_eq!([0, 1, 4, 5].map(|n| dtype.storage_bytes(n)), bytes, "{dtype}");
        }
    }
}
