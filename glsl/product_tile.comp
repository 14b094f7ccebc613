#version 460
//! build: LOAD=BUFFER,TEXEL OPS=LIGHT,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/ops.glsl"

// A matrix product through shared memory: a workgroup owns TILE_M x TILE_N of C, an invocation FRAME_M x FRAME_N of that.
// Both operands lie in shared memory as [k][row or column], whichever way they lie in global memory, so that four
// neighbours are one load. While one tile is multiplied, the next is on its way to registers.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TILE_M = 64;
layout(constant_id = 2) const uint TILE_N = 64;
layout(constant_id = 3) const uint TILE_K = 16;
layout(constant_id = 4) const uint FRAME_M = 4;  // multiples of 4
layout(constant_id = 5) const uint FRAME_N = 4;
layout(constant_id = 6) const bool A_ALONG_K = true;  // neighbours in memory are neighbours in k
layout(constant_id = 7) const bool B_ALONG_K = false;

INPUT(0, a)
INPUT(1, b)
#include "lib/product.glsl"

const uint THREADS_N = TILE_N / FRAME_N;
const uint THREADS = (TILE_M / FRAME_M) * THREADS_N;
const uint LOADS_A = TILE_M * TILE_K / 4 / THREADS;
const uint LOADS_B = TILE_N * TILE_K / 4 / THREADS;
// One vec more than the tile is wide, against bank conflicts.
const uint PITCH_A = TILE_M / 4 + 1;
const uint PITCH_B = TILE_N / 4 + 1;
shared vec4 tile_a[TILE_K * PITCH_A];
shared vec4 tile_b[TILE_K * PITCH_B];

void main() {
    // The same for the whole workgroup, so nobody waits at a barrier for those who left.
    if (!find_tile(TILE_N)) return;
    uint id = gl_LocalInvocationID.x;
    uint row = first_row + tile.m * TILE_M, column = tile.n * TILE_N;

    // Where this invocation's part of the next tile comes from, and its first k.
    uint a_at[LOADS_A], a_k[LOADS_A], b_at[LOADS_B], b_k[LOADS_B];
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) {
        uint e = i * THREADS + id;
        if (A_ALONG_K) {
            a_k[i] = tile.k_begin + e % (TILE_K / 4) * 4;
            a_at[i] = tile.a + min(row + e / (TILE_K / 4), m - 1) * a_row + a_k[i] / 4;
        } else {
            a_k[i] = tile.k_begin + e / (TILE_M / 4);
            a_at[i] = tile.a + a_k[i] * a_row + min(row / 4 + e % (TILE_M / 4), (m + 3) / 4 - 1);
        }
    }
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) {
        uint e = i * THREADS + id;
        if (B_ALONG_K) {
            b_k[i] = tile.k_begin + e % (TILE_K / 4) * 4;
            b_at[i] = tile.b + min(column + e / (TILE_K / 4), n - 1) * b_row + b_k[i] / 4;
        } else {
            b_k[i] = tile.k_begin + e / (TILE_N / 4);
            b_at[i] = tile.b + b_k[i] * b_row + min(column / 4 + e % (TILE_N / 4), b_width - 1);
        }
    }
    uint a_step = A_ALONG_K ? TILE_K / 4 : TILE_K * a_row;
    uint b_step = B_ALONG_K ? TILE_K / 4 : TILE_K * b_row;

    vec4 acc[FRAME_M * FRAME_N / 4];
    [[unroll]] for (uint i = 0; i < FRAME_M * FRAME_N / 4; i++) acc[i] = vec4(0);
    uint tx = id % THREADS_N, ty = id / THREADS_N;
    vec4 next_a[LOADS_A], next_b[LOADS_B];

// Beyond the end of k both operands are zero; what is loaded there is what every workgroup may load.
#define FETCH() \
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) { \
        vec4 found = F(a(a_k[i] < tile.k_end ? a_at[i] : tile.a)); \
        next_a[i] = a_k[i] < tile.k_end ? found : vec4(0); \
    } \
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) { \
        vec4 found = F(b(b_k[i] < tile.k_end ? b_at[i] : tile.b)); \
        next_b[i] = b_k[i] < tile.k_end ? found : vec4(0); \
    }

    FETCH()
    [[dont_unroll]] for (uint k_at = tile.k_begin; k_at < tile.k_end; k_at += TILE_K) {
        [[unroll]] for (uint i = 0; i < LOADS_A; i++) {
            uint e = i * THREADS + id;
            if (A_ALONG_K) {
                uint along = e % (TILE_K / 4) * 4, across = e / (TILE_K / 4);
                [[unroll]] for (uint q = 0; q < 4; q++)
                    tile_a[(along + q) * PITCH_A + across / 4][across % 4] = next_a[i][q];
            } else {
                tile_a[e / (TILE_M / 4) * PITCH_A + e % (TILE_M / 4)] = next_a[i];
            }
            a_at[i] += a_step;
            a_k[i] += TILE_K;
        }
        [[unroll]] for (uint i = 0; i < LOADS_B; i++) {
            uint e = i * THREADS + id;
            if (B_ALONG_K) {
                uint along = e % (TILE_K / 4) * 4, across = e / (TILE_K / 4);
                [[unroll]] for (uint q = 0; q < 4; q++)
                    tile_b[(along + q) * PITCH_B + across / 4][across % 4] = next_b[i][q];
            } else {
                tile_b[e / (TILE_N / 4) * PITCH_B + e % (TILE_N / 4)] = next_b[i];
            }
            b_at[i] += b_step;
            b_k[i] += TILE_K;
        }
        barrier();
        FETCH()
        [[unroll]] for (uint kk = 0; kk < TILE_K; kk++) {
            vec4 av[FRAME_M / 4], bv[FRAME_N / 4];
            [[unroll]] for (uint i = 0; i < FRAME_M / 4; i++)
                av[i] = tile_a[kk * PITCH_A + ty + i * (TILE_M / FRAME_M)];
            [[unroll]] for (uint j = 0; j < FRAME_N / 4; j++)
                bv[j] = tile_b[kk * PITCH_B + tx + j * THREADS_N];
            [[unroll]] for (uint i = 0; i < FRAME_M; i++)
                [[unroll]] for (uint j = 0; j < FRAME_N / 4; j++)
                    acc[i * (FRAME_N / 4) + j] += av[i / 4][i % 4] * bv[j];
        }
        barrier();
    }
    // Drivers unroll these; written as loops, the epilogue stands in the module once.
    [[unroll]] for (uint j = 0; j < FRAME_N / 4; j++) {
        uint at = column + 4 * (tx + j * THREADS_N);
        begin_columns(at);
        [[unroll]] for (uint i = 0; i < FRAME_M; i++)
            store(acc[i * (FRAME_N / 4) + j], row + 4 * (ty + i / 4 * (TILE_M / FRAME_M)) + i % 4, at);
    }
}
