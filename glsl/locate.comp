#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"

// Rows of indices, one for each of the first DEPTH dimensions of a table, become row numbers of that table. A row with
// an index outside its dimension becomes NOWHERE.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint DEPTH = 1;

#define NOWHERE 0xffffffffu

layout(push_constant, std430) uniform Push {
    uint count;       // row numbers of this window
    uint first;       // where the window begins in all of them
    uint extents[8];  // of the table, outermost first
} push;

INPUT(0, indices)
layout(binding = 1, std430) writeonly restrict buffer Out { uint result[]; };

void main() {
    uint count = push.count, first = push.first;
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (4 * i >= count) break;
        [[unroll]] for (uint e = 0; e < 4; e++) {
            uint at = first + min(4 * i + e, count - 1), row = 0;
            bool inside = true;
            [[unroll]] for (uint d = 0; d < DEPTH; d++) {
                uint place = at * DEPTH + d, index = indices(place >> 2)[place & 3u];
                inside = inside && index < push.extents[d];
                row = row * push.extents[d] + index;
            }
            if (4 * i + e < count) result[4 * i + e] = inside ? row : NOWHERE;
        }
    }
}
