#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
//! build: LOAD=TEXEL STORE=UNIFORM OPS=PLAIN
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef STORE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : require
#endif
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#ifdef STORE
#define ONE_BATCH
#endif
#include "lib/load.glsl"
#include "lib/format.glsl"
#include "lib/ops.glsl"

// A matmul without shared memory: one subgroup owns ROWS rows x LANES * WIDTH * 4 columns of C. Each lane holds WIDTH
// vec4s of columns; A is loaded once per subgroup, lane by lane, and handed round by shuffles. Modules with STORE are
// for results of whole tiles, and for whole subgroups.

layout(local_size_x_id = 0) in;                // LANES: the workgroup is one subgroup, or the first lanes of one
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint ROWS = 16;
layout(constant_id = 3) const uint WIDTH = 2;
layout(constant_id = 4) const bool TAIL = false;  // k may end anywhere; else operands are padded with zeros to steps of k
layout(constant_id = 5) const bool ROLLED = false;  // rows are stored one by one: compiles in half the time
layout(constant_id = 6) const uint K_STEP = 4;  // of k at a time: 4 or 8
layout(constant_id = 7) const bool UNALIGNED = false;  // rows of B begin anywhere: places and strides in it are elements

INPUT(0, a)
INPUT(1, b)
#define SUBGROUP LANES
#include "lib/matmul.glsl"
#include "lib/matrix_operands.glsl"

// Four neighbours of B. Beyond its end stands anything; that is no part of the result.
vec4 columns_of_b(uint i) {
    if (!UNALIGNED) return rhs(i);
    uint last = (operands.k * n - 1) >> 2, shift = i & 3u;
    uvec4 low = b(min(i >> 2, last)), high = b(min((i >> 2) + 1, last));
    low = shift > 1 ? uvec4(low.zw, high.xy) : low;
    uint next = shift > 1 ? high.z : high.x;
    return F((shift & 1u) != 0 ? uvec4(low.yzw, next) : low);
}

vec4 acc[ROWS * WIDTH];

// Multiplies what makes up a tile. Rows and columns that are not there are read from the last ones that are.
void multiply(uint row) {
    uint lane = gl_SubgroupInvocationID;
    const uint FETCHES = (ROWS + LANES - 1) / LANES;
    const uint PAIR = ROWS > 1 ? 2 : 1;
    // Long steps are summed up by themselves: a software driver has the sums so far in registers only when they are
    // added. To a GPU it would be an addition more.
    const bool APART = LOAD == TEXEL && K_STEP > 4;
    uint b_row = operands.b_row;
    uint a_at[FETCHES], b_at[WIDTH];
    [[unroll]] for (uint r = 0; r < FETCHES; r++)
        a_at[r] = tile.a + min(row + min(r * LANES + lane, ROWS - 1), m - 1) * operands.a_row + (tile.k_begin >> 2);
    [[unroll]] for (uint j = 0; j < WIDTH; j++) {
        uint first = tile.n * LANES * WIDTH;
        uint vec = min(first + j * LANES + lane, operands.b_width - 1) - first;
        b_at[j] = tile.b + tile.n * operands.b_panel + (UNALIGNED ? 4 * vec : vec) + tile.k_begin * b_row;
    }
    [[unroll]] for (uint i = 0; i < ROWS * WIDTH; i++) acc[i] = vec4(0);

    uint k_at = tile.k_begin;
    [[dont_unroll]] for (; TAIL ? k_at + K_STEP <= tile.k_end : k_at < tile.k_end; k_at += K_STEP) {
        vec4 bv[K_STEP * WIDTH];
        [[unroll]] for (uint kk = 0; kk < K_STEP; kk++)
            [[unroll]] for (uint j = 0; j < WIDTH; j++) bv[kk * WIDTH + j] = columns_of_b(b_at[j] + kk * b_row);
        [[unroll]] for (uint j = 0; j < WIDTH; j++) b_at[j] += K_STEP * b_row;
        [[unroll]] for (uint r = 0; r < FETCHES; r++) {
            vec4 av[K_STEP / 4];
            [[unroll]] for (uint h = 0; h < K_STEP / 4; h++) av[h] = lhs(a_at[r]++);
            // Two rows at a time: a software driver keeps their accumulators in registers, and loads B once for both.
            [[unroll]] for (uint i = 0; i < min(LANES, ROWS); i += PAIR) {
                vec4 sum[PAIR * WIDTH];
                [[unroll]] for (uint kk = 0; kk < K_STEP; kk++) {
                    float s[PAIR];
                    [[unroll]] for (uint p = 0; p < PAIR; p++) s[p] = subgroupShuffle(av[kk / 4][kk % 4], i + p);
                    [[unroll]] for (uint j = 0; j < WIDTH; j++)
                        [[unroll]] for (uint c = 0; c < 4; c++)
                            [[unroll]] for (uint p = 0; p < PAIR; p++) {
                                float product = s[p] * bv[kk * WIDTH + j][c];
                                if (!APART) acc[(r * LANES + i + p) * WIDTH + j][c] += product;
                                else if (kk == 0) sum[p * WIDTH + j][c] = product;
                                else sum[p * WIDTH + j][c] += product;
                            }
                }
                if (APART)
                    [[unroll]] for (uint q = 0; q < PAIR * WIDTH; q++) acc[(r * LANES + i) * WIDTH + q] += sum[q];
            }
        }
    }
    // The last few of k, one by one.
    uint tail = k_at;
    [[dont_unroll]] for (; TAIL && k_at < tile.k_end; k_at++) {
        vec4 bv[WIDTH];
        [[unroll]] for (uint j = 0; j < WIDTH; j++) {
            bv[j] = columns_of_b(b_at[j]);
            b_at[j] += b_row;
        }
        [[unroll]] for (uint r = 0; r < FETCHES; r++) {
            float av = lhs(a_at[r] + (k_at - tail >> 2))[k_at & 3u];
            [[unroll]] for (uint i = 0; i < min(LANES, ROWS); i++) {
                float s = subgroupShuffle(av, i);
                [[unroll]] for (uint j = 0; j < WIDTH; j++) acc[(r * LANES + i) * WIDTH + j] += s * bv[j];
            }
        }
    }
}

void main() {
    uint lane = gl_SubgroupInvocationID;
#ifdef STORE
    find_tile(4 * LANES * WIDTH);
    uint row = first_row + tile.m * ROWS;
    multiply(row);
    uint uniform_row = first_row + make_uniform(tile.m) * ROWS, uniform_column = 4 * make_uniform(tile.n) * LANES * WIDTH;
    [[unroll]] for (uint j = 0; j < WIDTH; j++) {
        uint at = 4 * (tile.n * LANES * WIDTH + j * LANES + lane);
        begin_columns(at);
        [[unroll]] for (uint i = 0; i < ROWS; i++) {
            uniform_store(epilogue(acc[i * WIDTH + j], row + i, at), uniform_row + i, uniform_column + 4 * j * LANES);
        }
    }
#else
    if (!find_tile(4 * LANES * WIDTH)) return;
    uint row = first_row + tile.m * ROWS;
    multiply(row);
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
#endif
}
