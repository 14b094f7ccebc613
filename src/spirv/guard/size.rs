//! How much a driver will make of a module: drivers put every function where it is called, and copy composites part by
//! part.

use rspirv::spirv::Op;
use rustc_hash::FxHashMap;

use super::{Module, Refusal, Type, word};

/// The instructions of a kernel, each call replaced by what is called, and each copy of an array, a struct or a matrix
/// counted as its scalars. Drivers take seconds for this many.
pub(crate) const MOST_INSTRUCTIONS: u64 = 1 << 17;
/// How deep types are made of each other.
pub(super) const MOST_TYPE_DEPTH: u32 = 64;

/// The functions seen so far: what each is by itself, and whom it calls.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    functions: FxHashMap<u32, Function>,
    current: u32,
    constants: u64,
}

#[derive(Debug, Default)]
struct Function {
    own: u64,
    calls: Vec<u32>,
}

impl Sizes {
    /// All of it; the entry point is the one that nothing calls.
    fn total(&self) -> u64 {
        // In an order in which callees come first: as deep as calls go, and no function twice.
        let mut known: FxHashMap<u32, u64> = FxHashMap::default();
        let mut open: Vec<(u32, bool)> = self.functions.keys().map(|id| (*id, false)).collect();
        let mut under_way = rustc_hash::FxHashSet::default();
        while let Some((id, called)) = open.pop() {
            let Some(function) = self.functions.get(&id).filter(|_| !known.contains_key(&id)) else {
                continue;
            };
            if called {
                let inlined = function.calls.iter().map(|callee| known.get(callee).copied());
                // A function that calls itself has no end.
                let all =
                    inlined.fold(function.own, |sum, callee| sum.saturating_add(callee.unwrap_or(u64::MAX)));
                known.insert(id, all);
            } else if under_way.insert(id) {
                open.push((id, true));
                open.extend(function.calls.iter().map(|callee| (*callee, false)));
            }
        }
        known.values().copied().max().unwrap_or(0).saturating_add(self.constants)
    }
}

impl Module {
    /// The scalars that a value of this type consists of.
    fn scalars(&self, of: u32) -> u64 {
        match self.types.get(&of) {
            Some(&Type::Few { part, count }) => self.scalars(part).saturating_mul(count.into()),
            Some(&Type::Array { element, length }) => {
                let known = self.constants.get(&length).copied();
                let length = known.or_else(|| self.specialized.get(&length).map(|(_, default)| *default));
                self.scalars(element).saturating_mul(length.unwrap_or(1).into())
            }
            Some(Type::Struct(members)) => {
                members.iter().fold(0, |sum, member| sum.saturating_add(self.scalars(*member)))
            }
            _ => 1,
        }
    }

    /// Counts an instruction.
    pub(super) fn measure(&mut self, op: Op, instruction: &[u32]) -> Result<(), Refusal> {
        let of = match op {
            Op::Function => {
                self.sizes.current = word(instruction, 2)?;
                self.sizes.functions.entry(self.sizes.current).or_default();
                return Ok(());
            }
            Op::FunctionCall => {
                let callee = word(instruction, 3)?;
                let function = self.sizes.functions.entry(self.sizes.current).or_default();
                function.calls.push(callee);
                return Ok(());
            }
            Op::Store => self.values.get(&word(instruction, 2)?).copied(),
            Op::CopyMemory => match self.values.get(&word(instruction, 1)?).and_then(|of| self.types.get(of))
            {
                Some(&Type::Pointer { to }) => Some(to),
                _ => None,
            },
            _ => instruction.get(2).and_then(|id| self.values.get(id)).copied(),
        };
        let size = of.map_or(1, |of| self.scalars(of));
        match self.sizes.functions.get_mut(&self.sizes.current) {
            Some(function) => function.own = function.own.saturating_add(size),
            // Constants are copied where they are used; undefined ones and nulls take no words of their own.
            None if matches!(op, Op::ConstantNull | Op::ConstantComposite | Op::SpecConstantComposite) => {
                self.sizes.constants = self.sizes.constants.saturating_add(size);
            }
            None => {}
        }
        Ok(())
    }

    /// Refuses what a driver would make too much of.
    pub(super) fn check_size(&self) -> Result<(), Refusal> {
        let total = self.sizes.total();
        if total <= MOST_INSTRUCTIONS {
            return Ok(());
        }
        Err(format!(
            "has {total} instructions or more once functions stand where they are called and arrays are copied element by \
             element, the maximum is {MOST_INSTRUCTIONS}"
        ))
    }
}
