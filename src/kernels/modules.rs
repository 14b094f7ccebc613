//! The SPIR-V that is built into the crate, one module per kernel and choice of its defines; kernels, modules and
//! specialization constants by name.
//!
//! `build.rs` makes all names from `glsl/`: a Rust module for each file, with its constants and, if it is a kernel, its
//! modules.

pub(crate) mod constants;

#[cfg(test)]
use rspirv::spirv::Op;

use crate::ir::pipeline_key::Specialization;
use constants::{Constant, Includes, KernelFile, Specialized};

/// One of the modules: an index in the table, in the order of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Module(usize);

impl Module {
    pub(crate) fn all() -> impl ExactSizeIterator<Item = Module> {
        (0..MODULES.len()).map(Module)
    }

    /// The module of that name. For names that come from files.
    pub(crate) fn find(name: &str) -> Option<Module> {
        MODULES.binary_search_by(|module| module.name.cmp(name)).ok().map(Module)
    }

    pub(crate) fn index(self) -> usize {
        self.0
    }

    fn embedded(self) -> &'static EmbeddedModule {
        // Can't panic: only here and in the generated items are there indices, of entries.
        &MODULES[self.0]
    }

    /// Kernel and lowercased define values: `elementwise.texel.inputs2-steps8`.
    pub(crate) fn name(self) -> &'static str {
        self.embedded().name
    }

    pub(crate) fn kernel(self) -> KernelName {
        self.embedded().kernel
    }

    pub(crate) fn defines(self) -> &'static Defines {
        &self.embedded().defines
    }

    /// The module as Vulkan takes it.
    pub(crate) fn words(self) -> &'static [u32] {
        // Can't panic: `Aligned` gives the alignment, and build.rs embeds whole words only.
        bytemuck::cast_slice(&self.embedded().bytes.0)
    }

    /// With workgroups of this many invocations, and the shader's defaults for all other constants.
    pub(crate) fn with_defaults(self, local_size: u32) -> Specialized {
        let ids = self.kernel().constants().iter().filter(|(_, name)| *name == ConstantName::LocalSize);
        let specialization: Specialization = ids.map(|(id, _)| (*id, local_size)).collect();
        Specialized { module: self, specialization }
    }

    /// The instructions, each with its code in front.
    #[cfg(test)]
    pub(crate) fn instructions(self) -> impl Iterator<Item = (Op, &'static [u32])> {
        let mut rest = &self.words()[5..];
        std::iter::from_fn(move || {
            let first = *rest.first()?;
            let (instruction, following) = rest.split_at((first >> 16) as usize);
            rest = following;
            Some((Op::from_u32(first & 0xffff).unwrap_or(Op::Nop), instruction))
        })
    }
}

/// An entry of the table.
#[derive(Debug)]
struct EmbeddedModule {
    name: &'static str,
    kernel: KernelName,
    defines: Defines,
    bytes: &'static Aligned<[u8]>,
}

/// `include_bytes!` aligns to 1; SPIR-V is read as words.
#[derive(Debug)]
#[repr(C, align(4))]
struct Aligned<T: ?Sized>(T);

// `MODULES`, sorted by name, and the types it is made of.
include!(concat!(env!("OUT_DIR"), "/modules.rs"));

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use rspirv::spirv::{Decoration, StorageClass};

    use super::*;
    use crate::spirv::{Reflection, denormals};

    #[test]
    fn every_module_can_ask_for_denormals() {
        for module in Module::all() {
            let words = module.words();
            let asking = denormals::preserving(words);
            assert_eq!(asking.len(), words.len() + 6, "{}", module.name());
            let (plain, found) = (Reflection::parse(words).unwrap(), Reflection::parse(&asking).unwrap());
            assert!(found.version >= (1, 4), "{}", module.name());
            let asks = found.capabilities.iter().any(|c| c.to_string() == "DenormPreserve");
            assert!(asks, "{}", module.name());
            assert_eq!((plain.entry_point, plain.bindings), (found.entry_point, found.bindings));
        }
    }

    #[test]
    fn every_module_is_found_by_its_name_and_begins_with_the_magic_number() {
        for module in Module::all() {
            assert_eq!(Module::find(module.name()), Some(module));
            assert_eq!(module.words().first(), Some(&0x0723_0203), "{}", module.name());
        }
        assert!(Module::find("no such module").is_none());
    }

    /// What dependents embed. (Builds without the feature find files that are missing, stale or too many.)
    #[cfg(feature = "compile-kernels")]
    #[test]
    #[ignore = "another release of shaderc makes other words; .ci/run has that of Debian 12"]
    fn checked_in_modules_are_what_shaderc_makes_of_the_sources() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("spirv");
        let stale = |module: &Module| {
            let file = std::fs::read(folder.join(format!("{}.spv", module.name())));
            !file.is_ok_and(|bytes| bytes == module.embedded().bytes.0)
        };
        let stale: Vec<_> = Module::all().filter(stale).map(Module::name).collect();
        assert_eq!(stale, [""; 0], "run ./dev shaders and commit spirv/");
    }

    /// Of each kernel: what reflection sees in its modules is what was read from its text, and no name is left over.
    #[test]
    fn constants_are_those_of_the_modules() {
        let mut seen = Vec::new();
        for module in Module::all() {
            let known = module.kernel().constants();
            for constant in Reflection::parse(module.words()).unwrap().specializations {
                let name = if constant.name.is_empty() { "LOCAL_SIZE" } else { &constant.name };
                // The numbers of an array's constants are no part of its name.
                let plain =
                    |name: &str| name.trim_end_matches(char::is_numeric).replace('_', "").to_lowercase();
                let name = plain(name);
                let mut named = known.iter().filter(|(id, _)| *id == constant.id).map(|(_, name)| *name);
                let found = named.find(|known| plain(&format!("{known:?}")).ends_with(&name));
                assert!(found.is_some(), "{}: {name} is constant {}", module.name(), constant.id);
                seen.extend(found.map(|found| (module.kernel(), found)));
            }
        }
        for kernel in Module::all().map(Module::kernel) {
            for (_, name) in kernel.constants() {
                assert!(seen.contains(&(kernel, *name)), "no module of {kernel:?} has {name:?}");
            }
        }
    }

    // glslang gives a variable the type of a block's member where it copies one as a whole. Only current validation
    // layers say so.
    #[test]
    fn no_variable_of_a_kernel_has_a_layout_as_only_blocks_may() {
        let (offset, stride) = (Decoration::Offset as u32, Decoration::ArrayStride as u32);
        let own = [StorageClass::Private, StorageClass::Function, StorageClass::Workgroup]
            .map(|class| class as u32);
        for module in Module::all() {
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
                        module.name(),
                        words[2]
                    );
                }
            }
            assert!(looked_at > 0, "{}: is anything looked at?", module.name());
        }
    }
}
