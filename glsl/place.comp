#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"

// Puts a dense tensor into a box of a larger one: concatenation and padding.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint VECS = 8;      // groups of four elements per invocation
layout(constant_id = 2) const uint SPAN = 8;      // neighbouring invocations that walk side by side
layout(constant_id = 3) const bool ALIGNED = false;  // four neighbours of the input are four aligned ones of the output

layout(push_constant, std430) uniform Push {
    uint count;       // elements of the input
    uint from;        // where they begin in the input's binding, a multiple of 4
    uint to;          // where the box begins in the output's binding
    uint extents[3];  // of the input, innermost first
    uint magic[3];
    uint shifts;      // 8 bits each
    uint strides[4];  // of the output, innermost first, in elements
};

INPUT(0, source)
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };

// Where an element of the input goes.
uint locate(uint element) {
    uint q = divide(element, magic[0], shifts & 31u);
    uint at = to + (element - q * extents[0]) * strides[0];
    uint p = divide(q, magic[1], (shifts >> 8) & 31u);
    at += (q - p * extents[1]) * strides[1];
    uint o = divide(p, magic[2], (shifts >> 16) & 31u);
    return at + (p - o * extents[2]) * strides[2] + o * strides[3];
}

void main() {
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SPAN * SPAN) * VECS + local % SPAN;
    [[dont_unroll]] for (uint v = 0; v < VECS; v++) {
        uint i = begin + v * SPAN;
        if (4 * i >= count) break;
        uvec4 elements = source((from >> 2) + i);
        if (ALIGNED) {
            result[locate(4 * i) >> 2] = elements;
        } else {
            [[dont_unroll]] for (uint e = 0; e < min(4u, count - 4 * i); e++) {
                uint at = locate(4 * i + e);
                result[at >> 2][at & 3u] = elements[e];
            }
        }
    }
}
