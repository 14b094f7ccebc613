#version 460
//! build: LOAD=BUFFER,TEXEL
//! build: LOAD=TEXEL STORE=TOGETHER
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef STORE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "lib/load.glsl"
#include "lib/division.glsl"

// Rows of a table by their numbers. A number outside the table gives a row of zeros. The module with STORE is for whole
// workgroups of whole subgroups, and for rows of multiples of four elements.

#include "lib/linear.glsl"
layout(constant_id = 3) const bool ALIGNED = false;  // rows are multiples of four elements

layout(constant_id = 4) const bool SINGLE = false;   // rows are single elements: no division by one

layout(push_constant, std430) uniform Push {
    uint count;   // elements of this window of the output
    uint first;   // where the window begins in the whole output
    uint width;   // elements of a row
    uint magic;   // division by the width
    uint shift;
    uint height;  // rows of the table
#ifdef STORE
    uint octal[8];  // 0 to 7
#endif
} push;

INPUT(0, table)
INPUT(1, rows)
#ifdef STORE
layout(binding = 2, std430) writeonly restrict buffer Out { u64vec4 result[]; };
#else
layout(binding = 2, std430) writeonly restrict buffer Out { uvec4 result[]; };
#endif

// Four elements of a row, from a multiple of four on.
uvec4 looked_up(uint element, uint width, uint height, uint magic, uint shift) {
    uint row = divide(element, magic, shift), column = element - row * width;
    uint wanted = rows(row >> 2)[row & 3u];
    uvec4 found = table((min(wanted, height - 1) * width + column) >> 2);
    return wanted < height ? found : uvec4(0);
}

#ifdef STORE

#define octal push.octal
#include "lib/together.glsl"

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint subgroup = group * gl_NumSubgroups + gl_SubgroupID;
    uint begin = subgroup * SPAN * VECS + gl_SubgroupInvocationID, at = proven(subgroup) * SPAN * VECS;
    [[unroll]] for (uint v = 0; v < VECS; v++) {
        uint element = push.first + 4 * (begin + v * SPAN);
        STORE_TOGETHER(result, at + v * SPAN, looked_up(element, push.width, push.height, push.magic, push.shift))
    }
}

#else

void main() {
    // Copies: lavapipe reads push constants lane by lane where they are first read inside of a loop.
    uint count = push.count, first = push.first, width = push.width, height = push.height;
    uint magic = push.magic, shift = push.shift;
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SPAN * SPAN) * VECS + local % SPAN;
    [[dont_unroll]] for (uint v = 0; v < VECS; v++) {
        uint i = begin + v * SPAN;
        if (4 * i >= count) break;
        uint element = first + 4 * i;
        if (ALIGNED) {
            result[i] = looked_up(element, width, height, magic, shift);
        } else {
            [[unroll]] for (uint e = 0; e < 4; e++) {
                // Beyond the end, the last element's row is looked up once more and not stored.
                uint one = min(element + e, first + count - 1);
                uint row = SINGLE ? one : divide(one, magic, shift), column = one - row * width;
                uint wanted = rows(row >> 2)[row & 3u];
                uint at = min(wanted, height - 1) * width + column;
                uint found = table(at >> 2)[at & 3u];
                if (4 * i + e < count) result[i][e] = wanted < height ? found : 0u;
            }
        }
    }
}

#endif
