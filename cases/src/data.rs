//! Inputs for cases: the same on every machine.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in [lo, hi).
    pub fn uniform(&mut self, lo: f32, hi: f32) -> f32 {
        let unit = (self.bits() >> 40) as f32 / (1u64 << 24) as f32;
        lo + (hi - lo) * unit
    }
}

/// `n` numbers in [lo, hi).
pub fn uniform(n: usize, lo: f32, hi: f32, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.uniform(lo, hi)).collect()
}

/// Numbers that break things.
pub const SPECIAL: [f32; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-40,
    0.5,
    -0.5,
    2.5,
    -3.5,
];

/// Lengths around everything that matters: vectors, workgroups, primes.
pub const LENGTHS: [usize; 14] = [0, 1, 2, 3, 4, 5, 31, 255, 256, 257, 2047, 2049, 65_537, 100_003];

/// Elements of what is timed by the name of its operation.
pub const BENCHED: usize = 1 << 20;
/// Rows and columns of the square matrices among them.
pub const BENCHED_SIDE: usize = 1 << 10;

/// For timing: positive, so that every function is defined, and of some sizes, and no result is a denormal or infinite.
pub fn benched(n: usize, seed: u64) -> Vec<f32> {
    uniform(n, 0.25, 4.0, seed)
}
