//! Operands as kernels read them: where they are, or packed into rows that are multiples of four elements.

use super::Lowering;
use crate::error::Result;
use crate::ir::branches::branch;
use crate::ir::matmul::{Matmul, MatrixOperand};
use crate::ir::value::{ValueId, Values};
use crate::kernels::pack::Pack;
use crate::shape::{Format, Shape};

/// Of k at a time, in tiles of many rows: faster than 4, and takes twice as long to compile.
pub(super) const LONG_STEP: u32 = 8;

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
    /// How far along k it can be read: from k on it has zeros.
    pub(super) depth: u32,
    pub(super) k_contiguous: bool,
    /// How its elements lie in memory.
    pub(super) format: Format,
    /// Whether rows begin anywhere; its strides are in elements then.
    pub(super) unaligned: bool,
}

/// How an operand is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// Each row padded.
    AsIs,
    /// Rows along k, padded to a multiple of this many.
    AlongK(u32),
    /// Panels of this many columns, k rows each.
    Panels(u32),
}

/// A factor where it is; the kernel says what rows it reads there.
fn unpacked(matrix: &MatrixOperand, values: &Values, k: u32) -> Operand {
    Operand {
        value: matrix.value,
        row: 0,
        panel: 0,
        batch: matrix.batch.map(|stride| stride / 4),
        width: 0,
        depth: k,
        k_contiguous: matrix.k_contiguous,
        format: values.value(matrix.value).dtype.format(),
        unaligned: false,
    }
}

/// The operand as it lies in memory, if kernels can read that: every row must begin at a multiple of four elements,
/// and be one, unless the kernel takes the last few of k one by one.
pub(super) fn in_place(
    matrix: &MatrixOperand,
    values: &Values,
    across: u32,
    k: u32,
    tail: bool,
) -> Option<Operand> {
    let k_contiguous = branch!("operand: k contiguous", matrix.k_contiguous);
    let (rows, length) = if k_contiguous { (across, k) } else { (k, across) };
    let whole = branch!("operand: rows of fours", length % 4 == 0)
        || (branch!("operand: one row", rows == 1) && (tail || !matrix.k_contiguous));
    let aligned = branch!("operand: batches at fours", matrix.batch.iter().all(|stride| stride % 4 == 0));
    let operand = Operand { row: length / 4, width: length.div_ceil(4), ..unpacked(matrix, values, k) };
    (whole && aligned).then_some(operand)
}

/// A right-hand side as it lies in memory, for kernels that take four rows of all its `n` columns at a time: together
/// they are whole groups of four, wherever rows begin.
pub(super) fn by_vec4(matrix: &MatrixOperand, values: &Values, [n, k]: [u32; 2]) -> Option<Operand> {
    let aligned = k % 4 == 0 && matrix.batch.iter().all(|stride| stride % 4 == 0);
    let operand = Operand { row: n, width: n.div_ceil(4), ..unpacked(matrix, values, k) };
    branch!("operand: by vec4", !matrix.k_contiguous && aligned).then_some(operand)
}

/// A right-hand side whose rows of `n` elements begin anywhere, as it lies in memory. Slower to read: `columns` at a
/// time.
pub(super) fn unaligned(
    matrix: &MatrixOperand,
    values: &Values,
    [n, k]: [u32; 2],
    columns: u32,
) -> Option<Operand> {
    let operand = Operand {
        row: n,
        panel: columns,
        width: n.div_ceil(4),
        unaligned: true,
        ..unpacked(matrix, values, k)
    };
    (branch!("operand: unaligned across k", !matrix.k_contiguous)
        && branch!("operand: unaligned alone", matrix.batch == [0; 2])
        && branch!("operand: unaligned words", operand.format == Format::Word))
    .then_some(operand)
}

/// How many elements lie between the beginnings of rows: some more than they have, where that is a multiple of 2 KiB.
/// The same place of 32 such rows is more than the first-level cache of a CPU can keep (`bench matmul`).
fn pitch(elements: u32) -> u32 {
    if branch!("operand: longer pitch", elements.is_multiple_of(512)) {
        elements + LONG_STEP
    } else {
        elements
    }
}

/// Where an operand is read: where it is, or in a copy that is made first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    InPlace(Operand),
    /// The copy, and the operand as it is in it but for its value, which is not there yet.
    Packed(Pack, Operand),
}

impl Source {
    /// A factor of `across` rows or columns, packed.
    pub(super) fn packed(matmul: &Matmul, matrix: &MatrixOperand, across: u32, packing: Packing) -> Source {
        let k = matmul.k;
        let k_contiguous = match packing {
            Packing::AsIs => matrix.k_contiguous,
            Packing::AlongK(_) => true,
            Packing::Panels(_) => false,
        };
        let (rows, columns) =
            if branch!("pack: k contiguous", k_contiguous) { (across, k) } else { (k, across) };
        let (width, panel_rows) = match packing {
            Packing::AsIs => (columns.next_multiple_of(4), rows),
            Packing::AlongK(step) => {
                branch!("pack: rows along k");
                (pitch(columns.next_multiple_of(step)), rows)
            }
            // Panels end with whole steps of k.
            Packing::Panels(width) => {
                branch!("pack: panels");
                (width, rows.next_multiple_of(LONG_STEP))
            }
        };
        // Matrices that several batches share are packed once.
        let distinct =
            [0, 1].map(|d| if branch!("pack: shared", matrix.batch[d] == 0) { 1 } else { matmul.batch[d] });
        let pack = Pack {
            op: "matmul",
            source: matrix.value,
            rows,
            columns,
            transposed: k_contiguous != matrix.k_contiguous,
            top: 0,
            left: 0,
            panels: columns.div_ceil(width),
            panel_vec4s: width / 4,
            panel_rows,
            batch: distinct,
            strides: matrix.batch,
        };
        // What is too large for these is refused before it is read.
        let size = pack.vec4s() as u32;
        let inner = if branch!("pack: inner shared", matrix.batch[1] == 0) { 0 } else { size };
        let outer = if branch!("pack: outer shared", matrix.batch[0] == 0) {
            0
        } else {
            distinct[1].wrapping_mul(size)
        };
        let operand = Operand {
            value: matrix.value,
            row: pack.panel_vec4s,
            panel: pack.panel_rows.wrapping_mul(pack.panel_vec4s),
            batch: [outer, inner],
            width: pack.panels * pack.panel_vec4s,
            depth: if branch!("pack: padded along k", k_contiguous) { width } else { panel_rows },
            k_contiguous,
            format: Format::Word,
            unaligned: false,
        };
        Source::Packed(pack, operand)
    }

    /// What is bound: its shape and size.
    pub(super) fn binding(&self, values: &Values) -> (Shape, u64) {
        match self {
            Source::InPlace(operand) => values.binding(operand.value),
            Source::Packed(pack, _) => (pack.shape(), 4 * pack.shape().elements() as u64),
        }
    }
}

impl Lowering<'_> {
    /// The operand as the kernel reads it, packed if it has to be.
    pub(super) fn operand(&mut self, source: Source) -> Result<Operand> {
        match source {
            Source::InPlace(operand) => Ok(operand),
            Source::Packed(pack, operand) => {
                let value = pack.lower(self.load, self.label, self.values, self.catalog, self.out)?;
                Ok(Operand { value, ..operand })
            }
        }
    }
}
