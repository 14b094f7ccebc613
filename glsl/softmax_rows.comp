#version 460
//! build: LOAD=BUFFER TREE=SHARED,SHUFFLE INPUTS=1,2
//! build: LOAD=TEXEL TREE=SHUFFLE INPUTS=1,2
//! build: LOAD=TEXEL STORE=UNIFORM TREE=SHUFFLE INPUTS=1,2
//! build: LOAD=BUFFER TREE=SHARED,SHUFFLE INPUTS=3 STEPS=4 OPS=LIGHT
//! build: LOAD=TEXEL TREE=SHUFFLE INPUTS=3 STEPS=4 OPS=LIGHT
//! build: LOAD=TEXEL STORE=UNIFORM TREE=SHUFFLE INPUTS=3 STEPS=4 OPS=LIGHT
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef STORE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : require
#endif
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/lanes.glsl"
#define BLOCK 8
#include "lib/unaligned_range.glsl"
#include "lib/sum.glsl"
#include "lib/exp.glsl"
#include "lib/softmax.glsl"

// Softmax of rows: of [outer, extent] along the last axis. LANES invocations share a row. One that fits stays in
// registers; a longer one is swept twice; one that is cut into parts takes two dispatches: the first leaves a
// state for each part, the second (with two inputs) joins the states and makes the results.
// Modules with STORE make whole results of whole workgroups: a subgroup takes LANES x VEC4S texels, which are a row, or
// with two inputs a block of one. Modules with STEPS run an elementwise op as they load: its results are what
// softmax is taken of.

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint MODE = 0;
#define REGISTERS 0
#define SWEEPS 1
#define PARTS 2
layout(constant_id = 4) const uint VEC4S = 8;     // texels that a lane holds
layout(constant_id = 5) const bool FULL = false;  // rows are exactly LANES x VEC4S texels
#if INPUTS == 2
layout(constant_id = 6) const bool FEW = false;   // a row has no more parts than LANES
#endif

layout(push_constant, std430) uniform Push {
    uint units;        // parts of rows in this dispatch
    uint begin;        // the first of them
    uint parts;        // of one row
    uint magic;        // division by the units of a row as a multiplication
    uint magic_shift;  // and a shift
    uint extent;       // elements of a row
    uint chunk;        // elements of a part, but for the last
    uint origin;       // where the binding begins in the input
    uint out_origin;   // and in the output
#ifdef STEPS
    uint scalars[3];
#endif
#ifdef STORE
    uint digits[8];    // 0 to 7
#endif
};

INPUT(0, input0)
#if INPUTS == 2
INPUT(1, states)
#endif
#ifdef STEPS
INPUT(1, input1)
INPUT(2, input2)
#include "lib/ops.glsl"
#include "lib/op_list.glsl"
#include "lib/prologue.glsl"
#define element(i) made(i)
#else
#define element(i) input0(i)
#endif
#ifdef STORE
layout(binding = INPUTS, std430) writeonly restrict buffer Out { u64vec4 result[]; };
#define SUBGROUP LANES
#include "lib/uniform_store.glsl"
#else
layout(binding = INPUTS, std430) writeonly restrict buffer Out { uvec4 result[]; };

// A texel's elements; those outside of the row are -infinity, which has no weight.
uvec4 texel(UnalignedRange s, uint i) {
    return mix(uvec4(MINUS_INFINITY), element(i), lessThan(places(s, i), uvec4(s.size)));
}

void store(UnalignedRange s, uint shift, uint i, uvec4 r) {
    uvec4 place = places(s, i);
    uint o = i + shift;
    if (all(lessThan(place, uvec4(s.size)))) {
        result[o] = r;
    } else {
        // At an end. A loop, since a software driver runs both sides of a plain branch.
        uint k = place.x < s.size ? 0 : 3 - place.w;
        [[dont_unroll]] for (; k < 4 && place[k] < s.size; k++) result[o][k] = r[k];
    }
}
#endif

void join_range(inout Range range) {
    range.most.xy = max(range.most.xy, range.most.zw);
    range.least.xy = min(range.least.xy, range.least.zw);
    range.farthest.xy = max(range.farthest.xy, range.farthest.zw);
    range.most.x = max(range.most.x, range.most.y);
    range.least.x = min(range.least.x, range.least.y);
    range.farthest.x = max(range.farthest.x, range.farthest.y);
#define STEP(k) { \
        uvec3 other = exchange(uvec3(range.most.x, range.least.x, range.farthest.x), k); \
        widen(range, Range(ivec4(other.x), ivec4(other.y), other.zzzz)); \
    }
    FOR_EACH_STEP(STEP)
