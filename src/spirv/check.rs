//! Whether an untrusted module has the form that drivers take for granted: SPIR-V whose instructions are whole, whose
//! ids are defined, whose values have the types that their uses ask for, whose control flow leads where it may, and
//! whose blocks lie in memory as they say. For kernels alone: what those have no use for is refused by its name.
//!
//! `guard.rs` comes after this, and counts on it.

use rspirv::grammar::{INSTRUCTION_TABLE, OperandKind, OperandQuantifier};
use rspirv::spirv::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::guard::Refusal;

mod flow;
mod layout;
mod rules;
#[cfg(test)]
mod tests;
mod types;

const HEADER_WORDS: usize = 5;
/// Limits that every Vulkan implementation supports.
const MOST_IDS: u32 = 4_194_303;

/// Says what is wrong with a module.
pub(crate) fn check(words: &[u32]) -> Result<(), Refusal> {
    let module = Module::read(words)?;
    module.check_globals()?;
    for instruction in &module.instructions {
        module.check_kinds(instruction)?;
    }
    // From here on, following ids back to where they come from ends.
    module.check_functions()?;
    for (i, instruction) in module.instructions.iter().enumerate() {
        module.check_types(i, instruction)?;
    }
    module.check_layouts()
}

pub(super) fn damaged(what: impl Into<String>) -> Refusal {
    format!("is damaged: {}", what.into())
}

/// An instruction, with its operands by kind.
#[derive(Debug)]
pub(super) struct Instruction<'a> {
    pub(super) op: Op,
    pub(super) words: &'a [u32],
    pub(super) result_type: Option<u32>,
    pub(super) result: Option<u32>,
    /// The other ids, in their order.
    pub(super) ids: SmallVec<[u32; 4]>,
}

#[derive(Debug, Default)]
pub(super) struct Module<'a> {
    pub(super) instructions: Vec<Instruction<'a>>,
    /// The instruction that defines an id.
    pub(super) defined: FxHashMap<u32, usize>,
    /// Where functions begin.
    pub(super) functions_at: usize,
    /// Of SPIR-V, as the header has it.
    pub(super) version: u32,
}

impl<'a> Module<'a> {
    fn read(words: &'a [u32]) -> Result<Module<'a>, Refusal> {
        let (header, mut rest) =
            words.split_at_checked(HEADER_WORDS).ok_or_else(|| damaged("it has no header"))?;
        let bound = header[3];
        if bound > MOST_IDS || header[4] != 0 {
            return Err(damaged(format!("its header says {bound} ids, the maximum is {MOST_IDS}")));
        }
        let mut module = Module { version: header[1], ..Module::default() };
        while let Some(first) = rest.first() {
            let length = (first >> 16) as usize;
            let Some((instruction, following)) = rest.split_at_checked(length).filter(|_| length > 0) else {
                return Err(damaged("an instruction reaches beyond its end"));
            };
            rest = following;
            let instruction = decode(instruction)?;
            let ids = instruction.ids.iter().chain(&instruction.result).chain(&instruction.result_type);
            if let Some(id) = ids.copied().find(|id| *id == 0 || *id >= bound) {
                return Err(damaged(format!("id {id} is not below the bound, {bound}")));
            }
            if let Some(id) = instruction.result
                && module.defined.insert(id, module.instructions.len()).is_some()
            {
                return Err(damaged(format!("id {id} is defined twice")));
            }
            module.instructions.push(instruction);
        }
        let first = module.instructions.iter().position(|instruction| instruction.op == Op::Function);
        module.functions_at = first.unwrap_or(module.instructions.len());
        Ok(module)
    }

    /// The instruction that defines an id.
    pub(super) fn get(&self, id: u32) -> Result<&Instruction<'a>, Refusal> {
        let place = self.defined.get(&id).ok_or_else(|| damaged(format!("id {id} is never defined")))?;
        Ok(&self.instructions[*place])
    }

