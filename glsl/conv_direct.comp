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

// A convolution without shared memory: an invocation owns four neighbouring pixels of ROWS channels of the result. It
// loads a stretch of an input row once for all taps of a kernel's row; weights are loaded once per subgroup, four
// channels a lane, and handed round by shuffles.
//
// The input has zeros around it where the kernel reaches out of it, and rows of whole vec4s. Weights are
// [group][channel][kernel row][tap][channels of the result]. Modules with STORE are for one image of one group, for
// rows of whole vec4s, whole tiles and whole subgroups.

layout(local_size_x_id = 0) in;                // LANES, if weights are handed round
layout(constant_id = 1) const uint LANES = 8;  // of a subgroup that take part
layout(constant_id = 2) const uint ROWS = 32;  // up to 4, or 4 times a power of two; from 8 on weights are handed round
layout(constant_id = 3) const uint TAPS = 3;   // in a row of the kernel
layout(constant_id = 4) const uint STRIDE = 1;
layout(constant_id = 5) const uint DILATION = 1;
layout(constant_id = 6) const uint UNROLL = 1;  // kernel rows in an iteration; workgroups add up multiples of it

layout(constant_id = 7) const uint INPUT_FORMAT = 0;

INPUT(0, x)
INPUT(1, w)
struct Operands {
    uint width;       // of the result
    uint groups;      // of channels
    uint group_rows;  // channels of the result in a group
    uint quads;       // groups of four pixels in this dispatch: [image][row][quad]
    uint x_row;       // from one row of the result to the next, in vec4s of the input
    uint x_tap;       // from one kernel row to the next
    uint x_channel;
    uint x_image;
    uint w_tap;       // vec4s from one tap to the next
    uint channels;    // of the input in a group
    uint taps_y;      // rows of the kernel
    uint chunk;       // kernel rows of all channels that one workgroup adds up
};
#define SUBGROUP LANES
#include "lib/epilogue.glsl"

const uint VEC4S = (3 * STRIDE + (TAPS - 1) * DILATION) / 4 + 1;
const uint FETCHES = (ROWS / 4 + LANES - 1) / LANES + (ROWS < 4 ? 1 : 0);

void main() {
    // Workgroups count [group][tile of channels][tile of pixels]; the grid may be larger than that.
    uint tiles = (operands.group_rows + ROWS - 1) / ROWS;
    uint across = (operands.quads + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
    uint number = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint group = number / across / tiles, tile = number / across % tiles;
#ifdef STORE
    const uint first_batch = 0;
#else
    if (group >= operands.groups) return;
#endif
    uint index = number % across * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    uint lane = ROWS > 4 ? gl_SubgroupInvocationID : 0;
    // All lanes take part in shuffles: those without work do that of the last one, and store nothing.
    uint quad = min(index, operands.quads - 1), per_row = (operands.width + 3) / 4;
    uint per_image = n / operands.width * per_row;
    uint image = quad / per_image, within = quad % per_image, y = within / per_row, column = within % per_row;

    // Kernel rows of all channels, counted through.
    uint steps = operands.channels * operands.taps_y;
    uint step = gl_WorkGroupID.z * operands.chunk, end = min(steps, step + operands.chunk);
    uint channel = group * operands.channels + step / operands.taps_y, tap_y = step % operands.taps_y;
    uint x_at = (first_batch + image) * operands.x_image + channel * operands.x_channel + y * operands.x_row
        + tap_y * operands.x_tap + column * STRIDE;
    uint next_channel = operands.x_channel - operands.taps_y * operands.x_tap;
    uint w_at[FETCHES];
    [[unroll]] for (uint f = 0; f < FETCHES; f++)
        w_at[f] = (group * steps + step) * TAPS * operands.w_tap
            + min(tile * ROWS / 4 + f * LANES + lane, operands.w_tap - 1);

    vec4 acc[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) acc[r] = vec4(0);
    [[dont_unroll]] for (; step < end; step += UNROLL) {
        [[unroll]] for (uint u = 0; u < UNROLL; u++) {
            float xs[4 * VEC4S];
            [[unroll]] for (uint v = 0; v < VEC4S; v++) {
                uint i = x_at + v;
                vec4 four = F(widened(INPUT_FORMAT, x(i >> packing(INPUT_FORMAT)), i));
                [[unroll]] for (uint q = 0; q < 4; q++) xs[4 * v + q] = four[q];
            }
            vec4 ws[TAPS * FETCHES];
            [[unroll]] for (uint t = 0; t < TAPS; t++)
                [[unroll]] for (uint f = 0; f < FETCHES; f++) ws[t * FETCHES + f] = F(w(w_at[f] + t * operands.w_tap));
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                vec4 sum = acc[r];
                [[unroll]] for (uint t = 0; t < TAPS; t++) {
                    float weight = ws[t * FETCHES + r / 4 / LANES][r % 4];
                    if (ROWS > 4) weight = subgroupShuffle(weight, r / 4 % LANES);
                    uint at = t * DILATION;
                    sum += weight * vec4(xs[at], xs[at + STRIDE], xs[at + 2 * STRIDE], xs[at + 3 * STRIDE]);
                }
                acc[r] = sum;
            }
            [[unroll]] for (uint f = 0; f < FETCHES; f++) w_at[f] += TAPS * operands.w_tap;
            tap_y++;
            bool wraps = tap_y == operands.taps_y;
            x_at += operands.x_tap + (wraps ? next_channel : 0);
            tap_y = wraps ? 0 : tap_y;
        }
    }
#ifdef STORE
    uint uniform_row = make_uniform(tile) * ROWS, uniform_column = 4 * make_uniform(number % across) * LANES;
    begin_columns(4 * quad);
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uniform_store(epilogue(acc[r], tile * ROWS + r, 4 * quad), uniform_row + r, uniform_column);
    }
#else
    if (index >= operands.quads) return;
    uint part = gl_WorkGroupID.z * (operands.quads / per_image) + image;
    begin_batch(first_batch + image, c_base + part * c_batch);
    uint row = group * operands.group_rows + tile * ROWS, rows = min(ROWS, operands.group_rows - tile * ROWS);
    uint at = y * operands.width + 4 * column;
    begin_columns(at);
    // Accumulators can't be indexed at run time without leaving their registers, so they move up; unrolled, the
    // epilogue would take most of the time to compile.
    [[dont_unroll]] for (uint r = 0; r < rows; r++) {
        store_columns(acc[0], row + r, at, operands.width - 4 * column);
        [[unroll]] for (uint i = 1; i < ROWS; i++) acc[i - 1] = acc[i];
    }
#endif
}
