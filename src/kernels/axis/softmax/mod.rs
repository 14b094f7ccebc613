//! Softmax and its logarithm: how they become dispatches of `glsl/softmax_rows.comp` and `softmax_columns.comp`.

pub(crate) mod family;
mod uniform_store;

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::elementwise::Elementwise;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::softmax::Softmax;
use crate::ir::value::{Label, LabelName, Origin, ValueId, Values};
use crate::kernels::axis::prologue;
use crate::kernels::axis::split::{AxisSplit, DispatchRange, Geometry, Layout, input_window, output_window};
use crate::kernels::axis::split_heuristics::{
    PushParts, PushRange, Reads, SplitHeuristics, check_states, column_group,
};
use crate::kernels::axis::threads_per_row::ThreadsPerRow;
use crate::kernels::bindings::grid;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::launch::pipelines_of;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::{lanes, softmax, softmax_columns, softmax_rows};
use crate::kernels::variant::{Class, Tree, Variant};
use crate::shape::{DType, Shape};
use family::FAMILY;

/// How a row or column is worked on; numbers as in the shaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Read once, kept in registers.
    Registers = 0,
    /// Read twice.
    Sweeps = 1,
    /// The first of two dispatches: a state for each part.
    Parts = 2,
    /// The second: states joined, results made.
    Join = 3,
}

/// Texels of a lane in a block of a row, and rows in a block of columns.
const ROW_BLOCK: u64 = 8;
const COLUMN_BLOCK: u64 = 4;
/// Blocks that one invocation adds up, at most: as in `reduce.rs`, for accuracy and for the loop limit of lavapipe.
const MOST_BLOCKS: u64 = 4096;

/// Rows up to this many texels get one invocation each.
fn one_lane_texels(tree: Tree) -> u64 {
    match tree {
        Tree::Shuffle => 8,
        Tree::Shared | Tree::Apart => 4,
    }
}

fn split_heuristics(tree: Tree) -> SplitHeuristics {
    match tree {
        Tree::Shuffle => SplitHeuristics { least_chunk: 8192, units: 8, column_lanes: 128, least_rows: 256 },
        Tree::Shared | Tree::Apart => {
            SplitHeuristics { least_chunk: 16_384, units: 256, column_lanes: 8192, least_rows: 256 }
        }
    }
}

/// The longest row with a prologue. Such rows are never split.
const MOST_PROLOGUE_ELEMENTS: u64 = 4096;

/// How many invocations work on a row.
fn threads_of(variant: &Variant, catalog: &Catalog, geometry: Geometry) -> ThreadsPerRow {
    // A row that begins anywhere touches one texel more.
    let texels = if branch!("softmax: rows of fours", geometry.extent.is_multiple_of(4)) {
        geometry.extent / 4
    } else {
        (geometry.extent + 3).div_ceil(4)
    };
    ThreadsPerRow::new(variant, catalog, geometry.outer, texels, one_lane_texels(variant.tree))
}

/// Whether each lane of the second dispatch has one state of a row to join, at the most.
fn few(threads: ThreadsPerRow, split: AxisSplit) -> bool {
    branch!("softmax: few parts", split.parts <= u64::from(threads.lanes))
}

/// The push constants of `glsl/softmax_rows.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PushRows {
    parts: PushParts,
    origin: u32,
    out_origin: u32,
}

/// The push constants of `glsl/softmax_columns.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PushColumns {
    range: PushRange,
    inner: u32,
    first_four: u32,
    fours: u32,
    origin: u32,
    out_origin: u32,
    last: u32,
}

/// The state of the lowering of a `Softmax`.
struct Lowering<'a> {
    softmax: &'a Softmax,
    label: &'a Label,
    values: &'a mut Values,
    catalog: &'a Catalog,
    variant: &'static Variant,
    commands: &'a mut Vec<Command>,
}

impl Softmax {
    /// Refuses a softmax that needs more in one binding than a binding can span: states, or a part of the input.
    pub(crate) fn check(&self, label: &Label, values: &Values, catalog: &Catalog) -> Result<()> {
        let elements = values.value(self.input).shape.elements() as u64;
        let variant = catalog.variant(&FAMILY, Class::of_elements(elements));
        let split_plan = SplitPlan::new(self, values, catalog, variant);
        let split = split_plan.split();
        let layout = Layout { geometry: self.geometry, split, out_bytes: 4 * split.chunk };
        let read_with = |states| {
            let windowed = split_plan.windowed(split_plan.load(states));
            layout.check(windowed, label.shape, self.op, &catalog.limits)
        };
        if split.parts == 1 {
            return read_with(None);
        }
        // States are made by one dispatch, and joined by one that reads the input again.
        split_plan.check_states(split, label.shape)?;
        read_with(None)?;
        read_with(Some(split_plan.state_bytes(split)))
    }

