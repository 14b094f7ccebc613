// What kernels that multiply through shared memory have in common: a workgroup owns TILE_M x TILE_N of the result, an
// invocation FRAME_M x FRAME_N of that. Both tiles lie in shared memory as [k][row or column], so that four
// neighbours are one load. The kernel fills them, between barriers.
//
// Needs lib/epilogue.glsl.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TILE_M = 64;
layout(constant_id = 2) const uint TILE_N = 64;
layout(constant_id = 3) const uint TILE_K = 16;
layout(constant_id = 4) const uint FRAME_M = 4;  // multiples of 4
layout(constant_id = 5) const uint FRAME_N = 4;

const uint THREADS_N = TILE_N / FRAME_N;
const uint THREADS = (TILE_M / FRAME_M) * THREADS_N;
const uint LOADS_A = TILE_M * TILE_K / 4 / THREADS;
const uint LOADS_B = TILE_N * TILE_K / 4 / THREADS;
// One vec4 more than the tile is wide, against bank conflicts.
const uint PITCH_A = TILE_M / 4 + 1;
const uint PITCH_B = TILE_N / 4 + 1;
shared vec4 tile_a[TILE_K * PITCH_A];
shared vec4 tile_b[TILE_K * PITCH_B];

vec4 acc[FRAME_M * FRAME_N / 4];

void clear_frame() {
    [[unroll]] for (uint i = 0; i < FRAME_M * FRAME_N / 4; i++) acc[i] = vec4(0);
}

void multiply_tiles() {
    uint tx = gl_LocalInvocationID.x % THREADS_N, ty = gl_LocalInvocationID.x / THREADS_N;
    [[unroll]] for (uint kk = 0; kk < TILE_K; kk++) {
        vec4 av[FRAME_M / 4], bv[FRAME_N / 4];
        [[unroll]] for (uint i = 0; i < FRAME_M / 4; i++) av[i] = tile_a[kk * PITCH_A + ty + i * (TILE_M / FRAME_M)];
        [[unroll]] for (uint j = 0; j < FRAME_N / 4; j++) bv[j] = tile_b[kk * PITCH_B + tx + j * THREADS_N];
        [[unroll]] for (uint i = 0; i < FRAME_M; i++)
            [[unroll]] for (uint j = 0; j < FRAME_N / 4; j++) acc[i * (FRAME_N / 4) + j] += av[i / 4][i % 4] * bv[j];
    }
}

// Stores what is inside the result, and above row `end`, of the tile that begins at `row` and `column`.
void store_frame(uint row, uint column, uint end) {
    uint tx = gl_LocalInvocationID.x % THREADS_N, ty = gl_LocalInvocationID.x / THREADS_N;
    // Drivers unroll these; written as loops, the epilogue stands in the module once.
    [[unroll]] for (uint j = 0; j < FRAME_N / 4; j++) {
        uint at = column + 4 * (tx + j * THREADS_N);
        begin_columns(at);
        [[unroll]] for (uint i = 0; i < FRAME_M; i++) {
            uint to = row + 4 * (ty + i / 4 * (TILE_M / FRAME_M)) + i % 4;
            if (to < end) store(acc[i * (FRAME_N / 4) + j], to, at);
        }
    }
}
