//! How many invocations share a row that may stay in registers: for softmax and normalisation.

use crate::ir::branches::branch;
use crate::kernels::axis::split::{DispatchRange, subgroup};
use crate::kernels::catalog::Catalog;
use crate::kernels::uniform_store::{MOST_SUBGROUPS, whole_subgroups};
use crate::kernels::variant::{Tree, Variant};
use crate::vk::physical::Limits;

/// Invocations per workgroup where they have little to do each.
pub(super) const ONE_LANE_GROUP: u32 = 256;

/// How rows are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadsPerRow {
    pub(super) lanes: u32,
    pub(super) local_size: u32,
    /// Texels per lane, if they fit registers.
    pub(super) vec4s: Option<u32>,
}

impl ThreadsPerRow {
    /// For so many rows that touch so many texels each. Those of up to `one_lane_texels` get one invocation each.
    pub(super) fn new(
        variant: &Variant,
        catalog: &Catalog,
        rows: u64,
        texels: u64,
        one_lane_texels: u64,
    ) -> ThreadsPerRow {
        let most = variant.local_size.min(catalog.limits.invocations);
        if branch!("threads: one lane", texels <= one_lane_texels) {
            let local_size = ONE_LANE_GROUP.min(catalog.limits.invocations);
            return ThreadsPerRow { lanes: 1, local_size, vec4s: vec4s(texels, 8) };
        }
        match variant.tree {
            Tree::Shuffle => {
                let lanes = subgroup(catalog);
                // Few rows go to a workgroup each, so that every core gets some.
                let local_size =
                    if branch!("threads: few rows", rows < 128) { lanes } else { most.max(lanes) };
                ThreadsPerRow {
                    lanes,
                    local_size,
                    vec4s: vec4s(texels.div_ceil(u64::from(lanes)), variant.vec4s),
                }
            }
            Tree::Shared | Tree::Apart => {
                let fits = |lanes: u32| vec4s(texels.div_ceil(u64::from(lanes)), variant.vec4s);
                let few = 32.min(most);
                branch!("threads: few lanes", fits(few).is_some());
                match fits(few) {
                    Some(vec4s) => ThreadsPerRow { lanes: few, local_size: most, vec4s: Some(vec4s) },
                    None => ThreadsPerRow { lanes: most, local_size: most, vec4s: fits(most) },
                }
            }
        }
    }
}

impl ThreadsPerRow {
    /// The local size of workgroups whose subgroups use uniform stores, a row each, if all of the rows can be made so.
    pub(super) fn with_uniform_stores(
        self,
        variant: &Variant,
        ranges: &[DispatchRange],
        limits: &Limits,
    ) -> Option<u32> {
        if !branch!("threads: uniform store", variant.uniform_store)
            || branch!("threads: one lane, uniform store", self.lanes != limits.subgroup_size)
        {
            return None;
        }
        // There may be no subgroup too many.
        let rows_of = |local_size: u32| u64::from(local_size / self.lanes);
        let even = |local_size: u32| {
            whole_subgroups(local_size, limits)
                && ranges.iter().all(|range| range.units.is_multiple_of(rows_of(local_size)))
        };
        let most = variant.local_size.min(limits.invocations);
        let local_size = if branch!("threads: even", even(most)) { most } else { self.lanes };
        let fits = |range: &DispatchRange| {
            range.units <= MOST_SUBGROUPS && range.units / rows_of(local_size) <= u64::from(limits.groups[0])
        };
        branch!("threads: line of rows", ranges.iter().all(fits)).then_some(local_size)
    }
}

/// The number of texels per lane that a pipeline is made for: few different ones, since each is compiled apart.
fn vec4s(needed: u64, most: u32) -> Option<u32> {
    [1, 2, 4, 8, 16, 24, 32, 40].into_iter().find(|&v| u64::from(v) >= needed && v <= most)
}
