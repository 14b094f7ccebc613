//! Many short rows, four to an invocation: dispatches of `glsl/reduce_short.comp`.

use smallvec::{SmallVec, smallvec};

use super::{Lowering, SplitPlan};
use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::kernels::axis::split::Geometry;
use crate::kernels::axis::threads_per_row::ONE_LANE_GROUP;
use crate::kernels::bindings::grid;
use crate::kernels::catalog::Load;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::reduce_short;

/// The longest row: a pipeline is compiled for each length, and holds four rows in registers.
const LONGEST: u64 = 16;
/// The fewest rows that are worth a pipeline of their own.
const FEWEST: u64 = 1024;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    rows: u32,
    last: u32,
}

/// Whether the rows are short and many.
pub(super) fn is_worth_it(geometry: Geometry) -> bool {
    geometry.is_rows()
        && branch!("short: rows", geometry.extent <= LONGEST)
        && branch!("short: many", geometry.outer >= FEWEST)
}

impl SplitPlan<'_> {
    /// Whether the rows are short and many, and no window is needed.
    pub(super) fn is_short(&self) -> bool {
        let geometry = self.reduce.geometry;
        let (limits, values) = (&self.reads.catalog.limits, self.reads.values);
        let bytes = values.bytes(values.root(self.reduce.input));
        // What a binding spans is fewer workgroups than the smallest grid of Vulkan holds.
        is_worth_it(geometry) && branch!("short: fits", bytes <= limits.storage_range_bytes)
    }
}

impl Lowering<'_> {
    pub(super) fn short(&mut self) -> Result<()> {
        let (input, second, output) = (self.reduce.input, self.reduce.second, self.reduce.output);
        let (rows, extent) = (self.reduce.geometry.outer, self.reduce.geometry.extent);
        let limits = &self.catalog.limits;
        let local_size = ONE_LANE_GROUP.min(limits.invocations);
        let module = match (self.split_plan().load(), second.is_some()) {
            (Load::Texel, false) => reduce_short::Module::TexelInputs1,
            (Load::Texel, true) => reduce_short::Module::TexelInputs2,
            (Load::Buffer, false) => reduce_short::Module::BufferInputs1,
            (Load::Buffer, true) => reduce_short::Module::BufferInputs2,
        };
        let mut constants = Constants::<reduce_short::File>::new(local_size);
        self.set_monoid(output, &mut constants);
        constants.set(reduce_short::EXTENT, extent as u32);
        let push = Push { rows: rows as u32, last: ((rows * extent).div_ceil(4) - 1) as u32 };
        let action = Action::Dispatch {
            pipeline: self.catalog.pipeline(constants.of(module))?,
            push: SmallVec::from_slice(bytemuck::bytes_of(&push)),
            groups: grid(rows.div_ceil(4 * u64::from(local_size)), limits),
        };
        let mut accesses = smallvec![self.values.whole(input, false)];
        accesses.extend(second.map(|means| self.values.whole(means, false)));
        accesses.push(self.values.whole(output, true));
        self.commands.push(Command::new(self.label.clone(), action, accesses).with_flops(rows * extent));
        Ok(())
    }
}
