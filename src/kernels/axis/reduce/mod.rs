//! Reductions: how they become dispatches of `glsl/reduce_rows.comp`, `reduce_columns.comp`, `reduce_merge.comp` and
//! `reduce_short.comp`.

pub(crate) mod family;
mod short;

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::elementwise::Elementwise;
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::reduce::Reduce;
use crate::ir::reduce::Reduction;
use crate::ir::value::{Label, LabelName, Origin, ValueId, Values};
use crate::kernels::axis::prologue;
use crate::kernels::axis::reduction::Finish;
use crate::kernels::axis::split::{
    AxisSplit, DispatchRange, Geometry, Layout, input_window, load_of, output_window, subgroup,
};
use crate::kernels::axis::split_heuristics::{
    PushParts, PushRange, Reads, SplitHeuristics, check_states, column_group,
};
use crate::kernels::axis::threads_per_row::ONE_LANE_GROUP;
use crate::kernels::bindings::{grid, window_bytes};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::launch::pipelines_of;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile};
use crate::kernels::modules::{lanes, monoid, reduce_columns, reduce_merge, reduce_rows};
use crate::kernels::variant::{Class, Tree, Variant};
use crate::shape::{DType, Shape};
use family::FAMILY;

/// Bytes of a part's state.
const STATE_BYTES: u64 = 16;

/// How rows get their invocations.
struct Widths {
    /// Rows up to this many elements get one invocation each.
    one_lane: u64,
    /// Rows and parts from this many elements on get a workgroup each.
    wide: u64,
}

fn widths(tree: Tree) -> Widths {
    match tree {
        Tree::Shuffle => Widths { one_lane: 128, wide: 4096 },
        Tree::Shared | Tree::Apart => Widths { one_lane: 16, wide: 2048 },
    }
}

fn split_heuristics(tree: Tree) -> SplitHeuristics {
    match tree {
        Tree::Shuffle => {
            SplitHeuristics { least_chunk: 16_384, units: 64, column_lanes: 512, least_rows: 64 }
        }
        Tree::Shared | Tree::Apart => {
            SplitHeuristics { least_chunk: 8192, units: 512, column_lanes: 65_536, least_rows: 32 }
        }
    }
}

/// Blocks that one invocation adds up, at most. It keeps the second-order error of compensated sums (the square of
/// blocks x 2^-24) below one rounding, and loops far below the 65,535 steps after which lavapipe cuts them.
const MOST_BLOCKS: u64 = 4096;
/// Texels, or rows of columns, in a block.
const BLOCK: u64 = 8;
/// States that one invocation joins, at most.
const MOST_STATES: u64 = 4096;

/// Invocations per row and per workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReduceThreads {
    lanes: u32,
    local_size: u32,
}

impl ReduceThreads {
    fn new(variant: &Variant, catalog: &Catalog, one_lane: bool, wide: bool) -> ReduceThreads {
        let most = variant.local_size.min(catalog.limits.invocations);
        match variant.tree {
            _ if branch!("reduce: one lane", one_lane) => {
                ReduceThreads { lanes: 1, local_size: ONE_LANE_GROUP.min(catalog.limits.invocations) }
            }
            Tree::Shuffle => {
                let lanes = subgroup(catalog);
                ReduceThreads {
                    lanes,
                    local_size: if branch!("reduce: wide", wide) { lanes } else { most.max(lanes) },
                }
            }
            Tree::Shared | Tree::Apart => ReduceThreads {
                lanes: if branch!("reduce: wide, shared", wide) { most } else { 32.min(most) },
                local_size: most,
            },
        }
    }

    fn groups(self, units: u64) -> u64 {
        units.div_ceil(u64::from(self.local_size / self.lanes))
    }
}

/// The push constants of `glsl/reduce_rows.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PushRows {
    parts: PushParts,
    count: u32,
    origin: u32,
    origin2: u32,
    out_origin: u32,
}

/// The push constants of `glsl/reduce_columns.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PushColumns {
    range: PushRange,
    count: u32,
    inner: u32,
    first_four: u32,
    fours: u32,
    origin: u32,
    origin2: u32,
    out_origin: u32,
    last: u32,
    last2: u32,
}

