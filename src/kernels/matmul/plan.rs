//! The decisions on a matmul before commands are appended: tile, load path, and which operands are packed. Pure, so
//! that sizes are checked by it when the matmul is recorded.

use super::family::FAMILY;
use super::operand::{LONG_STEP, Packing, Source, by_vec4, in_place, unaligned};
use super::schemes::{self, Scheme, Tile};
use super::shape::{Window, parts, simplified, windows};
use crate::error::{Error, Result};
use crate::ir::branches::branch;
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::value::Values;
use crate::kernels::catalog::{Catalog, Load};
use crate::kernels::variant::Class;

/// How a matmul is carried out.
pub(super) struct Plan {
    /// The matmul in the shape that kernels like.
    pub(super) matmul: Matmul,
    pub(super) scheme: &'static Scheme,
    pub(super) load: Load,
    pub(super) tile: Tile,
    /// Both operands; none where k is 0.
    pub(super) operands: Option<[Source; 2]>,
}

impl Plan {
    pub(super) fn new(recorded: &Matmul, values: &Values, catalog: &Catalog) -> Plan {
        let matmul = simplified(recorded);
        let scheme = catalog.variant(&FAMILY, Class::of_matmul(matmul.m, matmul.n));
        let load = matmul.load(values, catalog, scheme);
        let tile = matmul.tile(catalog, scheme);
        let nothing = branch!("matmul: of nothing", matmul.k == 0);
        let operands = (!nothing).then(|| operands(&matmul, &tile, scheme, values));
        Plan { matmul, scheme, load, tile, operands }
    }

    /// The windows of the result, one dispatch each.
    pub(super) fn windows(&self, values: &Values, catalog: &Catalog) -> Result<Vec<Window>> {
        let (matmul, limits) = (&self.matmul, &catalog.limits);
        let tile_rows = self.tile.extents().0;
        let count = parts(matmul, &self.tile, self.scheme, &catalog.architecture).count;
        let padded_n = matmul.n.next_multiple_of(4);
        let split = branch!("matmul: split", count > 1);
        let row_bytes = 4 * u64::from(if split { padded_n } else { matmul.n });
        let too_large = || Error::BindingTooLarge {
            op: "matmul",
            shape: values.value(matmul.output).shape,
            bytes: row_bytes * u64::from(tile_rows) * u64::from(count),
            limit: limits.storage_range_bytes,
        };
        windows(matmul, tile_rows, count, row_bytes, limits).ok_or_else(too_large)
    }
}

impl Matmul {
    /// Refuses a matmul of which a binding would have to span more than it can: an operand, its copy, or a row of
    /// tiles.
    pub(crate) fn check(&self, values: &Values, catalog: &Catalog) -> Result<()> {
        let plan = Plan::new(self, values, catalog);
        let operands = plan.operands.iter().flatten();
        for source in operands.clone() {
            if let Source::Packed(pack, _) = source {
                pack.check(plan.load, values, catalog)?;
            }
        }
        plan.windows(values, catalog)?;
        let extras = plan.matmul.epilogue.extras.iter();
        let extras = extras.map(|extra| values.binding(extra.value));
        let inputs = operands.map(|source| source.binding(values)).chain(extras);
        catalog.check_inputs("matmul", plan.load, inputs)
    }

    /// The tile that the scheme's rules give, as this device can run it.
    fn tile(&self, catalog: &Catalog, scheme: &Scheme) -> Tile {
        let &Catalog { shuffles, ref limits, ref architecture, .. } = catalog;
        let busy = scheme.busy_groups(architecture);
        let rules = scheme.rules.iter();
        let tile = rules
            .filter(|rule| rule.tile.runs_with(shuffles, limits, architecture))
            .map(|rule| (rule, rule.tile.on(architecture)))
            .find(|(rule, tile)| {
                let (rows, columns) = tile.extents();
                let tiles = u64::from(self.m.div_ceil(rows)) * u64::from(self.n.div_ceil(columns));
                branch!("rule: registers", rule.accumulators <= architecture.accumulators)
                    && branch!("rule: rows", self.m <= rule.most_rows)
                    && branch!("rule: columns", self.n <= rule.most_columns)
                    && branch!(
                        "rule: tiles",
                        100 * tiles * u64::from(self.batches()) >= rule.least_busy * busy
                    )
            })
            .map(|(_, tile)| tile);
        tile.unwrap_or(schemes::SMALLEST)
    }