    /// Appends the dispatches that carry it out: one, or two where rows or columns are long.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &mut Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let elements = values.value(self.input).shape.elements() as u64;
        let variant = catalog.variant(&FAMILY, Class::of_elements(elements));
        Lowering { softmax: self, label, values, catalog, variant, commands }.run()
    }

    /// Whether it can run this elementwise op as it loads: rows that are not long are loaded once, or twice where a
    /// device's subgroups are small.
    pub(crate) fn takes(&self, prologue: &Elementwise) -> bool {
        self.prologue.is_none()
            && branch!("softmax: prologue, rows", self.geometry.is_rows())
            && branch!("softmax: prologue, short", self.geometry.extent <= MOST_PROLOGUE_ELEMENTS)
            && prologue::fits(prologue)
    }
}

/// The common part of the dispatches of one stage over rows.
struct Rows {
    pipeline: PipelineKey,
    load: Load,
    layout: Layout,
    /// The states of a row's parts, if they are read; how many a row has.
    join: Option<ValueId>,
    parts: u64,
    target: ValueId,
    /// For modules that use uniform stores.
    digits: Option<[u32; 8]>,
}

/// The kind of a kernel of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Joins the states of parts.
    Join,
    /// Runs an elementwise op as it loads.
    Prologue,
}

/// The decisions before commands are appended: how a softmax is read and split.
struct SplitPlan<'a> {
    softmax: &'a Softmax,
    reads: Reads<'a>,
}

impl<'a> SplitPlan<'a> {
    fn new(
        softmax: &'a Softmax,
        values: &'a Values,
        catalog: &'a Catalog,
        variant: &'static Variant,
    ) -> SplitPlan<'a> {
        let inputs = prologue::inputs(softmax.prologue.as_ref(), softmax.input).into_iter().collect();
        SplitPlan { softmax, reads: Reads { inputs, values, catalog, variant } }
    }

    fn split(&self) -> AxisSplit {
        let is_rows = self.softmax.geometry.is_rows();
        if branch!("softmax: rows", is_rows) { self.split_rows() } else { self.split_columns() }
    }

    /// The size of the states of all parts.
    fn state_bytes(&self, split: AxisSplit) -> u64 {
        16 * self.softmax.geometry.results() * split.parts
    }

    fn check_states(&self, split: AxisSplit, shape: Shape) -> Result<()> {
        check_states(self.softmax.op, shape, self.state_bytes(split), &self.reads.catalog.limits)
    }

    // Results are bound in windows in any case, and a part's must fit one.

    fn split_rows(&self) -> AxisSplit {
        let (geometry, Reads { catalog, variant, .. }) = (self.softmax.geometry, &self.reads);
        let threads = threads_of(variant, catalog, geometry);
        if branch!("softmax: in registers", threads.vec4s.is_some()) {
            return AxisSplit { chunk: geometry.extent, parts: 1 };
        }
        let grain = 4 * ROW_BLOCK * u64::from(threads.lanes);
        let most = (grain * MOST_BLOCKS).min(Layout::most_bytes(&catalog.limits) / (4 * grain) * grain);
        split_heuristics(variant.tree).split_rows(geometry, grain, most)
    }

    fn split_columns(&self) -> AxisSplit {
        let (geometry, Reads { catalog, variant, .. }) = (self.softmax.geometry, &self.reads);
        let fit = (Layout::most_bytes(&catalog.limits) / (4 * geometry.inner)).max(1);
        let most = (COLUMN_BLOCK * MOST_BLOCKS).min(fit);
        split_heuristics(variant.tree).split_columns(geometry, COLUMN_BLOCK, most)
    }

    fn windowed(&self, load: Load) -> bool {
        self.reads.windowed(load, self.reads.inputs.iter().copied())
    }

    /// How it is read, together with states of this size.
    fn load(&self, states: Option<u64>) -> Load {
        self.reads.load(states)
    }
}

