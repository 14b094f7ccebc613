//! How often numbers occur: dispatches of `glsl/histogram.comp`.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::index::Histogram;
use crate::ir::value::{Access, Label, Values};
use crate::kernels::bindings::{check_binding, grid};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::modules::histogram;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    bins: u32,
    rounds: u32,
}

/// Bins that a workgroup counts in memory of its own: MOST_BINS of the kernel.
const MOST_SHARED_BINS: usize = 2048;
/// Workgroups among which the numbers are divided where each has bins of its own to add to the result.
const MOST_GROUPS: u64 = 1024;

impl Histogram {
    fn linear(&self, values: &Values, catalog: &Catalog) -> Linear {
        let elements = values.value(self.numbers).shape.elements() as u64;
        Linear::new(catalog, elements, &[values.bytes(self.numbers)])
    }

    /// Refuses what no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        check_binding(op, self.output, values, &catalog.limits)?;
        self.linear(values, catalog).check_inputs(op, &[values.value(self.numbers).shape])
    }

    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let linear = self.linear(values, catalog);
        let (numbers, target) = (values.whole(self.numbers, false), values.whole(self.output, true));
        let bins = values.value(self.output).shape.elements();
        let own = branch!("histogram: shared bins", bins <= MOST_SHARED_BINS);
        let elements = values.value(self.numbers).shape.elements() as u64;
        for (first, count) in linear.windows(elements) {
            let stretches = count.div_ceil(linear.per_group());
            let rounds = if own { stretches.div_ceil(MOST_GROUPS) } else { 1 };
            let push = Push { count: count as u32, bins: bins as u32, rounds: rounds as u32 };
            let constants = linear.constants::<histogram::File>().with(histogram::SHARED_BINS, own);
            let pipeline = catalog.pipeline(constants.of(match linear.load {
                Load::Buffer => histogram::Module::Buffer,
                Load::Texel => histogram::Module::Texel,
            }))?;
            let groups = grid(stretches.div_ceil(rounds), &catalog.limits);
            let action = Action::Dispatch { pipeline, push: bytemuck::bytes_of(&push).into(), groups };
            let part = Access { offset: 4 * first, bytes: 4 * count, ..numbers };
            let bytes = 4 * (count + bins as u64);
            commands.push(Command::new(label.clone(), action, smallvec![part, target]).with_bytes(bytes));
        }
        Ok(())
    }
}
