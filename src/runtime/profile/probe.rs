//! A probe writes timestamps while commands are encoded, and gives the ticket that goes with the submission.

use std::sync::Arc;

use super::Profiling;
use super::clock::Anchor;
use super::profiler::Profiler;
use super::ticket::{HostTimes, RowPlan, Ticket, thread_name};
use crate::error::Result;
use crate::runtime::pipelines::PipelineBuildStats;
use crate::schedule::compiled_graph::Usage;
use crate::vk::command::CommandSlot;
use crate::vk::device::Device;
use crate::vk::query::Stamp;

/// How a recording is to be profiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProfileRequest {
    pub(crate) mode: Profiling,
    /// Only what the host does is noted: no timestamps.
    pub(crate) host_only: bool,
    /// When the recording was begun, if that was noted.
    pub(crate) begun_ns: Option<u64>,
}

impl ProfileRequest {
    /// When it is submitted is noted, without any timestamp on the device.
    pub(crate) fn host_only() -> ProfileRequest {
        ProfileRequest { mode: Profiling::Timeline, host_only: true, begun_ns: None }
    }
}

/// Writes timestamps while commands are encoded. Off, it does nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    mode: Profiling,
    /// The queue has timestamps.
    stamps: bool,
    host_only: bool,
    encode_begin: u64,
    before: Option<Anchor>,
}

impl Probe {
    pub(crate) fn new(profiler: &Profiler, device: &Device, request: ProfileRequest) -> Result<Probe> {
        let mode = request.mode;
        let stamps = mode != Profiling::Off && !request.host_only && device.info.timestamps.is_some();
        let on = mode != Profiling::Off;
        Ok(Probe {
            mode,
            stamps,
            host_only: request.host_only,
            encode_begin: if on { profiler.now_ns() } else { 0 },
            before: if stamps { profiler.anchor(device)? } else { None },
        })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.mode != Profiling::Off
    }

    /// Whether each dispatch must run alone.
    pub(crate) fn isolates(&self) -> bool {
        self.mode == Profiling::Isolated
    }

    /// How a block is used, given the barriers that this way of profiling adds.
    pub(crate) fn usage(&self, usage: Usage) -> Usage {
        if self.isolates() { usage.behind_barrier() } else { usage }
    }

    /// Writes the time of a row's begin. `ordered`: everything before it is ordered before it.
    pub(crate) fn begin(&self, slot: &mut CommandSlot, ordered: bool) -> Result<()> {
        // After a barrier the work begins when all before it is done; without one it may begin at once.
        self.stamp(slot, if ordered { Stamp::Done } else { Stamp::Reached })
    }

    /// Writes the time of the row's end.
    pub(crate) fn end(&self, slot: &mut CommandSlot) -> Result<()> {
        self.stamp(slot, Stamp::Done)
    }

    fn stamp(&self, slot: &mut CommandSlot, stamp: Stamp) -> Result<()> {
        if self.stamps { slot.timestamp(stamp) } else { Ok(()) }
    }

    /// What goes with the submission, if profiling is on.
    pub(crate) fn ticket(
        &self,
        profiler: &Profiler,
        rows: Arc<[RowPlan]>,
        record_begin: Option<u64>,
        built: PipelineBuildStats,
    ) -> Ticket {
        let encode = (self.encode_begin, profiler.now_ns());
        let record = (record_begin.unwrap_or(encode.0), encode.0);
        let host = HostTimes { record, encode, built, thread: thread_name(), ..HostTimes::default() };
        Ticket::new(self.mode, self.host_only, rows, self.before, profiler.epoch(), host)
    }
}
