#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/half.glsl"
#include "lib/ops.glsl"

// A matrix product without shared memory: one subgroup owns ROWS rows x LANES * WIDTH * 4 columns of C. Each lane holds
// WIDTH vecs of columns; A is loaded once per subgroup, lane by lane, and handed round by shuffles.

layout(local_size_x_id = 0) in;                // LANES: the workgroup is one subgroup, or the first lanes of one
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint ROWS = 16;
layout(constant_id = 3) const uint WIDTH = 2;
layout(constant_id = 4) const bool TAIL = false;  // k may end anywhere; else operands are padded with zeros to steps of k
layout(constant_id = 5) const bool ROLLED = false;  // rows are stored one by one: compiles in half the time

INPUT(0, a)
INPUT(1, b)
#include "lib/product.glsl"
#include "lib/factors.glsl"

// Longer steps are hardly faster and take a multiple of the time to compile.
#define K_STEP 4

void main() {
    if (!find_tile(4 * LANES * WIDTH)) return;
    uint lane = gl_SubgroupInvocationID;
    uint row = first_row + tile.m * ROWS;
    // Rows and columns that are not there are read from the last ones that are, and not stored.
    const uint FETCHES = (ROWS + LANES - 1) / LANES;
    uint a_at[FETCHES], b_at[WIDTH];
    [[unroll]] for (uint r = 0; r < FETCHES; r++)
        a_at[r] = tile.a + min(row + min(r * LANES + lane, ROWS - 1), m - 1) * operands.a_row + (tile.k_begin >> 2);
    [[unroll]] for (uint j = 0; j < WIDTH; j++) {
        uint first = tile.n * LANES * WIDTH;
        b_at[j] = tile.b + tile.n * operands.b_panel + min(first + j * LANES + lane, operands.b_width - 1) - first + tile.k_begin * operands.b_row;
    }
    vec4 acc[ROWS * WIDTH];
    [[unroll]] for (uint i = 0; i < ROWS * WIDTH; i++) acc[i] = vec4(0);

    uint k_at = tile.k_begin;
    [[dont_unroll]] for (; TAIL ? k_at + K_STEP <= tile.k_end : k_at < tile.k_end; k_at += K_STEP) {
        vec4 bv[K_STEP * WIDTH];
        [[unroll]] for (uint kk = 0; kk < K_STEP; kk++)
            [[unroll]] for (uint j = 0; j < WIDTH; j++) bv[kk * WIDTH + j] = rhs(b_at[j] + kk * operands.b_row);
        [[unroll]] for (uint j = 0; j < WIDTH; j++) b_at[j] += K_STEP * operands.b_row;
        [[unroll]] for (uint r = 0; r < FETCHES; r++) {
            vec4 av = lhs(a_at[r]++);
            [[unroll]] for (uint i = 0; i < min(LANES, ROWS); i++) {
                float s[K_STEP];
                [[unroll]] for (uint kk = 0; kk < K_STEP; kk++) s[kk] = subgroupShuffle(av[kk], i);
                // k innermost: a software driver keeps one accumulator in a register at a time.
                [[unroll]] for (uint j = 0; j < WIDTH; j++) {
                    vec4 sum = acc[(r * LANES + i) * WIDTH + j];
                    [[unroll]] for (uint q = 0; q < 4; q++) {
                        float x = sum[q];
                        [[unroll]] for (uint kk = 0; kk < K_STEP; kk++) x += s[kk] * bv[kk * WIDTH + j][q];
                        sum[q] = x;
                    }
                    acc[(r * LANES + i) * WIDTH + j] = sum;
                }
            }
        }
    }
    // The last few of k, one by one.
    [[dont_unroll]] for (; TAIL && k_at < tile.k_end; k_at++) {
        vec4 bv[WIDTH];
        [[unroll]] for (uint j = 0; j < WIDTH; j++) {
            bv[j] = rhs(b_at[j]);
            b_at[j] += operands.b_row;
        }
        [[unroll]] for (uint r = 0; r < FETCHES; r++) {
            float av = lhs(a_at[r])[k_at & 3u];
            [[unroll]] for (uint i = 0; i < min(LANES, ROWS); i++) {
                float s = subgroupShuffle(av, i);
                [[unroll]] for (uint j = 0; j < WIDTH; j++) acc[(r * LANES + i) * WIDTH + j] += s * bv[j];
            }
        }
    }
    if (ROLLED) {
        // Accumulators can't be indexed at run time without leaving their registers, so they move up.
        [[dont_unroll]] for (uint i = 0; i < ROWS * WIDTH; i++) {
            uint at = 4 * (tile.n * LANES * WIDTH + i % WIDTH * LANES + lane);
            begin_columns(at);
            store(acc[0], row + i / WIDTH, at);
            [[unroll]] for (uint r = 1; r < ROWS * WIDTH; r++) acc[r - 1] = acc[r];
        }
        return;
    }
    // Drivers unroll these; written as loops, the epilogue stands in the module once.
    [[unroll]] for (uint j = 0; j < WIDTH; j++) {
        uint at = 4 * (tile.n * LANES * WIDTH + j * LANES + lane);
        begin_columns(at);
        [[unroll]] for (uint i = 0; i < ROWS; i++) store(acc[i * WIDTH + j], row + i, at);
    }
}
