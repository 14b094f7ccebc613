#version 460
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/columns.glsl"
#include "lib/sum.glsl"
#include "lib/exp.glsl"
#include "lib/softmax.glsl"

// Softmax of columns: of [outer, extent, inner] along the middle axis. An invocation walks down four neighbouring
// columns twice; or down one of the parts that few and long columns are cut into, in two dispatches as in
// `softmax_rows`.

#define BLOCK 4  // rows per step: FOUR_TIMES

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint MODE = 1;
#define SWEEPS 1
#define PARTS 2
layout(constant_id = 5) const bool ALIGNED = true;  // rows are whole texels

layout(push_constant, std430) uniform Push {
    uint units;       // parts of columns in this dispatch
    uint begin;       // the first of them
    uint parts;       // of one column
    uint magic[2];    // division by the fours and by the parts as a multiplication
    uint shift[2];    // and a shift
    uint extent;      // elements of a column
    uint chunk;       // elements of a part, but for the last
    uint inner;       // columns
    uint first_four;  // the first four columns of this dispatch
    uint fours;       // how many fours
    uint origin;      // where the binding begins in the input
    uint out_origin;  // and in the output
    uint last;        // the last texel of the input
};

INPUT(0, input0)
#if INPUTS > 1
INPUT(1, states)
#endif
layout(binding = INPUTS, std430) writeonly restrict buffer Out { uvec4 result[]; };

// Four elements from anywhere.
uvec4 four(uint e) {
    if (ALIGNED) return input0(e >> 2);
    return joined(input0(e >> 2), input0(min((e >> 2) + 1, last)), e & 3u);
}

void store(uint o, uint columns, uvec4 r) {
    if (ALIGNED) {
        result[o >> 2] = r;
    } else {
        // Unrolled: loops inside the loop over rows would use up the steps that lavapipe allows.
        [[unroll]] for (uint k = 0; k < 4; k++) {
            if (k < columns) result[(o + k) >> 2][(o + k) & 3u] = r[k];
        }
    }
}

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint id = group * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    uint unit = fours == 1 ? id : divide(id, magic[0], shift[0]);
    if (unit >= units) return;
    uint column = 4 * (first_four + id - unit * fours);
    uint at = begin + unit, outer = parts == 1 ? at : divide(at, magic[1], shift[1]), skip = (at - outer * parts) * chunk;
    uint first = (outer * extent + skip) * inner + column - origin;
    uint rows = min(chunk, extent - skip), columns = min(inner - column, 4u);
    Range range = nothing();
    vec4 sum = vec4(0), rest = vec4(0);
#if INPUTS == 1
    // One walk for both: columns are far apart in memory. A new largest element scales the sum down.
    vec4 top = vec4(0);
    uint e = first, row = 0;
    [[dont_unroll]] for (; row + BLOCK <= rows; row += BLOCK) {
        uvec4 x[BLOCK];
        [[unroll]] for (uint j = 0; j < BLOCK; j++) {
            x[j] = four(e + j * inner);
            widen(range, x[j]);
        }
        rescale(sum, rest, top, peak(range));
        vec4 w[BLOCK];
#define TAKE(j) w[j] = rough_weight(x[j], top);
        FOUR_TIMES(TAKE)
#undef TAKE
        precise vec4 all_four = (w[0] + w[1]) + (w[2] + w[3]);
        add_exactly(sum, rest, all_four);
        e += BLOCK * inner;
    }
    [[dont_unroll]] for (; row < rows; row++) {
        uvec4 x = four(e);
        widen(range, x);
        rescale(sum, rest, top, peak(range));
        add_exactly(sum, rest, rough_weight(x, top));
        e += inner;
    }
    if (MODE == PARTS) {
        uvec4 tops = top_bits(range);
        [[dont_unroll]] for (uint k = 0; k < columns; k++) {
            result[at * inner + column + k] = uvec4(tops[k], range.farthest[k], U(sum[k]), U(rest[k]));
        }
        return;
    }
#else
    uint from = outer * parts * inner + column, most = columns - 1;
    [[dont_unroll]] for (uint p = 0; p < parts; p++) {
        uint i = from + p * inner;
        uvec4 a = states(i), b = states(i + min(1, most)), c = states(i + min(2, most)), d = states(i + most);
        widen(range, uvec4(a.x, b.x, c.x, d.x), uvec4(a.y, b.y, c.y, d.y));
    }
    vec4 top = peak(range);
    [[dont_unroll]] for (uint p = 0; p < parts; p++) {
        uint i = from + p * inner;
        uvec4 a = states(i), b = states(i + min(1, most)), c = states(i + min(2, most)), d = states(i + most);
        // A part without finite elements has summed up to 0.
        vec4 scale = weight(uvec4(a.x, b.x, c.x, d.x), top);
        precise vec4 scaled = F(uvec4(a.z, b.z, c.z, d.z)) * scale, scaled_rest = F(uvec4(a.w, b.w, c.w, d.w)) * scale;
        add_sums(sum, rest, scaled, scaled_rest);
    }
#endif
    vec4 d = divisor(sum, rest, is_lost(range));
    uint i = first, moved = origin - out_origin;
    [[dont_unroll]] for (uint r = 0; r < rows; r++) {
        store(i + moved, columns, outcome(four(i), top, d));
        i += inner;
    }
}