impl Lowering<'_> {
    fn split_plan(&self) -> SplitPlan<'_> {
        let Lowering { softmax, catalog, variant, .. } = *self;
        SplitPlan::new(softmax, self.values, catalog, variant)
    }

    /// How it is read, together with these states.
    fn load(&self, states: Option<ValueId>) -> Load {
        self.split_plan().load(states.map(|states| self.values.bytes(states)))
    }

    fn run(mut self) -> Result<()> {
        let geometry = self.softmax.geometry;
        let split = self.split_plan().split();
        if branch!("softmax: one part", split.parts == 1) {
            return self.stage(Mode::Sweeps, split, None);
        }
        self.split_plan().check_states(split, self.label.shape)?;
        let states = geometry.results() * split.parts;
        let states = self.values.add_value(Shape::from([states as usize, 4]), DType::U32, Origin::Produced);
        self.stage(Mode::Parts, split, Some(states))?;
        self.stage(Mode::Join, split, Some(states))
    }

    fn stage(&mut self, mode: Mode, split: AxisSplit, states: Option<ValueId>) -> Result<()> {
        if branch!("softmax: a stage of rows", self.softmax.geometry.is_rows()) {
            self.rows(mode, split, states)
        } else {
            self.columns(mode, split, states)
        }
    }

    fn rows(&mut self, mode: Mode, split: AxisSplit, states: Option<ValueId>) -> Result<()> {
        if branch!("softmax: rows uniform store", self.rows_with_uniform_stores(mode, split, states)?) {
            return Ok(());
        }
        let &Softmax { op, logarithm, ref prologue, geometry, output, .. } = self.softmax;
        let limits = &self.catalog.limits;
        let threads = threads_of(self.variant, self.catalog, geometry);
        // Parts are large: each gets a workgroup.
        let local_size = match (mode, self.variant.tree) {
            (Mode::Parts | Mode::Join, Tree::Shuffle) => threads.lanes,
            _ => threads.local_size,
        };
        let join = states.filter(|_| mode == Mode::Join);
        let load = self.load(join);
        let kind = match (join, prologue) {
            (Some(_), _) => Kind::Join,
            (None, Some(_)) => Kind::Prologue,
            (None, None) => Kind::Plain,
        };
        let mut constants = Constants::<softmax_rows::File>::new(local_size)
            .with(lanes::LANES, threads.lanes)
            .with(softmax::LOGARITHM, logarithm);
        if branch!("softmax: rows of no parts", join.is_none()) {
            let kept = branch!("softmax: kept in registers", threads.vec4s.is_some());
            let mode = if kept { Mode::Registers } else { mode };
            let vec4s = threads.vec4s.unwrap_or(1);
            let full = geometry.extent == 4 * u64::from(vec4s) * u64::from(threads.lanes);
            branch!("softmax: full", full);
            constants.set(softmax_rows::MODE, mode as u32);
            constants.set(softmax_rows::VEC4S, vec4s);
            constants.set(softmax_rows::FULL, full);
        } else {
            constants.set(softmax_rows::FEW, few(threads, split));
        }
        if let Some(prologue) = prologue {
            prologue::set_constants(prologue, &mut constants);
        }
        let pipeline = self.catalog.pipeline(constants.of(rows_module(load, self.variant.tree, kind)))?;
        let parts_only = branch!("softmax: parts of rows", mode == Mode::Parts);
        let out_bytes = if parts_only { 16 } else { 4 * split.chunk };
        let target = states.filter(|_| parts_only).unwrap_or(output);
        let layout = Layout { geometry, split, out_bytes };
        let ranges =
            layout.dispatch_ranges(self.split_plan().windowed(load), self.label.shape, op, limits)?;
        let rows = Rows { pipeline, load, layout, join, target, parts: split.parts, digits: None };
        for range in ranges {
            let groups = grid(range.units.div_ceil(u64::from(local_size / threads.lanes)), limits);
            self.dispatch_rows(&rows, range, groups);
        }
        Ok(())
    }

    /// Appends the dispatch of a range.
    fn dispatch_rows(&mut self, rows: &Rows, range: DispatchRange, groups: [u32; 3]) {
        let Rows { layout, load, .. } = rows;
        let (limits, prologue) = (&self.catalog.limits, self.softmax.prologue.as_ref());
        let DispatchRange { begin, units, .. } = range;
        let words = layout.elements(begin).start..layout.elements(begin + units - 1).end;
        let elements = words.end - words.start;
        let mut bound = prologue::bind(prologue, self.softmax.input, self.values, &words, *load, limits);
        bound.accesses.extend(rows.join.map(|states| self.values.whole(states, false)));
        let out = output_window(self.values, rows.target, words, 4, limits);
        bound.accesses.push(out.access);
        let parts = PushParts::new(&range, layout, rows.parts);
        let push = PushRows { parts, origin: bound.origin, out_origin: out.origin };
        let mut push = prologue::push(&push, prologue);
        push.extend(rows.digits.into_iter().flatten().flat_map(u32::to_ne_bytes));
        let action = Action::Dispatch { pipeline: rows.pipeline.clone(), push, groups };
        self.commands.push(bound.command(self.label, action, prologue, (self.label.dtype, elements)));
    }

    fn columns(&mut self, mode: Mode, split: AxisSplit, states: Option<ValueId>) -> Result<()> {
        let &Softmax { op, logarithm, input, geometry, output, .. } = self.softmax;
        let limits = &self.catalog.limits;
        let inner = geometry.inner;
        let local_size = column_group(geometry, split, self.variant, limits);
        let join = states.filter(|_| mode == Mode::Join);
        let load = self.load(join);
        let mut constants =
            Constants::<softmax_columns::File>::new(local_size).with(softmax::LOGARITHM, logarithm);
        if branch!("softmax: columns of no parts", join.is_none()) {
            constants.set(softmax_columns::MODE, mode as u32);
        }
        constants.set(softmax_columns::ALIGNED, branch!("softmax: columns of four", inner % 4 == 0));
        let pipeline = self.catalog.pipeline(constants.of(columns_module(load, join.is_some())))?;
        let parts_only = branch!("softmax: parts of columns", mode == Mode::Parts);
        let out_bytes = if parts_only { 16 } else { 4 * split.chunk };
        let target = states.filter(|_| parts_only).unwrap_or(output);
        let layout = Layout { geometry, split, out_bytes };
        for range in layout.dispatch_ranges(self.split_plan().windowed(load), self.label.shape, op, limits)? {
            let DispatchRange { begin, units, first_four, fours } = range;
            let words = layout.elements(begin).start..layout.elements(begin + units - 1).end;
            let first = input_window(self.values, input, words.clone(), load, limits);
            // Some of the columns are a range only where a part has one row.
            let results = if branch!("softmax: some columns", 4 * fours < inner) {
                words.start + 4 * first_four..words.start + (4 * (first_four + fours)).min(inner)
            } else {
                words
            };
            let out = output_window(self.values, target, results, 4, limits);
            let push = PushColumns {
                range: PushRange::new(&range, geometry, split),
                inner: inner as u32,
                first_four: first_four as u32,
                fours: fours as u32,
                origin: first.origin,
                out_origin: out.origin,
                last: first.last,
            };
            let mut accesses = smallvec![first.access];
            accesses.extend(join.map(|states| self.values.whole(states, false)));
            accesses.push(out.access);
            let groups = grid((units * fours).div_ceil(u64::from(local_size)), limits);
            let push = SmallVec::from_slice(bytemuck::bytes_of(&push));
            let action = Action::Dispatch { pipeline: pipeline.clone(), push, groups };
            let flops = first.access.bytes / 4;
            self.commands.push(Command::new(self.label.clone(), action, accesses).with_flops(flops));
        }
        Ok(())
    }
}

