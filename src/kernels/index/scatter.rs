//! Updates to places that indices name: dispatches of `glsl/scatter.comp`.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::Command;
use crate::ir::index::{Scatter, Update};
use crate::ir::value::{Label, Values};
use crate::kernels::bindings::check_binding;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::division;
use crate::kernels::modules::scatter;
use crate::shape::axes::Geometry;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    width: u32,
    magic: u32,
    shift: u32,
    slots: u32,
    slots_magic: u32,
    slots_shift: u32,
    height: u32,
}

impl Scatter {
    /// How it walks over the updates.
    fn linear(&self, values: &Values, catalog: &Catalog) -> Linear {
        let inputs = [self.indices, self.updates].map(|input| values.bytes(input));
        Linear::new(catalog, values.value(self.updates).shape.elements() as u64, &inputs)
    }

    /// Refuses what no binding can span: updates go anywhere, so that all of the result is bound.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        check_binding(op, self.output, values, &catalog.limits)?;
        let shapes = [self.indices, self.updates].map(|input| values.value(input).shape);
        self.linear(values, catalog).check_inputs(op, &shapes)
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
        let Geometry { outer, extent, inner } = self.geometry;
        let updates = values.value(self.updates).shape.elements() as u64;
        let run = branch!("scatter: a run", self.update == Update::Run);
        let slots =
            if run { updates / (outer * inner) } else { values.value(self.indices).shape.elements() as u64 };
        let (width, slots) = (inner as u32, slots as u32);
        // The shader does not divide by one.
        let ((magic, shift), (slots_magic, slots_shift)) = (division(width), division(slots));
        let (inputs, target) = (
            [self.indices, self.updates].map(|input| values.whole(input, false)),
            values.whole(self.output, true),
        );
        for (first, count) in linear.windows(updates) {
            let push = Push {
                count: count as u32,
                first: first as u32,
                width,
                magic,
                shift,
                slots,
                slots_magic,
                slots_shift,
                height: extent as u32,
            };
            let constants = linear.constants::<scatter::File>().with(scatter::KIND, self.update as u32);
            let kernel = constants.of(match linear.load {
                Load::Buffer => scatter::Module::Buffer,
                Load::Texel => scatter::Module::Texel,
            });
            let action = linear.dispatch(catalog, (kernel, false), &push, count)?;
            let accesses = smallvec![inputs[0], inputs[1], target, target];
            // Each update, its index, and the place that it goes to, which is read and written. A run has one index,
            // and reads no place.
            let bytes =
                if run { 8 * count + 4 } else { 12 * count + 4 * count.div_ceil(u64::from(width.max(1))) };
            commands.push(Command::new(label.clone(), action, accesses).with_bytes(bytes));
        }
        Ok(())
    }
}
