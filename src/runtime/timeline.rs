//! Submissions as numbers on the timeline, and the resources that each holds until its number is reached.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::error::{Error, HostError, Result};
use crate::ir::value::Label;
use crate::runtime::commands::{BlockUse, Commands, Job, Replay, WORD_BYTES};
use crate::runtime::external::{ExternalCommands, ExternalInFlight};
use crate::runtime::losses;
use crate::runtime::pool::{Lease, PIECE_BYTES};
use crate::runtime::profile::ticket::Ticket;
use crate::runtime::uploads::{Upload, encode_uploads};
use crate::vk::command::CommandSlot;
use crate::vk::device::Device;
use crate::vk::process;
use crate::vk::queue::Queue;
use crate::vk::raw::TimelinePoint;

/// Queued uploads of this many bytes are submitted alone, without waiting for the next submission: the device then
/// copies while the host fills the next pieces.
const PENDING_UPLOAD_BYTES: u64 = 2 * PIECE_BYTES;
/// The same, by number: each upload holds a block of staging memory, however small it is.
const PENDING_UPLOADS: usize = 256;
/// This many finished submissions may wait for their times to be read. Each keeps its slot, or its copy of a plan.
const UNREAD: usize = 256;

#[derive(Debug)]
struct InFlight {
    value: u64,
    /// The uploads and arguments in front of it.
    uploads: Option<CommandSlot>,
    commands: Commands,
    uses: Vec<BlockUse>,
    labels: Arc<[Label]>,
    ticket: Option<Arc<Ticket>>,
}

/// A finished submission whose times were not read yet.
#[derive(Debug)]
struct Unread {
    uploads: Option<CommandSlot>,
    commands: Commands,
    ticket: Arc<Ticket>,
}

/// References that a finished submission releases, outside the lock: the last reference returns a block.
type Done = (Vec<BlockUse>, Option<Arc<Replay>>);

#[derive(Debug, Default)]
struct State {
    /// The last number given out.
    last: u64,
    /// Everything up to this number is ordered before whatever is submitted next.
    fenced: u64,
    in_flight: VecDeque<InFlight>,
    /// Finished; their times are read when a profile is requested, or when there are too many.
    unread: Vec<Unread>,
    /// Slots ready to be recorded, and slots to be reset first.
    clean_slots: Vec<CommandSlot>,
    used_slots: Vec<CommandSlot>,
    uploads: Vec<Upload>,
    upload_bytes: u64,
    /// Work that the host submits itself.
    external: ExternalInFlight,
}

/// A slot that is to be recorded next.
enum Taken {
    Clean(CommandSlot),
    Used(CommandSlot),
    New,
}

impl State {
    fn take_slot(&mut self) -> Taken {
        if let Some(slot) = self.clean_slots.pop() {
            return Taken::Clean(slot);
        }
        // One used slot is left for the next wait to reset: then two take turns, and no recording waits for a reset.
        if self.used_slots.len() < 2 {
            return Taken::New;
        }
        self.used_slots.pop().map_or(Taken::New, Taken::Used)
    }

    /// Takes back the slots of a finished submission. A replay's are its plan's: it is dropped outside the lock.
    fn recycle(&mut self, uploads: Option<CommandSlot>, commands: Commands) -> Option<Arc<Replay>> {
        self.used_slots.extend(uploads);
        match commands {
            Commands::Once(mut slot) => {
                slot.let_go_of_pipelines();
                self.used_slots.push(slot);
                None
            }
            Commands::Replay(replay) => Some(replay),
        }
    }
}

impl Taken {
    fn ready(self, device: &Arc<Device>) -> Result<CommandSlot> {
        match self {
            Taken::Clean(slot) => Ok(slot),
            Taken::Used(mut slot) => slot.reset().map(|()| slot),
            Taken::New => CommandSlot::new(device),
        }
    }
}

/// The queue, its numbers, and what is in flight.
#[derive(Debug)]
pub(crate) struct Timeline {
    state: Mutex<State>,
    lost: OnceLock<Error>,
    max_in_flight: usize,
    queue: Queue,
    device: Arc<Device>,
}

