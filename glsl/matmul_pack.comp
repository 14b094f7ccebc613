#version 460
//! build: LOAD=BUFFER,TEXEL
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/load.glsl"
#include "lib/f16_load.glsl"

// Copies matrices into panels: [batch][panel][row][width of a panel], each padded with zeros to whole panels, so that
// kernels can load four neighbours at once whatever the matrix's extents are. Panels may begin above and left of the
// matrix: what they have there is zero, too. An invocation moves four rows x four columns.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool TRANSPOSED = false;  // neighbours in memory are neighbouring rows
layout(constant_id = 2) const bool ALIGNED = false;     // all strides, and left, are multiples of four
layout(constant_id = 3) const bool IS_F16 = false;     // the source is f16; the copy is not

layout(push_constant, std430) uniform Push {
    uint rows, columns;
    uint stride;       // of the dimension that is not contiguous, in elements
    uint last;         // vec of the source
    uint panels;
    uint panel_vec4s;   // width of a panel
    uint panel_rows;   // rows of a panel
    uint blocks;       // of four rows x four columns in a batch
    uint first;        // block of this dispatch, counted over all batches
    uint count;        // blocks of this dispatch
    uint first_vec;    // where the output's binding begins
    uint batch_inner;
    uint outer, inner; // strides of the source's batch dimensions, in elements
    uint top, left;    // rows and columns of zeros before the matrix
};

INPUT(0, source)
layout(binding = 1, std430) writeonly restrict buffer Out { uvec4 result[]; };

// Four neighbours from any place.
uvec4 neighbours(uint at) {
    if (IS_F16 && ALIGNED) return widened(source(min(at >> 3, last)), at >> 2);
    if (IS_F16) {
        uvec4 i = at + uvec4(0, 1, 2, 3), words = min(i >> 3, uvec4(last));
        return uvec4(widened_one(source(words.x), i.x), widened_one(source(words.y), i.y),
                     widened_one(source(words.z), i.z), widened_one(source(words.w), i.w));
    }
    uvec4 low = source(min(at >> 2, last));
    if (ALIGNED) return low;
    // Before the first element `at` has wrapped around, and this wraps back.
    uvec4 high = source(min((at + 4) >> 2, last));
    uint s = at & 3u;
    uvec4 r = s == 0 ? low : uvec4(low.yzw, high.x);
    r = s >= 2 ? uvec4(low.zw, high.xy) : r;
    return s == 3 ? uvec4(low.w, high.xyz) : r;
}

void main() {
    uint index = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (index >= count) return;
    index += first;
    uint batch = index / blocks;
    index -= batch * blocks;
    uint base = batch / batch_inner * outer + batch % batch_inner * inner;
    uint per_panel = blocks / panels, panel = index / per_panel, within = index % per_panel;
    uint row = within / panel_vec4s * 4, along = within % panel_vec4s, column = (panel * panel_vec4s + along) * 4;
    uint to = ((batch * panels + panel) * panel_rows + row) * panel_vec4s + along - first_vec;
    uvec4 block[4];
    // Outside of the matrix these wrap around, and are not inside.
    uint from_row = row - top, from_column = column - left;
    [[unroll]] for (uint i = 0; i < 4; i++)
        block[i] = neighbours(base + (TRANSPOSED ? (from_column + i) * stride + from_row
                                                 : (from_row + i) * stride + from_column));
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uvec4 words = TRANSPOSED ? uvec4(block[0][i], block[1][i], block[2][i], block[3][i]) : block[i];
        bvec4 inside = lessThan(from_column + uvec4(0, 1, 2, 3), uvec4(from_row + i < rows ? columns : 0));
        if (row + i < panel_rows) result[to + i * panel_vec4s] = mix(uvec4(0), words, inside);
    }
}
