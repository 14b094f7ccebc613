//! Two products in one dispatch: `glsl/product_rows.comp` with NEXT.

use smallvec::{SmallVec, smallvec};

use super::schemes::{JOINT, Tile};
use super::shape::{MOST_ITERATIONS, parts};
use super::{Lowering, Next, Product, Push};
use crate::engine::catalog::{Catalog, Load};
use crate::engine::epilogue::PushResult;
use crate::engine::graph::Graph;
use crate::error::Result;
use crate::shape::DType;

/// The modules, with the commonest operations and with every one.
const MODULES: [&str; 2] = ["product_rows.texel.narrow.plain", "product_rows.texel.narrow.all"];
/// Their bindings that are read.
const INPUTS: u32 = 6;
/// Rows that their subgroups add up at a time.
const SUMMED_ROWS: u32 = 8;

impl Product {
    /// Whether one dispatch of both is worth it here, and gives the same bits as two: each element is the same sum in the
    /// same order, as long as k is not split.
    pub(crate) fn takes(&self, next: &Product, graph: &Graph, catalog: &Catalog) -> bool {
        let scheme = catalog.products(self.m, self.n);
        let multiplications = u64::from(self.m) * u64::from(self.n) * u64::from(self.k);
        if multiplications > scheme.joint_multiplications
            || !std::ptr::eq(scheme, catalog.products(next.m, next.n))
        {
            return false;
        }
        let (rows, columns) = JOINT.extents();
        let (tile, next_tile) = (self.tile(catalog, scheme), next.tile(catalog, scheme));
        let alike = match (tile, next_tile) {
            (Tile::Rows { lanes, .. }, Tile::Dot { lanes: next_lanes, rows: SUMMED_ROWS, .. }) => {
                4 * lanes == columns && next_lanes == lanes && lanes == catalog.limits.subgroup_size
            }
            _ => false,
        };
        let loads = [self, next].iter().all(|product| product.load(graph, catalog, scheme) == Load::Texel);
        let whole = parts(self, &tile, scheme).count == 1 && parts(next, &next_tile, scheme).count == 1;
        let iterations = u64::from(self.n / columns) * u64::from(self.k.div_ceil(4) + 1);
        alike
            && loads
            && whole
            && INPUTS <= catalog.limits.texel_bindings
            && self.n.is_multiple_of(columns)
            && u64::from(self.m.div_ceil(rows)) >= scheme.busy_groups
            && iterations <= u64::from(MOST_ITERATIONS)
            && next.n > 0
            && (next.n == 1 || !next.rhs.along_k)
            && graph.value(next.rhs.value).dtype == DType::F32
            && 4 * u64::from(next.m) * u64::from(next.n) <= catalog.limits.storage_range_bytes
    }
}

impl Lowering<'_> {
    /// A dispatch of both, and before it those that pack an operand.
    pub(super) fn joint(&mut self, product: &Product, next: &Next) -> Result<()> {
        let &Product { m, n, k, alpha, ref epilogue, .. } = product;
        let (a, b) = self.operands(product, &JOINT)?;
        let (rows, _) = JOINT.extents();
        let tiles_m = m.div_ceil(rows);
        let result = PushResult { m, n, batch_inner: 1, alpha, ..PushResult::default() }.with(epilogue);
        let push = Push {
            k,
            tiles_m,
            band: tiles_m,
            a_row: a.row,
            b_row: b.row,
            b_panel: b.panel,
            b_width: b.width,
            k_chunk: k,
            batches: 1,
            a_batch: [0; 2],
            b_batch: [0; 2],
            result,
        };
        let mut specialization = JOINT.specialization(&a, &b, [n, k], self.scheme.rolled);
        let bias = next.epilogue.extras.first();
        specialization.extend([(8, next.n), (9, u32::from(bias.is_some()))]);
        epilogue.specialization(true, true, &mut specialization);
        let [x0, x1] = epilogue.inputs(a.value);
        let read = |value| self.graph.whole(value, false);
        let bias = bias.map_or(a.value, |bias| bias.value);
        let accesses: SmallVec<_> = smallvec![
            read(a.value),
            read(b.value),
            read(x0),
            read(x1),
            self.graph.whole(product.output, true),
            read(next.rhs.value),
            read(bias),
        ];
        let (launch, push) = (self.launch(), bytemuck::bytes_of(&push));
        let module = MODULES[usize::from(!epilogue.is_plain())];
        let node =
            launch.node(self.graph, (module, specialization), push, (u64::from(tiles_m), 1), accesses)?;
        let flops = 2 * u64::from(m) * u64::from(n) * (u64::from(k) + u64::from(next.n));
        self.out.push(node.with_flops(flops));
        Ok(())
    }
}
