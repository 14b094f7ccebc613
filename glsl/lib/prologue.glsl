// An elementwise op at the head of a kernel of rows: it runs as they are loaded, and what it makes is never stored. Whoever
// includes this has included lib/op_list.glsl, with three inputs.

layout(constant_id = 7) const uint SINGLE = 0;  // a bit for each input that is one element for all

// What the elementwise op makes of the elements of a texel.
uvec4 made(uint texel) {
    loaded[0] = (SINGLE & 1u) != 0 ? input0(0).xxxx : input0(texel);
    loaded[1] = (SINGLE & 2u) != 0 ? input1(0).xxxx : input1(texel);
    loaded[2] = (SINGLE & 4u) != 0 ? input2(0).xxxx : input2(texel);
    run_op_list();
    return steps[COUNT - 1];
}
