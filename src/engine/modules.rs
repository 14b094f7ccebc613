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
    use super::*;

    #[test]
    fn every_module_is_found_by_its_name_and_begins_with_the_magic_number() {
        for module in MODULES {
            assert_eq!(find(module.name).map(|index| MODULES[index].name), Some(module.name));
            assert_eq!(module.words().first(), Some(&0x0723_0203), "{}", module.name);
        }
        assert!(find("no such module").is_none());
    }
}
