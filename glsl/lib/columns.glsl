// Four neighbouring columns where rows are no whole texels: they may begin anywhere.

uvec4 joined(uvec4 low, uvec4 high, uint skip) {
    uvec4 r = skip == 1 ? uvec4(low.yzw, high.x) : low;
    r = skip == 2 ? uvec4(low.zw, high.xy) : r;
    return skip == 3 ? uvec4(low.w, high.xyz) : r;
}
