//! The key of a pipeline.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::vk::kernel::Kernel;

/// Specialization constants: (id, bits).
pub(crate) type Specialization = SmallVec<[(u32, u32); 8]>;

/// The key of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct PipelineKey {
    pub(crate) kernel: Kernel,
    pub(crate) specialization: Specialization,
}

impl PartialEq for PipelineKey {
    fn eq(&self, other: &PipelineKey) -> bool {
        self.kernel.id() == other.kernel.id() && self.specialization == other.specialization
    }
}

impl Eq for PipelineKey {}

impl Hash for PipelineKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kernel.id().hash(state);
        for (id, bits) in &self.specialization {
            state.write_u64(u64::from(*id) << 32 | u64::from(*bits));
        }
    }
}
