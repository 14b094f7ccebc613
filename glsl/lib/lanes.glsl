// Invocations that share a row, and how they see each other's partial results. The build chooses with TREE: shuffles
// inside a subgroup (software drivers, where shared memory and barriers cost more than the rest of a kernel), or
// shared memory (GPUs, and devices without shuffles). Both ways every lane ends with the same bits.

#define SHARED 1
#define SHUFFLE 2

layout(constant_id = 1) const uint LANES = 8;  // per row: a power of two; with SHUFFLE at most the subgroup's size

#if TREE == SHUFFLE

uint lane_in_row() { return gl_SubgroupInvocationID % LANES; }
uint row_in_group() { return gl_SubgroupID * (gl_SubgroupSize / LANES) + gl_SubgroupInvocationID / LANES; }

// The words of the lane whose number differs in the bit `step`.
uvec3 exchange(uvec3 words, uint step) { return subgroupShuffleXor(words, step); }

#elif TREE == SHARED

#define MOST_LANES 256

uint lane_in_row() { return gl_LocalInvocationIndex % LANES; }
uint row_in_group() { return gl_LocalInvocationIndex / LANES; }

// Two sets, used in turn: a lane may run ahead by one exchange, so one barrier per exchange is enough.
shared uint exchange_words[2][3][MOST_LANES];
uint exchange_set = 0;

// All invocations of the workgroup must come here.
uvec3 exchange(uvec3 words, uint step) {
    uint i = gl_LocalInvocationIndex, other = i ^ step, set = exchange_set;
    exchange_words[set][0][i] = words[0];
    exchange_words[set][1][i] = words[1];
    exchange_words[set][2][i] = words[2];
    barrier();
    exchange_set = 1 - set;
    return uvec3(exchange_words[set][0][other], exchange_words[set][1][other], exchange_words[set][2][other]);
}

#endif

// Runs STEP(k) for k = 1, 2, 4 up to half the lanes: with constants, since software drivers shuffle by those faster.
#define FOR_EACH_STEP(STEP) \
    if (LANES > 1) STEP(1) \
    if (LANES > 2) STEP(2) \
    if (LANES > 4) STEP(4) \
    if (LANES > 8) STEP(8) \
    if (LANES > 16) STEP(16) \
    if (LANES > 32) STEP(32) \
    if (LANES > 64) STEP(64) \
    if (LANES > 128) STEP(128)
