#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/math.glsl"
#include "lib/exp.glsl"

// Attention whose keys were cut into parts: what the parts have summed up becomes the result. Of each row of each part
// there are the sums, then the largest score and the sum of weights. An invocation makes four neighbours.

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
    uint vec4s;    // of the result in this dispatch
    uint rows;    // of one head of k and v: row = token * group + head in the group
    uint tokens;
    uint group;
    uint parts;
    uint width;   // vec4s in a row
    uint out_origin;  // where the binding begins in the output, in vec4s
    uint first;   // vec of the output
};

INPUT(0, sums_of_parts)
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };

void main() {
    uint group_id = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint i = group_id * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (i >= vec4s) return;
    uint row = i / width, column = i - row * width, head = row / rows;
    // In the output rows lie head by head.
    uint within = row - head * rows, of_group = within / tokens, token = within - of_group * tokens;
    uint pitch = width + 1, step = rows * pitch;
    uint at = head * parts * step + (token * group + of_group) * pitch;
    float top = -3.40282347e38;
    [[dont_unroll]] for (uint p = 0; p < parts; p++) top = max(top, F(sums_of_parts(at + p * step + width).x));
    vec4 acc = vec4(0);
    float sum = 0;
    [[dont_unroll]] for (uint p = 0; p < parts; p++) {
        uvec4 state = sums_of_parts(at + p * step + width);
        vec4 t = vec4(F(state.x) - top);
        float fade = F(mix(U(rough_exp_not_above_one(t)), U(t), is_nan(U(t)))).x;
        sum += fade * F(state.y);
        acc += fade * F(sums_of_parts(at + p * step + column));
    }
    vec4 share = F(mix(U(vec4(1.0 / sum)), uvec4(0), equal(vec4(sum), vec4(0))));
    result[first + i - out_origin] = U(acc * share);
}
