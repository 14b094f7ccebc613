//! The reflection of a compute kernel, read from its SPIR-V.
//!
//! Bindings, access, push-constant size, local size and specialization constants are never typed a second
//! time in Rust: [`Reflection::parse`] reads them from the module.

use std::fmt;

use crate::shape::DType;

pub(crate) mod check;
pub(crate) mod denormals;
pub(crate) mod guard;
mod reader;
mod resolve;
mod scan;
pub(crate) mod shared;
#[cfg(test)]
mod tests;

/// The part of a compute module that the engine needs for pipelines and bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reflection {
    /// The name of the one entry point, mostly `main`.
    pub entry_point: String,
    /// Every declared resource, sorted by set and binding. Each pair of set and binding is there once.
    pub bindings: Vec<Binding>,
    /// How many bytes of push constants the module may read, a multiple of 4; 0 without push constants.
    pub push_constant_bytes: u32,
    /// Invocations per workgroup in x, y and z. Never 0, with the default values.
    pub local_size: [LocalSize; 3],
    /// Specialization constants, sorted by id. Each id is there once.
    pub specializations: Vec<Specialization>,
    /// Capabilities that the device must have, in the module's order.
    pub capabilities: Vec<Capability>,
    /// The version of SPIR-V the module is written in, as (major, minor).
    pub version: (u8, u8),
}

impl Reflection {
    /// Reads the declarations of a module. Function bodies are stepped over, not looked into.
    ///
    /// ```
    /// # let words = include_bytes!("../tests/fixtures/specialized.spv");
    /// # let words: Vec<u32> = words.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
    /// let kernel = tidemill::spirv::Reflection::parse(&words)?;
    /// assert_eq!(kernel.entry_point, "main");
    /// assert_eq!(kernel.local_size_with(&[(0, 64)]), [64, 4, 1]);
    /// # Ok::<(), tidemill::spirv::ReflectError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Whatever is not one whole SPIR-V module with exactly one entry point, of the compute kind, is refused.
    pub fn parse(words: &[u32]) -> Result<Self, ReflectError> {
        let declarations = scan::declarations(words)?;
        reader::read(&declarations)?.finish()
    }

    /// The local size under these `(id, value)` specialization values. Ids that are not given keep their
    /// defaults.
    pub fn local_size_with(&self, values: &[(u32, u32)]) -> [u32; 3] {
        self.local_size.map(|size| match size {
            LocalSize::Literal(size) => size,
            LocalSize::Specialized { id, default } => {
                values.iter().find(|(known, _)| *known == id).map_or(default, |(_, value)| *value)
            }
        })
    }

    /// The binding with these numbers.
    pub fn binding(&self, set: u32, binding: u32) -> Option<&Binding> {
        let place = self.bindings.binary_search_by_key(&(set, binding), |known| (known.set, known.binding));
        place.ok().and_then(|index| self.bindings.get(index))
    }

    /// The specialization constant with this id.
    pub fn specialization(&self, id: u32) -> Option<&Specialization> {
        let place = self.specializations.binary_search_by_key(&id, |known| known.id);
        place.ok().and_then(|index| self.specializations.get(index))
    }
}

/// A resource that a module declares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Binding {
    /// The descriptor set.
    pub set: u32,
    /// The number within the set.
    pub binding: u32,
    /// The kind of resource to bind.
    pub kind: BindingKind,
    /// The type of all numbers in it, if that is one, and one that tensors have.
    pub element: Option<DType>,
    /// How the module may access it.
    pub access: Access,
    /// How many descriptors: 1, or the length of the array.
    pub count: u32,
    /// The variable's name, or that of its block; empty in modules that were stripped of names.
    pub name: String,
}

/// The kind of resource at a [`Binding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BindingKind {
    /// A storage buffer.
    StorageBuffer {
        /// The bytes that are there in any case, in front of an array without a length. An array whose length
        /// is a specialization constant counts with the default; one whose length is computed from one, as 0.
        fixed_bytes: u32,
        /// The distance between elements of the array without a length at the end, if there is one. `None`
        /// also where the binding is declared several times and the declarations differ in it.
        stride: Option<u32>,
    },
    /// A storage texel buffer: `imageBuffer`.
    StorageTexel {
        /// The format its view must have.
        format: TexelFormat,
    },
    /// A uniform texel buffer: `samplerBuffer`, `textureBuffer`.
    UniformTexel,
    /// A uniform buffer.
    UniformBuffer {
        /// The size of the block.
        bytes: u32,
    },
    /// Something the engine has no use for; the text says what.
    Other(&'static str),
}

impl fmt::Display for BindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StorageBuffer { .. } => f.write_str("storage buffer"),
            Self::StorageTexel { format } => write!(f, "storage texel buffer ({format:?})"),
            Self::UniformTexel => f.write_str("uniform texel buffer"),
            Self::UniformBuffer { .. } => f.write_str("uniform buffer"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// The format of a storage texel buffer, as the shader states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TexelFormat {
    /// Not stated: any format that the device reads or writes without one.
    Unstated,
    /// `rgba32f`
    Rgba32f,
    /// `rgba16f`
    Rgba16f,
    /// `rg32f`
    Rg32f,
    /// `r32f`
    R32f,
    /// `r16f`
    R16f,
    /// `rgba32i`
    Rgba32i,
    /// `r32i`
    R32i,
    /// `rgba32ui`
    Rgba32ui,
    /// `rgba8ui`
    Rgba8ui,
    /// `rg32ui`
    Rg32ui,
    /// `r32ui`
    R32ui,
    /// Another one, by its number in SPIR-V.
    Other(u32),
}

