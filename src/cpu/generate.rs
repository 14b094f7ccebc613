//! Tensors from nothing: counts and random numbers.

use super::math;
use super::number::Number;
use super::parallel::{HEAVY, LIGHT, pieces};
use crate::shape::DType;

/// [`Recording::iota`](crate::Recording::iota): 0, 1, 2, …
pub fn iota<T: Number>(out: &mut [T]) {
    pieces(out, LIGHT, |first, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let i = (first + i) as u32;
            *out = bytemuck::cast(if T::DTYPE == DType::F32 { (i as f32).to_bits() } else { i });
        }
    });
}

/// Philox 4x32 with 10 rounds: four random words of a counter and a seed.
fn philox(counter: u32, seed: u64) -> [u32; 4] {
    let mut c = [counter, 0, 0, 0];
    let mut k = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let (p, q) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
        c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// 24 random bits as a multiple of 2^-24.
fn unit(word: u32) -> f32 {
    (word >> 8) as f32 / (1 << 24) as f32
}

/// Fills by fours.
fn generate(out: &mut [f32], seed: u64, four: impl Fn([u32; 4]) -> [f32; 4] + Sync + Send) {
    pieces(out, HEAVY, |first, out| {
        for (i, out) in out.chunks_mut(4).enumerate() {
            let words = philox((first / 4 + i) as u32, seed);
            out.copy_from_slice(&four(words)[..out.len()]);
        }
    });
}

/// [`Recording::random_uniform`](crate::Recording::random_uniform): the same bits.
///
/// ```
/// let mut x = [0.0; 1000];
/// tidemill::cpu::random_uniform(&mut x, 7);
/// assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
/// ```
pub fn random_uniform(out: &mut [f32], seed: u64) {
    generate(out, seed, |words| words.map(unit));
}

/// [`Recording::random_normal`](crate::Recording::random_normal).
pub fn random_normal(out: &mut [f32], seed: u64) {
    generate(out, seed, |[u, v, w, z]| {
        let pair = |u: u32, v: u32| {
            let radius = (-2.0 * math::log(((u >> 8) as f32 + 1.0) / (1 << 24) as f32)).sqrt();
            let turn = std::f32::consts::TAU * unit(v);
            [radius * math::cos(turn), radius * math::sin(turn)]
        };
        let ([a, b], [c, d]) = (pair(u, v), pair(w, z));
        [a, b, c, d]
    });
}
