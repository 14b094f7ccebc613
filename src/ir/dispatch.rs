//! Kernels of users' own, as they are recorded.

use smallvec::SmallVec;

use super::command::Cost;
use super::pipeline_key::PipelineKey;
use super::value::ValueId;

/// What stands behind a binding: all of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) value: ValueId,
    pub(crate) write: bool,
    /// The version of a tensor that the value is the next one of: the kernel may read it, and leaves what it does not
    /// write.
    pub(crate) over: Option<ValueId>,
}

/// One run of a user's kernel. It is run as often as it is recorded.
#[derive(Clone, Debug)]
pub(crate) struct KernelDispatch {
    pub(crate) pipeline: PipelineKey,
    pub(crate) push: SmallVec<[u8; 128]>,
    pub(crate) groups: [u32; 3],
    /// In the order of the bindings.
    pub(crate) arguments: SmallVec<[Argument; 4]>,
    pub(crate) cost: Cost,
}