impl Timeline {
    pub(crate) fn new(device: &Arc<Device>, max_in_flight: usize) -> Result<Timeline> {
        Ok(Timeline {
            state: Mutex::default(),
            lost: OnceLock::new(),
            max_in_flight,
            queue: Queue::new(device)?,
            device: device.clone(),
        })
    }

    /// An error if the device is lost, or another process's.
    pub(crate) fn alive(&self) -> Result<()> {
        process::check()?;
        self.lost.get().map_or(Ok(()), |lost| Err(lost.clone()))
    }

    /// Simulates the loss of the device.
    #[cfg(test)]
    pub(crate) fn lose(&self) {
        let _ = self.record_device_loss::<()>(Err(Error::device_lost("a test")));
    }

    /// Makes the loss of the device sticky, with the labels of work in flight, and the driver's report.
    fn record_device_loss<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error {
            Error::DeviceLost { call, .. } => {
                let lost = self.lost.get_or_init(|| {
                    // The state's lock may be held by the caller; then the labels are not available.
                    let in_flight =
                        self.state.try_lock().map_or_else(Vec::new, |state| labels(&state.in_flight));
                    let again = losses::note(&self.device.info.cache_key, &in_flight);
                    let fault = self.device.fault().map(Arc::new);
                    Error::DeviceLost { call, in_flight: in_flight.into(), again: again.into(), fault }
                });
                lost.clone()
            }
            error => error,
        })
    }

    /// A command slot that nothing pending uses.
    pub(crate) fn take_slot(&self) -> Result<CommandSlot> {
        let taken = self.state.lock().take_slot();
        self.record_device_loss(taken.ready(&self.device))
    }

    /// A command slot of the caller's own.
    pub(crate) fn make_slot(&self) -> Result<CommandSlot> {
        self.record_device_loss(CommandSlot::new(&self.device))
    }

    /// Resets slots whose work is done, so that the next recording finds one clean: before a wait, when the device is
    /// busy and the CPU is not. A reset takes a driver about a quarter of the time that recording took (`bench
    /// record_dispatch`).
    fn clean_slots(&self) -> Result<()> {
        loop {
            let Some(mut slot) = self.state.lock().used_slots.pop() else { return Ok(()) };
            self.record_device_loss(slot.reset())?;
            self.state.lock().clean_slots.push(slot);
        }
    }

    /// Submits a job and returns its number. Waits only if too many are in flight.
    pub(crate) fn submit(&self, job: Job) -> Result<u64> {
        self.alive()?;
        self.apply_backpressure()?;
        let mut state = self.state.lock();
        let submitted = self.submit_locked(&mut state, job);
        drop(state);
        self.record_device_loss(submitted)
    }

    fn submit_locked(&self, state: &mut State, job: Job) -> Result<u64> {
        let mut uses = job.uses;
        let mut uploads = None;
        if !state.uploads.is_empty() || !job.words.is_empty() {
            let mut slot = state.take_slot().ready(&self.device)?;
            if let Some(ticket) = &job.ticket {
                ticket.carries_uploads(state.upload_bytes + WORD_BYTES * job.words.len() as u64);
            }
            let stamps = job.ticket.as_ref().is_some_and(|ticket| !ticket.host_only);
            let stamps = stamps && self.device.info.timestamps.is_some();
            uses.extend(encode_uploads(&mut slot, &state.uploads, &job.words, stamps)?);
            uploads = Some(slot);
        }
        let all = || uses.iter().chain(job.commands.own());
        let opening = all().any(|u| u.meets_unfenced(state.fenced));
        let value = state.last + 1;
        self.queue.submit(opening, uploads.iter().chain(job.commands.slots()), value, &job.sync)?;
        state.last = value;
        if opening || uploads.is_some() || job.has_barrier {
            state.fenced = value - 1;
        }
        all().for_each(|block_use| block_use.touch(value));
        state.uploads.clear();
        state.upload_bytes = 0;
        if let Some(ticket) = &job.ticket {
            ticket.numbered(value);
            if !opening && uploads.is_none() && !state.in_flight.is_empty() {
                ticket.follows_unordered(state.in_flight.back().and_then(|last| last.ticket.as_deref()));
            }
        }
        let Job { commands, labels, ticket, .. } = job;
        state.in_flight.push_back(InFlight { value, uploads, commands, uses, labels, ticket });
        Ok(value)
    }

    /// Queues a staged upload in front of the next submission; a large backlog is sent at once.
    pub(crate) fn upload(&self, staging: &Lease, to: &Lease, offset: u64, bytes: u64) -> Result<()> {
        let mut state = self.state.lock();
        state.upload_bytes += bytes;
        state.uploads.push(Upload { staging: staging.hold(), to: to.hold(), offset, bytes });
        if state.upload_bytes < PENDING_UPLOAD_BYTES && state.uploads.len() <= PENDING_UPLOADS {
            return Ok(());
        }
        drop(state);
        self.flush_uploads()
    }

    /// Whether an upload to a block is still queued.
    pub(crate) fn uploads_to(&self, lease: &Lease) -> bool {
        self.state.lock().uploads.iter().any(|upload| upload.to.address() == lease.address())
    }

    /// Submits queued uploads alone, without waiting for the next submission.
    pub(crate) fn flush_uploads(&self) -> Result<()> {
        process::check()?;
        if self.state.lock().uploads.is_empty() {
            return Ok(());
        }
        let mut slot = self.take_slot()?;
        self.record_device_loss(slot.begin().and_then(|()| slot.end()))?;
        self.submit(Job::plain(slot, Vec::new())).map(drop)
    }

    /// Waits until the copies that were queued to a block are done. The caller has a lease on it, so that no others
    /// come.
    pub(crate) fn wait_uploaded(&self, to: &Lease) -> Result<()> {
        if self.uploads_to(to) {
            self.flush_uploads()?;
        }
        // Noted when they were submitted, by whomever.
        self.wait(to.block().last_write.load(Ordering::Acquire), u64::MAX).map(drop)
    }

    /// Refuses work for the host's command buffer whose inputs are still to be uploaded.
    pub(crate) fn check_uploaded(&self, blocks: &[Lease]) -> Result<()> {
        let state = self.state.lock();
        let used = |upload: &&Upload| blocks.iter().any(|block| block.address() == upload.to.address());
        let (uploads, bytes) = state
            .uploads
            .iter()
            .filter(used)
            .fold((0, 0), |(n, bytes), upload| (n + 1, bytes + upload.bytes));
        if uploads > 0 { Err(HostError::UploadsPending { uploads, bytes }.into()) } else { Ok(()) }
    }

    /// Takes in what was recorded into a command buffer of the host's.
    pub(crate) fn host_submits(&self, work: ExternalCommands) {
        self.state.lock().external.push(work);
    }

    /// Waits for what the host submits itself that writes a block.
    pub(crate) fn wait_external(&self, lease: &Lease) -> Result<()> {
        let points = self.state.lock().external.points_writing(lease);
        self.record_device_loss(self.queue.wait_points(&points))?;
        self.reclaim().map(drop)
    }

    /// The timeline's semaphore at a number; without one, at the last that was submitted.
    pub(crate) fn point(&self, value: Option<u64>) -> TimelinePoint {
        self.queue.point(value.unwrap_or_else(|| self.state.lock().last))
    }

    /// Waits for the oldest submission while too many are in flight.
    fn apply_backpressure(&self) -> Result<()> {
        while self.state.lock().in_flight.len() >= self.max_in_flight {
            if !self.reclaim()? {
                self.wait_oldest()?;
            }
        }
        Ok(())
    }

    /// Releases what finished submissions held; `true` if there was any.
    pub(crate) fn reclaim(&self) -> Result<bool> {
        process::check()?;
        let mut done: SmallVec<[Done; 2]> = SmallVec::new();
        let external;
        {
            let mut state = self.state.lock();
            if state.in_flight.is_empty() && state.external.is_empty() {
                return Ok(false);
            }
            let over = state.external.take_done(|point| self.queue.is_reached(point));
            let asked = over.and_then(|over| Ok((over, self.queue.completed()?)));
            let completed;
            match asked {
                Ok(answer) => (external, completed) = answer,
                Err(error) => {
                    drop(state);
                    return self.record_device_loss(Err(error));
                }
            }
            while state.in_flight.front().is_some_and(|oldest| oldest.value <= completed) {
                let Some(finished) = state.in_flight.pop_front() else { break };
                let InFlight { uploads, commands, uses, ticket, .. } = finished;
                let replay = match ticket {
                    Some(ticket) => {
                        state.unread.push(Unread { uploads, commands, ticket });
                        None
                    }
                    None => state.recycle(uploads, commands),
                };
                done.push((uses, replay));
            }
            if !self.device.info.workarounds.queries_drain_queue || state.unread.len() >= UNREAD {
                self.read_times_locked(&mut state, &mut done);
            }
        }
        Ok(!done.is_empty() || !external.is_empty())
    }

    /// Reads the times of everything that is finished.
    pub(crate) fn read_times(&self) -> Result<()> {
        self.reclaim()?;
        let mut done: SmallVec<[Done; 2]> = SmallVec::new();
        self.read_times_locked(&mut self.state.lock(), &mut done);
        Ok(())
    }

    fn read_times_locked(&self, state: &mut State, done: &mut SmallVec<[Done; 2]>) {
        for Unread { uploads, commands, ticket } in std::mem::take(&mut state.unread) {
            // The times of a submission whose profile can't be requested any more are not read.
            if Arc::strong_count(&ticket) > 1 {
                ticket.collect(uploads.as_ref(), commands.slots(), &self.device);
            }
            done.push((Vec::new(), state.recycle(uploads, commands)));
        }
    }

    /// Whether the number is reached.
    pub(crate) fn is_complete(&self, value: u64) -> Result<bool> {
        self.alive()?;
        Ok(self.record_device_loss(self.queue.completed())? >= value)
    }

    /// Waits for a number; `false` if the time was over before. Changes nothing then.
    pub(crate) fn wait(&self, value: u64, timeout_ns: u64) -> Result<bool> {
        self.alive()?;
        self.clean_slots()?;
        let reached = self.record_device_loss(self.queue.wait(value, timeout_ns))?;
        self.reclaim()?;
        Ok(reached)
    }

    /// Waits until anything more is done, or for so long; gives the highest number reached.
    pub(crate) fn wait_for_next(&self, timeout_ns: u64) -> Result<u64> {
        self.alive()?;
        let completed = self.record_device_loss(self.queue.completed())?;
        self.wait(completed + 1, timeout_ns)?;
        self.record_device_loss(self.queue.completed())
    }

    /// Waits for the oldest submission in flight; `false` if there is none.
    pub(crate) fn wait_oldest(&self) -> Result<bool> {
        let oldest = self.state.lock().in_flight.front().map(|oldest| oldest.value);
        oldest.map_or(Ok(false), |value| self.wait(value, u64::MAX))
    }

    /// Waits for everything, queued uploads included.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.flush_uploads()?;
        let last = self.state.lock().last;
        self.wait(last, u64::MAX)?;
        let external = self.state.lock().external.points();
        self.record_device_loss(self.queue.wait_points(&external))?;
        self.reclaim().map(drop)
    }

    /// Waits for work in flight, for a limited time, and ignores errors.
    pub(crate) fn drain(&self, patience: std::time::Duration) {
        let last = self.state.lock().last;
        let _ = self.wait(last, patience.as_nanos() as u64);
    }

    /// The last number given out, and whether nothing is in flight.
    pub(crate) fn last_and_idle(&self) -> (u64, bool) {
        let _ = self.reclaim();
        let state = self.state.lock();
        (state.last, state.in_flight.is_empty())
    }

    /// Submissions in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.state.lock().in_flight.len()
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        // Whatever is in flight holds blocks and slots: wait before they go. Where the timeline can't be asked any
        // more, the queue can: a lost one answers at once.
        let last = self.state.get_mut().last;
        if self.lost.get().is_some() || self.queue.wait(last, u64::MAX).is_err() {
            self.queue.wait_idle();
        } else {
            let _ = self.queue.wait_points(&self.state.get_mut().external.points());
        }
    }
}

/// The labels of what is in flight, oldest first.
fn labels(in_flight: &VecDeque<InFlight>) -> Vec<String> {
    in_flight.iter().flat_map(|f| f.labels.iter()).map(ToString::to_string).collect()
}
