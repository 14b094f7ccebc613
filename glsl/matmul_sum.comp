#version 460
//! build: LOAD=BUFFER,TEXEL OPS=PLAIN,ALL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/f16_load.glsl"
#include "lib/ops.glsl"

// Adds up the parts of a matmul whose k was split among workgroups, in their order, and runs the epilogue.

layout(local_size_x_id = 0) in;

INPUT(0, a)  // parts: [part][batch][row][a_row vec4s]
#include "lib/matmul.glsl"

void main() {
    if (!find_tile(4 * gl_WorkGroupSize.x)) return;
    uint column = tile.n * gl_WorkGroupSize.x + gl_LocalInvocationID.x, row = tile.m;
    uint at = gl_WorkGroupID.z * operands.a_inner + row * operands.a_row + min(column, operands.a_row - 1);
    vec4 sum = vec4(0);
    [[dont_unroll]] for (uint part = 0; part < operands.k; part++) sum += F(a(at + part * operands.a_outer));
    begin_columns(4 * column);
    store(sum, first_row + row, 4 * column);
}
