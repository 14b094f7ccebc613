#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/order.glsl"

// For each element, how many elements of a sorted list come before it; with BEHIND, how many are not above it.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint KEY = 0;
layout(constant_id = 4) const bool BEHIND = false;

layout(push_constant, std430) uniform Push {
    uint count;   // elements of this window
    uint first;   // where the window begins in all of them
    uint listed;  // of the sorted list
} push;

INPUT(0, sorted)
INPUT(1, wanted)
layout(binding = 2, std430) writeonly restrict buffer Out { uint result[]; };

// NaNs are behind all else.
uint sortable(uint x) { return KEY == KEY_F32 && is_nan(x) ? 0xffffffffu : key_of(x, KEY); }

void main() {
    uint count = push.count, first = push.first, length = push.listed;
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (4 * i >= count) break;
        uvec4 four = wanted((first >> 2) + i);
        uvec4 key = uvec4(sortable(four.x), sortable(four.y), sortable(four.z), sortable(four.w));
        uvec4 low = uvec4(0), high = uvec4(length);
        // As many halvings as the longest list can take.
        [[dont_unroll]] for (uint step = 0; step < 32 && any(lessThan(low, high)); step++) {
            uvec4 middle = (low + high) >> 1;
            [[unroll]] for (uint e = 0; e < 4; e++) {
                uint at = min(middle[e], length - 1), other = sortable(sorted(at >> 2)[at & 3u]);
                bool before = BEHIND ? other <= key[e] : other < key[e];
                if (low[e] < high[e]) {
                    if (before) low[e] = middle[e] + 1; else high[e] = middle[e];
                }
            }
        }
        [[unroll]] for (uint e = 0; e < 4; e++) {
            if (4 * i + e < count) result[4 * i + e] = low[e];
        }
    }
}
