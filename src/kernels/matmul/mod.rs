//! Matrix products: what the ops append, and how they become dispatches of `glsl/product_*.comp`.

mod aside;
mod examples;
mod operand;
pub(crate) mod schemes;
pub(crate) mod shape;
pub(crate) mod sum;
#[cfg(test)]
mod tests;

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::epilogue::{Epilogue, PushResult};
use crate::ir::graph::{Access, Graph, Label, LabelName, Node, Origin, Work};
use crate::ir::matmul::{Factor, Product};
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::launch::Launch;
use crate::kernels::modules::product_rows;
use crate::kernels::together::{MOST_SUBGROUPS, one_batch, whole_subgroups};
use crate::shape::{DType, Shape};
use aside::Aside;
use operand::{LONG_STEP, Operand, Packing, by_fours, in_place, loose};
use schemes::{Scheme, Tile};
use shape::{Window, parts, windows};
use sum::Parts;

pub(crate) use examples::{inspected, prewarm};

/// The push constants of `glsl/lib/product.glsl`.
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
    /// What modules take that store together, which are for one batch.
    fn together(&self) -> SmallVec<[u8; 128]> {
        let operands = &bytemuck::bytes_of(self)[..std::mem::offset_of!(Push, k_chunk)];
        one_batch(operands, &self.result)
    }
}

/// What a lowering works with.
struct Lowering<'a> {
    label: &'a Label,
    graph: &'a mut Graph,
    catalog: &'a Catalog,
    scheme: &'static Scheme,
    load: Load,
    out: &'a mut Vec<Node>,
}

impl Product {
    fn batches(&self) -> u32 {
        self.batch[0] * self.batch[1]
    }

    /// Appends the dispatches that carry the product out: usually one; before it those that pack an operand, and after
    /// it the one that adds up parts of a split k; more where the result is larger than a binding.
    pub(crate) fn lower(
        &self,
        label: &Label,
        graph: &mut Graph,
        catalog: &Catalog,
        out: &mut Vec<Node>,
    ) -> Result<()> {
        let product = shape::simplified(self);
        let scheme = catalog.products(product.m, product.n);
        let load = product.load(graph, catalog, scheme);
        let mut lowering = Lowering { label, graph, catalog, scheme, load, out };
        let tile = product.tile(catalog, scheme);
        let (a, b) = lowering.operands(&product, &tile)?;
        let first = lowering.out.len();
        let aside = lowering.aside(&product, tile);
        lowering.dispatches(&product, tile, &a, &b, aside)?;
        if let [node] = &mut lowering.out[first..] {
            let multiply_adds =
                [product.m, product.n, product.k].iter().map(|&x| u64::from(x)).product::<u64>();
            node.cost.flops = Some(2 * multiply_adds * product.batches() as u64);
        }
        aside.map_or(Ok(()), |aside| lowering.crop(&product, aside))
    }

    /// The tile that the scheme's rules give, as this device can run it.
    fn tile(&self, catalog: &Catalog, scheme: &Scheme) -> Tile {
        let (shuffles, limits) = (catalog.shuffles, &catalog.limits);
        let rules = scheme.rules.iter();
        let tile = rules
            .filter(|rule| rule.tile.runs_with(shuffles, limits))
            .map(|rule| (rule, rule.tile.on_subgroups_of(limits.subgroup_size)))
            .find(|(rule, tile)| {
                let (rows, columns) = tile.extents();
                let tiles = u64::from(self.m.div_ceil(rows)) * u64::from(self.n.div_ceil(columns));
                branch!("rule: rows", self.m <= rule.most_rows)
                    && branch!("rule: columns", self.n <= rule.most_columns)
                    && branch!("rule: tiles", tiles * u64::from(self.batches()) >= rule.least_tiles)
            })
            .map(|(_, tile)| tile);
        tile.unwrap_or(schemes::SMALLEST)
    }

    /// The scheme's load path, where the inputs allow it.
    fn load(&self, graph: &Graph, catalog: &Catalog, scheme: &Scheme) -> Load {
        let values =
            [self.lhs.value, self.rhs.value].into_iter().chain(self.epilogue.extras.iter().map(|e| e.value));
        catalog.load_of(scheme.load, graph, values)
    }
}

