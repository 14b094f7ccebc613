//! The types of values: what each instruction asks of its operands.

use std::ops::RangeInclusive;

use rspirv::grammar::INSTRUCTION_TABLE;
use rspirv::spirv::{Capability, Dim, ExecutionModel, ImageFormat, Op, StorageClass};

use rustc_hash::FxHashSet;

use super::super::guard::Refusal;
use super::{Instruction, Module, damaged};

/// A type, looked at closely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Void,
    Bool,
    Int {
        bits: u32,
    },
    Float {
        bits: u32,
    },
    Vector {
        part: u32,
        count: u32,
    },
    Matrix {
        column: u32,
        count: u32,
    },
    Array {
        element: u32,
        length: Option<u32>,
    },
    RuntimeArray {
        element: u32,
    },
    Struct(Vec<u32>),
    Pointer {
        class: StorageClass,
        to: u32,
    },
    /// A texel buffer, with the type of its numbers.
    Texels {
        sampled: u32,
    },
    Function {
        result: u32,
        parameters: Vec<u32>,
    },
    /// Something that is never bound.
    Other,
}

/// What numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Bool,
    Int,
    Float,
}

/// Numbers side by side: what they are, their bits, and how many; one for a scalar.
pub(super) type Numbers = (Base, u32, u32);

