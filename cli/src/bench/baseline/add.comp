#version 460
// The shader of the bare baseline: nothing but the add, loaded the way that is fastest on every driver measured.
// glslangValidator --quiet -V --target-env vulkan1.3 add.comp -o add.spv

layout(local_size_x = 64) in;
layout(binding = 0, rgba32f) readonly uniform imageBuffer lhs;
layout(binding = 1, rgba32f) readonly uniform imageBuffer rhs;
layout(binding = 2, std430) writeonly restrict buffer Out { vec4 sum[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    sum[i] = imageLoad(lhs, int(i)) + imageLoad(rhs, int(i));
}
