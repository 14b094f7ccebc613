#version 460
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2,3 STEPS=1
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/ops.glsl"

// An elementwise program over a dense output: a list of operations in specialization constants, on inputs that are
// dense, scalars, or strided (broadcast, permuted, sliced). Four elements at a time.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint VECS = 8;   // groups of four elements per invocation
layout(constant_id = 2) const uint SPAN = 8;   // neighbouring invocations that walk side by side: the subgroup
layout(constant_id = 3) const uint MODES = 0;  // how each input is indexed, 4 bits each
layout(constant_id = 4) const uint STEP0 = 0;  // op | operand a << 8 | operand b << 16 | operand c << 24

#define DENSE 0   // element for element
#define SCALAR 1  // one element for all
#define VECTOR 2  // strided, but four neighbours of the output are four aligned neighbours of the input
#define SPLAT 3   // strided, and four neighbours of the output share one element
#define GATHER 4  // strided, each element for itself

struct Input {
    uint strides[4];  // innermost first, in elements
    uint offset;      // in elements
};

layout(push_constant, std430) uniform Push {
    uint count;       // elements of this window of the output
    uint first;       // where the window begins in the whole output
    uint extents[3];  // innermost first
    uint magic[3];    // division by the extents as a multiplication
    uint shifts;      // and a shift, 8 bits each
    uint scalars[3];
    Input inputs[INPUTS];
};

INPUT(0, input0)
#if INPUTS > 1
INPUT(1, input1)
#endif
#if INPUTS > 2
INPUT(2, input2)
#endif
layout(binding = INPUTS, std430) writeonly restrict buffer Out { uvec4 result[]; };

uvec4 load(uint k, uint i) {
#if INPUTS > 1
    if (k == 1) return input1(i);
#endif
#if INPUTS > 2
    if (k == 2) return input2(i);
#endif
    return input0(i);
}

uint load_one(uint k, uint i) {
    return load(k, i >> 2)[i & 3u];
}

uint divide(uint n, uint d) {
    uint high, low;
    umulExtended(n, magic[d], high, low);
    return high >> ((shifts >> (8u * d)) & 31u);
}

// Where an element of the output finds its operand.
uint locate(uint k, uint element) {
    uint q = divide(element, 0), at = inputs[k].offset + (element - q * extents[0]) * inputs[k].strides[0];
    uint p = divide(q, 1);
    at += (q - p * extents[1]) * inputs[k].strides[1];
    uint o = divide(p, 2);
    return at + (p - o * extents[2]) * inputs[k].strides[2] + o * inputs[k].strides[3];
}

// The four elements of input k that belong to the four of the output at 4 * i.
uvec4 fetch(uint k, uint i) {
    uint mode = (MODES >> (4u * k)) & 15u;
    uint element = first + 4 * i;
    if (mode == DENSE) return load(k, (inputs[k].offset >> 2) + i);
    if (mode == SCALAR) return uvec4(load_one(k, inputs[k].offset));
    if (mode == VECTOR) return load(k, locate(k, element) >> 2);
    if (mode == SPLAT) return uvec4(load_one(k, locate(k, element)));
    // The last four of the output may reach past its end; their operands are then those of its last element.
    uint last = first + count - 1;
    return uvec4(load_one(k, locate(k, element)), load_one(k, locate(k, min(element + 1, last))),
                 load_one(k, locate(k, min(element + 2, last))), load_one(k, locate(k, min(element + 3, last))));
}

// Operands: 0 and up an input, 32 and up a scalar, 64 and up an earlier step's result.
uvec4 operand(uint code, uint i) {
    if (code >= 32) return uvec4(scalars[code - 32]);
    return fetch(code, i);
}

uvec4 run(uint word, uint i) {
    uint a = (word >> 8) & 255u, b = (word >> 16) & 255u, c = word >> 24;
    // Unused operands repeat the first: it is read once.
    uvec4 x = operand(a, i), y = x, z = x;
    if (b != a) y = operand(b, i);
    if (c != a) z = operand(c, i);
    return apply(word & 255u, x, y, z);
}

void main() {
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SPAN * SPAN) * VECS + local % SPAN;
    uint whole = count >> 2;
    [[dont_unroll]] for (uint v = 0; v < VECS; v++) {
        uint i = begin + v * SPAN;
        if (4 * i >= count) break;
        uvec4 r = run(STEP0, i);
        if (i < whole) {
            result[i] = r;
        } else {
            // One to three elements are left: a loop, since a software driver runs both sides of a plain branch.
            [[dont_unroll]] for (uint e = 0; e < (count & 3u); e++) result[i][e] = r[e];
        }
    }
}
