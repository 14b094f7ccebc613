//! What a workgroup's shared variables take.

/// The size of a module's shared variables; arrays may have lengths that are set when a pipeline is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "shaderc"),
    allow(dead_code, reason = "only GLSL compiled here is looked at so closely")
)]
pub(crate) struct SharedMemory {
    /// Bytes of variables whose size is known, padding left out.
    pub(crate) fixed_bytes: u64,
    /// An element's bytes, and the specialization constants that count such elements: (id, default).
    pub(crate) sized: Vec<(u64, Vec<(u32, u32)>)>,
}

impl SharedMemory {
    /// How many bytes these `(id, value)` specialization values make of it.
    pub(crate) fn bytes(&self, values: &[(u32, u32)]) -> u64 {
        let length = |known: &(u32, u32)| u64::from(length(*known, values));
        self.sized.iter().fold(self.fixed_bytes, |sum, (element, lengths)| {
            sum.saturating_add(lengths.iter().map(length).fold(*element, u64::saturating_mul))
        })
    }

    /// A specialization constant that leaves an array without elements: Vulkan has no such arrays.
    pub(crate) fn empty(&self, values: &[(u32, u32)]) -> Option<u32> {
        let mut lengths = self.sized.iter().flat_map(|(_, lengths)| lengths);
        lengths.find(|known| length(**known, values) == 0).map(|(id, _)| *id)
    }
}

fn length((id, default): (u32, u32), values: &[(u32, u32)]) -> u32 {
    values.iter().find(|(known, _)| *known == id).map_or(default, |(_, value)| *value)
}