fn rows_module(load: Load, tree: Tree, kind: Kind) -> softmax_rows::Module {
    match (load, tree, kind) {
        (Load::Texel, Tree::Shuffle, Kind::Plain) => softmax_rows::Module::TexelShuffleInputs1,
        (Load::Texel, Tree::Shuffle, Kind::Join) => softmax_rows::Module::TexelShuffleInputs2,
        (Load::Texel, Tree::Shuffle, Kind::Prologue) => softmax_rows::Module::TexelShuffleInputs3Steps4Light,
        (Load::Buffer, Tree::Shuffle, Kind::Plain) => softmax_rows::Module::BufferShuffleInputs1,
        (Load::Buffer, Tree::Shuffle, Kind::Join) => softmax_rows::Module::BufferShuffleInputs2,
        (Load::Buffer, Tree::Shuffle, Kind::Prologue) => {
            softmax_rows::Module::BufferShuffleInputs3Steps4Light
        }
        (_, _, Kind::Plain) => softmax_rows::Module::BufferSharedInputs1,
        (_, _, Kind::Join) => softmax_rows::Module::BufferSharedInputs2,
        (_, _, Kind::Prologue) => softmax_rows::Module::BufferSharedInputs3Steps4Light,
    }
}

fn columns_module(load: Load, join: bool) -> softmax_columns::Module {
    match (load, join) {
        (Load::Texel, false) => softmax_columns::Module::TexelInputs1,
        (Load::Texel, true) => softmax_columns::Module::TexelInputs2,
        (Load::Buffer, false) => softmax_columns::Module::BufferInputs1,
        (Load::Buffer, true) => softmax_columns::Module::BufferInputs2,
    }
}

/// The pipeline of softmax over rows of 1024.
pub(crate) fn prewarm(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let mut values = Values::default();
    let shape = Shape::from([4096, 1024]);
    let [input, output] = [0; 2].map(|_| values.add_value(shape, DType::F32, Origin::Produced));
    let geometry = Geometry::along(&shape, 1);
    let softmax = Softmax { op: "prewarm", logarithm: false, input, prologue: None, geometry, output };
    let label = Label { op: LabelName::Op("prewarm"), shape, dtype: DType::F32 };
    let mut commands = Vec::new();
    softmax.lower(&label, &mut values, catalog, &mut commands)?;
    Ok(pipelines_of(commands))
}
