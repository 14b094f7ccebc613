// The operands of a matmul, four elements at a time. Needs lib/matmul.glsl, INPUT(0, a) and INPUT(1, b).

layout(constant_id = 42) const uint F16_MASK = 0;  // f16: 1 for A, 2 for B, 3 for both

vec4 lhs(uint i) {
    if ((F16_MASK & 1u) != 0) return F(widened(a(i >> 1), i));
    return F(a(i));
}

vec4 rhs(uint i) {
    if ((F16_MASK & 2u) != 0) return F(widened(b(i >> 1), i));
    return F(b(i));
}
