// What the kernels of matmuls share: where the operands lie and which part of the result a workgroup owns.
// Every matmul is C[batch][m][n] = epilogue(alpha * sum over k of A[m][k] * B[k][n]).
// Operands are walked over in groups of four neighbours ("vec4s"); the host packs those whose rows are no multiples of
// four elements.
//
// Needs lib/load.glsl, lib/format.glsl and lib/ops.glsl. The kernel declares INPUT(0, a) and INPUT(1, b), and the
// specialization constants below 32. With ONE_BATCH there is but one, and k is not split.

struct Operands {
    uint k;
    uint tiles_m;      // tiles of rows in this dispatch
    uint band;         // those that are walked through before the next tile of columns
    uint a_row;        // strides in vec4s
    uint b_row;
    uint b_panel;      // from one tile of columns to the next
    uint b_width;      // vec4s in a row of B
#ifndef ONE_BATCH
    uint k_chunk;      // of k that one workgroup sums up
    uint batches;      // in this dispatch
    uint a_outer, a_inner;
    uint b_outer, b_inner;
#endif
};
#include "lib/epilogue.glsl"

// The part of the result that a workgroup owns.
struct Tile {
    uint m, n;            // tile of rows, tile of columns
    uint a, b;            // where this batch's operands begin, in vec4s
    uint k_begin, k_end;
};
Tile tile;

// Finds the tile, of this many columns. The grid may be larger than the work: there is none then.
bool find_tile(uint columns) {
    uint tiles_n = (n + columns - 1) / columns;
    uint index = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    // Bands of rows: neighbouring workgroups share columns of B while those are still in a cache.
    uint per_band = operands.band * tiles_n, first = index / per_band * operands.band, within = index % per_band;
    uint height = min(operands.band, operands.tiles_m - min(first, operands.tiles_m - 1));
    tile.m = first + within % height;
    tile.n = within / height;
#ifdef ONE_BATCH
    tile.a = tile.b = tile.k_begin = 0;
    tile.k_end = operands.k;
#else
    begin_batch(first_batch + gl_WorkGroupID.z % operands.batches, c_base + gl_WorkGroupID.z * c_batch);
    tile.a = batch.outer * operands.a_outer + batch.inner * operands.a_inner;
    tile.b = batch.outer * operands.b_outer + batch.inner * operands.b_inner;
    tile.k_begin = gl_WorkGroupID.z / operands.batches * operands.k_chunk;
    tile.k_end = min(operands.k, tile.k_begin + operands.k_chunk);
#endif
    return first < operands.tiles_m && within < height * tiles_n;
}
