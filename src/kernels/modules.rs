//! The SPIR-V that is built into the crate, one module per kernel and choice of its defines.
//!
//! `build.rs` makes the table from `glsl/`.

#[cfg(test)]
use rspirv::spirv::Op;

/// A module of the table.
#[derive(Debug)]
pub(crate) struct EmbeddedModule {
    /// Kernel and lowercased define values: `map.texel.8`.
    pub(crate) name: &'static str,
    bytes: &'static Aligned<[u8]>,
}

impl EmbeddedModule {
    /// The module as Vulkan takes it.
    pub(crate) fn words(&self) -> &'static [u32] {
        // Can't panic: `Aligned` gives the alignment, and build.rs embeds whole words only.
        bytemuck::cast_slice(&self.bytes.0)
    }

    /// The instructions, each with its code in front.
    #[cfg(test)]
    pub(crate) fn instructions(&self) -> impl Iterator<Item = (Op, &'static [u32])> {
        let mut rest = &self.words()[5..];
        std::iter::from_fn(move || {
            let first = *rest.first()?;
            let (instruction, following) = rest.split_at((first >> 16) as usize);
            rest = following;
            Some((Op::from_u32(first & 0xffff).unwrap_or(Op::Nop), instruction))
        })
    }
}

/// `include_bytes!` aligns to 1; SPIR-V is read as words.
#[derive(Debug)]
#[repr(C, align(4))]
struct Aligned<T: ?Sized>(T);

// `MODULES`, sorted by name.
include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// The index of the module of that name.
pub(crate) fn find(name: &str) -> Option<usize> {
    MODULES.binary_search_by(|module| module.name.cmp(name)).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use rspirv::spirv::{Decoration, StorageClass};

    use super::*;

    #[test]
    fn every_module_is_found_by_its_name_and_begins_with_the_magic_number() {
        for module in MODULES {
            assert_eq!(find(module.name).map(|index| MODULES[index].name), Some(module.name));
            assert_eq!(module.words().first(), Some(&0x0723_0203), "{}", module.name);
        }
        assert!(find("no such module").is_none());
    }

    /// What dependents embed. (Builds without the feature find files that are missing, stale or too many.)
    #[cfg(feature = "compile-kernels")]
    #[test]
    #[ignore = "another release of shaderc makes other words; .ci/run has that of Debian 12"]
    fn checked_in_modules_are_what_shaderc_makes_of_the_sources() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("spirv");
        let stale = |module: &&EmbeddedModule| {
            let file = std::fs::read(folder.join(format!("{}.spv", module.name)));
            !file.is_ok_and(|bytes| bytes == module.bytes.0)
        };
        let stale: Vec<_> = MODULES.iter().filter(stale).map(|module| module.name).collect();
        assert_eq!(stale, [""; 0], "run ./dev shaders and commit spirv/");
    }

    // glslang gives a variable the type of a block's member where it copies one as a whole. Only current validation layers
    // say so.
    #[test]
    fn no_variable_of_a_kernel_has_a_layout_as_only_blocks_may() {
        let (offset, stride) = (Decoration::Offset as u32, Decoration::ArrayStride as u32);
        let own = [StorageClass::Private, StorageClass::Function, StorageClass::Workgroup]
            .map(|class| class as u32);
        for module in MODULES {
            let (mut laid_out, mut pointees, mut looked_at) = (HashSet::new(), HashMap::new(), 0);
            for (op, words) in module.instructions() {
                let holds_one = |types: &[u32]| types.iter().any(|inner| laid_out.contains(inner));
                let is_laid_out = match op {
                    Op::Decorate => words[2] == stride,
                    Op::MemberDecorate => words[3] == offset,
                    Op::TypeArray => holds_one(&words[2..3]),
                    Op::TypeStruct => holds_one(&words[2..]),
                    _ => false,
                };
                if is_laid_out {
                    laid_out.insert(words[1]);
                } else if op == Op::TypePointer {
                    pointees.insert(words[1], words[3]);
                } else if op == Op::Variable && own.contains(&words[3]) {
                    looked_at += 1;
                    assert!(
                        !laid_out.contains(&pointees[&words[1]]),
                        "{}: variable %{}",
                        module.name,
                        words[2]
                    );
                }
            }
            assert!(looked_at > 0, "{}: is anything looked at?", module.name);
        }
    }
}