/// How a module may access a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It only reads.
    ReadOnly,
    /// It only writes.
    WriteOnly,
    /// It may do both. Also what is assumed where a block has members of either kind.
    ReadWrite,
}

impl Access {
    /// Whether the module may read.
    pub fn reads(self) -> bool {
        self != Self::WriteOnly
    }

    /// Whether the module may write.
    pub fn writes(self) -> bool {
        self != Self::ReadOnly
    }
}

/// The local size in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalSize {
    /// Fixed in the module.
    Literal(u32),
    /// Set when a pipeline is made.
    Specialized {
        /// The specialization constant's id.
        id: u32,
        /// The size if it is not set.
        default: u32,
    },
}

/// A value that can be set when a pipeline is made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Specialization {
    /// The `constant_id`.
    pub id: u32,
    /// Its type.
    pub kind: SpecializationKind,
    /// The default's bits, in the low end; 0 or 1 for a bool.
    pub default_bits: u64,
    /// Its name; empty in modules that were stripped of names, and for a local size.
    pub name: String,
}

/// The type of a specialization constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpecializationKind {
    /// A bool, given as 32 bits.
    Bool,
    /// A signed integer of 32 bits.
    I32,
    /// An unsigned integer of 32 bits.
    U32,
    /// A float of 32 bits.
    F32,
    /// A number of another width.
    Other {
        /// Its width.
        bits: u32,
    },
}

impl SpecializationKind {
    /// How many bytes Vulkan expects for a value.
    pub fn size_bytes(self) -> u32 {
        match self {
            Self::Other { bits } => bits / 8,
            Self::Bool | Self::I32 | Self::U32 | Self::F32 => 4,
        }
    }
}

/// Something a device must be able to do to run a module. Displays as its name in the SPIR-V specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Capability(u32);

impl Capability {
    /// Its number in the SPIR-V specification.
    pub fn code(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match rspirv::spirv::Capability::from_u32(self.0) {
            Some(capability) => write!(f, "{capability:?}"),
            None => write!(f, "capability {}", self.0),
        }
    }
}

/// Why a module is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectError {
    /// Not even a header.
    #[error("not SPIR-V: {words} words, a module's header alone has 5")]
    TooShort {
        /// How many there are.
        words: usize,
    },
    /// Something else than SPIR-V.
    #[error("not SPIR-V: it begins with {found:#010x} and not with the magic number 0x07230203")]
    BadMagic {
        /// The first word.
        found: u32,
    },
    /// Bytes of the words in the other order.
    #[error("SPIR-V with the words' bytes in the other order: read it as words of the other endianness")]
    ByteSwapped,
    /// An instruction without a length, or one that reaches past the end.
    #[error("damaged SPIR-V: the instruction at word {word} claims {claimed} words, {left} are left")]
    BadInstruction {
        /// Where.
        word: usize,
        /// Its own idea of its length.
        claimed: usize,
        /// From there to the end.
        left: usize,
    },
    /// The module ends where no module ends.
    #[error("truncated SPIR-V: {words} words that do not end with the end of a function")]
    Truncated {
        /// How many there are.
        words: usize,
    },
    /// A declaration that can't be decoded.
    #[error("damaged SPIR-V: {0}")]
    BadDeclaration(String),
    /// No compute shader.
    #[error("no compute entry point (GLCompute): {found}")]
    NoComputeEntryPoint {
        /// What there is instead.
        found: String,
    },
    /// A kernel is one entry point.
    #[error("{} entry points ({}): a kernel has exactly one, compile one module for each",
        .names.len(), .names.join(", "))]
    ManyEntryPoints {
        /// Their names.
        names: Vec<String>,
    },
    /// Nothing says how large a workgroup is.
    #[error("entry point `{entry_point}` states no local size")]
    NoLocalSize {
        /// Its name.
        entry_point: String,
    },
    /// A local size of 0, or one that is neither a literal nor a specialization constant.
    #[error(
        "entry point `{entry_point}`: its local size in {axis} must be a literal or a specialization constant, not 0"
    )]
    BadLocalSize {
        /// Its name.
        entry_point: String,
        /// `x`, `y` or `z`.
        axis: char,
    },
    /// A resource without numbers.
    #[error("resource `{name}` has no set or no binding number")]
    Unnumbered {
        /// Its name, which may be empty.
        name: String,
    },
    /// How many descriptors is not known before a pipeline is made.
    #[error(
        "set {set} binding {binding} (`{name}`): an array of descriptors must have a literal length, not 0"
    )]
    UnsizedDescriptorArray {
        /// The set.
        set: u32,
        /// The number within the set.
        binding: u32,
        /// The variable's name, which may be empty.
        name: String,
    },
    /// Two resources that can't share one place do.
    #[error("set {set} binding {binding} is declared as {first} and as {second}")]
    Conflict {
        /// The set.
        set: u32,
        /// The number within the set.
        binding: u32,
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
}
