// The prologue of a kernel of rows: an elementwise op that runs on the elements as they are loaded. Its result is never
// stored. The including file has included lib/op_list.glsl, with three inputs.

layout(constant_id = 7) const uint SINGLE = 0;   // a bit for each input that is one element for all
layout(constant_id = 12) const uint PLACES = 0;  // a bit for each input that is the element's place in its row, and is not loaded

uint row_begin;  // where the row begins, in elements from the first texel on; it may be before that, modulo 2^32

// The op's results for the elements of a texel.
uvec4 made(uint texel) {
    uvec4 places = 4 * texel - row_begin + uvec4(0, 1, 2, 3);
    loaded[0] = (SINGLE & 1u) != 0 ? input0(0).xxxx : (PLACES & 1u) != 0 ? places : input0(texel);
    loaded[1] = (SINGLE & 2u) != 0 ? input1(0).xxxx : (PLACES & 2u) != 0 ? places : input1(texel);
    loaded[2] = (SINGLE & 4u) != 0 ? input2(0).xxxx : (PLACES & 4u) != 0 ? places : input2(texel);
    run_op_list();
    return steps[COUNT - 1];
}
