// Elements on their way to memory: halves and quarters of words. Integers lose their upper bits.
#include "lib/format.glsl"

// 16-bit floats: to the nearest, ties to even, on every device: packHalf2x16 may round as it likes.
uvec4 f16_bits(uvec4 bits) {
    uvec4 sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    // Half of the last bit is added, and one less where the last bit is even.
    uvec4 normal = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
    // In the sum with 0.5 the last bit is that of the smallest f16 number.
    precise vec4 sum = uintBitsToFloat(min(magnitude, uvec4(0x38800000u))) + 0.5;
    uvec4 f16_bits = mix(normal, floatBitsToUint(sum) - 0x3f000000u, lessThan(magnitude, uvec4(0x38800000u)));
    f16_bits = mix(f16_bits, uvec4(0x7c00u), greaterThanEqual(magnitude, uvec4(0x477ff000u)));
    f16_bits = mix(f16_bits, uvec4(0x7e00u), greaterThan(magnitude, uvec4(0x7f800000u)));
    return sign | f16_bits;
}

// The upper halves of floats: likewise. A NaN stays one, whatever its lower bits were.
uvec4 bf16_bits(uvec4 bits) {
    uvec4 nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return mix(nearest, bits >> 16 | 0x40u, greaterThan(bits & 0x7fffffffu, uvec4(0x7f800000u)));
}

// The words of four neighbours: one of quarters, two of halves.
uvec2 packed_words(uint format, uvec4 bits) {
    if (format >= FORMAT_U8) {
        uvec4 bytes = bits & 0xffu;
        return uvec2(bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24, 0);
    }
    uvec4 bits16 = bits & 0xffffu;
    if (format == FORMAT_F16) bits16 = f16_bits(bits);
    if (format == FORMAT_BF16) bits16 = bf16_bits(bits);
    return bits16.xz | bits16.yw << 16;
}

// As they will be when they have been stored and loaded again.
uvec4 rounded(uint format, uvec4 bits) {
    uvec2 words = packed_words(format, bits);
    return widened(format, uvec4(words, words), 0);
}
