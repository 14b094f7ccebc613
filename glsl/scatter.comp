#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"

// Updates go to places that indices name, by atomic operations whose order does not show in the result. The result is
// [outer][height][width], the updates are [outer][slots][width], and each slot has an index. What an index outside the
// height names is dropped.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint KIND = 0;
#define ADD 0
#define MAX_I32 1
#define MAX_U32 2
#define MIN_I32 3
#define MIN_U32 4
#define MAX_F32 5
#define MIN_F32 6
#define LAST 7   // no updates: one more than the last slot that names the place
#define STORE 8  // no two slots name one place
#define RUN 9    // the same; the one index is the first slot's, and the others follow it

layout(push_constant, std430) uniform Push {
    uint count;  // updates of this window
    uint first;  // where the window begins in all of them
    uint width;
    uint magic;  // division by the width
    uint shift;
    uint slots;
    uint slots_magic;
    uint slots_shift;
    uint height;
} push;

INPUT(0, indices)
INPUT(1, updates)
// The same memory twice: atomic operations go by the type of the variable.
layout(binding = 2, std430) buffer Unsigned { uint result[]; };
layout(binding = 3, std430) buffer Signed { int result_signed[]; };

void put(uint at, uint bits, uint slot) {
    if (KIND == ADD) {
        atomicAdd(result[at], bits);
    } else if (KIND == MAX_I32) {
        atomicMax(result_signed[at], int(bits));
    } else if (KIND == MAX_U32) {
        atomicMax(result[at], bits);
    } else if (KIND == MIN_I32) {
        atomicMin(result_signed[at], int(bits));
    } else if (KIND == MIN_U32) {
        atomicMin(result[at], bits);
    } else if (KIND == LAST) {
        atomicMax(result[at], slot + 1);
    } else if (KIND == STORE || KIND == RUN) {
        result[at] = bits;
    } else {
        // Floats with a clear sign order as integers do, those with a sign the other way round, and lie above the
        // others where bits are unsigned. A NaN takes the sign with which it wins.
        bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
        bool has_sign = is_nan ? KIND == MIN_F32 : (bits & 0x80000000u) != 0;
        uint with_nan = is_nan ? (KIND == MIN_F32 ? 0xffffffffu : 0x7fffffffu) : bits;
        if (KIND == MAX_F32) {
            if (has_sign) atomicMin(result[at], with_nan); else atomicMax(result_signed[at], int(with_nan));
        } else {
            if (has_sign) atomicMax(result[at], with_nan); else atomicMin(result_signed[at], int(with_nan));
        }
    }
}

void main() {
    uint count = push.count, first = push.first, width = push.width, magic = push.magic, shift = push.shift;
    uint slots = push.slots, slots_magic = push.slots_magic, slots_shift = push.slots_shift, height = push.height;
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (4 * i >= count) break;
        uint element = first + 4 * i;
        uvec4 four = KIND == LAST ? uvec4(0) : updates(element >> 2);
        [[unroll]] for (uint e = 0; e < 4; e++) {
            uint one = element + e;
            uint row = width == 1 ? one : divide(one, magic, shift);
            uint outer = slots == 1 ? row : divide(row, slots_magic, slots_shift);
            uint slot = row - outer * slots;
            uint index = KIND == RUN ? indices(0).x + slot : indices(slot >> 2)[slot & 3u];
            uint at = (outer * height + index) * width + one - row * width;
            if (4 * i + e < count && index < height) put(at, four[e], slot);
        }
    }
}
