#version 460
//! build: LOAD=BUFFER TREE=SHARED,SHUFFLE INPUTS=1,2
//! build: LOAD=TEXEL TREE=SHUFFLE INPUTS=1,2
//! build: LOAD=BUFFER TREE=SHARED,SHUFFLE INPUTS=3 STEPS=4 OPS=LIGHT
//! build: LOAD=TEXEL TREE=SHUFFLE INPUTS=3 STEPS=4 OPS=LIGHT
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/lanes.glsl"
#define BLOCK 8
#include "lib/unaligned_range.glsl"
#include "lib/sum.glsl"
#include "lib/monoid.glsl"
#ifdef STEPS
#include "lib/ops.glsl"
#endif

// Reductions of rows: of [outer, extent] along the last axis. LANES invocations share a row, or one of the parts that
// a long row is cut into; parts give states for `reduce_merge`. Modules with STEPS run an elementwise op first: its
// results are what is reduced, and are never stored.

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
    uint units;      // parts of rows in this dispatch
    uint begin;      // the first of them
    uint parts;      // of one row
    uint magic;      // division by the parts as a multiplication
    uint shift;      // and a shift
    uint extent;     // elements of a row
    uint chunk;      // elements of a part, but for the last
    uint count;      // elements that a result is made from
    uint origin;     // where the binding begins in the input
    uint origin2;    // and in the second input
    uint out_origin; // and in the output
#ifdef STEPS
    uint scalars[3];
#endif
};

INPUT(0, input0)
#if INPUTS > 1
INPUT(1, input1)  // the second factor, element for element; or the mean of each row
#endif
#if INPUTS > 2
INPUT(2, input2)
#endif
layout(binding = INPUTS, std430) writeonly restrict buffer Out { uvec4 result[]; };

vec4 mean = vec4(0);

#ifdef STEPS
#include "lib/op_list.glsl"
#include "lib/prologue.glsl"

uvec4 term_at(uint texel) { return term(made(texel), uvec4(0), mean); }
#else
uvec4 term_at(uint texel) {
#if INPUTS > 1
    uvec4 second = TERM == TIMES_SECOND ? input1(texel) : uvec4(0);
#else
    const uvec4 second = uvec4(0);
#endif
    return term(input0(texel), second, mean);
}
#endif

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint unit = group * (gl_WorkGroupSize.x / LANES) + row_in_group(), lane = lane_in_row();
    // Lanes without a row repeat the last one: they must take part in the exchange.
    uint at = begin + min(unit, units - 1);
    uint outer = parts == 1 ? at : divide(at, magic, shift), skip = (at - outer * parts) * chunk;
    UnalignedRange s = unaligned_range(outer * extent + skip - origin, min(chunk, extent - skip), LANES);
#ifdef STEPS
    row_begin = outer * extent - origin;
#endif
#if INPUTS == 2
    if (TERM == LESS_MEAN) mean = vec4(F(input1((outer - origin2) >> 2)[(outer - origin2) & 3u]));
#endif

    State state = identity();
    uint i = s.inside + lane;
    [[dont_unroll]] for (uint b = 0; b < s.blocks; b++) {
        uvec4 t[BLOCK];
#define TAKE(j) t[j] = term_at(i + j * LANES);
#ifdef STEPS
        // Unrolled by the driver once the constants are known; written as a loop, the operations stand in it once.
        [[unroll]] for (uint j = 0; j < BLOCK; j++) TAKE(j)
#else
        EIGHT_TIMES(TAKE)
#endif
#undef TAKE
        absorb_block(state, t, skip + places(s, i), 4 * LANES);
        i += LANES * BLOCK;
    }
    [[dont_unroll]] for (uint j = lane; j < s.singles; j += LANES) {
        uint texel = single(s, j);
        uvec4 place = places(s, texel);
        absorb(state, term_at(texel), lessThan(place, uvec4(s.size)), skip + place);
    }

    fold(state);
#define STEP(k) { \
        uvec3 other = exchange(uvec3(state.a.x, state.b.x, state.c.x), k); \
        merge(state, State(other.xxxx, other.yyyy, other.zzzz)); \
    }
    FOR_EACH_STEP(STEP)

    if (lane == 0 && unit < units) {
        uint o = at - out_origin;
        if (FINISH == STATE) {
            result[o] = uvec4(state.a.x, state.b.x, state.c.x, 0);
        } else {
            result[o >> 2][o & 3u] = finish(state, count).x;
        }
    }
}
