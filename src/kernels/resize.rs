//! Resizing: dispatches of `glsl/resize.comp`.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::Command;
use crate::ir::resize::Resize;
use crate::ir::value::{Access, Label, Values};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::division;
use crate::kernels::modules::resize;

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
    factor: [u32; 3],
    offset: [u32; 3],
    divisor: [u32; 3],
    magic_divisor: [u32; 3],
    shifts_divisor: u32,
    taps: [u32; 3],
}

/// Multipliers and shifts for divisions by these.
fn divisions(by: [u32; 3]) -> ([u32; 3], u32) {
    let all = by.map(division);
    (all.map(|(magic, _)| magic), (0..3).map(|d| all[d].1 << (8 * d)).sum())
}

impl Resize {
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
        if branch!("resize: nothing", elements == 0) {
            return Ok(());
        }
        let words = |extents: [usize; 3]| extents.map(|extent| extent as u32);
        let (extents, divisor) = (words(self.how.extents), words(self.how.divisor));
        let ((magic, shifts), (magic_divisor, shifts_divisor)) = (divisions(extents), divisions(divisor));
        let linear = self.linear(values, catalog);
        let constants = linear.constants::<resize::File>().with(resize::MODE, self.how.mode as u32);
        let module = match linear.load {
            Load::Buffer => resize::Module::Buffer,
            Load::Texel => resize::Module::Texel,
        };
        let taps = self.how.taps.iter().product::<usize>() as u64;
        for (first, count) in linear.windows(elements) {
            let push = Push {
                count: count as u32,
                first: first as u32,
                extents,
                magic,
                shifts,
                image: words(self.how.image),
                factor: words(self.how.factor),
                offset: words(self.how.offset),
                divisor,
                magic_divisor,
                shifts_divisor,
                taps: words(self.how.taps),
            };
            let action = linear.dispatch(catalog, (constants.clone().of(module), false), &push, count)?;
            let written = Access { offset: 4 * first, bytes: 4 * count, ..target };
            let read = source.bytes.min(4 * count * taps);
            let command = Command::new(label.clone(), action, smallvec![source, written]);
            commands.push(command.with_flops(2 * count * taps).with_bytes(read + 4 * count));
        }
        Ok(())
    }
}
