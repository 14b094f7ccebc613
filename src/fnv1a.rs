//! FNV-1a, 64 bits: names and checks files, keeps no secrets. The build script and tests include this file by its path.

/// A hash of what was added so far.
#[derive(Debug)]
pub(crate) struct Fnv1a(pub(crate) u64);

impl Fnv1a {
    pub(crate) fn new() -> Fnv1a {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes, as the published algorithm does, or whole words: a quarter of the steps, for hashes that only this
    /// crate compares.
    pub(crate) fn add<U: Copy + Into<u64>>(&mut self, units: &[U]) {
        for unit in units {
            self.0 = (self.0 ^ (*unit).into()).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
