//! Mistakes in the use of kernels.

use super::List;
use crate::shape::DType;

/// What disagrees between a dispatch's arguments and a kernel's reflection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelMismatch {
    /// The number of bound tensors.
    #[error("it has {expected} bindings, {got} were given")]
    BindingCount {
        /// Bindings in the shader.
        expected: usize,
        /// Arguments given.
        got: usize,
    },
    /// A binding whose argument can't serve it.
    #[error("binding {binding} is {declared}, the argument is {given}")]
    Binding {
        /// The binding's number.
        binding: u32,
        /// What the shader declares.
        declared: String,
        /// What was given.
        given: &'static str,
    },
    /// A tensor of other elements than the shader's block has.
    #[error("binding {binding} holds {declared} in the shader, the tensor holds {given}")]
    ElementType {
        /// The binding's number.
        binding: u32,
        /// What the shader declares.
        declared: DType,
        /// What was given.
        given: DType,
    },
    /// A fixed-size binding that the tensor is too small for.
    #[error("binding {binding} needs at least {needs} bytes, the tensor has {got}")]
    BindingSize {
        /// The binding's number.
        binding: u32,
        /// What the shader's block takes.
        needs: u64,
        /// The tensor's size.
        got: u64,
    },
    /// A tensor whose last texel would reach past its end.
    #[error(
        "binding {binding} takes texels of {texel_bytes} bytes, the tensor has {got}, which is no whole number of them; \
         pad it, or declare a format of one component"
    )]
    Texels {
        /// The binding's number.
        binding: u32,
        /// The size of a texel in the shader's format.
        texel_bytes: u64,
        /// The tensor's size.
        got: u64,
    },
    /// A tensor larger than the device lets a binding be.
    #[error("binding {binding} would span {got} bytes, the device allows {limit}")]
    BindingLimit {
        /// The binding's number.
        binding: u32,
        /// The tensor's size.
        got: u64,
        /// The device's limit.
        limit: u64,
    },
    /// A tensor that two bindings would update.
    #[error("bindings {} and {} would both update the same tensor; give one of them a copy", .bindings[0], .bindings[1])]
    UpdatedTwice {
        /// The bindings' numbers.
        bindings: [u32; 2],
    },
    /// The number of push-constant bytes.
    #[error("its push constants are {expected} bytes, {got} were given")]
    PushConstants {
        /// Bytes in the shader.
        expected: u32,
        /// Bytes given.
        got: usize,
    },
    /// A specialization id that the shader has not.
    #[error("it has no specialization constant {id}; it has {}", List(.known))]
    Specialization {
        /// The id given.
        id: u32,
        /// The ids it has.
        known: Vec<u32>,
    },
    /// More workgroups than the device allows, or none given.
    #[error("{got:?} workgroups are outside the device's {limit:?}")]
    Groups {
        /// What was asked for.
        got: [u32; 3],
        /// The device's limit.
        limit: [u32; 3],
    },
    /// A shared array of no elements.
    #[error("specialization constant {id} is 0, and is the length of a shared array")]
    EmptyShared {
        /// The constant's id.
        id: u32,
    },
    /// More shared memory than the device has for a workgroup.
    #[error("its shared variables take {got} bytes, the device has {limit} for a workgroup")]
    SharedMemory {
        /// What the shader's variables take under the specialization given.
        got: u64,
        /// The device's limit.
        limit: u64,
    },
    /// A workgroup larger than the device allows.
    #[error("a workgroup of {got:?} invocations exceeds the device's {limit:?} ({total_limit} in total)")]
    LocalSize {
        /// The resolved local size.
        got: [u32; 3],
        /// The device's limit per dimension.
        limit: [u32; 3],
        /// The device's limit of their product.
        total_limit: u32,
    },
}