#undef STEP
    range = Range(range.most.xxxx, range.least.xxxx, range.farthest.xxxx);
}

void join_sum(inout vec4 sum, inout vec4 rest) {
    add_sums(sum, rest, sum.zwzw, rest.zwzw);
    add_sums(sum, rest, sum.yyyy, rest.yyyy);
#define STEP(k) { \
        vec3 other = F(exchange(uvec3(U(sum.x), U(rest.x), 0), k)); \
        add_sums(sum, rest, other.xxxx, other.yyyy); \
    }
    FOR_EACH_STEP(STEP)
#undef STEP
    sum = sum.xxxx;
    rest = rest.xxxx;
}

#if INPUTS != 2

// A row in registers: its elements; once weighed, their weights, unless it is the logarithm that is wanted.
uvec4 held[VEC4S];

void hold(uint j, uvec4 bits, inout Range range) {
    held[j] = bits;
    widen(range, bits);
}

void weigh(inout Range range, out vec4 top, out vec4 d) {
    join_range(range);
    // Eights first, then their sum: few enough for the errors to stay small without being collected.
    top = peak(range);
    vec4 rest = vec4(0);
    precise vec4 sum = vec4(0), eight = vec4(0);
    [[unroll]] for (uint j = 0; j < VEC4S; j++) {
        vec4 e = weight(held[j], top);
        if (!LOGARITHM) held[j] = U(e);
        eight = eight + e;
        if (j % 8 == 7) {
            sum = sum + eight;
            eight = vec4(0);
        }
    }
    sum = sum + eight;
    join_sum(sum, rest);
    d = divisor(sum, rest, is_lost(range));
}

uvec4 weighed(uint j, vec4 top, vec4 d) {
    precise vec4 logarithm = (F(held[j]) - top) - d, share = F(held[j]) * d;
    return LOGARITHM ? U(logarithm) : U(share);
}

#endif
#if INPUTS != 2 && !defined(STORE)

void whole_in_registers(UnalignedRange s, uint lane, bool live, uint shift) {
    uint last = (s.begin + s.size - 1) >> 2;
    Range range = nothing();
    [[unroll]] for (uint j = 0; j < VEC4S; j++) {
        uint i = s.first + lane + j * LANES;
        if (FULL) {
            hold(j, element(i), range);
        } else {
            bvec4 inside = lessThan(places(s, i), uvec4(s.size));
            hold(j, mix(uvec4(MINUS_INFINITY), element(min(i, last)), inside), range);
        }
    }
    vec4 top, d;
    weigh(range, top, d);
    // The texels at the ends are kept for later: stores in parts, many times over, would take seconds to compile.
    uint whole = (s.begin + s.size) >> 2;
    uvec4 head = uvec4(0), tail = uvec4(0);
    [[unroll]] for (uint j = 0; j < VEC4S; j++) {
        uvec4 r = weighed(j, top, d);
        uint i = s.first + lane + j * LANES;
        if (FULL) {
            if (live) result[i + shift] = r;
        } else {
            if (live && i >= s.inside && i < whole) result[i + shift] = r;
            head = j == 0 ? r : head;
            tail = i == last ? r : tail;
        }
    }
    if (FULL || !live) return;
    if (lane == 0 && s.first < s.inside) store(s, shift, s.first, head);
    // Unless it was the head, or whole.
    if ((last - s.first) % LANES == lane && last >= s.inside && last >= whole) store(s, shift, last, tail);
}

// One walk for both: a new largest element scales the sum down. Each of a lane's four sums has its own until the end.
void sweep(UnalignedRange s, uint lane, inout Range range, inout vec4 sum, inout vec4 rest) {
    vec4 top = vec4(0);
    uint i = s.inside + lane;
    [[dont_unroll]] for (uint b = 0; b < s.blocks; b++) {
        uvec4 x[BLOCK];
        [[unroll]] for (uint j = 0; j < BLOCK; j++) {
            x[j] = element(i + j * LANES);
            widen(range, x[j]);
        }
        rescale(sum, rest, top, peak(range));
        vec4 w[BLOCK];
#define TAKE(j) w[j] = rough_weight(x[j], top);
        EIGHT_TIMES(TAKE)
#undef TAKE
        precise vec4 eight = ((w[0] + w[1]) + (w[2] + w[3])) + ((w[4] + w[5]) + (w[6] + w[7]));
        add_exactly(sum, rest, eight);
        i += LANES * BLOCK;
    }
    [[dont_unroll]] for (uint j = lane; j < s.singles; j += LANES) {
        uvec4 x = texel(s, single(s, j));
        widen(range, x);
        rescale(sum, rest, top, peak(range));
        add_exactly(sum, rest, rough_weight(x, top));
    }
    join_range(range);
    rescale(sum, rest, top, peak(range));
    join_sum(sum, rest);
}

