//! Results too large to stay in a cache are stored past it: an ordinary store first reads the line that it overwrites.

#![allow(unsafe_code, reason = "stores that bypass the cache have no safe form")]

use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;
use pulp::{Arch, NullaryFnOnce};

use super::parallel::{Grain, LIGHT};
use crate::shape::Element;

/// Results of at least this many bytes are stored past the cache: more than a core's share of any cache today, so that
/// nothing of them would be left for who reads them next.
const LARGE_BYTES: usize = 16 << 20;

/// A loop over some of a result's elements.
pub(super) trait Loop<R> {
    /// Computes the elements from this one on. To be marked `#[inline(always)]`: it is compiled for the instruction set
    /// of the function that calls it.
    fn compute(&self, first: usize, out: &mut [R]);
}

/// How a thread stores its part of a result. Others may read that part once this is dropped.
#[derive(Debug)]
pub(super) struct Stores {
    past_the_cache: bool,
    /// The fence at the end is for the stores of the thread that passes it.
    _of_one_thread: PhantomData<*const ()>,
}

impl Stores {
    /// For a result that is used again at once.
    pub(super) const ORDINARY: Stores = Stores { past_the_cache: false, _of_one_thread: PhantomData };

    /// For a part of a result that has this many elements as a whole. Past the cache only where the work waits for
    /// memory.
    pub(super) fn of_result<R>(elements: usize, grain: Grain) -> Stores {
        let past_the_cache = grain == LIGHT && size_of::<R>() * elements >= LARGE_BYTES;
        Stores { past_the_cache, ..Stores::ORDINARY }
    }

    /// Fills `out` with what the loop computes, compiled for the best instruction set of the machine.
    pub(super) fn fill<R: Element>(&self, out: &mut [R], body: impl Loop<R>) {
        match Arch::new() {
            #[cfg(target_arch = "x86_64")]
            Arch::V3(has_avx) if self.past_the_cache => {
                has_avx.vectorize(PastTheCache { has_avx, out, body })
            }
            arch => arch.dispatch(Ordinary { out, body }),
        }
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        if self.past_the_cache {
            fence();
        }
    }
}

/// Orders stores past the cache before whatever this thread tells others.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    #[allow(unused_unsafe, reason = "newer compilers call it safe")]
    // SAFETY: every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

struct Ordinary<'a, R, L> {
    out: &'a mut [R],
    body: L,
}

impl<R, L: Loop<R>> NullaryFnOnce for Ordinary<'_, R, L> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.body.compute(0, self.out);
    }
}

/// What is computed at a time: as many vectors as stay in registers, so that they are stored from there
/// (`docs/decisions.md`).
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Block([std::arch::x86_64::__m256i; 8]);

#[cfg(target_arch = "x86_64")]
struct PastTheCache<'a, R, L> {
    /// What the stores need.
    has_avx: V3,
    out: &'a mut [R],
    body: L,
}

#[cfg(target_arch = "x86_64")]
impl<R: Element, L: Loop<R>> NullaryFnOnce for PastTheCache<'_, R, L> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let (head, blocks, tail) = bytemuck::pod_align_to_mut::<R, Block>(self.out);
        let step = size_of::<Block>() / size_of::<R>();
        let behind = head.len() + blocks.len() * step;
        for (first, out) in [(0, &mut *head), (behind, tail)] {
            self.body.compute(first, out);
        }
        let mut block = <Block as bytemuck::Zeroable>::zeroed();
        for (i, out) in blocks.iter_mut().enumerate() {
            self.body
                .compute(head.len() + i * step, bytemuck::cast_slice_mut(std::slice::from_mut(&mut block)));
            stream(self.has_avx, &block, out);
        }
    }
}

/// Copies past the cache.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn stream(_has_avx: V3, from: &Block, to: &mut Block) {
    for (from, to) in from.0.iter().zip(&mut to.0) {
        // SAFETY: the CPU has AVX, or there were no such value; the reference is aligned and may be written to; the
        // fence comes before another thread reads.
        unsafe { std::arch::x86_64::_mm256_stream_si256(to, *from) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::parallel::HEAVY;
    use crate::shape::F16;

    struct Copied<'a, R>(&'a [R]);

    impl<R: Copy> Loop<R> for Copied<'_, R> {
        #[inline(always)]
        fn compute(&self, first: usize, out: &mut [R]) {
            out.copy_from_slice(&self.0[first..][..out.len()]);
        }
    }

    fn every_element_is_stored<R: Element>(elements: &[R]) {
        let [untouched, ..] = elements else { return };
        let large = LARGE_BYTES / size_of::<R>();
        for (first, length) in
            [(0, 4096), (1, 4095), (3, 2), (5, 1024), (17, 3000), (0, 0), (2, 1), (33, 128)]
        {
            let mut out = vec![*untouched; 5000];
            Stores::of_result::<R>(large, LIGHT)
                .fill(&mut out[first..first + length], Copied(&elements[..length]));
            let mut right = vec![*untouched; 5000];
            right[first..first + length].copy_from_slice(&elements[..length]);
            let bytes = |x: &[R]| bytemuck::cast_slice::<R, u8>(x).to_vec();
            assert!(bytes(&out) == bytes(&right), "{length} of {} from {first}", R::DTYPE);
        }
    }

    #[test]
    fn every_element_is_stored_wherever_a_result_begins_and_ends() {
        let words: Vec<u32> = (0..5000u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
        every_element_is_stored(&words);
        every_element_is_stored::<i32>(bytemuck::cast_slice(&words));
        every_element_is_stored::<f32>(bytemuck::cast_slice(&words));
        every_element_is_stored::<F16>(bytemuck::cast_slice(&words));
    }

    #[test]
    fn only_large_results_are_stored_past_the_cache() {
        assert!(!Stores::of_result::<f32>((4 << 20) - 1, LIGHT).past_the_cache);
        assert!(Stores::of_result::<f32>(4 << 20, LIGHT).past_the_cache);
        assert!(!Stores::of_result::<F16>(4 << 20, LIGHT).past_the_cache);
        assert!(!Stores::of_result::<f32>(4 << 20, HEAVY).past_the_cache);
    }
}
