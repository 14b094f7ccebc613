#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/math.glsl"
#include "lib/division.glsl"

// Cosines and sines of rotary embedding: [2][tokens][depth], of position * base^(-2 pair / depth), with the sign with
// which the other one of a pair is added. Angles are turns in fixed point with 64 bits, so no position is too large.

#include "lib/linear.glsl"
layout(constant_id = 3) const bool INTERLEAVED = false;  // pairs are neighbours, or lie half of the depth apart
layout(constant_id = 4) const bool START = false;        // the only position is that of the first token

layout(push_constant, std430) uniform Push {
    uint count;  // elements of this window of the output
    uint first;  // where the window begins in the whole output, a multiple of 4
    uint depth;
    uint depth_magic;
    uint depth_shift;
    uint tokens;
    uint powers[18];  // base^(-2 * 2^k / depth) as 64 bits behind the point, the low word first
};

layout(binding = 0, std430) readonly buffer Positions { uint positions[]; };
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };

#define PAIR_BITS 9

// The upper 64 bits of a product.
uvec2 product(uvec2 a, uvec2 b) {
    uint low, carry, high, middle, other, unused;
    umulExtended(a.x, b.x, carry, unused);
    umulExtended(a.x, b.y, middle, low);
    uint sum = low + carry;
    uint up = middle + (sum < carry ? 1 : 0);
    umulExtended(a.y, b.x, other, low);
    sum += low;
    up += sum < low ? 1 : 0;
    umulExtended(a.y, b.y, high, low);
    uint r = low + up;
    high += r < up ? 1 : 0;
    low = r + other;
    high += low < other ? 1 : 0;
    return uvec2(low, high);
}

uint made(uint element) {
    uint row = divide(element, depth_magic, depth_shift), column = element - row * depth;
    bool sine = row >= tokens;
    uint token = sine ? row - tokens : row, half_depth = depth / 2;
    uint pair = INTERLEAVED ? column / 2 : column % half_depth;
    bool first_of_pair = INTERLEAVED ? (column & 1u) == 0 : column < half_depth;
    uint position = START ? positions[0] + token : positions[token];
    // 1 / (2 pi): turns in a radian.
    uvec2 turns = uvec2(0x9391054au, 0x28be60dbu);
    [[unroll]] for (uint k = 0; k < PAIR_BITS; k++) {
        uvec2 factor = uvec2(powers[2 * k], powers[2 * k + 1]);
        if ((pair >> k & 1u) != 0) turns = product(turns, factor);
    }
    uint phase, unused;
    umulExtended(turns.x, position, phase, unused);
    phase += turns.y * position;
    uint quadrant = (phase + 0x20000000u) >> 30;
    vec4 r = vec4(float(int(phase - (quadrant << 30))) * 1.46291808e-9);
    uint value = sin_of_quadrant(r, uvec4(quadrant + (sine ? 0 : 1))).x;
    return value ^ (sine && first_of_pair ? 0x80000000u : 0);
}

void main() {
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (4 * i >= count) break;
        // There are whole groups of four: two of everything.
        uvec4 r;
        [[dont_unroll]] for (uint e = 0; e < 4; e++) r[e] = made(first + 4 * i + e);
        result[i] = r;
    }
}
