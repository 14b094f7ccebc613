//! Two or three products in one dispatch: `glsl/product_rows.comp` with NEXT.

use smallvec::{SmallVec, smallvec};

use super::operand::Operand;
use super::schemes::{JOINT, JOINT_ELEMENTS, Tile};
use super::shape::{LONG_STEP, MOST_ITERATIONS, parts};
use super::{Factor, Lowering, Product};
use crate::engine::catalog::{Catalog, Load};
use crate::engine::epilogue::PushResult;
use crate::engine::graph::{Graph, Origin, ValueId};
use crate::error::Result;
use crate::shape::{DType, Shape};

/// The modules, with the commonest operations and with every one.
const MODULES: [&str; 2] = ["product_rows.texel.narrow.plain", "product_rows.texel.narrow.all"];
/// Their bindings that are read.
const INPUTS: u32 = 10;
/// Rows that their subgroups add up at a time.
const SUMMED_ROWS: u32 = 8;

/// Their push constants, before those of the result.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    k: u32,
    tiles_m: u32,
    band: u32,
    strides: Strides,
    first_k: u32,
    first_strides: Strides,
}

/// How operands lie, in groups of four elements.
#[repr(C)]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
struct Strides {
    a_row: u32,
    b_row: u32,
    b_panel: u32,
    b_width: u32,
}

/// The product in front, as the shader takes it.
#[derive(Clone, Copy)]
struct First {
    k: u32,
    strides: Strides,
    /// Its operands and the inputs of its epilogue.
    inputs: [ValueId; 4],
    /// What it makes.
    made: ValueId,
}

impl Strides {
    fn new(a: &Operand, b: &Operand) -> Strides {
        Strides { a_row: a.row, b_row: b.row, b_panel: b.panel, b_width: b.width }
    }
}

impl Product {
    fn multiplications(&self) -> u64 {
        u64::from(self.m) * u64::from(self.n) * u64::from(self.k)
    }

    /// Whether one dispatch of all its joint is worth it here, and gives the same bits as one for each: each element is the same
    /// sum in the same order, as long as k is not split.
    pub(crate) fn joint_pays(&self, graph: &Graph, catalog: &Catalog) -> bool {
        let Some(next) = &self.joint.next else { return false };
        let first = self.joint.first.as_deref();
        let scheme = catalog.products(self.m, self.n);
        let (rows, columns) = JOINT.extents();
        let lanes = catalog.limits.subgroup_size;
        let fits = |product: &Product| {
            std::ptr::eq(scheme, catalog.products(product.m, product.n))
                && product.load(graph, catalog, scheme) == Load::Texel
                && parts(product, &product.tile(catalog, scheme), scheme).count == 1
        };
        let wide = |product: &Product| {
            let by_rows = match product.tile(catalog, scheme) {
                Tile::Rows { lanes: its, .. } => its == lanes && 4 * its == columns,
                _ => false,
            };
            by_rows
                && product.n.is_multiple_of(columns)
                && product.multiplications() <= scheme.joint_multiplications
        };
        let by_dots = match next.tile(catalog, scheme) {
            Tile::Dot { lanes: its, rows, .. } => its == lanes && rows == SUMMED_ROWS,
            _ => false,
        };
        let whole_words = |factor: &Factor| graph.value(factor.value).dtype == DType::F32;
        // The one in front goes along k in the steps of the one behind it, which are long: its result has whole tiles of columns.
        let first_fits = first.is_none_or(|first| {
            fits(first)
                && wide(first)
                && first.k > 0
                && first.k.is_multiple_of(LONG_STEP)
                && u64::from(first.m) * u64::from(first.n) <= JOINT_ELEMENTS
                && [first.lhs, first.rhs, self.rhs].iter().all(whole_words)
        });
        let iterations =
            |product: &Product| u64::from(product.n / columns) * u64::from(product.k.div_ceil(4) + 1);
        let groups = u64::from(self.m.div_ceil(rows));
        groups >= scheme.busy_groups.max(catalog.threads)
            && wide(self)
            && by_dots
            && [self, next].into_iter().all(fits)
            && first_fits
            && INPUTS <= catalog.limits.texel_bindings
            && iterations(self) + first.map_or(0, iterations) <= u64::from(MOST_ITERATIONS)
            && next.n > 0
            && (next.n == 1 || !next.rhs.along_k)
            && whole_words(&next.rhs)
            && 4 * u64::from(next.m) * u64::from(next.n) <= catalog.limits.storage_range_bytes
    }
}

impl Lowering<'_> {
    /// A dispatch of all, and before it those that pack an operand.
    pub(super) fn joint(&mut self, product: &Product, next: &Product) -> Result<()> {
        let &Product { m, n, k, alpha, ref epilogue, .. } = product;
        let (rows, _) = JOINT.extents();
        let tiles_m = m.div_ceil(rows);
        let first = match &product.joint.first {
            Some(first) => Some(self.first(first, tiles_m * rows)?),
            None => None,
        };
        let (a, b) = match first {
            Some(First { made, .. }) => {
                let lhs = Factor { value: made, ..product.lhs };
                self.operands(&Product { lhs, ..product.clone() }, &JOINT)?
            }
            None => self.operands(product, &JOINT)?,
        };
        let push = Push {
            k,
            tiles_m,
            band: tiles_m,
            strides: Strides::new(&a, &b),
            first_k: first.map_or(0, |first| first.k),
            first_strides: first.map_or_else(Strides::default, |first| first.strides),
        };
        let result = PushResult { m, n, alpha, ..PushResult::default() }.with(epilogue);
        let push = [bytemuck::bytes_of(&push), result.of_one_batch()].concat();
        let bias = next.epilogue.extras.first();
        let mut specialization = JOINT.specialization(&a, &b, [n, k], self.scheme.rolled);
        specialization.extend([
            (8, next.n),
            (9, u32::from(bias.is_some())),
            (10, u32::from(first.is_some())),
        ]);
        epilogue.specialization(true, true, &mut specialization);
        let read = |value| self.graph.whole(value, false);
        let write = |value| self.graph.whole(value, true);
        let [x0, x1] = epilogue.inputs(a.value);
        let mut accesses: SmallVec<_> = smallvec![
            read(a.value),
            read(b.value),
            read(x0),
            read(x1),
            write(product.output),
            read(next.rhs.value),
            read(bias.map_or(a.value, |bias| bias.value)),
        ];
        // Bindings that are not used must have something behind them.
        accesses.extend(first.map_or([a.value; 4], |first| first.inputs).map(read));
        accesses.push(write(first.map_or(product.output, |first| first.made)));
        let kernel = (MODULES[usize::from(!epilogue.is_plain())], specialization);
        let node = self.launch().node(self.graph, kernel, &push, (u64::from(tiles_m), 1), accesses)?;
        let all = [Some(product), Some(next), product.joint.first.as_deref()];
        let multiplications = all.into_iter().flatten().map(Product::multiplications).sum::<u64>();
        self.out.push(node.with_flops(2 * multiplications));
        Ok(())
    }

    /// The product in front, whose result has so many rows with those that fill the last tile.
    fn first(&mut self, first: &Product, rows: u32) -> Result<First> {
        let (a, b) = self.operands(first, &JOINT)?;
        let [x0, x1] = first.epilogue.inputs(a.value);
        let shape = Shape::from([rows as usize, first.n as usize]);
        let made = self.graph.add_value(shape, DType::F32, Origin::Produced);
        let inputs = [a.value, b.value, x0, x1];
        Ok(First { k: first.k, strides: Strides::new(&a, &b), inputs, made })
    }
}
