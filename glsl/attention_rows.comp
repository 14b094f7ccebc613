#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/format.glsl"
#include "lib/math.glsl"
#include "lib/exp.glsl"
#include "lib/attention.glsl"

// Attention without shared memory and without scores in memory: one subgroup owns ROWS rows x LANES * WIDTH * 4 columns
// of the result, and goes through the keys 4 * LANES at a time. A lane has the scores of four keys, then WIDTH vec4s of
// columns; queries and weights are handed round by shuffles. The sums so far are scaled whenever a row's largest score
// rises.

layout(constant_id = 1) const uint LANES = 8;  // the workgroup is one subgroup, or the first lanes of one
layout(constant_id = 2) const uint ROWS = 16;
layout(constant_id = 3) const uint WIDTH = 2;
layout(constant_id = 4) const uint STEP = 4;   // vec4s of depth at a time; divides them

#if LOAD == TEXEL
#define ROLLED [[dont_unroll]]
#else
#define ROLLED [[unroll]]
#endif

const uint FETCHES = (ROWS + LANES - 1) / LANES;
const uint TURN = LANES < 8 ? LANES : 8;  // lanes whose keys are multiplied together

vec4 acc[ROWS * WIDTH];
vec4 s[ROWS];
vec4 sums[ROWS];
float tops[ROWS];

float largest_of_row(float x) {
#define WIDER(k) if (LANES > k) x = max(x, subgroupShuffleXor(x, k));
    WIDER(1) WIDER(2) WIDER(4) WIDER(8) WIDER(16) WIDER(32) WIDER(64)
#undef WIDER
    return x;
}

float sum_of_row(float x) {
#define WIDER(k) if (LANES > k) x += subgroupShuffleXor(x, k);
    WIDER(1) WIDER(2) WIDER(4) WIDER(8) WIDER(16) WIDER(32) WIDER(64)
#undef WIDER
    return x;
}

