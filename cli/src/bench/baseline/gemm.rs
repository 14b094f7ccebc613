//! Matrix products on the CPU: the `gemm` crate on two threads.
//!
//! The crate takes raw pointers. They are those of slices whose lengths are checked against the extents, row-major with
//! strides of the whole rows, and the result's slice is borrowed mutably for the call.

#![allow(unsafe_code, reason = "the gemm crate has no safe form; the contract is above")]

use std::time::{Duration, Instant};

use gemm::Parallelism;

use crate::bench::benchmark::Result;

/// Operands and a place for the result.
pub(crate) struct Gemm {
    extents: [usize; 3],
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Gemm {
    /// For `m x k` times `k x n`.
    pub(crate) fn new([m, n, k]: [usize; 3], a: Vec<f32>, b: Vec<f32>) -> Result<Gemm> {
        if a.len() != m * k || b.len() != k * n {
            return Err("the operands do not have the lengths that the extents say".into());
        }
        Ok(Gemm { extents: [m, n, k], a, b, c: vec![0.0; m * n] })
    }

    /// One product.
    pub(crate) fn run(&mut self) -> Duration {
        let [m, n, k] = self.extents;
        let (c, a, b) = (self.c.as_mut_ptr(), self.a.as_ptr(), self.b.as_ptr());
        let (wide, deep) = (n as isize, k as isize);
        let begun = Instant::now();
        // SAFETY: the contract at the top; `new` has checked the lengths.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                c,
                1,
                wide,
                false,
                a,
                1,
                deep,
                b,
                1,
                wide,
                0.0,
                1.0,
                false,
                false,
                false,
                Parallelism::Rayon(2),
            );
        }
        begun.elapsed()
    }

    /// The result of the last run.
    pub(crate) fn result(&self) -> &[f32] {
        &self.c
    }
}
