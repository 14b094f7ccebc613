//! What the device can do in practice: short measurements by the host's clock, kept in memory and on disk.
//!
//! By the host's clock, so that a device whose own clock is wrong is found out.

use std::cell::Cell;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::ir::command::{Action, Command, Lowered};
use crate::ir::value::{Access, Label, LabelName, Origin, ValueId};
use crate::kernels::catalog::Load;
use crate::kernels::elementwise;
use crate::kernels::modules::constants::Constants;
use crate::kernels::modules::peak;
use crate::kernels::variant::Class;
use crate::runtime::accelerator::Accelerator;
use crate::runtime::core::Core;
use crate::runtime::disk_cache;
use crate::runtime::execute::{Outside, execute};
use crate::runtime::profile::Profiling;
use crate::runtime::profile::guard::{Bandwidth, PeakStore, Peaks};
use crate::runtime::profile::probe::ProfileRequest;
use crate::runtime::recording::Recording;
use crate::runtime::submission::Submission;
use crate::runtime::tensor::Tensor;
use crate::schedule::compiled_graph::CompiledGraph;
use crate::shape::{DType, Shape};
use crate::vk::raw::HostSync;

/// Working sets, smallest first: within caches, and beyond them.
const WORKING_SETS: [u64; 3] = [256 << 10, 4 << 20, 64 << 20];
/// A measurement must take so long that submission and waiting do not count.
const LONG_ENOUGH_NS: f64 = 1e6;
/// Of each measurement the best of so many is taken.
const REPEATS: usize = 8;
/// Workgroups of one dispatch.
const MOST_GROUPS: u32 = 1 << 15;
const LOCAL_SIZE: u32 = 64;
/// Operations of an invocation in a round of `glsl/peak.comp`.
const FLOPS_PER_ROUND: u64 = 256;
/// Bytes that an invocation reads in a round.
const BYTES_PER_ROUND: u64 = 128;

/// Numbers as in `glsl/peak.comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    MultiplyAdd = 0,
    Fused = 1,
    Read = 2,
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Push {
    rounds: u32,
    mask: u32,
    factor: f32,
    summand: f32,
}

fn label(bytes: u64) -> Label {
    Label { op: LabelName::Op("peak"), shape: Shape::from([bytes as usize / 4]), dtype: DType::U32 }
}

/// The memory that measurements work on.
struct Ground {
    gpu: Accelerator,
    set: Tensor,
    out: Tensor,
    bytes: u64,
}

impl Ground {
    fn new(core: &Arc<Core>, bytes: u64) -> Result<Ground> {
        let gpu = Accelerator::from_core(core.clone());
        let zeros = |bytes: u64| -> Result<Tensor> {
            let r = Recording::new(core.clone());
            r.profiling(Profiling::Off);
            let zeros = r.fill([bytes as usize / 4], 0u32)?;
            let kept = r.keep(zeros)?;
            r.end_recording()?.wait()?;
            Ok(kept)
        };
        Ok(Ground { set: zeros(bytes)?, out: zeros(16)?, gpu, bytes })
    }

    fn bench(&self) -> Bench {
        let mut lowered = Lowered::default();
        let mut value = |tensor: &Tensor, version| {
            lowered.values.add_value(tensor.shape(), DType::U32, Origin::Tensor(version))
        };
        let (set, out) = (value(&self.set, 0), value(&self.out, 1));
        Bench { core: self.gpu.core().clone(), lowered, set, out, bytes: self.bytes }
    }

    /// Hands commands over, with nothing noted but when.
    fn submit(&self, lowered: Lowered) -> Result<Submission> {
        let core = self.gpu.core();
        let lease = |tensor: &Tensor| tensor.storage.settled("peak", tensor.shape()).map(|(lease, _)| lease);
        let leases = vec![lease(&self.set)?, lease(&self.out)?];
        let compiled = CompiledGraph::of(lowered, leases.len());
        let submitted = execute(
            core,
            compiled,
            &[],
            Outside { leases, states: &[] },
            ProfileRequest::host_only(),
            HostSync::default(),
        )?;
        Ok(Submission::new(core.clone(), submitted))
    }

    /// How long some work takes, by the host's clock, from the moment before it is handed to the driver. Whatever
    /// disturbs this makes it longer, so the shortest is nearest to the truth, and a peak is never too high.
    fn time(&self, record: impl Fn(&mut Bench) -> Result<()>) -> Result<f64> {
        let mut bench = self.bench();
        record(&mut bench)?;
        let submission = self.submit(bench.lowered)?;
        submission.wait()?;
        let now = self.gpu.core().profiler.now_ns();
        Ok(now.saturating_sub(submission.submitted_ns().unwrap_or(now)) as f64)
    }

