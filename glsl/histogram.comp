#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"

// How often each number below a bound occurs. The result is zero before.

#include "lib/linear.glsl"
layout(constant_id = 3) const bool SHARED_BINS = false;  // at most MOST_BINS: each workgroup counts for itself first

#define MOST_BINS 2048

layout(push_constant, std430) uniform Push {
    uint count;
    uint bins;
    uint rounds;  // stretches of a workgroup, one behind the other
} push;

INPUT(0, numbers)
layout(binding = 1, std430) buffer Out { uint result[]; };

shared uint shared_bins[MOST_BINS];

void main() {
    uint count = push.count, bins = push.bins;
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (SHARED_BINS) {
        [[dont_unroll]] for (uint b = local; b < bins; b += gl_WorkGroupSize.x) shared_bins[b] = 0;
        barrier();
    }
    uint stretch = gl_WorkGroupSize.x * VEC4S;
    uint first = group * push.rounds * stretch + local / SUBGROUP * SUBGROUP * VEC4S + local % SUBGROUP;
    [[dont_unroll]] for (uint round = 0; round < push.rounds; round++) {
        [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
            uint i = first + round * stretch + v * SUBGROUP;
            if (4 * i >= count) break;
            uvec4 four = numbers(i);
            [[unroll]] for (uint e = 0; e < 4; e++) {
                if (4 * i + e < count && four[e] < bins) {
                    if (SHARED_BINS) atomicAdd(shared_bins[four[e]], 1); else atomicAdd(result[four[e]], 1);
                }
            }
        }
    }
    if (SHARED_BINS) {
        barrier();
        [[dont_unroll]] for (uint b = local; b < bins; b += gl_WorkGroupSize.x) {
            uint n = shared_bins[b];
            if (n > 0) atomicAdd(result[b], n);
        }
    }
}
