//! Modules that ask for f32 denormals.

use rspirv::spirv::{Capability, ExecutionMode, Op};

/// Words before the first instruction.
const HEADER: usize = 5;

/// A module that says nothing of denormals, of SPIR-V 1.4 or later, with the wish that those of f32 are kept.
pub(crate) fn preserving(words: &[u32]) -> Vec<u32> {
    let mut out = Vec::with_capacity(words.len() + 8);
    out.extend_from_slice(words.get(..HEADER).unwrap_or(words));
    out.extend([instruction(Op::Capability, 2), Capability::DenormPreserve as u32]);
    let mut rest = words.get(HEADER..).unwrap_or_default();
    let mut entry_point = None;
    while let Some(&first) = rest.first() {
        let is_entry_point = first & 0xffff == Op::EntryPoint as u32;
        if is_entry_point {
            entry_point = rest.get(2).copied();
        } else if let Some(id) = entry_point.take() {
            // Execution modes stand behind the entry points.
            let mode = ExecutionMode::DenormPreserve as u32;
            out.extend([instruction(Op::ExecutionMode, 4), id, mode, 32]);
        }
        let (this, later) = rest.split_at((first >> 16).max(1).min(rest.len() as u32) as usize);
        out.extend_from_slice(this);
        rest = later;
    }
    out
}

/// The first word of an instruction of this many words.
fn instruction(op: Op, words: u32) -> u32 {
    words << 16 | op as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_stays_what_it_is() {
        for words in [&[][..], &[1, 2, 3], &[0, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 0xffff_0000]] {
            let out = preserving(words);
            assert!(out.len() == words.len() + 2, "{out:?}");
        }
    }
}
