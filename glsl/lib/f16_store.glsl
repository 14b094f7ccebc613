// 16-bit floats on their way to memory: two to a word.

// To the nearest, ties to even, on every device: packHalf2x16 may round as it likes.
uvec4 to_f16(uvec4 bits) {
    uvec4 sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    // Half of the last bit is added, and one less where the last bit is even.
    uvec4 normal = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
    // In the sum with 0.5 the last bit is that of the smallest half.
    precise vec4 sum = uintBitsToFloat(min(magnitude, uvec4(0x38800000u))) + 0.5;
    uvec4 f16_bits = mix(normal, floatBitsToUint(sum) - 0x3f000000u, lessThan(magnitude, uvec4(0x38800000u)));
    f16_bits = mix(f16_bits, uvec4(0x7c00u), greaterThanEqual(magnitude, uvec4(0x477ff000u)));
    f16_bits = mix(f16_bits, uvec4(0x7e00u), greaterThan(magnitude, uvec4(0x7f800000u)));
    return sign | f16_bits;
}

// The two words of four neighbours.
uvec2 f16_words(uvec4 bits) {
    uvec4 bits16 = to_f16(bits);
    return bits16.xz | bits16.yw << 16;
}

// As they will be when they have been stored and loaded again.
uvec4 rounded_to_f16(uvec4 bits) {
    uvec2 words = f16_words(bits);
    return floatBitsToUint(vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)));
}
