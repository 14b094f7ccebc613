//! Stable sorts by digits of four bits, the lowest first: dispatches of `glsl/radix_count.comp` and
//! `radix_scatter.comp`, with a scan of the counts between them.

use smallvec::smallvec;

use super::scan::running_counts;
use super::split::LOCAL_SIZE;
use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::scan::Sort;
use crate::ir::value::{Label, LabelName, Origin, ValueId, Values};
use crate::kernels::bindings::{check_binding, grid};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::copy::linear::Linear;
use crate::kernels::division::division;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile};
use crate::kernels::modules::{radix, radix_count, radix_scatter};
use crate::shape::{DType, Shape};

/// Keys of a run: fewer than 256, since counts are bytes, and whole groups of four.
const RUN: u64 = 252;
/// Digits of a key, and values of a digit.
const DIGITS: u32 = 8;
const BUCKETS: u64 = 16;

/// The push constants of the kernels.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    units: u32,
    runs: u32,
    magic: u32,
    divided: u32,
    extent: u32,
    most: u32,
    shift: u32,
}

/// What a pass reads and writes.
#[derive(Clone, Copy)]
struct Pass {
    digit: u32,
    keys: ValueId,
    places: ValueId,
    to_keys: ValueId,
    to_places: ValueId,
}

/// The state of the lowering of a `Sort`.
struct Lowering<'a> {
    sort: &'a Sort,
    label: &'a Label,
    catalog: &'a Catalog,
    load: Load,
    push: Push,
    units: u64,
}

impl Sort {
    fn linear(&self, values: &Values, catalog: &Catalog) -> Linear {
        let bytes = values.bytes(self.input);
        Linear::new(catalog, bytes / 4, &[bytes, self.counts(values) * 4, bytes])
    }

    /// Counts of all runs.
    fn counts(&self, values: &Values) -> u64 {
        let rows = values.value(self.input).shape.elements() as u64 / self.extent;
        rows * self.extent.div_ceil(RUN) * BUCKETS
    }

    /// Refuses what no binding can span.
    pub(crate) fn check(&self, op: &'static str, values: &Values, catalog: &Catalog) -> Result<()> {
        check_binding(op, self.input, values, &catalog.limits)?;
        let (limit, bytes) = (catalog.limits.storage_range_bytes, 4 * self.counts(values));
        if branch!("sort: counts beyond a binding", bytes > limit) {
            return Err(Error::BindingTooLarge { op, shape: values.value(self.input).shape, bytes, limit });
        }
        Ok(())
    }

    /// Appends the commands that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &mut Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let shape = values.value(self.input).shape;
        let (rows, runs) = (shape.elements() as u64 / self.extent, self.extent.div_ceil(RUN));
        let (magic, divided) = division(runs as u32);
        let push = Push {
            units: (rows * runs) as u32,
            runs: runs as u32,
            magic,
            divided,
            extent: self.extent as u32,
            most: RUN as u32,
            shift: 0,
        };
        let load = self.linear(values, catalog).load;
        let lowering = Lowering { sort: self, label, catalog, load, push, units: rows * runs };
        let mut add = || values.add_value(shape, DType::U32, Origin::Produced);
        let keys = [add(), add()];
        // Without places, keys stand behind their bindings, and nothing is read or written there.
        let places = if self.places.is_some() { [add(), add()] } else { keys };
        let (mut from, mut from_places) = (self.input, self.input);
        for digit in 0..DIGITS {
            let (last, other) = (digit == DIGITS - 1, (digit % 2) as usize);
            let to_keys = self.sorted.filter(|_| last).unwrap_or(keys[other]);
            let to_places = self.places.filter(|_| last).unwrap_or(places[other]);
            let pass = Pass { digit, keys: from, places: from_places, to_keys, to_places };
            lowering.pass(pass, values, commands)?;
            (from, from_places) = (to_keys, to_places);
        }
        Ok(())
    }
}

impl Lowering<'_> {
    /// Counts of a digit, where each run's digits begin, and the keys in the order of that digit.
    fn pass(&self, pass: Pass, values: &mut Values, commands: &mut Vec<Command>) -> Result<()> {
        let counts = Shape::from([(self.units * BUCKETS) as usize]);
        let [counts, firsts] = [0; 2].map(|_| values.add_value(counts, DType::U32, Origin::Produced));
        let accesses = smallvec![values.whole(pass.keys, false), values.whole(counts, true)];
        let module = match self.load {
            Load::Buffer => radix_count::Module::Buffer,
            Load::Texel => radix_count::Module::Texel,
        };
        let action = self.dispatch::<radix_count::File>(&pass, module, |constants| constants)?;
        commands.push(Command::new(self.part("sort counts"), action, accesses));
        running_counts(counts, firsts, &self.part("sort places"), values, self.catalog, commands)?;
        let last = pass.digit == DIGITS - 1;
        let with_keys = !last || self.sort.sorted.is_some();
        let with_places = self.sort.places.is_some();
        let module = match self.load {
            Load::Buffer => radix_scatter::Module::Buffer,
            Load::Texel => radix_scatter::Module::Texel,
        };
        let action = self.dispatch::<radix_scatter::File>(&pass, module, |constants| {
            constants
                .with(radix_scatter::LAST, last)
                .with(radix_scatter::WITH_KEYS, with_keys)
                .with(radix_scatter::WITH_PLACES, with_places)
        })?;
        let reads = [pass.keys, firsts, pass.places].map(|value| values.whole(value, false));
        // A binding that nothing is written to is that of the other result.
        let to_keys = if with_keys { pass.to_keys } else { pass.to_places };
        let to_places = if with_places { pass.to_places } else { pass.to_keys };
        let writes = [to_keys, to_places].map(|value| values.whole(value, true));
        let accesses = reads.into_iter().chain(writes).collect();
        let moved = 2 * reads[0].bytes * (u64::from(with_keys) + u64::from(with_places)) + reads[1].bytes;
        commands.push(Command::new(self.label.clone(), action, accesses).with_bytes(moved));
        Ok(())
    }

    fn part(&self, op: &'static str) -> Label {
        Label { op: LabelName::Op(op), ..self.label.clone() }
    }

    fn dispatch<K: KernelFile + Includes<radix::File>>(
        &self,
        pass: &Pass,
        module: K::Module,
        with: impl FnOnce(Constants<K>) -> Constants<K>,
    ) -> Result<Action> {
        let constants = Constants::<K>::new(LOCAL_SIZE)
            .with(radix::KEY, self.sort.key as u32)
            .with(radix::ENCODE, pass.digit == 0)
            .with(radix::DESCENDING, self.sort.descending)
            .with(radix::ALIGNED, branch!("sort: rows by fours", self.sort.extent.is_multiple_of(4)));
        let pipeline = self.catalog.pipeline(with(constants).of(module))?;
        let push = Push { shift: 4 * pass.digit, ..self.push };
        let groups = grid(self.units.div_ceil(u64::from(LOCAL_SIZE)), &self.catalog.limits);
        Ok(Action::Dispatch { pipeline, push: bytemuck::bytes_of(&push).into(), groups })
    }
}
