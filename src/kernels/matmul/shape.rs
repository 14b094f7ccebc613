//! How a matmul is split: simplified, split along k, divided into windows that bindings and grids can span. Pure.

use super::operand::{LONG_STEP, Operand};
use super::schemes::{Scheme, Tile};
use crate::ir::branches::branch;
use crate::ir::epilogue::Epilogue;
use crate::ir::matmul::Matmul;
use crate::kernels::bindings::window_bytes;
use crate::kernels::catalog::Load;
use crate::kernels::epilogue::set_constants;
use crate::kernels::modules::constants::{Constants, Includes, KernelFile, Specialized};
use crate::kernels::modules::{matmul_dot, matmul_rows, matmul_tile, matrix_operands, tile};
use crate::shape::Format;
use crate::vk::architecture::Architecture;
use crate::vk::physical::Limits;

/// Iterations that one invocation may make in its loops: lavapipe (22.3, 25.0) cuts loops off silently after 65,535,
/// all loops taken together.
pub(crate) const MOST_ITERATIONS: u32 = 65_000;

/// Columns whose sums and elements are few registers.
const FEW_COLUMNS: u32 = 4;

impl Tile {
    /// The tile with no more lanes than the architecture likes.
    pub(super) fn on(self, architecture: &Architecture) -> Tile {
        match self {
            Tile::Rows { lanes, rows, width } => {
                Tile::Rows { lanes: lanes.min(architecture.lanes), rows, width }
            }
            Tile::Dot { lanes, rows, columns } => {
                // A lane keeps `rows` sums for each column, and four elements of each.
                let crowded = columns > FEW_COLUMNS;
                let most = if crowded { architecture.crowded_lanes } else { architecture.lanes };
                Tile::Dot { lanes: lanes.min(most), rows: rows.min(most), columns }
            }
            shared @ Tile::Shared { .. } => shared,
        }
    }

    /// Whether workgroups of this tile fit the device.
    pub(crate) fn fits(self, limits: &Limits) -> bool {
        match self {
            Tile::Rows { lanes, .. } | Tile::Dot { lanes, .. } => workgroup_fits(lanes, 0, limits),
            Tile::Shared { m, n, k, frame } => shared_tile_fits([m, n, k], frame, limits),
        }
    }

    /// Rows and columns of the result that one workgroup owns.
    pub(super) fn extents(self) -> (u32, u32) {
        match self {
            Tile::Rows { lanes, rows, width } => (rows, 4 * lanes * width),
            Tile::Shared { m, n, .. } => (m, n),
            Tile::Dot { rows, columns, .. } => (rows, columns),
        }
    }

    /// Whether k may end anywhere in place: worth its time to compile where packing would be most of the work.
    pub(super) fn takes_tails(self) -> bool {
        matches!(self, Tile::Rows { rows: ..=4, .. })
    }

    /// Whether a step along k has too few loads: a GPU's memory wants 8 of 16 bytes in flight for each subgroup.
    fn loads_little(self, columns: u32) -> bool {
        match self {
            Tile::Rows { rows, width, .. } => branch!("rows: few loads", rows <= 4 && width == 1),
            // Four vec4s of rows, and one for each column.
            Tile::Dot { columns: most, .. } => branch!("dot: few loads", most <= FEW_COLUMNS && columns < 4),
            Tile::Shared { .. } => false,
        }
    }

    /// Whether steps along k may be long ones.
    pub(super) fn takes_long_steps(self) -> bool {
        matches!(self, Tile::Rows { rows: 16.., .. })
    }

    /// How much of k one iteration takes, at the least.
    fn step(self) -> u32 {
        match self {
            Tile::Rows { .. } => 4,
            Tile::Shared { k, .. } => k,
            Tile::Dot { lanes, .. } => 4 * lanes,
        }
    }

