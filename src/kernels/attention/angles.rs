//! The angles of rotary embedding: dispatches of `glsl/rotary_angles.comp`.

use smallvec::smallvec;

use crate::error::Result;
use crate::ir::command::Command;
use crate::ir::rotary::Angles;
use crate::ir::value::{Access, Label, Values};
use crate::kernels::bindings::check_binding;
use crate::kernels::catalog::Catalog;
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::division;
use crate::kernels::modules::rotary_angles;
use crate::shape::attention::MOST_PAIR_BITS;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    depth: u32,
    depth_magic: u32,
    depth_shift: u32,
    tokens: u32,
    powers: [[u32; 2]; MOST_PAIR_BITS],
}

impl Angles {
    /// Refuses positions that no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        check_binding(op, self.positions, values, &catalog.limits)
    }

    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let (source, target) = (values.whole(self.positions, false), values.whole(self.output, true));
        let elements = values.value(self.output).shape.elements() as u64;
        let linear = Linear::new(catalog, elements, &[]);
        let (depth_magic, depth_shift) = division(self.depth);
        for (first, count) in linear.windows(elements) {
            let push = Push {
                count: count as u32,
                first: first as u32,
                depth: self.depth,
                depth_magic,
                depth_shift,
                tokens: self.tokens,
                powers: std::array::from_fn(|bit| self.power(bit)),
            };
            let constants = linear
                .constants::<rotary_angles::File>()
                .with(rotary_angles::INTERLEAVED, self.interleaved)
                .with(rotary_angles::START, self.start);
            let kernel = constants.of(rotary_angles::Module::Only);
            let action = linear.dispatch(catalog, (kernel, false), &push, count)?;
            let access = Access { offset: 4 * first, bytes: 4 * count, ..target };
            commands.push(Command::new(label.clone(), action, smallvec![source, access]).with_flops(count));
        }
        Ok(())
    }

    /// `base^(-2 · 2^bit / depth)`, which is below 1, as 64 bits behind the point.
    fn power(&self, bit: usize) -> [u32; 2] {
        let power = f64::from(self.base).powf(-2.0 * (1u64 << bit) as f64 / f64::from(self.depth));
        let bits = (power * 2f64.powi(64)) as u64;
        [bits as u32, (bits >> 32) as u32]
    }
}
