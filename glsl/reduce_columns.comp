#version 460
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/columns.glsl"
#include "lib/sum.glsl"
#define BLOCK 8  // rows per step
#include "lib/monoid.glsl"

// Reductions of columns: of [outer, extent, inner] along the middle axis. An invocation walks down four neighbouring
// columns, or one of the parts that long columns are cut into; parts give states for `reduce_merge`.

layout(local_size_x_id = 0) in;
layout(constant_id = 5) const bool ALIGNED = true;  // rows are whole texels

layout(push_constant, std430) uniform Push {
    uint units;      // parts of columns in this dispatch
    uint begin;      // the first of them
    uint parts;      // of one column
    uint magic[2];   // division by the fours and by the parts as a multiplication
    uint shift[2];   // and a shift
    uint extent;     // elements of a column
    uint chunk;      // elements of a part, but for the last
    uint count;      // elements that a result is made from
    uint inner;      // columns
    uint first_four; // the first four columns of this dispatch
    uint fours;      // how many fours
    uint origin;     // where the binding begins in the input
    uint origin2;    // and in the second input
    uint out_origin; // and in the output
    uint last;       // the last texel of the input
    uint last2;      // and of the second one
};

INPUT(0, input0)
#if INPUTS > 1
INPUT(1, input1)  // the means
#endif
layout(binding = INPUTS, std430) writeonly restrict buffer Out { uvec4 result[]; };

// Four elements from anywhere.
uvec4 four(uint e) {
    if (ALIGNED) return input0(e >> 2);
    return joined(input0(e >> 2), input0(min((e >> 2) + 1, last)), e & 3u);
}

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint id = group * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    uint unit = fours == 1 ? id : divide(id, magic[0], shift[0]);
    if (unit >= units) return;
    uint column = 4 * (first_four + id - unit * fours);
    uint at = begin + unit, outer = parts == 1 ? at : divide(at, magic[1], shift[1]), skip = (at - outer * parts) * chunk;
    uint e = (outer * extent + skip) * inner + column - origin;
    uint rows = min(chunk, extent - skip);
    vec4 mean = vec4(0);
#if INPUTS > 1
    uint m = outer * inner + column - origin2;
    mean = F(joined(input1(m >> 2), input1(min((m >> 2) + 1, last2)), m & 3u));
#endif

    State state = identity();
    uint row = 0;
    [[dont_unroll]] for (; row + BLOCK <= rows; row += BLOCK) {
        uvec4 t[BLOCK];
#define TAKE(j) t[j] = term(four(e + j * inner), uvec4(0), mean);
        EIGHT_TIMES(TAKE)
#undef TAKE
        absorb_block(state, t, uvec4(skip + row), 1);
        e += BLOCK * inner;
    }
    [[dont_unroll]] for (; row < rows; row++) {
        absorb(state, term(four(e), uvec4(0), mean), bvec4(true), uvec4(skip + row));
        e += inner;
    }

    uint columns = min(inner - column, 4u);
    if (FINISH == STATE) {
        uint o = at * inner + column - out_origin;
        [[dont_unroll]] for (uint k = 0; k < columns; k++) {
            result[o + k] = uvec4(state.a[k], state.b[k], state.c[k], 0);
        }
        return;
    }
    uvec4 r = finish(state, count);
    uint o = at * inner + column - out_origin;
    if (ALIGNED) {
        result[o >> 2] = r;
    } else {
        [[dont_unroll]] for (uint k = 0; k < columns; k++) result[(o + k) >> 2][(o + k) & 3u] = r[k];
    }
}
