#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/philox.glsl"

// Tensors from nothing: counts and random numbers.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint KIND = 0;

#define IOTA_U32 0
#define IOTA_F32 1
#define UNIFORM 2
#define NORMAL 3

layout(push_constant, std430) uniform Push {
    uint count;  // elements of this window of the output
    uint first;  // where the window begins in the whole output, a multiple of 4
    uvec2 seed;
};

layout(binding = 0, std430) writeonly restrict buffer Out { uvec4 result[]; };

uvec4 generate(uint element) {
    if (KIND == IOTA_U32) return element + uvec4(0, 1, 2, 3);
    if (KIND == IOTA_F32) return floatBitsToUint(vec4(element + uvec4(0, 1, 2, 3)));
    uvec4 bits = philox(uvec4(element >> 2, 0, 0, 0), seed);
    if (KIND == UNIFORM) return floatBitsToUint(unit(bits));
    return floatBitsToUint(normal(bits));
}

void main() {
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    uint whole = count >> 2;
    [[unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (i < whole) result[i] = generate(first + 4 * i);
    }
    // The last one to three elements: a loop that hardly ever runs, since a software driver runs both sides of a
    // branch.
    uint tail = group == whole / (gl_WorkGroupSize.x * VEC4S) && local == 0 ? count & 3u : 0u;
    [[dont_unroll]] for (uint e = 0; e < tail; e++) result[whole][e] = generate(first + 4 * whole)[e];
}