impl<'a> Lowering<'a> {
    fn launch(&self) -> Launch<'a> {
        Launch { op: "matmul", label: self.label, catalog: self.catalog, load: self.load }
    }

    /// Both operands as the kernel reads them: in place, or packed first.
    fn operands(&mut self, product: &Product, tile: &Tile) -> Result<(Operand, Operand)> {
        let &Product { m, n, k, .. } = product;
        if branch!("product: of nothing", k == 0) {
            // Nothing is multiplied; bindings still need something to stand behind them.
            let nothing = self.graph.add_value(Shape::from([256]), DType::F32, Origin::Produced);
            let access = self.graph.whole(nothing, true);
            let label = Label { op: LabelName::Op("zero"), ..self.label.clone() };
            self.out.push(Node::new(label, Work::Fill { word: 0 }, smallvec![access]));
            let along = |along_k| Operand {
                value: nothing,
                row: 0,
                panel: 0,
                batch: [0; 2],
                width: 1,
                depth: 0,
                along_k,
                half: false,
                loose: false,
            };
            return Ok((along(true), along(matches!(tile, Tile::Dot { .. }))));
        }
        match *tile {
            Tile::Shared { .. } => {
                let lhs = in_place(&product.lhs, self.graph, m, k, false);
                let rhs = in_place(&product.rhs, self.graph, n, k, false);
                branch!("tile: lhs in place", lhs.is_some());
                branch!("tile: rhs in place", rhs.is_some());
                let a = lhs.map_or_else(|| self.pack(product, &product.lhs, m, Packing::AsIs), Ok)?;
                let b = rhs.map_or_else(|| self.pack(product, &product.rhs, n, Packing::AsIs), Ok)?;
                Ok((a, b))
            }
            Tile::Dot { .. } => {
                let along = |factor: &Factor, across| {
                    in_place(factor, self.graph, across, k, false).filter(|operand| operand.along_k)
                };
                let lhs = along(&product.lhs, m);
                let rhs = along(&product.rhs, n);
                branch!("dot: rhs along k", rhs.is_some());
                let rhs = rhs.or_else(|| by_fours(&product.rhs, self.graph, [n, k]));
                branch!("dot: lhs in place", lhs.is_some());
                branch!("dot: rhs in place", rhs.is_some());
                let a = lhs.map_or_else(|| self.pack(product, &product.lhs, m, Packing::AlongK(4)), Ok)?;
                let b = rhs.map_or_else(|| self.pack(product, &product.rhs, n, Packing::AlongK(4)), Ok)?;
                Ok((a, b))
            }
            Tile::Rows { .. } => {
                let (rows, columns) = tile.extents();
                let tail = tile.takes_tails();
                let lhs = in_place(&product.lhs, self.graph, m, k, tail).filter(|operand| operand.along_k);
                let rhs = in_place(&product.rhs, self.graph, n, k, tail).filter(|operand| !operand.along_k);
                branch!("rows: lhs in place", lhs.is_some());
                branch!("rows: rhs in place", rhs.is_some());
                let rhs =
                    rhs.filter(|_| branch!("rows: tail", tail) || branch!("rows: k of fours", k % 4 == 0));
                let elements = u64::from(k) * u64::from(n);
                let worth = branch!("rows: panel elements", elements >= self.scheme.panel_elements)
                    && branch!("rows: panel tiles", m.div_ceil(rows) >= self.scheme.panel_tiles)
                    && branch!("rows: panels", n > columns);
                let rhs = rhs.filter(|_| !worth);
                let tiles = u64::from(m.div_ceil(rows)) * u64::from(n.div_ceil(columns));
                let little = branch!("rows: little", tiles * u64::from(k) <= self.scheme.loose_depth)
                    && (tail || k % 4 == 0);
                let rhs = rhs.or_else(|| loose(&product.rhs, self.graph, [n, k], columns).filter(|_| little));
                branch!("rows: loose", rhs.is_some_and(|rhs| rhs.loose));
                // With the right-hand side packed, so is the other one where that makes steps along k long ones.
                let lengthens = branch!("rows: long steps", tile.takes_long_steps())
                    && branch!("rows: k of no long steps", k % LONG_STEP != 0)
                    && branch!("rows: rhs packed", rhs.is_none());
                let lhs = lhs.filter(|_| {
                    !lengthens || branch!("rows: few columns", n < self.scheme.long_step_columns)
                });
                let a =
                    lhs.map_or_else(|| self.pack(product, &product.lhs, m, Packing::AlongK(LONG_STEP)), Ok)?;
                let mut b =
                    rhs.map_or_else(|| self.pack(product, &product.rhs, n, Packing::Panels(columns)), Ok)?;
                if branch!("rows: no panels", b.panel == 0) {
                    b.panel = columns / 4;
                }
                Ok((a, b))
            }
        }
    }

    fn dispatches(
        &mut self,
        product: &Product,
        tile: Tile,
        a: &Operand,
        b: &Operand,
        aside: Option<Aside>,
    ) -> Result<()> {
        let limits = self.catalog.limits;
        let (tile_rows, tile_columns) = tile.extents();
        let k_parts = parts(product, &tile, self.scheme);
        let epilogue = &product.epilogue;
        let padded_n = product.n.next_multiple_of(4);
        let split = branch!("product: split", k_parts.count > 1);
        let row_bytes = 4 * u64::from(if split { padded_n } else { product.n });
        let too_large = Error::Binding {
            op: "matmul",
            shape: self.graph.value(product.output).shape,
            bytes: row_bytes * u64::from(tile_rows) * u64::from(k_parts.count),
            limit: limits.storage_range_bytes,
        };
        let windows = windows(product, tile_rows, k_parts.count, row_bytes, &limits).ok_or(too_large)?;
        for window in windows {
            let Window { first_batch, batches, first_row, rows } = window;
            let (m, n) = (u64::from(product.m), u64::from(product.n));
            let byte = 4 * (u64::from(first_batch) * m + u64::from(first_row)) * n;
            let offset = byte / limits.offset_alignment * limits.offset_alignment;
            let bytes = 4 * (u64::from(batches - 1) * m + u64::from(rows)) * n + (byte - offset);
            branch!("product: later window", first_row + first_batch > 0);
            let (target, extents, c_row) = match aside {
                Some(aside) => (self.graph.whole(aside.value, true), [aside.rows, aside.pitch], aside.pitch),
                None => {
                    let target = Access { offset, bytes, ..self.graph.whole(product.output, true) };
                    (target, [rows, product.n], product.n)
                }
            };
            let tiles_m = rows.div_ceil(tile_rows);
            let result = PushResult {
                m: product.m,
                n: product.n,
                first_row,
                first_batch,
                batch_inner: product.batch[1],
                c_row,
                c_batch: product.m * product.n,
                c_base: ((byte - offset) / 4) as u32,
                alpha: product.alpha,
                ..PushResult::default()
            };
            let result = result.with(epilogue);
            let push = Push {
                k: product.k,
                k_chunk: k_parts.chunk,
                tiles_m,
                band: self.band(product, tile_rows).min(tiles_m),
                batches,
                a_row: a.row,
                a_batch: a.batch,
                b_row: b.row,
                b_panel: b.panel,
                b_batch: b.batch,
                b_width: b.width,
                result,
            };
            let tiles = u64::from(tiles_m) * u64::from(product.n.div_ceil(tile_columns));
            let kernel = |epilogue: &Epilogue, wide, together| {
                let modules = (self.load, self.scheme.rolled, together);
                tile.kernel([a, b], [product.n, product.k], modules, (epilogue, wide))
            };
            let [from_a, from_b] = [a.value, b.value].map(|value| self.graph.whole(value, false));
            let launch = self.launch();
            if branch!("product: one part", k_parts.count == 1) {
                let [x0, x1] = epilogue.inputs(a.value).map(|value| self.graph.whole(value, false));
                let accesses = smallvec![from_a, from_b, x0, x1, target];
                let whole = branch!("product: one batch", product.batches() == 1)
                    && branch!("product: begins where a binding does", result.c_base == 0)
                    && branch!("product: whole rows of tiles", extents[0].is_multiple_of(tile_rows))
                    && branch!("product: whole columns of tiles", extents[1].is_multiple_of(tile_columns));
                let together = self.module_together(&tile, epilogue, tiles).filter(|_| whole);
                branch!("product: together", together.is_some());
                let push = match together {
                    Some(_) => push.together(),
                    None => SmallVec::from_slice(bytemuck::bytes_of(&push)),
                };
                let kernel = kernel(epilogue, c_row.is_multiple_of(4), together);
                self.out.push(launch.node(self.graph, kernel, &push, (tiles, batches), accesses)?);
                continue;
            }
            // Each part of k gives a result of its own, in rows of whole vectors; their sum gets the epilogue.
            let part_rows = (u64::from(k_parts.count) * u64::from(batches) * u64::from(rows)) as usize;
            let shape = Shape::from([part_rows, padded_n as usize]);
            let value = self.graph.add_value(shape, DType::F32, Origin::Produced);
            let of_part =
                PushResult { c_row: padded_n, c_batch: rows * padded_n, c_base: 0, alpha: 1.0, ..result };
            let push = Push { result: of_part, ..push };
            let accesses = smallvec![from_a, from_b, from_a, from_a, self.graph.whole(value, true)];
            let kernel = kernel(&Epilogue::default(), true, None);
            let grid = (tiles, batches * k_parts.count);
            self.out.push(launch.node(self.graph, kernel, bytemuck::bytes_of(&push), grid, accesses)?);
            let parts = Parts { value, count: k_parts.count, batches, rows, pitch: padded_n };
            self.out.push(parts.sum(&launch, self.graph, result, epilogue, target)?);
        }
        Ok(())
    }

    /// The module whose subgroups store together, if there is one for so many of these tiles. All of them must be whole.
    fn module_together(&self, tile: &Tile, epilogue: &Epilogue, tiles: u64) -> Option<product_rows::Module> {
        let limits = &self.catalog.limits;
        // The grid is a line: there may be no subgroup too many.
        let fits = tiles <= u64::from(limits.groups[0]).min(MOST_SUBGROUPS);
        let able = branch!("product: texels", self.load == Load::Texel)
            && branch!("product: plain", epilogue.is_plain())
            && self.catalog.together;
        match *tile {
            Tile::Rows { lanes, .. } if lanes == limits.subgroup_size && whole_subgroups(lanes, limits) => {
                (branch!("product: line of tiles", fits) && able)
                    .then_some(product_rows::Module::TexelTogetherPlain)
            }
            _ => None,
        }
    }

    /// Tiles of rows that together are small enough to stay in a cache while all columns go by.
    fn band(&self, product: &Product, tile_rows: u32) -> u32 {
        let bytes = 4 * u64::from(tile_rows) * u64::from(product.k.max(1));
        (self.scheme.band_bytes / bytes).clamp(1, u64::from(u32::MAX)) as u32
    }
}
