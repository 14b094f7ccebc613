//! The matrix product underneath `matmul` and `conv2d`: packed panels and a register tile of 6 rows by two vectors, in
//! the order of loops that Goto and van de Geijn describe. Written on pulp's vectors, so that it is safe code.

use pulp::{Arch, Simd, WithSimd};

use super::parallel;

/// Rows of a register tile: with two vectors each, 12 sums, 2 vectors of B and one of A fill 16 registers.
const TILE_ROWS: usize = 6;
/// Six rows of A this long stay in the first-level cache (12 KiB) while strips of B go by. Deeper means that the result
/// is read and written fewer times; 256 was 3 % slower, and more so on a busy machine (bench `cpu_matmul_1024`).
const DEPTH: usize = 512;
/// Strips of B that stay in the second-level cache while rows go by (256 KiB).
const STRIPS: usize = 8;
/// Rows of A that are packed at a time: 384 KiB, for the second level too.
const BLOCK_ROWS: usize = 32 * TILE_ROWS;
/// Columns of B that are packed at a time: 8 MiB, for the third level.
const BLOCK_COLUMNS: usize = 4096;
/// Multiplications that are worth a task (bench `cpu_matmul_1024`).
const TASK: usize = 1 << 18;

/// A matrix in memory: element `(i, j)` is `data[i * row + j * column]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

impl<'a> Matrix<'a> {
    /// Row-major, or its transpose.
    pub(super) fn new(data: &'a [f32], columns: usize, transposed: bool) -> Matrix<'a> {
        if transposed {
            Matrix { data, row: 1, column: columns }
        } else {
            Matrix { data, row: columns, column: 1 }
        }
    }
}

/// Lanes of the machine's vectors.
struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

/// `c = alpha * a * b`, or added to what is there; `c` is dense with `n` columns, and `k` is not 0.
pub(super) fn gemm(
    [m, n, k]: [usize; 3],
    a: Matrix<'_>,
    b: Matrix<'_>,
    alpha: f32,
    c: &mut [f32],
    threads: bool,
) {
    let arch = Arch::new();
    let strip = 2 * arch.dispatch(Lanes);
    let mut packed_b = Vec::new();
    for first_column in (0..n).step_by(BLOCK_COLUMNS) {
        let columns = BLOCK_COLUMNS.min(n - first_column);
        for first_k in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - first_k);
            packed_b.resize(columns.next_multiple_of(strip) * depth, 0.0);
            let pack = |(number, panel): (usize, &mut [f32])| {
                let column = first_column + number * strip;
                pack_columns(b, first_k, column, strip.min(n - column), strip, panel);
            };
            let tasks = if threads { m * columns * depth / TASK } else { 0 };
            if tasks > 1 && columns * depth > 1 << 15 {
                parallel::chunks_mut(&mut packed_b, strip * depth, pack);
            } else {
                packed_b.chunks_mut(strip * depth).enumerate().for_each(pack);
            }
            let step = Step { a, alpha, first_k, depth, strip, overwrite: first_k == 0 };
            let (rows, wide) = tile_sizes(m, columns, strip, tasks);
            let work = |(block, tile): (usize, Vec<&mut [f32]>)| {
                let (row, column) =
                    (block / columns.div_ceil(wide) * rows, block % columns.div_ceil(wide) * wide);
                let end = (column + wide).min(columns).next_multiple_of(strip);
                arch.dispatch(Block {
                    step: &step,
                    first_row: row,
                    b: &packed_b[column * depth..end * depth],
                    c: tile,
                });
            };
            let tiles = cut(c, n, first_column..first_column + columns, rows, wide);
            if tasks > 1 {
                parallel::each(tiles, work);
            } else {
                tiles.into_iter().enumerate().for_each(work);
            }
        }
    }
}

/// Rows and columns of a task's part of the result: blocks of rows, and parts of their columns too where rows are few.
fn tile_sizes(m: usize, columns: usize, strip: usize, tasks: usize) -> (usize, usize) {
    let wanted = tasks.clamp(1, 4 * parallel::threads());
    let rows = m.div_ceil(wanted).next_multiple_of(TILE_ROWS).min(BLOCK_ROWS);
    let row_blocks = m.div_ceil(rows);
    let wide = columns.div_ceil(wanted.div_ceil(row_blocks)).next_multiple_of(strip);
    (rows, wide)
}

/// The rows of each tile of `c`, as slices of their own: what threads may write side by side.
fn cut(
    c: &mut [f32],
    n: usize,
    columns: std::ops::Range<usize>,
    rows: usize,
    wide: usize,
) -> Vec<Vec<&mut [f32]>> {
    let across = columns.len().div_ceil(wide);
    let mut tiles = Vec::new();
    for block in c.chunks_mut(rows * n) {
        let first = tiles.len();
        tiles.resize_with(first + across, || Vec::with_capacity(rows));
        for row in block.chunks_mut(n) {
            for (tile, part) in row[columns.clone()].chunks_mut(wide).enumerate() {
                tiles[first + tile].push(part);
            }
        }
    }
    tiles
}