impl Module<'_> {
    pub(super) fn type_of_id(&self, id: u32) -> Result<Type, Refusal> {
        let declared = self.get(id)?;
        let at = |k: usize| declared.words.get(k).copied().ok_or_else(|| damaged("a type is cut off"));
        Ok(match declared.op {
            Op::TypeVoid => Type::Void,
            Op::TypeBool => Type::Bool,
            Op::TypeInt => Type::Int { bits: at(2)? },
            Op::TypeFloat => Type::Float { bits: at(2)? },
            Op::TypeVector => Type::Vector { part: at(2)?, count: at(3)? },
            Op::TypeMatrix => Type::Matrix { column: at(2)?, count: at(3)? },
            Op::TypeArray => Type::Array { element: at(2)?, length: self.constant(at(3)?) },
            Op::TypeRuntimeArray => Type::RuntimeArray { element: at(2)? },
            Op::TypeStruct => Type::Struct(declared.words[2..].to_vec()),
            Op::TypePointer => {
                let class =
                    StorageClass::from_u32(at(2)?).ok_or_else(|| damaged("an unknown storage class"))?;
                Type::Pointer { class, to: at(3)? }
            }
            Op::TypeImage if at(3)? == Dim::DimBuffer as u32 => Type::Texels { sampled: at(2)? },
            Op::TypeFunction => {
                Type::Function { result: at(2)?, parameters: declared.words.get(3..).unwrap_or(&[]).to_vec() }
            }
            Op::TypeImage | Op::TypeSampler | Op::TypeSampledImage => Type::Other,
            op => return Err(damaged(format!("Op{op:?} is no type"))),
        })
    }

    /// Whether the module declares a capability.
    pub(super) fn has(&self, capability: Capability) -> bool {
        self.has_any(capability as u32..=capability as u32)
    }

    fn has_any(&self, numbers: RangeInclusive<u32>) -> bool {
        let declared = self.instructions.iter().take_while(|i| i.op == Op::Capability);
        declared.filter_map(|i| i.words.get(1)).any(|number| numbers.contains(number))
    }

    /// The value of a 32-bit constant that nothing can specialize.
    pub(super) fn constant(&self, id: u32) -> Option<u32> {
        let declared = self.get(id).ok().filter(|declared| declared.op == Op::Constant)?;
        declared.words.get(3).copied()
    }

    /// The type of numbers side by side; none for anything else.
    pub(super) fn numbers(&self, id: u32) -> Result<Option<Numbers>, Refusal> {
        Ok(match self.type_of_id(id)? {
            Type::Bool => Some((Base::Bool, 1, 1)),
            Type::Int { bits } => Some((Base::Int, bits, 1)),
            Type::Float { bits } => Some((Base::Float, bits, 1)),
            Type::Vector { part, count } => self.numbers(part)?.map(|(base, bits, _)| (base, bits, count)),
            _ => None,
        })
    }

    /// The type of a value.
    pub(super) fn type_of(&self, value: u32) -> Result<u32, Refusal> {
        self.get(value)?.result_type.ok_or_else(|| damaged(format!("id {value} has no type")))
    }

    /// Checks an instruction's operands, and what it makes of them.
    pub(super) fn check_types(&self, place: usize, i: &Instruction<'_>) -> Result<(), Refusal> {
        if i.op == Op::SpecConstantOp {
            let inner = Op::from_u32(i.words[3]).ok_or_else(|| damaged("an unknown operation"))?;
            let constant = |id: &u32| self.get(*id).is_ok_and(|made| is_constant(made.op));
            let allowed =
                !matches!(inner, Op::AccessChain | Op::InBoundsAccessChain | Op::Load | Op::Variable);
            // As if it stood there by itself, one word further in front.
            let mut words = i.words.to_vec();
            words.remove(3);
            let (result_type, result, ids) = (i.result_type, i.result, i.ids.clone());
            let inner = Instruction { op: inner, words: &words, result_type, result, ids };
            let right = allowed && i.ids.iter().all(constant) && self.rule(&inner)?;
            return if right { Ok(()) } else { Err(wrong(i)) };
        }
        let needs = INSTRUCTION_TABLE.lookup_opcode(i.op as u32).map_or(&[][..], |known| known.capabilities);
        let declared = |needed: &Capability| match needed {
            // It comes with Shader.
            Capability::Matrix => self.has(Capability::Shader),
            needed => self.has(*needed),
        };
        if !needs.is_empty() && !needs.iter().any(declared) {
            return Err(damaged(format!("Op{:?} needs a capability that is not declared: {needs:?}", i.op)));
        }
        let right = if place < self.functions_at { self.declaration(i)? } else { self.rule(i)? };
        if right { Ok(()) } else { Err(wrong(i)) }
    }

    fn declaration(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let result = || i.result_type.ok_or_else(|| wrong(i));
        let at = |k: usize| i.words.get(k).copied().ok_or_else(|| wrong(i));
        Ok(match i.op {
            Op::Source => at(1)? <= 12,
            Op::Capability => at(1)? != Capability::Kernel as u32 && self.has(Capability::Shader),
            Op::MemoryModel => {
                at(1)? == 0 && (at(2)? == 1 || (at(2)? == 3 && self.has(Capability::VulkanMemoryModel)))
            }
            Op::EntryPoint => {
                self.has_variables_for_interface(i)?
                    && at(1)? == ExecutionModel::GLCompute as u32
                    && self.is_entry(i.ids[0])?
            }
            Op::MemberName => {
                let members = match self.type_of_id(at(1)?)? {
                    Type::Struct(members) => members.len(),
                    _ => 0,
                };
                (at(2)? as usize) < members
            }
            Op::TypeImage => self.image_type(i)?,
            Op::ExtInstImport => {
                let name: Vec<u8> = i.words[2..].iter().flat_map(|w| w.to_le_bytes()).collect();
                name.starts_with(b"GLSL.std.450\0")
            }
            Op::TypeInt => self.has_int(at(2)?) && at(3)? <= 1,
            Op::TypeFloat => self.has_float(at(2)?) && i.words.len() == 3,
            Op::TypeVector => {
                let scalar = matches!(self.numbers(at(2)?)?, Some((_, _, 1)));
                scalar
                    && !matches!(self.type_of_id(at(2)?)?, Type::Vector { .. })
                    && (2..=4).contains(&at(3)?)
            }
            Op::TypeMatrix => {
                let column = matches!(self.type_of_id(at(2)?)?, Type::Vector { .. })
                    && matches!(self.numbers(at(2)?)?, Some((Base::Float, ..)));
                column && (2..=4).contains(&at(3)?)
            }
            Op::TypeArray => {
                let length = self.numbers(self.type_of(at(3)?)?)?;
                let positive = self.constant(at(3)?) != Some(0);
                // Of blocks, it is an array of descriptors.
                let element = self.is_sized(at(2)?)? || matches!(self.type_of_id(at(2)?)?, Type::Struct(_));
                element && matches!(length, Some((Base::Int, 32, 1))) && positive
            }
            Op::TypeRuntimeArray => self.is_sized(at(2)?)?,
            Op::TypeStruct => self.struct_type(i)?,
            Op::TypeFunction => {
                let mut fine = true;
                for parameter in &i.ids[1..] {
                    fine &= self.type_of_id(*parameter)? != Type::Void;
                }
                fine
            }
            Op::Constant | Op::SpecConstant => match self.type_of_id(result()?)? {
                Type::Int { bits } | Type::Float { bits } => i.words.len() == 3 + bits.div_ceil(32) as usize,
                _ => false,
            },
            Op::ConstantTrue | Op::ConstantFalse | Op::SpecConstantTrue | Op::SpecConstantFalse => {
                self.type_of_id(result()?)? == Type::Bool
            }
            Op::ConstantComposite | Op::SpecConstantComposite => {
                let constant =
                    |id: &u32| self.get(*id).is_ok_and(|made| is_constant(made.op) || made.op == Op::Undef);
                i.ids.iter().all(constant) && self.is_made_of(result()?, &i.ids)?
            }
            Op::ConstantNull | Op::Undef => self.is_sized(result()?)?,
            Op::Variable => self.is_initialized(i)?,
            _ => true,
        })
    }

    /// Whether what an entry point lists are variables outside of functions, each once.
    fn has_variables_for_interface(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let mut variables = true;
        for id in &i.ids[1..] {
            variables &= self.get(*id)?.op == Op::Variable && self.defined[id] < self.functions_at;
        }
        Ok(variables && i.ids[1..].iter().collect::<FxHashSet<_>>().len() == i.ids.len() - 1)
    }

    fn has_int(&self, bits: u32) -> bool {
        match bits {
            8 => self.has(Capability::Int8) || self.has_any(4448..=4450),
            16 => self.has(Capability::Int16) || self.has_any(4433..=4436),
            32 => true,
            64 => self.has(Capability::Int64),
            _ => false,
        }
    }

    fn has_float(&self, bits: u32) -> bool {
        match bits {
            16 => self.has(Capability::Float16) || self.has_any(4433..=4436),
            32 => true,
            64 => self.has(Capability::Float64),
            _ => false,
        }
    }

    fn image_type(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let at = |k: usize| i.words.get(k).copied().ok_or_else(|| wrong(i));
        let format = ImageFormat::from_u32(at(8)?);
        let plain = matches!(at(8)?, 0..=5 | 21..=24 | 30..=33);
        let known = format.is_some() && (plain || self.has(Capability::StorageImageExtendedFormats));
        let buffer = at(3)? != Dim::DimBuffer as u32
            || (at(5)?, at(6)?) == (0, 0)
                && (self.has(Capability::ImageBuffer) || self.has(Capability::SampledBuffer));
        let scalar = matches!(self.numbers(at(2)?)?, Some((Base::Int | Base::Float, 32, 1)));
        let flags = at(4)? <= 2 && at(5)? <= 1 && at(6)? <= 1 && matches!(at(7)?, 1 | 2);
        Ok(known && buffer && scalar && flags && i.words.len() == 9)
    }

    /// Whether all members have a size; the last may be an array without one.
    fn struct_type(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let mut fine = true;
        for (k, member) in i.ids.iter().enumerate() {
            let last = k + 1 == i.ids.len();
            let runtime = matches!(self.type_of_id(*member)?, Type::RuntimeArray { .. });
            fine &= (last && runtime) || self.is_sized(*member)?;
        }
        Ok(fine)
    }

    /// Whether a variable begins with a constant of its type, or with nothing.
    pub(super) fn is_initialized(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let Some(Type::Pointer { class, to }) = i.result_type.map(|id| self.type_of_id(id)).transpose()?
        else {
            return Ok(false);
        };
        let of_its_own =
            matches!(class, StorageClass::Function | StorageClass::Private | StorageClass::Workgroup);
        if i.words.get(3) != Some(&(class as u32)) || (of_its_own && !self.is_sized(to)?) {
            return Ok(false);
        }
        match i.ids[..] {
            [] => Ok(true),
            [first] => Ok(of_its_own && is_constant(self.get(first)?.op) && self.type_of(first)? == to),
            _ => Ok(false),
        }
    }

    fn is_entry(&self, function: u32) -> Result<bool, Refusal> {
        let function = self.get(function)?;
        let of = function.ids.first().map(|id| self.type_of_id(*id)).transpose()?;
        Ok(match of {
            Some(Type::Function { result, parameters }) => {
                parameters.is_empty() && self.type_of_id(result)? == Type::Void
            }
            _ => false,
        })
    }

    /// Whether a value of it can be in a variable: its size is known by itself.
    pub(super) fn is_sized(&self, id: u32) -> Result<bool, Refusal> {
        Ok(match self.type_of_id(id)? {
            Type::Bool
            | Type::Int { .. }
            | Type::Float { .. }
            | Type::Vector { .. }
            | Type::Matrix { .. } => true,
            Type::Array { element, .. } => self.is_sized(element)?,
            Type::Struct(members) => {
                let mut sized = true;
                for member in members {
                    sized &= self.is_sized(member)?;
                }
                sized
            }
            _ => false,
        })
    }

    /// Whether values of these types make a composite of that one.
    pub(super) fn is_made_of(&self, of: u32, parts: &[u32]) -> Result<bool, Refusal> {
        let mut types = Vec::new();
        for part in parts {
            types.push(self.type_of(*part)?);
        }
        Ok(match self.type_of_id(of)? {
            Type::Vector { part, count } => {
                let wanted = self.numbers(part)?;
                let mut sum = 0;
                for of in types {
                    match self.numbers(of)? {
                        Some((base, bits, count)) if Some((base, bits, 1)) == wanted => sum += count,
                        _ => return Ok(false),
                    }
                }
                sum == count
            }
            Type::Matrix { column, count } => {
                types.len() == count as usize && types.iter().all(|of| *of == column)
            }
            Type::Array { element, length } => {
                let length = length.is_none_or(|length| length as usize == types.len());
                length && types.iter().all(|of| *of == element)
            }
            Type::Struct(members) => types == members,
            _ => false,
        })
    }

    /// The type of a part of a composite, by literal indices.
    pub(super) fn part(&self, of: u32, path: &[u32]) -> Result<Option<u32>, Refusal> {
        let mut of = of;
        for &index in path {
            of = match self.type_of_id(of)? {
                Type::Vector { part, count } if index < count => part,
                Type::Matrix { column, count } if index < count => column,
                Type::Array { element, length: Some(length) } if index < length => element,
                Type::Struct(members) if (index as usize) < members.len() => members[index as usize],
                _ => return Ok(None),
            };
        }
        Ok(Some(of))
    }

    /// What a pointer points to, and where that is.
    pub(super) fn pointee(&self, pointer: u32) -> Result<(StorageClass, u32), Refusal> {
        match self.type_of_id(self.type_of(pointer)?)? {
            Type::Pointer { class, to } => Ok((class, to)),
            _ => Err(damaged(format!("id {pointer} is no pointer"))),
        }
    }

    /// The variable that a pointer leads into, if it is one of the module's own.
    fn variable(&self, pointer: u32) -> Result<Option<u32>, Refusal> {
        let made = self.get(pointer)?;
        match made.op {
            Op::Variable => Ok(Some(pointer)),
            Op::AccessChain | Op::InBoundsAccessChain | Op::ImageTexelPointer | Op::Load | Op::CopyObject => {
                self.variable(made.ids[0])
            }
            _ => Ok(None),
        }
    }

    /// Whether what a pointer or an image leads to may be written: it is declared so, and it is known what it is.
    pub(super) fn is_writable(&self, pointer: u32) -> Result<bool, Refusal> {
        let Some(variable) = self.variable(pointer)? else {
            // A parameter: of variables that belong to the function or the workgroup.
            let class = match self.type_of_id(self.type_of(pointer)?)? {
                Type::Pointer { class, .. } => class,
                _ => return Ok(false),
            };
            return Ok(matches!(
                class,
                StorageClass::Function | StorageClass::Private | StorageClass::Workgroup
            ));
        };
        let (class, mut to) = self.pointee(variable)?;
        if matches!(class, StorageClass::PushConstant | StorageClass::Input) {
            return Ok(false);
        }
        while let Type::Array { element, .. } = self.type_of_id(to)? {
            to = element;
        }
        let read_only = rspirv::spirv::Decoration::NonWritable as u32;
        let buffer_block = rspirv::spirv::Decoration::BufferBlock as u32;
        let decorated = |target: u32, decoration: u32| {
            self.instructions.iter().any(|i| i.op == Op::Decorate && i.words[1..3] == [target, decoration])
        };
        if class == StorageClass::Uniform && !decorated(to, buffer_block) {
            return Ok(false);
        }
        let members = match self.type_of_id(to)? {
            Type::Struct(members) if class != StorageClass::Private && class != StorageClass::Function => {
                members.len()
            }
            _ => 0,
        };
        let marked = |k: usize| {
            let wanted = [to, k as u32, read_only];
            self.instructions.iter().any(|i| i.op == Op::MemberDecorate && i.words[1..4] == wanted)
        };
        Ok(!decorated(variable, read_only) && (members == 0 || !(0..members).all(marked)))
    }
}

pub(super) fn wrong(i: &Instruction<'_>) -> Refusal {
    damaged(format!("the operands of Op{:?} have other types or numbers than it takes", i.op))
}

pub(super) fn is_constant(op: Op) -> bool {
    matches!(
        op,
        Op::Constant
            | Op::ConstantTrue
            | Op::ConstantFalse
            | Op::ConstantComposite
            | Op::ConstantNull
            | Op::SpecConstant
            | Op::SpecConstantTrue
            | Op::SpecConstantFalse
            | Op::SpecConstantComposite
            | Op::SpecConstantOp
    )
}
