//! Rows whose results a subgroup stores together: `glsl/lib/together.glsl`.

use super::{Lowering, Mode, Rows, few, team_of};
use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::softmax::Softmax;
use crate::ir::value::ValueId;
use crate::kernels::axis::prologue;
use crate::kernels::axis::span::{Cut, Layout};
use crate::kernels::catalog::Load;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::{lanes, softmax, softmax_rows};
use crate::kernels::together::OCTAL;

/// Texels per lane of a block of a long row: enough for the joining of its parts, which every block repeats, to be little.
const BLOCK_VECS: u32 = 32;

impl Lowering<'_> {
    /// Appends the dispatches that make the results, if a subgroup can store all of its own together; says if so.
    pub(super) fn rows_together(&mut self, mode: Mode, cut: Cut, states: Option<ValueId>) -> Result<bool> {
        let &Softmax { op, logarithm, ref head, geometry, output, .. } = self.softmax;
        let limits = &self.catalog.limits;
        let team = team_of(self.variant, self.catalog, geometry);
        let join = states.filter(|_| mode == Mode::Join);
        // What a subgroup takes: a row that fits registers, or a block of a long one.
        let vecs = match (team.vecs, join) {
            (Some(vecs), _) => vecs,
            (None, Some(_)) => {
                branch!("softmax: a block of a row");
                BLOCK_VECS
            }
            (None, None) => {
                branch!("softmax: a row in sweeps");
                return Ok(false);
            }
        };
        let taken = 4 * u64::from(vecs * team.lanes);
        let fits = if branch!("softmax: joined together", join.is_some()) {
            geometry.extent.is_multiple_of(taken)
        } else {
            geometry.extent == taken
        };
        let load = self.load(join);
        if branch!("softmax: buffers together", load != Load::Texel)
            || !branch!("softmax: fits together", fits)
        {
            return Ok(false);
        }
        let blocks = Cut { chunk: taken, parts: geometry.extent / taken };
        let layout = Layout { geometry, cut: blocks, out_bytes: 4 * taken };
        let slabs = layout.slabs(self.cutting().windowed(load), self.label.shape, op, limits)?;
        let Some(local_size) = team.storing_together(self.variant, &slabs, limits) else {
            return Ok(false);
        };
        let rows_per_group = u64::from(local_size / team.lanes);
        let module = match (join, head) {
            (Some(_), _) => softmax_rows::Module::TexelTogetherShuffle2,
            (None, None) => softmax_rows::Module::TexelTogetherShuffle1,
            (None, Some(_)) => softmax_rows::Module::TexelTogetherShuffle3_4Light,
        };
        let mut constants = Constants::<softmax_rows::File>::new(local_size)
            .with(lanes::LANES, team.lanes)
            .with(softmax::LOGARITHM, logarithm)
            .with(softmax_rows::VECS, vecs);
        if join.is_some() {
            constants.set(softmax_rows::FEW, few(team, cut));
        }
        if let Some(head) = head {
            prologue::set_constants(head, &mut constants);
        }
        let pipeline = self.catalog.pipeline(constants.of(module))?;
        let rows =
            Rows { pipeline, load, layout, join, target: output, parts: cut.parts, octal: Some(OCTAL) };
        for slab in slabs {
            let groups = [(slab.units / rows_per_group) as u32, 1, 1];
            self.dispatch_rows(&rows, slab, groups);
        }
        Ok(true)
    }
}
