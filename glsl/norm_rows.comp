#version 460
//! build: LOAD=BUFFER TREE=SHARED,SHUFFLE INPUTS=3,4
//! build: LOAD=TEXEL TREE=SHUFFLE INPUTS=3,4
//! build: LOAD=TEXEL STORE=UNIFORM TREE=SHUFFLE INPUTS=3,4
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

// Normalisation of rows: (x - mean) / sqrt(variance + epsilon) * gamma + beta, or without the mean. LANES invocations
// share a row. One of whole texels that fits stays in registers; any other is read three times: for the mean, for the
// squares of the distances from it, and for the results. The rounding of the mean is seen as the sum of the distances,
// and taken off them: a common offset costs no accuracy. Modules with four inputs add the fourth to the first, and
// store the sum, too. Modules with STORE make whole results of whole workgroups: a row is LANES x VEC4S texels, and a
// subgroup's.

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const bool SWEEPS = false;   // rows are read three times
layout(constant_id = 3) const uint VEC4S = 8;        // texels that a lane holds
layout(constant_id = 4) const bool FULL = false;     // rows are exactly LANES x VEC4S texels
layout(constant_id = 5) const bool CENTRED = true;   // the mean is subtracted
layout(constant_id = 6) const uint WEIGHTS = 0;      // how the elements of a texel find theirs
#define FOURS 0                                      // four that follow each other, and are a texel
#define ONE 1                                        // one for all four
#define APART 2                                      // each finds its own
layout(constant_id = 7) const bool SHIFTED = false;  // there is a beta

layout(push_constant, std430) uniform Push {
    uint units;           // rows in this dispatch
    uint begin;           // the first of them
    uint extent;          // elements of a row
    uint origin;          // where the binding begins in the input
    uint out_origin;      // and in the output
    uint groups;          // rows that have weights of their own, in turn
    uint groups_magic;    // division by that as a multiplication
    uint groups_shift;    // and a shift
    uint group_weights;   // weights of such a row
    uint spread;          // elements that a weight is for
    uint spread_magic;
    uint spread_shift;
    float share;          // 1 / extent
    float epsilon;
#ifdef STORE
    uint digits[8];       // 0 to 7
#endif
};

INPUT(0, input0)
INPUT(1, gamma)
INPUT(2, beta)
#if INPUTS == 4
INPUT(3, residual)
#endif

#ifdef STORE
layout(binding = INPUTS, std430) writeonly restrict buffer Out { u64vec4 result[]; };
#if INPUTS == 4
layout(binding = INPUTS + 1, std430) writeonly restrict buffer Added { u64vec4 added[]; };
#endif
#define SUBGROUP LANES
#include "lib/uniform_store.glsl"
#else
layout(binding = INPUTS, std430) writeonly restrict buffer Out { uvec4 result[]; };
#if INPUTS == 4
layout(binding = INPUTS + 1, std430) writeonly restrict buffer Added { uvec4 added[]; };
#endif
#endif

vec4 element(uint i) {
#if INPUTS == 4
    precise vec4 total = F(input0(i)) + F(residual(i));
    return total;
#else
    return F(input0(i));
#endif
}

// Sums of all lanes, the same in each: both orders of two give the same bits.
vec2 join_sums(vec4 a, vec4 b) {
    precise vec4 sums = vec4(a.xy + a.zw, b.xy + b.zw);
    precise vec2 sum = sums.xz + sums.yw;
#define STEP(k) { \
        uvec3 other = exchange(uvec3(U(sum), 0), k); \
        precise vec2 both = sum + F(other.xy); \
        sum = both; \
    }
    FOR_EACH_STEP(STEP)
#undef STEP
    return sum;
}

// What is known of a row.
struct Row {
    uint weights;  // the first of its own
    float mean;
    float drift;   // what the mean was too small by
    float scale;
};

uint first_weight(uint row) {
    return groups == 1 ? 0 : (row - divide(row, groups_magic, groups_shift) * groups) * group_weights;
}

uint weight_of(uint first, uint place) {
    return first + (spread == 1 ? place : divide(place, spread_magic, spread_shift));
}

