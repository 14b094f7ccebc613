// The operands of a matmul, four elements at a time. Needs lib/matmul.glsl, INPUT(0, a) and INPUT(1, b).

layout(constant_id = 42) const uint LHS_FORMAT = 0;
layout(constant_id = 43) const uint RHS_FORMAT = 0;

vec4 lhs(uint i) {
    return F(widened(LHS_FORMAT, a(i >> packing(LHS_FORMAT)), i));
}

vec4 rhs(uint i) {
    return F(widened(RHS_FORMAT, b(i >> packing(RHS_FORMAT)), i));
}
