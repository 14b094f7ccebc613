//! Results whose rows are no whole groups of four elements are stored element by element, which software drivers take long for.
//! Large ones are made in longer rows instead, and copied from there.

use smallvec::smallvec;

use super::schemes::Tile;
use super::shape::parts;
use super::{Lowering, Product};
use crate::engine::graph::{Label, LabelName, Origin, ValueId};
use crate::engine::map::{Map, MapInput, OpCode, Operand};
use crate::error::Result;
use crate::shape::{DType, MAX_RANK, Shape};

/// Where a result is made first: whole tiles of columns, and of rows where the epilogue reads nothing by rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aside {
    pub(super) value: ValueId,
    pub(super) rows: u32,
    /// Elements of a row.
    pub(super) pitch: u32,
}

impl Lowering<'_> {
    /// A place for the result, if it is better made aside.
    pub(super) fn aside(&mut self, product: &Product, tile: Tile) -> Option<Aside> {
        let &Product { m, n, .. } = product;
        let (rows, columns) = tile.extents();
        let pitch = n.next_multiple_of(columns);
        let by_rows = product.epilogue.extras.iter().any(|extra| extra.row != 0);
        let rows = if by_rows { m } else { m.next_multiple_of(rows) };
        let worth = n % 4 != 0 && u64::from(m) * u64::from(n) >= self.scheme.aside_elements;
        let one = product.batches() == 1 && parts(product, &tile, self.scheme).count == 1;
        let fits = 4 * u64::from(rows) * u64::from(pitch) <= self.catalog.limits.storage_range_bytes;
        (worth && one && fits).then(|| {
            let shape = Shape::from([rows as usize, pitch as usize]);
            Aside { value: self.graph.add_value(shape, DType::F32, Origin::Produced), rows, pitch }
        })
    }

    /// Appends the copy from there into the result.
    pub(super) fn crop(&mut self, product: &Product, aside: Aside) -> Result<()> {
        let shape = self.graph.value(product.output).shape;
        let mut strides = [0; MAX_RANK];
        let mut stride = aside.pitch;
        for (d, &extent) in shape.dims().iter().enumerate().rev() {
            if d + 1 == shape.rank() {
                strides[d] = 1;
            } else {
                strides[d] = stride;
                stride *= extent as u32;
            }
        }
        let input = MapInput { value: aside.value, strides, offset: 0 };
        let copy =
            Map::single(OpCode::Copy, [Operand::Input(0); 3], smallvec![input], smallvec![], product.output);
        let label = Label { op: LabelName::Op("crop"), ..self.label.clone() };
        copy.lower(&label, self.graph, self.catalog, self.out)
    }
}
