//! Assembly as drivers print it: blocks, loops, and what the main loop is made of. Pure.

mod intel;
mod rdna;

use super::statistics::Compiler;

/// A program: its instructions, and before which of them the labels stand.
#[derive(Debug, Default)]
struct Program<'a> {
    instructions: Vec<Instruction<'a>>,
    labels: Vec<(&'a str, usize)>,
}

/// An instruction, by what it does for the count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Instruction<'a> {
    /// Where it may go on, if it is a branch.
    branch: Option<&'a str>,
    /// Whether it works for invocations: computes, loads, stores. Branches, waits and scalars of a subgroup do not.
    works: bool,
    /// Multiply-adds of one invocation.
    macs: f64,
    /// Whether it is issued together with the one before it.
    paired: bool,
    load: Option<Load>,
    /// Loads from memory that may still be on their way after it, if it waits for some.
    waits: Option<u32>,
}

/// A load; how many bits it brings each invocation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    Global(u32),
    Shared(u32),
}

/// Instructions `begin..=end` that a branch at the end repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    begin: usize,
    end: usize,
}

/// What the main loop is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MainLoop {
    /// Everything that is issued.
    pub(crate) instructions: usize,
    /// Multiply-adds of one invocation.
    pub(crate) macs: f64,
    /// Instructions that multiply and add.
    pub(crate) fmas: usize,
    /// All instructions for vectors, shared memory and memory, those among them.
    pub(crate) vector_instructions: usize,
    /// The narrowest load from memory, in bits per lane; `None` if there is none.
    pub(crate) global_load_bits: Option<u32>,
    /// The narrowest load from shared memory.
    pub(crate) lds_load_bits: Option<u32>,
    /// The most loads from memory that are on their way at a time; `None` if the assembly does not tell of waits.
    pub(crate) loads_in_flight: Option<u32>,
}

impl MainLoop {
    /// Of the whole work, the share that multiplies and adds.
    pub(crate) fn fma_share(&self) -> f64 {
        if self.vector_instructions == 0 { 0.0 } else { self.fmas as f64 / self.vector_instructions as f64 }
    }

    /// Instructions per multiply-add of an invocation, if there are any.
    pub(crate) fn instructions_per_mac(&self) -> Option<f64> {
        (self.macs > 0.0).then(|| self.instructions as f64 / self.macs)
    }

    fn of(instructions: &[Instruction<'_>]) -> MainLoop {
        let narrower = |known: Option<u32>, bits: u32| Some(known.map_or(bits, |known| known.min(bits)));
        let mut counted = MainLoop::default();
        let mut in_flight = 0u32;
        for one in instructions {
            in_flight += u32::from(matches!(one.load, Some(Load::Global(_))));
            if let Some(left) = one.waits {
                counted.loads_in_flight = counted.loads_in_flight.max(Some(in_flight));
                in_flight = in_flight.min(left);
            }
            counted.instructions += usize::from(!one.paired);
            counted.macs += one.macs;
            counted.fmas += usize::from(one.macs > 0.0);
            counted.vector_instructions += usize::from(one.works);
            match one.load {
                Some(Load::Global(bits)) => {
                    counted.global_load_bits = narrower(counted.global_load_bits, bits)
                }
                Some(Load::Shared(bits)) => counted.lds_load_bits = narrower(counted.lds_load_bits, bits),
                None => {}
            }
        }
        counted
    }
}

impl Program<'_> {
    /// Every branch to something before it closes a loop. Loops that begin together are one: `continue`
    /// is a branch, too.
    fn loops(&self) -> Vec<Loop> {
        let mut found: Vec<Loop> = Vec::new();
        for (end, instruction) in self.instructions.iter().enumerate() {
            let target = self.labels.iter().find(|(label, _)| Some(*label) == instruction.branch);
            let Some(&(_, begin)) = target.filter(|(_, begin)| *begin <= end) else { continue };
            match found.iter_mut().find(|one| one.begin == begin) {
                Some(one) => one.end = one.end.max(end),
                None => found.push(Loop { begin, end }),
            }
        }
        found
    }

    /// What the main loop is made of: of the loops that hold no other, the one with the most multiply-adds, then with
    /// the most work. A loop that neither multiplies nor loads is none (it stores a tail); a program without loops is
    /// taken whole.
    fn main_loop(&self) -> MainLoop {
        let loops = self.loops();
        let inside = |a: &Loop, b: &Loop| a != b && b.begin <= a.begin && a.end <= b.end;
        let innermost = loops.iter().filter(|outer| !loops.iter().any(|one| inside(one, outer)));
        let counted = innermost.map(|one| MainLoop::of(&self.instructions[one.begin..=one.end]));
        let works =
            |one: &MainLoop| one.fmas > 0 || one.global_load_bits.is_some() || one.lds_load_bits.is_some();
        let main = counted.filter(works).max_by_key(|counted| (counted.fmas, counted.vector_instructions));
        main.unwrap_or_else(|| MainLoop::of(&self.instructions))
    }
}

/// The main loop of what a compiler printed, for subgroups of this many invocations.
pub(crate) fn main_loop(compiler: Compiler, lanes: u64, text: &str) -> MainLoop {
    let program = match compiler {
        Compiler::Radv => rdna::parse(text),
        Compiler::Anv => intel::parse(text, lanes),
    };
    program.main_loop()
}