/// Columns of B side by side, for each k in turn; zeros where the strip is wider than they are many.
fn pack_columns(b: Matrix<'_>, first_k: usize, column: usize, count: usize, strip: usize, panel: &mut [f32]) {
    for (k, row) in panel.chunks_mut(strip).enumerate() {
        let from = &b.data[(first_k + k) * b.row + column * b.column..];
        let (filled, rest) = row.split_at_mut(count);
        if b.column == 1 {
            filled.copy_from_slice(&from[..count]);
        } else {
            filled.iter_mut().zip(from.iter().step_by(b.column)).for_each(|(to, from)| *to = *from);
        }
        rest.fill(0.0);
    }
}

/// What all tasks between two packings of B share.
struct Step<'a> {
    a: Matrix<'a>,
    alpha: f32,
    first_k: usize,
    depth: usize,
    strip: usize,
    overwrite: bool,
}

/// Rows of the result from `first_row` on, against packed strips of B.
struct Block<'a, 'c> {
    step: &'a Step<'a>,
    first_row: usize,
    b: &'a [f32],
    c: Vec<&'c mut [f32]>,
}

impl WithSimd for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Block { step, first_row, b, mut c } = self;
        let group = TILE_ROWS * step.depth;
        let mut packed = vec![0.0; c.len().div_ceil(TILE_ROWS) * group];
        for (number, packed) in packed.chunks_exact_mut(group).enumerate() {
            let row = number * TILE_ROWS;
            pack_rows(step, first_row + row, TILE_ROWS.min(c.len() - row), packed);
        }
        // Strips of B that the second-level cache holds, with all rows against them.
        for (number, strips) in b.chunks(STRIPS * step.strip * step.depth).enumerate() {
            for (packed, rows) in packed.chunks_exact(group).zip(c.chunks_mut(TILE_ROWS)) {
                for (strip, panel) in strips.chunks_exact(step.strip * step.depth).enumerate() {
                    let (vectors, _) = S::as_simd_f32s(panel);
                    let sums = tile(simd, packed, vectors);
                    store(simd, step, &sums, rows, (number * STRIPS + strip) * step.strip);
                }
            }
        }
    }
}

/// Six rows of A, for each k in turn; what is packed stays zero where there are fewer.
#[inline(always)]
fn pack_rows(step: &Step<'_>, first: usize, count: usize, packed: &mut [f32]) {
    let Matrix { data, row, column } = step.a;
    for i in 0..count {
        let from = &data[(first + i) * row + step.first_k * column..];
        let to = packed.iter_mut().skip(i).step_by(TILE_ROWS);
        if column == 1 {
            to.zip(&from[..step.depth]).for_each(|(to, from)| *to = *from);
        } else {
            to.zip(from.iter().step_by(column)).for_each(|(to, from)| *to = *from);
        }
    }
}

/// The innermost loop: 12 vectors of sums.
#[inline(always)]
fn tile<S: Simd>(simd: S, a: &[f32], b: &[S::f32s]) -> [[S::f32s; 2]; TILE_ROWS] {
    let mut sums = [[simd.splat_f32s(0.0); 2]; TILE_ROWS];
    for (a, b) in a.chunks_exact(TILE_ROWS).zip(b.chunks_exact(2)) {
        for (sums, a) in sums.iter_mut().zip(a) {
            let a = simd.splat_f32s(*a);
            sums[0] = simd.mul_add_e_f32s(a, b[0], sums[0]);
            sums[1] = simd.mul_add_e_f32s(a, b[1], sums[1]);
        }
    }
    sums
}

/// Puts a tile's sums where they belong.
#[inline(always)]
fn store<S: Simd>(
    simd: S,
    step: &Step<'_>,
    sums: &[[S::f32s; 2]; TILE_ROWS],
    rows: &mut [&mut [f32]],
    column: usize,
) {
    let alpha = simd.splat_f32s(step.alpha);
    for (sums, row) in sums.iter().zip(rows) {
        let end = (column + step.strip).min(row.len());
        let to = &mut row[column..end];
        if to.len() == step.strip {
            let (to, _) = S::as_mut_simd_f32s(to);
            for (to, sum) in to.iter_mut().zip(sums) {
                let product = simd.mul_f32s(*sum, alpha);
                *to = if step.overwrite { product } else { simd.add_f32s(*to, product) };
            }
        } else {
            let products = sums.map(|sum| simd.mul_f32s(sum, alpha));
            for (to, product) in to.iter_mut().zip(bytemuck::cast_slice(&products)) {
                *to = if step.overwrite { *product } else { *to + product };
            }
        }
    }
}