#elif INPUTS == 2

// Adds what a state has summed up. One without finite elements has summed up to 0.
void add_state(uvec4 state, vec4 top, inout vec4 sum, inout vec4 rest) {
    vec4 scale = weight(state.xxxx, top) * vec4(1, 0, 0, 0);
    precise vec4 scaled = F(state.zzzz) * scale, scaled_rest = F(state.wwww) * scale;
    add_sums(sum, rest, scaled, scaled_rest);
}

// The whole row's range and sum, from the states of its parts.
void join_states(uint outer, uint lane, inout Range range, inout vec4 sum, inout vec4 rest) {
    uint first = outer * parts;
    if (FEW) {
        // Without a loop, whose masks would cost more than all of this.
        uvec4 state = states(first + min(lane, parts - 1));
        widen(range, state.xxxx, state.yyyy);
        join_range(range);
        add_state(lane < parts ? state : uvec4(MINUS_INFINITY, 0, 0, 0), peak(range), sum, rest);
    } else {
        [[dont_unroll]] for (uint p = lane; p < parts; p += LANES) {
            uvec4 state = states(first + p);
            widen(range, state.xxxx, state.yyyy);
        }
        join_range(range);
        vec4 top = peak(range);
        [[dont_unroll]] for (uint p = lane; p < parts; p += LANES) add_state(states(first + p), top, sum, rest);
    }
    join_sum(sum, rest);
}

#endif

#ifdef STORE

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint unit = group * gl_NumSubgroups + gl_SubgroupID, lane = gl_SubgroupInvocationID;
    uint first = ((begin + unit) * chunk - origin) >> 2, at = ((begin + make_uniform(unit)) * chunk - out_origin) >> 2;
#ifdef STEPS
    row_begin = 4 * first;
#endif
    Range range = nothing();
    vec4 top, d;
#if INPUTS != 2
    [[unroll]] for (uint j = 0; j < VEC4S; j++) hold(j, element(first + j * LANES + lane), range);
    weigh(range, top, d);
#define RESULT(j) weighed(j, top, d)
#else
    vec4 sum = vec4(0), rest = vec4(0);
    join_states(divide(begin + unit, magic, magic_shift), lane, range, sum, rest);
    top = peak(range);
    d = divisor(sum, rest, is_lost(range));
#define RESULT(j) outcome(input0(first + j * LANES + lane), top, d)
#endif
    [[unroll]] for (uint j = 0; j < VEC4S; j++) UNIFORM_STORE(result, at + j * LANES, RESULT(j))
}

#else

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint unit = group * (gl_WorkGroupSize.x / LANES) + row_in_group(), lane = lane_in_row();
    // Lanes without a row repeat the last one: they must take part in the exchange.
    bool live = unit < units;
    uint at = begin + min(unit, units - 1);
    uint outer = parts == 1 ? at : divide(at, magic, magic_shift), skip = (at - outer * parts) * chunk;
    UnalignedRange s = unaligned_range(outer * extent + skip - origin, min(chunk, extent - skip), LANES);
#ifdef STEPS
    row_begin = outer * extent - origin;
#endif
    // From texels of the input to those of the output: windows begin at whole ones.
    uint shift = (origin >> 2) - (out_origin >> 2);
    Range range = nothing();
    vec4 sum = vec4(0), rest = vec4(0);
#if INPUTS != 2
    if (MODE == REGISTERS) {
        whole_in_registers(s, lane, live, shift);
        return;
    }
    sweep(s, lane, range, sum, rest);
    if (MODE == PARTS) {
        if (live && lane == 0) result[at] = uvec4(top_bits(range).x, range.farthest.x, U(sum.x), U(rest.x));
        return;
    }
#else
    join_states(outer, lane, range, sum, rest);
#endif
    vec4 top = peak(range), d = divisor(sum, rest, is_lost(range));
    uint i = s.inside + lane;
    [[dont_unroll]] for (uint b = 0; b < s.blocks; b++) {
        uvec4 r[BLOCK];
#define TAKE(j) r[j] = outcome(element(i + j * LANES), top, d);
        EIGHT_TIMES(TAKE)
#undef TAKE
        [[unroll]] for (uint j = 0; j < BLOCK; j++) {
            if (live) result[i + j * LANES + shift] = r[j];
        }
        i += LANES * BLOCK;
    }
    [[dont_unroll]] for (uint j = lane; j < s.singles; j += LANES) {
        uint k = single(s, j);
        if (live) store(s, shift, k, outcome(element(k), top, d));
    }
}

#endif
