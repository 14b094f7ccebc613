// Uniform stores, for lavapipe. The driver stores lane by lane, in a loop that takes some 45 instructions for 16 bytes,
// unless it can prove that all lanes store to one address. Then it stores the value of the first lane, in 16
// instructions. So here all lanes store the value of each lane in turn. The driver's proof covers constants, push
// constants, and sums and products of them. It does not cover the number of a subgroup, which is therefore looked up in
// push constants, digit by digit. There is no proof inside a branch, or inside a loop that the driver does not unroll.

// The including file has `uint digits[8]` in its push constants, with 0 to 7 in it.

// The number itself, if it is below 2^18 and the same in the whole subgroup.
uint make_uniform(uint number) {
    uint sum = 0;
    [[unroll]] for (uint place = 0; place < 18; place += 3) sum |= digits[(number >> place) & 7u] << place;
    return sum;
}

// Stores each lane's words after those of the lane before. `at` is uniform and even: the first lane's words begin at 16
// bytes times `at`. Two lanes at a time, and words in pairs, since fewer stores are faster.
#define UNIFORM_STORE(result, at, words) { \
        uvec4 four = words; \
        u64vec2 own = u64vec2(packUint2x32(four.xy), packUint2x32(four.zw)); \
        [[unroll]] for (uint lane = 0; lane < SUBGROUP; lane += 2) { \
            result[((at) + lane) / 2] = u64vec4(subgroupShuffle(own, lane), subgroupShuffle(own, lane + 1)); \
        } \
    }
