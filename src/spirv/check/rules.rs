//! Rules of the instructions inside functions: their operands and results.

use rspirv::spirv::{Capability, GlslStd450Op, Op, StorageClass};

use super::super::guard::Refusal;
use super::types::{Base, Numbers, Type, is_constant, wrong};
use super::{Instruction, Module, damaged};

/// An instruction inside a function, with what its operands are asked for.
struct Use<'a, 'm> {
    module: &'a Module<'m>,
    i: &'a Instruction<'a>,
}

impl Module<'_> {
    /// Whether an instruction inside a function is right; an error if it has no place in a kernel that is made safe.
    pub(super) fn rule(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let used = Use { module: self, i };
        let groups = [
            Use::control,
            Use::integers,
            Use::floats_and_truths,
            Use::conversions,
            Use::composites,
            Use::memory,
            Use::synchronization,
            Use::library,
        ];
        for group in groups {
            if let Some(right) = group(&used)? {
                return Ok(right);
            }
        }
        Err(format!("has the instruction Op{:?}", i.op))
    }
}

/// Each group gives `None` for an instruction that is another's.
impl Use<'_, '_> {
    /// Functions, blocks and what goes between them.
    fn control(&self) -> Result<Option<bool>, Refusal> {
        let i = self.i;
        let ids = &self.i.ids;
        Ok(Some(match self.i.op {
            Op::Line | Op::NoLine | Op::Nop | Op::Label | Op::FunctionParameter | Op::FunctionEnd => true,
            Op::FunctionCall
            | Op::Return
            | Op::ReturnValue
            | Op::Unreachable
            | Op::Branch
            | Op::LoopMerge => true,
            // What is asked of the compiler has a few bits.
            Op::Function => i.words.get(3).is_some_and(|control| *control <= 0xf),
            Op::SelectionMerge => i.words.get(2).is_some_and(|control| *control <= 3),
            Op::BranchConditional => {
                self.module.type_of_id(self.of(0)?)? == Type::Bool && i.words.len() == 4 && ids[1] != ids[2]
            }
            Op::Switch => self.int(0)?,
            Op::Variable => {
                let local = i.words.get(3) == Some(&(StorageClass::Function as u32));
                local && self.module.is_initialized(i)?
            }
            Op::Undef => self.module.is_sized(self.result()?)?,
            Op::Phi => {
                let mut same = self.module.is_sized(self.result()?)?;
                for k in (0..ids.len()).step_by(2) {
                    same &= self.of(k)? == self.result()?;
                }
                same
            }
            Op::CopyObject => self.of(0)? == self.result()?,
            _ => return Ok(None),
        }))
    }

    /// Whole numbers, and comparisons of them.
    fn integers(&self) -> Result<Option<bool>, Refusal> {
        Ok(Some(match self.i.op {
            Op::IAdd | Op::ISub | Op::IMul | Op::UDiv | Op::SDiv | Op::UMod | Op::SRem | Op::SMod => {
                self.all_are(Base::Int)?
            }
            Op::SNegate | Op::Not | Op::BitwiseOr | Op::BitwiseXor | Op::BitwiseAnd | Op::BitReverse => {
                self.all_are(Base::Int)?
            }
            Op::BitCount => self.converts(Base::Int, Base::Int)?,
            Op::ShiftRightLogical | Op::ShiftRightArithmetic | Op::ShiftLeftLogical => {
                let (a, b) = (self.operand(0)?, self.operand(1)?);
                let count = |of: Option<Numbers>| of.filter(|of| of.0 == Base::Int).map(|of| of.2);
                self.made()? == a && count(a).is_some() && count(a) == count(b)
            }
            Op::BitFieldInsert => {
                let same = self.made()? == self.operand(0)? && self.made()? == self.operand(1)?;
                same && matches!(self.made()?, Some((Base::Int, ..))) && self.int(2)? && self.int(3)?
            }
            Op::BitFieldSExtract | Op::BitFieldUExtract => {
                self.made()? == self.operand(0)?
                    && matches!(self.made()?, Some((Base::Int, ..)))
                    && self.int(1)?
                    && self.int(2)?
            }
            Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended => {
                let pair = Type::Struct(vec![self.of(0)?, self.of(0)?]);
                self.of(0)? == self.of(1)?
                    && matches!(self.operand(0)?, Some((Base::Int, ..)))
                    && self.module.type_of_id(self.result()?)? == pair
            }
            Op::IEqual | Op::INotEqual | Op::UGreaterThan | Op::SGreaterThan | Op::UGreaterThanEqual => {
                self.compares(Base::Int)?
            }
            Op::SGreaterThanEqual
            | Op::ULessThan
            | Op::SLessThan
            | Op::ULessThanEqual
            | Op::SLessThanEqual => self.compares(Base::Int)?,
            _ => return Ok(None),
        }))
    }