/// The push constants of `glsl/reduce_merge.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PushMerge {
    units: u32,
    parts: u32,
    extent: u32,
    chunk: u32,
    inner: u32,
    count: u32,
}

/// The state of the lowering of a `Reduce`.
struct Lowering<'a> {
    reduce: &'a Reduce,
    label: &'a Label,
    values: &'a mut Values,
    catalog: &'a Catalog,
    variant: &'static Variant,
    dtype: DType,
    commands: &'a mut Vec<Command>,
}

impl Reduce {
    /// Refuses a reduction that needs more in one binding than a binding can span: states, or a part of the input.
    pub(crate) fn check(&self, label: &Label, values: &Values, catalog: &Catalog) -> Result<()> {
        let elements = values.value(self.input).shape.elements() as u64;
        let variant = catalog.variant(&FAMILY, Class::of_elements(elements));
        let split_plan = SplitPlan::new(self, values, catalog, variant);
        if split_plan.is_short() {
            return Ok(());
        }
        let (geometry, split) = (self.geometry, split_plan.split());
        split_plan.check_states(geometry, split.parts, label.shape)?;
        let layout = Layout { geometry, split, out_bytes: STATE_BYTES };
        layout.check(split_plan.windowed(split_plan.load()), label.shape, self.op, &catalog.limits)
    }

    /// Appends the dispatches that carry it out: one; where rows or columns are long and few, more that join parts.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &mut Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let (shape, dtype) = (values.value(self.input).shape, values.value(self.input).dtype);
        let variant = catalog.variant(&FAMILY, Class::of_elements(shape.elements() as u64));
        Lowering { reduce: self, label, values, catalog, variant, dtype, commands }.run()
    }

    /// Whether it can run this elementwise op as it loads: it reduces whole rows of one input, and not many short ones,
    /// which are added up in another order.
    pub(crate) fn takes(&self, prologue: &Elementwise) -> bool {
        branch!("reduce: of one", self.second.is_none())
            && self.prologue.is_none()
            && branch!("reduce: prologue, rows", self.geometry.is_rows())
            && branch!("reduce: prologue, long", !short::is_worth_it(self.geometry))
            && prologue::fits(prologue)
    }
}

/// The decisions before commands are appended: how a reduction is read and split.
struct SplitPlan<'a> {
    reduce: &'a Reduce,
    reads: Reads<'a>,
}

impl<'a> SplitPlan<'a> {
    fn new(
        reduce: &'a Reduce,
        values: &'a Values,
        catalog: &'a Catalog,
        variant: &'static Variant,
    ) -> SplitPlan<'a> {
        let own = prologue::inputs(reduce.prologue.as_ref(), reduce.input);
        let inputs = own.into_iter().chain(reduce.second).collect();
        SplitPlan { reduce, reads: Reads { inputs, values, catalog, variant } }
    }

    fn split(&self) -> AxisSplit {
        if self.reduce.geometry.is_rows() { self.split_rows() } else { self.split_columns() }
    }

    fn check_states(&self, geometry: Geometry, parts: u64, shape: Shape) -> Result<()> {
        if parts == 1 {
            return Ok(());
        }
        let bytes = geometry.results() * parts * STATE_BYTES;
        check_states(self.reduce.op, shape, bytes, &self.reads.catalog.limits)
    }

    /// Whether the input is bound in windows; a second one is where it is as large.
    fn windowed(&self, load: Load) -> bool {
        self.reads.windowed(load, [self.reduce.input])
    }

    fn load(&self) -> Load {
        self.reads.load(None)
    }

    fn split_rows(&self) -> AxisSplit {
        let (geometry, Reads { catalog, variant, .. }) = (self.reduce.geometry, &self.reads);
        if branch!("reduce: not split", geometry.extent <= widths(variant.tree).one_lane) {
            return AxisSplit { chunk: geometry.extent, parts: 1 };
        }
        let threads = ReduceThreads::new(variant, catalog, false, true);
        let grain = 4 * BLOCK * u64::from(threads.lanes);
        let mut most = grain * MOST_BLOCKS;
        if branch!("reduce: rows in windows", self.windowed(self.load())) {
            // A part must fit a binding.
            most = most.min(window_bytes(&catalog.limits) / (4 * grain) * grain);
        }
        split_heuristics(variant.tree).split_rows(geometry, grain, most)
    }

    fn split_columns(&self) -> AxisSplit {
        let (geometry, Reads { catalog, variant, .. }) = (self.reduce.geometry, &self.reads);
        let mut most = BLOCK * MOST_BLOCKS;
        if branch!("reduce: columns in windows", self.windowed(self.load())) {
            // A part must fit a binding.
            let rows = window_bytes(&catalog.limits) / (4 * geometry.inner);
            most = most.min(if branch!("reduce: blocks fit", rows >= BLOCK) {
                rows / BLOCK * BLOCK
            } else {
                rows.max(1)
            });
        }
        split_heuristics(variant.tree).split_columns(geometry, BLOCK, most)
    }
}

