#version 460
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#define BLOCK 8
#include "lib/sum.glsl"
#include "lib/monoid.glsl"

// Reductions of many short rows. An invocation takes four neighbouring rows side by side: their EXTENT x 4 elements are
// EXTENT whole texels wherever they lie, and their results one.

layout(local_size_x_id = 0) in;
layout(constant_id = 5) const uint EXTENT = 4;

layout(push_constant, std430) uniform Push {
    uint rows;
    uint last;  // the last texel of the input
};

INPUT(0, input0)
#if INPUTS > 1
INPUT(1, input1)  // the means
#endif
layout(binding = INPUTS, std430) writeonly restrict buffer Out { uvec4 result[]; };

uvec4 texels[EXTENT];

uint element(uint i) { return texels[i >> 2][i & 3u]; }

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint four = group * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    if (4 * four >= rows) return;
    vec4 mean = vec4(0);
#if INPUTS > 1
    mean = F(input1(four));
#endif
    // Rows beyond the end repeat the last one; their results are not stored.
    [[unroll]] for (uint i = 0; i < EXTENT; i++) texels[i] = input0(min(four * EXTENT + i, last));
    State state = identity();
    [[unroll]] for (uint k = 0; k < EXTENT; k++) {
        uvec4 x = uvec4(element(k), element(EXTENT + k), element(2 * EXTENT + k), element(3 * EXTENT + k));
        absorb(state, term(x, uvec4(0), mean), bvec4(true), uvec4(k));
    }
    uvec4 r = finish(state, EXTENT);
    if (4 * four + 4 <= rows) {
        result[four] = r;
    } else {
        [[dont_unroll]] for (uint k = 0; k < (rows & 3u); k++) result[four][k] = r[k];
    }
}
