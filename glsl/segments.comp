#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"

// Sums of rows by segment, in a fixed order. The ids of the rows are sorted, and with them come the places of the rows.
// One pass adds up chunks of the sorted rows that lie in one segment; the other one, for each segment, the rows before
// its first whole chunk, its whole chunks, and the rows behind them. Rows are [outer][rows][width], sums are
// [outer][segments][width].

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool CHUNKS = false;

layout(push_constant, std430) uniform Push {
    uint units;   // sums of this pass
    uint width;
    uint width_magic;
    uint width_shift;
    uint lines;   // segments, or chunks
    uint lines_magic;
    uint lines_shift;
    uint rows;
    uint chunk;   // rows of a chunk; only whole ones count
    uint chunks;
} push;

INPUT(0, ids)
INPUT(1, places)
INPUT(2, source)
INPUT(3, partial)
layout(binding = 4, std430) writeonly restrict buffer Out { float result[]; };

uint id_of(uint row) { return ids(row >> 2)[row & 3u]; }

float element(uint outer, uint row, uint column) {
    uint at = (outer * push.rows + places(row >> 2)[row & 3u]) * push.width + column;
    return uintBitsToFloat(source(at >> 2)[at & 3u]);
}

// How many ids are below this one.
uint below(uint id) {
    uint low = 0, high = push.rows;
    [[dont_unroll]] for (uint step = 0; step < 32 && low < high; step++) {
        uint middle = (low + high) >> 1;
        if (id_of(middle) < id) low = middle + 1; else high = middle;
    }
    return low;
}

void main() {
    uint unit = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (unit >= push.units) return;
    uint width = push.width, lines = push.lines, chunk = push.chunk;
    uint row = width == 1 ? unit : divide(unit, push.width_magic, push.width_shift), column = unit - row * width;
    uint outer = lines == 1 ? row : divide(row, push.lines_magic, push.lines_shift), line = row - outer * lines;
    precise float sum = 0;
    if (CHUNKS) {
        uint begin = line * chunk;
        // Others are added up row by row.
        uint end = id_of(begin) == id_of(begin + chunk - 1) ? begin + chunk : begin;
        [[dont_unroll]] for (uint k = begin; k < end; k++) sum += element(outer, k, column);
    } else {
        uint begin = below(line), end = below(line + 1);
        uint first = min((begin + chunk - 1) / chunk, push.chunks), last = max(min(end / chunk, push.chunks), first);
        uint inner_begin = first < last ? first * chunk : end, inner_end = first < last ? last * chunk : end;
        [[dont_unroll]] for (uint k = begin; k < inner_begin; k++) sum += element(outer, k, column);
        [[dont_unroll]] for (uint q = first; q < last; q++) {
            uint at = (outer * push.chunks + q) * width + column;
            sum += uintBitsToFloat(partial(at >> 2)[at & 3u]);
        }
        [[dont_unroll]] for (uint k = inner_end; k < end; k++) sum += element(outer, k, column);
    }
    result[unit] = sum;
}
