#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/order.glsl"
#include "lib/radix.glsl"

// Keys, and the places where they come from, go where their digit's turn is: as many places behind the first of its run
// as the run has such digits before. Equal digits keep their order.

layout(constant_id = 5) const bool LAST = false;        // keys become elements again
layout(constant_id = 6) const bool WITH_KEYS = true;    // they are wanted
layout(constant_id = 7) const bool WITH_PLACES = false;

INPUT(0, keys)
INPUT(1, firsts)
INPUT(2, places)
layout(binding = 3, std430) writeonly restrict buffer Keys { uint result[]; };
layout(binding = 4, std430) writeonly restrict buffer Places { uint result_places[]; };

void main() {
    uint unit = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (unit >= push.units) return;
    Run run = run_of(unit);
    uint shift = push.shift;
    uvec4 first[4], counts = uvec4(0);
    [[unroll]] for (uint d = 0; d < 16; d++) {
        uint at = (run.row * 16 + d) * push.runs + run.number;
        first[d / 4][d % 4] = firsts(at >> 2)[at & 3u];
    }
    [[dont_unroll]] for (uint k = 0; k < run.size; k += 4) {
        uvec4 four = ALIGNED ? keys((run.begin + k) >> 2) : uvec4(0);
        uvec4 four_places = ALIGNED && WITH_PLACES && !ENCODE ? places((run.begin + k) >> 2) : uvec4(0);
        [[unroll]] for (uint e = 0; e < 4; e++) {
            uint at = run.begin + min(k + e, run.size - 1);
            uint key = sortable(ALIGNED ? four[e] : keys(at >> 2)[at & 3u]);
            uint digit = (key >> shift) & 15u, quarter = digit >> 2, byte = digit & 3u;
            uvec4 low = quarter == 0 ? first[0] : first[1], high = quarter == 2 ? first[2] : first[3];
            uvec4 begins = quarter < 2 ? low : high;
            uvec2 pair = byte < 2 ? begins.xy : begins.zw;
            uint begin = (byte & 1u) == 0 ? pair.x : pair.y;
            uvec2 counted = quarter < 2 ? counts.xy : counts.zw;
            uint before = ((quarter & 1u) == 0 ? counted.x : counted.y) >> (8 * byte) & 255u;
            uint to = begin + before;
            if (k + e < run.size) {
                counts += one_of(digit);
                if (WITH_KEYS) result[to] = LAST ? sorted_element(key) : key;
                if (WITH_PLACES) {
                    uint place = at - run.row * push.extent;
                    if (!ENCODE) place = ALIGNED ? four_places[e] : places(at >> 2)[at & 3u];
                    result_places[to] = place;
                }
            }
        }
    }
}
