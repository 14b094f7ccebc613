//! What an accelerator owns once, shared by everything made from it.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::disk;
use crate::error::{Error, Result};
use crate::kernels::catalog::Catalog;
use crate::kernels::families::{self, find_winner};
use crate::runtime::background::BackgroundThread;
use crate::runtime::commands::Job;
use crate::runtime::config::{CacheDir, Config};
use crate::runtime::disk_cache;
use crate::runtime::pipeline_history;
use crate::runtime::pipelines::Pipelines;
use crate::runtime::pool::{Bound, Lease, Pool, Shortage};
use crate::runtime::profile::Profiling;
use crate::runtime::profile::guard::Judge;
use crate::runtime::profile::guard::{DOUBTS, PeakStore};
use crate::runtime::profile::profiler::{Profiler, trace};
use crate::runtime::profile::row::Profile;
use crate::runtime::profile::ticket::Ticket;
use crate::runtime::quiet::Quiet;
use crate::runtime::timeline::Timeline;
use crate::runtime::wakers::Wakers;
use crate::schedule::compiled_graph::Amount;
use crate::vk::buffer::MemoryKind;
use crate::vk::choice::{DeviceChoice, choose};
use crate::vk::describe;
use crate::vk::device::{Device, Uses};
use crate::vk::instance::Instance;
use crate::vk::pipeline::PipelineCache;
use crate::vk::process::{self, Own};
use crate::vk::raw::HostDevice;
use crate::vk::renderdoc::RenderDoc;

/// The device and all that is owned once. In a forked process nothing of it is dropped.
#[derive(Debug)]
pub(crate) struct Core(Own<Parts>);

impl Deref for Core {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// What it consists of.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Dropped first: its thread uses all the rest.
    pub(crate) background: OnceLock<BackgroundThread>,
    /// Its thread, too.
    pub(crate) wakers: Wakers,
    pub(crate) timeline: Timeline,
    pub(crate) pipelines: Pipelines,
    pub(crate) catalog: Catalog,
    pub(crate) pool: Arc<Pool>,
    pub(crate) counters: Counters,
    /// Tensors alive; each holds a reference to this.
    pub(crate) tensors: AtomicUsize,
    /// Nodes of the last recording: the next is given room for as many.
    pub(crate) recorded: AtomicUsize,
    pub(crate) profiler: Profiler,
    pub(crate) peaks: Mutex<PeakStore>,
    pub(crate) quiet: Quiet,
    /// RenderDoc, or what is missing.
    pub(crate) renderdoc: std::result::Result<RenderDoc, String>,
    /// Why there is no cache folder, if one was wanted.
    pub(crate) cache_problem: Option<String>,
    closed: AtomicBool,
    /// Tells the accelerators of a process apart, from 1.
    pub(crate) number: u64,
    pub(crate) fusion: bool,
    pub(crate) device: Arc<Device>,
}

/// What an acquisition does when memory is short: wait for work in flight, or fail at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnShortage {
    Wait,
    Fail,
}

/// What has been done so far.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) submissions: AtomicU64,
    pub(crate) dispatches: AtomicU64,
    pub(crate) barriers: AtomicU64,
    pub(crate) bytes_moved: AtomicU64,
    pub(crate) temporaries: AtomicU64,
    pub(crate) temporary_bytes: AtomicU64,
    pub(crate) encoded: AtomicU64,
    pub(crate) plan_copies: AtomicU64,
    pub(crate) plan_encoded: AtomicU64,
    pub(crate) bytes_up: AtomicU64,
    pub(crate) bytes_down: AtomicU64,
}

impl Counters {
    /// Counts one submission.
    pub(crate) fn submitted(&self, amount: Amount) {
        self.submissions.fetch_add(1, Ordering::Relaxed);
        self.dispatches.fetch_add(amount.dispatches, Ordering::Relaxed);
        self.barriers.fetch_add(amount.barriers, Ordering::Relaxed);
        self.bytes_moved.fetch_add(amount.bytes, Ordering::Relaxed);
    }

