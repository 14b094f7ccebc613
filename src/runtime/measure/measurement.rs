//! Measurements by the host's clock, from the first submission to completion, of work whose result is right.

use std::time::Instant;

use crate::disk::fnv1a;
use crate::error::{MeasurementError, ProfileError, Result};
use crate::runtime::accelerator::Accelerator;
use crate::runtime::profile::guard::{DOUBTS, Peaks, Throughput};
use crate::shape::Element;

/// # Measurements
impl Accelerator {
    /// Begins a measurement by the host's clock; see [`Measurement`].
    pub fn measure(&self, name: &str) -> Measurement {
        Measurement::new(self, name)
    }
}

/// Whether a round waits for its work before the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoundMode {
    /// Each round's work is completed before the next round.
    Sync,
    /// Rounds follow each other at once; the clock stops when the last one's work is completed.
    Async,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    NotRun,
    Unfinished,
    Unverified,
    Wrong,
    Right,
}

/// A throughput by the host's clock, from the begin of the first round to the completion of the last one's work.
///
/// There is no figure unless the work is complete and its result was verified or checksummed since, nor one that the
/// device can't reach. Synchronous and asynchronous figures come from the same clock between the same two events.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::profile::RoundMode;
/// let gpu = tidemill::Accelerator::global()?;
/// let a = gpu.upload(&vec![1.0f32; 100_000], [100_000])?;
/// let mut result = gpu.run(|r| r.add(&a, &a))?;
/// let mut m = gpu.measure("add 100000").flops(100_000).bytes(1_200_000);
/// m.run(10, RoundMode::Async, || {
///     result = gpu.run(|r| r.add(&a, &a))?;
///     Ok(())
/// })?;
/// assert!(m.throughput().is_err(), "the result was not verified");
/// m.verify(result.read::<f32>()?.iter().all(|&x| x == 2.0));
/// println!("{:.2} GB/s", m.throughput()?.gbytes_per_s.unwrap());
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Measurement {
    gpu: Accelerator,
    name: String,
    flops: Option<u64>,
    bytes: Option<u64>,
    rounds: u64,
    dispatches: u64,
    wall_ns: u64,
    verdict: Verdict,
}

impl Measurement {
    pub(crate) fn new(gpu: &Accelerator, name: &str) -> Measurement {
        Measurement {
            gpu: gpu.clone(),
            name: name.to_owned(),
            flops: None,
            bytes: None,
            rounds: 0,
            dispatches: 0,
            wall_ns: 0,
            verdict: Verdict::NotRun,
        }
    }

    /// Floating-point operations of a round.
    pub fn flops(mut self, flops: u64) -> Measurement {
        self.flops = Some(flops);
        self
    }

    /// Bytes that a round must read and write at the least.
    pub fn bytes(mut self, bytes: u64) -> Measurement {
        self.bytes = Some(bytes);
        self
    }

    /// Runs the work this many times and takes the time until all of it is complete. What earlier runs of this
    /// measurement gave is forgotten.
    ///
    /// # Errors
    ///
    /// Those of the work; then there is no figure.
    pub fn run(&mut self, rounds: u64, mode: RoundMode, mut work: impl FnMut() -> Result<()>) -> Result<()> {
        self.verdict = Verdict::Unfinished;
        self.gpu.synchronize()?;
        let before = self.gpu.stats().dispatches;
        let begun = Instant::now();
        for _ in 0..rounds {
            work()?;
            if mode == RoundMode::Sync {
                self.gpu.synchronize()?;
            }
        }
        self.gpu.synchronize()?;
        self.wall_ns = begun.elapsed().as_nanos() as u64;
        self.dispatches = self.gpu.stats().dispatches - before;
        self.rounds = rounds;
        self.verdict = if rounds > 0 { Verdict::Unverified } else { Verdict::NotRun };
        Ok(())
    }

    /// Says whether the result of the last run is right.
    pub fn verify(&mut self, right: bool) {
        if matches!(self.verdict, Verdict::Unverified | Verdict::Right) {
            self.verdict = if right { Verdict::Right } else { Verdict::Wrong };
        }
    }

    /// Verifies a result by its [`checksum`].
    pub fn verify_checksum<T: Element>(&mut self, result: &[T], expected: u64) {
        self.verify(checksum(result) == expected);
    }

