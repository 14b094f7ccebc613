//! Keeps every access of a module inside what it accesses: the reason why safe code can run kernels of its own.
//!
//! Indices that are not known to be inside are clamped: into arrays by their length, into the array at the end of a
//! buffer by the length of what is bound, into texel buffers by their size, into vectors by their components. So an
//! index out of bounds reads or writes another element of the same thing, on every device, whatever its features.
//! Pointers that are made in any other way than by indexing a variable are refused.

use rspirv::grammar::{INSTRUCTION_TABLE, OperandKind};
use rspirv::spirv::{Capability, Decoration, Dim, Op, StorageClass};
use rustc_hash::{FxHashMap, FxHashSet};

use super::shared::{SharedMemory, SharedVariable};

mod clamp;
mod size;
#[cfg(test)]
mod tests;

const HEADER_WORDS: usize = 5;

/// Software drivers keep local variables on their threads' stacks, those of several invocations at a time.
const LOCAL_BYTES: u64 = 1 << 16;

/// Why a module can't be kept inside its bindings, in words that complete "the kernel …".
pub(crate) type Refusal = String;

/// The same module with its indices clamped, and what its shared variables take.
pub(crate) fn guard(words: &[u32]) -> Result<(Vec<u32>, SharedMemory), Refusal> {
    let (header, code) = words.split_at_checked(HEADER_WORDS).ok_or_else(damaged)?;
    let mut module = Module { next_id: header[3], ..Module::default() };
    let (mut head, mut bodies) = (Vec::new(), Vec::new());
    let mut rest = code;
    let mut in_functions = false;
    while let Some(first) = rest.first() {
        let length = (first >> 16) as usize;
        let (instruction, following) = rest.split_at_checked(length.max(1)).ok_or_else(damaged)?;
        rest = following;
        let number = first & 0xffff;
        let op =
            Op::from_u32(number).ok_or_else(|| format!("has an unknown instruction, number {number}"))?;
        if op == Op::Function && !in_functions {
            in_functions = true;
            module.check_declarations()?;
        }
        module.note(op, instruction)?;
        module.measure(op, instruction)?;
        if in_functions {
            module.rewrite(op, instruction, &mut bodies)?;
        } else {
            if op == Op::MemoryModel {
                module.import_at = head.len();
            }
            head.extend_from_slice(instruction);
        }
    }
    module.check_size()?;
    let shared = std::mem::take(&mut module.shared);
    Ok((module.assemble(header, head, &bodies), shared))
}

fn damaged() -> Refusal {
    "is damaged".to_owned()
}

fn word(instruction: &[u32], index: usize) -> Result<u32, Refusal> {
    instruction.get(index).copied().ok_or_else(damaged)
}

/// The types that indices go through.
#[derive(Debug)]
enum Type {
    Int {
        bits: u32,
    },
    /// A vector or a matrix: this many components or columns.
    Few {
        part: u32,
        count: u32,
    },
    Array {
        element: u32,
        length: u32,
    },
    RuntimeArray {
        element: u32,
    },
    Struct(Vec<u32>),
    Pointer {
        to: u32,
    },
    Texels,
    /// A float, a bool, or something without a size.
    Other {
        bits: u32,
    },
}

/// Size and alignment by the rules of std430.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    bytes: u64,
    alignment: u64,
}

impl Extent {
    fn scalar(bytes: u64) -> Extent {
        Extent { bytes, alignment: bytes.max(1) }
    }

    /// Three components are aligned as four are.
    fn vector(component_bytes: u64, count: u64) -> Extent {
        let alignment = component_bytes.saturating_mul(count.next_power_of_two()).max(1);
        Extent { bytes: component_bytes.saturating_mul(count), alignment }
    }

    /// This many of them, each padded to the next.
    fn times(self, count: u64) -> Extent {
        let stride = self.bytes.checked_next_multiple_of(self.alignment).unwrap_or(u64::MAX);
        Extent { bytes: stride.saturating_mul(count), ..self }
    }

    /// With another one behind it.
    fn followed_by(self, next: Extent) -> Extent {
        let begin = self.bytes.checked_next_multiple_of(next.alignment).unwrap_or(u64::MAX);
        Extent { bytes: begin.saturating_add(next.bytes), alignment: self.alignment.max(next.alignment) }
    }
}

