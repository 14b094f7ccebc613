#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/f16_load.glsl"
#include "lib/ops.glsl"

// A convolution as a matmul through shared memory: weights [k][channels of the result] times a matrix that is
// never there: its row k is a tap of a channel, its column a pixel, its element what the tap sees. k counts
// [channel][kernel row][tap].

layout(constant_id = 6) const uint TAPS_Y = 3;  // known to the compiler, since k is divided by them
layout(constant_id = 7) const uint TAPS_X = 3;
layout(constant_id = 8) const bool IS_F16 = false;  // the input is f16

INPUT(0, x)
INPUT(1, w)
struct Operands {
    uint width;           // of the result
    uint groups;          // of channels
    uint group_rows;      // channels of the result in a group
    uint images;          // in this dispatch
    uint x_width, x_height;
    uint channels;        // of the input in a group
    uint stride;          // x | y << 16
    uint dilation;        // likewise
    uint left, top;       // zeros before the input
    uint w_tap;           // vec4s from one k to the next
    uint chunk;           // of k that one workgroup sums up
};
#include "lib/epilogue.glsl"
#include "lib/tile.glsl"

uint channel_begin;  // the first element of the image's first channel

// What a tap sees of four neighbouring pixels, whose input rows and columns for the first tap are given.
vec4 patch_row(uint k, uvec4 ys, uvec4 xs) {
    uint c = k / (TAPS_Y * TAPS_X), tap_y = k / TAPS_X % TAPS_Y, tap_x = k % TAPS_X;
    // Outside of the input they are too large, since they wrap around.
    ys += tap_y * (operands.dilation >> 16);
    xs += tap_x * (operands.dilation & 0xffffu);
    uint begin = channel_begin + c * operands.x_height * operands.x_width;
    uvec4 words = uvec4(0);
    [[unroll]] for (uint q = 0; q < 4; q++) {
        bool inside = ys[q] < operands.x_height && xs[q] < operands.x_width;
        uint at = inside ? begin + ys[q] * operands.x_width + xs[q] : begin;
        uint word = IS_F16 ? widened_one(x(at >> 3), at) : x(at >> 2)[at & 3u];
        words[q] = inside ? word : 0;
    }
    return F(words);
}

void main() {
    uint tiles_m = (operands.group_rows + TILE_M - 1) / TILE_M, id = gl_LocalInvocationID.x;
    // Workgroups count [group][tile of channels][tile of pixels]; the grid may be larger than that.
    uint across = (n + TILE_N - 1) / TILE_N, number = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint group = number / across / tiles_m, first = number / across % tiles_m * TILE_M;
    if (group >= operands.groups) return;
    uint column = number % across * TILE_N, image = gl_WorkGroupID.z % operands.images;
    uint depth = operands.channels * TAPS_Y * TAPS_X;
    uint k_begin = gl_WorkGroupID.z / operands.images * operands.chunk, k_end = min(depth, k_begin + operands.chunk);
    channel_begin = ((first_batch + image) * operands.groups + group) * operands.channels * operands.x_height * operands.x_width;

    uint a_at[LOADS_A], a_k[LOADS_A], b_k[LOADS_B];
    uvec4 b_y[LOADS_B], b_x[LOADS_B];
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) {
        uint e = i * THREADS + id;
        a_k[i] = k_begin + e / (TILE_M / 4);
        a_at[i] = (group * depth + a_k[i]) * operands.w_tap + min(first / 4 + e % (TILE_M / 4), operands.w_tap - 1);
    }
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) {
        uint e = i * THREADS + id;
        b_k[i] = k_begin + e / (TILE_N / 4);
        uvec4 pixel = min(column + e % (TILE_N / 4) * 4 + uvec4(0, 1, 2, 3), uvec4(n - 1));
        uvec4 y = pixel / operands.width;
        b_y[i] = y * (operands.stride >> 16) - operands.top;
        b_x[i] = (pixel - y * operands.width) * (operands.stride & 0xffffu) - operands.left;
    }
    clear_frame();
    // Beyond the end of k both are zero.
    [[dont_unroll]] for (uint k_at = k_begin; k_at < k_end; k_at += TILE_K) {
        [[unroll]] for (uint i = 0; i < LOADS_A; i++) {
            uint e = i * THREADS + id;
            vec4 found = F(w(a_k[i] < k_end ? a_at[i] : 0));
            tile_a[e / (TILE_M / 4) * PITCH_A + e % (TILE_M / 4)] = a_k[i] < k_end ? found : vec4(0);
            a_at[i] += TILE_K * operands.w_tap;
            a_k[i] += TILE_K;
        }
        [[unroll]] for (uint i = 0; i < LOADS_B; i++) {
            uint e = i * THREADS + id;
            vec4 found = patch_row(min(b_k[i], depth - 1), b_y[i], b_x[i]);
            tile_b[e / (TILE_N / 4) * PITCH_B + e % (TILE_N / 4)] = b_k[i] < k_end ? found : vec4(0);
            b_k[i] += TILE_K;
        }
        barrier();
        multiply_tiles();
        barrier();
    }
    begin_batch(first_batch + image, c_base + gl_WorkGroupID.z * c_batch);
    uint row = group * operands.group_rows;
    store_frame(row + first, column, row + operands.group_rows);
}
