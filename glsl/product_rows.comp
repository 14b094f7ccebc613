#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
//! build: LOAD=TEXEL STORE=TOGETHER OPS=PLAIN
//! build: LOAD=TEXEL NEXT=NARROW OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef STORE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : require
#endif
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/half.glsl"
#include "lib/ops.glsl"

// A matrix product without shared memory: one subgroup owns ROWS rows x LANES * WIDTH * 4 columns of C. Each lane holds
// WIDTH vecs of columns; A is loaded once per subgroup, lane by lane, and handed round by shuffles. Modules with STORE are for
// results of whole tiles, and for whole subgroups. With NEXT a subgroup goes through all columns of C, which is never stored: each
// of its tiles is multiplied by the rows of the next right-hand side that it meets, of COLUMNS columns.

layout(local_size_x_id = 0) in;                // LANES: the workgroup is one subgroup, or the first lanes of one
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint ROWS = 16;
layout(constant_id = 3) const uint WIDTH = 2;
layout(constant_id = 4) const bool TAIL = false;  // k may end anywhere; else operands are padded with zeros to steps of k
layout(constant_id = 5) const bool ROLLED = false;  // rows are stored one by one: compiles in half the time
layout(constant_id = 6) const uint K_STEP = 4;  // of k at a time: 4 or 8
layout(constant_id = 7) const bool LOOSE = false;  // rows of B begin anywhere: places and strides in it are elements

#ifdef NEXT
layout(constant_id = 8) const uint COLUMNS = 1;
layout(constant_id = 9) const bool BIAS = false;  // a row is added to each of the next result
#endif

INPUT(0, a)
INPUT(1, b)
#define SPAN LANES
#include "lib/product.glsl"
#include "lib/factors.glsl"
#ifdef NEXT
INPUT(5, next_rhs)
INPUT(6, next_bias)
#define DOT_ROWS ROWS
#define SUMMED_ROWS 8
#include "lib/dots.glsl"
#endif

// Four neighbours of B. Beyond its end stands anything; that is no part of the result.
vec4 columns_of_b(uint i) {
    if (!LOOSE) return rhs(i);
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
    uint a_at[FETCHES], b_at[WIDTH];
    [[unroll]] for (uint r = 0; r < FETCHES; r++)
        a_at[r] = tile.a + min(row + min(r * LANES + lane, ROWS - 1), m - 1) * operands.a_row + (tile.k_begin >> 2);
    [[unroll]] for (uint j = 0; j < WIDTH; j++) {
        uint first = tile.n * LANES * WIDTH;
        uint vec = min(first + j * LANES + lane, operands.b_width - 1) - first;
        b_at[j] = tile.b + tile.n * operands.b_panel + (LOOSE ? 4 * vec : vec) + tile.k_begin * operands.b_row;
    }
    [[unroll]] for (uint i = 0; i < ROWS * WIDTH; i++) acc[i] = vec4(0);

    uint k_at = tile.k_begin;
    [[dont_unroll]] for (; TAIL ? k_at + K_STEP <= tile.k_end : k_at < tile.k_end; k_at += K_STEP) {
        vec4 bv[K_STEP * WIDTH];
        [[unroll]] for (uint kk = 0; kk < K_STEP; kk++)
            [[unroll]] for (uint j = 0; j < WIDTH; j++) bv[kk * WIDTH + j] = columns_of_b(b_at[j] + kk * operands.b_row);
        [[unroll]] for (uint j = 0; j < WIDTH; j++) b_at[j] += K_STEP * operands.b_row;
        [[unroll]] for (uint r = 0; r < FETCHES; r++) {
            vec4 av[K_STEP / 4];
            [[unroll]] for (uint h = 0; h < K_STEP / 4; h++) av[h] = lhs(a_at[r]++);
            // Row by row: a software driver keeps one row's accumulators in registers at a time.
            [[unroll]] for (uint i = 0; i < min(LANES, ROWS); i++) {
                [[unroll]] for (uint kk = 0; kk < K_STEP; kk++) {
                    float s = subgroupShuffle(av[kk / 4][kk % 4], i);
                    [[unroll]] for (uint j = 0; j < WIDTH; j++)
                        acc[(r * LANES + i) * WIDTH + j] += s * bv[kk * WIDTH + j];
                }
            }
        }
    }
    // The last few of k, one by one.
    [[dont_unroll]] for (; TAIL && k_at < tile.k_end; k_at++) {
        vec4 bv[WIDTH];
        [[unroll]] for (uint j = 0; j < WIDTH; j++) {
            bv[j] = columns_of_b(b_at[j]);
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
}

#ifdef NEXT
// Multiplies the tile by the rows of the next right-hand side that it meets.
void pass_on(uint row) {
    [[unroll]] for (uint j = 0; j < WIDTH; j++) {
        uint vec = tile.n * LANES * WIDTH + j * LANES + gl_SubgroupInvocationID;
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) b_vecs[c] = F(next_rhs(vec * COLUMNS + c));
        begin_columns(4 * vec);
        [[unroll]] for (uint i = 0; i < ROWS; i++)
            add_terms(i, F(epilogue(acc[i * WIDTH + j], min(row + i, m - 1), 4 * vec)), false);
    }
}

void store_next(uint row) {
    vec4 added[(COLUMNS + 3) / 4];
    [[unroll]] for (uint c = 0; c < (COLUMNS + 3) / 4; c++) added[c] = BIAS ? F(next_bias(c)) : vec4(0);
    [[unroll]] for (uint first = 0; first < ROWS; first += SUMMED_ROWS) {
        sum_over_lanes(first);
        uint own = row + first + gl_SubgroupInvocationID;
        if (own >= m) continue;
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            precise float biased = row_of_c[c] + added[c / 4][c % 4];
            uint at = own * COLUMNS + c;
            result[at >> 2][at & 3u] = floatBitsToUint(BIAS ? biased : row_of_c[c]);
        }
    }
}
#endif

void main() {
    uint lane = gl_SubgroupInvocationID;
#if defined(STORE)
    find_tile(4 * LANES * WIDTH);
    uint row = first_row + tile.m * ROWS;
    multiply(row);
    uint proven_row = first_row + proven(tile.m) * ROWS, proven_column = 4 * proven(tile.n) * LANES * WIDTH;
    [[unroll]] for (uint j = 0; j < WIDTH; j++) {
        uint at = 4 * (tile.n * LANES * WIDTH + j * LANES + lane);
        begin_columns(at);
        [[unroll]] for (uint i = 0; i < ROWS; i++) {
            store_together(epilogue(acc[i * WIDTH + j], row + i, at), proven_row + i, proven_column + 4 * j * LANES);
        }
    }
#elif defined(NEXT)
    if (!find_tile(n)) return;
    uint row = first_row + tile.m * ROWS;
    begin_dots();
    [[dont_unroll]] for (tile.n = 0; tile.n * 4 * LANES * WIDTH < n; tile.n++) {
        multiply(row);
        pass_on(row);
    }
    store_next(row);
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
