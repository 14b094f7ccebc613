//! Numbers on which candidates are measured and checked.

/// Numbers between -1 and 1 that are the same in every run.
pub(super) fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}
