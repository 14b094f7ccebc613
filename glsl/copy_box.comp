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

// Puts a dense tensor into a box of a larger one: concatenation and padding. The module with STORE is for whole
// workgroups of whole subgroups, and for rows that are whole walks of a subgroup and begin at multiples of eight
// elements.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint FIT = 0;     // how a group of four lies in the output
layout(constant_id = 4) const uint DIMS = 4;    // dimensions of the input, so that no division is wasted

#define ALIGNED 1  // four neighbours of the input are four aligned ones of the output
#define ROWS 2     // a group lies in one row or in two: rows have at least four elements, without gaps between
#define SINGLE 3   // each element for itself

layout(push_constant, std430) uniform Push {
    uint count;       // elements of the input
    uint from;        // where they begin in the input's binding
    uint to;          // where the box begins in the output's binding
    uint extents[3];  // of the input, innermost first
    uint magic[3];
    uint shifts;      // 8 bits each
    uint strides[4];  // of the output, innermost first, in elements
#ifdef STORE
    uint digits[8];   // 0 to 7
};
#else
} push;
// Copies of them: lavapipe reads push constants lane by lane where they are first read inside of a loop. Vectors, as
// in elementwise.comp.
uint count, from, to, shifts;
uvec3 extents, magic;
uvec4 strides;
#endif

INPUT(0, source)
#ifdef STORE
layout(binding = 1, std430) writeonly restrict buffer Out { u64vec4 result[]; };
#else
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };
#endif

// Where a row of the input begins in the output.
uint row_begin(uint q) {
    if (DIMS <= 2) return to + q * strides[1];
    uint p = divide(q, magic[1], (shifts >> 8) & 31u);
    uint at = to + (q - p * extents[1]) * strides[1];
    if (DIMS <= 3) return at + p * strides[2];
    uint o = divide(p, magic[2], (shifts >> 16) & 31u);
    return at + (p - o * extents[2]) * strides[2] + o * strides[3];
}

#ifdef STORE

#include "lib/uniform_store.glsl"

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint element = 4 * (group * gl_NumSubgroups + gl_SubgroupID) * SUBGROUP * VEC4S;
    uint q = divide(element, magic[0], shifts & 31u);
    uint begin = (from + element) / 4 + gl_SubgroupInvocationID;
    uint at = 2 * make_uniform((row_begin(q) + element - q * extents[0]) / 8);
    [[unroll]] for (uint v = 0; v < VEC4S; v++) UNIFORM_STORE(result, at + v * SUBGROUP, source(begin + v * SUBGROUP))
}

#else

void main() {
    count = push.count;
    from = push.from;
    to = push.to;
    shifts = push.shifts;
    extents = uvec3(push.extents[0], push.extents[1], push.extents[2]);
    magic = uvec3(push.magic[0], push.magic[1], push.magic[2]);
    strides = uvec4(push.strides[0], push.strides[1], push.strides[2], push.strides[3]);
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    // A first group may begin before the first element: such elements wrap, and are never stored.
    uint skipped = FIT == ALIGNED ? 0 : from & 3u;
    [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint group4 = begin + v * SUBGROUP;
        uint element = 4 * group4 - skipped;
        if (int(element) >= int(count)) break;
        uvec4 elements = source((from >> 2) + group4);
        uint q = DIMS == 1 ? 0 : divide(max(int(element), 0), magic[0], shifts & 31u);
        uint column = element - q * extents[0];
        if (DIMS == 1) column = element;
        uint row = row_begin(q);
        if (FIT == ALIGNED) {
            result[(row + column) >> 2] = elements;
        } else if (FIT == ROWS) {
            uint next = row_begin(q + 1) - extents[0];
            [[unroll]] for (uint e = 0; e < 4; e++) {
                uint at = (column + e < extents[0] ? row : next) + column + e;
                if (element + e < count) result[at >> 2][at & 3u] = elements[e];
            }
        } else {
            [[unroll]] for (uint e = 0; e < 4; e++) {
                uint q = DIMS == 1 ? 0 : divide(element + e, magic[0], shifts & 31u);
                uint column = DIMS == 1 ? element + e : element + e - q * extents[0];
                uint at = row_begin(q) + column * strides[0];
                if (element + e < count) result[at >> 2][at & 3u] = elements[e];
            }
        }
    }
}

#endif
