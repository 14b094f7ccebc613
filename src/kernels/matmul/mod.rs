//! Matmuls: what the ops append, and how they become dispatches of `glsl/matmul_*.comp`.

mod examples;
pub(crate) mod family;
mod operand;
mod padded_output;
mod plan;
pub(crate) mod schemes;
pub(crate) mod shape;
pub(crate) mod sum;
#[cfg(test)]
mod tests;

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::command::{Action, Command};
use crate::ir::epilogue::{Epilogue, PushResult};
use crate::ir::matmul::Matmul;
use crate::ir::value::{Access, Label, LabelName, Origin, Values};
use crate::kernels::bindings;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::launch::Launch;
use crate::kernels::modules::matmul_rows;
use crate::kernels::uniform_store::{MOST_SUBGROUPS, one_batch, whole_subgroups};
use crate::shape::{DType, Format, Shape};
use operand::Operand;
use padded_output::PaddedOutput;
use plan::Plan;
use schemes::{Scheme, Tile};
use shape::{Window, parts};
use sum::Parts;

/// The push constants of `glsl/lib/matmul.glsl`.
#[repr(C)]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    k: u32,
    tiles_m: u32,
    band: u32,
    a_row: u32,
    b_row: u32,
    b_panel: u32,
    b_width: u32,
    /// From here to the result for batches, and for a k that is split.
    k_chunk: u32,
    batches: u32,
    a_batch: [u32; 2],
    b_batch: [u32; 2],
    result: PushResult,
}

impl Push {
    /// Push constants of modules with uniform stores, which are for one batch.
    fn uniform_store(&self) -> SmallVec<[u8; 128]> {
        let operands = &bytemuck::bytes_of(self)[..std::mem::offset_of!(Push, k_chunk)];
        one_batch(operands, &self.result)
    }
}

/// The state of a lowering.
struct Lowering<'a> {
    label: &'a Label,
    values: &'a mut Values,
    catalog: &'a Catalog,
    scheme: &'static Scheme,
    load: Load,
    out: &'a mut Vec<Command>,
}

impl Matmul {
    fn batches(&self) -> u32 {
        self.batch[0] * self.batch[1]
    }

    /// Appends the dispatches of the matmul: usually one; before it those that pack an operand, and after it the one
    /// that adds up parts of a split k; more where the result is larger than a binding.
    pub(crate) fn lower(
        &self,
        label: &Label,
        values: &mut Values,
        catalog: &Catalog,
        out: &mut Vec<Command>,
    ) -> Result<()> {
        let plan = Plan::new(self, values, catalog);
        let (matmul, scheme, load) = (&plan.matmul, plan.scheme, plan.load);
        let mut lowering = Lowering { label, values, catalog, scheme, load, out };
        let (a, b) = lowering.operands(&plan)?;
        let first = lowering.out.len();
        let padded = lowering.padded_output(matmul, plan.tile);
        lowering.dispatches(&plan, &a, &b, padded)?;
        if let [command] = &mut lowering.out[first..] {
            let multiply_adds = [matmul.m, matmul.n, matmul.k].iter().map(|&x| u64::from(x)).product::<u64>();
            command.cost.flops = Some(2 * multiply_adds * matmul.batches() as u64);
        }
        padded.map_or(Ok(()), |padded| lowering.crop(matmul, padded))
    }
}

