#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/format.glsl"
#include "lib/ops.glsl"

// A matmul through shared memory: a workgroup owns TILE_M x TILE_N of C, an invocation FRAME_M x FRAME_N of that.
// Both operands lie in shared memory as [k][row or column], whichever way they lie in global memory, so that four
// neighbours are one load. While one tile is multiplied, the next is on its way to registers.

layout(constant_id = 6) const bool A_K_CONTIGUOUS = true;  // neighbours in memory are neighbours in k
layout(constant_id = 7) const bool B_K_CONTIGUOUS = false;

INPUT(0, a)
INPUT(1, b)
#include "lib/matmul.glsl"
#include "lib/matrix_operands.glsl"

#include "lib/tile.glsl"

// From one load of an invocation to its next: of k, and in shared memory. Workgroups have as many invocations as make
// whole rows of both tiles, whichever way those are read.
const uint A_STEP_K = A_K_CONTIGUOUS ? 0 : THREADS / (TILE_M / 4);
const uint B_STEP_K = B_K_CONTIGUOUS ? 0 : THREADS / (TILE_N / 4);
const uint A_STEP_TO = A_K_CONTIGUOUS ? THREADS / TILE_K : A_STEP_K * PITCH_A;
const uint B_STEP_TO = B_K_CONTIGUOUS ? THREADS / TILE_K : B_STEP_K * PITCH_B;

void main() {
    // The same for the whole workgroup, so no invocation waits at a barrier for others that have left.
    if (!find_tile(TILE_N)) return;
    uint id = gl_LocalInvocationID.x;
    uint row = first_row + tile.m * TILE_M, column = tile.n * TILE_N;

    // This invocation's part of the next tile: where it comes from, and of the first load its k in the tile and where
    // it goes to. Its other loads are constant distances away, which take no registers.
    uint a_at[LOADS_A], b_at[LOADS_B];
    uint a_k = A_K_CONTIGUOUS ? id % (TILE_K / 4) * 4 : id / (TILE_M / 4);
    uint b_k = B_K_CONTIGUOUS ? id % (TILE_K / 4) * 4 : id / (TILE_N / 4);
    uint a_to = A_K_CONTIGUOUS ? a_k * PITCH_A + id / TILE_K : a_k * PITCH_A + id % (TILE_M / 4);
    uint b_to = B_K_CONTIGUOUS ? b_k * PITCH_B + id / TILE_K : b_k * PITCH_B + id % (TILE_N / 4);
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) {
        uint along = tile.k_begin + a_k + i * A_STEP_K;
        if (A_K_CONTIGUOUS) {
            uint across = id / (TILE_K / 4) + i * (4 * THREADS / TILE_K);
            a_at[i] = tile.a + min(row + across, m - 1) * operands.a_row + along / 4;
        } else {
            a_at[i] = tile.a + along * operands.a_row + min(row / 4 + id % (TILE_M / 4), (m + 3) / 4 - 1);
        }
    }
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) {
        uint along = tile.k_begin + b_k + i * B_STEP_K;
        if (B_K_CONTIGUOUS) {
            uint across = id / (TILE_K / 4) + i * (4 * THREADS / TILE_K);
            b_at[i] = tile.b + min(column + across, n - 1) * operands.b_row + along / 4;
        } else {
            b_at[i] = tile.b + along * operands.b_row + min(column / 4 + id % (TILE_N / 4), operands.b_width - 1);
        }
    }
    // Which of four neighbouring rows or columns it is, the same for all of its loads.
    uint part = id / (TILE_K / 4) % 4;
    uint a_step = A_K_CONTIGUOUS ? TILE_K / 4 : TILE_K * operands.a_row;
    uint b_step = B_K_CONTIGUOUS ? TILE_K / 4 : TILE_K * operands.b_row;

    vec4 next_a[LOADS_A], next_b[LOADS_B];
    clear_frame();

// Beyond the end of k is nothing to load, so something else is. It is replaced when it is stored and not before, so
// that nothing waits for it while there is a tile to multiply.
#define FETCH(k_left) \
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) next_a[i] = lhs(a_k + i * A_STEP_K < k_left ? a_at[i] : tile.a); \
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) next_b[i] = rhs(b_k + i * B_STEP_K < k_left ? b_at[i] : tile.b);

    uint k_count = tile.k_end - tile.k_begin;
    FETCH(k_count)
    [[dont_unroll]] for (uint k_done = 0; k_done < k_count; k_done += TILE_K) {
        uint k_left = k_count - k_done;
        [[unroll]] for (uint i = 0; i < LOADS_A; i++) {
            vec4 found = a_k + i * A_STEP_K < k_left ? next_a[i] : vec4(0);
            uint to = a_to + i * A_STEP_TO;
            if (A_K_CONTIGUOUS) {
                [[unroll]] for (uint q = 0; q < 4; q++) tile_a[to + q * PITCH_A][part] = found[q];
            } else {
                tile_a[to] = found;
            }
            a_at[i] += a_step;
        }
        [[unroll]] for (uint i = 0; i < LOADS_B; i++) {
            vec4 found = b_k + i * B_STEP_K < k_left ? next_b[i] : vec4(0);
            uint to = b_to + i * B_STEP_TO;
            if (B_K_CONTIGUOUS) {
                [[unroll]] for (uint q = 0; q < 4; q++) tile_b[to + q * PITCH_B][part] = found[q];
            } else {
                tile_b[to] = found;
            }
            b_at[i] += b_step;
        }
        barrier();
        FETCH(max(k_left, TILE_K) - TILE_K)
        multiply_tiles();
        barrier();
    }
    store_frame(row, column, m);
}
