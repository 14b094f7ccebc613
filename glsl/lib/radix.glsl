// What the passes of a sort have in common. A row of keys is cut into runs, and an invocation walks through one of
// them.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint KEY = 0;             // the element type, as in lib/order.glsl
layout(constant_id = 2) const bool ENCODE = false;      // the first pass: elements become keys, and know no places yet
layout(constant_id = 3) const bool DESCENDING = false;
layout(constant_id = 4) const bool ALIGNED = false;     // runs begin at multiples of four

layout(push_constant, std430) uniform Push {
    uint units;   // runs of all rows
    uint runs;    // of a row
    uint magic;   // division by them
    uint divided;
    uint extent;  // of a row
    uint most;    // of a run, fewer than 256; the last one may be shorter
    uint shift;   // bits below the digit
} push;

struct Run { uint row, number, begin, size; };

Run run_of(uint unit) {
    uint row = push.runs == 1 ? unit : divide(unit, push.magic, push.divided), number = unit - row * push.runs;
    uint skip = number * push.most;
    return Run(row, number, row * push.extent + skip, min(push.most, push.extent - skip));
}

// One in the byte of a digit.
uvec4 one_of(uint digit) {
    return mix(uvec4(0), uvec4(1u << (8 * (digit & 3u))), equal(uvec4(digit >> 2), uvec4(0, 1, 2, 3)));
}

// What orders as it should: NaNs behind all else, or in front of it where the order is turned round.
uint sortable(uint x) {
    if (!ENCODE) return x;
    uint key = KEY == KEY_F32 && is_nan(x) ? 0xffffffffu : key_of(x, KEY);
    return DESCENDING ? ~key : key;
}

uint sorted_element(uint sorted) {
    uint key = DESCENDING ? ~sorted : sorted;
    return KEY == KEY_F32 && key == 0xffffffffu ? 0x7fc00000u : element_of(key, KEY);
}
