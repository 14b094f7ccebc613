//! Results too large to stay in a cache are stored past it: an ordinary store first reads the line that it overwrites.

#![allow(unsafe_code, reason = "stores that bypass the cache have no safe form")]

use crate::shape::Element;

/// Results of at least so many bytes are stored past the cache: more than a core's share of any cache today, so that
/// nothing of them would be left for who reads them next.
const LARGE_BYTES: usize = 16 << 20;
/// Elements that are computed at a time, in the first cache: few, so that the next ones' loads begin while these are
/// stored. Of an add over 16M elements, blocks of 1,024 took a seventh longer.
const BLOCK: usize = 128;

/// Whether a result of so many elements is stored past the cache.
pub(super) fn pays<R>(elements: usize) -> bool {
    size_of::<R>() * elements >= LARGE_BYTES && is_possible()
}

#[cfg(target_arch = "x86_64")]
fn is_possible() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

#[cfg(not(target_arch = "x86_64"))]
fn is_possible() -> bool {
    false
}

/// Has `kernel` compute one block after the other, given the number of its first element, and stores each past the cache.
pub(super) fn blocks<R: Element>(out: &mut [R], kernel: impl Fn(usize, &mut [R])) {
    let mut block = [R::zeroed(); BLOCK];
    for (i, out) in out.chunks_mut(BLOCK).enumerate() {
        let block = &mut block[..out.len()];
        kernel(i * BLOCK, block);
        store(block, out);
    }
    fence();
}

/// Copies past the cache, except for what lies before the first and behind the last whole vector of `to`.
#[cfg(target_arch = "x86_64")]
fn store<R: Element>(from: &[R], to: &mut [R]) {
    if !is_possible() {
        to.copy_from_slice(from);
        return;
    }
    // SAFETY: elements are plain data of four or two bytes, so eight floats are made of whole ones, of any bits.
    let (head, vectors, tail) = unsafe { to.align_to_mut::<Vector>() };
    let (first, last) = (head.len(), from.len() - tail.len());
    head.copy_from_slice(&from[..first]);
    tail.copy_from_slice(&from[last..]);
    // SAFETY: the CPU has AVX.
    unsafe { store_vectors(bytemuck::cast_slice(&from[first..last]), vectors) };
}

#[cfg(not(target_arch = "x86_64"))]
fn store<R: Element>(from: &[R], to: &mut [R]) {
    to.copy_from_slice(from);
}

/// What one store writes.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Vector([u8; 32]);

/// # Safety
///
/// The CPU must have AVX, and [`fence`] must be called before anybody else reads `to`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn store_vectors(from: &[u8], to: &mut [Vector]) {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256};
    for (from, to) in from.chunks_exact(32).zip(to) {
        // SAFETY: 32 bytes, of any alignment.
        let vector = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
        // SAFETY: room for 32 bytes, aligned to as many.
        unsafe { _mm256_stream_si256(to.0.as_mut_ptr().cast(), vector) };
    }
}

/// Orders the stores before whatever this thread tells others.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    #[allow(unused_unsafe, reason = "newer compilers call it safe")]
    // SAFETY: every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_stored_wherever_a_result_begins_and_ends() {
        for (first, length) in [(0, 4096), (1, 4095), (3, 2), (5, 1024), (7, 3000), (0, 0), (2, 1)] {
            let mut out = vec![u32::MAX; 5000];
            blocks(&mut out[first..first + length], |begin, block| {
                block.iter_mut().enumerate().for_each(|(i, x)| *x = (begin + i) as u32);
            });
            let right =
                |i: usize| if (first..first + length).contains(&i) { (i - first) as u32 } else { u32::MAX };
            assert!((0..out.len()).all(|i| out[i] == right(i)), "{length} from {first}");
        }
        assert!(!pays::<f32>(1 << 20));
    }
}
