#version 460
//! build: LOAD=BUFFER,TEXEL OPS=LIGHT,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/ops.glsl"

// A matrix product with at most four columns: one subgroup walks along k through ROWS rows of A, all lanes side by side.
// B comes as rows of its transpose.

layout(local_size_x_id = 0) in;                // LANES: the workgroup is one subgroup, or the first lanes of one
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint ROWS = 8;   // at most LANES
layout(constant_id = 3) const uint COLUMNS = 1;

INPUT(0, a)
INPUT(1, b)
#include "lib/product.glsl"

void main() {
    if (!find_tile(4)) return;
    uint lane = gl_SubgroupInvocationID;
    uint row = first_row + tile.m * ROWS;
    uint a_at[ROWS];
    [[unroll]] for (uint i = 0; i < ROWS; i++) a_at[i] = tile.a + min(row + i, m - 1) * a_row;
    vec4 acc[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) acc[i] = vec4(0);
    [[dont_unroll]] for (uint at = (tile.k_begin >> 2) + lane; 4 * at < tile.k_end; at += LANES) {
        vec4 bv[COLUMNS];
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) bv[j] = F(b(tile.b + j * b_row + at));
        [[unroll]] for (uint i = 0; i < ROWS; i++) {
            vec4 av = F(a(a_at[i] + at));
            [[unroll]] for (uint j = 0; j < COLUMNS; j++) acc[i * COLUMNS + j] += av * bv[j];
        }
    }
    // Each lane ends up with the row of its own number.
    vec4 mine = vec4(0);
    [[unroll]] for (uint i = 0; i < ROWS; i++) {
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
            vec4 sums = acc[i * COLUMNS + j];
            float sum = (sums.x + sums.y) + (sums.z + sums.w);
            [[unroll]] for (uint distance = 1; distance < LANES; distance *= 2)
                sum += subgroupShuffleXor(sum, distance);
            if (lane == i) mine[j] = sum;
        }
    }
    begin_columns(0);
    if (lane < ROWS) store(mine, row + lane, 0);
}
