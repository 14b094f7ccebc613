#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/half.glsl"
#include "lib/ops.glsl"

// A matrix product with few columns: one subgroup walks along k through ROWS rows of A, all lanes side by side. Each lane has
// four neighbours of k at a time, and so COLUMNS vecs of B, whichever way that lies.

layout(local_size_x_id = 0) in;                // LANES: the workgroup is one subgroup, or the first lanes of one
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint ROWS = 8;   // a power of two, at most LANES and 8
layout(constant_id = 3) const uint COLUMNS = 1;
layout(constant_id = 4) const bool ALONG_K = true;  // B comes as rows of its transpose; else as it is, without gaps

INPUT(0, a)
INPUT(1, b)
#include "lib/product.glsl"
#include "lib/factors.glsl"
#define DOT_ROWS ROWS
#define SUMMED_ROWS ROWS
#include "lib/dots.glsl"

void main() {
    if (!find_tile(COLUMNS)) return;
    uint lane = gl_SubgroupInvocationID;
    uint row = first_row + tile.m * ROWS;
    uint a_at[ROWS];
    [[unroll]] for (uint i = 0; i < ROWS; i++) a_at[i] = tile.a + min(row + i, m - 1) * operands.a_row;
    begin_dots();
    [[dont_unroll]] for (uint at = (tile.k_begin >> 2) + lane; 4 * at < tile.k_end; at += LANES) {
        [[unroll]] for (uint j = 0; j < COLUMNS; j++)
            b_vecs[j] = rhs(tile.b + (ALONG_K ? j * operands.b_row + at : at * COLUMNS + j));
        [[unroll]] for (uint i = 0; i < ROWS; i++) add_terms(i, lhs(a_at[i] + at), ALONG_K);
    }
    sum_over_lanes(0);
    if (lane >= ROWS) return;
    [[unroll]] for (uint j = 0; j < COLUMNS; j += 4) {
        begin_columns(j);
        store(vec4(row_of_c[j], row_of_c[j + 1], row_of_c[j + 2], row_of_c[j + 3]), row + lane, j);
    }
}