    /// Counts copies of tensors that something else needed as they were: no submission of a user's.
    pub(crate) fn moved(&self, amount: Amount) {
        self.dispatches.fetch_add(amount.dispatches, Ordering::Relaxed);
        self.bytes_moved.fetch_add(amount.bytes, Ordering::Relaxed);
    }

    /// Counts the blocks that a compiled graph's temporaries take.
    pub(crate) fn took(&self, temporaries: &[Option<u64>]) {
        let taken = temporaries.iter().flatten();
        self.temporaries.fetch_add(taken.clone().count() as u64, Ordering::Relaxed);
        self.temporary_bytes.fetch_add(taken.sum(), Ordering::Relaxed);
    }
}

impl Core {
    pub(crate) fn new(config: &Config) -> Result<Arc<Core>> {
        let renderdoc = RenderDoc::find(config.renderdoc);
        let instance = Instance::new(
            config.entry.clone().map(|e| e.0),
            config.validation,
            config.on_message.clone().map(|s| s.0),
        )?;
        let devices = describe::enumerate(&instance)?;
        let info = choose(&devices, &device_choice(config)?)?;
        let labels = config.validation || config.labels || renderdoc.is_ok();
        let uses = Uses { labels, names: labels, executables: false, cap_bytes: config.pool_cap };
        let device = Device::new(instance, info, uses)?;
        Core::on(device, renderdoc, config)
    }

    /// On a device of the host's.
    pub(crate) fn adopt(host: HostDevice, config: &Config) -> Result<Arc<Core>> {
        Core::on(Device::adopt(host, config.pool_cap)?, RenderDoc::find(false), config)
    }

    fn on(
        device: Arc<Device>,
        renderdoc: std::result::Result<RenderDoc, String>,
        config: &Config,
    ) -> Result<Arc<Core>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (folder, cache_problem) = cache_folder(&config.cache_dir)?;
        let cache = PipelineCache::new(&device, folder.as_deref())?;
        let application = config.application.clone().unwrap_or_else(pipeline_history::executable);
        let catalog = Catalog::new(families::ALL, &device.info, &config.variants)?;
        let folder = folder.filter(|_| !config.untuned);
        let tuned = folder.and_then(|folder| disk_cache::load_tuning(&device.info, &folder, find_winner));
        catalog.adopt(&tuned.unwrap_or_default());
        Ok(Arc::new(Core(Own::new(Parts {
            background: OnceLock::new(),
            wakers: Wakers::default(),
            timeline: Timeline::new(&device, config.max_in_flight.unwrap_or(64))?,
            pipelines: Pipelines::new(&device, cache, &application),
            catalog,
            pool: Pool::new(&device, config.pool_cap, config.memory_checks),
            counters: Counters::default(),
            tensors: AtomicUsize::new(0),
            recorded: AtomicUsize::new(0),
            profiler: Profiler::new(config.profiling),
            peaks: Mutex::default(),
            quiet: Quiet::default(),
            renderdoc,
            cache_problem,
            closed: AtomicBool::new(false),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            fusion: !config.no_fusion,
            device,
        }))))
    }

    /// Where files are kept between runs, if anywhere.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.pipelines.cache.file()?.parent()
    }

    /// An error if nothing new may be begun.
    pub(crate) fn open(&self) -> Result<()> {
        process::check()?;
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        self.timeline.alive()
    }

    pub(crate) fn mark_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// A block from the pool. When there is none: reclaim finished work, free what the pool caches, send uploads that
    /// wait for company, then wait for the oldest submission, one after the other until none is in flight; only then
    /// it is an error. Staging memory goes beyond its bound then: whoever holds the rest needs no more of it.
    pub(crate) fn acquire(&self, kind: MemoryKind, bytes: u64) -> Result<Lease> {
        self.acquire_with(kind, bytes, OnShortage::Wait)
    }

    /// The same; without patience a shortage is an error before anything is waited for or submitted.
    pub(crate) fn acquire_with(
        &self,
        kind: MemoryKind,
        bytes: u64,
        on_shortage: OnShortage,
    ) -> Result<Lease> {
        if let Some(lease) = self.pool.try_hit(kind, bytes) {
            return Ok(lease);
        }
        if self.timeline.reclaim()?
            && let Some(lease) = self.pool.try_hit(kind, bytes)
        {
            return Ok(lease);
        }
        let mut bound = Bound::Kept;
        loop {
            let shortage = match self.pool.try_make(kind, bytes, bound)? {
                Ok(lease) => return Ok(lease),
                Err(shortage) => shortage,
            };
            // What is cached does not count against the cap.
            let freed = self.timeline.reclaim()? || (shortage == Shortage::Memory && self.pool.trim() > 0);
            if !freed {
                if on_shortage == OnShortage::Fail {
                    return Err(self.pool.shortage(shortage, bytes));
                }
                self.timeline.flush_uploads()?;
                if !self.timeline.wait_oldest()? {
                    if shortage != Shortage::Staging {
                        return Err(self.pool.shortage(shortage, bytes));
                    }
                    bound = Bound::Exceeded;
                }
            }
            if let Some(lease) = self.pool.try_hit(kind, bytes) {
                return Ok(lease);
            }
        }
    }

    /// Submits a job; notes how long that took and who collects its times.
    pub(crate) fn submit(&self, job: Job) -> Result<u64> {
        let _span = trace::enter("submit");
        let Some(ticket) = job.ticket.clone() else { return self.timeline.submit(job) };
        let begin = self.profiler.now_ns();
        let value = self.timeline.submit(job)?;
        ticket.host.lock().submit = (begin, self.profiler.now_ns());
        if !ticket.host_only {
            self.profiler.gather(&ticket);
        }
        Ok(value)
    }

    /// The profiles of submissions that are complete, and what they were judged by. A figure above the device's peaks
    /// is believed to be wrong only when the peaks have been measured again.
    pub(crate) fn profiles(
        self: &Arc<Core>,
        mode: Profiling,
        tickets: &[Arc<Ticket>],
    ) -> Result<(Vec<Profile>, Judge)> {
        self.timeline.read_times()?;
        self.profiler.anchor(&self.device)?;
        let peaks = match mode {
            Profiling::Isolated => Some(self.peaks()?),
            Profiling::Off | Profiling::Timeline => None,
        };
        let mut judge = Judge { peaks, mismatch: self.profiler.clock_mismatch(&self.device) };
        let all = |judge: &Judge| -> Result<Vec<Profile>> {
            tickets.iter().map(|ticket| Profile::new(ticket, &self.device, judge)).collect()
        };
        let mut profiles = all(&judge)?;
        for _ in 0..DOUBTS {
            if !profiles.iter().any(Profile::is_above_peaks) {
                break;
            }
            judge.peaks = Some(self.peaks_again()?);
            profiles = all(&judge)?;
        }
        Ok((profiles, judge))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.pipelines.save();
    }
}

