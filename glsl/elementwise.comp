#version 460
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2 STEPS=1 OUTPUTS=1 OPS=PLAIN
//! build: LOAD=BUFFER,TEXEL INPUTS=4 STEPS=4 OUTPUTS=1 OPS=PLAIN
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2,3 STEPS=1 OUTPUTS=1 OPS=LIGHT
//! build: LOAD=BUFFER,TEXEL INPUTS=1,2 STEPS=1 OUTPUTS=1 OPS=ALL
//! build: LOAD=BUFFER,TEXEL INPUTS=4 STEPS=4 OUTPUTS=1 OPS=ALL
//! build: LOAD=BUFFER,TEXEL INPUTS=2 STEPS=1 OUTPUTS=1 OPS=EVERY
//! build: LOAD=BUFFER,TEXEL INPUTS=4 STEPS=4 OUTPUTS=1 OPS=EVERY
//! build: LOAD=BUFFER,TEXEL INPUTS=4 STEPS=16 OUTPUTS=4 OPS=LIGHT
//! build: LOAD=TEXEL STORE=UNIFORM INPUTS=1,2 STEPS=1 OUTPUTS=1 OPS=PLAIN,LIGHT,ALL
//! build: LOAD=TEXEL STORE=UNIFORM INPUTS=4 STEPS=4 OUTPUTS=1 OPS=PLAIN
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef STORE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#define IN_PLACE
#include "lib/load.glsl"
#include "lib/division.glsl"
#include "lib/ops.glsl"
#if OPS != PLAIN
#include "lib/format.glsl"
#endif

// An elementwise op over dense outputs: a list of operations in specialization constants, on inputs that are
// dense, scalars, or strided (broadcast, permuted, sliced). Four elements at a time. Modules with STORE are for whole
// workgroups of whole subgroups, and for words.

#include "lib/linear.glsl"
layout(constant_id = 3) const uint MODES = 0;   // how each input is indexed, 4 bits each
layout(constant_id = 4) const uint DIMS = 4;    // dimensions of the outputs, so that no division is wasted
layout(constant_id = 5) const uint STORED = 0;  // the steps that are stored, 8 bits each
layout(constant_id = 7) const uint RESULTS = 1; // the number of steps that are stored
layout(constant_id = 24) const bool WHOLE = false;  // no workgroup reaches past the end
#if OPS != PLAIN
layout(constant_id = 25) const uint FORMATS = 0;  // 4 bits each: inputs from bit 0 on, outputs from bit 16 on
#endif

#define DENSE 0    // element for element
#define SCALAR 1   // one element for all
#define VECTOR 2   // strided, but four neighbours of the output are four aligned neighbours of the input
#define SPLAT 3    // strided, and four neighbours of the output share one element
#define STRIDED 4  // strided, and four neighbours of the output are equally far apart
#define GATHER 5   // strided, each element for itself
#define UNUSED 15

struct Input {
#if OPS != PLAIN
    uint strides[4];  // innermost first, in elements
#endif
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
#ifdef STORE
    uint digits[8];   // 0 to 7
};
#else
} push;
// Copies of them: lavapipe reads push constants lane by lane where they are first read inside of a loop. Vectors, since
// to an array glslang may give the layout of one in a block, which only blocks may have.
struct Copied {
#if OPS != PLAIN
    uvec4 strides;
#endif
    uint offset;
};
uint count, first, shifts;
uvec3 extents, magic, scalars;
Copied inputs[INPUTS];

void copy_push_constants() {
    count = push.count;
    first = push.first;
    shifts = push.shifts;
    extents = uvec3(push.extents[0], push.extents[1], push.extents[2]);
    magic = uvec3(push.magic[0], push.magic[1], push.magic[2]);
    scalars = uvec3(push.scalars[0], push.scalars[1], push.scalars[2]);
    [[unroll]] for (uint k = 0; k < INPUTS; k++) {
#if OPS != PLAIN
        [[unroll]] for (uint d = 0; d < 4; d++) inputs[k].strides[d] = push.inputs[k].strides[d];
#endif
        inputs[k].offset = push.inputs[k].offset;
    }
}
#endif

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
#ifdef STORE
layout(binding = INPUTS, std430) writeonly buffer Out0 { u64vec4 result0[]; };
#else
layout(binding = INPUTS, std430) writeonly buffer Out0 { uvec4 result0[]; };
#endif
#if OUTPUTS > 1
layout(binding = INPUTS + 1, std430) writeonly buffer Out1 { uvec4 result1[]; };
layout(binding = INPUTS + 2, std430) writeonly buffer Out2 { uvec4 result2[]; };
layout(binding = INPUTS + 3, std430) writeonly buffer Out3 { uvec4 result3[]; };
#endif

