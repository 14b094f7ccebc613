//! Tensors from nothing, counts and random numbers: dispatches of `glsl/generate.comp`.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::command::Command;
use crate::ir::copy::Generate;
use crate::ir::value::{Access, Label, Values};
use crate::kernels::catalog::Catalog;
use crate::kernels::copy::linear::Linear;
use crate::kernels::modules::generate;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    seed: [u32; 2],
}

impl Generate {
    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let whole = values.whole(self.output, true);
        let elements = values.value(self.output).shape.elements() as u64;
        let seed = [self.seed as u32, (self.seed >> 32) as u32];
        let linear = Linear::new(catalog, elements, &[]);
        for (first, count) in linear.windows(elements) {
            let push = Push { count: count as u32, first: first as u32, seed };
            let constants = linear.constants::<generate::File>().with(generate::KIND, self.sequence as u32);
            let kernel = constants.of(generate::Module::Only);
            let action = linear.dispatch(catalog, (kernel, false), &push, count)?;
            let access = Access { offset: 4 * first, bytes: 4 * count, ..whole };
            commands.push(Command::new(label.clone(), action, smallvec![access]));
        }
        Ok(())
    }
}
