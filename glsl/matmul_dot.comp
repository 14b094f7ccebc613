#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/format.glsl"
#include "lib/ops.glsl"

// A matmul with few columns: one subgroup walks along k through ROWS rows of A, all lanes side by side. Each lane has
// four neighbours of k at a time, and so COLUMNS vec4s of B, whichever way that lies.

layout(local_size_x_id = 0) in;                // LANES: the workgroup is one subgroup, or the first lanes of one
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint ROWS = 8;   // a power of two, at most LANES and 8
layout(constant_id = 3) const uint COLUMNS = 1;
layout(constant_id = 4) const bool K_CONTIGUOUS = true;  // B comes as rows of its transpose; else as it is, without gaps
layout(constant_id = 5) const uint UNROLL = 1;  // steps of all lanes in an iteration, whose loads are waited for together

INPUT(0, a)
INPUT(1, b)
#include "lib/matmul.glsl"
#include "lib/matrix_operands.glsl"

vec4 b_vec4s[COLUMNS];  // of B, for four of k of this lane: a vec per column, or four rows without gaps
float dots[ROWS * COLUMNS];
float row_of_c[(COLUMNS + 3) / 4 * 4];

// Four terms of each dot product of a row.
void add_terms(uint row, vec4 four) {
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
        [[unroll]] for (uint kk = 0; kk < 4; kk++) {
            uint place = K_CONTIGUOUS ? 4 * j + kk : kk * COLUMNS + j;
            dots[row * COLUMNS + j] += four[kk] * b_vec4s[place / 4][place % 4];
        }
    }
}

// What so many steps of all lanes add, the first of which is at this vec.
#define WALK(steps) { \
    vec4 found_a[steps * ROWS], found_b[steps * COLUMNS]; \
    [[unroll]] for (uint s = 0; s < steps; s++) { \
        uint here = at + s * LANES; \
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) \
            found_b[s * COLUMNS + j] = rhs(tile.b + (K_CONTIGUOUS ? j * operands.b_row + here : here * COLUMNS + j)); \
        [[unroll]] for (uint i = 0; i < ROWS; i++) found_a[s * ROWS + i] = lhs(a_at[i] + here); \
    } \
    [[unroll]] for (uint s = 0; s < steps; s++) { \
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) b_vec4s[j] = found_b[s * COLUMNS + j]; \
        [[unroll]] for (uint i = 0; i < ROWS; i++) add_terms(i, found_a[s * ROWS + i]); \
    } \
}

// Adds the rows up over the lanes, in as few shuffles as there are rows: at each distance lanes give away half of their
// rows and add up the other half, until each is left with the row of its own number, in `row_of_c`. Levels are counted,
// since drivers unroll loops that count, and what a loop indexes leaves its registers.
void sum_over_lanes() {
    uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
        float sums[ROWS];
        [[unroll]] for (uint i = 0; i < ROWS; i++) sums[i] = dots[i * COLUMNS + j];
        [[unroll]] for (uint level = 1; level < 4; level++) {
            uint distance = ROWS >> level;
            bool upper = (lane & distance) != 0;
            [[unroll]] for (uint i = 0; i < ROWS / 2; i++) {
                if (i >= distance) continue;
                float kept = upper ? sums[i + distance] : sums[i], given = upper ? sums[i] : sums[i + distance];
                sums[i] = kept + subgroupShuffleXor(given, distance);
            }
        }
        [[unroll]] for (uint level = 0; level < 7; level++)
            if (ROWS << level < LANES) sums[0] += subgroupShuffleXor(sums[0], ROWS << level);
        row_of_c[j] = sums[0];
    }
}

void main() {
    if (!find_tile(COLUMNS)) return;
    uint lane = gl_SubgroupInvocationID;
    uint row = first_row + tile.m * ROWS;
    uint a_at[ROWS];
    [[unroll]] for (uint i = 0; i < ROWS; i++) a_at[i] = tile.a + min(row + i, m - 1) * operands.a_row;
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) dots[i] = 0;
    uint at = (tile.k_begin >> 2) + lane;
    [[dont_unroll]] for (; 4 * (at + (UNROLL - 1) * LANES) < tile.k_end; at += UNROLL * LANES) WALK(UNROLL)
    if (UNROLL > 1) [[dont_unroll]] for (; 4 * at < tile.k_end; at += LANES) WALK(1)
    sum_over_lanes();
    if (lane >= ROWS) return;
    [[unroll]] for (uint j = 0; j < COLUMNS; j += 4) {
        begin_columns(j);
        store(vec4(row_of_c[j], row_of_c[j + 1], row_of_c[j + 2], row_of_c[j + 3]), row + lane, j);
    }
}
