//! Attention: how it becomes dispatches of `glsl/attention_rows.comp` or `attention_tile.comp`, which keep no scores in
//! memory. Where rows are few, or keys more than a loop may go through, keys are split, and `attention_join.comp` joins
//! the parts.

mod angles;
pub(crate) mod family;
mod inspected;

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::ir::attention::{Attention, Mask};
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::value::{Access, Label, Origin, ValueId, Values};
use crate::kernels::bindings::{grid, window, window_bytes};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::modules::constants::{Constants, Includes, KernelFile, Specialized};
use crate::kernels::modules::{attention, attention_join, attention_rows, attention_tile};
use crate::kernels::variant::Class;
use crate::shape::attention::Extents;
use crate::shape::{DType, Shape};
use family::{FAMILY, Scheme, Way};

const OP: &str = "attention";

/// Rows, columns in groups of four, keys and invocations of `glsl/attention_tile.comp`.
const TILE_ROWS: u32 = 32;
const TILE_VEC4S: u32 = 16;
const TILE_KEYS: u32 = 64;
const TILE_THREADS: u32 = 128;
/// Rows up to which GPUs take `attention_rows.comp`: a tile of 32 would be nearly empty.
const FEW_ROWS: u32 = 4;
/// Sums of f32 that an invocation must keep for tiles of 128 columns, and for four rows beside their keys: with fewer,
/// both spill on Intel (`./dev isa attention`).
const MANY_SUMS: u32 = 64;
/// Iterations of all loops of an invocation together: lavapipe cuts them off at 65,535.
const MOST_ITERATIONS: u64 = 60_000;
/// Iterations for one block of keys, but for those along the depth.
const OTHER_ITERATIONS: u64 = 12;
/// Invocations of a workgroup that joins parts.
const JOIN_GROUP: u32 = 64;

/// The push constants of `glsl/lib/attention.glsl`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    units: u32,
    first_head: u32,
    rows: u32,
    tokens: u32,
    group: u32,
    keys: u32,
    depth: u32,
    width: u32,
    tiles_m: u32,
    tiles_n: u32,
    parts: u32,
    chunk: u32,
    heads: u32,
    shared_batch: u32,
    window: u32,
    scale: f32,
    cap: f32,
    mask_strides: [u32; 4],
    out_origin: u32,
}

/// The push constants of `glsl/attention_join.comp`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PushJoin {
    vec4s: u32,
    rows: u32,
    tokens: u32,
    group: u32,
    parts: u32,
    width: u32,
    out_origin: u32,
    first: u32,
}

/// What a workgroup does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tile {
    Rows { lanes: u32, rows: u32, width: u32, step: u32 },
    Shared { vec4s: u32 },
}

impl Tile {
    fn rows(self) -> u32 {
        match self {
            Tile::Rows { rows, .. } => rows,
            Tile::Shared { .. } => TILE_ROWS,
        }
    }

    /// Columns, in groups of four.
    fn vec4s(self) -> u32 {
        match self {
            Tile::Rows { lanes, width, .. } => lanes * width,
            Tile::Shared { vec4s } => TILE_VEC4S * vec4s,
        }
    }

    /// Keys at a time.
    fn keys(self) -> u32 {
        match self {
            Tile::Rows { lanes, .. } => 4 * lanes,
            Tile::Shared { .. } => TILE_KEYS,
        }
    }

    /// Iterations for one block of keys.
    fn iterations(self, depth: u32) -> u64 {
        let step = if let Tile::Rows { step, .. } = self { step } else { 4 };
        u64::from(depth.div_ceil(step)) + OTHER_ITERATIONS
    }
}

/// What is decided before anything is appended.
#[derive(Clone, Copy, Debug)]
struct Cut {
    load: Load,
    tile: Tile,
    tiles: [u32; 2],
    parts: u32,
    chunk: u32,
    /// Heads of k and v in one dispatch.
    heads: u32,
}