    /// The best rate of some work, per nanosecond: `record` is given a size that grows until the work takes long
    /// enough, and says how much work that is.
    fn best_rate(&self, most: u32, record: impl Fn(&mut Bench, u32) -> Result<u64>) -> Result<f64> {
        let once = |size: u32| -> Result<(f64, f64)> {
            let work = Cell::new(0);
            let ns = self.time(|bench| record(bench, size).map(|n| work.set(n)))?;
            Ok((work.get() as f64, ns))
        };
        // The first makes pipelines and touches memory.
        once(1)?;
        let mut size = 1;
        let mut best = loop {
            let (work, ns) = once(size)?;
            if ns >= LONG_ENOUGH_NS || size >= most {
                break work / ns.max(1.0);
            }
            size = (size * 2).max((f64::from(size) * 1.2 * LONG_ENOUGH_NS / ns) as u32).min(most);
        };
        for _ in 1..REPEATS {
            let (work, ns) = once(size)?;
            best = best.max(work / ns.max(1.0));
        }
        Ok(best)
    }
}

/// Commands over the ground.
struct Bench {
    core: Arc<Core>,
    lowered: Lowered,
    set: ValueId,
    out: ValueId,
    bytes: u64,
}

impl Bench {
    fn whole(&self, value: ValueId, write: bool) -> Access {
        self.lowered.values.whole(value, write)
    }

    fn push(&mut self, bytes: u64, action: Action, accesses: SmallVec<[Access; 4]>) {
        self.lowered.commands.push(Command::new(label(bytes), action, accesses));
    }

    /// Writes the whole working set.
    fn fill(&mut self) {
        let access = self.whole(self.set, true);
        self.push(self.bytes, Action::Fill { word: 0 }, smallvec![access]);
    }

    /// Copies one half of the working set to the other.
    fn copy(&mut self) {
        let half = self.bytes / 2;
        let from = Access { bytes: half, ..self.whole(self.set, false) };
        let to = Access { offset: half, bytes: half, ..self.whole(self.set, true) };
        self.push(half, Action::Copy, smallvec![from, to]);
    }

    fn dispatch(&mut self, kind: Kind, groups: u32, rounds: u32) -> Result<()> {
        let core = &self.core;
        let class = Class::of_elements(self.bytes / 4);
        let constants = Constants::<peak::File>::new(LOCAL_SIZE).with(peak::KIND, kind as u32);
        let pipeline = core.catalog.pipeline(constants.of(
            match core.catalog.variant(&elementwise::family::FAMILY, class).load {
                Load::Texel => peak::Module::Texel,
                Load::Buffer => peak::Module::Buffer,
            },
        ))?;
        let mask = (self.bytes / 16 - 1) as u32;
        let push = Push { rounds, mask, factor: 0.5, summand: 1.0 };
        let push = SmallVec::from_slice(bytemuck::bytes_of(&push));
        let action = Action::Dispatch { pipeline, push, groups: [groups, 1, 1] };
        let accesses = smallvec![self.whole(self.set, false), self.whole(self.out, true)];
        self.push(self.bytes, action, accesses);
        Ok(())
    }
}

fn multiply_adds(core: &Arc<Core>, kind: Kind) -> Result<f64> {
    let most = core.catalog.limits.groups[0].min(MOST_GROUPS);
    Ground::new(core, 4096)?.best_rate(most, |bench, size| {
        let (groups, rounds) = ((16 * size).min(most), 128);
        bench.dispatch(kind, groups, rounds)?;
        Ok(u64::from(groups * LOCAL_SIZE) * u64::from(rounds) * FLOPS_PER_ROUND)
    })
}

/// The best of reading, copying and filling: whichever moves most.
fn bandwidth(core: &Arc<Core>, bytes: u64) -> Result<Bandwidth> {
    let most = core.catalog.limits.groups[0].min(MOST_GROUPS);
    let ground = Ground::new(core, bytes)?;
    let read = ground.best_rate(most, |bench, size| {
        let (groups, rounds) = ((16 * size).min(most), 32);
        bench.dispatch(Kind::Read, groups, rounds)?;
        Ok(u64::from(groups * LOCAL_SIZE) * u64::from(rounds) * BYTES_PER_ROUND)
    })?;
    let filled = ground.best_rate(256, |bench, size| {
        (0..size).for_each(|_| bench.fill());
        Ok(bytes * u64::from(size))
    })?;
    let copied = ground.best_rate(256, |bench, size| {
        (0..size).for_each(|_| bench.copy());
        Ok(bytes * u64::from(size))
    })?;
    Ok(Bandwidth::new(bytes, read.max(filled).max(copied)))
}

