//! Operands as kernels read them: where they are, or packed into rows that are multiples of four elements.

use super::{Factor, Lowering, Product};
use crate::engine::graph::{Graph, ValueId};
use crate::engine::pack::Pack;
use crate::error::Result;
use crate::shape::DType;

/// An operand; strides in groups of four elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) value: ValueId,
    pub(super) row: u32,
    /// From one tile of columns to the next, where a kernel reads panels.
    pub(super) panel: u32,
    pub(super) batch: [u32; 2],
    /// Groups of four in a row.
    pub(super) width: u32,
    pub(super) along_k: bool,
    /// Whether it is f16.
    pub(super) half: bool,
}

/// How an operand is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// Each row padded.
    AsIs,
    /// Rows along k, padded.
    AlongK,
    /// Panels of so many columns, k rows each.
    Panels(u32),
}

/// The operand as it lies in memory, if kernels can read that: every row must begin at a multiple of four elements,
/// and be one, unless the kernel takes the last few of k one by one.
pub(super) fn in_place(factor: &Factor, graph: &Graph, across: u32, k: u32, tail: bool) -> Option<Operand> {
    let (rows, length) = if factor.along_k { (across, k) } else { (k, across) };
    let whole = length % 4 == 0 || (rows == 1 && (tail || !factor.along_k));
    let aligned = factor.batch.iter().all(|stride| stride % 4 == 0);
    (whole && aligned).then(|| Operand {
        value: factor.value,
        row: length / 4,
        panel: 0,
        batch: factor.batch.map(|stride| stride / 4),
        width: length.div_ceil(4),
        along_k: factor.along_k,
        half: graph.value(factor.value).dtype == DType::F16,
    })
}

impl Lowering<'_> {
    /// Packs a factor of `across` rows or columns.
    pub(super) fn pack(
        &mut self,
        product: &Product,
        factor: &Factor,
        across: u32,
        packing: Packing,
    ) -> Result<Operand> {
        let k = product.k;
        let (along_k, width) = match packing {
            Packing::AsIs => (factor.along_k, None),
            Packing::AlongK => (true, None),
            Packing::Panels(width) => (false, Some(width)),
        };
        let (rows, columns) = if along_k { (across, k) } else { (k, across) };
        let width = width.unwrap_or(columns.next_multiple_of(4));
        // Matrices that several batches share are packed once.
        let distinct = [0, 1].map(|d| if factor.batch[d] == 0 { 1 } else { product.batch[d] });
        let pack = Pack {
            op: "matmul",
            source: factor.value,
            rows,
            columns,
            transposed: along_k != factor.along_k,
            top: 0,
            left: 0,
            panels: columns.div_ceil(width),
            panel_vecs: width / 4,
            // Panels end with whole steps of k.
            panel_rows: if matches!(packing, Packing::Panels(_)) { rows.next_multiple_of(4) } else { rows },
            batch: distinct,
            strides: factor.batch,
        };
        let value = pack.lower(self.load, self.label, self.graph, self.catalog, self.out)?;
        let size = pack.vecs() as u32;
        let inner = if factor.batch[1] == 0 { 0 } else { size };
        let outer = if factor.batch[0] == 0 { 0 } else { distinct[1] * size };
        Ok(Operand {
            value,
            row: pack.panel_vecs,
            panel: pack.panel_rows * pack.panel_vecs,
            batch: [outer, inner],
            width: pack.panels * pack.panel_vecs,
            along_k,
            half: false,
        })
    }
}
