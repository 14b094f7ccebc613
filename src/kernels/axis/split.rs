//! Work along one axis: a tensor seen as `[outer, extent, inner]`, split into parts that fit loops, bindings and grids.

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::value::{Access, ValueId, Values};
use crate::kernels::bindings::{self, texel_bytes_fit, window_bytes};
use crate::kernels::catalog::{Catalog, Load};
use crate::shape::Shape;
pub(crate) use crate::shape::axes::Geometry;
use crate::vk::physical::Limits;

/// How the middle is split: into `parts` of `chunk`, the last of which may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisSplit {
    pub(crate) chunk: u64,
    pub(crate) parts: u64,
}

impl AxisSplit {
    /// About this many parts, of a multiple of `grain` each, and none larger than `most` (itself such a multiple).
    pub(crate) fn new(extent: u64, parts: u64, grain: u64, most: u64) -> AxisSplit {
        let chunk = extent.div_ceil(parts.max(1)).next_multiple_of(grain).min(most.max(grain));
        if branch!("split: one part", chunk >= extent) {
            AxisSplit { chunk: extent, parts: 1 }
        } else {
            AxisSplit { chunk, parts: extent.div_ceil(chunk) }
        }
    }
}

/// The parts that one dispatch works on, with all columns or some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DispatchRange {
    pub(crate) begin: u64,
    pub(crate) units: u64,
    pub(crate) first_four: u64,
    pub(crate) fours: u64,
}

/// A part of a value that a binding spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) access: Access,
    /// Where it begins, in elements.
    pub(crate) origin: u32,
    /// Its last group of 16 bytes.
    pub(crate) last: u32,
}

/// What the parts of a geometry read and write, in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) geometry: Geometry,
    pub(crate) split: AxisSplit,
    /// Bytes written per column and part: a result, a state, or a whole chunk. The caller splits so that a window holds
    /// those of all columns, or at least of four.
    pub(crate) out_bytes: u64,
}

impl Layout {
    /// Where a part's elements are.
    pub(crate) fn elements(&self, unit: u64) -> std::ops::Range<u64> {
        let Geometry { extent, inner, .. } = self.geometry;
        let (outer, skip) = (unit / self.split.parts, unit % self.split.parts * self.split.chunk);
        let begin = (outer * extent + skip) * inner;
        begin..begin + self.split.chunk.min(extent - skip) * inner
    }

    /// Bytes that a window may span, wherever it begins.
    pub(crate) fn most_bytes(limits: &Limits) -> u64 {
        window_bytes(limits) / 16 * 16
    }

    /// Refuses a part of the input that no window can span, if inputs are bound in windows.
    pub(crate) fn check(
        &self,
        windowed: bool,
        shape: Shape,
        op: &'static str,
        limits: &Limits,
    ) -> Result<()> {
        let bytes = 4 * self.split.chunk * self.geometry.inner;
        let long = branch!("split: windowed", windowed) && Layout::most_bytes(limits) < bytes;
        if branch!("split: a part of the input is too long", long) {
            return Err(Error::BindingTooLarge { op, shape, bytes, limit: limits.storage_range_bytes });
        }
        Ok(())
    }

    /// The dispatches: as few as bindings allow. `windowed` says that inputs are bound in windows, too.
    pub(crate) fn dispatch_ranges(
        &self,
        windowed: bool,
        shape: Shape,
        op: &'static str,
        limits: &Limits,
    ) -> Result<Vec<DispatchRange>> {
        let Geometry { inner, .. } = self.geometry;
        let units = self.geometry.outer * self.split.parts;
        self.check(windowed, shape, op, limits)?;
        let most_bytes = Layout::most_bytes(limits);
        let fours = inner.div_ceil(4);
        let by_output = most_bytes / (self.out_bytes * inner);
        let by_input = if windowed { most_bytes / (4 * self.split.chunk * inner) } else { u64::MAX };
        let per_range = by_output.min(by_input).clamp(1, units);
        // One part's results alone are too many: a range has some of the columns then.
        let per_range_fours = if branch!("split: some columns", by_output == 0) {
            most_bytes / (4 * self.out_bytes)
        } else {
            fours
        };
        debug_assert!(per_range_fours > 0, "{self:?} in windows of {most_bytes} bytes");
        let mut ranges = Vec::new();
        for begin in (0..units).step_by(per_range as usize) {
            for first_four in (0..fours).step_by(per_range_fours.max(1) as usize) {
                let units = per_range.min(units - begin);
                ranges.push(DispatchRange {
                    begin,
                    units,
                    first_four,
                    fours: per_range_fours.min(fours - first_four),
                });
            }
        }
        Ok(ranges)
    }
}

