//! How an operation along an axis is read and cut, before anything is appended: for reductions and softmax alike.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::value::{ValueId, Values};
use crate::kernels::axis::split::{AxisSplit, DispatchRange, Geometry, load_of};
use crate::kernels::axis::threads_per_row::ONE_LANE_GROUP;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::division::division;
use crate::kernels::variant::{Tree, Variant};
use crate::shape::Shape;
use crate::vk::physical::Limits;

/// How a variant likes its work cut. First guesses, correct for any value, and not yet swept on any device.
pub(super) struct SplitHeuristics {
    /// No row is cut into parts smaller than this,
    pub(super) least_chunk: u64,
    /// nor into more parts than make this many in all.
    pub(super) units: u64,
    /// Invocations that columns are cut for,
    pub(super) column_lanes: u64,
    /// with at least so many rows each.
    pub(super) least_rows: u64,
}

impl SplitHeuristics {
    /// Rows in parts of a multiple of `grain`, none larger than `most`.
    pub(super) fn split_rows(&self, geometry: Geometry, grain: u64, most: u64) -> AxisSplit {
        let parts = self.units.div_ceil(geometry.outer).min(geometry.extent / self.least_chunk);
        AxisSplit::new(geometry.extent, parts, grain, most)
    }

    /// Columns in parts of whole blocks, or of single rows where `most` is less than a block.
    pub(super) fn split_columns(&self, geometry: Geometry, block: u64, most: u64) -> AxisSplit {
        let Geometry { outer, extent, inner } = geometry;
        let parts = self.column_lanes.div_ceil(outer * inner.div_ceil(4)).min(extent / self.least_rows);
        AxisSplit::new(extent, parts, block.min(most), most)
    }
}

/// What an operation reads, and on what.
pub(super) struct Reads<'a> {
    /// Its inputs, all of them.
    pub(super) inputs: SmallVec<[ValueId; 4]>,
    pub(super) values: &'a Values,
    pub(super) catalog: &'a Catalog,
    pub(super) variant: &'static Variant,
}

impl Reads<'_> {
    /// How they are read, together with states of this size.
    pub(super) fn load(&self, states: Option<u64>) -> Load {
        let sizes = self.inputs.iter().map(|&input| self.values.bytes(self.values.root(input)));
        let sizes: SmallVec<[u64; 4]> = sizes.chain(states).collect();
        load_of(self.variant.load, &sizes, &self.catalog.limits)
    }

    /// Whether one of these is bound in windows.
    pub(super) fn windowed(&self, load: Load, inputs: impl IntoIterator<Item = ValueId>) -> bool {
        let limit = self.catalog.limits.storage_range_bytes;
        let large = |input: ValueId| self.values.bytes(self.values.root(input)) > limit;
        load == Load::Buffer && inputs.into_iter().any(large)
    }
}

/// Refuses more states than a binding can span.
pub(super) fn check_states(op: &'static str, shape: Shape, bytes: u64, limits: &Limits) -> Result<()> {
    let limit = limits.storage_range_bytes;
    if branch!("axis: too many states", bytes > limit) {
        return Err(Error::BindingTooLarge { op, shape, bytes, limit });
    }
    Ok(())
}

/// Invocations of a workgroup that works on columns: few are spread over more workgroups, so that every core gets some.
pub(super) fn column_group(geometry: Geometry, split: AxisSplit, variant: &Variant, limits: &Limits) -> u32 {
    let four_columns = geometry.outer * split.parts * geometry.inner.div_ceil(4);
    let few = four_columns < 16_384 && variant.tree == Tree::Shuffle;
    if branch!("axis: few columns", few) { 32 } else { ONE_LANE_GROUP }.min(limits.invocations)
}

/// What the push constants of kernels of columns begin with: `glsl/lib/columns.glsl`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct PushRange {
    units: u32,
    begin: u32,
    parts: u32,
    magic: [u32; 2],
    shift: [u32; 2],
    extent: u32,
    chunk: u32,
}

impl PushRange {
    pub(super) fn new(range: &DispatchRange, geometry: Geometry, split: AxisSplit) -> PushRange {
        let divisions = [division(range.fours as u32), division(split.parts as u32)];
        PushRange {
            units: range.units as u32,
            begin: range.begin as u32,
            parts: split.parts as u32,
            magic: divisions.map(|d| d.0),
            shift: divisions.map(|d| d.1),
            extent: geometry.extent as u32,
            chunk: split.chunk as u32,
        }
    }
}
