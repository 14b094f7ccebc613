//! Rows whose results a subgroup writes by uniform stores: `glsl/lib/uniform_store.glsl`.

use super::{Lowering, Mode, Rows, few, threads_of};
use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::softmax::Softmax;
use crate::ir::value::ValueId;
use crate::kernels::axis::prologue;
use crate::kernels::axis::split::{AxisSplit, Layout};
use crate::kernels::catalog::Load;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::{lanes, softmax, softmax_rows};
use crate::kernels::uniform_store::DIGITS;

/// Texels per lane of a block of a long row: enough for the joining of its parts, which every block repeats, to be
/// little.
const BLOCK_VEC4S: u32 = 32;

impl Lowering<'_> {
    /// Appends the dispatches with uniform stores, if a subgroup can store all of its results so; returns whether it
    /// did.
    pub(super) fn rows_with_uniform_stores(
        &mut self,
        mode: Mode,
        split: AxisSplit,
        states: Option<ValueId>,
    ) -> Result<bool> {
        let &Softmax { op, logarithm, ref prologue, geometry, output, .. } = self.softmax;
        let limits = &self.catalog.limits;
        let threads = threads_of(self.variant, self.catalog, geometry);
        let join = states.filter(|_| mode == Mode::Join);
        // What a subgroup takes: a row that fits registers, or a block of a long one.
        let vec4s = match (threads.vec4s, join) {
            (Some(vec4s), _) => vec4s,
            (None, Some(_)) => {
                branch!("softmax: a block of a row");
                BLOCK_VEC4S
            }
            (None, None) => {
                branch!("softmax: a row in sweeps");
                return Ok(false);
            }
        };
        let taken = 4 * u64::from(vec4s * threads.lanes);
        let fits = if branch!("softmax: joined uniform store", join.is_some()) {
            geometry.extent.is_multiple_of(taken)
        } else {
            geometry.extent == taken
        };
        let load = self.load(join);
        if branch!("softmax: buffers uniform store", load != Load::Texel)
            || !branch!("softmax: fits uniform store", fits)
        {
            return Ok(false);
        }
        let blocks = AxisSplit { chunk: taken, parts: geometry.extent / taken };
        let layout = Layout { geometry, split: blocks, out_bytes: 4 * taken };
        let ranges =
            layout.dispatch_ranges(self.split_plan().windowed(load), self.label.shape, op, limits)?;
        let Some(local_size) = threads.with_uniform_stores(self.variant, &ranges, limits) else {
            return Ok(false);
        };
        let rows_per_group = u64::from(local_size / threads.lanes);
        let module = match (join, prologue) {
            (Some(_), _) => softmax_rows::Module::TexelUniformShuffleInputs2,
            (None, None) => softmax_rows::Module::TexelUniformShuffleInputs1,
            (None, Some(_)) => softmax_rows::Module::TexelUniformShuffleInputs3Steps4Light,
        };
        let mut constants = Constants::<softmax_rows::File>::new(local_size)
            .with(lanes::LANES, threads.lanes)
            .with(softmax::LOGARITHM, logarithm)
            .with(softmax_rows::VEC4S, vec4s);
        if join.is_some() {
            constants.set(softmax_rows::FEW, few(threads, split));
        }
        if let Some(prologue) = prologue {
            prologue::set_constants(prologue, &mut constants);
        }
        let pipeline = self.catalog.pipeline(constants.of(module))?;
        let rows =
            Rows { pipeline, load, layout, join, target: output, parts: split.parts, digits: Some(DIGITS) };
        for range in ranges {
            let groups = [(range.units / rows_per_group) as u32, 1, 1];
            self.dispatch_rows(&rows, range, groups);
        }
        Ok(true)
    }
}
