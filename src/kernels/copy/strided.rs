//! Dense copies of views that have more dimensions than other kernels walk over: dispatches of
//! `glsl/copy_strided.comp`.

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::Command;
use crate::ir::value::{Access, Label, ValueId, Values};
use crate::kernels::bindings::check_binding;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::{ENDLESS, division};
use crate::kernels::modules::copy_strided;
use crate::shape::MAX_RANK;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    count: u32,
    first: u32,
    last: u32,
    offset: u32,
    extents: [u32; MAX_RANK - 1],
    magic: [u32; MAX_RANK - 1],
    shifts: [u32; 2],
    strides: [u32; MAX_RANK],
}

/// A view of a value: its dimensions, innermost first, with the steps from one element to the next in the value.
#[derive(Clone, Debug)]
pub(crate) struct StridedCopy {
    pub(crate) source: ValueId,
    pub(crate) extents: SmallVec<[u32; MAX_RANK]>,
    pub(crate) strides: [u32; MAX_RANK],
    pub(crate) offset: u32,
}

impl StridedCopy {
    fn elements(&self) -> u64 {
        self.extents.iter().map(|&extent| u64::from(extent)).product()
    }

    /// How the kernel walks over the words of the output.
    fn linear(&self, values: &Values, catalog: &Catalog) -> (Linear, u64) {
        let size = values.value(self.source).dtype.size_bytes() as u64;
        let words = (self.elements() * size).div_ceil(4);
        (Linear::new(catalog, words, &[values.bytes(values.root(self.source))]), words)
    }

    /// Refuses a source that no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        match self.linear(values, catalog).0.load {
            Load::Buffer => check_binding(op, self.source, values, &catalog.limits),
            Load::Texel => Ok(()),
        }
    }

    /// Appends the dispatches that fill a dense value of the view's shape.
    pub(crate) fn lower(
        &self,
        output: ValueId,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let size = values.value(self.source).dtype.size_bytes() as u64;
        let (linear, words) = self.linear(values, catalog);
        let (source, target) = (values.whole(self.source, false), values.whole(output, true));
        let (mut extents, mut magic, mut shifts) = ([ENDLESS; MAX_RANK - 1], [0; MAX_RANK - 1], [0; 2]);
        for d in 0..MAX_RANK - 1 {
            if d + 1 < self.extents.len() {
                extents[d] = self.extents[d];
            }
            let (multiplier, shift) = division(extents[d]);
            magic[d] = multiplier;
            shifts[d / 4] |= shift << (8 * (d % 4));
        }
        let last = (self.elements() - 1) as u32;
        let (offset, strides) = (self.offset, self.strides);
        for (first, count) in linear.windows(words) {
            branch!("strided copy: later window", first > 0);
            let push = Push {
                count: count as u32,
                first: first as u32,
                last,
                offset,
                extents,
                magic,
                shifts,
                strides,
            };
            let module = match linear.load {
                Load::Buffer => copy_strided::Module::Buffer,
                Load::Texel => copy_strided::Module::Texel,
            };
            let constants = linear
                .constants::<copy_strided::File>()
                .with(copy_strided::DIMS, self.extents.len() as u32)
                .with(copy_strided::PER_WORD, (4 / size) as u32);
            let action = linear.dispatch(catalog, (constants.of(module), false), &push, count)?;
            let written = Access { offset: 4 * first, bytes: 4 * count, ..target };
            let command = Command::new(label.clone(), action, smallvec![source, written]);
            commands.push(command.with_bytes(8 * count));
        }
        Ok(())
    }
}
