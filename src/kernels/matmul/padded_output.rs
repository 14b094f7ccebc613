//! Results whose rows are no whole groups of four elements are stored element by element, which software drivers take
//! long for. Large ones are made in longer rows instead, and copied from there.

use smallvec::smallvec;

use super::Lowering;
use super::schemes::Tile;
use super::shape::parts;
use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::elementwise::{Elementwise, ElementwiseInput, OpCode, Operand};
use crate::ir::matmul::Matmul;
use crate::ir::value::{Label, LabelName, Origin, ValueId};
use crate::kernels::bindings::window_bytes;
use crate::shape::{DType, MAX_RANK, Shape};

/// Where a result is made first: whole tiles of columns, and of rows where the epilogue reads nothing by rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PaddedOutput {
    pub(super) value: ValueId,
    pub(super) rows: u32,
    /// Elements of a row.
    pub(super) pitch: u32,
}

impl Lowering<'_> {
    /// A padded output for the result, if it is faster.
    pub(super) fn padded_output(&mut self, matmul: &Matmul, tile: Tile) -> Option<PaddedOutput> {
        let &Matmul { m, n, .. } = matmul;
        let (rows, columns) = tile.extents();
        let pitch = n.next_multiple_of(columns);
        let by_rows = matmul.epilogue.extras.iter().any(|extra| extra.row != 0);
        let rows = if branch!("padded output: by rows", by_rows) { m } else { m.next_multiple_of(rows) };
        let worth = branch!("padded output: odd rows", n % 4 != 0)
            && branch!(
                "padded output: large",
                u64::from(m) * u64::from(n) >= self.scheme.padded_output_elements
            );
        let one =
            matmul.batches() == 1 && parts(matmul, &tile, self.scheme, &self.catalog.architecture).count == 1;
        // As `windows` counts: a padded output is one.
        let limits = &self.catalog.limits;
        let fits = 4 * u64::from(rows) * u64::from(pitch) <= window_bytes(limits);
        (worth && branch!("padded output: one result", one) && branch!("padded output: fits", fits)).then(
            || {
                let shape = Shape::from([rows as usize, pitch as usize]);
                PaddedOutput {
                    value: self.values.add_value(shape, DType::F32, Origin::Produced),
                    rows,
                    pitch,
                }
            },
        )
    }

    /// Appends the copy from there into the result: m rows of n elements, whatever shape the result is seen in. A
    /// vector lacks one of the two dimensions, and the epilogue of the matmul may have another shape.
    pub(super) fn crop(&mut self, matmul: &Matmul, padded: PaddedOutput) -> Result<()> {
        let shape = Shape::from([matmul.m as usize, matmul.n as usize]);
        let result = Origin::Alias(self.values.root(matmul.output));
        let result = self.values.add_value(shape, DType::F32, result);
        let mut strides = [0; MAX_RANK];
        strides[..2].copy_from_slice(&[padded.pitch, 1]);
        let input = ElementwiseInput { value: padded.value, strides, offset: 0 };
        let copy =
            Elementwise::single(OpCode::Copy, [Operand::Input(0); 3], smallvec![input], smallvec![], result);
        let label = Label { op: LabelName::Op("crop"), ..self.label.clone() };
        copy.lower(&label, self.values, self.catalog, self.out)
    }
}