    /// Sections stand in their order, and what is global is made of what came before.
    fn check_globals(&self) -> Result<(), Refusal> {
        let (mut last, mut models, mut entries) = (0, 0, 0);
        let mut types = FxHashSet::default();
        for (i, instruction) in self.instructions.iter().enumerate() {
            let in_functions = i >= self.functions_at;
            let section = section(instruction.op).filter(|section| (*section == FUNCTIONS) == in_functions);
            let section = match (section, instruction.op) {
                // Lines may stand anywhere behind the debugging section.
                (_, Op::Line | Op::NoLine) => last,
                // These may be global or local.
                (_, Op::Variable | Op::Undef) if in_functions => FUNCTIONS,
                (Some(section), _) => section,
                (None, op) if in_functions && function_op(op) => FUNCTIONS,
                (None, op) => return Err(format!("has the instruction Op{op:?} where it can't be")),
            };
            if section < last {
                return Err(damaged(format!("Op{:?} stands too late", instruction.op)));
            }
            last = section;
            // Aggregates may be alike; of anything else there is one.
            let aggregate = matches!(instruction.op, Op::TypeArray | Op::TypeRuntimeArray | Op::TypeStruct);
            let plain = is_type(instruction.op) && !aggregate && instruction.op != Op::TypePointer;
            if plain && !types.insert((instruction.op as u32, &instruction.words[2..])) {
                return Err(damaged(format!("Op{:?} declares a type that is there already", instruction.op)));
            }
            models += usize::from(instruction.op == Op::MemoryModel);
            entries += usize::from(instruction.op == Op::EntryPoint);
            for &id in &instruction.ids {
                let place =
                    *self.defined.get(&id).ok_or_else(|| damaged(format!("id {id} is never defined")))?;
                if section == DECLARATIONS && place >= i {
                    return Err(damaged(format!("id {id} is used before it is defined")));
                }
            }
            if let Some(id) = instruction.result_type {
                let place =
                    *self.defined.get(&id).ok_or_else(|| damaged(format!("id {id} is never defined")))?;
                if place >= i {
                    return Err(damaged(format!("type {id} is used before it is defined")));
                }
            }
        }
        if (models, entries) != (1, 1) {
            return Err(damaged(format!("it has {models} memory models and {entries} entry points")));
        }
        Ok(())
    }

    /// Ids name what they must: types, values, labels, functions.
    fn check_kinds(&self, instruction: &Instruction<'_>) -> Result<(), Refusal> {
        if let Some(id) = instruction.result_type
            && !is_type(self.get(id)?.op)
        {
            return Err(damaged(format!("id {id} is no type")));
        }
        for (k, &id) in instruction.ids.iter().enumerate() {
            let found = kind(self.get(id)?.op);
            if let Some(wanted) = wanted(instruction.op, k)
                && found != wanted
            {
                return Err(damaged(format!(
                    "operand {k} of Op{:?} is a {found}, not a {wanted}",
                    instruction.op
                )));
            }
        }
        Ok(())
    }
}

/// What an id stands for.
fn kind(op: Op) -> &'static str {
    match op {
        Op::Label => "label",
        Op::Function => "function",
        Op::ExtInstImport => "import",
        Op::String => "text",
        op if is_type(op) => "type",
        _ => "value",
    }
}

pub(super) fn is_type(op: Op) -> bool {
    matches!(
        op,
        Op::TypeVoid
            | Op::TypeBool
            | Op::TypeInt
            | Op::TypeFloat
            | Op::TypeVector
            | Op::TypeMatrix
            | Op::TypeImage
            | Op::TypeSampler
            | Op::TypeSampledImage
            | Op::TypeArray
            | Op::TypeRuntimeArray
            | Op::TypeStruct
            | Op::TypePointer
            | Op::TypeFunction
    )
}

/// What an instruction's k-th id must stand for; none where anything will do.
fn wanted(op: Op, k: usize) -> Option<&'static str> {
    Some(match (op, k) {
        (Op::Name | Op::MemberName | Op::Decorate | Op::MemberDecorate | Op::DecorateString, _) => {
            return None;
        }
        (Op::Source | Op::Line, _) => "text",
        (Op::EntryPoint, 0) | (Op::ExecutionMode | Op::ExecutionModeId, 0) | (Op::FunctionCall, 0) => {
            "function"
        }
        (Op::TypeArray, 1) => "value",
        (Op::Function, _) => "type",
        (op, _) if is_type(op) => "type",
        (Op::Branch | Op::SelectionMerge | Op::LoopMerge, _) => "label",
        (Op::BranchConditional | Op::Switch, k) if k > 0 => "label",
        (Op::Phi, k) if k % 2 == 1 => "label",
        (Op::ExtInst, 0) => "import",
        _ => "value",
    })
}

const DECLARATIONS: u32 = 8;
const FUNCTIONS: u32 = 9;

/// The section of a module that an instruction stands in; none for what is inside functions alone.
fn section(op: Op) -> Option<u32> {
    Some(match op {
        Op::Capability => 0,
        Op::Extension => 1,
        Op::ExtInstImport => 2,
        Op::MemoryModel => 3,
        Op::EntryPoint => 4,
        Op::ExecutionMode | Op::ExecutionModeId => 5,
        Op::String | Op::Source | Op::SourceContinued | Op::SourceExtension => 6,
        Op::Name | Op::MemberName | Op::ModuleProcessed => 6,
        Op::Decorate | Op::MemberDecorate => 7,
        Op::Function => FUNCTIONS,
        Op::Variable | Op::Undef => DECLARATIONS,
        op if is_type(op) || types::is_constant(op) => DECLARATIONS,
        _ => return None,
    })
}

