#version 460
//! build: LOAD=BUFFER
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/format.glsl"
#include "lib/math.glsl"
#include "lib/exp.glsl"
#include "lib/attention.glsl"

// Attention through shared memory, for GPUs: a workgroup of 128 owns 32 rows x 64 * VEC4S columns of the result, and
// goes through the keys 64 at a time. An invocation has 4 rows x 4 keys of the scores, then 4 rows x 4 * VEC4S columns.
// Weights go to shared memory, scores stay in registers.

layout(constant_id = 1) const uint VEC4S = 1;  // 1 or 2

#define TILE_M 32
#define KEYS 64
#define THREADS 128
#define ACROSS 16  // invocations side by side: of 4 keys, or 4 columns, each
#define STEP_K 16  // of depth at a time
// One vec4 more than the tiles are wide, against bank conflicts.
#define PITCH_Q (TILE_M / 4 + 1)
#define PITCH_K (KEYS / 4 + 1)

// By turns: a step of queries and keys, the largest scores of rows, a step of values.
#define K_BEGINS (STEP_K * PITCH_Q)
shared vec4 tile[STEP_K * (PITCH_Q + PITCH_K)];
shared vec4 weights[KEYS * PITCH_Q];  // [key][row]
const uint STEP_V = 16 / VEC4S;        // keys of a step of values

vec4 s[4];
vec4 acc[4 * VEC4S];

void main() {
    // The same for the whole workgroup, so no invocation waits at a barrier for those who left.
    if (!find_unit(TILE_M, 4)) return;
    uint id = gl_LocalInvocationID.x, tx = id % ACROSS, ty = id / ACROSS;
    uint first_row = tile_m * TILE_M;

    int firsts[4], lasts[4];
    uvec4 masks;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint row = min(first_row + 4 * ty + i, rows - 1), token = row / group;
        firsts[i] = first_key(token);
        lasts[i] = min(last_key(token), int(end) - 1);
        masks[i] = MASK == 0 ? 0 : mask_at(row, token);
    }
    vec4 tops = vec4(LOWEST), sums = vec4(0);
    [[unroll]] for (uint i = 0; i < 4 * VEC4S; i++) acc[i] = vec4(0);
    // An invocation fetches four neighbours in depth of a query and of two keys, and of values those of columns.
    uint q_row = min(first_row + id / 4, rows - 1);
    uint q_at = q_base + row_at(q_row, q_row / group) * depth;
    uint d_own = id % 4, to = 4 * d_own * PITCH_Q + id / 16, k_to = K_BEGINS + 4 * d_own * PITCH_K + id / 16;
    uint column = min(tile_n * ACROSS * VEC4S + id % (ACROSS * VEC4S), width - 1);

    [[dont_unroll]] for (uint block = begin; block < end; block += KEYS) {
        [[unroll]] for (uint i = 0; i < 4; i++) s[i] = vec4(0);
        uint k_at[2];
        [[unroll]] for (uint j = 0; j < 2; j++) k_at[j] = k_base + min(block + id / 4 + 32 * j, end - 1) * depth;
        [[dont_unroll]] for (uint d = 0; d < depth; d += STEP_K / 4) {
            // Beyond the end of a row something else is loaded, and replaced by zeros.
            bool inside = d + d_own < depth;
            uint e = inside ? d + d_own : 0;
            vec4 qv = query_at(q_at + e), k0 = key_at(k_at[0] + e), k1 = key_at(k_at[1] + e);
            if (!inside) qv = vec4(0);
            if (!inside) k0 = vec4(0);
            if (!inside) k1 = vec4(0);
            barrier();
            uint within = id / 4 % 4;
            [[unroll]] for (uint c = 0; c < 4; c++) {
                tile[to + c * PITCH_Q][within] = qv[c];
                tile[k_to + c * PITCH_K][within] = k0[c];
                tile[k_to + c * PITCH_K + 8][within] = k1[c];
            }
            barrier();
            [[unroll]] for (uint k = 0; k < STEP_K; k++) {
                vec4 a = tile[k * PITCH_Q + ty], b = tile[K_BEGINS + k * PITCH_K + tx];
                [[unroll]] for (uint i = 0; i < 4; i++) s[i] += a[i] * b;
            }
        }
        vec4 most;
        [[unroll]] for (uint i = 0; i < 4; i++) {
            s[i] = score(s[i], block + 4 * tx, firsts[i], lasts[i], masks[i]);
            most[i] = max(max(s[i].x, s[i].y), max(s[i].z, s[i].w));
        }
        barrier();
        tile[ty * ACROSS + tx] = most;
        barrier();
        vec4 risen = tops;
        [[unroll]] for (uint x = 0; x < ACROSS; x++) risen = max(risen, tile[ty * ACROSS + x]);
        vec4 fade = weight_of(tops - risen);
        tops = risen;
        vec4 added = vec4(0);
        [[unroll]] for (uint i = 0; i < 4; i++) {
            s[i] = weight_of(s[i] - risen[i]);
            added[i] = (s[i].x + s[i].y) + (s[i].z + s[i].w);
            [[unroll]] for (uint w = 0; w < VEC4S; w++) acc[i * VEC4S + w] *= fade[i];
        }
        sums = sums * fade + added;
        [[unroll]] for (uint j = 0; j < 4; j++)
            weights[(4 * tx + j) * PITCH_Q + ty] = vec4(s[0][j], s[1][j], s[2][j], s[3][j]);
        [[dont_unroll]] for (uint k = 0; k < KEYS; k += STEP_V) {
            vec4 vv[2];
            [[unroll]] for (uint j = 0; j < 2; j++) {
                uint key = min(block + k + (id + j * THREADS) / (ACROSS * VEC4S), end - 1);
                vv[j] = value_at(v_base + key * width + column);
            }
            barrier();
            [[unroll]] for (uint j = 0; j < 2; j++) tile[id + j * THREADS] = vv[j];
            barrier();
            [[unroll]] for (uint kk = 0; kk < STEP_V; kk++) {
                vec4 p = weights[(k + kk) * PITCH_Q + ty];
                [[unroll]] for (uint w = 0; w < VEC4S; w++) {
                    vec4 b = tile[kk * ACROSS * VEC4S + w * ACROSS + tx];
                    [[unroll]] for (uint i = 0; i < 4; i++) acc[i * VEC4S + w] += p[i] * b;
                }
            }
        }
    }

    barrier();
    tile[ty * ACROSS + tx] = sums;
    barrier();
    sums = vec4(0);
    [[unroll]] for (uint x = 0; x < ACROSS; x++) sums += tile[ty * ACROSS + x];
    vec4 share = PARTIAL ? vec4(1) : share_of(sums);
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint row = first_row + 4 * ty + i;
        if (row < rows) {
            uint at = out_base + (PARTIAL ? row * (width + 1) : row_at(row, row / group) * width);
            [[unroll]] for (uint w = 0; w < VEC4S; w++) {
                uint own = (tile_n * VEC4S + w) * ACROSS + tx;
                if (own < width) result[at + own] = U(acc[i * VEC4S + w] * share[i]);
            }
            if (PARTIAL && tile_n == 0 && tx == 0) result[at + width] = uvec4(U(tops[i]), U(sums[i]), 0, 0);
        }
    }
}
