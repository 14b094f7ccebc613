//! Limits of a device.

/// The limits that the engine plans by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes that one storage binding may span.
    pub storage_range_bytes: u64,
    /// Bytes that one uniform binding may span.
    pub uniform_range_bytes: u64,
    /// Storage buffer bindings that one shader may have.
    pub storage_bindings: u32,
    /// Uniform buffer bindings that one shader may have.
    pub uniform_bindings: u32,
    /// Elements that a texel view may have.
    pub texel_elements: u64,
    /// Storage texel bindings that one shader may have.
    pub texel_bindings: u32,
    /// Alignment of a binding's offset, good for storage and texel bindings.
    pub offset_alignment: u64,
    /// Bytes that one buffer may have.
    pub buffer_bytes: u64,
    /// Workgroups per dimension of one dispatch.
    pub groups: [u32; 3],
    /// Invocations per dimension of one workgroup.
    pub local_size: [u32; 3],
    /// Invocations of one workgroup.
    pub invocations: u32,
    /// Bytes of push constants.
    pub push_constant_bytes: u32,
    /// Bytes of shared memory per workgroup.
    pub shared_bytes: u32,
    /// Invocations of one subgroup, as the device tells it.
    pub subgroup_size: u32,
    /// The fewest and the most invocations that a subgroup may really have. Where they differ, a shader's subgroups are
    /// of `subgroup_size` only if that is asked for.
    pub subgroup_sizes: [u32; 2],
    /// Subgroups of one workgroup whose subgroup size is asked for.
    pub subgroups: u32,
    /// Memory of the application is imported in whole multiples of this
    /// ([`Accelerator::import`](crate::Accelerator::import)); 0 where the device can't.
    pub host_pointer_alignment: u64,
    /// Granularity of flushes of memory that is not coherent.
    pub(crate) non_coherent_atom: u64,
}
