#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/format.glsl"
#include "lib/ops.glsl"

// A convolution as a matmul through shared memory: weights [k][channels of the result] times a matrix that is
// never there: its row k is a tap of a channel, its column a pixel, its element what the tap sees. k counts
// [channel][kernel row][tap]. While one tile is multiplied, the next is on its way to registers.

layout(constant_id = 6) const uint TAPS_Y = 3;  // known to the compiler, since k is divided by them
layout(constant_id = 7) const uint TAPS_X = 3;
layout(constant_id = 8) const uint INPUT_FORMAT = 0;

WORDS(0, x)
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

// The element of the input at a place.
uint element(uint at) {
    return widened_word(INPUT_FORMAT, x(at >> packing(INPUT_FORMAT)), at);
}

// Whether a pixel is kept as the place of its first tap in a channel, with a bit for each tap that is inside the input;
// else as the input row and column of the first tap.
const bool MASKED = TAPS_Y * TAPS_X <= 32;

// A pixel whose first tap is at this row and column. Outside of the input they are too large, since they wrap around.
uvec2 pixel_at(uint y, uint x) {
    if (!MASKED) return uvec2(y, x);
    uint columns = 0, taps = 0;
    [[unroll]] for (uint t = 0; t < min(TAPS_X, 32); t++)
        columns |= uint(x + t * (operands.dilation & 0xffffu) < operands.x_width) << t;
    [[unroll]] for (uint t = 0; t < min(TAPS_Y, 32); t++)
        taps |= (y + t * (operands.dilation >> 16) < operands.x_height ? columns : 0) << t * TAPS_X;
    return uvec2(y * operands.x_width + x, taps);
}

// Where a tap of a channel looks for four neighbouring pixels, and whether that is inside the input.
uvec4 patch_places(uint k, uvec2 pixels[4], out bvec4 inside) {
    uint c = k / (TAPS_Y * TAPS_X), tap = k % (TAPS_Y * TAPS_X);
    uint down = tap / TAPS_X * (operands.dilation >> 16), right = tap % TAPS_X * (operands.dilation & 0xffffu);
    uint begin = channel_begin + c * operands.x_height * operands.x_width;
    uint first = begin + down * operands.x_width + right;
    uvec4 at;
    [[unroll]] for (uint q = 0; q < 4; q++) {
        if (MASKED) {
            inside[q] = (pixels[q].y & 1u << tap) != 0;
            at[q] = inside[q] ? first + pixels[q].x : begin;
        } else {
            uint y = pixels[q].x + down, x = pixels[q].y + right;
            inside[q] = y < operands.x_height && x < operands.x_width;
            at[q] = inside[q] ? begin + y * operands.x_width + x : begin;
        }
    }
    return at;
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
    uvec2 b_pixels[LOADS_B][4];
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) {
        uint e = i * THREADS + id;
        a_k[i] = k_begin + e / (TILE_M / 4);
        a_at[i] = (group * depth + a_k[i]) * operands.w_tap + min(first / 4 + e % (TILE_M / 4), operands.w_tap - 1);
    }
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) {
        uint e = i * THREADS + id;
        b_k[i] = k_begin + e / (TILE_N / 4);
        [[unroll]] for (uint q = 0; q < 4; q++) {
            uint pixel = min(column + e % (TILE_N / 4) * 4 + q, n - 1), y = pixel / operands.width;
            b_pixels[i][q] = pixel_at(y * (operands.stride >> 16) - operands.top,
                                      (pixel - y * operands.width) * (operands.stride & 0xffffu) - operands.left);
        }
    }
    vec4 next_a[LOADS_A];
    uvec4 next_b[LOADS_B];
    bvec4 inside[LOADS_B];
    clear_frame();

// Beyond the end of k something else is loaded. It is replaced when it is stored and not before, so that no invocation
// waits for it while there is a tile to multiply; so are taps outside of the input.
#define FETCH() \
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) next_a[i] = F(w(a_k[i] < k_end ? a_at[i] : 0)); \
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) { \
        uvec4 at = patch_places(min(b_k[i], depth - 1), b_pixels[i], inside[i]); \
        [[unroll]] for (uint q = 0; q < 4; q++) next_b[i][q] = element(at[q]); \
    }

    FETCH()
    [[dont_unroll]] for (uint k_at = k_begin; k_at < k_end; k_at += TILE_K) {
        [[unroll]] for (uint i = 0; i < LOADS_A; i++) {
            uint e = i * THREADS + id;
            tile_a[e / (TILE_M / 4) * PITCH_A + e % (TILE_M / 4)] = a_k[i] < k_end ? next_a[i] : vec4(0);
            a_at[i] += TILE_K * operands.w_tap;
            a_k[i] += TILE_K;
        }
        [[unroll]] for (uint i = 0; i < LOADS_B; i++) {
            uint e = i * THREADS + id;
            vec4 found = F(mix(uvec4(0), next_b[i], inside[i]));
            tile_b[e / (TILE_N / 4) * PITCH_B + e % (TILE_N / 4)] = b_k[i] < k_end ? found : vec4(0);
            b_k[i] += TILE_K;
        }
        barrier();
        FETCH()
        multiply_tiles();
        barrier();
    }
    begin_batch(first_batch + image, c_base + gl_WorkGroupID.z * c_batch);
    uint row = group * operands.group_rows;
    store_frame(row + first, column, row + operands.group_rows);
}
