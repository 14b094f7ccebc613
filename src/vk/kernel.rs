//! A kernel: immutable SPIR-V that describes itself.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::spirv::shared::SharedMemory;
use crate::spirv::{Capability, Reflection};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A compute shader: SPIR-V and what reflection says of it. Immutable, cheap to clone, independent of any device.
///
/// The engine's own kernels need no mention in user code; this is for kernels of your own, run with
/// [`Recording::dispatch`](crate::Recording::dispatch).
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

struct Inner {
    id: u64,
    name: String,
    words: Cow<'static, [u32]>,
    /// Whether nobody but its guard vouches for it; then, what that has found.
    guarded: Option<SharedMemory>,
    reflection: Reflection,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.0.name)
            .field("reflection", &self.0.reflection)
            .finish_non_exhaustive()
    }
}

impl Kernel {
    /// A kernel from SPIR-V words. `name` is what labels, profiles and errors call it.
    ///
    /// # Safety
    ///
    /// The words must be a module that is valid by the rules of Vulkan 1.3 (`spirv-val --target-env vulkan1.3`), and
    /// for **every** set of arguments that it will be dispatched with (tensors of any size that the bindings accept,
    /// push constants, specialization, group counts) the shader must
    /// - access only elements inside its bindings,
    /// - write only to bindings that it does not declare `readonly`, and, from different invocations without
    ///   synchronization, never to the same element,
    /// - write all of every output that it declares `writeonly`: such an output is not zero before, so what is left out
    ///   shows bytes of whoever had the memory last,
    /// - end: a loop that never does hangs the device.
    ///
    /// # Errors
    ///
    /// [`Error::Spirv`](crate::Error::Spirv) if the words are not a compute module that reflection understands.
    pub unsafe fn from_spirv(name: &str, words: &[u32]) -> Result<Kernel> {
        Kernel::new(name.to_owned(), Cow::Owned(words.to_vec()), None)
    }

    /// One of the engine's own modules.
    pub(crate) fn embedded(name: &str, words: &'static [u32]) -> Result<Kernel> {
        Kernel::new(name.to_owned(), Cow::Borrowed(words), None)
    }

    /// A module whose accesses stay inside its bindings, as long as each holds an element.
    #[cfg(feature = "shaderc")]
    pub(crate) fn guarded(name: String, words: Vec<u32>, shared: SharedMemory) -> Result<Kernel> {
        Kernel::new(name, Cow::Owned(words), Some(shared))
    }

    fn new(name: String, words: Cow<'static, [u32]>, guarded: Option<SharedMemory>) -> Result<Kernel> {
        let reflection = Reflection::parse(&words)?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(Kernel(Arc::new(Inner { id, name, words, guarded, reflection })))
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What the SPIR-V says of itself.
    pub fn reflection(&self) -> &Reflection {
        &self.0.reflection
    }

    /// Unique in the process.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// Whether it is the engine's own: those read 16 bytes at a time and mask what lies behind a tensor's end.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.0.words, Cow::Borrowed(_))
    }

    /// Whether its subgroups must have the size that the device tells: the engine's own that shuffle. Users' kernels
    /// know `gl_SubgroupSize`.
    pub(crate) fn counts_on_subgroup_size(&self) -> bool {
        let shuffles = |c: &Capability| c.to_string().starts_with("GroupNonUniformShuffle");
        self.is_embedded() && self.0.reflection.capabilities.iter().any(shuffles)
    }

    /// Whether nobody but its guard vouches for it.
    pub(crate) fn is_guarded(&self) -> bool {
        self.0.guarded.is_some()
    }

    /// What a guarded one shares in a workgroup.
    pub(crate) fn shared_memory(&self) -> Option<&SharedMemory> {
        self.0.guarded.as_ref()
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.0.words
    }
}
