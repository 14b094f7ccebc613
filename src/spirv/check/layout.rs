//! How blocks lie in memory. Indices are clamped by lengths, so strides and offsets must be what they say.

use rspirv::spirv::{BuiltIn, Decoration, ExecutionMode, Op, StorageClass};
use rustc_hash::FxHashMap;

use super::super::guard::Refusal;
use super::types::{Base, Type, is_constant};
use super::{Module, damaged};

/// Decorations of an id, or of a member: (decoration, first literal).
type Decorated = FxHashMap<(u32, Option<u32>), Vec<(u32, u32)>>;

impl Module<'_> {
    pub(super) fn check_layouts(&self) -> Result<(), Refusal> {
        let mut decorated = Decorated::default();
        for instruction in &self.instructions {
            let (target, rest) = match (instruction.op, instruction.words) {
                (Op::Decorate, [_, target, rest @ ..]) => ((*target, None), rest),
                (Op::MemberDecorate, [_, target, member, rest @ ..]) => ((*target, Some(*member)), rest),
                _ => continue,
            };
            let (Some(&decoration), value) = (rest.first(), rest.get(1).copied().unwrap_or(0)) else {
                continue;
            };
            check_decoration(decoration, rest.len())?;
            self.check_target(target, decoration)?;
            let size = BuiltIn::WorkgroupSize as u32;
            let constant = self.get(target.0)?.op != Op::Variable;
            if decoration == Decoration::BuiltIn as u32 && constant != (value == size) {
                return Err(damaged("a constant is a built-in variable"));
            }
            decorated.entry(target).or_default().push((decoration, value));
        }
        for instruction in &self.instructions[..self.functions_at] {
            match instruction.op {
                Op::Variable => self.check_variable(instruction, &decorated)?,
                Op::ExecutionMode | Op::ExecutionModeId => {
                    let mode = instruction.words.get(2).copied().unwrap_or(u32::MAX);
                    let known = [ExecutionMode::LocalSize as u32, ExecutionMode::LocalSizeId as u32];
                    if !known.contains(&mode) || instruction.words.len() != 6 {
                        return Err(format!("has the execution mode {mode}"));
                    }
                    let entry = self.instructions.iter().find(|i| i.op == Op::EntryPoint);
                    if entry.and_then(|entry| entry.ids.first()) != instruction.ids.first() {
                        return Err(damaged("an execution mode is for no entry point"));
                    }
                    for &id in &instruction.ids[1..] {
                        if !is_constant(self.get(id)?.op)
                            || self.numbers(self.type_of(id)?)? != Some((Base::Int, 32, 1))
                        {
                            return Err(damaged("a local size is no constant"));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Decorations are on what they are for.
    fn check_target(&self, (target, member): (u32, Option<u32>), decoration: u32) -> Result<(), Refusal> {
        let on = self.get(target)?.op;
        let decoration = Decoration::from_u32(decoration);
        let right = match (member, decoration) {
            (Some(member), decoration) => {
                let members = match self.type_of_id(target)? {
                    Type::Struct(members) => members.len(),
                    _ => 0,
                };
                let for_members = matches!(
                    decoration,
                    Some(
                        Decoration::Offset
                            | Decoration::MatrixStride
                            | Decoration::RowMajor
                            | Decoration::ColMajor
                            | Decoration::NonWritable
                            | Decoration::NonReadable
                            | Decoration::Coherent
                            | Decoration::Volatile
                            | Decoration::Restrict
                            | Decoration::RelaxedPrecision
                    )
                );
                (member as usize) < members && for_members
            }
            (None, Some(Decoration::Binding | Decoration::DescriptorSet)) => on == Op::Variable,
            (None, Some(Decoration::SpecId)) => {
                matches!(on, Op::SpecConstant | Op::SpecConstantTrue | Op::SpecConstantFalse)
            }
            (None, Some(Decoration::Block)) => on == Op::TypeStruct,
            // Newer modules have a storage class instead.
            (None, Some(Decoration::BufferBlock)) => on == Op::TypeStruct && self.version <= 0x0001_0300,
            (None, Some(Decoration::ArrayStride)) => {
                matches!(on, Op::TypeArray | Op::TypeRuntimeArray | Op::TypePointer)
            }
            (None, Some(Decoration::BuiltIn)) => {
                matches!(on, Op::Variable | Op::ConstantComposite | Op::SpecConstantComposite)
            }
            (
                None,
                Some(
                    Decoration::NonWritable
                    | Decoration::NonReadable
                    | Decoration::Restrict
                    | Decoration::Aliased
                    | Decoration::RestrictPointer
                    | Decoration::AliasedPointer
                    | Decoration::Coherent
                    | Decoration::Volatile,
                ),
            ) => matches!(on, Op::Variable | Op::FunctionParameter),
            (
                None,
                Some(
                    Decoration::Offset
                    | Decoration::MatrixStride
                    | Decoration::RowMajor
                    | Decoration::ColMajor
                    | Decoration::Alignment,
                ),
            ) => false,
            (None, _) => self.get(target)?.result_type.is_some(),
        };
        if right { Ok(()) } else { Err(damaged(format!("{decoration:?} is on what it is not for"))) }
    }

    fn check_variable(
        &self,
        variable: &super::Instruction<'_>,
        decorated: &Decorated,
    ) -> Result<(), Refusal> {
        let (Some(pointer), Some(id)) = (variable.result_type, variable.result) else {
            return Err(damaged("a variable has no type"));
        };
        let Type::Pointer { class, mut to } = self.type_of_id(pointer)? else {
            return Err(damaged("a variable is no pointer"));
        };
        if variable.words.get(3) != Some(&(class as u32)) {
            return Err(damaged("a variable and its pointer disagree about the storage class"));
        }
        let has = |target: (u32, Option<u32>), wanted: Decoration| -> bool {
            decorated.get(&target).is_some_and(|all| all.iter().any(|(d, _)| *d == wanted as u32))
        };
        let bound = matches!(
            class,
            StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::UniformConstant
        );
        if bound && !(has((id, None), Decoration::Binding) && has((id, None), Decoration::DescriptorSet)) {
            return Err(damaged("a resource has no number"));
        }
        match class {
            StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::PushConstant => {
                while let Type::Array { element, .. } = self.type_of_id(to)? {
                    to = element;
                }
                let block = has((to, None), Decoration::Block) || has((to, None), Decoration::BufferBlock);
                if !block {
                    return Err(damaged("a buffer is no block"));
                }
                let uniform = class == StorageClass::Uniform && !has((to, None), Decoration::BufferBlock);
                self.laid_out_bytes(to, (to, None), decorated, [true, uniform]).map(drop)
            }
            StorageClass::Input => {
                let builtin = decorated.get(&(id, None)).into_iter().flatten();
                let mut builtin =
                    builtin.filter(|(d, _)| *d == Decoration::BuiltIn as u32).map(|(_, value)| *value);
                let Some(builtin) = builtin.next_back().and_then(BuiltIn::from_u32) else {
                    return Err("has an input that is no built-in variable".to_owned());
                };
                let wanted = match builtin {
                    BuiltIn::GlobalInvocationId
                    | BuiltIn::LocalInvocationId
                    | BuiltIn::WorkgroupId
                    | BuiltIn::NumWorkgroups => 3,
                    BuiltIn::LocalInvocationIndex
                    | BuiltIn::SubgroupSize
                    | BuiltIn::SubgroupLocalInvocationId
                    | BuiltIn::SubgroupId
                    | BuiltIn::NumSubgroups => 1,
                    BuiltIn::SubgroupEqMask
                    | BuiltIn::SubgroupGeMask
                    | BuiltIn::SubgroupGtMask
                    | BuiltIn::SubgroupLeMask
                    | BuiltIn::SubgroupLtMask => 4,
                    other => return Err(format!("has the built-in variable {other:?}")),
                };
                match self.numbers(to)? {
                    Some((Base::Int, 32, count)) if count == wanted => Ok(()),
                    _ => Err(damaged(format!("{builtin:?} has another type"))),
                }
            }
            StorageClass::UniformConstant
            | StorageClass::Workgroup
            | StorageClass::Private
            | StorageClass::Function => Ok(()),
            other => Err(format!("has a variable in the storage class {other:?}")),
        }
    }

    /// What a type takes in a block, by the decorations of the member that it is (or of the type itself).
    fn laid_out_bytes(
        &self,
        of: u32,
        member: (u32, Option<u32>),
        decorated: &Decorated,
        [outermost, uniform]: [bool; 2],
    ) -> Result<u64, Refusal> {
        // Uniform buffers have their arrays, matrices and structures at multiples of 16 bytes.
        let step = |of: u32| -> Result<u64, Refusal> {
            let scalar = self.scalar_bytes(of)?;
            let single = self.numbers(of)?.is_some();
            Ok(if uniform && !single { scalar.max(16) } else { scalar })
        };
        let value = |target: (u32, Option<u32>), wanted: Decoration| {
            let all = decorated.get(&target)?;
            all.iter()
                .find(|(decoration, _)| *decoration == wanted as u32)
                .map(|(_, value)| u64::from(*value))
        };
        let missing = |what: &str| damaged(format!("a block has a member without {what}"));
        Ok(match self.type_of_id(of)? {
            Type::Struct(members) => {
                let mut end = 0u64;
                for (k, &part) in members.iter().enumerate() {
                    let place = (of, Some(k as u32));
                    let offset = value(place, Decoration::Offset).ok_or_else(|| missing("an offset"))?;
                    let runtime = matches!(self.type_of_id(part)?, Type::RuntimeArray { .. });
                    if runtime && !(outermost && k + 1 == members.len()) {
                        return Err(damaged("an array without a length is not at the end of its block"));
                    }
                    let bytes = self.laid_out_bytes(part, place, decorated, [false, uniform])?;
                    if !offset.is_multiple_of(step(part)?) {
                        return Err(damaged("a block's member lies between two words"));
                    }
                    if runtime && offset < end {
                        return Err(damaged("an array without a length lies over what comes before it"));
                    }
                    end = end.max(offset.saturating_add(bytes));
                }
                end
            }
            Type::Array { element, .. } | Type::RuntimeArray { element } => {
                let stride = value((of, None), Decoration::ArrayStride).ok_or_else(|| missing("a stride"))?;
                let bytes = self.laid_out_bytes(element, member, decorated, [false, uniform])?;
                let apart = if uniform { step(element)?.max(16) } else { step(element)? };
                if stride < bytes.max(1) || !stride.is_multiple_of(apart) {
                    return Err(damaged(format!("elements of {bytes} bytes lie {stride} bytes apart")));
                }
                match self.type_of_id(of)? {
                    Type::Array { length: Some(length), .. } => stride.saturating_mul(length.into()),
                    // `guard` refuses lengths that are not known.
                    _ => 0,
                }
            }
            Type::Matrix { column, count } => {
                let Type::Vector { count: rows, .. } = self.type_of_id(column)? else {
                    return Err(damaged("a matrix has no columns"));
                };
                let stride = value(member, Decoration::MatrixStride).ok_or_else(|| missing("a stride"))?;
                let row_major = value(member, Decoration::RowMajor).is_some();
                let (lines, length) = if row_major { (rows, count) } else { (count, rows) };
                let scalar = self.scalar_bytes(column)?;
                if stride < scalar * u64::from(length) || !stride.is_multiple_of(scalar) {
                    return Err(damaged("a matrix' lines lie over each other"));
                }
                stride * u64::from(lines)
            }
            _ => match self.numbers(of)? {
                Some((Base::Int | Base::Float, bits, count)) => u64::from(bits / 8) * u64::from(count),
                _ => return Err("has a block with something in it that is no number".to_owned()),
            },
        })
    }

    /// The bytes of the widest number in a type.
    fn scalar_bytes(&self, of: u32) -> Result<u64, Refusal> {
        Ok(match self.type_of_id(of)? {
            Type::Struct(members) => {
                let mut most = 1;
                for member in members {
                    most = most.max(self.scalar_bytes(member)?);
                }
                most
            }
            Type::Array { element, .. } | Type::RuntimeArray { element } => self.scalar_bytes(element)?,
            Type::Matrix { column, .. } => self.scalar_bytes(column)?,
            _ => self.numbers(of)?.map_or(1, |(_, bits, _)| u64::from(bits / 8).max(1)),
        })
    }
}

/// Refuses decorations that are not for kernels, or not whole.
fn check_decoration(decoration: u32, words: usize) -> Result<(), Refusal> {
    let wanted = match Decoration::from_u32(decoration) {
        Some(
            Decoration::SpecId
            | Decoration::ArrayStride
            | Decoration::MatrixStride
            | Decoration::BuiltIn
            | Decoration::Binding
            | Decoration::DescriptorSet
            | Decoration::Offset
            | Decoration::Alignment,
        ) => 2,
        Some(
            Decoration::RelaxedPrecision
            | Decoration::Block
            | Decoration::BufferBlock
            | Decoration::RowMajor
            | Decoration::ColMajor
            | Decoration::Restrict
            | Decoration::RestrictPointer
            | Decoration::Aliased
            | Decoration::AliasedPointer
            | Decoration::Volatile
            | Decoration::Coherent
            | Decoration::NonWritable
            | Decoration::NonReadable
            | Decoration::NonUniform
            | Decoration::NoSignedWrap
            | Decoration::NoUnsignedWrap
            | Decoration::NoContraction
            | Decoration::Uniform,
        ) => 1,
        Some(other) => return Err(format!("has the decoration {other:?}")),
        None => return Err(format!("has an unknown decoration, number {decoration}")),
    };
    if words == wanted { Ok(()) } else { Err(damaged("a decoration has another number of words")) }
}