/// Whether an instruction may stand in a function; its types are another matter.
fn function_op(op: Op) -> bool {
    section(op).is_none()
}

/// Tells the operands of an instruction apart, by the grammar of SPIR-V.
fn decode(words: &[u32]) -> Result<Instruction<'_>, Refusal> {
    let number = words[0] & 0xffff;
    let op = Op::from_u32(number).ok_or_else(|| format!("has an unknown instruction, number {number}"))?;
    let known =
        INSTRUCTION_TABLE.lookup_opcode(number).ok_or_else(|| format!("has the instruction Op{op:?}"))?;
    let mut out = Instruction { op, words, result_type: None, result: None, ids: SmallVec::new() };
    let mut at = 1;
    let short = || damaged(format!("Op{op:?} has {} words", words.len()));
    for operand in known.operands {
        let more = match operand.quantifier {
            OperandQuantifier::One => 1,
            OperandQuantifier::ZeroOrOne => usize::from(at < words.len()),
            OperandQuantifier::ZeroOrMore => usize::MAX,
        };
        let mut taken = 0;
        while taken < more && (at < words.len() || operand.quantifier == OperandQuantifier::One) {
            at = take(&mut out, operand.kind, at).ok_or_else(short)?;
            taken += 1;
        }
    }
    if at == words.len() { Ok(out) } else { Err(short()) }
}

/// Takes an operand at a place; gives the place behind it, or nothing if the instruction ends before.
fn take(out: &mut Instruction<'_>, kind: OperandKind, at: usize) -> Option<usize> {
    let words = out.words;
    let first = *words.get(at)?;
    let mut ids = |from: usize, count: usize| -> Option<usize> {
        out.ids.extend_from_slice(words.get(from..from + count)?);
        Some(from + count)
    };
    match kind {
        OperandKind::IdResultType => out.result_type = Some(first),
        OperandKind::IdResult => out.result = Some(first),
        OperandKind::IdRef | OperandKind::IdScope | OperandKind::IdMemorySemantics => return ids(at, 1),
        OperandKind::PairIdRefIdRef => return ids(at, 2),
        OperandKind::PairLiteralIntegerIdRef => return ids(at + 1, 1),
        OperandKind::LiteralString => {
            let end = words[at..].iter().position(|word| word.to_le_bytes().contains(&0))?;
            return Some(at + end + 1);
        }
        // One word or two, by the type; then nothing follows.
        OperandKind::LiteralContextDependentNumber => return Some(words.len()),
        // Their parameters are looked at where they matter.
        OperandKind::Decoration => return Some(words.len()),
        OperandKind::ExecutionMode if out.op == Op::ExecutionMode => return Some(words.len()),
        OperandKind::ExecutionMode => return ids(at + 1, words.len() - at - 1),
        OperandKind::LiteralExtInstInteger => return ids(at + 1, words.len() - at - 1),
        OperandKind::LiteralSpecConstantOpInteger => return take_inner(out, first, at + 1),
        OperandKind::MemoryAccess => {
            let aligned = usize::from(first & 2 != 0);
            let scopes = (first & 0x18).count_ones() as usize;
            return if first & !0x3f == 0 { ids(at + 1 + aligned, scopes) } else { None };
        }
        OperandKind::ImageOperands => {
            let scopes = (first & 0x300).count_ones() as usize;
            return if first & !0x3f00 == 0 { ids(at + 1, scopes) } else { None };
        }
        OperandKind::LoopControl => {
            let literals = (first & 0x1f8).count_ones() as usize;
            return (first & !0x1ff == 0).then_some(at + 1 + literals);
        }
        _ => {}
    }
    Some(at + 1)
}

/// The operands of an operation on specialization constants.
fn take_inner(out: &mut Instruction<'_>, number: u32, from: usize) -> Option<usize> {
    let known = INSTRUCTION_TABLE.lookup_opcode(number)?;
    let mut at = from;
    for operand in known.operands {
        let is_result = matches!(operand.kind, OperandKind::IdResultType | OperandKind::IdResult);
        let many = operand.quantifier == OperandQuantifier::ZeroOrMore;
        if is_result || operand.kind == OperandKind::LiteralSpecConstantOpInteger {
            continue;
        }
        at = take(out, operand.kind, at)?;
        while many && at < out.words.len() {
            at = take(out, operand.kind, at)?;
        }
    }
    Some(at)
}
