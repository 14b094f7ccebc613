//! Puts the reflection together from what `reader` has read.

use rspirv::spirv::{Dim, ExecutionModel, ImageFormat, StorageClass};

use super::reader::{Id, LocalSizeOperand, Reader, Type, access};
use super::{Access, Binding, BindingKind, LocalSize, ReflectError, Reflection, Specialization, TexelFormat};
use crate::shape::DType;

impl Reader {
    pub(super) fn finish(mut self) -> Result<Reflection, ReflectError> {
        let (function, entry_point) = self.entry_point()?;
        let local_size = self.local_size(function, &entry_point)?;
        let mut bindings = Vec::<Binding>::new();
        let mut push_constant_bytes = 0;
        for (variable, pointer) in std::mem::take(&mut self.variables) {
            let Some(Type::Pointer { class, to }) = self.types.get(&pointer).copied() else { continue };
            if class == StorageClass::PushConstant {
                let bytes = self.types.get(&to).map_or(0, |block| block.bytes(None, false));
                push_constant_bytes = push_constant_bytes.max(narrow(bytes.saturating_add(3) & !3));
            } else {
                bindings.push(self.binding(variable, class, to)?);
            }
        }
        Ok(Reflection {
            entry_point,
            bindings: merge(bindings)?,
            push_constant_bytes,
            local_size,
            specializations: self.specializations(),
            capabilities: self.capabilities,
            version: self.version,
        })
    }

    fn entry_point(&mut self) -> Result<(Id, String), ReflectError> {
        let mut all = std::mem::take(&mut self.entry_points);
        if all.len() > 1 {
            return Err(ReflectError::ManyEntryPoints {
                names: all.into_iter().map(|(_, _, name)| name).collect(),
            });
        }
        match all.pop() {
            Some((ExecutionModel::GLCompute, function, name)) => Ok((function, name)),
            Some((model, _, name)) => {
                Err(ReflectError::NoComputeEntryPoint { found: format!("`{name}` is for {model:?}") })
            }
            None => Err(ReflectError::NoComputeEntryPoint { found: "there is none of any kind".to_owned() }),
        }
    }

    fn local_size(&self, function: Id, entry_point: &str) -> Result<[LocalSize; 3], ReflectError> {
        // The decorated constant goes before the execution modes, so the specification says.
        let decorated = self.workgroup_size.and_then(|id| self.composites.get(&id));
        let mode = self.local_size_modes.iter().find(|(entry, _)| *entry == function);
        let operands = decorated
            .map(|parts| parts.map(LocalSizeOperand::Constant))
            .or(mode.map(|(_, operands)| *operands))
            .ok_or_else(|| ReflectError::NoLocalSize { entry_point: entry_point.to_owned() })?;
        let mut sizes = [LocalSize::Literal(1); 3];
        for ((size, operand), axis) in sizes.iter_mut().zip(operands).zip(['x', 'y', 'z']) {
            let known = match operand {
                LocalSizeOperand::Literal(size) => Some((size, None)),
                LocalSizeOperand::Constant(id) => self
                    .constants
                    .get(&id)
                    .and_then(|known| Some((u32::try_from(known.bits).ok()?, known.specialized))),
            };
            *size = match known {
                Some((default, Some(id))) if default > 0 => LocalSize::Specialized { id, default },
                Some((size, None)) if size > 0 => LocalSize::Literal(size),
                _ => return Err(ReflectError::BadLocalSize { entry_point: entry_point.to_owned(), axis }),
            };
        }
        Ok(sizes)
    }

    fn binding(&self, variable: Id, class: StorageClass, declared: Id) -> Result<Binding, ReflectError> {
        let decorations = self.decorations.get(&variable).copied().unwrap_or_default();
        let own_name = self.names.get(&variable).filter(|name| !name.is_empty());
        let (Some(set), Some(binding)) = (decorations.set, decorations.binding) else {
            return Err(ReflectError::Unnumbered { name: own_name.cloned().unwrap_or_default() });
        };
        let unsized_array = || ReflectError::UnsizedDescriptorArray {
            set,
            binding,
            name: own_name.cloned().unwrap_or_default(),
        };
        let (mut declared, mut count) = (declared, 1_u32);
        loop {
            match self.types.get(&declared) {
                Some(Type::Array { element, literal_length, .. }) => {
                    let length = literal_length.filter(|length| *length > 0);
                    count = length.and_then(|length| count.checked_mul(length)).ok_or_else(unsized_array)?;
                    declared = *element;
                }
                Some(Type::RuntimeArray { .. }) => return Err(unsized_array()),
                _ => break,
            }
        }
        let block = self.types.get(&declared).copied();
        let kind = self.kind(class, declared);
        let access = match (kind, block) {
            (BindingKind::UniformTexel | BindingKind::UniformBuffer { .. }, _) => Access::ReadOnly,
            (BindingKind::StorageBuffer { .. }, Some(Type::Struct { access: Some(access), .. })) => {
                access.without(decorations.non_readable, decorations.non_writable)
            }
            _ => Access::ReadWrite.without(decorations.non_readable, decorations.non_writable),
        };
        let name = own_name.or(self.names.get(&declared)).cloned().unwrap_or_default();
        let element = match kind {
            BindingKind::StorageTexel { format } => texel_element(format),
            _ => self.elements.get(&declared).copied(),
        };
        Ok(Binding { set, binding, kind, element, access, count, name })
    }

