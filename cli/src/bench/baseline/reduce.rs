//! Sums and dot products on the CPU at its best: two threads, eight accumulators of eight lanes each.

#![allow(unsafe_code, reason = "AVX2 by run-time detection has no safe form")]

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lanes of one accumulator, and how many there are.
const LANES: usize = 8;
const ACCUMULATORS: usize = 8;

#[inline(always)]
fn dot_of(a: &[f32], b: Option<&[f32]>) -> f32 {
    const STEP: usize = LANES * ACCUMULATORS;
    let mut sums = [0f32; STEP];
    let tail = match b {
        None => {
            let steps = a.chunks_exact(STEP);
            let tail = steps.remainder().iter().sum::<f32>();
            steps.for_each(|a| sums.iter_mut().zip(a).for_each(|(sum, a)| *sum += a));
            tail
        }
        Some(b) => {
            let (left, right) = (a.chunks_exact(STEP), b.chunks_exact(STEP));
            let tail = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum::<f32>();
            left.zip(right).for_each(|(a, b)| {
                sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b)
            });
            tail
        }
    };
    sums.iter().sum::<f32>() + tail
}

/// # Safety
///
/// The CPU must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn dot_avx2(a: &[f32], b: Option<&[f32]>) -> f32 {
    match b {
        Some(b) => dot_of(&a[..a.len().min(b.len())], Some(b)),
        None => dot_of(a, None),
    }
}

fn dot(a: &[f32], b: Option<&[f32]>) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has AVX2 and FMA.
        return unsafe { dot_avx2(a, b) };
    }
    dot_of(a, b)
}

/// The sum of a vector, or the dot product of two, on two threads: a helper that waits between runs, and the caller.
pub(crate) struct Reduction {
    a: Arc<Vec<f32>>,
    b: Option<Arc<Vec<f32>>>,
    start: Option<Sender<()>>,
    done: Receiver<f32>,
    helper: Option<JoinHandle<()>>,
}

impl Reduction {
    pub(crate) fn new(a: Vec<f32>, b: Option<Vec<f32>>) -> Result<Reduction, Box<dyn Error>> {
        let (a, b) = (Arc::new(a), b.map(Arc::new));
        let (start, begins) = channel();
        let (finish, done) = channel();
        let (theirs_a, theirs_b) = (a.clone(), b.clone());
        let helper = std::thread::Builder::new().name("reduction".to_owned()).spawn(move || {
            for () in begins {
                let half = theirs_a.len() / 2;
                if finish.send(dot(&theirs_a[half..], theirs_b.as_ref().map(|b| &b[half..]))).is_err() {
                    break;
                }
            }
        })?;
        Ok(Reduction { a, b, start: Some(start), done, helper: Some(helper) })
    }

    /// Reduces once: the time until both threads are done, and the result.
    pub(crate) fn run(&self) -> Result<(Duration, f32), Box<dyn Error>> {
        let begun = Instant::now();
        self.start.as_ref().ok_or("the helper is gone")?.send(())?;
        let half = self.a.len() / 2;
        let ours = dot(&self.a[..half], self.b.as_ref().map(|b| &b[..half]));
        let sum = ours + self.done.recv()?;
        Ok((begun.elapsed(), sum))
    }
}

impl Drop for Reduction {
    fn drop(&mut self) {
        self.start = None;
        if let Some(helper) = self.helper.take() {
            let _ = helper.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_and_the_tail_count() {
        let a: Vec<f32> = (0..1003).map(|i| (i % 7) as f32).collect();
        let sum: f32 = a.iter().sum();
        assert_eq!(Reduction::new(a.clone(), None).unwrap().run().unwrap().1, sum);
        let dot: f32 = a.iter().map(|a| a * a).sum();
        assert_eq!(Reduction::new(a.clone(), Some(a)).unwrap().run().unwrap().1, dot);
    }
}
