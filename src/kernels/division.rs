//! Division by run-time extents in shaders, as a multiplication and a shift; see `glsl/lib/division.glsl`.

use crate::ir::branches::branch;

/// Dimensions that kernels walk over. A view that has more after neighbours are merged is copied first
/// (`copy/strided.rs`).
pub(crate) const MOST_DIMS: usize = 4;

/// Stands for "no such dimension": everything lies in it.
pub(crate) const ENDLESS: u32 = 1 << 31;

/// `n / d == (n * multiplier >> 32) >> shift` for every `n` below 2^31 and every `d` from 2 to 2^31.
pub(crate) fn division(d: u32) -> (u32, u32) {
    // A divisor of 1 would need 33 bits. Nothing divides by one: such dimensions are collapsed, or are `ENDLESS`.
    let d = d.max(2);
    // The smallest l with d <= 2^l; the multiplier is 2^(31+l) / d rounded up, which fits in 32 bits.
    let l = d.next_power_of_two().trailing_zeros();
    (((1u64 << (31 + l)) / u64::from(d) + 1) as u32, l - 1)
}

/// What a shader needs to split an index into coordinates: three divisions, innermost first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisions {
    pub(crate) extents: [u32; 3],
    pub(crate) magic: [u32; 3],
    /// 8 bits each.
    pub(crate) shifts: u32,
}

impl Divisions {
    /// For up to four extents, innermost first. The outermost takes what is left, so it needs no division.
    pub(crate) fn new(extents: &[u32]) -> Divisions {
        debug_assert!(extents.len() <= MOST_DIMS, "{extents:?}");
        let mut out = Divisions { extents: [ENDLESS; 3], magic: [0; 3], shifts: 0 };
        for d in 0..3 {
            if branch!("division: another dimension", d + 1 < extents.len()) {
                out.extents[d] = extents[d];
            }
            let (multiplier, shift) = division(out.extents[d]);
            out.magic[d] = multiplier;
            out.shifts |= shift << (8 * d);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_multiplication_is_exact() {
        let special = [127, 128, 1000, 65_535, 65_536, 65_537, 1 << 20, (1 << 30) - 1, 1 << 30, ENDLESS];
        for d in (2..70).chain(special) {
            let (multiplier, shift) = division(d);
            let near = (1..40).map(|k| (k * u64::from(d)).min((1 << 31) - 1) as u32);
            let dividends = near.flat_map(|n| [n - 1, n, n + 1]).chain([0, 1, (1 << 31) - 1]);
            for n in dividends.filter(|&n| n < 1 << 31) {
                let q = ((u64::from(n) * u64::from(multiplier)) >> 32) as u32 >> shift;
                assert_eq!(q, n / d, "{n} / {d}");
            }
        }
    }
}
