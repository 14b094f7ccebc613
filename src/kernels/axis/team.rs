//! How many invocations share a row that may stay in registers: for softmax and normalisation.

use crate::ir::branches::branch;
use crate::kernels::axis::span::{Slab, subgroup};
use crate::kernels::catalog::Catalog;
use crate::kernels::together::{MOST_SUBGROUPS, whole_subgroups};
use crate::kernels::variant::{Tree, Variant};
use crate::vk::physical::Limits;

/// Invocations per workgroup where they have little to do each.
pub(super) const NARROW_GROUP: u32 = 256;

/// How rows are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Team {
    pub(super) lanes: u32,
    pub(super) local_size: u32,
    /// Texels per lane, if they fit registers.
    pub(super) vecs: Option<u32>,
}

impl Team {
    /// For so many rows that touch so many texels each. Those of up to `narrow` get one invocation each.
    pub(super) fn new(variant: &Variant, catalog: &Catalog, rows: u64, texels: u64, narrow: u64) -> Team {
        let most = variant.local_size.min(catalog.limits.invocations);
        if branch!("team: narrow", texels <= narrow) {
            let local_size = NARROW_GROUP.min(catalog.limits.invocations);
            return Team { lanes: 1, local_size, vecs: vecs(texels, 8) };
        }
        match variant.tree {
            Tree::Shuffle => {
                let lanes = subgroup(catalog);
                // Few rows go to a workgroup each, so that every core gets some.
                let local_size = if branch!("team: few rows", rows < 128) { lanes } else { most.max(lanes) };
                Team { lanes, local_size, vecs: vecs(texels.div_ceil(u64::from(lanes)), variant.vecs) }
            }
            Tree::Shared | Tree::Apart => {
                let fits = |lanes: u32| vecs(texels.div_ceil(u64::from(lanes)), variant.vecs);
                let few = 32.min(most);
                branch!("team: few lanes", fits(few).is_some());
                match fits(few) {
                    Some(vecs) => Team { lanes: few, local_size: most, vecs: Some(vecs) },
                    None => Team { lanes: most, local_size: most, vecs: fits(most) },
                }
            }
        }
    }
}

impl Team {
    /// The local size of workgroups whose subgroups store together, a row each, if all of the rows can be made so.
    pub(super) fn storing_together(self, variant: &Variant, slabs: &[Slab], limits: &Limits) -> Option<u32> {
        if !branch!("team: together", variant.together)
            || branch!("team: narrow together", self.lanes != limits.subgroup_size)
        {
            return None;
        }
        // There may be no subgroup too many.
        let rows_of = |local_size: u32| u64::from(local_size / self.lanes);
        let even = |local_size: u32| {
            whole_subgroups(local_size, limits)
                && slabs.iter().all(|slab| slab.units.is_multiple_of(rows_of(local_size)))
        };
        let most = variant.local_size.min(limits.invocations);
        let local_size = if branch!("team: even", even(most)) { most } else { self.lanes };
        let fits = |slab: &Slab| {
            slab.units <= MOST_SUBGROUPS && slab.units / rows_of(local_size) <= u64::from(limits.groups[0])
        };
        branch!("team: line of rows", slabs.iter().all(fits)).then_some(local_size)
    }
}

/// The number of texels per lane that a pipeline is made for: few different ones, since each is compiled apart.
fn vecs(needed: u64, most: u32) -> Option<u32> {
    [1, 2, 4, 8, 16, 24, 32, 40].into_iter().find(|&v| u64::from(v) >= needed && v <= most)
}
