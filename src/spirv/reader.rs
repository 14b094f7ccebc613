//! Decodes declarations with rspirv's streaming parser. `resolve` makes the reflection of them.

use std::collections::HashMap;

use rspirv::binary::{Consumer, ParseAction, parse_words};
use rspirv::dr::{Instruction, ModuleHeader, Operand};
use rspirv::spirv::{Decoration, Dim, ExecutionModel, ImageFormat, Op, StorageClass};

use super::{Access, Capability, ReflectError, SpecializationKind};
use crate::shape::DType;

/// Reads a stream that `scan::declarations` has made.
pub(super) fn read(declarations: &[u32]) -> Result<Reader, ReflectError> {
    let mut reader = Reader::default();
    parse_words(declarations, &mut reader)
        .map_err(|state| ReflectError::BadDeclaration(state.to_string()))?;
    Ok(reader)
}

pub(super) type Id = u32;

/// What is known so far. Damaged modules may refer to anything, so every look-up may fail. Types are made of
/// types declared before them and are never declared anew, so following them ends; sizes are computed at the
/// declaration, so that following them is not even needed.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) version: (u8, u8),
    pub(super) capabilities: Vec<Capability>,
    pub(super) entry_points: Vec<(ExecutionModel, Id, String)>,
    pub(super) local_size_modes: Vec<(Id, [LocalSizeOperand; 3])>,
    pub(super) names: HashMap<Id, String>,
    pub(super) decorations: HashMap<Id, Decorations>,
    pub(super) members: HashMap<(Id, u32), Decorations>,
    pub(super) types: HashMap<Id, Type>,
    /// The type of all numbers in a type, if that is one, and one that tensors have.
    pub(super) elements: HashMap<Id, DType>,
    pub(super) constants: HashMap<Id, Constant>,
    pub(super) composites: HashMap<Id, [Id; 3]>,
    pub(super) variables: Vec<(Id, Id)>,
    pub(super) workgroup_size: Option<Id>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum LocalSizeOperand {
    Literal(u32),
    Constant(Id),
}

