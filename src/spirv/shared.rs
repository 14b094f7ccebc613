//! The size of a workgroup's shared variables.

/// The size of a module's shared variables; arrays may have lengths that are set when a pipeline is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedMemory {
    /// The variables in their order: each begins at the next multiple of its alignment, as std430 has it.
    pub(crate) variables: Vec<SharedVariable>,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedVariable {
    /// Its size, or an element's, with what pads each to the next.
    pub(crate) bytes: u64,
    pub(crate) alignment: u64,
    /// The specialization constants that count such elements: (id, default).
    pub(crate) lengths: Vec<(u32, u32)>,
}

impl SharedMemory {
    /// How many bytes these `(id, value)` specialization values make of it.
    pub(crate) fn bytes(&self, values: &[(u32, u32)]) -> u64 {
        let length = |known: &(u32, u32)| u64::from(length(*known, values));
        self.variables.iter().fold(0u64, |end, SharedVariable { bytes, alignment, lengths }| {
            let begin = end.checked_next_multiple_of(*alignment).unwrap_or(u64::MAX);
            begin.saturating_add(lengths.iter().map(length).fold(*bytes, u64::saturating_mul))
        })
    }

    /// A specialization constant that leaves an array without elements: Vulkan has no such arrays.
    pub(crate) fn empty(&self, values: &[(u32, u32)]) -> Option<u32> {
        let mut lengths = self.variables.iter().flat_map(|variable| &variable.lengths);
        lengths.find(|known| length(**known, values) == 0).map(|(id, _)| *id)
    }
}

fn length((id, default): (u32, u32), values: &[(u32, u32)]) -> u32 {
    values.iter().find(|(known, _)| *known == id).map_or(default, |(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_begins_at_its_alignment() {
        let bytes = |variables: &[(u64, u64)]| {
            let variable =
                |&(bytes, alignment): &(u64, u64)| SharedVariable { bytes, alignment, lengths: Vec::new() };
            SharedMemory { variables: variables.iter().map(variable).collect() }.bytes(&[])
        };
        assert_eq!(bytes(&[(4, 4), (16, 16)]), 32);
        assert_eq!(bytes(&[(16, 16), (4, 4)]), 20);
        assert_eq!(bytes(&[(4, 4), (8, 8), (4, 4), (4, 4)]), 24);
        assert_eq!(bytes(&[(u64::MAX, 4), (16, 16)]), u64::MAX);
    }

    #[test]
    fn lengths_are_those_that_are_set() {
        let lengths = vec![(0, 3), (7, 5)];
        let shared = SharedMemory { variables: vec![SharedVariable { bytes: 4, alignment: 4, lengths }] };
        assert_eq!(
            [shared.bytes(&[]), shared.bytes(&[(7, 2)]), shared.bytes(&[(0, 1), (7, 1)])],
            [60, 24, 4]
        );
        assert_eq!([shared.empty(&[]), shared.empty(&[(7, 0)])], [None, Some(7)]);
    }
}
