// Dot products whose terms are spread over the lanes of a subgroup: rows of A with COLUMNS columns of B. A lane has four
// neighbours of k at a time, and sums up what it has; in the end the lanes' sums are added up.
//
// The kernel defines LANES, COLUMNS, DOT_ROWS (rows of A), and SUMMED_ROWS: those that are added up over the lanes at a time, a power of
// two, at most LANES and 8.

vec4 b_vecs[COLUMNS];  // of B, for this lane's four of k: a vec per column, or four rows without gaps
float dots[DOT_ROWS * COLUMNS];
float row_of_c[(COLUMNS + 3) / 4 * 4];

void begin_dots() {
    [[unroll]] for (uint i = 0; i < DOT_ROWS * COLUMNS; i++) dots[i] = 0;
}

// Four terms of each dot product of a row.
void add_terms(uint row, vec4 four, bool along_k) {
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
        [[unroll]] for (uint kk = 0; kk < 4; kk++) {
            uint place = along_k ? 4 * j + kk : kk * COLUMNS + j;
            dots[row * COLUMNS + j] += four[kk] * b_vecs[place / 4][place % 4];
        }
    }
}

// Adds SUMMED_ROWS rows up over the lanes, in as few shuffles as there are rows: at each distance lanes give away half of their
// rows and add up the other half, until each is left with the row of its own number, in `row_of_c`. Levels are counted, since
// drivers unroll loops that count, and what a loop indexes leaves its registers.
void sum_over_lanes(uint first) {
    uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
        float sums[SUMMED_ROWS];
        [[unroll]] for (uint i = 0; i < SUMMED_ROWS; i++) sums[i] = dots[(first + i) * COLUMNS + j];
        [[unroll]] for (uint level = 1; level < 4; level++) {
            uint distance = SUMMED_ROWS >> level;
            bool upper = (lane & distance) != 0;
            [[unroll]] for (uint i = 0; i < SUMMED_ROWS / 2; i++) {
                if (i >= distance) continue;
                float kept = upper ? sums[i + distance] : sums[i], given = upper ? sums[i] : sums[i + distance];
                sums[i] = kept + subgroupShuffleXor(given, distance);
            }
        }
        [[unroll]] for (uint level = 0; level < 7; level++)
            if (SUMMED_ROWS << level < LANES) sums[0] += subgroupShuffleXor(sums[0], SUMMED_ROWS << level);
        row_of_c[j] = sums[0];
    }
}
