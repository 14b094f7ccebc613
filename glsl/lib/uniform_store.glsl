// Stores of a whole subgroup together, for lavapipe. That driver stores lane by lane, in a loop that takes some 45
// instructions for 16 bytes, unless it can prove that every lane stores to the same address: then it stores what the first one
// has, in 16. So here all lanes store the value of each lane in turn. Its proof knows constants and push constants, and
// sums and products of them, but not the number of a subgroup: that is looked up in push constants, digit by digit.
// Inside a branch or a loop that the driver does not unroll it gives up.

// Whoever includes this has `uint digits[8]` among its push constants, with 0 to 7 in it.

// The number itself, if it is below 2^18 and the same in the whole subgroup.
uint make_uniform(uint number) {
    uint sum = 0;
    [[unroll]] for (uint place = 0; place < 18; place += 3) sum |= digits[(number >> place) & 7u] << place;
    return sum;
}

// Stores each lane's words behind those of the lane before, at a place that is made uniform and even: 16 bytes times `at` are where
// the first lane's go. Two lanes at a time, and words in pairs: the fewer stores the better.
#define UNIFORM_STORE(result, at, words) { \
        uvec4 four = words; \
        u64vec2 own = u64vec2(packUint2x32(four.xy), packUint2x32(four.zw)); \
        [[unroll]] for (uint lane = 0; lane < SUBGROUP; lane += 2) { \
            result[((at) + lane) / 2] = u64vec4(subgroupShuffle(own, lane), subgroupShuffle(own, lane + 1)); \
        } \
    }
