//! The first look at a module: is it whole, and which of its instructions are worth decoding.

use rspirv::spirv::{BuiltIn, Decoration, ExecutionMode, MAGIC_NUMBER, Op, StorageClass};

use super::ReflectError;

const HEADER_WORDS: usize = 5;

/// The header and those declarations that reflection reads, as a stream of SPIR-V of its own.
///
/// Reflection would work on the module as it is. The selection is made because rspirv 0.13 panics on strings
/// that are cut off and on some `OpSpecConstantOp`, refuses others of them that are valid and every
/// instruction and decoration newer than itself, and spends most of its time on what is of no use here.
/// Lengths are checked over the whole module: drivers trust them.
pub(super) fn declarations(words: &[u32]) -> Result<Vec<u32>, ReflectError> {
    if words.len() < HEADER_WORDS {
        return Err(ReflectError::TooShort { words: words.len() });
    }
    let (header, mut rest) = words.split_at(HEADER_WORDS);
    match header[0] {
        MAGIC_NUMBER => {}
        found if found == MAGIC_NUMBER.swap_bytes() => return Err(ReflectError::ByteSwapped),
        found => return Err(ReflectError::BadMagic { found }),
    }
    let mut selected = header.to_vec();
    let mut in_functions = false;
    let mut last = None;
    while let Some(first) = rest.first() {
        let claimed = (first >> 16) as usize;
        if claimed == 0 || claimed > rest.len() {
            let left = rest.len();
            return Err(ReflectError::BadInstruction { word: words.len() - left, claimed, left });
        }
        let (instruction, following) = rest.split_at(claimed);
        last = Op::from_u32(first & 0xffff);
        in_functions |= last == Some(Op::Function);
        if !in_functions && last.is_some_and(|op| is_wanted(op, instruction)) {
            selected.extend_from_slice(instruction);
        }
        rest = following;
    }
    if last == Some(Op::FunctionEnd) {
        Ok(selected)
    } else {
        Err(ReflectError::Truncated { words: words.len() })
    }
}

fn is_wanted(op: Op, instruction: &[u32]) -> bool {
    let word = |index: usize| instruction.get(index).copied();
    match op {
        Op::Capability | Op::EntryPoint | Op::Name => true,
        Op::TypeBool | Op::TypeInt | Op::TypeFloat | Op::TypeVector | Op::TypeMatrix => true,
        Op::TypeImage | Op::TypeSampler | Op::TypeSampledImage => true,
        Op::TypeArray | Op::TypeRuntimeArray | Op::TypeStruct => true,
        Op::Constant | Op::ConstantComposite => true,
        Op::SpecConstantTrue | Op::SpecConstantFalse | Op::SpecConstant | Op::SpecConstantComposite => true,
        Op::ExecutionMode => word(2) == Some(ExecutionMode::LocalSize as u32),
        Op::ExecutionModeId => word(2) == Some(ExecutionMode::LocalSizeId as u32),
        Op::Decorate => is_wanted_decoration(word(2), word(3)),
        Op::MemberDecorate => is_wanted_decoration(word(3), word(4)),
        Op::TypePointer | Op::TypeForwardPointer => {
            let class = word(2);
            is_resource(class) || class == Some(StorageClass::PhysicalStorageBuffer as u32)
        }
        Op::Variable => is_resource(word(3)),
        _ => false,
    }
}

fn is_wanted_decoration(decoration: Option<u32>, value: Option<u32>) -> bool {
    match decoration.and_then(Decoration::from_u32) {
        Some(Decoration::BuiltIn) => value == Some(BuiltIn::WorkgroupSize as u32),
        Some(
            Decoration::SpecId
            | Decoration::BufferBlock
            | Decoration::RowMajor
            | Decoration::ArrayStride
            | Decoration::MatrixStride
            | Decoration::NonWritable
            | Decoration::NonReadable
            | Decoration::Binding
            | Decoration::DescriptorSet
            | Decoration::Offset,
        ) => true,
        _ => false,
    }
}

fn is_resource(class: Option<u32>) -> bool {
    matches!(
        class.and_then(StorageClass::from_u32),
        Some(
            StorageClass::UniformConstant
                | StorageClass::Uniform
                | StorageClass::StorageBuffer
                | StorageClass::PushConstant
        )
    )
}