    /// Floats and truths, and comparisons of floats.
    fn floats_and_truths(&self) -> Result<Option<bool>, Refusal> {
        Ok(Some(match self.i.op {
            Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FRem | Op::FMod | Op::FNegate => {
                self.all_are(Base::Float)?
            }
            Op::LogicalOr | Op::LogicalAnd | Op::LogicalNot | Op::LogicalEqual | Op::LogicalNotEqual => {
                self.all_are(Base::Bool)?
            }
            Op::Any | Op::All => {
                self.module.type_of_id(self.result()?)? == Type::Bool
                    && matches!(self.operand(0)?, Some((Base::Bool, _, 2..)))
            }
            Op::FOrdEqual | Op::FUnordEqual | Op::FOrdNotEqual | Op::FUnordNotEqual | Op::FOrdLessThan => {
                self.compares(Base::Float)?
            }
            Op::FUnordLessThan | Op::FOrdGreaterThan | Op::FUnordGreaterThan | Op::FOrdLessThanEqual => {
                self.compares(Base::Float)?
            }
            Op::FUnordLessThanEqual | Op::FOrdGreaterThanEqual | Op::FUnordGreaterThanEqual => {
                self.compares(Base::Float)?
            }
            Op::IsNan | Op::IsInf => self.compares(Base::Float)?,
            _ => return Ok(None),
        }))
    }

    /// From one type to another, and choices.
    fn conversions(&self) -> Result<Option<bool>, Refusal> {
        Ok(Some(match self.i.op {
            Op::ConvertFToU | Op::ConvertFToS => self.converts(Base::Float, Base::Int)?,
            Op::ConvertSToF | Op::ConvertUToF => self.converts(Base::Int, Base::Float)?,
            Op::UConvert | Op::SConvert => self.converts(Base::Int, Base::Int)?,
            Op::FConvert | Op::QuantizeToF16 => self.converts(Base::Float, Base::Float)?,
            Op::Bitcast => {
                let bits = |of: Option<Numbers>| of.filter(|of| of.0 != Base::Bool).map(|of| of.1 * of.2);
                bits(self.made()?).is_some() && bits(self.made()?) == bits(self.operand(0)?)
            }
            Op::Select => {
                let chosen = self.operand(0)?;
                let count = self.made()?.map_or(1, |of| of.2);
                let fits = chosen == Some((Base::Bool, 1, 1)) || chosen == Some((Base::Bool, 1, count));
                fits && self.module.is_sized(self.result()?)?
                    && self.of(1)? == self.result()?
                    && self.of(2)? == self.result()?
            }
            _ => return Ok(None),
        }))
    }

