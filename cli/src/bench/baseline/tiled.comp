#version 460
// The matrix product that people write by hand: 16 x 16 tiles in shared memory, one element per invocation. Whole
// tiles only. tiled.spv is this file, compiled for Vulkan 1.3 without optimisation.
layout(local_size_x = 16, local_size_y = 16) in;
layout(push_constant, std430) uniform Push { uint m, n, k; };
layout(binding = 0, std430) readonly buffer A { float a[]; };
layout(binding = 1, std430) readonly buffer B { float b[]; };
layout(binding = 2, std430) writeonly buffer C { float c[]; };
shared float tile_a[16][16];
shared float tile_b[16][16];

void main() {
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    uint row = gl_GlobalInvocationID.y, column = gl_GlobalInvocationID.x;
    float sum = 0.0;
    for (uint at = 0; at < k; at += 16) {
        tile_a[y][x] = a[row * k + at + x];
        tile_b[y][x] = b[(at + y) * n + column];
        barrier();
        for (uint i = 0; i < 16; i++) sum += tile_a[y][i] * tile_b[i][x];
        barrier();
    }
    c[row * n + column] = sum;
}