#define WEIGHTS_OF(name) \
    float one_##name(uint k) { \
        uvec4 four = name(k >> 2); \
        return F(four[k & 3]); \
    } \
    vec4 name##_at(uint first, uvec4 place) { \
        if (WEIGHTS == FOURS) return F(name((first + place.x) >> 2)); \
        if (WEIGHTS == ONE) return vec4(one_##name(weight_of(first, place.x))); \
        uvec4 inside = min(place, uvec4(extent - 1)); \
        return vec4(one_##name(weight_of(first, inside.x)), one_##name(weight_of(first, inside.y)), \
                    one_##name(weight_of(first, inside.z)), one_##name(weight_of(first, inside.w))); \
    }

WEIGHTS_OF(gamma)
WEIGHTS_OF(beta)

vec4 distance_of(vec4 x, float mean) {
    precise vec4 d = x - mean;
    return CENTRED ? d : x;
}

void settle_scale(inout Row row, vec4 squares, vec4 distances) {
    vec2 sums = join_sums(squares, distances);
    row.drift = CENTRED ? sums.y * share : 0;
    precise float variance = sums.x * share - row.drift * row.drift;
    row.scale = inversesqrt(max(variance, 0) + epsilon);
    // A maximum may lose a NaN.
    if (isnan(variance)) row.scale = variance;
}

uvec4 outcome(Row row, vec4 d, uvec4 place) {
    precise vec4 y = (d - row.drift) * row.scale * gamma_at(row.weights, place);
    if (SHIFTED) y = y + beta_at(row.weights, place);
    return U(y);
}

vec4 held[VEC4S];

// Adds up what the lanes hold. Eights first, then their sum: few enough for the errors to stay small.
void normalise_held(inout Row row, bool live[VEC4S]) {
    precise vec4 sum = vec4(0), eight = vec4(0);
    if (CENTRED) {
        [[unroll]] for (uint j = 0; j < VEC4S; j++) {
            eight = eight + held[j];
            if (j % 8 == 7) {
                sum = sum + eight;
                eight = vec4(0);
            }
        }
        sum = sum + eight;
        row.mean = join_sums(sum, vec4(0)).x * share;
    }
    precise vec4 squares = vec4(0), distances = vec4(0), eight_squares = vec4(0), eight_distances = vec4(0);
    [[unroll]] for (uint j = 0; j < VEC4S; j++) {
        vec4 d = distance_of(held[j], row.mean);
        if (!FULL) d = live[j] ? d : vec4(0);
        held[j] = d;
        eight_squares = eight_squares + d * d;
        eight_distances = eight_distances + d;
        if (j % 8 == 7) {
            squares = squares + eight_squares;
            distances = distances + eight_distances;
            eight_squares = vec4(0);
            eight_distances = vec4(0);
        }
    }
    settle_scale(row, squares + eight_squares, distances + eight_distances);
}

#ifdef STORE

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint unit = group * gl_NumSubgroups + gl_SubgroupID, lane = gl_SubgroupInvocationID;
    uint first = ((begin + unit) * extent - origin) >> 2, at = ((begin + make_uniform(unit)) * extent - out_origin) >> 2;
    Row row = Row(first_weight(begin + unit), 0, 0, 0);
    bool live[VEC4S];
    [[unroll]] for (uint j = 0; j < VEC4S; j++) {
        held[j] = element(first + j * LANES + lane);
        live[j] = true;
#if INPUTS == 4
        UNIFORM_STORE(added, at + j * LANES, U(held[j]))
#endif
    }
    normalise_held(row, live);
    [[unroll]] for (uint j = 0; j < VEC4S; j++) {
        UNIFORM_STORE(result, at + j * LANES, outcome(row, held[j], 4 * (j * LANES + lane) + uvec4(0, 1, 2, 3)))
    }
}

#else

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

#if INPUTS == 4
void store_added(UnalignedRange s, uint shift, uint i, uvec4 r) {
    uvec4 place = places(s, i);
    uint o = i + shift;
    if (all(lessThan(place, uvec4(s.size)))) {
        added[o] = r;
    } else {
        uint k = place.x < s.size ? 0 : 3 - place.w;
        [[dont_unroll]] for (; k < 4 && place[k] < s.size; k++) added[o][k] = r[k];
    }
}
#endif

void in_registers(inout Row row, UnalignedRange s, uint lane, bool stores, uint shift) {
    uint texels = extent >> 2;
    bool live[VEC4S];
    [[unroll]] for (uint j = 0; j < VEC4S; j++) {
        uint k = lane + j * LANES;
        live[j] = FULL || k < texels;
        vec4 x = element(s.first + (FULL ? k : min(k, texels - 1)));
        held[j] = live[j] ? x : vec4(0);
#if INPUTS == 4
        if (stores && live[j]) added[s.first + k + shift] = U(held[j]);
#endif
    }
    normalise_held(row, live);
    [[unroll]] for (uint j = 0; j < VEC4S; j++) {
        uint k = lane + j * LANES;
        uvec4 r = outcome(row, held[j], 4 * (FULL ? k : min(k, texels - 1)) + uvec4(0, 1, 2, 3));
        if (stores && live[j]) result[s.first + k + shift] = r;
    }
}

