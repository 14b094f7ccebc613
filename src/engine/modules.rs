//! The SPIR-V that is built into the crate, one module per kernel and choice of its defines.
//!
//! `build.rs` makes the table from `glsl/`.

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
    pub(crate) fn instructions(&self) -> impl Iterator<Item = (u32, &'static [u32])> {
        let mut rest = &self.words()[5..];
        std::iter::from_fn(move || {
            let first = *rest.first()?;
            let (instruction, following) = rest.split_at((first >> 16) as usize);
            rest = following;
            Some((first & 0xffff, instruction))
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

    use rspirv::spirv::{Decoration, Op, StorageClass};

    use super::*;

    #[test]
    fn every_module_is_found_by_its_name_and_begins_with_the_magic_number() {
        for module in MODULES {
            assert_eq!(find(module.name).map(|index| MODULES[index].name), Some(module.name));
            assert_eq!(module.words().first(), Some(&0x0723_0203), "{}", module.name);
        }
        assert!(find("no such module").is_none());
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
                if (op == Op::Decorate as u32 && words[2] == stride)
                    || (op == Op::MemberDecorate as u32 && words[3] == offset)
                {
                    laid_out.insert(words[1]);
                } else if op == Op::TypeArray as u32 && laid_out.contains(&words[2])
                    || op == Op::TypeStruct as u32
                        && words[2..].iter().any(|member| laid_out.contains(member))
                {
                    laid_out.insert(words[1]);
                } else if op == Op::TypePointer as u32 {
                    pointees.insert(words[1], words[3]);
                } else if op == Op::Variable as u32 && own.contains(&words[3]) {
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
