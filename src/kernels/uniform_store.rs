//! Stores of a whole subgroup together: what `glsl/lib/uniform_store.glsl` needs of the host.

use smallvec::SmallVec;

use crate::ir::epilogue::PushResult;
use crate::vk::physical::Limits;

/// The push constants among which a shader looks up the number of its subgroup.
pub(crate) const DIGITS: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Subgroups of a dispatch that can be looked up.
pub(crate) const MOST_SUBGROUPS: u64 = 1 << 18;

/// Whether workgroups of this size are made of whole subgroups, and those of pairs of lanes.
pub(crate) fn whole_subgroups(local_size: u32, limits: &Limits) -> bool {
    limits.subgroup_size > 1 && local_size.is_multiple_of(limits.subgroup_size)
}

/// The push constants of a module of matmuls or convolutions: its operands, the result of one batch, and the digits.
pub(crate) fn one_batch(operands: &[u8], result: &PushResult) -> SmallVec<[u8; 128]> {
    [operands, result.of_one_batch(), bytemuck::bytes_of(&DIGITS)].concat().into()
}
