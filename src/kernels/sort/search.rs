//! Binary searches: dispatches of `glsl/search.comp`.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::command::Command;
use crate::ir::scan::Search;
use crate::ir::value::{Access, Label, Values};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::modules::search;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    listed: u32,
}

impl Search {
    fn linear(&self, values: &Values, catalog: &Catalog) -> Linear {
        let inputs = [self.sorted, self.wanted].map(|input| values.bytes(input));
        Linear::new(catalog, values.value(self.wanted).shape.elements() as u64, &inputs)
    }

    /// Refuses inputs that no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        let shapes = [self.sorted, self.wanted].map(|input| values.value(input).shape);
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
        let (linear, target) = (self.linear(values, catalog), values.whole(self.output, true));
        let (sorted, wanted) = (values.whole(self.sorted, false), values.whole(self.wanted, false));
        let length = values.value(self.sorted).shape.elements() as u32;
        let elements = values.value(self.wanted).shape.elements() as u64;
        for (first, count) in linear.windows(elements) {
            let push = Push { count: count as u32, first: first as u32, listed: length };
            let constants = linear
                .constants::<search::File>()
                .with(search::KEY, self.key as u32)
                .with(search::BEHIND, self.behind);
            let kernel = constants.of(match linear.load {
                Load::Buffer => search::Module::Buffer,
                Load::Texel => search::Module::Texel,
            });
            let action = linear.dispatch(catalog, (kernel, false), &push, count)?;
            let access = Access { offset: 4 * first, bytes: 4 * count, ..target };
            let bytes = 8 * count + sorted.bytes;
            commands.push(
                Command::new(label.clone(), action, smallvec![sorted, wanted, access]).with_bytes(bytes),
            );
        }
        Ok(())
    }
}
