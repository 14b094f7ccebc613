// Division by an extent that is only known at run time, as a multiplication and a shift that the host worked out
// (src/kernels/division.rs). Right for every dividend below 2^31.

uint divide(uint n, uint multiplier, uint shift) {
    uint high, low;
    umulExtended(n, multiplier, high, low);
    return high >> shift;
}
