// The places of an output with up to three dimensions behind the outer ones, of kernels that gather from around them.
// Needs lib/division.glsl. The including file declares `extents`, `magic` and `shifts`.

// The coordinates of an element, innermost first, and the number of its image.
uvec4 place_of(uint element, uvec3 extents, uvec3 magic, uint shifts) {
    uint q = extents.x == 1 ? element : divide(element, magic.x, shifts & 31u);
    uint p = extents.y == 1 ? q : divide(q, magic.y, (shifts >> 8) & 31u);
    uint o = extents.z == 1 ? p : divide(p, magic.z, (shifts >> 16) & 31u);
    return uvec4(element - q * extents.x, q - p * extents.y, p - o * extents.z, o);
}