/// What an empty dispatch takes in a row of many.
fn dispatch_floor(core: &Arc<Core>) -> Result<f64> {
    let ground = Ground::new(core, 4096)?;
    let rate = ground.best_rate(256, |bench, size| {
        for _ in 0..size {
            bench.dispatch(Kind::MultiplyAdd, 1, 0)?;
        }
        Ok(u64::from(size))
    })?;
    Ok(if rate > 0.0 { 1.0 / rate } else { 0.0 })
}

fn measure(core: &Arc<Core>) -> Result<Peaks> {
    let multiply_add = multiply_adds(core, Kind::MultiplyAdd)?.max(multiply_adds(core, Kind::Fused)?);
    let limit = core.catalog.limits.storage_range_bytes;
    let sets = WORKING_SETS.iter().filter(|bytes| **bytes <= limit);
    let bandwidths = sets.map(|bytes| bandwidth(core, *bytes)).collect::<Result<Vec<_>>>()?;
    let peaks = Peaks { gflops: multiply_add, bandwidths, dispatch_floor_ns: dispatch_floor(core)? };
    Ok(peaks.settle())
}

/// By what name peaks are kept.
const KEPT: &str = "peaks";

fn to_text(peaks: &Peaks) -> String {
    let mut text = format!("gflops {}\nfloor_ns {}\n", peaks.gflops, peaks.dispatch_floor_ns);
    for bandwidth in &peaks.bandwidths {
        text += &format!("bandwidth {} {}\n", bandwidth.working_set_bytes, bandwidth.gbytes_per_s);
    }
    text + "end\n"
}

/// What is not whole is not there.
fn from_text(text: &str) -> Option<Peaks> {
    let mut peaks = Peaks { gflops: 0.0, bandwidths: Vec::new(), dispatch_floor_ns: 0.0 };
    for line in text.strip_suffix("end\n")?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["gflops", x] => peaks.gflops = x.parse().ok()?,
            ["floor_ns", x] => peaks.dispatch_floor_ns = x.parse().ok()?,
            ["bandwidth", bytes, x] => {
                peaks.bandwidths.push(Bandwidth::new(bytes.parse().ok()?, x.parse().ok()?))
            }
            _ => return None,
        }
    }
    let whole = peaks.gflops > 0.0 && peaks.gflops.is_finite() && !peaks.bandwidths.is_empty();
    whole.then(|| peaks.settle())
}

impl Core {
    /// The device's peaks: known, from disk, or measured now (some tenths of a second).
    pub(crate) fn peaks(self: &Arc<Core>) -> Result<Peaks> {
        let mut store = self.peaks.lock();
        if let Some(peaks) = &*store {
            return Ok(peaks.clone());
        }
        if let Some(peaks) =
            disk_cache::read(&self.device.info, self.folder(), KEPT).as_deref().and_then(from_text)
        {
            *store = Some(peaks.clone());
            return Ok(peaks);
        }
        self.measure_peaks(&mut store)
    }

    /// Measures again, since a figure lies above the peaks: whoever disturbed the last measurement may be gone. The
    /// better of both holds from then on.
    pub(crate) fn peaks_again(self: &Arc<Core>) -> Result<Peaks> {
        self.measure_peaks(&mut self.peaks.lock())
    }

    fn measure_peaks(self: &Arc<Core>, store: &mut PeakStore) -> Result<Peaks> {
        let fresh = measure(self)?;
        let peaks = match &*store {
            Some(known) => fresh.best_of(known),
            None => fresh,
        };
        *store = Some(peaks.clone());
        disk_cache::write(&self.device.info, self.folder(), KEPT, &to_text(&peaks));
        Ok(peaks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_peaks_is_taken_only_whole() {
        let bandwidths = vec![Bandwidth::new(1024, 35.5), Bandwidth::new(4096, 12.25)];
        let peaks = Peaks { gflops: 81.25, bandwidths, dispatch_floor_ns: 12_000.5 };
        let text = to_text(&peaks);
        assert_eq!(from_text(&text), Some(peaks));
        for cut in 0..text.len() {
            assert_eq!(from_text(&text[..cut]), None, "cut at {cut}");
        }
        assert_eq!(from_text("gflops NaN\nbandwidth 1 1\nend\n"), None);
        assert_eq!(from_text("nonsense\nend\n"), None);
    }
}
