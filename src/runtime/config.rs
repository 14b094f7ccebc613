//! The configuration of an accelerator.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::runtime::profile::Profiling;
use crate::vk::choice::DeviceChoice;
use crate::vk::messages::MessageSink;
use crate::vk::physical::DeviceKind;
use crate::vk::raw::Entry;

/// When the catalog's pipelines are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prewarm {
    /// By a background thread, while the queue is idle; pipelines that are needed now come first.
    #[default]
    Background,
    /// Before [`Accelerator::new`](crate::Accelerator::new) returns.
    Blocking,
    /// When first used.
    Off,
}

/// Where files are kept between runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheDir {
    #[default]
    Platform,
    At(PathBuf),
    Off,
}

/// How to make an [`Accelerator`](crate::Accelerator). The defaults are good.
///
/// ```
/// use tidemill::{Config, Prewarm};
/// let config = Config::new().prewarm(Prewarm::Off).pool_cap(256 << 20);
/// # let _ = config;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Config {
    pub(crate) device: DeviceChoice,
    pub(crate) validation: bool,
    pub(crate) on_message: Option<Sink>,
    pub(crate) labels: bool,
    pub(crate) prewarm: Prewarm,
    pub(crate) cache_dir: CacheDir,
    pub(crate) application: Option<String>,
    pub(crate) pool_cap: Option<u64>,
    pub(crate) max_in_flight: Option<usize>,
    pub(crate) memory_checks: bool,
    pub(crate) no_fusion: bool,
    pub(crate) variants: Vec<(String, String)>,
    pub(crate) untuned: bool,
    pub(crate) entry: Option<Entry>,
    pub(crate) profiling: Profiling,
    pub(crate) renderdoc: bool,
}

impl Config {
    /// The defaults: the best device, no validation, pipelines warmed in the background and cached in the
    /// platform's cache folder, a pool without a cap.
    pub fn new() -> Config {
        Config::default()
    }

    /// Takes this device. Without it the best one is taken, or the one that `TIDEMILL_DEVICE` names (an index, a kind,
    /// or a part of a name).
    pub fn device(mut self, choice: DeviceChoice) -> Config {
        self.device = choice;
        self
    }

    /// Takes the first device whose name contains `part`.
    pub fn device_name(self, part: &str) -> Config {
        self.device(DeviceChoice::Name(part.to_owned()))
    }

    /// Takes the device with this index.
    pub fn device_index(self, index: usize) -> Config {
        self.device(DeviceChoice::Index(index))
    }

    /// Takes the first device of this kind.
    pub fn device_kind(self, kind: DeviceKind) -> Config {
        self.device(DeviceChoice::Kind(kind))
    }

    /// Runs under the Khronos validation layer with synchronization validation;
    /// [`Accelerator::validation_messages`](crate::Accelerator::validation_messages) returns its messages.
    pub fn validation(mut self, on: bool) -> Config {
        self.validation = on;
        self
    }

