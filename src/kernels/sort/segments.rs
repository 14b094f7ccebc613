//! Sums of rows by segment, in a fixed order: dispatches of `glsl/segments.comp`.

use smallvec::smallvec;

use super::split::LOCAL_SIZE;
use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::scan::SegmentSum;
use crate::ir::value::{Label, LabelName, Origin, ValueId, Values};
use crate::kernels::bindings::{check_binding, grid};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::division;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::segments;
use crate::shape::axes::Geometry;
use crate::shape::{DType, Shape};

/// Rows of a chunk at the least: shorter ones would save no additions.
const LEAST_CHUNK: u64 = 64;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    units: u32,
    width: u32,
    width_magic: u32,
    width_shift: u32,
    lines: u32,
    lines_magic: u32,
    lines_shift: u32,
    rows: u32,
    chunk: u32,
    chunks: u32,
}

impl SegmentSum {
    fn linear(&self, values: &Values, catalog: &Catalog) -> Linear {
        let bytes = values.bytes(self.updates);
        let ids = values.bytes(self.ids);
        Linear::new(catalog, bytes / 4, &[ids, ids, bytes, bytes])
    }

    /// Refuses what no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        check_binding(op, self.output, values, &catalog.limits)?;
        check_binding(op, self.updates, values, &catalog.limits)
    }

    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &mut Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let Geometry { outer, extent, inner } = self.geometry;
        let rows = values.value(self.ids).shape.elements() as u64;
        // A sum takes at most two chunks of rows, and all chunks: about as many of each.
        let chunk = (1 << (rows.ilog2() / 2 + 1)).max(LEAST_CHUNK);
        let chunks = rows / chunk;
        let mut partial = self.ids;
        if branch!("segments: chunks", chunks > 0) {
            let shape = Shape::from([outer as usize, chunks as usize, inner as usize]);
            let made = values.add_value(shape, DType::F32, Origin::Produced);
            let part = Label { op: LabelName::Op("sums of chunks"), ..label.clone() };
            let command =
                self.pass([rows, chunk, chunks], (true, chunks), [partial, made], &part, values, catalog)?;
            commands.push(command);
            partial = made;
        }
        let command = self.pass(
            [rows, chunk, chunks],
            (false, extent),
            [partial, self.output],
            label,
            values,
            catalog,
        )?;
        commands.push(command);
        Ok(())
    }

    fn pass(
        &self,
        [rows, chunk, chunks]: [u64; 3],
        (of_chunks, lines): (bool, u64),
        [partial, target]: [ValueId; 2],
        label: &Label,
        values: &Values,
        catalog: &Catalog,
    ) -> Result<Command> {
        let Geometry { outer, inner, .. } = self.geometry;
        let units = outer * lines * inner;
        let ((width_magic, width_shift), (lines_magic, lines_shift)) =
            (division(inner as u32), division(lines as u32));
        let push = Push {
            units: units as u32,
            width: inner as u32,
            width_magic,
            width_shift,
            lines: lines as u32,
            lines_magic,
            lines_shift,
            rows: rows as u32,
            chunk: chunk as u32,
            chunks: chunks as u32,
        };
        let constants = Constants::<segments::File>::new(LOCAL_SIZE).with(segments::CHUNKS, of_chunks);
        let pipeline = catalog.pipeline(constants.of(match self.linear(values, catalog).load {
            Load::Buffer => segments::Module::Buffer,
            Load::Texel => segments::Module::Texel,
        }))?;
        let groups = grid(units.div_ceil(u64::from(LOCAL_SIZE)), &catalog.limits);
        let action = Action::Dispatch { pipeline, push: bytemuck::bytes_of(&push).into(), groups };
        let [ids, places, updates, partial] =
            [self.ids, self.places, self.updates, partial].map(|value| values.whole(value, false));
        let target = values.whole(target, true);
        let bytes = ids.bytes + places.bytes + updates.bytes + target.bytes;
        let command = Command::new(label.clone(), action, smallvec![ids, places, updates, partial, target]);
        Ok(command.with_bytes(bytes).with_flops(outer * rows * inner))
    }
}
