#version 460
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
// relu(a * b + c) * d, fused by hand: what fusion is measured against. Loaded and indexed the way that is fastest on every
// driver measured; its size is a multiple of a workgroup's.
// glslangValidator --quiet -V --target-env vulkan1.3 relu_abcd.comp -o relu_abcd.spv

#define LANES 64
#define EACH 8

layout(local_size_x = LANES) in;
layout(binding = 0, rgba32f) readonly uniform imageBuffer a;
layout(binding = 1, rgba32f) readonly uniform imageBuffer b;
layout(binding = 2, rgba32f) readonly uniform imageBuffer c;
layout(binding = 3, rgba32f) readonly uniform imageBuffer d;
layout(binding = 4, std430) writeonly restrict buffer Out { vec4 result[]; };

void main() {
    // Each subgroup walks through neighbouring elements.
    uint first = gl_WorkGroupID.x * LANES * EACH + gl_SubgroupID * gl_SubgroupSize * EACH + gl_SubgroupInvocationID;
    [[unroll]] for (uint k = 0; k < EACH; k++) {
        int i = int(first + k * gl_SubgroupSize);
        result[i] = max(imageLoad(a, i) * imageLoad(b, i) + imageLoad(c, i), vec4(0.0)) * imageLoad(d, i);
    }
}