/// The decorations of an id or of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decorations {
    pub(super) set: Option<u32>,
    pub(super) binding: Option<u32>,
    pub(super) spec_id: Option<u32>,
    pub(super) array_stride: Option<u32>,
    pub(super) matrix_stride: Option<u32>,
    pub(super) offset: Option<u32>,
    pub(super) row_major: bool,
    pub(super) buffer_block: bool,
    pub(super) non_writable: bool,
    pub(super) non_readable: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Type {
    Bool,
    Int { bits: u32, signed: bool },
    Float { bits: u32 },
    Vector { component_bytes: u64, components: u32 },
    Matrix { component_bytes: u64, rows: u32, columns: u32 },
    Array { element: Id, literal_length: Option<u32>, bytes: u64 },
    RuntimeArray { stride: Option<u32> },
    Struct { fixed_bytes: u64, stride: Option<u32>, access: Option<Access> },
    Image { dim: Dim, sampled: u32, format: ImageFormat },
    SampledImage { dim: Dim },
    Sampler,
    Pointer { class: StorageClass, to: Id },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Constant {
    pub(super) bits: u64,
    pub(super) kind: SpecializationKind,
    pub(super) specialized: Option<u32>,
}

impl Consumer for Reader {
    fn initialize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn finalize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_header(&mut self, header: ModuleHeader) -> ParseAction {
        self.version = header.version();
        ParseAction::Continue
    }

    fn consume_instruction(&mut self, instruction: Instruction) -> ParseAction {
        // `None` is a declaration that makes no sense. It stays unknown, and is missed where it is needed.
        let _ = self.take(instruction);
        ParseAction::Continue
    }
}

fn number(operand: Option<&Operand>) -> Option<u32> {
    match operand {
        Some(Operand::LiteralBit32(bits)) => Some(*bits),
        _ => None,
    }
}

fn id(operand: Option<&Operand>) -> Option<Id> {
    match operand {
        Some(Operand::IdRef(id)) => Some(*id),
        _ => None,
    }
}

/// The first three operands that `pick` accepts, if there are that many.
fn three<T>(operands: &[Operand], pick: impl Fn(&Operand) -> Option<T>) -> Option<[T; 3]> {
    let mut picked = operands.iter().filter_map(pick);
    Some([picked.next()?, picked.next()?, picked.next()?])
}

impl Reader {
    fn take(&mut self, mut instruction: Instruction) -> Option<()> {
        let result = instruction.result_id;
        let operands = &mut instruction.operands;
        match instruction.class.opcode {
            Op::Capability => match operands.first()? {
                Operand::Capability(capability) => self.capabilities.push(Capability(*capability as u32)),
                _ => return None,
            },
            Op::EntryPoint => match operands.get_mut(..3)? {
                [Operand::ExecutionModel(model), Operand::IdRef(function), Operand::LiteralString(name)] => {
                    self.entry_points.push((*model, *function, std::mem::take(name)));
                }
                _ => return None,
            },
            Op::ExecutionMode | Op::ExecutionModeId => {
                let entry = id(operands.first())?;
                let sizes = three(operands.get(1..)?, |operand| match operand {
                    Operand::LiteralBit32(size) => Some(LocalSizeOperand::Literal(*size)),
                    Operand::IdRef(id) => Some(LocalSizeOperand::Constant(*id)),
                    _ => None,
                })?;
                self.local_size_modes.push((entry, sizes));
            }
            Op::Name => match operands.get_mut(..2)? {
                [Operand::IdRef(id), Operand::LiteralString(name)] => {
                    self.names.insert(*id, std::mem::take(name));
                }
                _ => return None,
            },
            Op::Decorate => {
                let target = id(operands.first())?;
                if matches!(operands.get(1), Some(Operand::Decoration(Decoration::BuiltIn))) {
                    // The only one that the scan lets through.
                    self.workgroup_size = Some(target);
                } else {
                    self.decorations.entry(target).or_default().add(operands.get(1..)?);
                }
            }
            Op::MemberDecorate => {
                let key = (id(operands.first())?, number(operands.get(1))?);
                self.members.entry(key).or_default().add(operands.get(2..)?);
            }
            Op::Variable => self.variables.push((result?, instruction.result_type?)),
            Op::Constant | Op::SpecConstant | Op::SpecConstantTrue | Op::SpecConstantFalse => {
                let constant = self.constant(&instruction)?;
                self.constants.insert(result?, constant);
            }
            Op::ConstantComposite | Op::SpecConstantComposite => {
                let parts = three(operands, |operand| id(Some(operand)))?;
                self.composites.insert(result?, parts);
            }
            // A pointer that is declared ahead is one to memory at an address; only its size matters.
            Op::TypeForwardPointer => {
                let class = StorageClass::PhysicalStorageBuffer;
                self.types.insert(id(operands.first())?, Type::Pointer { class, to: 0 });
            }
            opcode => {
                let declared = self.declared_type(opcode, result?, operands)?;
                if let Some(element) = self.element(&declared, operands) {
                    self.elements.entry(result?).or_insert(element);
                }
                self.types.entry(result?).or_insert(declared);
            }
        }
        Some(())
    }

    fn constant(&self, instruction: &Instruction) -> Option<Constant> {
        let bits = match (instruction.class.opcode, instruction.operands.first()) {
            (Op::SpecConstantTrue, _) => 1,
            (Op::SpecConstantFalse, _) => 0,
            (_, Some(Operand::LiteralBit32(bits))) => u64::from(*bits),
            (_, Some(Operand::LiteralBit64(bits))) => *bits,
            _ => return None,
        };
        let kind = match self.types.get(&instruction.result_type?)? {
            Type::Bool => SpecializationKind::Bool,
            Type::Int { bits: 32, signed: true } => SpecializationKind::I32,
            Type::Int { bits: 32, signed: false } => SpecializationKind::U32,
            Type::Float { bits: 32 } => SpecializationKind::F32,
            Type::Int { bits, .. } | Type::Float { bits } => SpecializationKind::Other { bits: *bits },
            _ => return None,
        };
        let is_plain = instruction.class.opcode == Op::Constant;
        let decorations = self.decorations.get(&instruction.result_id?);
        let specialized = decorations.and_then(|known| known.spec_id).filter(|_| !is_plain);
        Some(Constant { bits, kind, specialized })
    }

    fn declared_type(&self, opcode: Op, result: Id, operands: &[Operand]) -> Option<Type> {
        let type_at = |index: usize| id(operands.get(index)).and_then(|id| self.types.get(&id).copied());
        let number_at = |index: usize| number(operands.get(index));
        let decorations = self.decorations.get(&result).copied().unwrap_or_default();
        Some(match opcode {
            Op::TypeBool => Type::Bool,
            Op::TypeInt => Type::Int { bits: number_at(0)?, signed: number_at(1)? == 1 },
            Op::TypeFloat => Type::Float { bits: number_at(0)? },
            Op::TypeVector => {
                Type::Vector { component_bytes: type_at(0)?.bytes(None, false), components: number_at(1)? }
            }
            Op::TypeMatrix => match type_at(0)? {
                Type::Vector { component_bytes, components } => {
                    Type::Matrix { component_bytes, rows: components, columns: number_at(1)? }
                }
                _ => return None,
            },
            Op::TypeArray => {
                let element = type_at(0)?;
                let length = id(operands.get(1)).and_then(|id| self.constants.get(&id));
                let element_bytes = match decorations.array_stride {
                    Some(stride) => u64::from(stride),
                    None => element.bytes(None, false),
                };
                let bytes = length.map_or(0, |length| element_bytes.saturating_mul(length.bits));
                let literal = length.filter(|length| length.specialized.is_none());
                let literal_length = literal.and_then(|length| u32::try_from(length.bits).ok());
                Type::Array { element: id(operands.first())?, literal_length, bytes }
            }
            Op::TypeRuntimeArray => Type::RuntimeArray { stride: decorations.array_stride },
            Op::TypeStruct => self.declared_struct(result, operands),
            Op::TypeImage => match operands.get(1..7)? {
                [
                    Operand::Dim(dim),
                    _,
                    _,
                    _,
                    Operand::LiteralBit32(sampled),
                    Operand::ImageFormat(format),
                ] => Type::Image { dim: *dim, sampled: *sampled, format: *format },
                _ => return None,
            },
            Op::TypeSampledImage => match type_at(0)? {
                Type::Image { dim, .. } => Type::SampledImage { dim },
                _ => return None,
            },
            Op::TypeSampler => Type::Sampler,
            Op::TypePointer => match operands.first()? {
                Operand::StorageClass(class) => Type::Pointer { class: *class, to: id(operands.get(1))? },
                _ => return None,
            },
            _ => return None,
        })
    }

    /// The type of all numbers in a type that is being declared.
    fn element(&self, declared: &Type, operands: &[Operand]) -> Option<DType> {
        let part = |operand: &Operand| self.elements.get(&id(Some(operand))?).copied();
        match declared {
            Type::Int { bits: 32, signed } => Some(if *signed { DType::I32 } else { DType::U32 }),
            Type::Float { bits: 32 } => Some(DType::F32),
            Type::Float { bits: 16 } => Some(DType::F16),
            Type::Vector { .. } | Type::Matrix { .. } | Type::Array { .. } | Type::RuntimeArray { .. } => {
                part(operands.first()?)
            }
            Type::Struct { .. } => {
                let first = part(operands.first()?)?;
                operands.iter().all(|member| part(member) == Some(first)).then_some(first)
            }
            _ => None,
        }
    }

    fn declared_struct(&self, result: Id, operands: &[Operand]) -> Type {
        let (mut fixed_bytes, mut stride) = (0, None);
        let (mut reads, mut writes) = (false, false);
        for (index, operand) in (0..).zip(operands) {
            let member = self.members.get(&(result, index)).copied().unwrap_or_default();
            reads |= !member.non_readable;
            writes |= !member.non_writable;
            let offset = u64::from(member.offset.unwrap_or(0));
            let bytes = match id(Some(operand)).and_then(|id| self.types.get(&id)) {
                Some(Type::RuntimeArray { stride: elements }) => {
                    stride = *elements;
                    0
                }
                Some(known) => known.bytes(member.matrix_stride, member.row_major),
                None => 0,
            };
            fixed_bytes = fixed_bytes.max(offset.saturating_add(bytes));
        }
        Type::Struct { fixed_bytes, stride, access: access(reads, writes) }
    }
}

impl Decorations {
    fn add(&mut self, operands: &[Operand]) {
        let value = number(operands.get(1));
        let Some(Operand::Decoration(decoration)) = operands.first() else { return };
        match decoration {
            Decoration::DescriptorSet => self.set = value,
            Decoration::Binding => self.binding = value,
            Decoration::SpecId => self.spec_id = value,
            Decoration::ArrayStride => self.array_stride = value,
            Decoration::MatrixStride => self.matrix_stride = value,
            Decoration::Offset => self.offset = value,
            Decoration::RowMajor => self.row_major = true,
            Decoration::BufferBlock => self.buffer_block = true,
            Decoration::NonWritable => self.non_writable = true,
            Decoration::NonReadable => self.non_readable = true,
            _ => {}
        }
    }
}

impl Type {
    /// What it takes in a block; a matrix's layout is its member's.
    pub(super) fn bytes(self, matrix_stride: Option<u32>, row_major: bool) -> u64 {
        match self {
            Self::Int { bits, .. } | Self::Float { bits } => u64::from(bits / 8),
            Self::Vector { component_bytes, components } => component_bytes.saturating_mul(components.into()),
            Self::Matrix { component_bytes, rows, columns } => {
                let (lines, length) = if row_major { (rows, columns) } else { (columns, rows) };
                let packed = component_bytes.saturating_mul(length.into());
                matrix_stride.map_or(packed, u64::from).saturating_mul(lines.into())
            }
            Self::Array { bytes, .. } => bytes,
            Self::Struct { fixed_bytes, .. } => fixed_bytes,
            // An address.
            Self::Pointer { .. } => 8,
            Self::Bool
            | Self::RuntimeArray { .. }
            | Self::Image { .. }
            | Self::SampledImage { .. }
            | Self::Sampler => 0,
        }
    }
}

/// `None` where neither is allowed: that says nothing about hazards, so nothing is built on it.
pub(super) fn access(reads: bool, writes: bool) -> Option<Access> {
    match (reads, writes) {
        (true, true) => Some(Access::ReadWrite),
        (true, false) => Some(Access::ReadOnly),
        (false, true) => Some(Access::WriteOnly),
        (false, false) => None,
    }
}