vec4 masked(UnalignedRange s, uint i, vec4 x) { return mix(vec4(0), x, lessThan(places(s, i), uvec4(s.size))); }

float swept_mean(UnalignedRange s, uint lane) {
    vec4 sum = vec4(0), rest = vec4(0);
    uint i = s.inside + lane;
    [[dont_unroll]] for (uint b = 0; b < s.blocks; b++) {
        vec4 x[BLOCK];
        [[unroll]] for (uint j = 0; j < BLOCK; j++) x[j] = element(i + j * LANES);
        precise vec4 eight = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
        add_exactly(sum, rest, eight);
        i += LANES * BLOCK;
    }
    [[dont_unroll]] for (uint j = lane; j < s.singles; j += LANES) {
        uint k = single(s, j);
        add_exactly(sum, rest, masked(s, k, element(k)));
    }
    return join_sums(settle(sum, rest), vec4(0)).x * share;
}

void swept_scale(inout Row row, UnalignedRange s, uint lane) {
    vec4 squares = vec4(0), rest = vec4(0), distances = vec4(0), rest2 = vec4(0);
    uint i = s.inside + lane;
    [[dont_unroll]] for (uint b = 0; b < s.blocks; b++) {
        vec4 d[BLOCK];
        [[unroll]] for (uint j = 0; j < BLOCK; j++) d[j] = distance_of(element(i + j * LANES), row.mean);
        precise vec4 eight = ((d[0] + d[1]) + (d[2] + d[3])) + ((d[4] + d[5]) + (d[6] + d[7]));
        precise vec4 low = (d[0] * d[0] + d[1] * d[1]) + (d[2] * d[2] + d[3] * d[3]);
        precise vec4 high = (d[4] * d[4] + d[5] * d[5]) + (d[6] * d[6] + d[7] * d[7]);
        add_exactly(squares, rest, low + high);
        add_exactly(distances, rest2, eight);
        i += LANES * BLOCK;
    }
    [[dont_unroll]] for (uint j = lane; j < s.singles; j += LANES) {
        uint k = single(s, j);
        vec4 d = masked(s, k, distance_of(element(k), row.mean));
        add_exactly(squares, rest, d * d);
        add_exactly(distances, rest2, d);
    }
    settle_scale(row, settle(squares, rest), settle(distances, rest2));
}

void in_sweeps(inout Row row, UnalignedRange s, uint lane, bool stores, uint shift) {
    if (CENTRED) row.mean = swept_mean(s, lane);
    swept_scale(row, s, lane);
    uint i = s.inside + lane;
    [[dont_unroll]] for (uint b = 0; b < s.blocks; b++) {
        [[unroll]] for (uint j = 0; j < BLOCK; j++) {
            uint k = i + j * LANES;
            vec4 x = element(k);
            uvec4 r = outcome(row, distance_of(x, row.mean), places(s, k));
            if (stores) result[k + shift] = r;
#if INPUTS == 4
            if (stores) added[k + shift] = U(x);
#endif
        }
        i += LANES * BLOCK;
    }
    [[dont_unroll]] for (uint j = lane; j < s.singles; j += LANES) {
        uint k = single(s, j);
        vec4 x = element(k);
        uvec4 r = outcome(row, distance_of(x, row.mean), places(s, k));
        if (stores) store(s, shift, k, r);
#if INPUTS == 4
        if (stores) store_added(s, shift, k, U(x));
#endif
    }
}

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint unit = group * (gl_WorkGroupSize.x / LANES) + row_in_group(), lane = lane_in_row();
    // Lanes without a row repeat the last one: they must take part in the exchange.
    bool live = unit < units;
    uint at = begin + min(unit, units - 1);
    UnalignedRange s = unaligned_range(at * extent - origin, extent, LANES);
    // From texels of the input to those of the output: windows begin at whole ones.
    uint shift = (origin >> 2) - (out_origin >> 2);
    Row row = Row(first_weight(at), 0, 0, 0);
    if (SWEEPS) {
        in_sweeps(row, s, lane, live, shift);
    } else {
        in_registers(row, s, lane, live, shift);
    }
}

#endif