impl Lowering<'_> {
    fn split_plan(&self) -> SplitPlan<'_> {
        let Lowering { reduce, catalog, variant, .. } = *self;
        SplitPlan::new(reduce, self.values, catalog, variant)
    }

    fn run(mut self) -> Result<()> {
        if branch!("reduce: short", self.split_plan().is_short()) {
            return self.short();
        }
        let geometry = self.reduce.geometry;
        let is_rows = branch!("reduce: rows", geometry.is_rows());
        let split = self.split_plan().split();
        let target = self.target(geometry, split.parts)?;
        if is_rows {
            self.rows(split, target)?;
        } else {
            self.columns(split, target)?;
        }
        let (mut states, mut extent) = (target, split.parts);
        while branch!("reduce: several parts", extent > 1) {
            let lanes = if branch!("reduce: merge in one lane", self.merges_in_one_lane()) {
                1
            } else {
                u64::from(subgroup(self.catalog))
            };
            let split = AxisSplit::new(extent, 1, 1, MOST_STATES * lanes);
            let view = Geometry { extent, ..geometry };
            let target = self.target(view, split.parts)?;
            self.merge(view, split, states, target)?;
            (states, extent) = (target, split.parts);
        }
        Ok(())
    }

    /// Where results go: to the output, or to states while there is more than one part.
    fn target(&mut self, geometry: Geometry, parts: u64) -> Result<ValueId> {
        if branch!("reduce: to the output", parts == 1) {
            return Ok(self.reduce.output);
        }
        self.split_plan().check_states(geometry, parts, self.label.shape)?;
        let states = geometry.results() * parts;
        Ok(self.values.add_value(Shape::from([states as usize, 4]), DType::U32, Origin::Produced))
    }

    fn merges_in_one_lane(&self) -> bool {
        self.reduce.geometry.results() >= split_heuristics(self.variant.tree).column_lanes
    }

    /// Sets the constants of `glsl/lib/monoid.glsl`.
    fn set_monoid<K: KernelFile + Includes<monoid::File>>(
        &self,
        target: ValueId,
        constants: &mut Constants<K>,
    ) {
        let reduction = self.reduce.reduction;
        let last = branch!("reduce: last", target == self.reduce.output);
        let finish = if last { reduction.finish() } else { Finish::State };
        constants.set(monoid::MONOID, reduction.monoid(self.dtype) as u32);
        constants.set(monoid::TERM, reduction.term(self.dtype));
        constants.set(monoid::FINISH, finish as u32);
    }

    fn out_bytes(&self, target: ValueId) -> u64 {
        if branch!("reduce: stores results", target == self.reduce.output) { 4 } else { STATE_BYTES }
    }

    fn rows(&mut self, split: AxisSplit, target: ValueId) -> Result<()> {
        let &Reduce { op, second, ref prologue, geometry, .. } = self.reduce;
        let (limits, widths) = (&self.catalog.limits, widths(self.variant.tree));
        let one_lane = geometry.extent <= widths.one_lane;
        let threads = ReduceThreads::new(self.variant, self.catalog, one_lane, split.chunk >= widths.wide);
        let load = self.split_plan().load();
        branch!("reduce: prologue", prologue.is_some());
        let module = match prologue {
            Some(_) => prologue_module(load, self.variant.tree),
            None => rows_module(load, self.variant.tree, second.is_some()),
        };
        let mut constants =
            Constants::<reduce_rows::File>::new(threads.local_size).with(lanes::LANES, threads.lanes);
        self.set_monoid(target, &mut constants);
        if let Some(prologue) = prologue {
            prologue::set_constants(prologue, &mut constants);
        }
        let pipeline = self.catalog.pipeline(constants.of(module))?;
        let out_bytes = self.out_bytes(target);
        let layout = Layout { geometry, split, out_bytes };
        for range in layout.dispatch_ranges(self.split_plan().windowed(load), self.label.shape, op, limits)? {
            let DispatchRange { begin, units, .. } = range;
            let words = layout.elements(begin).start..layout.elements(begin + units - 1).end;
            let elements = words.end - words.start;
            let mut bound =
                prologue::bind(prologue.as_ref(), self.reduce.input, self.values, &words, load, limits);
            let mut origin2 = 0;
            branch!("reduce: rows and a second", second.is_some());
            if let Some(second) = second {
                let means = begin / split.parts..(begin + units - 1) / split.parts + 1;
                let dot = branch!("reduce: dot", self.reduce.reduction == Reduction::Dot);
                let words = if dot { words } else { means };
                let window = input_window(self.values, second, words, load, limits);
                bound.accesses.push(window.access);
                origin2 = window.origin;
            }
            let out = output_window(self.values, target, begin..begin + units, out_bytes, limits);
            bound.accesses.push(out.access);
            let push = PushRows {
                parts: PushParts::new(&range, &layout, split.parts),
                count: geometry.extent as u32,
                origin: bound.origin,
                origin2,
                out_origin: out.origin,
            };
            let groups = grid(threads.groups(units), limits);
            let push = prologue::push(&push, prologue.as_ref());
            let action = Action::Dispatch { pipeline: pipeline.clone(), push, groups };
            let of = (self.dtype, elements);
            self.commands.push(bound.command(self.label, action, prologue.as_ref(), of));
        }
        Ok(())
    }

    fn columns(&mut self, split: AxisSplit, target: ValueId) -> Result<()> {
        let &Reduce { op, input, second, geometry, .. } = self.reduce;
        let limits = &self.catalog.limits;
        let Geometry { extent, inner, .. } = geometry;
        let local_size = column_group(geometry, split, self.variant, limits);
        let load = self.split_plan().load();
        let mut constants = Constants::<reduce_columns::File>::new(local_size);
        self.set_monoid(target, &mut constants);
        constants.set(reduce_columns::ALIGNED, branch!("reduce: columns of four", inner % 4 == 0));
        let pipeline = self.catalog.pipeline(constants.of(columns_module(load, second.is_some())))?;
        let out_bytes = self.out_bytes(target);
        let layout = Layout { geometry, split, out_bytes };
        for range in layout.dispatch_ranges(self.split_plan().windowed(load), self.label.shape, op, limits)? {
            let DispatchRange { begin, units, first_four, fours } = range;
            let end = begin + units;
            let words = layout.elements(begin).start..layout.elements(end - 1).end;
            let first = input_window(self.values, input, words, load, limits);
            let mut accesses = smallvec![first.access];
            let (mut origin2, mut last2) = (0, 0);
            branch!("reduce: columns and a second", second.is_some());
            if let Some(second) = second {
                let means = begin / split.parts * inner..((end - 1) / split.parts + 1) * inner;
                let window = input_window(self.values, second, means, load, limits);
                accesses.push(window.access);
                (origin2, last2) = (window.origin, window.last);
            }
            let columns = 4 * first_four..(4 * (first_four + fours)).min(inner);
            let results = begin * inner + columns.start..(end - 1) * inner + columns.end;
            let out = output_window(self.values, target, results, out_bytes, limits);
            accesses.push(out.access);
            let push = PushColumns {
                range: PushRange::new(&range, geometry, split),
                count: extent as u32,
                inner: inner as u32,
                first_four: first_four as u32,
                fours: fours as u32,
                origin: first.origin,
                origin2,
                out_origin: out.origin,
                last: first.last,
                last2,
            };
            let groups = grid((units * fours).div_ceil(u64::from(local_size)), limits);
            let push = SmallVec::from_slice(bytemuck::bytes_of(&push));
            let action = Action::Dispatch { pipeline: pipeline.clone(), push, groups };
            let flops = first.access.bytes / 4;
            self.commands.push(Command::new(self.label.clone(), action, accesses).with_flops(flops));
        }
        Ok(())
    }

    fn merge(&mut self, view: Geometry, split: AxisSplit, from: ValueId, target: ValueId) -> Result<()> {
        let limits = &self.catalog.limits;
        let threads =
            ReduceThreads::new(self.variant, self.catalog, self.merges_in_one_lane(), split.chunk >= 256);
        let load = load_of(self.variant.load, &[self.values.bytes(from)], limits);
        let mut constants =
            Constants::<reduce_merge::File>::new(threads.local_size).with(lanes::LANES, threads.lanes);
        self.set_monoid(target, &mut constants);
        let units = view.results() * split.parts;
        let push = PushMerge {
            units: units as u32,
            parts: split.parts as u32,
            extent: view.extent as u32,
            chunk: split.chunk as u32,
            inner: view.inner as u32,
            count: self.reduce.geometry.extent as u32,
        };
        let action = Action::Dispatch {
            pipeline: self.catalog.pipeline(constants.of(merge_module(load, self.variant.tree)))?,
            push: SmallVec::from_slice(bytemuck::bytes_of(&push)),
            groups: grid(threads.groups(units), limits),
        };
        let accesses = smallvec![self.values.whole(from, false), self.values.whole(target, true)];
        let flops = self.values.bytes(from) / 4;
        self.commands.push(Command::new(self.label.clone(), action, accesses).with_flops(flops));
        Ok(())
    }
}

