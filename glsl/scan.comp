#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/order.glsl"

// Scans along the middle of [outer][extent][inner], cut into parts. An invocation walks through one part of a row, or
// of a column, or of four columns side by side. One pass makes the totals of the parts, and one the scan, each part
// from what the parts before it come to. No invocation waits for another one, and the order of additions is fixed.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint MONOID = 0;
#define SUM_F32 0
#define SUM_U32 1
#define PRODUCT_F32 2
#define PRODUCT_U32 3
#define LARGEST 4   // of keys
#define SMALLEST 5  // of keys

layout(constant_id = 2) const uint KEY = 0;  // the element type of keys, as in lib/order.glsl
layout(constant_id = 3) const uint WALK = 0;
#define SINGLE 0   // element by element
#define ALONG 1    // rows, by groups of four
#define ACROSS 2   // four columns at a time

layout(constant_id = 4) const uint PASS = 0;
#define TOTALS 0
#define ALONE 1    // a scan whose parts are whole rows or columns
#define CARRIED 2  // a scan that begins with carries

layout(constant_id = 5) const bool EXCLUSIVE = false;
layout(constant_id = 6) const bool REVERSE = false;

layout(push_constant, std430) uniform Push {
    uint units;    // parts of all rows or columns
    uint columns;  // side by side
    uint columns_magic;
    uint columns_shift;
    uint parts;
    uint parts_magic;
    uint parts_shift;
    uint extent;
    uint chunk;    // of a part; the last one may be shorter
    uint inner;
} push;

INPUT(0, source)
INPUT(1, carries)
layout(binding = 2, std430) writeonly restrict buffer Out { uvec4 result[]; };

uint identity() {
    if (MONOID == PRODUCT_F32) return floatBitsToUint(1.0);
    if (MONOID == PRODUCT_U32) return 1u;
    return MONOID == SMALLEST ? 0xffffffffu : 0u;
}

uint joined(uint a, uint b) {
    precise float sum = uintBitsToFloat(a) + uintBitsToFloat(b), product = uintBitsToFloat(a) * uintBitsToFloat(b);
    if (MONOID == SUM_F32) return floatBitsToUint(sum);
    if (MONOID == SUM_U32) return a + b;
    if (MONOID == PRODUCT_F32) return floatBitsToUint(product);
    if (MONOID == PRODUCT_U32) return a * b;
    return MONOID == LARGEST ? max(a, b) : min(a, b);
}

uint term(uint x) {
    if (MONOID < LARGEST) return x;
    // A NaN wins.
    if (KEY == KEY_F32 && is_nan(x)) return MONOID == LARGEST ? 0xffffffffu : 0u;
    return key_of(x, KEY);
}

uint finished(uint x) {
    if (MONOID < LARGEST) return x;
    if (KEY == KEY_F32) {
        uint nan = MONOID == LARGEST ? 0xffffffffu : 0u, nothing = ~nan;
        if (x == nan) return 0x7fc00000u;
        if (x == nothing) return MONOID == LARGEST ? 0xff800000u : 0x7f800000u;
    }
    return element_of(x, KEY);
}

uvec4 joined(uvec4 a, uvec4 b) {
    return uvec4(joined(a.x, b.x), joined(a.y, b.y), joined(a.z, b.z), joined(a.w, b.w));
}
uvec4 term(uvec4 x) { return uvec4(term(x.x), term(x.y), term(x.z), term(x.w)); }
uvec4 finished(uvec4 x) { return uvec4(finished(x.x), finished(x.y), finished(x.z), finished(x.w)); }

void main() {
    uint units = push.units, columns = push.columns, parts = push.parts, extent = push.extent, inner = push.inner;
    uint unit = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (unit >= units) return;
    uint row = columns == 1 ? unit : divide(unit, push.columns_magic, push.columns_shift);
    uint column = unit - row * columns;
    uint outer = parts == 1 ? row : divide(row, push.parts_magic, push.parts_shift), part = row - outer * parts;
    uint skip = part * push.chunk, size = min(push.chunk, extent - skip);
    uint begin = (outer * extent + skip) * inner;
    uvec4 state = uvec4(identity());
    if (PASS == CARRIED) state = WALK == ACROSS ? carries(unit) : uvec4(carries(unit >> 2)[unit & 3u]);
    uint steps = WALK == ALONG ? size / 4 : size;
    [[dont_unroll]] for (uint k = 0; k < steps; k++) {
        uint step = REVERSE ? steps - 1 - k : k;
        if (WALK == ALONG) {
            uint at = begin / 4 + step;
            uvec4 x = term(source(at)), scanned;
            if (REVERSE) x = x.wzyx;
            scanned.x = joined(state.x, x.x);
            scanned.y = joined(scanned.x, x.y);
            scanned.z = joined(scanned.y, x.z);
            scanned.w = joined(scanned.z, x.w);
            uvec4 stored = finished(EXCLUSIVE ? uvec4(state.x, scanned.xyz) : scanned);
            if (PASS != TOTALS) result[at] = REVERSE ? stored.wzyx : stored;
            state.x = scanned.w;
        } else if (WALK == ACROSS) {
            uint at = (begin + step * inner) / 4 + column;
            uvec4 scanned = joined(state, term(source(at)));
            if (PASS != TOTALS) result[at] = finished(EXCLUSIVE ? state : scanned);
            state = scanned;
        } else {
            uint at = begin + step * inner + column;
            uint scanned = joined(state.x, term(source(at >> 2)[at & 3u]));
            if (PASS != TOTALS) result[at >> 2][at & 3u] = finished(EXCLUSIVE ? state.x : scanned);
            state.x = scanned;
        }
    }
    if (PASS == TOTALS) {
        if (WALK == ACROSS) result[unit] = state; else result[unit >> 2][unit & 3u] = state.x;
    }
}