uvec4 words(uint k, uint i) {
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

// The i-th four elements, and the i-th element.
#if OPS == PLAIN
uvec4 load(uint k, uint i) { return words(k, i); }

uint load_one(uint k, uint i) { return words(k, i >> 2)[i & 3u]; }
#else
uvec4 load(uint k, uint i) {
    uint format = FORMATS >> (4 * k) & 15u;
    return widened(format, words(k, i >> packing(format)), i);
}

uint load_one(uint k, uint i) {
    uint format = FORMATS >> (4 * k) & 15u;
    return widened_one(format, words(k, i >> 2 >> packing(format)), i);
}
#endif

#if OPS != PLAIN
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
#endif

// The four elements of input k that belong to the four of the outputs at 4 * i.
uvec4 fetch(uint k, uint i) {
    uint mode = (MODES >> (4u * k)) & 15u;
    if (mode == UNUSED) return uvec4(0);
    if (mode == DENSE) return load(k, (inputs[k].offset >> 2) + i);
#if OPS == PLAIN
    return uvec4(load_one(k, inputs[k].offset));
#else
    if (mode == SCALAR) return uvec4(load_one(k, inputs[k].offset));
    uint element = first + 4 * i;
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
#endif
}

#include "lib/op_list.glsl"

// Runs the elementwise op for the four elements at 4 * i.
void compute(uint i) {
    [[unroll]] for (uint k = 0; k < INPUTS; k++) loaded[k] = fetch(k, i);
    run_op_list();
}

uvec4 stored(uint k) {
    return steps[(STORED >> (8u * k)) & 255u];
}

#ifdef STORE

#include "lib/uniform_store.glsl"

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint subgroup = group * gl_NumSubgroups + gl_SubgroupID;
    uint begin = subgroup * SUBGROUP * VEC4S, at = make_uniform(subgroup) * SUBGROUP * VEC4S;
    [[unroll]] for (uint v = 0; v < VEC4S; v++) {
        compute(begin + v * SUBGROUP + gl_SubgroupInvocationID);
        UNIFORM_STORE(result0, at + v * SUBGROUP, stored(0))
    }
}

#else

// Four elements to the i-th place, and one of fewer than four.
#if OPS == PLAIN
#define STORE(k, result) result[i] = stored(k);
#define STORE_ONE(k, result, e) result[i][e] = stored(k)[e];
#else
// Four quarters are a word, four halves two; behind the last ones there is room in the tensor's own block.
#define OUTPUT_FORMAT(k) (FORMATS >> (16u + 4u * k) & 15u)
#define STORE(k, result) \
    if (OUTPUT_FORMAT(k) == FORMAT_WORD) { \
        result[i] = stored(k); \
    } else { \
        uvec2 narrow = packed_words(OUTPUT_FORMAT(k), stored(k)); \
        if (OUTPUT_FORMAT(k) >= FORMAT_U8) { \
            result[i >> 2][i & 3u] = narrow.x; \
        } else { \
            result[i >> 1][2 * (i & 1u)] = narrow.x; \
            result[i >> 1][2 * (i & 1u) + 1] = narrow.y; \
        } \
    }
#define STORE_ONE(k, result, e) \
    if (OUTPUT_FORMAT(k) == FORMAT_WORD) { \
        result[i][e] = stored(k)[e]; \
    } else if (OUTPUT_FORMAT(k) >= FORMAT_U8) { \
        if (e == 0) result[i >> 2][i & 3u] = packed_words(OUTPUT_FORMAT(k), stored(k)).x; \
    } else if ((e & 1u) == 0) { \
        result[i >> 1][2 * (i & 1u) + e / 2] = packed_words(OUTPUT_FORMAT(k), stored(k))[e / 2]; \
    }
#endif

void main() {
    copy_push_constants();
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint begin = (group * gl_WorkGroupSize.x + local / SUBGROUP * SUBGROUP) * VEC4S + local % SUBGROUP;
    uint whole = count >> 2;
    // A software driver gains a third where stores follow each other without a loop; compiling takes twice as long.
#if OPS == PLAIN
    [[unroll]]
#else
    [[dont_unroll]]
#endif
    for (uint v = 0; v < VEC4S; v++) {
        uint i = begin + v * SUBGROUP;
        if (!WHOLE && 4 * i >= count) break;
        compute(i);
        if (WHOLE || i < whole) {
            STORE(0, result0)
#if OUTPUTS > 1
            if (RESULTS > 1) { STORE(1, result1) }
            if (RESULTS > 2) { STORE(2, result2) }
            if (RESULTS > 3) { STORE(3, result3) }
#endif
        } else {
            // One to three elements are left: a loop, since a software driver runs both sides of a plain branch.
            [[dont_unroll]] for (uint e = 0; e < (count & 3u); e++) {
                STORE_ONE(0, result0, e)
#if OUTPUTS > 1
                if (RESULTS > 1) { STORE_ONE(1, result1, e) }
                if (RESULTS > 2) { STORE_ONE(2, result2, e) }
                if (RESULTS > 3) { STORE_ONE(3, result3, e) }
#endif
            }
        }
    }
}

#endif
