// How elements lie in 32-bit words: words themselves, or halves and quarters of them that are widened as they are
// loaded. No device needs a feature for that. lib/packed_store.glsl stores them. The numbers are those of `Format` in
// src/shape/dtype.rs.
#ifndef FORMAT_WORD
#define FORMAT_WORD 0
#define FORMAT_F16 1
#define FORMAT_BF16 2
#define FORMAT_U16 3
#define FORMAT_I16 4
#define FORMAT_U8 5
#define FORMAT_I8 6
#define FORMAT_BOOL 7

// How far the number of an element is shifted to be that of its word.
uint packing(uint format) {
    return format == FORMAT_WORD ? 0 : format < FORMAT_U8 ? 1 : 2;
}

// The lower bits of words, with the sign that they have.
uvec4 signed_bits(uvec4 words, uint bits) { return uvec4(ivec4(words << (32 - bits)) >> (32 - bits)); }

// Four neighbours of a tensor, the i-th four; `words` are the 16 bytes that they are in, those of number i >>
// packing(format).
uvec4 widened(uint format, uvec4 words, uint i) {
    if (format == FORMAT_WORD) return words;
    if (format >= FORMAT_U8) {
        uvec4 bytes = (uvec4(words[i & 3u]) >> uvec4(0, 8, 16, 24)) & 0xffu;
        if (format == FORMAT_I8) return signed_bits(bytes, 8);
        return format == FORMAT_BOOL ? min(bytes, uvec4(1)) : bytes;
    }
    uvec2 pair = (i & 1u) != 0 ? words.zw : words.xy;
    if (format == FORMAT_F16) return floatBitsToUint(vec4(unpackHalf2x16(pair.x), unpackHalf2x16(pair.y)));
    uvec4 halves = uvec4(pair.x & 0xffffu, pair.x >> 16, pair.y & 0xffffu, pair.y >> 16);
    if (format == FORMAT_BF16) return halves << 16;
    return format == FORMAT_I16 ? signed_bits(halves, 16) : halves;
}

// The i-th element; `word` is the one of number i >> packing(format).
uint widened_word(uint format, uint word, uint i) {
    if (format == FORMAT_WORD) return word;
    if (format == FORMAT_F16) return floatBitsToUint(unpackHalf2x16(word)[i & 1u]);
    if (format >= FORMAT_U8) {
        uint byte = word >> (8 * (i & 3u)) & 0xffu;
        if (format == FORMAT_I8) return uint(int(byte << 24) >> 24);
        return format == FORMAT_BOOL ? min(byte, 1u) : byte;
    }
    uint bits = word >> (16 * (i & 1u)) & 0xffffu;
    if (format == FORMAT_BF16) return bits << 16;
    return format == FORMAT_I16 ? uint(int(bits << 16) >> 16) : bits;
}

// The i-th element; `words` are the 16 bytes of number i >> 2 >> packing(format).
uint widened_one(uint format, uvec4 words, uint i) {
    return widened_word(format, words[(i >> packing(format)) & 3u], i);
}
#endif
