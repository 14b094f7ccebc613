#version 460
// Edit me while `custom_kernel --watch` runs.
layout(local_size_x = 64) in;
layout(binding = 0, std430) readonly buffer In { float x[]; };
layout(binding = 1, std430) writeonly buffer Out { float y[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < y.length()) y[i] = x[i] * x[i] + OFFSET;
}