    /// The kernel with its constants: a module with the epilogue's operations, or one that stores `together`. `wide`:
    /// the result has rows of whole groups of four.
    pub(super) fn kernel(
        self,
        [a, b]: [&Operand; 2],
        [n, k]: [u32; 2],
        (load, rolled, uniform_store): (Load, bool, Option<matmul_rows::Module>),
        (epilogue, wide): (&Epilogue, bool),
    ) -> Specialized {
        let plain = epilogue.is_plain();
        match self {
            Tile::Rows { lanes, rows, width } => {
                let padded = a.depth.min(b.depth) >= k.next_multiple_of(LONG_STEP);
                // Few lanes have many values each: to unpack both operands of a long step takes more registers than
                // there are (6 spills on DG2, `./dev isa`).
                let unpacks_both = a.format != Format::Word && b.format != Format::Word;
                let too_many = lanes < 32 && unpacks_both;
                let long = branch!("rows: steps are long", self.takes_long_steps() && padded)
                    || self.loads_little(n) && !too_many;
                let mut constants = Constants::<matmul_rows::File>::new(lanes)
                    .with(matmul_rows::LANES, lanes)
                    .with(matmul_rows::ROWS, rows)
                    .with(matmul_rows::WIDTH, width)
                    .with(matmul_rows::TAIL, self.takes_tails())
                    .with(matmul_rows::ROLLED, rolled)
                    .with(matmul_rows::K_STEP, if long { LONG_STEP } else { 4 });
                if branch!("matmul: unaligned", b.unaligned) {
                    constants.set(matmul_rows::UNALIGNED, true);
                }
                set_common(a, b, (epilogue, wide), &mut constants);
                constants.of(uniform_store.unwrap_or(match (load, plain) {
                    (Load::Buffer, true) => matmul_rows::Module::BufferPlain,
                    (Load::Buffer, false) => matmul_rows::Module::BufferAll,
                    (Load::Texel, true) => matmul_rows::Module::TexelPlain,
                    (Load::Texel, false) => matmul_rows::Module::TexelAll,
                }))
            }
            Tile::Dot { lanes, rows, .. } => {
                branch!("matmul: dots");
                let mut constants = Constants::<matmul_dot::File>::new(lanes)
                    .with(matmul_dot::LANES, lanes)
                    .with(matmul_dot::ROWS, rows)
                    .with(matmul_dot::COLUMNS, n)
                    .with(matmul_dot::K_CONTIGUOUS, b.k_contiguous)
                    .with(matmul_dot::UNROLL, if self.loads_little(n) { 2 } else { 1 });
                set_common(a, b, (epilogue, wide), &mut constants);
                constants.of(match (load, plain) {
                    (Load::Buffer, true) => matmul_dot::Module::BufferPlain,
                    (Load::Buffer, false) => matmul_dot::Module::BufferAll,
                    (Load::Texel, true) => matmul_dot::Module::TexelPlain,
                    (Load::Texel, false) => matmul_dot::Module::TexelAll,
                })
            }
            Tile::Shared { m, n, k, frame } => {
                let mut constants = Constants::<matmul_tile::File>::new((m / frame[0]) * (n / frame[1]))
                    .with(tile::TILE_M, m)
                    .with(tile::TILE_N, n)
                    .with(tile::TILE_K, k)
                    .with(tile::FRAME_M, frame[0])
                    .with(tile::FRAME_N, frame[1])
                    .with(matmul_tile::A_K_CONTIGUOUS, a.k_contiguous)
                    .with(matmul_tile::B_K_CONTIGUOUS, b.k_contiguous);
                set_common(a, b, (epilogue, wide), &mut constants);
                constants.of(match (load, plain) {
                    (Load::Buffer, true) => matmul_tile::Module::BufferPlain,
                    (Load::Buffer, false) => matmul_tile::Module::BufferAll,
                    (Load::Texel, true) => matmul_tile::Module::TexelPlain,
                    (Load::Texel, false) => matmul_tile::Module::TexelAll,
                })
            }
        }
    }
}

/// The constants that the kernels of all tiles have.
fn set_common<K>(a: &Operand, b: &Operand, (epilogue, wide): (&Epilogue, bool), constants: &mut Constants<K>)
where
    K: KernelFile + Includes<matrix_operands::File> + Includes<crate::kernels::modules::epilogue::File>,
{
    if branch!("matmul: left packed", a.format != Format::Word) {
        constants.set(matrix_operands::LHS_FORMAT, a.format as u32);
    }
    if branch!("matmul: right packed", b.format != Format::Word) {
        constants.set(matrix_operands::RHS_FORMAT, b.format as u32);
    }
    set_constants(epilogue, (wide, true), constants);
}

fn workgroup_fits(invocations: u32, shared_bytes: u32, limits: &Limits) -> bool {
    invocations <= limits.invocations.min(limits.local_size[0]) && shared_bytes <= limits.shared_bytes
}

/// Whether the device can run `glsl/lib/tile.glsl` with such a tile: an invocation per frame, and both operands in
/// shared memory, in rows that are four elements longer than the tile.
pub(crate) fn shared_tile_fits([m, n, k]: [u32; 3], frame: [u32; 2], limits: &Limits) -> bool {
    workgroup_fits((m / frame[0]) * (n / frame[1]), 4 * k * (m + 4 + n + 4), limits)
}