/// How inputs of these sizes can be read.
pub(crate) fn load_of(wanted: Load, inputs: &[u64], limits: &Limits) -> Load {
    let fits = inputs.iter().all(|bytes| texel_bytes_fit(*bytes, limits));
    match wanted {
        Load::Texel
            if branch!("split: texels fit", fits)
                && branch!("split: texel bindings", inputs.len() <= limits.texel_bindings as usize) =>
        {
            Load::Texel
        }
        _ => Load::Buffer,
    }
}

/// The binding of some words of an input. Texel views always span the whole.
pub(crate) fn input_window(
    values: &Values,
    value: ValueId,
    words: std::ops::Range<u64>,
    load: Load,
    limits: &Limits,
) -> Window {
    let whole = values.whole(value, false);
    if branch!("split: texels", load == Load::Texel)
        || branch!("split: whole input", whole.bytes <= limits.storage_range_bytes)
    {
        return Window { access: whole, origin: 0, last: (whole.bytes.max(1).div_ceil(16) - 1) as u32 };
    }
    window(whole, words, 4, limits)
}

/// The binding of some elements of an output.
pub(crate) fn output_window(
    values: &Values,
    value: ValueId,
    elements: std::ops::Range<u64>,
    bytes: u64,
    limits: &Limits,
) -> Window {
    let whole = values.whole(value, true);
    if branch!("split: whole output", whole.bytes <= limits.storage_range_bytes) {
        return Window { access: whole, origin: 0, last: 0 };
    }
    window(whole, elements, bytes, limits)
}

fn window(whole: Access, elements: std::ops::Range<u64>, bytes: u64, limits: &Limits) -> Window {
    let (access, _) = bindings::window(whole, elements.start * bytes..elements.end * bytes, limits);
    Window { access, origin: (access.offset / bytes) as u32, last: (access.bytes.div_ceil(16) - 1) as u32 }
}

