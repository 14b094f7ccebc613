//! Normalisation of rows: how it becomes dispatches of `glsl/norm_rows.comp`, one unless a binding can't span the
//! whole.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::norm::Norm;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Access, Label, LabelName, Origin, ValueId, Values};
use crate::kernels::axis::split::{AxisSplit, DispatchRange, Geometry, Layout, input_window, output_window};
use crate::kernels::axis::split_heuristics::Reads;
use crate::kernels::axis::threads_per_row::ThreadsPerRow;
use crate::kernels::bindings::grid;
use crate::kernels::catalog::{Catalog, Family, Load};
use crate::kernels::division::division;
use crate::kernels::launch::pipelines_of;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::{lanes, norm_rows};
use crate::kernels::uniform_store::DIGITS;
use crate::kernels::variant::{Class, DefaultFor, Tree, Variant};
use crate::shape::norm::Weights;
use crate::shape::{DType, Shape};

/// The family of normalisation.
pub(crate) static FAMILY: Family<Variant> = Family {
    name: "norm",
    classes: Class::BY_ELEMENTS,
    variants: &[
        Variant::new("texel-uniform", Load::Texel, Tree::Shuffle, 64, 40, DefaultFor::Software)
            .uniform_store(),
        Variant::new("texel-shuffle", Load::Texel, Tree::Shuffle, 64, 40, DefaultFor::Software),
        Variant::new("buffer-shared", Load::Buffer, Tree::Shared, 256, 8, DefaultFor::Gpu),
        Variant::new("buffer-shuffle", Load::Buffer, Tree::Shuffle, 64, 40, DefaultFor::Candidate),
    ],
    problem: |class, _| {
        let weights = Shape::from([1024]);
        vec![Shape::from([if class == Class::Large { 1024 } else { 16 }, 1024]), weights, weights]
    },
    // What is made ahead is little, and few applications normalise.
    prewarm: |_| Ok(Vec::new()),
    inspected,
};

/// Rows up to this many texels get one invocation each.
const ONE_LANE_TEXELS: u64 = 4;

/// How the elements of a texel find their weights; numbers as in the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Find {
    /// They are four that follow each other.
    Fours = 0,
    /// It is one for all four.
    One = 1,
    /// Each finds its own.
    Apart = 2,
}

/// The push constants of `glsl/norm_rows.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    units: u32,
    begin: u32,
    extent: u32,
    origin: u32,
    out_origin: u32,
    groups: u32,
    groups_magic: u32,
    groups_shift: u32,
    group_weights: u32,
    spread: u32,
    spread_magic: u32,
    spread_shift: u32,
    share: f32,
    epsilon: f32,
}

/// The common part of the dispatches of one normalisation.
struct Rows {
    pipeline: PipelineKey,
    load: Load,
    layout: Layout,
    rows_per_group: u64,
    uniform_store: bool,
}

impl Norm {
    /// Refuses rows that no binding can span.
    pub(crate) fn check(&self, label: &Label, values: &Values, catalog: &Catalog) -> Result<()> {
        let variant = self.variant(catalog);
        let (_, windowed) = self.load(variant, values, catalog);
        let (layout, limits) = (self.layout(), &catalog.limits);
        layout.check(windowed, label.shape, self.op, limits)?;
        // Results are bound in windows in any case.
        if branch!("norm: a row beyond a binding", layout.out_bytes > Layout::most_bytes(limits)) {
            let (op, shape, bytes) = (self.op, label.shape, layout.out_bytes);
            return Err(Error::BindingTooLarge { op, shape, bytes, limit: limits.storage_range_bytes });
        }
        Ok(())
    }