    /// Sends messages of the validation layer to a function of the host, up to and including the destruction of the
    /// device. It is called on a thread of its own, for one message after the other, so it may call into the engine,
    /// and a panic in it concerns no one else. It has received everything when the last handle of the accelerator was
    /// dropped, or when [`Accelerator::validation_messages`](crate::Accelerator::validation_messages) returns. If the
    /// system gives no thread, it is never called, and that function returns the messages.
    pub fn on_message(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Config {
        self.on_message = Some(Sink(Arc::new(sink)));
        self
    }

    /// Names every object and dispatch for tools such as RenderDoc. On by itself with validation. A process that then
    /// makes or destroys Vulkan instances or devices of its own, or lists physical devices, on other threads, does so
    /// by [`alone_at_the_loader`](crate::interop::alone_at_the_loader).
    pub fn labels(mut self, on: bool) -> Config {
        self.labels = on;
        self
    }

    /// When the catalog's pipelines are made.
    pub fn prewarm(mut self, when: Prewarm) -> Config {
        self.prewarm = when;
        self
    }

    /// Keeps files between runs in this folder, which is made if it does not exist. A folder that can't be used is an
    /// error; without a usable default folder nothing is kept.
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Config {
        self.cache_dir = CacheDir::At(folder.into());
        self
    }

    /// The application's name in the history of pipelines in the cache folder: the next start of the same application
    /// makes the pipelines that this one uses ahead, in at most a second of background work. The default is the name of
    /// the executable. Interpreters and plug-in hosts, which run different programs under one name, should set it.
    pub fn application(mut self, name: &str) -> Config {
        self.application = Some(name.to_owned());
        self
    }

    /// Keeps no files between runs.
    pub fn no_cache(mut self) -> Config {
        self.cache_dir = CacheDir::Off;
        self
    }

    /// The most bytes that the pool may hold, in use and cached together. Staging memory, which has a bound of its own,
    /// does not count ([`PoolStats::staging_bytes`](crate::stats::PoolStats::staging_bytes)).
    ///
    /// The driver may count more: blocks share memory objects of 8 to 32 MiB, or smaller ones under a smaller cap, down
    /// to 4 MiB, which are seldom full. Under a cap of up to 256 KiB none are shared, and no more is taken than blocks
    /// need.
    pub fn pool_cap(mut self, bytes: u64) -> Config {
        self.pool_cap = Some(bytes);
        self
    }

    /// How many submissions may be in flight before `end_recording` waits for the oldest. 64 by default.
    pub fn max_in_flight(mut self, submissions: usize) -> Config {
        self.max_in_flight = Some(submissions.max(1));
        self
    }

    /// For authors of kernels: memory reads as NaN until it is written, and bytes behind every tensor are watched;
    /// [`PoolStats::guard_bytes_touched`](crate::stats::PoolStats::guard_bytes_touched) counts what was written there.
    /// Costs a pass over each block, and sees mapped memory only.
    pub fn memory_checks(mut self, on: bool) -> Config {
        self.memory_checks = on;
        self
    }

    /// Whether elementwise operations that feed each other become one dispatch, and equal operations are carried out
    /// once. On by default; results are the same bits either way.
    pub fn fusion(mut self, on: bool) -> Config {
        self.no_fusion = !on;
        self
    }

    /// Uses this variant of a kernel family instead of the device's default; names as in
    /// [`Accelerator::variants`](crate::Accelerator::variants).
    pub fn variant(mut self, family: &str, variant: &str) -> Config {
        self.variants.push((family.to_owned(), variant.to_owned()));
        self
    }

    /// Whether results of [`Accelerator::tune`](crate::Accelerator::tune) from an earlier run are used. On by default.
    /// Kernels differ in the order in which they add up, so tuning may change the last bits of results.
    pub fn tuned(mut self, on: bool) -> Config {
        self.untuned = !on;
        self
    }

    /// Profiles every submission in this way; [`Submission::profile`](crate::Submission::profile) has the rows. Off by
    /// default. [`Accelerator::begin_profiling`](crate::Accelerator::begin_profiling) does it for a while.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::profile::Profiling;
    /// use tidemill::{Accelerator, Config};
    /// let gpu = Accelerator::new(&Config::new().profiling(Profiling::Timeline))?;
    /// let a = gpu.upload(&[1.0f32; 1000], [1000])?;
    /// let r = gpu.begin_recording()?;
    /// let sum = r.add(&a, &a)?;
    /// let _kept = r.keep(sum)?;
    /// let profile = r.end_recording()?.profile()?;
    /// assert_eq!(profile.rows[0].label, "add 1000 f32");
    /// # Ok(()) }
    /// ```
    pub fn profiling(mut self, mode: Profiling) -> Config {
        self.profiling = mode;
        self
    }

    /// Loads RenderDoc into the process, so that [`Accelerator::capture`](crate::Accelerator::capture) works, and names
    /// everything for it. `TIDEMILL_RENDERDOC=1` does the same, and a program that was started by RenderDoc needs
    /// neither. Where RenderDoc is not installed everything else works, and `capture` says what is missing.
    ///
    /// Must be set before the process makes its first Vulkan instance.
    pub fn renderdoc(mut self, on: bool) -> Config {
        self.renderdoc = on;
        self
    }

    /// Builds on a Vulkan entry point from outside.
    pub fn entry(mut self, entry: Entry) -> Config {
        self.entry = Some(entry);
        self
    }
}

/// A [`MessageSink`] that has a `Debug`.
#[derive(Clone)]
pub(crate) struct Sink(pub(crate) MessageSink);

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

impl CacheDir {
    /// The platform's cache folder, or the one given; `None` if off.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            CacheDir::Off => None,
            CacheDir::At(path) => Some(path.clone()),
            CacheDir::Platform => platform_cache().map(|cache| cache.join("tidemill")),
        }
    }
}

/// The platform's folder for caches.
fn platform_cache() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        var("LOCALAPPDATA")
    } else if cfg!(target_vendor = "apple") {
        var("HOME").map(|home| home.join("Library/Caches"))
    } else {
        var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")))
    }
}
