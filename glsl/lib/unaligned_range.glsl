// A span of elements that begins anywhere, read 16 bytes at a time: whole blocks of texels first, without masks, then
// the rest texel by texel under a mask. A texel at an end holds elements of the neighbours, or bytes behind the tensor.

// BLOCK, defined by whoever includes this, is the number of texels per lane and step.

struct UnalignedRange {
    uint begin, size;    // elements
    uint first;          // its first texel
    uint inside;         // the first texel that lies wholly inside
    uint blocks;         // steps of LANES x BLOCK texels from there
    uint rest;           // the texel behind those
    uint singles;        // texels to be read under a mask
};

UnalignedRange unaligned_range(uint begin, uint size, uint lanes) {
    uint inside = (begin + 3) >> 2;
    uint whole = max((begin + size) >> 2, inside);
    uint blocks = (whole - inside) / (lanes * BLOCK);
    uint rest = inside + blocks * lanes * BLOCK;
    uint limit = max((begin + size + 3) >> 2, rest);
    return UnalignedRange(begin, size, begin >> 2, inside, blocks, rest, inside - (begin >> 2) + limit - rest);
}

// The texel that is the j-th to be read under a mask.
uint single(UnalignedRange s, uint j) {
    uint heads = s.inside - s.first;
    return j < heads ? s.first + j : s.rest + (j - heads);
}

// The places in the span of a texel's four elements; those outside wrap around to something not below the size.
uvec4 places(UnalignedRange s, uint texel) { return 4 * texel - s.begin + uvec4(0, 1, 2, 3); }