/// Invocations that may share a row by shuffles.
pub(crate) fn subgroup(catalog: &Catalog) -> u32 {
    catalog.limits.subgroup_size.clamp(1, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_seen_as_three_extents() {
        let shape = Shape::from([2, 3, 5, 7]);
        let seen = |axis| {
            let g = Geometry::along(&shape, axis);
            [g.outer, g.extent, g.inner]
        };
        assert_eq!([seen(0), seen(1), seen(3)], [[1, 2, 105], [2, 3, 35], [30, 7, 1]]);
        assert_eq!(Geometry::whole(&Shape::from([])).extent, 1);
    }

    #[test]
    fn splits_cover_everything_once() {
        for extent in [1, 5, 255, 256, 257, 8191, 1 << 20, (1 << 20) + 1, 67_108_864] {
            for parts in [1, 2, 7, 64, 1000] {
                for (grain, most) in [(1, 1 << 15), (256, 1 << 16)] {
                    let split = AxisSplit::new(extent, parts, grain, most);
                    assert!(split.chunk <= most.max(extent.min(most)), "{split:?}");
                    assert!(
                        (split.parts - 1) * split.chunk < extent && split.parts * split.chunk >= extent,
                        "{split:?}"
                    );
                    assert!(split.parts == 1 || split.chunk.is_multiple_of(grain), "{split:?}");
                }
            }
        }
    }

    fn limits() -> Limits {
        Limits {
            storage_range_bytes: 1 << 20,
            texel_elements: 1 << 16,
            texel_bindings: 4,
            storage_bindings: 8,
            uniform_bindings: 8,
            uniform_range_bytes: 1 << 14,
            offset_alignment: 64,
            buffer_bytes: 1 << 30,
            groups: [65_535; 3],
            local_size: [256; 3],
            invocations: 256,
            push_constant_bytes: 128,
            shared_bytes: 1 << 15,
            subgroup_size: 8,
            subgroup_sizes: [8; 2],
            subgroups: 32,
            host_pointer_alignment: 0,
            non_coherent_atom: 1,
        }
    }

    #[test]
    fn ranges_cover_every_part_and_column_and_fit_bindings() {
        let shape = Shape::from([1]);
        let layouts = [
            ([3_000_000, 1, 1], AxisSplit { chunk: 1, parts: 1 }, 4, false),
            ([10, 100_000, 1], AxisSplit { chunk: 4096, parts: 25 }, 16, true),
            ([2, 3, 1_000_003], AxisSplit { chunk: 3, parts: 1 }, 4, false),
            ([7, 40, 5_000], AxisSplit { chunk: 40, parts: 1 }, 4, true),
        ];
        for ([outer, extent, inner], split, out_bytes, windowed) in layouts {
            let layout = Layout { geometry: Geometry { outer, extent, inner }, split, out_bytes };
            let ranges = layout.dispatch_ranges(windowed, shape, "test", &limits()).expect("fits");
            let covered: u64 = ranges.iter().map(|s| s.units * s.fours).sum();
            assert_eq!(covered, outer * split.parts * inner.div_ceil(4));
            let parts: Vec<_> = (0..outer * split.parts).map(|unit| layout.elements(unit)).collect();
            assert!(parts.windows(2).all(|two| two[0].end == two[1].start), "one part behind the other");
            assert_eq!(parts.last().map(|part| part.end), Some(outer * extent * inner));
            for range in &ranges {
                let columns = (4 * range.fours).min(inner);
                assert!(range.units * columns * out_bytes <= 1 << 20, "{range:?}");
                // As reductions bind it: from a multiple of the alignment on.
                let begin = range.begin * inner + 4 * range.first_four;
                let end =
                    (range.begin + range.units - 1) * inner + (4 * range.first_four + columns).min(inner);
                let whole = Access { value: 0, offset: 0, bytes: u64::MAX, write: true };
                let Access { offset, bytes, .. } = window(whole, begin..end, out_bytes, &limits()).access;
                assert!(offset.is_multiple_of(64) && offset <= begin * out_bytes, "{range:?}");
                assert!(offset + bytes >= end * out_bytes && bytes <= 1 << 20, "{range:?}");
                let last = layout.elements(range.begin + range.units - 1).end;
                assert!(!windowed || 4 * (last - layout.elements(range.begin).start) <= 1 << 20, "{range:?}");
            }
        }
        let wide = Layout {
            geometry: Geometry { outer: 1, extent: 2, inner: 1 << 20 },
            split: AxisSplit { chunk: 2, parts: 1 },
            out_bytes: 4,
        };
        assert!(wide.dispatch_ranges(true, shape, "test", &limits()).is_err());
    }

    #[test]
    fn inputs_are_texels_where_all_of_them_may_be() {
        let load = |inputs: usize, elements: u64, wanted: Load| {
            let sizes: Vec<u64> = (1..inputs).map(|_| 16).chain([4 * elements]).collect();
            load_of(wanted, &sizes, &limits())
        };
        let Limits { texel_bindings, texel_elements, .. } = limits();
        let (most, largest) = (texel_bindings as usize, 4 * texel_elements - 4);
        assert_eq!(load(most, largest, Load::Texel), Load::Texel);
        assert_eq!(load(most, largest, Load::Buffer), Load::Buffer);
        assert_eq!(load(most + 1, 4, Load::Texel), Load::Buffer, "too many");
        assert_eq!(load(1, 4 * texel_elements + 4, Load::Texel), Load::Buffer, "too large");
        assert_eq!(load(2, 4 * texel_elements + 4, Load::Texel), Load::Buffer, "the second is too large");
    }
}