    /// Appends the dispatches that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let (variant, limits, layout) = (self.variant(catalog), &catalog.limits, self.layout());
        let (load, windowed) = self.load(variant, values, catalog);
        let ranges = layout.dispatch_ranges(windowed, label.shape, self.op, limits)?;
        let threads =
            ThreadsPerRow::new(variant, catalog, self.rows, self.extent.div_ceil(4), ONE_LANE_TEXELS);
        // Texels of other rows are none that a lane may hold.
        let held = threads.vec4s.filter(|_| branch!("norm: rows of fours", self.extent.is_multiple_of(4)));
        branch!("norm: in registers", held.is_some());
        let full = held.is_some_and(|vec4s| self.extent == 4 * u64::from(vec4s * threads.lanes));
        let uniform_store = load == Load::Texel && branch!("norm: full", full);
        let uniform_store =
            if uniform_store { threads.with_uniform_stores(variant, &ranges, limits) } else { None };
        branch!("norm: uniform store", uniform_store.is_some());
        let local_size = uniform_store.unwrap_or(threads.local_size);
        let mut constants = Constants::<norm_rows::File>::new(local_size)
            .with(lanes::LANES, threads.lanes)
            .with(norm_rows::VEC4S, held.unwrap_or(1))
            .with(norm_rows::FULL, full)
            .with(norm_rows::CENTRED, self.centred)
            .with(norm_rows::WEIGHTS, self.find_weights() as u32)
            .with(norm_rows::SHIFTED, self.beta.is_some());
        if uniform_store.is_none() {
            constants.set(norm_rows::SWEEPS, held.is_none());
        }
        let module = module(load, variant.tree, uniform_store.is_some(), self.residual.is_some());
        let rows = Rows {
            pipeline: catalog.pipeline(constants.of(module))?,
            load,
            layout,
            rows_per_group: u64::from(local_size / threads.lanes),
            uniform_store: uniform_store.is_some(),
        };
        commands.extend(ranges.into_iter().map(|range| self.dispatch(&rows, range, label, values, catalog)));
        Ok(())
    }

    fn variant(&self, catalog: &Catalog) -> &'static Variant {
        catalog.variant(&FAMILY, Class::of_elements(self.rows * self.extent))
    }

    /// Rows are never split.
    fn layout(&self) -> Layout {
        let geometry = Geometry { outer: self.rows, extent: self.extent, inner: 1 };
        Layout { geometry, split: AxisSplit { chunk: self.extent, parts: 1 }, out_bytes: 4 * self.extent }
    }

    /// What a kernel binds and reads. Where there is no beta, gamma stands for it.
    fn inputs(&self) -> SmallVec<[ValueId; 4]> {
        let mut inputs = SmallVec::from_slice(&[self.input, self.gamma, self.beta.unwrap_or(self.gamma)]);
        inputs.extend(self.residual.map(|residual| residual.input));
        inputs
    }

    /// How inputs are read, and whether they are bound in windows.
    fn load(&self, variant: &'static Variant, values: &Values, catalog: &Catalog) -> (Load, bool) {
        let reads = Reads { inputs: self.inputs(), values, catalog, variant };
        let load = reads.load(None);
        (load, reads.windowed(load, self.inputs()))
    }

    fn find_weights(&self) -> Find {
        let Weights { groups, per_row, spread } = self.weights;
        let four = self.extent.is_multiple_of(4);
        let fours = four && spread == 1 && (groups == 1 || per_row.is_multiple_of(4));
        if branch!("norm: weights in fours", fours) {
            Find::Fours
        } else if branch!("norm: one weight for four", four && spread.is_multiple_of(4)) {
            Find::One
        } else {
            Find::Apart
        }
    }

    fn dispatch(
        &self,
        rows: &Rows,
        range: DispatchRange,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
    ) -> Command {
        let limits = &catalog.limits;
        let DispatchRange { begin, units, .. } = range;
        let words = rows.layout.elements(begin).start..rows.layout.elements(begin + units - 1).end;
        let elements = words.end - words.start;
        let first = input_window(values, self.input, words.clone(), rows.load, limits);
        let mut accesses: SmallVec<[Access; 4]> = SmallVec::from_slice(&[first.access]);
        let weights = [self.gamma, self.beta.unwrap_or(self.gamma)];
        accesses.extend(weights.map(|weights| values.whole(weights, false)));
        let spare = if self.beta.is_none() { values.bytes(self.gamma) } else { 0 };
        let out = output_window(values, self.output, words.clone(), 4, limits);
        branch!("norm: a residual", self.residual.is_some());
        if let Some(residual) = self.residual {
            // It has the size of the input, so its window begins at the same place; so does that of the sum.
            accesses.push(input_window(values, residual.input, words.clone(), rows.load, limits).access);
            accesses.push(out.access);
            accesses.push(output_window(values, residual.sum, words, 4, limits).access);
        } else {
            accesses.push(out.access);
        }
        let Weights { groups, per_row, spread } = self.weights;
        let [by_groups, by_spread] = [groups, spread].map(|divisor| division(divisor as u32));
        let push = Push {
            units: units as u32,
            begin: begin as u32,
            extent: self.extent as u32,
            origin: first.origin,
            out_origin: out.origin,
            groups: groups as u32,
            groups_magic: by_groups.0,
            groups_shift: by_groups.1,
            group_weights: per_row as u32,
            spread: spread as u32,
            spread_magic: by_spread.0,
            spread_shift: by_spread.1,
            share: 1.0 / self.extent as f32,
            epsilon: self.epsilon,
        };
        let mut push: SmallVec<[u8; 128]> = SmallVec::from_slice(bytemuck::bytes_of(&push));
        if rows.uniform_store {
            push.extend_from_slice(bytemuck::bytes_of(&DIGITS));
        }
        let groups = grid(units.div_ceil(rows.rows_per_group), limits);
        let action = Action::Dispatch { pipeline: rows.pipeline.clone(), push, groups };
        let bytes = accesses.iter().map(|access| access.bytes).sum::<u64>() - spare;
        // A sum, a distance, its square and a product for each element.
        Command::new(label.clone(), action, accesses).with_flops(4 * elements).with_bytes(bytes)
    }
}

