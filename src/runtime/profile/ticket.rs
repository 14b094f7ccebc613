//! A ticket goes with a submission that is profiled, and collects the times when it is done.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;

use super::Profiling;
use super::clock::Anchor;
use crate::error::{ProfileError, Result};
use crate::ir::command::{Action, Cost};
use crate::ir::value::Label;
use crate::runtime::pipelines::PipelineBuildStats;
use crate::schedule::compiled_graph::CompiledGraph;
use crate::vk::command::CommandSlot;
use crate::vk::device::Device;

/// What is known of a row before it runs.
#[derive(Clone, Debug)]
pub(crate) struct RowPlan {
    pub(crate) label: Label,
    pub(crate) kernel: String,
    pub(crate) groups: [u32; 3],
    pub(crate) cost: Cost,
    pub(crate) barrier: bool,
    pub(crate) overlaps: bool,
}

/// Times on the host, in nanoseconds since the accelerator was made.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostTimes {
    pub(crate) record: (u64, u64),
    pub(crate) encode: (u64, u64),
    pub(crate) submit: (u64, u64),
    pub(crate) waits: Vec<(u64, u64)>,
    pub(crate) built: PipelineBuildStats,
    pub(crate) thread: String,
}

impl RowPlan {
    /// The rows of a compiled graph, each alone if it is `isolated`.
    pub(crate) fn all(compiled: &CompiledGraph, isolated: bool) -> Arc<[RowPlan]> {
        let mut rows: Vec<RowPlan> = Vec::with_capacity(compiled.lowered.commands.len());
        // The first row since the last barrier: rows since then may overlap each other.
        let mut side_by_side = 0;
        let close = |group: &mut [RowPlan]| {
            let several = group.len() > 1;
            group.iter_mut().for_each(|row| row.overlaps = several);
        };
        for (command, &barrier) in compiled.lowered.commands.iter().zip(&compiled.barriers) {
            if barrier || isolated {
                close(&mut rows[side_by_side..]);
                side_by_side = rows.len();
            }
            let groups = match &command.action {
                Action::Dispatch { groups, .. } => *groups,
                Action::Copy | Action::Fill { .. } => [0; 3],
            };
            let kernel = command.action.name().to_owned();
            let (label, cost) = (command.label.clone(), command.cost);
            rows.push(RowPlan { label, kernel, groups, cost, barrier, overlaps: false });
        }
        close(&mut rows[side_by_side..]);
        rows.into()
    }
}

/// The calling thread, as traces name it.
pub(crate) fn thread_name() -> String {
    let thread = std::thread::current();
    thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned)
}

/// What the device wrote.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Begin and end of the staged uploads, if there were any.
    pub(crate) upload: Option<[u64; 2]>,
    /// Begin and end of each row.
    pub(crate) ticks: Vec<u64>,
    /// The clocks at a moment after the work was done.
    pub(crate) after: Option<Anchor>,
}

/// Goes with a submission and collects its times.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) mode: Profiling,
    /// Nobody is to make a profile of it.
    pub(crate) host_only: bool,
    pub(crate) rows: Arc<[RowPlan]>,
    pub(crate) before: Option<Anchor>,
    epoch: Instant,
    pub(crate) host: Mutex<HostTimes>,
    upload_bytes: AtomicU64,
    /// The first rows may overlap an earlier submission, the last ones a later one.
    head_overlaps: AtomicBool,
    tail_overlaps: AtomicBool,
    number: AtomicU64,
    outcome: OnceLock<Result<Outcome>>,
}

impl Ticket {
    pub(super) fn new(
        mode: Profiling,
        host_only: bool,
        rows: Arc<[RowPlan]>,
        before: Option<Anchor>,
        epoch: Instant,
        host: HostTimes,
    ) -> Ticket {
        Ticket {
            mode,
            host_only,
            rows,
            before,
            epoch,
            host: Mutex::new(host),
            upload_bytes: AtomicU64::new(0),
            head_overlaps: AtomicBool::new(false),
            tail_overlaps: AtomicBool::new(false),
            number: AtomicU64::new(0),
            outcome: OnceLock::new(),
        }
    }

    /// Notes the number that the submission got.
    pub(crate) fn numbered(&self, number: u64) {
        self.number.store(number, Ordering::Relaxed);
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Notes that staged uploads ride in front.
    pub(crate) fn carries_uploads(&self, bytes: u64) {
        self.upload_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn upload_bytes(&self) -> u64 {
        self.upload_bytes.load(Ordering::Relaxed)
    }

    /// Notes that no barrier stands between this submission and an earlier one that may still run.
    pub(crate) fn follows_unordered(&self, earlier: Option<&Ticket>) {
        self.head_overlaps.store(true, Ordering::Relaxed);
        if let Some(earlier) = earlier {
            earlier.tail_overlaps.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a row may overlap another, in this submission or in a neighbour.
    pub(crate) fn overlaps(&self, row: usize) -> bool {
        let barriers = |rows: &[RowPlan]| rows.iter().any(|row| row.barrier);
        self.rows[row].overlaps
            || (self.head_overlaps.load(Ordering::Relaxed) && !barriers(&self.rows[..=row]))
            || (self.tail_overlaps.load(Ordering::Relaxed) && !barriers(&self.rows[row + 1..]))
    }

    /// Notes how long the host waited for it.
    pub(crate) fn waited(&self, wait: (u64, u64)) {
        self.host.lock().waits.push(wait);
    }

    /// Takes the times from the slots of a finished submission, before they are reused.
    pub(crate) fn collect(&self, uploads: Option<&CommandSlot>, slots: &[CommandSlot], device: &Device) {
        let read = || -> Result<Outcome> {
            let after = device.sample_clock()?.map(|sample| Anchor::new(sample, self.epoch));
            let mut ticks = Vec::new();
            for slot in slots {
                ticks.extend(slot.read_timestamps()?);
            }
            let upload = uploads.map(CommandSlot::read_timestamps).transpose()?;
            Ok(Outcome { upload: upload.and_then(|ticks| ticks.try_into().ok()), ticks, after })
        };
        let _ = self.outcome.set(read());
    }

    /// The times, once they are there.
    pub(crate) fn outcome(&self) -> Result<&Outcome> {
        match self.outcome.get() {
            Some(Ok(outcome)) => Ok(outcome),
            Some(Err(error)) => Err(error.clone()),
            None => Err(ProfileError::NotComplete { submission: self.number() }.into()),
        }
    }
}
