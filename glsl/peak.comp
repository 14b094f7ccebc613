#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"

// What the device can do at best: multiply-adds in registers, and reads of a working set again and again. Profiles
// compare other kernels with it.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint KIND = 0;

#define MULTIPLY_ADD 0  // whether that is one instruction or two is the compiler's choice
#define FUSED 1
#define READ 2

layout(push_constant, std430) uniform Push {
    uint rounds;
    uint mask;    // groups of four elements in the working set, a power of two, less one
    float factor;
    float summand;
};

INPUT(0, data)
layout(binding = 1, std430) writeonly restrict buffer Out { uint result[]; };

vec4 step_(vec4 a) {
    return KIND == FUSED ? fma(a, vec4(factor), vec4(summand)) : a * factor + summand;
}

// Eight chains that do not wait for each other, 16 steps per round: 256 operations.
float multiply_add() {
    vec4 a = vec4(gl_LocalInvocationID.x, 1, 2, 3), b = a + 4;
    [[dont_unroll]] for (uint r = 0; r < rounds; r++) {
        [[unroll]] for (uint s = 0; s < 16; s++) {
            a = step_(a);
            b = step_(b);
        }
    }
    return dot(a, b);
}

// Eight reads of 16 bytes per round, each of a whole workgroup's width.
uint read() {
    uint at = gl_WorkGroupID.x * gl_WorkGroupSize.x * 8 * rounds + gl_LocalInvocationID.x;
    uvec4 sum = uvec4(0);
    [[dont_unroll]] for (uint r = 0; r < rounds; r++) {
        [[unroll]] for (uint s = 0; s < 8; s++) {
            sum ^= data(at & mask);
            at += gl_WorkGroupSize.x;
        }
    }
    return sum.x ^ sum.y ^ sum.z ^ sum.w;
}

void main() {
    uint outcome = KIND == READ ? read() : floatBitsToUint(multiply_add());
    // Never true (the data are zeros, the chains end at a small number), but no compiler knows.
    if (outcome == 0x7f800001u) result[0] = outcome;
}
