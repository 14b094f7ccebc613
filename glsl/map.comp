#version 460
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2,3 STEPS=1 OUTPUTS=1 OPS=LIGHT
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2 STEPS=1 OUTPUTS=1 OPS=ALL
//! build: LOAD=BUFFER,TEXEL INPUTS=4 STEPS=4 OUTPUTS=1 OPS=ALL
//! build: LOAD=BUFFER,TEXEL INPUTS=4 STEPS=16 OUTPUTS=4 OPS=LIGHT
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/ops.glsl"

// An elementwise program over dense outputs: a list of operations in specialization constants, on inputs that are
// dense, scalars, or strided (broadcast, permuted, sliced). Four elements at a time.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint VECS = 8;    // groups of four elements per invocation
layout(constant_id = 2) const uint SPAN = 8;    // neighbouring invocations that walk side by side: the subgroup
layout(constant_id = 3) const uint MODES = 0;   // how each input is indexed, 4 bits each
layout(constant_id = 4) const uint DIMS = 4;    // dimensions of the outputs, so that nobody divides in vain
layout(constant_id = 5) const uint STORED = 0;  // the steps that are stored, 8 bits each
layout(constant_id = 6) const uint COUNT = 1;   // the number of steps
layout(constant_id = 7) const uint RESULTS = 1; // the number of steps that are stored
// Steps: op | operand a << 8 | operand b << 16 | operand c << 24
layout(constant_id = 8) const uint STEP0 = 0;
#if STEPS > 1
layout(constant_id = 9) const uint STEP1 = 0;
layout(constant_id = 10) const uint STEP2 = 0;
layout(constant_id = 11) const uint STEP3 = 0;
#endif
#if STEPS > 4
layout(constant_id = 12) const uint STEP4 = 0;
layout(constant_id = 13) const uint STEP5 = 0;
layout(constant_id = 14) const uint STEP6 = 0;
layout(constant_id = 15) const uint STEP7 = 0;
layout(constant_id = 16) const uint STEP8 = 0;
layout(constant_id = 17) const uint STEP9 = 0;
layout(constant_id = 18) const uint STEP10 = 0;
layout(constant_id = 19) const uint STEP11 = 0;
layout(constant_id = 20) const uint STEP12 = 0;
layout(constant_id = 21) const uint STEP13 = 0;
layout(constant_id = 22) const uint STEP14 = 0;
layout(constant_id = 23) const uint STEP15 = 0;
#endif

#define DENSE 0    // element for element
#define SCALAR 1   // one element for all
#define VECTOR 2   // strided, but four neighbours of the output are four aligned neighbours of the input
#define SPLAT 3    // strided, and four neighbours of the output share one element
#define STRIDED 4  // strided, and four neighbours of the output are equally far apart
#define GATHER 5   // strided, each element for itself
#define UNUSED 15

struct Input {
    uint strides[4];  // innermost first, in elements
    uint offset;      // in elements
};

