//! The bytes that a binding can span, and the workgroups of a grid: the same for every family.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::value::{Access, ValueId, Values};
use crate::vk::physical::Limits;

/// Whether a texel view can span a value.
pub(crate) fn texel_fits(values: &Values, value: ValueId, limits: &Limits) -> bool {
    texel_bytes_fit(values.bytes(values.root(value)), limits)
}

/// Whether a texel view can span this many bytes. A kernel may read the texel behind the last.
pub(crate) fn texel_bytes_fit(bytes: u64, limits: &Limits) -> bool {
    bytes / 16 < limits.texel_elements
}

/// The bytes that a window may have wherever it begins: its binding begins up to one alignment early.
pub(crate) fn window_bytes(limits: &Limits) -> u64 {
    limits.storage_range_bytes - limits.offset_alignment
}

/// Refuses a value of which all must be bound at once, if no single binding can span it.
pub(crate) fn check_binding(
    op: &'static str,
    value: ValueId,
    values: &Values,
    limits: &Limits,
) -> Result<()> {
    let (limit, (shape, bytes)) = (limits.storage_range_bytes, values.binding(value));
    if branch!("bindings: beyond one", bytes > limit) {
        return Err(Error::BindingTooLarge { op, shape, bytes, limit });
    }
    Ok(())
}

/// The binding of some bytes of a value. It begins where bindings may; the second number is how many bytes too early
/// that is.
pub(crate) fn window(whole: Access, bytes: Range<u64>, limits: &Limits) -> (Access, u64) {
    let offset = bytes.start / limits.offset_alignment * limits.offset_alignment;
    (Access { offset, bytes: bytes.end - offset, ..whole }, bytes.start - offset)
}

/// A grid of at least this many workgroups, and of one at the least: a line, or rows of lines where a line is too long.
pub(crate) fn grid(groups: u64, limits: &Limits) -> [u32; 3] {
    let x = groups.clamp(1, u64::from(limits.groups[0]));
    [x as u32, groups.div_ceil(x).max(1) as u32, 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vk::physical::{DeviceInfo, DeviceKind};

    fn limits() -> Limits {
        Limits { offset_alignment: 64, ..DeviceInfo::example(DeviceKind::Discrete).limits }
    }

    #[test]
    fn windows_begin_where_bindings_may() {
        let whole = Access { value: 3, offset: 0, bytes: 1000, write: true };
        for (start, end) in [(0, 4), (60, 64), (64, 128), (65, 1000), (127, 128), (999, 1000)] {
            let (access, early) = window(whole, start..end, &limits());
            assert!(access.offset.is_multiple_of(64) && early < 64, "{start}..{end}");
            assert_eq!((access.offset + early, access.offset + access.bytes), (start, end));
            assert_eq!((access.value, access.write), (3, true));
        }
    }

    #[test]
    fn a_texel_view_spans_less_than_its_limit() {
        let limits = limits();
        let most = 16 * limits.texel_elements;
        assert!(texel_bytes_fit(most - 1, &limits) && !texel_bytes_fit(most, &limits));
    }

    #[test]
    fn grids_hold_enough_groups() {
        for groups in [1, 2, 65_535, 65_536, 65_537, 10_000_000] {
            let [x, y, z] = grid(groups, &limits());
            assert!(u64::from(x) * u64::from(y) * u64::from(z) >= groups && x <= 65_535 && y <= 65_535);
        }
    }
}