fn module(load: Load, tree: Tree, uniform_store: bool, adds: bool) -> norm_rows::Module {
    match (load, tree, uniform_store, adds) {
        (Load::Texel, Tree::Shuffle, true, false) => norm_rows::Module::TexelUniformShuffleInputs3,
        (Load::Texel, Tree::Shuffle, true, true) => norm_rows::Module::TexelUniformShuffleInputs4,
        (Load::Texel, Tree::Shuffle, false, false) => norm_rows::Module::TexelShuffleInputs3,
        (Load::Texel, Tree::Shuffle, false, true) => norm_rows::Module::TexelShuffleInputs4,
        (Load::Buffer, Tree::Shuffle, _, false) => norm_rows::Module::BufferShuffleInputs3,
        (Load::Buffer, Tree::Shuffle, _, true) => norm_rows::Module::BufferShuffleInputs4,
        (_, _, _, false) => norm_rows::Module::BufferSharedInputs3,
        (_, _, _, true) => norm_rows::Module::BufferSharedInputs4,
    }
}

/// The pipeline of a layer norm of rows of 1024.
fn inspected(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let mut values = Values::default();
    let (shape, extent) = (Shape::from([4096, 1024]), Shape::from([1024]));
    let [input, output] = [0; 2].map(|_| values.add_value(shape, DType::F32, Origin::Produced));
    let [gamma, beta] = [0; 2].map(|_| values.add_value(extent, DType::F32, Origin::Produced));
    let norm = Norm {
        op: "inspected",
        centred: true,
        input,
        residual: None,
        gamma,
        beta: Some(beta),
        weights: Weights { groups: 1, per_row: 1024, spread: 1 },
        epsilon: 1e-5,
        rows: 4096,
        extent: 1024,
        output,
    };
    let label = Label { op: LabelName::Op("inspected"), shape, dtype: DType::F32 };
    let mut commands = Vec::new();
    norm.lower(&label, &values, catalog, &mut commands)?;
    Ok(pipelines_of(commands))
}