layout(push_constant, std430) uniform Push {
    uint count;       // elements of this window of the outputs
    uint first;       // where the window begins in the whole outputs
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
#if INPUTS > 3
INPUT(3, input3)
#endif
layout(binding = INPUTS, std430) writeonly buffer Out0 { uvec4 result0[]; };
#if OUTPUTS > 1
layout(binding = INPUTS + 1, std430) writeonly buffer Out1 { uvec4 result1[]; };
layout(binding = INPUTS + 2, std430) writeonly buffer Out2 { uvec4 result2[]; };
layout(binding = INPUTS + 3, std430) writeonly buffer Out3 { uvec4 result3[]; };
#endif

uvec4 load(uint k, uint i) {
#if INPUTS > 1
    if (k == 1) return input1(i);
#endif
#if INPUTS > 2
    if (k == 2) return input2(i);
#endif
#if INPUTS > 3
    if (k == 3) return input3(i);
#endif
    return input0(i);
}

uint load_one(uint k, uint i) {
    return load(k, i >> 2)[i & 3u];
}

// Where an element of the outputs finds its operand.
uint locate(uint k, uint element) {
    uint at = inputs[k].offset;
    if (DIMS <= 1) return at + element * inputs[k].strides[0];
    uint q = divide(element, magic[0], shifts & 31u);
    at += (element - q * extents[0]) * inputs[k].strides[0];
    if (DIMS == 2) return at + q * inputs[k].strides[1];
    uint p = divide(q, magic[1], (shifts >> 8) & 31u);
    at += (q - p * extents[1]) * inputs[k].strides[1];
    if (DIMS == 3) return at + p * inputs[k].strides[2];
    uint o = divide(p, magic[2], (shifts >> 16) & 31u);
    return at + (p - o * extents[2]) * inputs[k].strides[2] + o * inputs[k].strides[3];
}

// The four elements of input k that belong to the four of the outputs at 4 * i.
uvec4 fetch(uint k, uint i) {
    uint mode = (MODES >> (4u * k)) & 15u;
    uint element = first + 4 * i;
    if (mode == UNUSED) return uvec4(0);
    if (mode == DENSE) return load(k, (inputs[k].offset >> 2) + i);
    if (mode == SCALAR) return uvec4(load_one(k, inputs[k].offset));
    if (mode == VECTOR) return load(k, locate(k, element) >> 2);
    if (mode == SPLAT) return uvec4(load_one(k, locate(k, element)));
    if (mode == STRIDED) {
        uint at = locate(k, element), step = inputs[k].strides[0];
        return uvec4(load_one(k, at), load_one(k, at + step), load_one(k, at + 2 * step), load_one(k, at + 3 * step));
    }
    // The last four of the outputs may reach past their end; their operands are then those of the last element.
    uint last = first + count - 1;
    return uvec4(load_one(k, locate(k, element)), load_one(k, locate(k, min(element + 1, last))),
                 load_one(k, locate(k, min(element + 2, last))), load_one(k, locate(k, min(element + 3, last))));
}

uvec4 loaded[INPUTS];
uvec4 steps[STEPS];

// Operands: 0 and up an input, 32 and up a scalar, 64 and up an earlier step's result.
uvec4 operand(uint code) {
    if (code >= 64) return steps[code - 64];
    if (code >= 32) return uvec4(scalars[code - 32]);
    return loaded[code];
}

uvec4 run(uint word) {
    return apply(word & 255u, operand((word >> 8) & 255u), operand((word >> 16) & 255u), operand(word >> 24));
}

// Runs the program for the four elements at 4 * i.
void compute(uint i) {
    [[unroll]] for (uint k = 0; k < INPUTS; k++) loaded[k] = fetch(k, i);
    steps[0] = run(STEP0);
#if STEPS > 1
    if (COUNT > 1) steps[1] = run(STEP1);
    if (COUNT > 2) steps[2] = run(STEP2);
    if (COUNT > 3) steps[3] = run(STEP3);
#endif
#if STEPS > 4
    if (COUNT > 4) steps[4] = run(STEP4);
    if (COUNT > 5) steps[5] = run(STEP5);
    if (COUNT > 6) steps[6] = run(STEP6);
    if (COUNT > 7) steps[7] = run(STEP7);
    if (COUNT > 8) steps[8] = run(STEP8);
    if (COUNT > 9) steps[9] = run(STEP9);
    if (COUNT > 10) steps[10] = run(STEP10);
    if (COUNT > 11) steps[11] = run(STEP11);
    if (COUNT > 12) steps[12] = run(STEP12);
    if (COUNT > 13) steps[13] = run(STEP13);
    if (COUNT > 14) steps[14] = run(STEP14);
    if (COUNT > 15) steps[15] = run(STEP15);
#endif
}

uvec4 stored(uint k) {
    return steps[(STORED >> (8u * k)) & 255u];
}

void main() {
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SPAN * SPAN) * VECS + local % SPAN;
    uint whole = count >> 2;
    [[dont_unroll]] for (uint v = 0; v < VECS; v++) {
        uint i = begin + v * SPAN;
        if (4 * i >= count) break;
        compute(i);
        if (i < whole) {
            result0[i] = stored(0);
#if OUTPUTS > 1
            if (RESULTS > 1) result1[i] = stored(1);
            if (RESULTS > 2) result2[i] = stored(2);
            if (RESULTS > 3) result3[i] = stored(3);
#endif
        } else {
            // One to three elements are left: a loop, since a software driver runs both sides of a plain branch.
            [[dont_unroll]] for (uint e = 0; e < (count & 3u); e++) {
                result0[i][e] = stored(0)[e];
#if OUTPUTS > 1
                if (RESULTS > 1) result1[i][e] = stored(1)[e];
                if (RESULTS > 2) result2[i][e] = stored(2)[e];
                if (RESULTS > 3) result3[i][e] = stored(3)[e];
#endif
            }
        }
    }
}