/// The configured device, or the one that the environment names.
pub(crate) fn device_choice(config: &Config) -> Result<DeviceChoice> {
    match (&config.device, std::env::var_os("TIDEMILL_DEVICE")) {
        (DeviceChoice::Best, Some(text)) if !text.is_empty() => named_choice(&text),
        (choice, _) => Ok(choice.clone()),
    }
}

/// What the variable says. An empty one counts as none.
fn named_choice(text: &OsStr) -> Result<DeviceChoice> {
    match text.to_str() {
        Some(name) if !name.trim().is_empty() => Ok(DeviceChoice::parse(name)),
        name => {
            let why = if name.is_some() { "is blank" } else { "is not UTF-8" };
            Err(Error::DeviceVariable { value: text.to_string_lossy().into_owned(), why })
        }
    }
}

/// Makes the cache folder. One given by name must work; the default one may be done without.
fn cache_folder(wanted: &CacheDir) -> Result<(Option<std::path::PathBuf>, Option<String>)> {
    let Some(path) = wanted.path() else { return Ok((None, None)) };
    if path.as_os_str().is_empty() {
        return Err(Error::CacheFolder { path, detail: "the path is empty".to_owned() });
    }
    match (disk::open_folder(&path), wanted) {
        (Ok(()), _) => Ok((Some(path), None)),
        (Err(e), CacheDir::At(_)) => Err(Error::CacheFolder { path, detail: e.to_string() }),
        (Err(e), _) => Ok((None, Some(format!("{}: {e}", path.display())))),
    }
}