fn prologue_module(load: Load, tree: Tree) -> reduce_rows::Module {
    match (load, tree) {
        (Load::Texel, Tree::Shuffle) => reduce_rows::Module::TexelShuffleInputs3Steps4Light,
        (Load::Buffer, Tree::Shuffle) => reduce_rows::Module::BufferShuffleInputs3Steps4Light,
        _ => reduce_rows::Module::BufferSharedInputs3Steps4Light,
    }
}

fn rows_module(load: Load, tree: Tree, two: bool) -> reduce_rows::Module {
    match (load, tree, two) {
        (Load::Texel, Tree::Shuffle, false) => reduce_rows::Module::TexelShuffleInputs1,
        (Load::Texel, Tree::Shuffle, true) => reduce_rows::Module::TexelShuffleInputs2,
        (Load::Buffer, Tree::Shuffle, false) => reduce_rows::Module::BufferShuffleInputs1,
        (Load::Buffer, Tree::Shuffle, true) => reduce_rows::Module::BufferShuffleInputs2,
        (_, _, false) => reduce_rows::Module::BufferSharedInputs1,
        (_, _, true) => reduce_rows::Module::BufferSharedInputs2,
    }
}

fn columns_module(load: Load, two: bool) -> reduce_columns::Module {
    match (load, two) {
        (Load::Texel, false) => reduce_columns::Module::TexelInputs1,
        (Load::Texel, true) => reduce_columns::Module::TexelInputs2,
        (Load::Buffer, false) => reduce_columns::Module::BufferInputs1,
        (Load::Buffer, true) => reduce_columns::Module::BufferInputs2,
    }
}

