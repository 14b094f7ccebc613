#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/math.glsl"
#include "lib/window.glsl"

// One number from each window of an image, of up to three dimensions: the largest, its place, a mean, a norm. Four
// neighbours of the output at a time. All of them take as many steps, and leave out what lies outside.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint KIND = 0;
layout(constant_id = 4) const bool ADAPTIVE = false;  // windows are those that cut the image into as many as there are outputs

#define MAX 0
#define PLACE 1    // of the largest, counted through the image
#define MEAN 2     // of the elements inside
#define MEAN_ALL 3 // with zeros for those of the padding
#define NORM 4     // (sum of |x|^p)^(1/p)

layout(push_constant, std430) uniform Push {
    uint count;        // elements of this window of the output
    uint first;        // where the window begins in the whole output
    uint extents[3];   // of the output, innermost first
    uint magic[3];     // division by them
    uint shifts;
    uint image[3];     // extents of the input
    uint strides[3];
    uint dilation[3];
    int before[3];     // padding
    uint after[3];     // input and padding behind it, from the input's first element on
    uint window[3];    // steps of a window, of the largest one if they differ
    float p;
} push;
// Copies of them: lavapipe reads push constants lane by lane where they are first read inside of a loop.
uvec3 extents, magic, image, strides, dilation, after, window;
ivec3 before;
uint shifts;
float p;

void copy_push_constants() {
    extents = uvec3(push.extents[0], push.extents[1], push.extents[2]);
    magic = uvec3(push.magic[0], push.magic[1], push.magic[2]);
    image = uvec3(push.image[0], push.image[1], push.image[2]);
    strides = uvec3(push.strides[0], push.strides[1], push.strides[2]);
    dilation = uvec3(push.dilation[0], push.dilation[1], push.dilation[2]);
    before = ivec3(push.before[0], push.before[1], push.before[2]);
    after = uvec3(push.after[0], push.after[1], push.after[2]);
    window = uvec3(push.window[0], push.window[1], push.window[2]);
    shifts = push.shifts;
    p = push.p;
}

INPUT(0, source)
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };

// Where the windows of four outputs begin in one dimension, and behind the last step that counts.
struct Reach {
    ivec4 begin, steps;
};

Reach reach_of(uvec4 at, uint d) {
    Reach r;
    if (ADAPTIVE) {
        r.begin = ivec4(at * image[d] / extents[d]);
        r.steps = ivec4(((at + 1u) * image[d] + extents[d] - 1u) / extents[d]) - r.begin;
    } else {
        r.begin = ivec4(at * strides[d]) - before[d];
        // Steps up to the end of the padding.
        ivec4 left = int(after[d]) - r.begin;
        r.steps = max((left + int(dilation[d]) - 1) / int(dilation[d]), ivec4(0));
    }
    return r;
}

// How many steps of each window count.
vec4 divisor(Reach x, Reach y, Reach z) {
    ivec4 n = min(x.steps, ivec4(window.x)) * min(y.steps, ivec4(window.y)) * min(z.steps, ivec4(window.z));
    return vec4(n);
}

bvec4 both(bvec4 a, bvec4 b) { return bvec4(uvec4(a) & uvec4(b)); }

bvec4 inside(ivec4 at, uint d) { return lessThan(uvec4(at), uvec4(image[d])); }

// Integers in the order of the floats, -0 below +0 and NaN on top. Its own inverse.
ivec4 key_of(uvec4 a) {
    ivec4 key = ivec4(a ^ (uvec4(ivec4(a) >> 31) >> 1));
    return mix(key, ivec4(0x7fffffff), is_nan(a));
}

uvec4 of_key(ivec4 key) { return uvec4(key) ^ (uvec4(key >> 31) >> 1); }

// What is kept of a window on the way through it.
ivec4 best;
uvec4 place;
vec4 sum, counted;

void take(uvec4 at, bvec4 counts) {
    uvec4 x;
    [[unroll]] for (uint e = 0; e < 4; e++) x[e] = source(at[e] >> 2)[at[e] & 3u];
    if (KIND == MAX || KIND == PLACE) {
        ivec4 key = key_of(x);
        // A zero's sign does not make it larger where the place is asked for.
        if (KIND == PLACE) key = mix(key, ivec4(0), equal(key, ivec4(-1)));
        bvec4 larger = both(greaterThan(key, best), counts);
        best = mix(best, key, larger);
        if (KIND == PLACE) place = mix(place, at, larger);
    } else {
        vec4 added = F(x);
        if (KIND == NORM) {
            added = F(magnitude(x));
            if (p == 2.0) {
                precise vec4 square = added * added;
                added = square;
            } else if (p != 1.0) {
                added = pow_f32(added, vec4(p));
            }
        }
        precise vec4 more = sum + mix(vec4(0.0), added, counts);
        sum = more;
        counted += mix(vec4(0.0), vec4(1.0), counts);
    }
}

uvec4 finished(vec4 all, uvec4 images) {
    // A window without elements has -infinity.
    if (KIND == MAX) return mix(of_key(best), uvec4(0xff800000u), equal(best, ivec4(0x80000000)));
    if (KIND == PLACE) return place - images * (image[0] * image[1] * image[2]);
    precise vec4 r = sum;
    if (KIND == MEAN) r = sum / counted;
    if (KIND == MEAN_ALL) r = sum / all;
    if (KIND == NORM && p == 2.0) r = sqrt(sum);
    if (KIND == NORM && p != 2.0 && p != 1.0) {
        precise vec4 inverse = vec4(1.0 / p);
        r = pow_f32(sum, inverse);
    }
    return U(r);
}

uvec4 pooled(uvec4 elements) {
    uvec4 column, row, layer, images;
    [[unroll]] for (uint e = 0; e < 4; e++) {
        uvec4 at = place_of(elements[e], extents, magic, shifts);
        column[e] = at.x;
        row[e] = at.y;
        layer[e] = at.z;
        images[e] = at.w;
    }
    Reach x = reach_of(column, 0), y = reach_of(row, 1), z = reach_of(layer, 2);
    best = ivec4(0x80000000);
    place = images * (image.x * image.y * image.z);
    sum = vec4(0.0);
    counted = vec4(0.0);
    [[dont_unroll]] for (uint k = 0; k < window.z; k++) {
        ivec4 az = z.begin + int(k * dilation[2]);
        bvec4 in_z = both(inside(az, 2), lessThan(ivec4(k), z.steps));
        [[dont_unroll]] for (uint j = 0; j < window.y; j++) {
            ivec4 ay = y.begin + int(j * dilation[1]);
            bvec4 in_y = both(both(inside(ay, 1), lessThan(ivec4(j), y.steps)), in_z);
            // The first element stands for those outside.
            uvec4 line = mix(uvec4(0), (images * image[2] + uvec4(az)) * image[1] + uvec4(ay), in_y);
            [[dont_unroll]] for (uint i = 0; i < window.x; i++) {
                ivec4 ax = x.begin + int(i * dilation[0]);
                bvec4 counts = both(both(inside(ax, 0), lessThan(ivec4(i), x.steps)), in_y);
                take(mix(uvec4(0), line * image[0] + uvec4(ax), counts), counts);
            }
        }
    }
    return finished(divisor(x, y, z), images);
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
        uvec4 r = pooled(elements);
        if (4 * i + 4 <= count) {
            result[i] = r;
        } else {
            [[dont_unroll]] for (uint e = 0; e < (count & 3u); e++) result[i][e] = r[e];
        }
    }
}
