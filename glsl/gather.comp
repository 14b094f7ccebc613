#version 460
//! build: LOAD=BUFFER,TEXEL
//! build: LOAD=TEXEL STORE=UNIFORM
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

// Slices of a table along an axis, by indices. The table is [outer][height][width], and a row is the last of these. An
// index outside the table gives zeros. The module with STORE is for whole workgroups of whole subgroups, and for rows
// of multiples of four elements.

#include "lib/linear.glsl"
layout(constant_id = 3) const bool ALIGNED = false;  // rows are multiples of four elements

layout(constant_id = 4) const bool SINGLE = false;   // rows are single elements: no division by one

layout(constant_id = 5) const uint INDEXED = 0;      // what has an index
#define ROW 0      // each row of the result; the table has one outer slice
#define SLOT 1     // each of SLOTS rows, the same ones for every outer slice
#define ELEMENT 2  // each element of the result
#define FIRST 3    // the first of SLOTS rows, which follow each other in the table

layout(push_constant, std430) uniform Push {
    uint count;   // elements of this window of the output
    uint first;   // where the window begins in the whole output
    uint width;   // elements of a row
    uint magic;   // division by the width
    uint shift;
    uint height;  // rows of the table, or of an outer slice of it
    uint slots;   // rows of the result in an outer slice
    uint slots_magic;
    uint slots_shift;
#ifdef STORE
    uint digits[8];  // 0 to 7
#endif
} push;

INPUT(0, table)
INPUT(1, rows)
#ifdef STORE
layout(binding = 2, std430) writeonly restrict buffer Out { u64vec4 result[]; };
#else
layout(binding = 2, std430) writeonly restrict buffer Out { uvec4 result[]; };
#endif

// Copies: lavapipe reads push constants lane by lane where they are first read inside of a loop.
uint width, magic, shift, height, slots, slots_magic, slots_shift;

void load_push() {
    width = push.width;
    magic = push.magic;
    shift = push.shift;
    height = push.height;
    slots = push.slots;
    slots_magic = push.slots_magic;
    slots_shift = push.slots_shift;
}

// Where an element of the result is in the table; the second number is its index, which may be outside.
uvec2 source_of(uint element) {
    uint row = SINGLE ? element : divide(element, magic, shift), column = element - row * width;
    uint outer = 0, index = row;
    if (INDEXED != ROW) {
        outer = slots == 1 ? row : divide(row, slots_magic, slots_shift);
        index = INDEXED == ELEMENT ? element : row - outer * slots;
    }
    uint wanted = INDEXED == FIRST ? rows(0).x + index : rows(index >> 2)[index & 3u];
    return uvec2((outer * height + min(wanted, height - 1)) * width + column, wanted);
}

// Four elements of a row, from a multiple of four on.
uvec4 looked_up(uint element) {
    uvec2 source = source_of(element);
    uvec4 found = table(source.x >> 2);
    return source.y < height ? found : uvec4(0);
}

#ifdef STORE

#define digits push.digits
#include "lib/uniform_store.glsl"

void main() {
    load_push();
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint subgroup = group * gl_NumSubgroups + gl_SubgroupID;
    uint begin = subgroup * SUBGROUP * VEC4S + gl_SubgroupInvocationID, at = make_uniform(subgroup) * SUBGROUP * VEC4S;
    [[unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint element = push.first + 4 * (begin + v * SUBGROUP);
        UNIFORM_STORE(result, at + v * SUBGROUP, looked_up(element))
    }
}

#else

void main() {
    load_push();
    uint count = push.count, first = push.first;
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (4 * i >= count) break;
        uint element = first + 4 * i;
        if (ALIGNED) {
            result[i] = looked_up(element);
        } else {
            [[unroll]] for (uint e = 0; e < 4; e++) {
                // Beyond the end, the last element's row is looked up once more and not stored.
                uvec2 source = source_of(min(element + e, first + count - 1));
                uint found = table(source.x >> 2)[source.x & 3u];
                if (4 * i + e < count) result[i][e] = source.y < height ? found : 0u;
            }
        }
    }
}

#endif
