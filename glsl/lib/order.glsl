// Keys: unsigned integers that order as the elements do. The numbers are those of src/ir/scan.rs.

#define KEY_U32 0
#define KEY_I32 1
#define KEY_F32 2

bool is_nan(uint bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

// Floats order as numbers, and -0 is below +0. What a NaN is, is for the caller to say.
uint key_of(uint bits, uint type) {
    if (type == KEY_I32) return bits ^ 0x80000000u;
    if (type == KEY_F32) return bits ^ (uint(int(bits) >> 31) | 0x80000000u);
    return bits;
}

uint element_of(uint key, uint type) {
    if (type == KEY_I32) return key ^ 0x80000000u;
    if (type == KEY_F32) return key ^ (uint(int(~key) >> 31) | 0x80000000u);
    return key;
}
