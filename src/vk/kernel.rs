//! A kernel: immutable SPIR-V that describes itself.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::error::{Error, Result};
use crate::spirv::check::check;
use crate::spirv::guard::guard;
use crate::spirv::shared::SharedMemory;
use crate::spirv::{Capability, Reflection};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A compute shader: SPIR-V and what reflection says of it. Immutable, cheap to clone, independent of any device.
///
/// The engine's own kernels need no mention in user code; this is for kernels of your own, run with
/// [`Recording::dispatch`](crate::Recording::dispatch).
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

/// Knows whether a kernel is still there, without keeping it.
pub(crate) struct KernelWatch(Weak<Inner>);

impl KernelWatch {
    /// Whether every handle to it was dropped.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl fmt::Debug for KernelWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelWatch").field("is_gone", &self.is_gone()).finish()
    }
}

struct Inner {
    id: u64,
    name: String,
    words: Cow<'static, [u32]>,
    /// Whether only its guard vouches for it; then, what the guard has found.
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
    ///   shows bytes of the memory's last owner,
    /// - end: a loop that never does hangs the device.
    ///
    /// # Errors
    ///
    /// [`Error::Spirv`](crate::Error::Spirv) if the words are not a compute module that reflection understands.
    pub unsafe fn from_spirv(name: &str, words: &[u32]) -> Result<Kernel> {
        Kernel::new(name.to_owned(), Cow::Owned(words.to_vec()), None)
    }

    /// A kernel from SPIR-V words, made safe to run: the same that `Glsl::compile` does to what it has compiled
    /// (feature `shaderc`), for modules that were compiled elsewhere, by glslang, DXC, Slang or rust-gpu. No feature is
    /// needed.
    ///
    /// Indices that are not known to be inside are clamped in the SPIR-V itself: to the length of what is bound, of an
    /// array or of a vector. An index out of bounds is a wrong element, and a kernel without mistakes computes the same
    /// as without that. Outputs are zero before such a kernel runs, and tensors of no elements are refused as its
    /// arguments. What is left to a kernel's mistakes are wrong numbers and
    /// [`Error::DeviceLost`](crate::Error::DeviceLost), for one that never ends.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::{DType, Dispatch, Kernel};
    /// // y[i] = factor * x[i], by `glslangValidator -V --target-env vulkan1.3 scale.comp -o scale.spv`
    /// let bytes = include_bytes!("../../tests/fixtures/scale.spv");
    /// let words: Vec<u32> = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
    /// let kernel = Kernel::from_spirv_guarded("scale", &words)?;
    ///
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0], [3])?;
    /// let run = Dispatch::new(&kernel).input(&x).output([3], DType::F32).push(&[3.0f32]).specialize(0, 64u32);
    /// let y = gpu.run(|r| r.dispatch(run))?;
    /// assert_eq!(y[0].read::<f32>()?, [3.0, 6.0, 9.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unguardable`](crate::Error::Unguardable) says what can't be kept inside its bindings: pointers that are
    /// made in any other way than by an index, a binding declared twice, an array in a buffer whose length is a
    /// specialization constant, more than 64 KiB of local variables; and what is damaged.
    /// [`Error::Spirv`](crate::Error::Spirv) if the words are not a compute module that reflection understands.
    pub fn from_spirv_guarded(name: &str, words: &[u32]) -> Result<Kernel> {
        Reflection::parse(words)?;
        let unguardable = |why| Error::Unguardable { kernel: name.to_owned(), why };
        check(words).map_err(unguardable)?;
        let (guarded, shared) = guard(words).map_err(unguardable)?;
        Kernel::guarded(name.to_owned(), guarded, shared)
    }

    /// One of the engine's own modules.
    pub(crate) fn embedded(name: &str, words: &'static [u32]) -> Result<Kernel> {
        Kernel::new(name.to_owned(), Cow::Borrowed(words), None)
    }

    /// A module whose accesses stay inside its bindings, as long as each holds an element.
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

    /// The reflection of the SPIR-V.
    pub fn reflection(&self) -> &Reflection {
        &self.0.reflection
    }

    /// Tells when it is gone.
    pub(crate) fn watch(&self) -> KernelWatch {
        KernelWatch(Arc::downgrade(&self.0))
    }

    /// Unique in the process.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// Whether it is the engine's own: those read 16 bytes at a time and mask what lies behind a tensor's end.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.0.words, Cow::Borrowed(_))
    }

    /// Whether its subgroups must have the size that the architecture likes: the engine's own that shuffle. Users'
    /// kernels know `gl_SubgroupSize`.
    pub(crate) fn counts_on_subgroup_size(&self) -> bool {
        let shuffles = |c: &Capability| c.to_string().starts_with("GroupNonUniformShuffle");
        self.is_embedded() && self.0.reflection.capabilities.iter().any(shuffles)
    }

    /// Whether only its guard vouches for it.
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
