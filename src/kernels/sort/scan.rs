//! Scans: dispatches of `glsl/scan.comp`. Totals of parts, a scan of the totals, and the scan of each part from there.

use smallvec::smallvec;

use super::split::{LOCAL_SIZE, lanes};
use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::scan::{Key, Monoid, Scan};
use crate::ir::value::{Access, Label, LabelName, Origin, ValueId, Values};
use crate::kernels::bindings::{check_binding, grid};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::division;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::scan;
use crate::shape::axes::Geometry;
use crate::shape::{DType, Shape};

/// Elements of a part: no fewer, so that totals are few, and no more, since drivers cut long loops.
const LEAST_CHUNK: u64 = 256;
const MOST_CHUNK: u64 = 8192;

/// The push constants of the kernel.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    units: u32,
    columns: u32,
    columns_magic: u32,
    columns_shift: u32,
    parts: u32,
    parts_magic: u32,
    parts_shift: u32,
    extent: u32,
    chunk: u32,
    inner: u32,
}

/// How an invocation walks; numbers as in the kernel.
#[derive(Clone, Copy, PartialEq)]
enum Walk {
    Single = 0,
    Along = 1,
    Across = 2,
}

/// What a pass makes; numbers as in the kernel.
#[derive(Clone, Copy)]
enum Pass {
    Totals = 0,
    Alone = 1,
    Carried = 2,
}

impl Scan {
    /// Refuses what no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        check_binding(op, self.output, values, &catalog.limits)?;
        self.linear(values, catalog).check_inputs(op, &[values.value(self.input).shape])
    }

    fn linear(&self, values: &Values, catalog: &Catalog) -> Linear {
        let bytes = values.bytes(self.input);
        Linear::new(catalog, bytes / 4, &[bytes, bytes])
    }

    /// Parts of a row or column, and elements of a part.
    fn split(&self, walk: Walk, catalog: &Catalog) -> (u64, u64) {
        let Geometry { extent, .. } = self.geometry;
        let lines = self.geometry.results() / if walk == Walk::Across { 4 } else { 1 };
        let parts = (lanes(catalog) / lines.max(1)).clamp(1, extent.div_ceil(LEAST_CHUNK));
        let chunk = extent.div_ceil(parts).next_multiple_of(4).min(MOST_CHUNK);
        (extent.div_ceil(chunk), chunk)
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
        let walk = match self.geometry.is_rows() {
            true if branch!("scan: rows by fours", extent.is_multiple_of(4)) => Walk::Along,
            false if branch!("scan: columns by fours", inner.is_multiple_of(4)) => Walk::Across,
            _ => Walk::Single,
        };
        let (parts, chunk) = self.split(walk, catalog);
        if branch!("scan: whole lines", parts == 1) {
            let command = self.pass(
                (Pass::Alone, walk),
                self.input,
                self.output,
                (parts, chunk),
                label,
                values,
                catalog,
            )?;
            commands.push(command);
            return Ok(());
        }
        let shape = Shape::from([outer as usize, parts as usize, inner as usize]);
        let dtype = values.value(self.output).dtype;
        let [totals, carries] = [0; 2].map(|_| values.add_value(shape, dtype, Origin::Produced));
        let part = |op| Label { op: LabelName::Op(op), ..label.clone() };
        let split = (parts, chunk);
        commands.push(self.pass(
            (Pass::Totals, walk),
            self.input,
            totals,
            split,
            &part("scan totals"),
            values,
            catalog,
        )?);
        let of_totals = Scan {
            exclusive: true,
            // Totals of extremes are keys.
            key: Key::U32,
            input: totals,
            geometry: Geometry { outer, extent: parts, inner },
            output: carries,
            ..*self
        };
        of_totals.lower(&part("scan carries"), values, catalog, commands)?;
        commands.push(self.pass(
            (Pass::Carried, walk),
            carries,
            self.output,
            split,
            label,
            values,
            catalog,
        )?);
        Ok(())
    }

    /// One dispatch. Carries are read by the last pass alone.
    #[allow(clippy::too_many_arguments, reason = "all of them differ from pass to pass")]
    fn pass(
        &self,
        (pass, walk): (Pass, Walk),
        carries: ValueId,
        target: ValueId,
        (parts, chunk): (u64, u64),
        label: &Label,
        values: &Values,
        catalog: &Catalog,
    ) -> Result<Command> {
        let Geometry { outer, extent, inner } = self.geometry;
        let columns = if walk == Walk::Across { inner / 4 } else { inner } as u32;
        let units = outer * parts * u64::from(columns);
        let ((columns_magic, columns_shift), (parts_magic, parts_shift)) =
            (division(columns), division(parts as u32));
        let push = Push {
            units: units as u32,
            columns,
            columns_magic,
            columns_shift,
            parts: parts as u32,
            parts_magic,
            parts_shift,
            extent: extent as u32,
            chunk: chunk as u32,
            inner: inner as u32,
        };
        let constants = Constants::<scan::File>::new(LOCAL_SIZE)
            .with(scan::MONOID, self.monoid as u32)
            .with(scan::KEY, self.key as u32)
            .with(scan::WALK, walk as u32)
            .with(scan::PASS, pass as u32)
            .with(scan::EXCLUSIVE, self.exclusive)
            .with(scan::REVERSE, self.reverse);
        let pipeline = catalog.pipeline(constants.of(match self.linear(values, catalog).load {
            Load::Buffer => scan::Module::Buffer,
            Load::Texel => scan::Module::Texel,
        }))?;
        let groups = grid(units.div_ceil(u64::from(LOCAL_SIZE)), &catalog.limits);
        let action = Action::Dispatch { pipeline, push: bytemuck::bytes_of(&push).into(), groups };
        let reads: [Access; 2] = [self.input, carries].map(|value| values.whole(value, false));
        let target = values.whole(target, true);
        let bytes = reads[0].bytes + target.bytes;
        let command = Command::new(label.clone(), action, smallvec![reads[0], reads[1], target]);
        let flops = if matches!(self.monoid, Monoid::SumF32 | Monoid::ProductF32) {
            extent * self.geometry.results()
        } else {
            0
        };
        Ok(command.with_bytes(bytes).with_flops(flops))
    }
}

/// An exclusive scan of counts, all of them one row.
pub(super) fn running_counts(
    input: ValueId,
    output: ValueId,
    label: &Label,
    values: &mut Values,
    catalog: &Catalog,
    commands: &mut Vec<Command>,
) -> Result<()> {
    debug_assert_eq!(values.value(input).dtype, DType::U32);
    let geometry = Geometry::whole(&values.value(input).shape);
    let scan = Scan {
        monoid: Monoid::SumU32,
        key: Key::U32,
        exclusive: true,
        reverse: false,
        input,
        geometry,
        output,
    };
    scan.lower(label, values, catalog, commands)
}
