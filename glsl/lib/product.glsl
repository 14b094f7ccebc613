// What the kernels of matrix products share: where the operands lie, which part of the result a workgroup owns, and
// the epilogue on its way out. Every product is C[batch][m][n] = epilogue(alpha * sum over k of A[m][k] * B[k][n]).
// Operands are walked over in groups of four neighbours ("vecs"); the host packs those whose rows are no multiples of
// four elements.
//
// Needs lib/load.glsl and lib/ops.glsl. The kernel declares INPUT(0, a) and INPUT(1, b), and the specialization
// constants below 32; those from 32 on are here.

layout(constant_id = 32) const bool WIDE = true;  // rows of C are multiples of four elements
layout(constant_id = 33) const uint STEPS = 0;    // of the epilogue
layout(constant_id = 34) const uint STEP0 = 0;    // op | operand a << 8 | operand b << 16 | operand c << 24
layout(constant_id = 35) const uint STEP1 = 0;
layout(constant_id = 36) const uint STEP2 = 0;
layout(constant_id = 37) const uint STEP3 = 0;
layout(constant_id = 38) const uint STEP4 = 0;
layout(constant_id = 39) const uint STEP5 = 0;
layout(constant_id = 40) const uint MODE0 = 0;    // how the epilogue's inputs are indexed
layout(constant_id = 41) const uint MODE1 = 0;

#define ABSENT 0
#define SPLAT 1   // one element for all columns
#define VECTOR 2  // four neighbouring columns are four aligned neighbours
#define GATHER 3  // each column for itself
#define COMMON 4  // added: the same for every row

struct Extra {
    uint batch_outer, batch_inner, row;  // strides in elements
};

layout(push_constant, std430) uniform Push {
    uint m, n, k;
    uint k_chunk;      // of k that one workgroup sums up
    uint first_row;    // where this dispatch's part of C begins
    uint first_batch;
    uint tiles_m;      // tiles of rows in this dispatch
    uint band;         // those that are walked through before the next tile of columns
    uint batches;      // in this dispatch
    uint batch_inner;  // extent of the inner batch dimension
    uint a_row;        // strides in vecs
    uint a_outer, a_inner;
    uint b_row;
    uint b_panel;      // from one tile of columns to the next
    uint b_outer, b_inner;
    uint b_width;      // vecs in a row of B
    uint c_row;        // strides in elements
    uint c_batch;
    uint c_base;
    float alpha;
    uint scalars[4];
    Extra extras[2];
};

INPUT(2, extra0)
INPUT(3, extra1)
layout(binding = 4, std430) writeonly restrict buffer Out { uvec4 result[]; };

// The part of the result that a workgroup owns.
struct Tile {
    uint m, n;            // tile of rows, tile of columns
    uint a, b;            // where this batch's operands begin, in vecs
    uint outer, inner;    // the batch's coordinates
    uint c;               // where its result begins, in elements
    uint k_begin, k_end;
};
Tile tile;

// Finds the tile, of so many columns. The grid may be larger than the work: there is none then.
bool find_tile(uint columns) {
    uint tiles_n = (n + columns - 1) / columns;
    uint index = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    // Bands of rows: neighbouring workgroups share columns of B while those are still in a cache.
    uint per_band = band * tiles_n, first = index / per_band * band, within = index % per_band;
    uint height = min(band, tiles_m - min(first, tiles_m - 1));
    tile.m = first + within % height;
    tile.n = within / height;
    uint batch = first_batch + gl_WorkGroupID.z % batches;
    tile.outer = batch / batch_inner;
    tile.inner = batch % batch_inner;
    tile.a = tile.outer * a_outer + tile.inner * a_inner;
    tile.b = tile.outer * b_outer + tile.inner * b_inner;
    tile.c = c_base + gl_WorkGroupID.z * c_batch;
    tile.k_begin = gl_WorkGroupID.z / batches * k_chunk;
    tile.k_end = min(k, tile.k_begin + k_chunk);
    return first < tiles_m && within < height * tiles_n;
}

uvec4 extra(uint which, uint i) {
    return which == 0 ? extra0(i) : extra1(i);
}

uvec4 fetch_extra(uint which, uint mode, uint row, uint column) {
    mode &= ~COMMON;
    if (mode == ABSENT) return uvec4(0);
    uint at = tile.outer * extras[which].batch_outer + tile.inner * extras[which].batch_inner + row * extras[which].row;
    if (mode == SPLAT) return uvec4(extra(which, at >> 2)[at & 3u]);
    at += column;
    if (mode == VECTOR) return extra(which, at >> 2);
    // Columns beyond the last have no operands; their results are not stored.
    uvec4 i = at + min(uvec4(0, 1, 2, 3), uvec4(n - 1 - column));
    return uvec4(extra(which, i.x >> 2)[i.x & 3u], extra(which, i.y >> 2)[i.y & 3u],
                 extra(which, i.z >> 2)[i.z & 3u], extra(which, i.w >> 2)[i.w & 3u]);
}

// Operands of a step: 0 and 1 an extra input, 32 and up a scalar, 64 and up an earlier step's result, 96 the product.
uvec4 product_bits, extra_bits[2], results[6];

uvec4 operand(uint code) {
    if (code >= 96) return product_bits;
    if (code >= 64) return results[code - 64];
    if (code >= 32) return uvec4(scalars[code - 32]);
    return extra_bits[code];
}

uvec4 run(uint word) {
    return apply(word & 255u, operand((word >> 8) & 255u), operand((word >> 16) & 255u), operand(word >> 24));
}

// Fetches what every row of four neighbouring columns has in common, before their first row is stored.
void begin_columns(uint column) {
    column = min(column, n - 1);
    if ((MODE0 & COMMON) != 0) extra_bits[0] = fetch_extra(0, MODE0, 0, column);
    if ((MODE1 & COMMON) != 0) extra_bits[1] = fetch_extra(1, MODE1, 0, column);
}

// What becomes of four neighbouring columns of the product.
uvec4 epilogue(vec4 product, uint row, uint column) {
    precise vec4 scaled = alpha * product;
    product_bits = floatBitsToUint(scaled);
    if (STEPS == 0) return product_bits;
    if ((MODE0 & COMMON) == 0) extra_bits[0] = fetch_extra(0, MODE0, row, column);
    if ((MODE1 & COMMON) == 0) extra_bits[1] = fetch_extra(1, MODE1, row, column);
    // Unrolled by the driver once the constants are known; written as a loop, the operations stand in the module once.
    [[unroll]] for (uint i = 0; i < STEPS; i++)
        results[i] = run(i == 0 ? STEP0 : i == 1 ? STEP1 : i == 2 ? STEP2 : i == 3 ? STEP3 : i == 4 ? STEP4 : STEP5);
    return results[STEPS - 1];
}

// Stores what is inside C of four neighbouring columns from `column` on.
void store(vec4 product, uint row, uint column) {
    if (row >= m || column >= n) return;
    uvec4 words = epilogue(product, row, column);
    uint at = tile.c + (row - first_row) * c_row + column;
    if (WIDE) {
        result[at >> 2] = words;
    } else {
        result[at >> 2][at & 3u] = words.x;
        if (column + 1 < n) result[(at + 1) >> 2][(at + 1) & 3u] = words.y;
        if (column + 2 < n) result[(at + 2) >> 2][(at + 2) & 3u] = words.z;
        if (column + 3 < n) result[(at + 3) >> 2][(at + 3) & 3u] = words.w;
    }
}