/// The same matmul in a shape that is faster for kernels: a batch that shares its right-hand side is one tall matrix,
/// and a row vector times a transposed matrix is that matrix times a column vector.
pub(crate) fn simplified(matmul: &Matmul) -> Matmul {
    let mut p = matmul.clone();
    let one_matrix = |rows: u32, batch: [u32; 2], extents: [u32; 2], step: u32| {
        // Whether the batches lie one after the other, `rows` steps each.
        (extents[1] == 1 || batch[1] == rows * step)
            && (extents[0] == 1 || batch[0] == extents[1] * rows * step)
    };
    let tall = p.batch != [1, 1]
        && p.rhs.batch == [0, 0]
        && p.lhs.k_contiguous
        && one_matrix(p.m, p.lhs.batch, p.batch, p.k)
        && p.epilogue.extras.iter().all(|extra| one_matrix(p.m, extra.batch, p.batch, extra.row));
    if branch!("matmul: tall", tall) {
        p.m *= p.batch[0] * p.batch[1];
        p.batch = [1, 1];
        p.lhs.batch = [0, 0];
        for extra in &mut p.epilogue.extras {
            extra.batch = [0, 0];
        }
    }
    if branch!("matmul: one row", p.m == 1 && p.n > 1) && branch!("matmul: turned", p.rhs.k_contiguous) {
        (p.m, p.n) = (p.n, 1);
        std::mem::swap(&mut p.lhs, &mut p.rhs);
        // A matrix of one row or column lies along anything.
        p.rhs.k_contiguous = true;
        for extra in &mut p.epilogue.extras {
            (extra.row, extra.column) = (extra.column, 0);
        }
    }
    p.lhs.k_contiguous |= p.m == 1;
    p.rhs.k_contiguous |= p.n == 1;
    p
}

/// How k is split among workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) count: u32,
    /// Of k, in each part but the last.
    pub(super) chunk: u32,
}

/// Chunks are multiples of it: whole groups of four for every kernel, and whole steps, but for those of `matmul_dot` on
/// subgroups wider than 16, which mask the last one.
const CHUNK: u32 = 64;

pub(super) fn parts(matmul: &Matmul, tile: &Tile, scheme: &Scheme, architecture: &Architecture) -> Split {
    let (rows, columns) = tile.extents();
    let tiles = u64::from(matmul.m.div_ceil(rows)) * u64::from(matmul.n.div_ceil(columns));
    let tiles = tiles * u64::from(matmul.batches());
    let wanted = scheme
        .busy_groups(architecture)
        .div_ceil(tiles)
        .min(8)
        .min(u64::from(matmul.k / scheme.least_part))
        .max(1);
    let longest = MOST_ITERATIONS * tile.step() / CHUNK * CHUNK;
    let chunk = (matmul.k.div_ceil(wanted as u32)).next_multiple_of(CHUNK);
    branch!("matmul: split to be busy", wanted > 1);
    branch!("matmul: split to be short", chunk > longest);
    let chunk = chunk.clamp(CHUNK, longest);
    Split { count: matmul.k.div_ceil(chunk).max(1), chunk }
}

/// A part of the result that one dispatch writes: some batches whole, or some rows of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) first_batch: u32,
    pub(super) batches: u32,
    pub(super) first_row: u32,
    pub(super) rows: u32,
}

/// Windows that cover the result; `None` if not even one row of tiles fits a binding.
pub(super) fn windows(
    matmul: &Matmul,
    tile_rows: u32,
    parts: u32,
    row_bytes: u64,
    limits: &Limits,
) -> Option<Vec<Window>> {
    // A binding may have to begin a little before its window.
    let rows = window_bytes(limits) / (row_bytes * u64::from(parts));
    let (m, all) = (matmul.m, matmul.batches());
    if branch!("matmul: window of batches", rows >= u64::from(m)) {
        let most = (rows / u64::from(m)).min(u64::from(limits.groups[2] / parts)).min(u64::from(all)) as u32;
        let window = |i: u32| Window {
            first_batch: i * most,
            batches: most.min(all - i * most),
            first_row: 0,
            rows: m,
        };
        return (most > 0).then(|| (0..all.div_ceil(most)).map(window).collect());
    }
    let rows = (rows / u64::from(tile_rows) * u64::from(tile_rows)) as u32;
    if branch!("matmul: a row of tiles is too long", rows == 0) {
        return None;
    }
    let of_batch = |batch: u32| {
        (0..m.div_ceil(rows)).map(move |i| Window {
            first_batch: batch,
            batches: 1,
            first_row: i * rows,
            rows: rows.min(m - i * rows),
        })
    };
    Some((0..all).flat_map(of_batch).collect())
}
