#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"

// Copies a strided view of up to eight dimensions into a dense tensor. Other kernels walk over at most four dimensions;
// a view that has more is copied first.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint DIMS = 8;      // dimensions of the view, at least 1
layout(constant_id = 4) const uint PER_WORD = 1;  // elements in a word

layout(push_constant, std430) uniform Push {
    uint count;       // words of this window of the output
    uint first;       // where the window begins in the whole output, in words
    uint last;        // the last element of the whole output
    uint offset;      // of the view's first element in the source
    uint extents[7];  // of the output, innermost first
    uint magic[7];    // division by the extents as a multiplication
    uint shifts[2];   // and a shift, 8 bits each
    uint strides[8];  // of the source, innermost first, in elements
} push;

INPUT(0, source)
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };

// Copies of them: lavapipe reads push constants lane by lane where they are first read inside of a loop. Vectors, as
// in elementwise.comp.
uvec4 extents[2], magic[2], strides[2];
uint offset, last;
uvec2 shifts;

void copy_push_constants() {
    offset = push.offset;
    last = push.last;
    shifts = uvec2(push.shifts[0], push.shifts[1]);
    [[unroll]] for (uint d = 0; d < 8; d++) {
        strides[d >> 2][d & 3u] = push.strides[d];
        if (d < 7) {
            extents[d >> 2][d & 3u] = push.extents[d];
            magic[d >> 2][d & 3u] = push.magic[d];
        }
    }
}

// Where an element of the output is in the source.
uint source_of(uint element) {
    uint at = offset, rest = element;
    [[unroll]] for (uint d = 0; d < 7; d++) {
        if (d + 1 < DIMS) {
            uint next = divide(rest, magic[d >> 2][d & 3u], (shifts[d >> 2] >> (8 * (d & 3u))) & 31u);
            at += (rest - next * extents[d >> 2][d & 3u]) * strides[d >> 2][d & 3u];
            rest = next;
        }
    }
    return at + rest * strides[(DIMS - 1) >> 2][(DIMS - 1) & 3u];
}

void main() {
    copy_push_constants();
    uint count = push.count, first = push.first;
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    const uint BITS = 32 / PER_WORD;
    [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (4 * i >= count) break;
        [[unroll]] for (uint e = 0; e < 4; e++) {
            uint word = 0;
            [[unroll]] for (uint k = 0; k < PER_WORD; k++) {
                // Beyond the end, the last element is read once more; no one reads what is stored there.
                uint at = source_of(min((first + 4 * i + e) * PER_WORD + k, last));
                uint found = source(at / (4 * PER_WORD))[(at / PER_WORD) & 3u];
                if (PER_WORD > 1) found = bitfieldExtract(found, int(at % PER_WORD * BITS), int(BITS));
                word |= found << (k * BITS & 31u);
            }
            if (4 * i + e < count) result[i][e] = word;
        }
    }
}