#[derive(Debug, Default)]
struct Module {
    next_id: u32,
    types: FxHashMap<u32, Type>,
    /// The type of each value.
    values: FxHashMap<u32, u32>,
    /// Those 32-bit constants that nothing can specialize.
    constants: FxHashMap<u32, u32>,
    /// Those that are set when a pipeline is made, by (id, default).
    specialized: FxHashMap<u32, (u32, u32)>,
    spec_ids: FxHashMap<u32, u32>,
    shared: SharedMemory,
    local_bytes: u64,
    sizes: size::Sizes,
    /// How deep each type is made of others.
    depths: FxHashMap<u32, u32>,
    uint: Option<u32>,
    glsl: Option<u32>,
    has_glsl: bool,
    has_queries: bool,
    needs_queries: bool,
    /// Array types that lie in buffers or push constants.
    laid_out: Vec<u32>,
    bindings: FxHashMap<u32, [Option<u32>; 2]>,
    /// Where in the head an import may stand.
    import_at: usize,
    /// Types and constants that clamping needs.
    added: Vec<u32>,
    added_constants: FxHashMap<u32, u32>,
}

impl Module {
    fn fresh(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Remembers what an instruction declares.
    fn note(&mut self, op: Op, instruction: &[u32]) -> Result<(), Refusal> {
        let at = |index| word(instruction, index);
        let declared = match op {
            Op::Capability => {
                self.has_queries |= at(1)? == Capability::ImageQuery as u32;
                return Ok(());
            }
            Op::ExtInstImport => {
                let name: Vec<u8> = instruction.iter().skip(2).flat_map(|w| w.to_le_bytes()).collect();
                if name.starts_with(b"GLSL.std.450\0") {
                    (self.glsl, self.has_glsl) = (Some(at(1)?), true);
                }
                return Ok(());
            }
            Op::Decorate => {
                let (target, decoration) = (at(1)?, at(2)?);
                if decoration == Decoration::ArrayStride as u32 {
                    self.laid_out.push(target);
                } else if decoration == Decoration::SpecId as u32 {
                    self.spec_ids.insert(target, at(3)?);
                } else if decoration == Decoration::DescriptorSet as u32 {
                    self.bindings.entry(target).or_default()[0] = Some(at(3)?);
                } else if decoration == Decoration::Binding as u32 {
                    self.bindings.entry(target).or_default()[1] = Some(at(3)?);
                }
                return Ok(());
            }
            Op::TypeInt => {
                if (at(2)?, at(3)?) == (32, 0) {
                    self.uint = Some(at(1)?);
                }
                Type::Int { bits: at(2)? }
            }
            Op::TypeFloat => Type::Other { bits: at(2)? },
            Op::TypeBool => Type::Other { bits: 32 },
            Op::TypeVector | Op::TypeMatrix => Type::Few { part: at(2)?, count: at(3)? },
            Op::TypeArray => Type::Array { element: at(2)?, length: at(3)? },
            Op::TypeRuntimeArray => Type::RuntimeArray { element: at(2)? },
            Op::TypeStruct => Type::Struct(instruction.get(2..).unwrap_or_default().to_vec()),
            Op::TypePointer => Type::Pointer { to: at(3)? },
            Op::TypeImage if at(3)? == Dim::DimBuffer as u32 => Type::Texels,
            Op::TypeImage | Op::TypeSampler | Op::TypeSampledImage => Type::Other { bits: 0 },
            _ => return self.note_value(op, instruction),
        };
        // Made of what was declared before, each type once: so following them ends.
        let made_of = match &declared {
            Type::Few { part: element, .. }
            | Type::Array { element, .. }
            | Type::RuntimeArray { element } => std::slice::from_ref(element),
            Type::Struct(members) => members,
            _ => &[],
        };
        if !made_of.iter().all(|part| self.types.contains_key(part)) || self.types.contains_key(&at(1)?) {
            return Err(damaged());
        }
        let depth = 1 + made_of.iter().filter_map(|part| self.depths.get(part)).max().copied().unwrap_or(0);
        if depth > size::MOST_TYPE_DEPTH {
            let most = size::MOST_TYPE_DEPTH;
            return Err(format!("has types that are nested {depth} deep, the maximum is {most}"));
        }
        self.depths.insert(at(1)?, depth);
        self.types.insert(at(1)?, declared);
        Ok(())
    }

    fn note_value(&mut self, op: Op, instruction: &[u32]) -> Result<(), Refusal> {
        let known = INSTRUCTION_TABLE
            .lookup_opcode(op as u32)
            .ok_or_else(|| format!("has the instruction Op{op:?}"))?;
        if known.operands.first().is_none_or(|operand| operand.kind != OperandKind::IdResultType) {
            return Ok(());
        }
        let (of, id) = (word(instruction, 1)?, word(instruction, 2)?);
        self.values.insert(id, of);
        let is_int = matches!(self.types.get(&of), Some(Type::Int { bits: 32 }));
        if op == Op::Constant && is_int {
            self.constants.insert(id, word(instruction, 3)?);
        }
        if op == Op::SpecConstant
            && is_int
            && let Some(&spec_id) = self.spec_ids.get(&id)
        {
            self.specialized.insert(id, (spec_id, word(instruction, 3)?));
        }
        if op == Op::Variable {
            self.note_variable(of, word(instruction, 3)?)?;
        }
        let by_index = matches!(
            op,
            Op::Variable
                | Op::FunctionParameter
                | Op::AccessChain
                | Op::InBoundsAccessChain
                | Op::ImageTexelPointer
        );
        if matches!(self.types.get(&of), Some(Type::Pointer { .. })) && !by_index {
            return Err(format!("makes a pointer by Op{op:?}"));
        }
        Ok(())
    }

    /// Memory that no tensor stands for has its limits, too.
    fn note_variable(&mut self, pointer: u32, class: u32) -> Result<(), Refusal> {
        let Some(&Type::Pointer { to }) = self.types.get(&pointer) else { return Err(damaged()) };
        let class = StorageClass::from_u32(class);
        let mut lengths = Vec::new();
        match class {
            Some(StorageClass::Workgroup) => {
                let Extent { bytes, alignment } = self.extent(to, &mut lengths)?;
                self.shared.variables.push(SharedVariable { bytes, alignment, lengths });
            }
            Some(StorageClass::Function | StorageClass::Private) => {
                let bytes = self.extent(to, &mut lengths)?.bytes;
                if !lengths.is_empty() {
                    return Err("has a local array whose length is a specialization constant".to_owned());
                }
                self.local_bytes = self.local_bytes.saturating_add(bytes);
                if self.local_bytes > LOCAL_BYTES {
                    let bytes = self.local_bytes;
                    return Err(format!(
                        "has {bytes} bytes of local variables or more, the maximum is {LOCAL_BYTES}"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What a value takes as std430 lays it out; times those lengths that are not known yet.
    fn extent(&self, of: u32, lengths: &mut Vec<(u32, u32)>) -> Result<Extent, Refusal> {
        Ok(match self.types.get(&of) {
            Some(&(Type::Int { bits } | Type::Other { bits })) => Extent::scalar(u64::from(bits / 8)),
            Some(&Type::Few { part, count }) => {
                let part_extent = self.extent(part, lengths)?;
                match self.types.get(&part) {
                    // A matrix: columns, one behind the other.
                    Some(Type::Few { .. }) => part_extent.times(u64::from(count)),
                    _ => Extent::vector(part_extent.bytes, u64::from(count)),
                }
            }
            Some(&Type::Array { element, length }) => {
                let known = self.constants.get(&length).map(|&length| u64::from(length));
                if known.is_none() {
                    let computed = "has an array whose length is computed from a specialization constant";
                    lengths.push(*self.specialized.get(&length).ok_or(computed)?);
                }
                self.extent(element, lengths)?.times(known.unwrap_or(1))
            }
            Some(Type::Struct(members)) => {
                let before = lengths.len();
                let mut all = Extent::scalar(0);
                for &member in members {
                    all = all.followed_by(self.extent(member, lengths)?);
                }
                if lengths.len() > before {
                    return Err(
                        "has a struct with an array whose length is a specialization constant".to_owned()
                    );
                }
                all.times(1)
            }
            _ => Extent::scalar(0),
        })
    }

    /// What the sizes of bindings are checked by must be all there is to know of them.
    fn check_declarations(&self) -> Result<(), Refusal> {
        for id in &self.laid_out {
            if let Some(Type::Array { length, .. }) = self.types.get(id)
                && !self.constants.contains_key(length)
            {
                return Err("has an array in a buffer whose length is a specialization constant".to_owned());
            }
        }
        let mut seen = FxHashSet::default();
        for place in self.bindings.values() {
            let [set, binding] = place.map(Option::unwrap_or_default);
            if !seen.insert((set, binding)) {
                return Err(format!("declares set {set} binding {binding} twice"));
            }
        }
        Ok(())
    }

    /// Header, capabilities, imports, declarations and functions, in the order that SPIR-V asks for.
    fn assemble(self, header: &[u32], mut head: Vec<u32>, bodies: &[u32]) -> Vec<u32> {
        if let Some(glsl) = self.glsl.filter(|_| !self.has_glsl) {
            let name = b"GLSL.std.450\0\0\0\0";
            let name = name.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
            let mut import = Vec::new();
            emit(&mut import, Op::ExtInstImport, &std::iter::once(glsl).chain(name).collect::<Vec<_>>());
            head.splice(self.import_at..self.import_at, import);
        }
        let mut words = header.to_vec();
        words[3] = self.next_id;
        if self.needs_queries && !self.has_queries {
            emit(&mut words, Op::Capability, &[Capability::ImageQuery as u32]);
        }
        words.extend_from_slice(&head);
        words.extend_from_slice(&self.added);
        words.extend_from_slice(bodies);
        words
    }
}

fn emit(out: &mut Vec<u32>, op: Op, operands: &[u32]) {
    out.push(((operands.len() as u32 + 1) << 16) | op as u32);
    out.extend_from_slice(operands);
}
