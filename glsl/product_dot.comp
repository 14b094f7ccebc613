#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/half.glsl"
#include "lib/ops.glsl"

// A matrix product with at most four columns: one subgroup walks along k through ROWS rows of A, all lanes side by side.
// B comes as rows of its transpose.

layout(local_size_x_id = 0) in;                // LANES: the workgroup is one subgroup, or the first lanes of one
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint ROWS = 8;   // a power of two, at most LANES
layout(constant_id = 3) const uint COLUMNS = 1;

INPUT(0, a)
INPUT(1, b)
#include "lib/product.glsl"
#include "lib/factors.glsl"

void main() {
    if (!find_tile(4)) return;
    uint lane = gl_SubgroupInvocationID;
    uint row = first_row + tile.m * ROWS;
    uint a_at[ROWS];
    [[unroll]] for (uint i = 0; i < ROWS; i++) a_at[i] = tile.a + min(row + i, m - 1) * operands.a_row;
    vec4 acc[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) acc[i] = vec4(0);
    [[dont_unroll]] for (uint at = (tile.k_begin >> 2) + lane; 4 * at < tile.k_end; at += LANES) {
        vec4 bv[COLUMNS];
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) bv[j] = rhs(tile.b + j * operands.b_row + at);
        [[unroll]] for (uint i = 0; i < ROWS; i++) {
            vec4 av = lhs(a_at[i] + at);
            [[unroll]] for (uint j = 0; j < COLUMNS; j++) acc[i * COLUMNS + j] += av * bv[j];
        }
    }
    // Sums over the lanes, in as few shuffles as there are rows: at each distance lanes give away half of their rows and
    // add up the other half, until each is left with the row of its own number.
    vec4 mine = vec4(0);
    // One column after the other, since shuffles take long to compile; the next moves up.
    [[dont_unroll]] for (uint j = 0; j < COLUMNS; j++) {
        float sums[ROWS];
        [[unroll]] for (uint i = 0; i < ROWS; i++) {
            vec4 four = acc[i * COLUMNS];
            sums[i] = (four.x + four.y) + (four.z + four.w);
        }
        [[unroll]] for (uint distance = ROWS / 2; distance > 0; distance /= 2) {
            bool upper = (lane & distance) != 0;
            [[unroll]] for (uint i = 0; i < distance; i++) {
                float kept = upper ? sums[i + distance] : sums[i], given = upper ? sums[i] : sums[i + distance];
                sums[i] = kept + subgroupShuffleXor(given, distance);
            }
        }
        [[unroll]] for (uint distance = ROWS; distance < LANES; distance *= 2)
            sums[0] += subgroupShuffleXor(sums[0], distance);
        mine = mix(mine, vec4(sums[0]), equal(uvec4(0, 1, 2, 3), uvec4(j)));
        [[unroll]] for (uint i = 1; i < ROWS * COLUMNS; i++) acc[i - 1] = acc[i];
    }
    begin_columns(0);
    if (lane < ROWS) store(mine, row + lane, 0);
}