    /// Vectors, matrices and other composites.
    fn composites(&self) -> Result<Option<bool>, Refusal> {
        let i = self.i;
        let ids = &self.i.ids;
        Ok(Some(match self.i.op {
            Op::VectorTimesScalar => {
                let scalar = self.made()?.map(|(base, bits, _)| (base, bits, 1));
                self.made()? == self.operand(0)?
                    && matches!(self.made()?, Some((Base::Float, _, 2..)))
                    && self.operand(1)? == scalar
            }
            Op::Dot => {
                let part = self.operand(0)?.map(|(base, bits, _)| (base, bits, 1));
                self.of(0)? == self.of(1)?
                    && matches!(self.operand(0)?, Some((Base::Float, _, 2..)))
                    && self.made()? == part
            }
            Op::MatrixTimesScalar
            | Op::VectorTimesMatrix
            | Op::MatrixTimesVector
            | Op::MatrixTimesMatrix
            | Op::OuterProduct
            | Op::Transpose => self.module.matrices(i)?,
            Op::CompositeConstruct => self.module.is_made_of(self.result()?, ids)?,
            Op::CompositeExtract => self.module.part(self.of(0)?, &i.words[4..])? == Some(self.result()?),
            Op::CompositeInsert => {
                self.of(1)? == self.result()?
                    && self.module.part(self.of(1)?, &i.words[5..])? == Some(self.of(0)?)
            }
            Op::VectorShuffle => {
                let (Some(a), Some(b), Some(c)) = (self.operand(0)?, self.operand(1)?, self.made()?) else {
                    return Ok(Some(false));
                };
                let places = &i.words[5..];
                (a.0, a.1, b.0, b.1) == (c.0, c.1, c.0, c.1)
                    && a.2.min(b.2) > 1
                    && places.len() == c.2 as usize
                    && places.iter().all(|place| *place < a.2 + b.2)
            }
            Op::VectorExtractDynamic => {
                matches!(self.module.type_of_id(self.of(0)?)?, Type::Vector { part, .. } if part == self.result()?)
                    && self.int(1)?
            }
            Op::VectorInsertDynamic => {
                let part = matches!(self.module.type_of_id(self.of(0)?)?, Type::Vector { part, .. } if part == self.of(1)?);
                part && self.of(0)? == self.result()? && self.int(2)?
            }
            _ => return Ok(None),
        }))
    }

    /// Loads, stores, and ways to what is loaded.
    fn memory(&self) -> Result<Option<bool>, Refusal> {
        let i = self.i;
        let ids = &self.i.ids;
        Ok(Some(match self.i.op {
            Op::Load => {
                let (_, to) = self.module.pointee(ids[0])?;
                let image = matches!(self.module.type_of_id(to)?, Type::Texels { .. });
                to == self.result()? && (image || self.module.is_sized(to)?)
            }
            Op::Store => {
                let (_, to) = self.module.pointee(ids[0])?;
                to == self.of(1)? && self.module.is_sized(to)? && self.module.is_writable(ids[0])?
            }
            Op::AccessChain | Op::InBoundsAccessChain => self.module.chain(i)?,
            Op::ArrayLength => {
                let (_, to) = self.module.pointee(ids[0])?;
                let Type::Struct(members) = self.module.type_of_id(to)? else { return Ok(Some(false)) };
                let last = members.last().map(|id| self.module.type_of_id(*id)).transpose()?;
                let counted = i.words.get(4).is_some_and(|k| *k as usize + 1 == members.len());
                counted
                    && matches!(last, Some(Type::RuntimeArray { .. }))
                    && self.made()? == Some((Base::Int, 32, 1))
            }
            Op::ImageRead | Op::ImageWrite | Op::ImageQuerySize | Op::ImageTexelPointer => {
                self.module.image(i)?
            }
            _ => return Ok(None),
        }))
    }