impl Attention {
    /// Refuses operands that no binding can span, and heads whose result none can.
    pub(crate) fn check(&self, values: &Values, catalog: &Catalog) -> Result<()> {
        let cut = self.cut(values, catalog)?;
        let inputs = self.inputs().into_iter().map(|value| values.binding(value));
        catalog.check_inputs(OP, cut.load, inputs)
    }

    /// Appends the dispatches that carry it out.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &mut Values,
        catalog: &Catalog,
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let cut = self.cut(values, catalog)?;
        let inputs = self.inputs();
        catalog.check_inputs(OP, cut.load, inputs.iter().map(|value| values.binding(*value)))?;
        let Extents { kv_heads, .. } = self.extents;
        let heads = self.extents.all_heads() as u32;
        let split = branch!("attention: split", cut.parts > 1);
        let states = split.then(|| {
            let words = self.state_bytes(cut) / 4 * u64::from(cut.heads);
            values.add_value(Shape::from([words as usize]), DType::F32, Origin::Produced)
        });
        let pipeline = catalog.pipeline(self.kernel(values, cut, split))?;
        for first in (0..heads).step_by(cut.heads as usize) {
            let count = cut.heads.min(heads - first);
            let vec4s = u64::from(count) * self.result_vec4s();
            let whole = values.whole(self.output, true);
            let begin = u64::from(first) * self.result_vec4s();
            let (out, early) = window(whole, 16 * begin..16 * (begin + vec4s), &catalog.limits);
            let out_origin = (begin - early / 16) as u32;
            let target = states.map_or(out, |states| values.whole(states, true));
            let units = count * cut.parts * cut.tiles[0] * cut.tiles[1];
            let push = Push { units, first_head: first, out_origin, ..self.push(cut, kv_heads as u32) };
            let mut accesses: SmallVec<[Access; 4]> =
                inputs.iter().map(|input| values.whole(*input, false)).collect();
            // One word: what stands for it may be larger than a storage binding.
            accesses[4].bytes = 4;
            accesses.push(target);
            let groups = grid(u64::from(units), &catalog.limits);
            let push = SmallVec::from_slice(bytemuck::bytes_of(&push));
            let action = Action::Dispatch { pipeline: pipeline.clone(), push, groups };
            let share = |all: u64| all * u64::from(count) / u64::from(heads);
            commands.push(
                Command::new(label.clone(), action, accesses)
                    .with_flops(share(self.flops()))
                    .with_bytes(share(self.bytes(values)) + target.bytes),
            );
            if let Some(states) = states {
                commands.push(self.join(
                    label,
                    values,
                    catalog,
                    (cut, states),
                    (out, out_origin, begin, vec4s),
                )?);
            }
        }
        Ok(())
    }

    /// The dispatch that joins parts.
    fn join(
        &self,
        label: &Label,
        values: &Values,
        catalog: &Catalog,
        (cut, states): (Cut, ValueId),
        (out, out_origin, first, vec4s): (Access, u32, u64, u64),
    ) -> Result<Command> {
        let load = catalog.load_of(cut.load, values, [states]);
        let push = PushJoin {
            vec4s: vec4s as u32,
            rows: self.extents.rows() as u32,
            tokens: self.extents.tokens as u32,
            group: self.extents.group as u32,
            parts: cut.parts,
            width: self.width(),
            out_origin,
            first: first as u32,
        };
        let kernel = Constants::<attention_join::File>::new(JOIN_GROUP).of(match load {
            Load::Buffer => attention_join::Module::Buffer,
            Load::Texel => attention_join::Module::Texel,
        });
        let groups = grid(vec4s.div_ceil(u64::from(JOIN_GROUP)), &catalog.limits);
        let pipeline = catalog.pipeline(kernel)?;
        let push = SmallVec::from_slice(bytemuck::bytes_of(&push));
        let accesses = smallvec![values.whole(states, false), out];
        let action = Action::Dispatch { pipeline, push, groups };
        Ok(Command::new(label.clone(), action, accesses).with_flops(8 * vec4s * u64::from(cut.parts)))
    }

    fn width(&self) -> u32 {
        self.extents.width as u32 / 4
    }

    fn depth(&self) -> u32 {
        self.extents.depth as u32 / 4
    }

    /// The result of one head of k and v, in groups of four.
    fn result_vec4s(&self) -> u64 {
        self.extents.rows() as u64 * u64::from(self.width())
    }

    /// What the parts of one head of k and v sum up.
    fn state_bytes(&self, cut: Cut) -> u64 {
        16 * u64::from(cut.parts) * self.extents.rows() as u64 * u64::from(self.width() + 1)
    }

    fn flops(&self) -> u64 {
        2 * self.extents.pairs(&self.rules) * (self.extents.depth + self.extents.width) as u64
    }

    /// What is read.
    fn bytes(&self, values: &Values) -> u64 {
        let mask = self.mask.map_or(0, |mask| values.bytes(mask.value));
        mask + [self.q, self.k, self.v].into_iter().map(|value| values.bytes(value)).sum::<u64>()
    }

    /// What a kernel binds. Where there is no mask and no length, q stands for it.
    fn inputs(&self) -> [ValueId; 5] {
        let mask = self.mask.map_or(self.q, |mask| mask.value);
        [self.q, self.k, self.v, mask, self.length.unwrap_or(self.q)]
    }

    fn push(&self, cut: Cut, heads: u32) -> Push {
        let Extents { group, tokens, keys, shared, .. } = self.extents;
        Push {
            units: 0,
            first_head: 0,
            rows: self.extents.rows() as u32,
            tokens: tokens as u32,
            group: group as u32,
            keys: keys as u32,
            depth: self.depth(),
            width: self.width(),
            tiles_m: cut.tiles[0],
            tiles_n: cut.tiles[1],
            parts: cut.parts,
            chunk: cut.chunk,
            heads,
            shared_batch: shared.into(),
            // A window that no tensor reaches beyond: places are 32-bit numbers with a sign.
            window: self.rules.window.unwrap_or(0).min(1 << 29),
            scale: self.scale,
            cap: self.rules.cap.unwrap_or(1.0),
            mask_strides: self.mask.map_or([0; 4], |mask| mask.strides),
            out_origin: 0,
        }
    }

    fn cut(&self, values: &Values, catalog: &Catalog) -> Result<Cut> {
        let elements = values.value(self.q).shape.elements() as u64;
        let scheme = catalog.variant(&FAMILY, Class::of_elements(elements));
        let load = catalog.load_of(scheme.load, values, self.inputs()[..4].iter().copied());
        let tile = self.tile(scheme, load, catalog);
        let (rows, keys) = (self.extents.rows() as u32, self.extents.keys as u32);
        let tiles = [rows.div_ceil(tile.rows()), self.width().div_ceil(tile.vec4s())];
        let heads = self.extents.all_heads() as u32;
        let units = u64::from(tiles[0] * tiles[1]) * u64::from(heads);
        let busy = scheme.busy_groups.unwrap_or(catalog.architecture.busy_groups);
        let wanted = busy.div_ceil(units).min(u64::from(keys) / scheme.least_part).max(1) as u32;
        branch!("attention: split to be busy", wanted > 1);
        let longest = (MOST_ITERATIONS / tile.iterations(self.depth())).max(1) as u32 * tile.keys();
        let chunk = keys.div_ceil(wanted).next_multiple_of(tile.keys());
        branch!("attention: split to be short", chunk > longest);
        let chunk = chunk.min(longest);
        let mut cut = Cut { load, tile, tiles, parts: keys.div_ceil(chunk), chunk, heads };
        // What parts sum up is more than the result.
        let bytes = if cut.parts > 1 { self.state_bytes(cut) } else { 16 * self.result_vec4s() };
        let limit = window_bytes(&catalog.limits);
        let room = (limit / bytes).min(u64::from(heads)) as u32;
        if branch!("attention: a head beyond a binding", room == 0) {
            let shape = values.value(self.output).shape;
            return Err(Error::BindingTooLarge { op: OP, shape, bytes, limit });
        }
        branch!("attention: heads in windows", room < heads);
        cut.heads = room;
        Ok(cut)
    }

    /// What a workgroup does, as the device can.
    fn tile(&self, scheme: &Scheme, load: Load, catalog: &Catalog) -> Tile {
        let (rows, depth) = (self.extents.rows() as u32, self.depth());
        let many = branch!("attention: many registers", catalog.architecture.accumulators >= MANY_SUMS);
        let few_rows = if many { FEW_ROWS } else { FEW_ROWS / 2 };
        let most = match scheme.way {
            Way::Rows(FEW_ROWS) => Some(few_rows),
            Way::Rows(most) => Some(most),
            Way::Tile => {
                let few = branch!("attention: few rows", rows <= FEW_ROWS)
                    && branch!("attention: few rows, shuffled", catalog.shuffles);
                few.then_some(few_rows)
            }
        };
        let Some(most) = most else {
            let wide = many && branch!("attention: wide tiles", self.width() > TILE_VEC4S);
            return Tile::Shared { vec4s: if wide { 2 } else { 1 } };
        };
        let lanes = catalog.architecture.crowded_lanes;
        let in_turn = self.width().div_ceil(lanes);
        // Few rows leave registers for columns, many do not. GPUs have wider subgroups.
        let width = if branch!("attention: one vec of columns", most <= FEW_ROWS || in_turn == 1) {
            1
        } else if branch!("attention: two vecs of columns", in_turn == 2) {
            2
        } else {
            4
        };
        let sizes = [1, 2, FEW_ROWS, 8, 16];
        let most = if branch!("attention: many columns", width == 4) { 8 } else { most };
        let rows = sizes.into_iter().find(|size| rows <= *size).unwrap_or(16).min(most);
        let step = match load {
            Load::Texel => 4,
            Load::Buffer => 2,
        };
        let step =
            if branch!("attention: whole steps of depth", depth.is_multiple_of(step)) { step } else { 1 };
        Tile::Rows { lanes, rows, width, step }
    }

    fn kernel(&self, values: &Values, cut: Cut, partial: bool) -> Specialized {
        match cut.tile {
            Tile::Rows { lanes, rows, width, step } => {
                let constants = Constants::<attention_rows::File>::new(lanes)
                    .with(attention_rows::LANES, lanes)
                    .with(attention_rows::ROWS, rows)
                    .with(attention_rows::WIDTH, width)
                    .with(attention_rows::STEP, step);
                self.with_rules(constants, values, partial).of(match cut.load {
                    Load::Buffer => attention_rows::Module::Buffer,
                    Load::Texel => attention_rows::Module::Texel,
                })
            }
            Tile::Shared { vec4s } => {
                let constants =
                    Constants::<attention_tile::File>::new(TILE_THREADS).with(attention_tile::VEC4S, vec4s);
                self.with_rules(constants, values, partial).of(attention_tile::Module::Buffer)
            }
        }
    }

    fn with_rules<K: KernelFile + Includes<attention::File>>(
        &self,
        constants: Constants<K>,
        values: &Values,
        partial: bool,
    ) -> Constants<K> {
        let format = |value| values.value(value).dtype.format() as u32;
        let mask = match self.mask {
            None => 0,
            Some(Mask { added: true, .. }) => 1,
            Some(_) => 2,
        };
        let fours = self.mask.is_some_and(|mask| {
            let [outer @ .., along] = mask.strides;
            branch!(
                "attention: mask in fours",
                along == 1 && outer.iter().all(|stride| stride.is_multiple_of(4))
            )
        });
        constants
            .with(attention::Q_FORMAT, format(self.q))
            .with(attention::K_FORMAT, format(self.k))
            .with(attention::V_FORMAT, format(self.v))
            .with(attention::CAUSAL, self.rules.causal)
            .with(attention::WINDOWED, self.rules.window.is_some())
            .with(attention::CAPPED, self.rules.cap.is_some())
            .with(attention::MASK, mask)
            .with(attention::MASK_FOURS, fours)
            .with(attention::MEASURED, self.length.is_some())
            .with(attention::PARTIAL, partial)
    }
}
