//! Rows of indices become row numbers: dispatches of `glsl/locate.comp`.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::command::Command;
use crate::ir::index::Locate;
use crate::ir::value::{Access, Label, Values};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::modules::locate;

/// Extents that the kernel has room for.
const MOST_DEPTH: usize = 8;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    extents: [u32; MOST_DEPTH],
}

impl Locate {
    fn linear(&self, values: &Values, catalog: &Catalog) -> Linear {
        let elements = values.value(self.output).shape.elements() as u64;
        Linear::new(catalog, elements, &[values.bytes(self.indices)])
    }

    /// Refuses indices that no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        self.linear(values, catalog).check_inputs(op, &[values.value(self.indices).shape])
    }

    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let (linear, target) = (self.linear(values, catalog), values.whole(self.output, true));
        let elements = values.value(self.output).shape.elements() as u64;
        let mut extents = [1; MOST_DEPTH];
        extents.iter_mut().zip(&self.extents).for_each(|(to, extent)| *to = *extent);
        for (first, count) in linear.windows(elements) {
            let push = Push { count: count as u32, first: first as u32, extents };
            let constants = linear.constants::<locate::File>().with(locate::DEPTH, self.extents.len() as u32);
            let kernel = constants.of(match linear.load {
                Load::Buffer => locate::Module::Buffer,
                Load::Texel => locate::Module::Texel,
            });
            let action = linear.dispatch(catalog, (kernel, false), &push, count)?;
            let access = Access { offset: 4 * first, bytes: 4 * count, ..target };
            let bytes = 4 * count * (1 + self.extents.len() as u64);
            let accesses = smallvec![values.whole(self.indices, false), access];
            commands.push(Command::new(label.clone(), action, accesses).with_bytes(bytes));
        }
        Ok(())
    }
}