    /// Barriers and atomics.
    fn synchronization(&self) -> Result<Option<bool>, Refusal> {
        let i = self.i;
        Ok(Some(match self.i.op {
            Op::ControlBarrier => self.scope(0)? && self.scope(1)? && self.order(2)?,
            Op::MemoryBarrier => self.scope(0)? && self.order(1)?,
            Op::AtomicLoad | Op::AtomicIIncrement | Op::AtomicIDecrement => {
                self.module.atomic(i, 0)? && self.scope(1)? && self.order(2)?
            }
            Op::AtomicStore => self.module.atomic(i, 1)? && self.scope(1)? && self.order(2)?,
            Op::AtomicCompareExchange => {
                self.module.atomic(i, 2)? && self.scope(1)? && self.order(2)? && self.order(3)?
            }
            Op::AtomicExchange
            | Op::AtomicIAdd
            | Op::AtomicISub
            | Op::AtomicSMin
            | Op::AtomicUMin
            | Op::AtomicSMax
            | Op::AtomicUMax
            | Op::AtomicAnd
            | Op::AtomicOr
            | Op::AtomicXor
            | Op::AtomicFAddEXT
            | Op::AtomicFMinEXT
            | Op::AtomicFMaxEXT => self.module.atomic(i, 1)? && self.scope(1)? && self.order(2)?,
            _ => return Ok(None),
        }))
    }

    /// The extended instructions, and those of subgroups.
    fn library(&self) -> Result<Option<bool>, Refusal> {
        let i = self.i;
        let ids = &self.i.ids;
        Ok(Some(match self.i.op {
            Op::ExtInst => self.module.glsl(i)?,
            op if format!("{op:?}").starts_with("GroupNonUniform") => {
                self.module.constant(ids[0]) == Some(3) && self.module.subgroup(i)?
            }
            _ => return Ok(None),
        }))
    }

    fn id(&self, k: usize) -> Result<u32, Refusal> {
        self.i.ids.get(k).copied().ok_or_else(|| wrong(self.i))
    }

    fn result(&self) -> Result<u32, Refusal> {
        self.i.result_type.ok_or_else(|| wrong(self.i))
    }

    fn made(&self) -> Result<Option<Numbers>, Refusal> {
        self.module.numbers(self.result()?)
    }

    fn of(&self, k: usize) -> Result<u32, Refusal> {
        self.module.type_of(self.id(k)?)
    }

    fn operand(&self, k: usize) -> Result<Option<Numbers>, Refusal> {
        self.module.numbers(self.of(k)?)
    }

    fn all_are(&self, base: Base) -> Result<bool, Refusal> {
        let wanted = self.made()?;
        let mut same = matches!(wanted, Some((found, ..)) if found == base);
        for k in 0..self.i.ids.len() {
            same &= self.operand(k)? == wanted;
        }
        Ok(same)
    }

    /// A truth for each number that is compared.
    fn compares(&self, base: Base) -> Result<bool, Refusal> {
        let first = self.operand(0)?;
        let mut same = matches!(first, Some((found, ..)) if found == base);
        for k in 1..self.i.ids.len() {
            same &= self.operand(k)? == first;
        }
        Ok(same && self.made()? == first.map(|(_, _, count)| (Base::Bool, 1, count)))
    }

    fn converts(&self, from: Base, to: Base) -> Result<bool, Refusal> {
        Ok(match (self.made()?, self.operand(0)?) {
            (Some((a, _, n)), Some((b, _, m))) => (a, b, n) == (to, from, m),
            _ => false,
        })
    }

    fn int(&self, k: usize) -> Result<bool, Refusal> {
        Ok(matches!(self.operand(k)?, Some((Base::Int, 32, 1))))
    }

    /// A scope: the device, the workgroup, the subgroup, the invocation itself; or the queue, in Vulkan's own model.
    fn scope(&self, k: usize) -> Result<bool, Refusal> {
        let known = self.module.constant(self.id(k)?);
        let queue = self.module.has(Capability::VulkanMemoryModel);
        Ok(self.int(k)? && known.is_some_and(|known| (1..=4).contains(&known) || (known == 5 && queue)))
    }

    /// What is ordered: one order at the most, of known memory.
    fn order(&self, k: usize) -> Result<bool, Refusal> {
        let known = self.module.constant(self.id(k)?);
        let fits = |known: u32| (known & 0x1e).count_ones() <= 1 && known & !0xffde == 0;
        Ok(self.int(k)? && known.is_some_and(fits))
    }
}

