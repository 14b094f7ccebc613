//! Slices of a table by their indices: dispatches of `glsl/gather.comp`.

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::copy::{self, Gather};
use crate::ir::value::{Access, Label, Values};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::division;
use crate::kernels::modules::gather;
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
    height: u32,
    slots: u32,
    slots_magic: u32,
    slots_shift: u32,
}

/// What has an index; numbers as in the kernel.
#[derive(Clone, Copy)]
enum Indexed {
    Row = 0,
    Slot = 1,
    Element = 2,
    First = 3,
}

impl Gather {
    /// How it walks over the output; nothing where there is nothing to walk over, or no row to read.
    fn linear(&self, values: &Values, catalog: &Catalog) -> Option<Linear> {
        let elements = values.value(self.output).shape.elements() as u64;
        let inputs = [self.table, self.rows].map(|input| values.bytes(input));
        let reads = elements > 0 && values.value(self.table).shape.elements() > 0;
        reads.then(|| Linear::new(catalog, elements, &inputs))
    }

    /// Refuses a table or a list of rows that no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        let shapes = [self.table, self.rows].map(|input| values.value(input).shape);
        self.linear(values, catalog).map_or(Ok(()), |linear| linear.check_inputs(op, &shapes))
    }

    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let target = values.whole(self.output, true);
        let elements = values.value(self.output).shape.elements() as u64;
        if branch!("gather: nothing", elements == 0) {
            return Ok(());
        }
        let Some(linear) = self.linear(values, catalog) else {
            branch!("gather: from nothing");
            let fill = Action::Fill { word: 0 };
            commands.push(Command::new(label.clone(), fill, smallvec![target]));
            return Ok(());
        };
        let inputs: [Access; 2] = [values.whole(self.table, false), values.whole(self.rows, false)];
        let Geometry { outer, extent, inner } = self.geometry;
        let (height, width) = (extent as u32, inner as u32);
        let slots = (elements / (outer * inner)) as u32;
        let indexed = match self.indexed {
            copy::Indexed::Elements => Indexed::Element,
            copy::Indexed::First => {
                branch!("gather: the first");
                Indexed::First
            }
            copy::Indexed::Slices if branch!("gather: outer slices", outer > 1) => Indexed::Slot,
            copy::Indexed::Slices => Indexed::Row,
        };
        // A row of one element needs no division; the shader divides by at least two.
        let ((magic, shift), (slots_magic, slots_shift)) = (division(width), division(slots));
        let push = Push { count: 0, first: 0, width, magic, shift, height, slots, slots_magic, slots_shift };
        let each = branch!("gather: by element", self.indexed == copy::Indexed::Elements);
        let aligned = branch!("gather: aligned", width.is_multiple_of(4)) && !each;
        for (first, count, uniform_store) in linear.windows_with_uniform_stores(elements, aligned) {
            let push = Push { count: count as u32, first: first as u32, ..push };
            let single = branch!("gather: single", width == 1);
            let module = match linear.load {
                _ if branch!("linear: gathered uniform store", uniform_store) => gather::Module::TexelUniform,
                Load::Buffer => gather::Module::Buffer,
                Load::Texel => gather::Module::Texel,
            };
            let constants = linear
                .constants::<gather::File>()
                .with(gather::ALIGNED, aligned)
                .with(gather::SINGLE, single)
                .with(gather::INDEXED, indexed as u32);
            let action = linear.dispatch(catalog, (constants.of(module), uniform_store), &push, count)?;
            let mut accesses: SmallVec<[Access; 4]> = SmallVec::from_slice(&inputs);
            accesses.push(Access { offset: 4 * first, bytes: 4 * count, ..target });
            // Each element, the one it comes from (a table's element once, however often it is named), the row's
            // number.
            let from_table = (4 * count).min(inputs[0].bytes);
            let bytes = 4 * count + from_table + 4 * count.div_ceil(u64::from(width));
            commands.push(Command::new(label.clone(), action, accesses).with_bytes(bytes));
        }
        Ok(())
    }
}
