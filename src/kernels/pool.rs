//! Pooling: dispatches of `glsl/pool.comp`.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::Command;
use crate::ir::pool::{PoolKind, Pooling};
use crate::ir::value::{Access, Label, Values};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::division;
use crate::kernels::modules::pool;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    extents: [u32; 3],
    magic: [u32; 3],
    shifts: u32,
    image: [u32; 3],
    strides: [u32; 3],
    dilation: [u32; 3],
    before: [u32; 3],
    after: [u32; 3],
    window: [u32; 3],
    p: f32,
}

impl Pooling {
    fn linear(&self, values: &Values, catalog: &Catalog) -> Linear {
        let elements = values.value(self.output).shape.elements() as u64;
        Linear::new(catalog, elements, &[values.bytes(self.input)])
    }

    /// Refuses an input that no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        self.linear(values, catalog).check_inputs(op, &[values.value(self.input).shape])
    }

    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let (source, target) = (values.whole(self.input, false), values.whole(self.output, true));
        let elements = values.value(self.output).shape.elements() as u64;
        if branch!("pool: nothing", elements == 0) {
            return Ok(());
        }
        let windows = &self.windows;
        let words = |extents: [usize; 3]| extents.map(|extent| extent as u32);
        let divisions = words(windows.extents).map(division);
        let linear = self.linear(values, catalog);
        let per_window = windows.window.iter().product::<usize>() as u64;
        let constants = linear
            .constants::<pool::File>()
            .with(pool::KIND, self.kind.number())
            .with(pool::ADAPTIVE, windows.adaptive);
        let module = match linear.load {
            Load::Buffer => pool::Module::Buffer,
            Load::Texel => pool::Module::Texel,
        };
        for (first, count) in linear.windows(elements) {
            let push = Push {
                count: count as u32,
                first: first as u32,
                extents: words(windows.extents),
                magic: divisions.map(|(magic, _)| magic),
                shifts: (0..3).map(|d| divisions[d].1 << (8 * d)).sum(),
                image: words(windows.image),
                strides: words(windows.strides),
                dilation: words(windows.dilation),
                before: words(windows.before),
                after: words(windows.after),
                window: words(windows.window),
                p: if let PoolKind::Norm(p) = self.kind { p } else { 0.0 },
            };
            let action = linear.dispatch(catalog, (constants.clone().of(module), false), &push, count)?;
            let written = Access { offset: 4 * first, bytes: 4 * count, ..target };
            let read = source.bytes.min(4 * count * per_window);
            let command = Command::new(label.clone(), action, smallvec![source, written]);
            commands.push(command.with_flops(count * per_window).with_bytes(read + 4 * count));
        }
        Ok(())
    }
}
