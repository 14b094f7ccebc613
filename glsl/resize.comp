#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/window.glsl"

// Images of up to three dimensions with other extents: each element from its neighbours in the source. Where it lies
// there is a fraction of whole numbers, so that no rounding moves it to another element.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint MODE = 0;

#define NEAREST 0  // of two the lower
#define FLOOR 1
#define LINEAR 2
#define CUBIC 3

layout(push_constant, std430) uniform Push {
    uint count;        // elements of this window of the output
    uint first;        // where the window begins in the whole output
    uint extents[3];   // of the output, innermost first
    uint magic[3];     // division by them
    uint shifts;
    uint image[3];     // extents of the source
    uint factor[3];    // the element x of the output lies at (x * factor + offset) / divisor - 1
    uint offset[3];
    uint divisor[3];
    uint magic_divisor[3];
    uint shifts_divisor;
    uint taps[3];      // neighbours that count
} push;
// Copies of them: lavapipe reads push constants lane by lane where they are first read inside of a loop.
uvec3 extents, magic, image, factor, offset, divisor, magic_divisor, taps;
uint shifts, shifts_divisor;

void copy_push_constants() {
    extents = uvec3(push.extents[0], push.extents[1], push.extents[2]);
    magic = uvec3(push.magic[0], push.magic[1], push.magic[2]);
    image = uvec3(push.image[0], push.image[1], push.image[2]);
    factor = uvec3(push.factor[0], push.factor[1], push.factor[2]);
    offset = uvec3(push.offset[0], push.offset[1], push.offset[2]);
    divisor = uvec3(push.divisor[0], push.divisor[1], push.divisor[2]);
    magic_divisor = uvec3(push.magic_divisor[0], push.magic_divisor[1], push.magic_divisor[2]);
    taps = uvec3(push.taps[0], push.taps[1], push.taps[2]);
    shifts = push.shifts;
    shifts_divisor = push.shifts_divisor;
}

INPUT(0, source)
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };

// Where four outputs lie in one dimension: the element below, and how far above it.
struct Place {
    ivec4 below;
    vec4 fraction;
};

Place place_in(uvec4 at, uint d) {
    uvec4 n = at * factor[d] + offset[d], q;
    if (divisor[d] == 1) q = n;
    else [[unroll]] for (uint e = 0; e < 4; e++) q[e] = divide(n[e], magic_divisor[d], (shifts_divisor >> (8 * d)) & 31u);
    Place place;
    place.below = ivec4(q) - 1;
    uvec4 rest = n - q * divisor[d];
    if (MODE == NEAREST) place.below += ivec4(greaterThan(2u * rest, uvec4(divisor[d])));
    precise vec4 fraction = vec4(rest) / float(divisor[d]);
    place.fraction = fraction;
    return place;
}

// The element of the k-th neighbour, that of the border where there is none.
ivec4 neighbour(Place place, uint k, uint d) {
    int shift = MODE == CUBIC && taps[d] > 1 ? 1 : 0;
    return clamp(place.below + int(k) - shift, ivec4(0), ivec4(image[d]) - 1);
}

// How much the k-th neighbour counts. Keys' cubic with a = -3/4.
vec4 weight(Place place, uint k, uint d) {
    vec4 t = place.fraction;
    if (MODE < LINEAR || taps[d] == 1) return vec4(1.0);
    if (MODE == LINEAR) {
        precise vec4 r = mix(t, 1.0 - t, bvec4(k == 0));
        return r;
    }
    precise vec4 x = k == 0 ? t + 1.0 : k == 1 ? t : k == 2 ? 1.0 - t : 2.0 - t;
    precise vec4 near = ((1.25 * x - 2.25) * x) * x + 1.0;
    precise vec4 far = ((-0.75 * x + 3.75) * x - 6.0) * x + 3.0;
    return k == 1 || k == 2 ? near : far;
}

vec4 elements_at(uvec4 at) {
    uvec4 x;
    [[unroll]] for (uint e = 0; e < 4; e++) x[e] = source(at[e] >> 2)[at[e] & 3u];
    return uintBitsToFloat(x);
}

uvec4 resized(uvec4 elements) {
    uvec4 column, row, layer, images;
    [[unroll]] for (uint e = 0; e < 4; e++) {
        uvec4 at = place_of(elements[e], extents, magic, shifts);
        column[e] = at.x;
        row[e] = at.y;
        layer[e] = at.z;
        images[e] = at.w;
    }
    Place x = place_in(column, 0), y = place_in(row, 1), z = place_in(layer, 2);
    precise vec4 sum = vec4(0.0);
    [[dont_unroll]] for (uint k = 0; k < taps.z; k++) {
        uvec4 plane = (images * image.z + uvec4(neighbour(z, k, 2))) * image.y;
        precise vec4 in_plane = vec4(0.0);
        [[dont_unroll]] for (uint j = 0; j < taps.y; j++) {
            uvec4 line = (plane + uvec4(neighbour(y, j, 1))) * image.x;
            precise vec4 in_line = vec4(0.0);
            [[dont_unroll]] for (uint i = 0; i < taps.x; i++) {
                vec4 value = elements_at(line + uvec4(neighbour(x, i, 0)));
                if (MODE < LINEAR) return floatBitsToUint(value);
                in_line = in_line + value * weight(x, i, 0);
            }
            in_plane = in_plane + in_line * weight(y, j, 1);
        }
        sum = sum + in_plane * weight(z, k, 2);
    }
    return floatBitsToUint(sum);
}

void main() {
    copy_push_constants();
    uint count = push.count, first = push.first;
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    [[dont_unroll]] for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (4 * i >= count) break;
        // Beyond the end it is the last element once more, which is not stored.
        uvec4 elements = first + min(4 * i + uvec4(0, 1, 2, 3), uvec4(count - 1));
        uvec4 r = resized(elements);
        if (4 * i + 4 <= count) {
            result[i] = r;
        } else {
            [[dont_unroll]] for (uint e = 0; e < (count & 3u); e++) result[i][e] = r[e];
        }
    }
}