void main() {
    uint lane = gl_SubgroupInvocationID;
    if (!find_unit(ROWS, 4)) return;
    uint first_row = tile_m * ROWS;

    uint q_at[FETCHES];
    [[unroll]] for (uint f = 0; f < FETCHES; f++) {
        uint row = min(first_row + min(f * LANES + lane, ROWS - 1), rows - 1);
        q_at[f] = q_base + row_at(row, row / group) * depth;
    }
    int firsts[ROWS], lasts[ROWS];
    uint masks[ROWS];
    [[unroll]] for (uint i = 0; i < ROWS; i++) {
        uint row = min(first_row + i, rows - 1), token = row / group;
        firsts[i] = first_key(token);
        lasts[i] = min(last_key(token), int(end) - 1);
        masks[i] = MASK == 0 ? 0 : mask_at(row, token);
        sums[i] = vec4(0);
        tops[i] = LOWEST;
        [[unroll]] for (uint w = 0; w < WIDTH; w++) acc[i * WIDTH + w] = vec4(0);
    }
    // Columns and keys that are not there are read from the last ones that are.
    uint columns[WIDTH];
    [[unroll]] for (uint w = 0; w < WIDTH; w++)
        columns[w] = v_base + min((tile_n * WIDTH + w) * LANES + lane, width - 1);

    [[dont_unroll]] for (uint block = begin; block < end; block += 4 * LANES) {
        uint own = block + 4 * lane;
        uvec4 k_at;
        [[unroll]] for (uint j = 0; j < 4; j++) k_at[j] = k_base + min(own + j, end - 1) * depth;
        [[unroll]] for (uint i = 0; i < ROWS; i++) s[i] = vec4(0);
        [[dont_unroll]] for (uint d = 0; d < depth; d += STEP) {
            vec4 kv[4 * STEP];
            [[unroll]] for (uint e = 0; e < STEP; e++)
                [[unroll]] for (uint j = 0; j < 4; j++) kv[e * 4 + j] = key_at(k_at[j] + d + e);
            [[unroll]] for (uint f = 0; f < FETCHES; f++) {
                vec4 qv[STEP];
                [[unroll]] for (uint e = 0; e < STEP; e++) qv[e] = query_at(q_at[f] + d + e);
                [[unroll]] for (uint i = 0; i < min(LANES, ROWS); i++) {
                    vec4 sum = vec4(0);
                    [[unroll]] for (uint e = 0; e < STEP; e++)
                        [[unroll]] for (uint c = 0; c < 4; c++) {
                            float x = ROWS == 1 ? qv[e][c] : subgroupShuffle(qv[e][c], i);
                            [[unroll]] for (uint j = 0; j < 4; j++) sum[j] += x * kv[e * 4 + j][c];
                        }
                    s[f * LANES + i] += sum;
                }
            }
        }
        [[unroll]] for (uint i = 0; i < ROWS; i++) {
            vec4 x = score(s[i], own, firsts[i], lasts[i], masks[i]);
            float risen = max(tops[i], largest_of_row(max(max(x.x, x.y), max(x.z, x.w))));
            float fade = weight_of(vec4(tops[i] - risen)).x;
            s[i] = weight_of(x - risen);
            tops[i] = risen;
            sums[i] = sums[i] * fade + s[i];
            [[unroll]] for (uint w = 0; w < WIDTH; w++) acc[i * WIDTH + w] *= fade;
        }
        // A component of the weights after the other.
        [[dont_unroll]] for (uint j = 0; j < 4; j++) {
            [[unroll]] for (uint l = 0; l < LANES; l += TURN) {
                vec4 vv[TURN * WIDTH];
                [[unroll]] for (uint t = 0; t < TURN; t++) {
                    uint row = min(block + 4 * (l + t) + j, end - 1) * width;
                    [[unroll]] for (uint w = 0; w < WIDTH; w++) vv[t * WIDTH + w] = value_at(columns[w] + row);
                }
                [[unroll]] for (uint i = 0; i < ROWS; i++) {
                    vec4 sum[WIDTH];
                    [[unroll]] for (uint t = 0; t < TURN; t++) {
                        float p = subgroupShuffle(s[i].x, l + t);
                        [[unroll]] for (uint w = 0; w < WIDTH; w++)
                            sum[w] = t == 0 ? p * vv[w] : sum[w] + p * vv[t * WIDTH + w];
                    }
                    [[unroll]] for (uint w = 0; w < WIDTH; w++) acc[i * WIDTH + w] += sum[w];
                }
            }
            [[unroll]] for (uint i = 0; i < ROWS; i++) s[i] = s[i].yzwx;
        }
    }

    [[unroll]] for (uint i = 0; i < ROWS; i++) {
        float sum = sum_of_row((sums[i].x + sums[i].y) + (sums[i].z + sums[i].w));
        sums[i] = vec4(sum);
        if (!PARTIAL) {
            vec4 share = share_of(sums[i]);
            [[unroll]] for (uint w = 0; w < WIDTH; w++) acc[i * WIDTH + w] *= share;
        }
    }
    // Accumulators can't be indexed at run time without leaving their registers, so they move up.
    ROLLED for (uint i = 0; i < ROWS; i++) {
        uint row = first_row + i;
        if (row >= rows) break;
        uint at = out_base + (PARTIAL ? row * (width + 1) : row_at(row, row / group) * width);
        [[unroll]] for (uint w = 0; w < WIDTH; w++) {
            uint column = (tile_n * WIDTH + w) * LANES + lane;
            if (column < width) result[at + column] = U(acc[w]);
        }
        if (PARTIAL && tile_n == 0 && lane == 0) result[at + width] = uvec4(U(tops[0]), U(sums[0].x), 0, 0);
        [[unroll]] for (uint k = 1; k < ROWS; k++) {
            [[unroll]] for (uint w = 0; w < WIDTH; w++) acc[(k - 1) * WIDTH + w] = acc[k * WIDTH + w];
            tops[k - 1] = tops[k];
            sums[k - 1] = sums[k];
        }
    }
}