    /// The wall time of a round.
    ///
    /// # Errors
    ///
    /// As [`throughput`](Measurement::throughput).
    pub fn ns_per_round(&self) -> Result<f64> {
        self.check()?;
        Ok(self.wall_ns as f64 / self.rounds as f64)
    }

    fn check(&self) -> Result<()> {
        let what = self.name.clone();
        match self.verdict {
            Verdict::NotRun | Verdict::Unfinished => Err(ProfileError::Unfinished { what }.into()),
            Verdict::Unverified => Err(ProfileError::NotVerified { what }.into()),
            Verdict::Wrong => Err(ProfileError::WrongResult { what }.into()),
            Verdict::Right => Ok(()),
        }
    }

    /// The throughput.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Unfinished`], [`ProfileError::NotVerified`] or [`ProfileError::WrongResult`] if there is nothing
    /// to be reported; [`ProfileError::Implausible`] if the device can't be that fast.
    pub fn throughput(&self) -> Result<Throughput> {
        self.check()?;
        let mut peaks = self.gpu.peaks()?;
        let rate = |n: u64| n as f64 * self.rounds as f64 / self.wall_ns.max(1) as f64;
        let (gflops, gbytes_per_s) = (self.flops.map(rate), self.bytes.map(rate));
        let bytes = self.bytes.unwrap_or(0);
        let ns = self.wall_ns as f64 / self.dispatches.max(1) as f64;
        let judge = |peaks: &Peaks| -> std::result::Result<(), MeasurementError> {
            peaks.allow(gflops, gbytes_per_s, bytes)?;
            // Half of the floor: it is taken with barriers between, which independent dispatches do without.
            let floor = peaks.dispatch_floor_ns;
            if ns < 0.5 * floor { Err(MeasurementError::Dispatches { ns, floor }) } else { Ok(()) }
        };
        let mut verdict = judge(&peaks);
        for _ in 0..DOUBTS {
            if verdict.is_ok() {
                break;
            }
            peaks = self.gpu.core().peaks_again()?;
            verdict = judge(&peaks);
        }
        let what = self.name.clone();
        verdict.map_err(|error| ProfileError::Implausible { what, error })?;
        let roofline = match (self.flops, self.bytes) {
            (Some(flops), Some(bytes)) if flops > 0 => Some(rate(flops) / peaks.roof_gflops(flops, bytes)),
            (_, Some(bytes)) => Some(rate(bytes) / peaks.gbytes_per_s(bytes)),
            _ => None,
        };
        Ok(Throughput { gflops, gbytes_per_s, roofline })
    }
}

/// The checksum of data, bit for bit. Made to cost little beside reading the data.
pub fn checksum<T: Element>(data: &[T]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes: &[u8] = bytemuck::cast_slice(data);
    let (blocks, rest) = bytes.as_chunks::<32>();
    // Four chains, so that one multiplication need not wait for the one before it. The rotation lets high bits count.
    let mut chains = [1u64, 2, 3, 4];
    for block in blocks {
        for (chain, word) in chains.iter_mut().zip(block.as_chunks::<8>().0) {
            *chain = (*chain ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME).rotate_left(29);
        }
    }
    let ends = chains.iter().flat_map(|chain| chain.to_le_bytes()).chain(rest.iter().copied());
    fnv1a(&ends.chain((bytes.len() as u64).to_le_bytes()).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn every_bit_and_every_place_counts_in_a_checksum() {
        let data: Vec<u32> = (0..21).map(|i| i * 0x0101_0101).collect();
        let whole = checksum(&data);
        for bit in 0..data.len() * 32 {
            let mut other = data.clone();
            other[bit / 32] ^= 1 << (bit % 32);
            assert_ne!(checksum(&other), whole, "bit {bit}");
        }
        for i in 1..data.len() {
            let mut other = data.clone();
            other.swap(0, i);
            assert_ne!(checksum(&other), whole, "0 and {i} swapped");
        }
        assert_ne!(checksum(&[0u32; 8]), checksum(&[0u32; 16]));
        assert_ne!(checksum::<u32>(&[]), checksum(&[0u32]));
    }
}
