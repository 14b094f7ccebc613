#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/order.glsl"
#include "lib/radix.glsl"

// How often each digit occurs in each run of a row: [row][digit][run].

INPUT(0, keys)
layout(binding = 1, std430) writeonly restrict buffer Out { uint result[]; };

void main() {
    uint unit = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (unit >= push.units) return;
    Run run = run_of(unit);
    uint shift = push.shift;
    // A byte for each digit: a run has fewer than 256 keys.
    uvec4 counts = uvec4(0);
    [[dont_unroll]] for (uint k = 0; k < run.size; k += 4) {
        uvec4 four = ALIGNED ? keys((run.begin + k) >> 2) : uvec4(0);
        [[unroll]] for (uint e = 0; e < 4; e++) {
            uint at = run.begin + min(k + e, run.size - 1);
            uint digit = (sortable(ALIGNED ? four[e] : keys(at >> 2)[at & 3u]) >> shift) & 15u;
            if (k + e < run.size) counts += one_of(digit);
        }
    }
    [[unroll]] for (uint d = 0; d < 16; d++) {
        result[(run.row * 16 + d) * push.runs + run.number] = (counts[d / 4] >> (8 * (d % 4))) & 255u;
    }
}
