// The epilogue of matmuls and convolutions: a short list of elementwise ops on the accumulators, then the store.
// Both kinds of kernels give rows of columns: C[batch][m][n].
//
// Needs lib/load.glsl, lib/format.glsl and lib/ops.glsl. The kernel declares INPUT(0, …) and INPUT(1, …), the
// specialization constants below 32 (those from 32 on are here), and a struct `Operands` of 13 uints at most: its own
// push constants. With ONE_BATCH there is but one. With STORE all of the result is inside, too, and subgroups use
// uniform stores.

layout(constant_id = 32) const bool WIDE = true;  // columns come in aligned groups of four that are all inside
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
#define FORMAT 8  // times the format of lib/format.glsl, added

struct BatchStrides {
    uint outer, inner;
};

layout(push_constant, std430) uniform Push {
    Operands operands;
    uint m, n;           // rows and columns of one result
    uint first_row;      // where this dispatch's part of C begins
    uint c_row;          // strides in elements
    uint c_base;
    float alpha;
    uint scalars[4];
    uint extra_rows[2];  // strides in elements
#ifdef STORE
    uint digits[8];      // 0 to 7
#endif
#ifndef ONE_BATCH
    uint first_batch;
    uint batch_inner;    // extent of the inner batch dimension
    uint c_batch;
    BatchStrides extra_batches[2];
#endif
};

INPUT(2, extra0)
INPUT(3, extra1)
#ifdef STORE
layout(binding = 4, std430) writeonly restrict buffer Out { u64vec4 result[]; };
#include "lib/uniform_store.glsl"
#else
layout(binding = 4, std430) writeonly restrict buffer Out { uvec4 result[]; };
#endif

#ifndef ONE_BATCH
// The batch that a workgroup works for: its coordinates, and where its result begins, in elements. The kernel says it.
struct Batch {
    uint outer, inner;
    uint c;
};
Batch batch;

void begin_batch(uint number, uint c) {
    batch.outer = number / batch_inner;
    batch.inner = number % batch_inner;
    batch.c = c;
}
#endif

uvec4 extra(uint which, uint i) {
    return which == 0 ? extra0(i) : extra1(i);
}

// The i-th four elements, and the i-th element.
uvec4 extra_four(uint which, uint format, uint i) {
    return widened(format, extra(which, i >> packing(format)), i);
}

uint extra_one(uint which, uint format, uint i) {
    return widened_one(format, extra(which, i >> 2 >> packing(format)), i);
}

uvec4 fetch_extra(uint which, uint mode, uint row, uint column) {
    uint format = mode / FORMAT;
    mode &= COMMON - 1;
    if (mode == ABSENT) return uvec4(0);
    uint at = row * extra_rows[which];
#ifndef ONE_BATCH
    at += batch.outer * extra_batches[which].outer + batch.inner * extra_batches[which].inner;
#endif
    if (mode == SPLAT) return uvec4(extra_one(which, format, at));
    at += column;
    if (mode == VECTOR) return extra_four(which, format, at >> 2);
    // Columns beyond the last have no operands; their results are not stored.
    uvec4 i = at + min(uvec4(0, 1, 2, 3), uvec4(n - 1 - column));
    return uvec4(extra_one(which, format, i.x), extra_one(which, format, i.y),
                 extra_one(which, format, i.z), extra_one(which, format, i.w));
}

// Operands of a step: 0 and 1 an extra input, 32 and up a scalar, 64 and up an earlier step's result, 96 the
// accumulator.
uvec4 accumulated, extra_bits[2], results[6];

uvec4 operand(uint code) {
    if (code >= 96) return accumulated;
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

// What becomes of four neighbouring columns of the accumulator.
uvec4 epilogue(vec4 accumulator, uint row, uint column) {
    precise vec4 scaled = alpha * accumulator;
    accumulated = floatBitsToUint(scaled);
    if (STEPS == 0) return accumulated;
    if ((MODE0 & COMMON) == 0) extra_bits[0] = fetch_extra(0, MODE0, row, column);
    if ((MODE1 & COMMON) == 0) extra_bits[1] = fetch_extra(1, MODE1, row, column);
    // Unrolled by the driver once the constants are known; written as a loop, the operations stand in the module once.
    [[unroll]] for (uint i = 0; i < STEPS; i++)
        results[i] = run(i == 0 ? STEP0 : i == 1 ? STEP1 : i == 2 ? STEP2 : i == 3 ? STEP3 : i == 4 ? STEP4 : STEP5);
    return results[STEPS - 1];
}

#ifdef STORE
// Stores four columns of each lane, all of them neighbours. Row and column of the first lane are made uniform.
void uniform_store(uvec4 words, uint row, uint column) {
    UNIFORM_STORE(result, (c_base + (row - first_row) * c_row + column) >> 2, words)
}
#elif !defined(ONE_BATCH)
// Stores the first `count` of four neighbouring columns from `column` on; all four where rows are WIDE.
void store_columns(vec4 accumulator, uint row, uint column, uint count) {
    uvec4 words = epilogue(accumulator, row, column);
    uint at = batch.c + (row - first_row) * c_row + column;
    if (WIDE) {
        result[at >> 2] = words;
    } else {
        result[at >> 2][at & 3u] = words.x;
        if (count > 1) result[(at + 1) >> 2][(at + 1) & 3u] = words.y;
        if (count > 2) result[(at + 2) >> 2][(at + 2) & 3u] = words.z;
        if (count > 3) result[(at + 3) >> 2][(at + 3) & 3u] = words.w;
    }
}

// Stores what is inside C of four neighbouring columns from `column` on.
void store(vec4 accumulator, uint row, uint column) {
    if (row < m && column < n) store_columns(accumulator, row, column, n - column);
}
#endif
