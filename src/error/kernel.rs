//! Mistakes in the use of kernels.

use super::List;
use crate::shape::DType;

/// A disagreement between a dispatch's arguments and the kernel's reflection.
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
    /// The argument does not fit the binding.
    #[error("binding {binding} is {declared}, the argument is {given}")]
    Binding {
        /// The binding's number.
        binding: u32,
        /// The shader's declaration.
        declared: String,
        /// The given value.
        given: &'static str,
    },
    /// The tensor has another element type than the shader's block.
    #[error("binding {binding} holds {declared} in the shader, the tensor holds {given}")]
    ElementType {
        /// The binding's number.
        binding: u32,
        /// The shader's declaration.
        declared: DType,
        /// The given value.
        given: DType,
    },
    /// The tensor is too small for a binding of fixed size.
    #[error("binding {binding} needs at least {needs} bytes, the tensor has {got}")]
    BindingSize {
        /// The binding's number.
        binding: u32,
        /// Bytes of the shader's block.
        needs: u64,
        /// The tensor's size.
        got: u64,
    },
    /// The last texel would reach past the end of the tensor.
    #[error(
        "binding {binding} takes texels of {texel_bytes} bytes, the tensor has {got}, which is not a multiple of that; \
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
    /// The tensor is larger than a binding may be on this device.
    #[error("binding {binding} would span {got} bytes, the device allows {limit}; bind a smaller tensor")]
    BindingLimit {
        /// The binding's number.
        binding: u32,
        /// The tensor's size.
        got: u64,
        /// The device's limit.
        limit: u64,
    },
    /// Two bindings would update one tensor.
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
    /// The shader has no specialization constant with this id.
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
        /// The requested value.
        got: [u32; 3],
        /// The device's limit.
        limit: [u32; 3],
    },
    /// A shared array of no elements.
    #[error("specialization constant {id} is 0 and is the length of a shared array; it must be 1 or more")]
    EmptyShared {
        /// The constant's id.
        id: u32,
    },
    /// More shared memory than the device has for a workgroup.
    #[error("its shared variables take {got} bytes, the device has {limit} for a workgroup")]
    SharedMemory {
        /// Bytes of the shader's variables under the given specialization.
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
