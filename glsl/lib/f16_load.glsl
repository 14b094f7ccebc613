// 16-bit floats: two to a word, widened as they are loaded. No device needs a feature for that. lib/f16_store.glsl stores
// them.

// Four neighbours of a tensor, the i-th four; `words` are the 16 bytes that they are in, which are those of number i / 2.
uvec4 widened(uvec4 words, uint i) {
    uvec2 pair = (i & 1u) != 0 ? words.zw : words.xy;
    return floatBitsToUint(vec4(unpackHalf2x16(pair.x), unpackHalf2x16(pair.y)));
}

// The i-th element; `words` are the 16 bytes of number i / 8.
uint widened_one(uvec4 words, uint i) {
    return floatBitsToUint(unpackHalf2x16(words[(i >> 1) & 3u])[i & 1u]);
}