impl<'a> Lowering<'a> {
    fn launch(&self) -> Launch<'a> {
        Launch { op: "matmul", label: self.label, catalog: self.catalog, load: self.load }
    }

    /// Both operands as the kernel reads them: in place, or packed first.
    fn operands(&mut self, plan: &Plan) -> Result<(Operand, Operand)> {
        if let Some([a, b]) = plan.operands {
            return Ok((self.operand(a)?, self.operand(b)?));
        }
        // Nothing is multiplied; bindings still need something to stand behind them.
        let nothing = self.values.add_value(Shape::from([256]), DType::F32, Origin::Produced);
        let access = self.values.whole(nothing, true);
        let label = Label { op: LabelName::Op("zero"), ..self.label.clone() };
        self.out.push(Command::new(label, Action::Fill { word: 0 }, smallvec![access]));
        let along = |k_contiguous| Operand {
            value: nothing,
            row: 0,
            panel: 0,
            batch: [0; 2],
            width: 1,
            depth: 0,
            k_contiguous,
            format: Format::Word,
            unaligned: false,
        };
        Ok((along(true), along(matches!(plan.tile, Tile::Dot { .. }))))
    }

    fn dispatches(
        &mut self,
        plan: &Plan,
        a: &Operand,
        b: &Operand,
        padded: Option<PaddedOutput>,
    ) -> Result<()> {
        let Plan { matmul, tile, .. } = plan;
        let (tile_rows, tile_columns) = tile.extents();
        let k_parts = parts(matmul, tile, self.scheme, &self.catalog.architecture);
        let epilogue = &matmul.epilogue;
        let padded_n = matmul.n.next_multiple_of(4);
        for window in plan.windows(self.values, self.catalog)? {
            let Window { batches, rows, .. } = window;
            let (push, target, extents) = self.push(plan, [a, b], window, padded);
            let (result, tiles_m, c_row) = (push.result, push.tiles_m, push.result.c_row);
            let tiles = u64::from(tiles_m) * u64::from(matmul.n.div_ceil(tile_columns));
            let kernel = |epilogue: &Epilogue, wide, uniform_store| {
                let modules = (self.load, self.scheme.rolled, uniform_store);
                tile.kernel([a, b], [matmul.n, matmul.k], modules, (epilogue, wide))
            };
            let [from_a, from_b] = [a.value, b.value].map(|value| self.values.whole(value, false));
            let launch = self.launch();
            if branch!("matmul: one part", k_parts.count == 1) {
                let [x0, x1] = epilogue.inputs(a.value).map(|value| self.values.whole(value, false));
                let accesses = smallvec![from_a, from_b, x0, x1, target];
                let whole = branch!("matmul: one batch", matmul.batches() == 1)
                    && branch!("matmul: begins where a binding does", result.c_base == 0)
                    && branch!("matmul: whole rows of tiles", extents[0].is_multiple_of(tile_rows))
                    && branch!("matmul: whole columns of tiles", extents[1].is_multiple_of(tile_columns));
                let uniform_store = self.uniform_module(tile, epilogue, tiles).filter(|_| whole);
                branch!("matmul: uniform store", uniform_store.is_some());
                let push = match uniform_store {
                    Some(_) => push.uniform_store(),
                    None => SmallVec::from_slice(bytemuck::bytes_of(&push)),
                };
                let kernel = kernel(epilogue, c_row.is_multiple_of(4), uniform_store);
                self.out.push(launch.command(self.values, kernel, &push, (tiles, batches), accesses)?);
                continue;
            }
            // Each part of k gives a result of its own, in rows of whole vectors; their sum gets the epilogue.
            let part_rows = (u64::from(k_parts.count) * u64::from(batches) * u64::from(rows)) as usize;
            let shape = Shape::from([part_rows, padded_n as usize]);
            let value = self.values.add_value(shape, DType::F32, Origin::Produced);
            let of_part =
                PushResult { c_row: padded_n, c_batch: rows * padded_n, c_base: 0, alpha: 1.0, ..result };
            let push = Push { result: of_part, ..push };
            let accesses = smallvec![from_a, from_b, from_a, from_a, self.values.whole(value, true)];
            let kernel = kernel(&Epilogue::default(), true, None);
            let grid = (tiles, batches * k_parts.count);
            self.out.push(launch.command(self.values, kernel, bytemuck::bytes_of(&push), grid, accesses)?);
            let parts = Parts { value, count: k_parts.count, batches, rows, pitch: padded_n };
            self.out.push(parts.sum(&launch, self.values, result, epilogue, target)?);
        }
        Ok(())
    }

    /// The push constants of a window, where its results go, and in how many rows and columns they lie there.
    fn push(
        &self,
        plan: &Plan,
        [a, b]: [&Operand; 2],
        window: Window,
        padded: Option<PaddedOutput>,
    ) -> (Push, Access, [u32; 2]) {
        let Plan { matmul, tile, .. } = plan;
        let Window { first_batch, batches, first_row, rows } = window;
        let (m, n) = (u64::from(matmul.m), u64::from(matmul.n));
        let begin = 4 * (u64::from(first_batch) * m + u64::from(first_row)) * n;
        let end = begin + 4 * (u64::from(batches - 1) * m + u64::from(rows)) * n;
        let whole = self.values.whole(matmul.output, true);
        let (in_place, early) = bindings::window(whole, begin..end, &self.catalog.limits);
        branch!("matmul: later window", first_row + first_batch > 0);
        let (target, extents) = match padded {
            Some(padded) => (self.values.whole(padded.value, true), [padded.rows, padded.pitch]),
            None => (in_place, [rows, matmul.n]),
        };
        let (tile_rows, _) = tile.extents();
        let tiles_m = rows.div_ceil(tile_rows);
        let result = PushResult {
            m: matmul.m,
            n: matmul.n,
            first_row,
            first_batch,
            batch_inner: matmul.batch[1],
            c_row: extents[1],
            c_batch: matmul.m * matmul.n,
            c_base: (early / 4) as u32,
            alpha: matmul.alpha,
            ..PushResult::default()
        };
        let push = Push {
            k: matmul.k,
            k_chunk: parts(matmul, tile, self.scheme, &self.catalog.architecture).chunk,
            tiles_m,
            band: self.band(matmul, tile_rows).min(tiles_m),
            batches,
            a_row: a.row,
            a_batch: a.batch,
            b_row: b.row,
            b_panel: b.panel,
            b_batch: b.batch,
            b_width: b.width,
            result: result.with(&matmul.epilogue),
        };
        (push, target, extents)
    }

    /// The module whose subgroups use uniform stores, if there is one for this many of these tiles. All of them must be
    /// whole.
    fn uniform_module(&self, tile: &Tile, epilogue: &Epilogue, tiles: u64) -> Option<matmul_rows::Module> {
        let limits = &self.catalog.limits;
        // The grid is a line: there may be no subgroup too many.
        let fits = tiles <= u64::from(limits.groups[0]).min(MOST_SUBGROUPS);
        let able = branch!("matmul: texels", self.load == Load::Texel)
            && branch!("matmul: plain", epilogue.is_plain())
            && self.catalog.uniform_store;
        match *tile {
            Tile::Rows { lanes, .. } if lanes == limits.subgroup_size && whole_subgroups(lanes, limits) => {
                (branch!("matmul: line of tiles", fits) && able)
                    .then_some(matmul_rows::Module::TexelUniformPlain)
            }
            _ => None,
        }
    }

    /// Tiles of rows that together are small enough to stay in a cache while all columns go by.
    fn band(&self, matmul: &Matmul, tile_rows: u32) -> u32 {
        let bytes = 4 * u64::from(tile_rows) * u64::from(matmul.k.max(1));
        (self.scheme.band_bytes / bytes).clamp(1, u64::from(u32::MAX)) as u32
    }
}
