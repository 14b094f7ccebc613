//! The CPU at its best: a stream add on two threads, over memory that was touched before.

#![allow(
    unsafe_code,
    reason = "AVX2 by run-time detection, and stores that bypass the cache, have no safe form"
)]

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Eight floats, aligned as AVX2 stores want them.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Lanes([f32; 8]);

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Ordinary,
    NonTemporal,
}

/// One thread's share of the operands and of the result.
struct Half {
    a: Vec<Lanes>,
    b: Vec<Lanes>,
    sum: Vec<Lanes>,
}

impl Half {
    fn new(a: &[f32], b: &[f32]) -> Half {
        let lanes = |data: &[f32]| -> Vec<Lanes> {
            data.chunks_exact(8).map(|chunk| Lanes(std::array::from_fn(|i| chunk[i]))).collect()
        };
        // Not zero, so that every page is really written.
        Half { a: lanes(a), b: lanes(b), sum: vec![Lanes([f32::NAN; 8]); a.len() / 8] }
    }

    fn add(&mut self, store: Store) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return match store {
                // SAFETY: the CPU has AVX2.
                Store::Ordinary => unsafe { add_avx2(&self.a, &self.b, &mut self.sum) },
                // SAFETY: as above.
                Store::NonTemporal => unsafe { add_avx2_streaming(&self.a, &self.b, &mut self.sum) },
            };
        }
        let _ = store;
        add(&self.a, &self.b, &mut self.sum);
    }
}

#[inline(always)]
fn plus(a: &Lanes, b: &Lanes) -> Lanes {
    Lanes(std::array::from_fn(|i| a.0[i] + b.0[i]))
}

#[inline(always)]
fn add(a: &[Lanes], b: &[Lanes], sum: &mut [Lanes]) {
    for ((a, b), sum) in a.iter().zip(b).zip(sum) {
        *sum = plus(a, b);
    }
}

/// # Safety
///
/// The CPU must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_avx2(a: &[Lanes], b: &[Lanes], sum: &mut [Lanes]) {
    add(a, b, sum);
}

/// # Safety
///
/// The CPU must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_avx2_streaming(a: &[Lanes], b: &[Lanes], sum: &mut [Lanes]) {
    use std::arch::x86_64::{_mm_sfence, _mm256_load_ps, _mm256_stream_ps};
    for ((a, b), sum) in a.iter().zip(b).zip(sum) {
        let value = plus(a, b);
        // SAFETY: eight floats, aligned to 32 bytes.
        let value = unsafe { _mm256_load_ps(value.0.as_ptr()) };
        // SAFETY: room for eight floats, aligned to 32 bytes; the fence below orders it before any other access.
        unsafe { _mm256_stream_ps(sum.0.as_mut_ptr(), value) };
    }
    #[allow(unused_unsafe, reason = "newer compilers call it safe")]
    // SAFETY: every x86-64 has it.
    unsafe {
        _mm_sfence();
    }
}

/// A stream add on two threads: a helper that waits between runs, and the caller.
pub(crate) struct Stream {
    ours: Half,
    theirs: Arc<Mutex<Half>>,
    start: Option<Sender<Store>>,
    done: Receiver<()>,
    helper: Option<JoinHandle<()>>,
    store: Store,
}

impl Stream {
    /// Takes copies of the operands, whose length is a multiple of 16, and finds out which stores are faster here.
    pub(crate) fn new(a: &[f32], b: &[f32]) -> Result<Stream> {
        let half = a.len() / 2;
        let theirs = Arc::new(Mutex::new(Half::new(&a[half..], &b[half..])));
        let (start, begins) = channel();
        let (finish, done) = channel();
        let shared = theirs.clone();
        let helper = std::thread::Builder::new().name("stream add".to_owned()).spawn(move || {
            for store in begins {
                shared.lock().add(store);
                if finish.send(()).is_err() {
                    break;
                }
            }
        })?;
        let mut stream = Stream {
            ours: Half::new(&a[..half], &b[..half]),
            theirs,
            start: Some(start),
            done,
            helper: Some(helper),
            store: Store::Ordinary,
        };
        let mut best = |store| -> Result<Duration> {
            stream.store = store;
            (0..9).map(|_| stream.run()).try_fold(Duration::MAX, |best, time| Ok(best.min(time?)))
        };
        let (ordinary, streaming) = (best(Store::Ordinary)?, best(Store::NonTemporal)?);
        stream.store = if streaming < ordinary { Store::NonTemporal } else { Store::Ordinary };
        Ok(stream)
    }

    /// What it is, for the report.
    pub(crate) fn name(&self) -> &'static str {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return match self.store {
                Store::Ordinary => "AVX2 stream add, 2 threads, ordinary stores",
                Store::NonTemporal => "AVX2 stream add, 2 threads, non-temporal stores",
            };
        }
        "stream add, 2 threads"
    }

    /// Adds once; the time until both threads are done.
    pub(crate) fn run(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        self.start.as_ref().ok_or("the helper is gone")?.send(self.store)?;
        self.ours.add(self.store);
        self.done.recv()?;
        Ok(begun.elapsed())
    }

    /// What the last run gave.
    pub(crate) fn result(&self) -> Vec<f32> {
        let theirs = self.theirs.lock();
        self.ours.sum.iter().chain(&theirs.sum).flat_map(|lanes| lanes.0).collect()
    }
}

impl Drop for Stream {
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
    fn both_stores_and_both_halves_add() {
        let a: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let mut stream = Stream::new(&a, &a).unwrap();
        for store in [Store::Ordinary, Store::NonTemporal] {
            stream.store = store;
            stream.run().unwrap();
            assert!(stream.result().iter().zip(&a).all(|(sum, a)| *sum == a + a), "{store:?}");
        }
    }
}