    fn kind(&self, class: StorageClass, declared: Id) -> BindingKind {
        let is_storage = class == StorageClass::StorageBuffer
            || self.decorations.get(&declared).is_some_and(|known| known.buffer_block);
        match self.types.get(&declared) {
            Some(Type::Struct { fixed_bytes, stride, .. }) if is_storage => {
                BindingKind::StorageBuffer { fixed_bytes: narrow(*fixed_bytes), stride: *stride }
            }
            Some(Type::Struct { fixed_bytes, .. }) => {
                BindingKind::UniformBuffer { bytes: narrow(*fixed_bytes) }
            }
            Some(Type::Image { dim: Dim::DimBuffer, sampled: 2, format }) => {
                BindingKind::StorageTexel { format: texel_format(*format) }
            }
            Some(Type::Image { dim: Dim::DimBuffer, .. } | Type::SampledImage { dim: Dim::DimBuffer }) => {
                BindingKind::UniformTexel
            }
            Some(Type::Image { dim: Dim::DimSubpassData, .. }) => BindingKind::Other("input attachment"),
            Some(Type::Image { sampled: 2, .. }) => BindingKind::Other("storage image"),
            Some(Type::Image { .. }) => BindingKind::Other("sampled image"),
            Some(Type::SampledImage { .. }) => BindingKind::Other("image with a sampler"),
            Some(Type::Sampler) => BindingKind::Other("sampler"),
            _ => BindingKind::Other("resource of an unknown type"),
        }
    }

    fn specializations(&mut self) -> Vec<Specialization> {
        let mut all = Vec::new();
        for (result, constant) in &self.constants {
            if let Some(id) = constant.specialized {
                let name = self.names.remove(result).unwrap_or_default();
                let found = Specialization { id, kind: constant.kind, default_bits: constant.bits, name };
                all.push((*result, found));
            }
        }
        // Compilers repeat a local size's constant for gl_WorkGroupSize, and a kernel may give it a name on
        // top: one with a name stays, else the first in the module.
        all.sort_unstable_by_key(|(result, found)| (found.id, found.name.is_empty(), *result));
        let mut all = all.into_iter().map(|(_, found)| found).collect::<Vec<_>>();
        all.dedup_by_key(|specialization| specialization.id);
        all
    }
}

impl Access {
    fn without(self, reading: bool, writing: bool) -> Self {
        access(self.reads() && !reading, self.writes() && !writing).unwrap_or(self)
    }
}

/// Sorts bindings, and makes one of several declarations for the same place.
fn merge(mut bindings: Vec<Binding>) -> Result<Vec<Binding>, ReflectError> {
    bindings.sort_by_key(|binding| (binding.set, binding.binding));
    let mut merged = Vec::<Binding>::with_capacity(bindings.len());
    for binding in bindings {
        let known = match merged.last_mut() {
            Some(known) if (known.set, known.binding) == (binding.set, binding.binding) => known,
            _ => {
                merged.push(binding);
                continue;
            }
        };
        let kind = match (known.kind, binding.kind) {
            (
                BindingKind::StorageBuffer { fixed_bytes, stride },
                BindingKind::StorageBuffer { fixed_bytes: other_bytes, stride: other_stride },
            ) => {
                let fixed_bytes = fixed_bytes.max(other_bytes);
                Some(BindingKind::StorageBuffer {
                    fixed_bytes,
                    stride: stride.filter(|_| stride == other_stride),
                })
            }
            (BindingKind::UniformBuffer { bytes }, BindingKind::UniformBuffer { bytes: other }) => {
                Some(BindingKind::UniformBuffer { bytes: bytes.max(other) })
            }
            (one, other) => Some(one).filter(|_| one == other),
        };
        let Some(kind) = kind.filter(|_| known.count == binding.count) else {
            let say = |binding: &Binding| format!("{} x {}", binding.count, binding.kind);
            let (first, second) = (say(known), say(&binding));
            return Err(ReflectError::Conflict { set: binding.set, binding: binding.binding, first, second });
        };
        known.kind = kind;
        known.element = known.element.filter(|_| known.element == binding.element);
        if known.access != binding.access {
            known.access = Access::ReadWrite;
        }
        if known.name.is_empty() {
            known.name = binding.name;
        }
    }
    Ok(merged)
}

/// The type of a texel's numbers, if tensors have it.
fn texel_element(format: TexelFormat) -> Option<DType> {
    match format {
        TexelFormat::Rgba32f | TexelFormat::Rg32f | TexelFormat::R32f => Some(DType::F32),
        TexelFormat::Rgba16f | TexelFormat::R16f => Some(DType::F16),
        TexelFormat::Rgba32i | TexelFormat::R32i => Some(DType::I32),
        TexelFormat::Rgba32ui | TexelFormat::Rg32ui | TexelFormat::R32ui => Some(DType::U32),
        TexelFormat::Rgba8ui | TexelFormat::Unstated | TexelFormat::Other(_) => None,
    }
}

fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn texel_format(format: ImageFormat) -> TexelFormat {
    match format {
        ImageFormat::Unknown => TexelFormat::Unstated,
        ImageFormat::Rgba32f => TexelFormat::Rgba32f,
        ImageFormat::Rgba16f => TexelFormat::Rgba16f,
        ImageFormat::Rg32f => TexelFormat::Rg32f,
        ImageFormat::R32f => TexelFormat::R32f,
        ImageFormat::R16f => TexelFormat::R16f,
        ImageFormat::Rgba32i => TexelFormat::Rgba32i,
        ImageFormat::R32i => TexelFormat::R32i,
        ImageFormat::Rgba32ui => TexelFormat::Rgba32ui,
        ImageFormat::Rgba8ui => TexelFormat::Rgba8ui,
        ImageFormat::Rg32ui => TexelFormat::Rg32ui,
        ImageFormat::R32ui => TexelFormat::R32ui,
        other => TexelFormat::Other(other as u32),
    }
}