fn merge_module(load: Load, tree: Tree) -> reduce_merge::Module {
    match (load, tree) {
        (Load::Texel, Tree::Shuffle) => reduce_merge::Module::TexelShuffle,
        (Load::Buffer, Tree::Shuffle) => reduce_merge::Module::BufferShuffle,
        _ => reduce_merge::Module::BufferShared,
    }
}

/// The pipelines of sums: of rows, and of everything.
pub(crate) fn prewarm(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let mut keys: Vec<PipelineKey> = Vec::new();
    for (extents, axis) in [([1 << 20, 1], None), ([64, 1024], Some(1))] {
        let mut values = Values::default();
        let shape = Shape::from(extents);
        let [input, output] = [0; 2].map(|_| values.add_value(shape, DType::F32, Origin::Produced));
        let geometry = axis.map_or(Geometry::whole(&shape), |axis| Geometry::along(&shape, axis));
        let reduction = Reduction::Sum;
        let reduce =
            Reduce { op: "prewarm", reduction, input, second: None, prologue: None, geometry, output };
        let label = Label { op: LabelName::Op(reduce.op), shape, dtype: DType::F32 };
        let mut commands = Vec::new();
        reduce.lower(&label, &mut values, catalog, &mut commands)?;
        keys.extend(pipelines_of(commands));
    }
    Ok(keys)
}
