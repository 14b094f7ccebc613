#version 460
//! build: LOAD=BUFFER TREE=SHARED,SHUFFLE
//! build: LOAD=TEXEL TREE=SHUFFLE
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/load.glsl"
#include "lib/lanes.glsl"
#include "lib/sum.glsl"
#define BLOCK 8
#include "lib/monoid.glsl"

// Joins the states of the parts that `reduce_rows` and `reduce_columns` left: [outer, extent, inner] along the middle
// axis, into results or, where there are very many, into fewer states.

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
    uint units;   // states or results to make
    uint parts;   // that a column of states is cut into
    uint extent;  // states of a column
    uint chunk;   // states of a part, but for the last
    uint inner;   // columns
    uint count;   // elements that a result is made from
};

INPUT(0, input0)
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint unit = group * (gl_WorkGroupSize.x / LANES) + row_in_group(), lane = lane_in_row();
    // Lanes without work repeat the last: they must take part in the exchange.
    uint at = min(unit, units - 1);
    uint row = at / inner, outer = row / parts, skip = (row - outer * parts) * chunk;
    uint from = (outer * extent + skip) * inner + (at - row * inner), length = min(chunk, extent - skip);

    State state = identity();
    [[dont_unroll]] for (uint p = lane; p < length; p += LANES) {
        uvec4 part = input0(from + p * inner);
        merge(state, State(part.xxxx, part.yyyy, part.zzzz));
    }
#define STEP(k) { \
        uvec3 other = exchange(uvec3(state.a.x, state.b.x, state.c.x), k); \
        merge(state, State(other.xxxx, other.yyyy, other.zzzz)); \
    }
    FOR_EACH_STEP(STEP)

    if (lane == 0 && unit < units) {
        if (FINISH == STATE) {
            result[at] = uvec4(state.a.x, state.b.x, state.c.x, 0);
        } else {
            result[at >> 2][at & 3u] = finish(state, count).x;
        }
    }
}