impl Module<'_> {
    fn matrices(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let result = i.result_type.ok_or_else(|| wrong(i))?;
        // Columns and rows, and the numbers in them.
        let shape = |of: u32| -> Result<Option<(u32, u32, u32)>, Refusal> {
            Ok(match self.type_of_id(of)? {
                Type::Matrix { column, count } => {
                    self.numbers(column)?.map(|(_, bits, rows)| (count, rows, bits))
                }
                _ => None,
            })
        };
        let vector = |of: u32| -> Result<Option<(u32, u32)>, Refusal> {
            Ok(self.numbers(of)?.filter(|of| of.0 == Base::Float).map(|(_, bits, count)| (count, bits)))
        };
        let of = |k: usize| self.type_of(i.ids[k]);
        Ok(match i.op {
            Op::MatrixTimesScalar => {
                let bits = shape(result)?.map(|shape| (1, shape.2));
                of(0)? == result && bits.is_some() && vector(of(1)?)? == bits
            }
            Op::VectorTimesMatrix => match shape(of(1)?)? {
                Some((columns, rows, bits)) => {
                    vector(of(0)?)? == Some((rows, bits)) && vector(result)? == Some((columns, bits))
                }
                None => false,
            },
            Op::MatrixTimesVector => match shape(of(0)?)? {
                Some((columns, rows, bits)) => {
                    vector(of(1)?)? == Some((columns, bits)) && vector(result)? == Some((rows, bits))
                }
                None => false,
            },
            Op::MatrixTimesMatrix => match (shape(of(0)?)?, shape(of(1)?)?) {
                (Some((inner, rows, bits)), Some((columns, other, same))) => {
                    (inner, bits) == (other, same) && shape(result)? == Some((columns, rows, bits))
                }
                _ => false,
            },
            Op::OuterProduct => match (vector(of(0)?)?, vector(of(1)?)?) {
                (Some((rows, bits)), Some((columns, same))) => {
                    bits == same && shape(result)? == Some((columns, rows, bits))
                }
                _ => false,
            },
            _ => match shape(of(0)?)? {
                Some((columns, rows, bits)) => shape(result)? == Some((rows, columns, bits)),
                None => false,
            },
        })
    }

    /// A pointer to a part of what another one points to.
    fn chain(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let (class, mut to) = self.pointee(i.ids[0])?;
        for &index in &i.ids[1..] {
            if !matches!(self.numbers(self.type_of(index)?)?, Some((Base::Int, 32, 1))) {
                return Err("has an index that is no 32-bit integer".to_owned());
            }
            to = match self.type_of_id(to)? {
                Type::Vector { part, .. } => part,
                Type::Matrix { column, .. } => column,
                Type::Array { element, .. } | Type::RuntimeArray { element } => element,
                Type::Struct(members) => match self.constant(index) {
                    Some(member) if (member as usize) < members.len() => members[member as usize],
                    _ => return Ok(false),
                },
                _ => return Ok(false),
            };
        }
        let result = i.result_type.map(|id| self.type_of_id(id)).transpose()?;
        Ok(i.ids.len() > 1 && result == Some(Type::Pointer { class, to }))
    }

    fn image(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let coordinate = |k: usize| -> Result<bool, Refusal> {
            Ok(matches!(self.numbers(self.type_of(i.ids[k])?)?, Some((Base::Int, 32, 1))))
        };
        let (image, pointer) = match i.op {
            Op::ImageTexelPointer => (self.pointee(i.ids[0])?.1, true),
            _ => (self.type_of(i.ids[0])?, false),
        };
        let Type::Texels { sampled } = self.type_of_id(image)? else {
            return Err(format!("has Op{:?} on an image that is no texel buffer", i.op));
        };
        let [format, access] =
            [8, 7].map(|k| self.get(image).ok().and_then(|image| image.words.get(k).copied()));
        let unformatted = match i.op {
            Op::ImageRead => self.has(Capability::StorageImageReadWithoutFormat),
            Op::ImageWrite => self.has(Capability::StorageImageWriteWithoutFormat),
            _ => true,
        };
        if access != Some(2) || (format == Some(0) && !unformatted) {
            return Ok(false);
        }
        let four = |of: u32| -> Result<bool, Refusal> {
            let wanted = self.numbers(sampled)?.map(|(base, bits, _)| (base, bits, 4));
            Ok(self.numbers(of)? == wanted)
        };
        let result = i.result_type;
        Ok(match (i.op, result) {
            (Op::ImageRead, Some(of)) => coordinate(1)? && four(of)?,
            (Op::ImageWrite, None) => {
                coordinate(1)? && four(self.type_of(i.ids[2])?)? && self.is_writable(i.ids[0])?
            }
            (Op::ImageQuerySize, Some(of)) => self.numbers(of)? == Some((Base::Int, 32, 1)),
            (Op::ImageTexelPointer, Some(of)) => {
                let wanted = Type::Pointer { class: StorageClass::Image, to: sampled };
                pointer
                    && coordinate(1)?
                    && self.constant(i.ids[2]) == Some(0)
                    && self.type_of_id(of)? == wanted
            }
            _ => false,
        })
    }

    /// A change of one number, with this many further values of its type at the end.
    fn atomic(&self, i: &Instruction<'_>, values: usize) -> Result<bool, Refusal> {
        let (class, to) = self.pointee(i.ids[0])?;
        let number = match self.numbers(to)? {
            Some((Base::Int, 64, 1)) => self.has(Capability::Int64Atomics),
            Some((Base::Int | Base::Float, 32, 1)) => true,
            _ => false,
        };
        let shared = matches!(
            class,
            StorageClass::StorageBuffer
                | StorageClass::Uniform
                | StorageClass::Workgroup
                | StorageClass::Image
        );
        let mut fits = number && shared && i.result_type.is_none_or(|of| of == to);
        for value in &i.ids[i.ids.len() - values..] {
            fits &= self.type_of(*value)? == to;
        }
        Ok(fits && (i.op == Op::AtomicLoad || self.is_writable(i.ids[0])?))
    }

    /// Operations of a subgroup: the first id is the scope.
    fn subgroup(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        let result = i.result_type.ok_or_else(|| wrong(i))?;
        let made = self.numbers(result)?;
        let of = |k: usize| -> Result<Option<Numbers>, Refusal> {
            let id = *i.ids.get(k).ok_or_else(|| wrong(i))?;
            self.numbers(self.type_of(id)?)
        };
        let (truth, ballot, index) =
            (Some((Base::Bool, 1, 1)), Some((Base::Int, 32, 4)), Some((Base::Int, 32, 1)));
        Ok(match i.op {
            Op::GroupNonUniformElect => made == truth,
            Op::GroupNonUniformAll | Op::GroupNonUniformAny => made == truth && of(1)? == truth,
            Op::GroupNonUniformAllEqual => made == truth && of(1)?.is_some(),
            Op::GroupNonUniformBallot => made == ballot && of(1)? == truth,
            Op::GroupNonUniformInverseBallot => made == truth && of(1)? == ballot,
            Op::GroupNonUniformBallotBitExtract => made == truth && of(1)? == ballot && of(2)? == index,
            Op::GroupNonUniformBallotBitCount
            | Op::GroupNonUniformBallotFindLSB
            | Op::GroupNonUniformBallotFindMSB => made == index && of(1)? == ballot,
            Op::GroupNonUniformBroadcastFirst => made.is_some() && of(1)? == made,
            Op::GroupNonUniformBroadcast
            | Op::GroupNonUniformShuffle
            | Op::GroupNonUniformShuffleXor
            | Op::GroupNonUniformShuffleUp
            | Op::GroupNonUniformShuffleDown
            | Op::GroupNonUniformQuadBroadcast
            | Op::GroupNonUniformQuadSwap => made.is_some() && of(1)? == made && of(2)? == index,
            op => {
                let name = format!("{op:?}");
                let base = match name.as_bytes()["GroupNonUniform".len()..] {
                    [b'I' | b'S' | b'U' | b'B', ..] => Base::Int,
                    [b'F', ..] => Base::Float,
                    [b'L', b'o', b'g', ..] => Base::Bool,
                    _ => return Err(format!("has the instruction Op{op:?}")),
                };
                let cluster = match i.ids.get(2) {
                    Some(id) => is_constant(self.get(*id)?.op) && of(2)? == index,
                    None => true,
                };
                matches!(made, Some((found, ..)) if found == base) && of(1)? == made && cluster
            }
        })
    }

    /// Functions of the one set of extended instructions that kernels have.
    fn glsl(&self, i: &Instruction<'_>) -> Result<bool, Refusal> {
        use GlslStd450Op as G;
        let result = i.result_type.ok_or_else(|| wrong(i))?;
        let number = i.words[4];
        let Some(function) = G::from_u32(number) else {
            return Err(damaged(format!("function {number} of GLSL")));
        };
        let mut of = Vec::new();
        for id in &i.ids[1..] {
            of.push(self.numbers(self.type_of(*id)?)?);
        }
        let made = self.numbers(result)?;
        let same = |base: Base, count: usize| {
            of.len() == count
                && of.iter().all(|of| *of == made)
                && matches!(made, Some((found, ..)) if found == base)
        };
        let packs =
            |count: u32| made == Some((Base::Int, 32, 1)) && of[..] == [Some((Base::Float, 32, count))];
        let unpacks =
            |count: u32| made == Some((Base::Float, 32, count)) && of[..] == [Some((Base::Int, 32, 1))];
        let scalar = made.map(|(base, bits, _)| (base, bits, 1));
        Ok(match function {
            G::Round | G::RoundEven | G::Trunc | G::FAbs | G::FSign | G::Floor | G::Ceil | G::Fract => {
                same(Base::Float, 1)
            }
            G::Radians | G::Degrees | G::Sin | G::Cos | G::Tan | G::Asin | G::Acos | G::Atan => {
                same(Base::Float, 1)
            }
            G::Sinh | G::Cosh | G::Tanh | G::Asinh | G::Acosh | G::Atanh | G::Exp | G::Log => {
                same(Base::Float, 1)
            }
            G::Exp2 | G::Log2 | G::Sqrt | G::InverseSqrt | G::Normalize => same(Base::Float, 1),
            G::Atan2 | G::Pow | G::FMin | G::FMax | G::Step | G::NMin | G::NMax => same(Base::Float, 2),
            G::FClamp | G::FMix | G::SmoothStep | G::Fma | G::NClamp => same(Base::Float, 3),
            G::SAbs | G::SSign | G::FindILsb | G::FindSMsb | G::FindUMsb => same(Base::Int, 1),
            G::UMin | G::SMin | G::UMax | G::SMax => same(Base::Int, 2),
            G::UClamp | G::SClamp => same(Base::Int, 3),
            G::Length => of.len() == 1 && of[0].map(|of| (of.0, of.1, 1)) == made && scalar == made,
            G::Distance => of.len() == 2 && of[0] == of[1] && of[0].map(|of| (of.0, of.1, 1)) == made,
            G::Cross => same(Base::Float, 2) && matches!(made, Some((_, _, 3))),
            G::Reflect => same(Base::Float, 2),
            G::FaceForward => same(Base::Float, 3),
            G::Ldexp => {
                let ints = made.map(|(_, _, count)| (Base::Int, 32, count));
                of.len() == 2 && of[0] == made && of[1] == ints && matches!(made, Some((Base::Float, ..)))
            }
            G::PackHalf2x16 | G::PackUnorm2x16 | G::PackSnorm2x16 => packs(2),
            G::PackUnorm4x8 | G::PackSnorm4x8 => packs(4),
            G::UnpackHalf2x16 | G::UnpackUnorm2x16 | G::UnpackSnorm2x16 => unpacks(2),
            G::UnpackUnorm4x8 | G::UnpackSnorm4x8 => unpacks(4),
            other => return Err(format!("calls {other:?}")),
        })
    }
}
