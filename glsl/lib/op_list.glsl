// An elementwise op: a list of operations in specialization constants. The including file defines INPUTS and STEPS, has
// `scalars`, push constants or copies of them, and fills `loaded`, four elements of each input, before it runs it.

layout(constant_id = 6) const uint COUNT = 1;  // the number of steps
// Steps: op | operand a << 8 | operand b << 16 | operand c << 24
layout(constant_id = 8) const uint STEP0 = 0;
#if STEPS > 1
layout(constant_id = 9) const uint STEP1 = 0;
layout(constant_id = 10) const uint STEP2 = 0;
layout(constant_id = 11) const uint STEP3 = 0;
#endif
#if STEPS > 4
layout(constant_id = 12) const uint STEP4 = 0;
layout(constant_id = 13) const uint STEP5 = 0;
layout(constant_id = 14) const uint STEP6 = 0;
layout(constant_id = 15) const uint STEP7 = 0;
layout(constant_id = 16) const uint STEP8 = 0;
layout(constant_id = 17) const uint STEP9 = 0;
layout(constant_id = 18) const uint STEP10 = 0;
layout(constant_id = 19) const uint STEP11 = 0;
layout(constant_id = 20) const uint STEP12 = 0;
layout(constant_id = 21) const uint STEP13 = 0;
layout(constant_id = 22) const uint STEP14 = 0;
layout(constant_id = 23) const uint STEP15 = 0;
#endif

uvec4 loaded[INPUTS];
uvec4 steps[STEPS];

// Operands: 0 and up an input, 32 and up a scalar, 64 and up an earlier step's result.
uvec4 operand(uint code) {
    if (code >= 64) return steps[code - 64];
    if (code >= 32) return uvec4(scalars[code - 32]);
    return loaded[code];
}

uvec4 run(uint word) {
    return apply(word & 255u, operand((word >> 8) & 255u), operand((word >> 16) & 255u), operand(word >> 24));
}

void run_op_list() {
    steps[0] = run(STEP0);
#if STEPS > 1
    if (COUNT > 1) steps[1] = run(STEP1);
    if (COUNT > 2) steps[2] = run(STEP2);
    if (COUNT > 3) steps[3] = run(STEP3);
#endif
#if STEPS > 4
    if (COUNT > 4) steps[4] = run(STEP4);
    if (COUNT > 5) steps[5] = run(STEP5);
    if (COUNT > 6) steps[6] = run(STEP6);
    if (COUNT > 7) steps[7] = run(STEP7);
    if (COUNT > 8) steps[8] = run(STEP8);
    if (COUNT > 9) steps[9] = run(STEP9);
    if (COUNT > 10) steps[10] = run(STEP10);
    if (COUNT > 11) steps[11] = run(STEP11);
    if (COUNT > 12) steps[12] = run(STEP12);
    if (COUNT > 13) steps[13] = run(STEP13);
    if (COUNT > 14) steps[14] = run(STEP14);
    if (COUNT > 15) steps[15] = run(STEP15);
#endif
}
