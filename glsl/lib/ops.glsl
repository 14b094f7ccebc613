// Every elementwise operation, once: alone and fused it is this code that runs.
// Operands and results are raw bits. Bodies are `precise`, so that no driver contracts a multiplication and an
// addition and fused and unfused results are the same bits.

#define OP_COPY 0
#define OP_ADD_F32 1
#define OP_SUB_F32 2
#define OP_MUL_F32 3
#define OP_DIV_F32 4

#define F(x) uintBitsToFloat(x)

uvec4 apply(uint op, uvec4 a, uvec4 b, uvec4 c) {
    precise vec4 r;
    switch (op) {
    case OP_ADD_F32: r = F(a) + F(b); break;
    case OP_SUB_F32: r = F(a) - F(b); break;
    case OP_MUL_F32: r = F(a) * F(b); break;
    case OP_DIV_F32: r = F(a) / F(b); break;
    default: return a;
    }
    return floatBitsToUint(r);
}