    /// The scheme's load path, where the inputs allow it.
    fn load(&self, values: &Values, catalog: &Catalog, scheme: &Scheme) -> Load {
        let inputs =
            [self.lhs.value, self.rhs.value].into_iter().chain(self.epilogue.extras.iter().map(|e| e.value));
        catalog.load_of(scheme.load, values, inputs)
    }
}

/// Where the kernel reads each operand.
fn operands(matmul: &Matmul, tile: &Tile, scheme: &Scheme, values: &Values) -> [Source; 2] {
    let &Matmul { m, n, k, .. } = matmul;
    match *tile {
        Tile::Shared { .. } => {
            let lhs = in_place(&matmul.lhs, values, m, k, false);
            let rhs = in_place(&matmul.rhs, values, n, k, false);
            branch!("tile: lhs in place", lhs.is_some());
            branch!("tile: rhs in place", rhs.is_some());
            let a =
                lhs.map_or_else(|| Source::packed(matmul, &matmul.lhs, m, Packing::AsIs), Source::InPlace);
            let b =
                rhs.map_or_else(|| Source::packed(matmul, &matmul.rhs, n, Packing::AsIs), Source::InPlace);
            [a, b]
        }
        Tile::Dot { .. } => {
            let along = |matrix: &MatrixOperand, across| {
                in_place(matrix, values, across, k, false).filter(|operand| operand.k_contiguous)
            };
            let lhs = along(&matmul.lhs, m);
            let rhs = along(&matmul.rhs, n);
            branch!("dot: rhs along k", rhs.is_some());
            let rhs = rhs.or_else(|| by_vec4(&matmul.rhs, values, [n, k]));
            branch!("dot: lhs in place", lhs.is_some());
            branch!("dot: rhs in place", rhs.is_some());
            let a = lhs
                .map_or_else(|| Source::packed(matmul, &matmul.lhs, m, Packing::AlongK(4)), Source::InPlace);
            let b = rhs
                .map_or_else(|| Source::packed(matmul, &matmul.rhs, n, Packing::AlongK(4)), Source::InPlace);
            [a, b]
        }
        Tile::Rows { .. } => {
            let (rows, columns) = tile.extents();
            let tail = tile.takes_tails();
            let lhs = in_place(&matmul.lhs, values, m, k, tail).filter(|operand| operand.k_contiguous);
            let rhs = in_place(&matmul.rhs, values, n, k, tail).filter(|operand| !operand.k_contiguous);
            branch!("rows: lhs in place", lhs.is_some());
            branch!("rows: rhs in place", rhs.is_some());
            let rhs = rhs.filter(|_| branch!("rows: tail", tail) || branch!("rows: k of fours", k % 4 == 0));
            let elements = u64::from(k) * u64::from(n);
            let worth = branch!("rows: panel elements", elements >= scheme.panel_elements)
                && branch!("rows: panel tiles", m.div_ceil(rows) >= scheme.panel_tiles)
                && branch!("rows: panels", n > columns);
            let rhs = rhs.filter(|_| !worth);
            let tiles = u64::from(m.div_ceil(rows)) * u64::from(n.div_ceil(columns));
            let little = branch!("rows: little", tiles * u64::from(k) <= scheme.unaligned_depth)
                && (tail || k % 4 == 0);
            let rhs = rhs.or_else(|| unaligned(&matmul.rhs, values, [n, k], columns).filter(|_| little));
            branch!("rows: unaligned", rhs.is_some_and(|rhs| rhs.unaligned));
            // With the right-hand side packed, so is the other one where that makes steps along k long ones.
            let lengthens = branch!("rows: long steps", tile.takes_long_steps())
                && branch!("rows: k of no long steps", k % LONG_STEP != 0)
                && branch!("rows: rhs packed", rhs.is_none());
            let lhs =
                lhs.filter(|_| !lengthens || branch!("rows: few columns", n < scheme.long_step_columns));
            let a = lhs.map_or_else(
                || Source::packed(matmul, &matmul.lhs, m, Packing::AlongK(LONG_STEP)),
                Source::InPlace,
            );
            let b = match rhs {
                Some(mut rhs) => {
                    if branch!("rows: no panels", rhs.panel == 0) {
                        rhs.panel = columns / 4;
                    }
                    Source::InPlace(rhs)
                }
                None => Source::packed(matmul, &matmul.rhs, n, Packing::Panels(columns)),
            };
            [a, b]
        }
    }
}
