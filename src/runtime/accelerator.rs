//! The accelerator: the root object of the crate.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, ProfileError, Result};
use crate::kernels::catalog::VariantInfo;
use crate::runtime::background::{BackgroundThread, PrewarmStatus, warm_all};
use crate::runtime::config::{Config, Prewarm};
use crate::runtime::core::{Core, check_size};
use crate::runtime::pipelines::PipelineStats;
use crate::runtime::pool::{Lease, PoolStats, WriteMode};
use crate::runtime::profile::guard::Peaks;
use crate::runtime::tensor::{Contents, Storage, Tensor, TensorWriter};
use crate::shape::{DType, Element, Shape};
use crate::vk::buffer::MemoryKind;
use crate::vk::describe::enumerate;
use crate::vk::instance::Instance;
use crate::vk::physical::DeviceInfo;
use crate::vk::process;

static GLOBAL: Mutex<Option<Accelerator>> = Mutex::new(None);

/// A device with all that exists once: pipelines, the buffer pool, the queue and its timeline.
///
/// Cheap to clone; clones are the same accelerator. Usually there is one, [`Accelerator::global`].
#[derive(Clone)]
pub struct Accelerator {
    core: Arc<Core>,
}

/// Statistics of an accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Recordings and plans submitted, or put into a command buffer of the host's.
    pub submissions: u64,
    /// Dispatches, copies and fills in them.
    pub dispatches: u64,
    /// Barriers between those.
    pub barriers: u64,
    /// Bytes that went from the host to tensors.
    pub bytes_up: u64,
    /// Bytes that went from tensors to the host.
    pub bytes_down: u64,
    /// The least number of bytes that dispatches, copies and fills moved in the device's memory: each byte that one of
    /// them reads or writes counts once. For users' own kernels that is unknown, and they don't count.
    pub bytes_moved: u64,
    /// Blocks taken for temporaries: by each recording, and once by a plan. Temporaries whose lives don't overlap share
    /// one.
    pub temporaries: u64,
    /// Bytes requested in those blocks.
    pub temporary_bytes: u64,
    /// Bytes of the application's own memory that tensors and work in flight read ([`Accelerator::import`]).
    pub imported_bytes: u64,
    /// Submissions in flight.
    pub in_flight: usize,
    /// The pool.
    pub pool: PoolStats,
    /// Pipelines.
    pub pipelines: PipelineStats,
    /// Command buffers.
    pub commands: CommandStats,
}

/// Encoded command buffers, and the objects made for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandStats {
    /// Command buffers encoded: one for each recording, and for a plan those that changed.
    pub encoded: u64,
    /// Of those, the ones of plans: a plan's copy has one for every 32 dispatches.
    pub plan_encoded: u64,
    /// Encoded copies that plans have made: as many as were in flight at once, or were bound to other tensors.
    pub plan_copies: u64,
    /// Command pools made; each has one command buffer.
    pub command_pools: u64,
    /// Descriptor pools made; none where the device has push descriptors.
    pub descriptor_pools: u64,
    /// Query pools made, for timestamps.
    pub query_pools: u64,
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Accelerator({})", self.device().name)
    }
}

impl Accelerator {
    /// The process's accelerator, made on first use with the default [`Config`]. After the loss of the device the
    /// next call makes a new one.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Accelerator::new).
    pub fn global() -> Result<Accelerator> {
        process::check()?;
        let mut global = GLOBAL.lock();
        if let Some(accelerator) = global.as_ref().filter(|a| a.core.open().is_ok()) {
            return Ok(accelerator.clone());
        }
        let accelerator = Accelerator::new(&Config::new())?;
        *global = Some(accelerator.clone());
        Ok(accelerator)
    }

    /// An accelerator of its own.
    ///
    /// # Errors
    ///
    /// [`Error::NoLoader`], [`Error::NoDriver`], [`Error::NoUsableDevice`], [`Error::DeviceNotFound`],
    /// [`Error::LayerMissing`], [`Error::CacheFolder`], or an error of the driver.
    pub fn new(config: &Config) -> Result<Accelerator> {
        process::check()?;
        Accelerator::start(Core::new(config)?, config)
    }

    /// Begins background work.
    pub(super) fn start(core: Arc<Core>, config: &Config) -> Result<Accelerator> {
        let status = match config.prewarm {
            Prewarm::Background => None,
            Prewarm::Blocking => Some(warm_all(&core)?),
            Prewarm::Off => Some(PrewarmStatus { finished: true, ..PrewarmStatus::default() }),
        };
        let _ = core.background.set(BackgroundThread::start(&core, status));
        Ok(Accelerator { core })
    }

    pub(crate) fn from_core(core: Arc<Core>) -> Accelerator {
        Accelerator { core }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Every Vulkan device on this machine, with the reason if it can't be used.
    ///
    /// # Errors
    ///
    /// [`Error::NoLoader`] or [`Error::NoDriver`].
    pub fn devices() -> Result<Vec<DeviceInfo>> {
        enumerate(&*Instance::new(None, false, None)?)
    }

    /// The device it runs on.
    pub fn device(&self) -> &DeviceInfo {
        &self.core.device.info
    }

    /// A tensor with these contents.
    ///
    /// Where the host can't reach the device's memory, they go through staging memory, in pieces of 8 MiB: the copy to
    /// the device is put in front of the next submission, or submitted alone once there are 16 MiB. The call waits only
    /// if 64 MiB are in flight, for the oldest of them.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if shape and data disagree; [`Error::TooLarge`]; [`Error::OutOfMemory`].
    pub fn upload<T: Element>(&self, data: &[T], shape: impl Into<Shape>) -> Result<Tensor> {
        let (op, shape) = ("upload", shape.into());
        if shape.elements() != data.len() {
            return Err(Error::Length { op, shape, got: data.len() });
        }
        self.make::<T>(op, shape, |lease, _| {
            self.core.fill_from(lease, WriteMode::InPlace, bytemuck::cast_slice(data))
        })
    }

    /// A tensor of indices, as i32, from 64-bit ones: each must fit.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let indices = gpu.upload_indices(&[2i64, 0, -1], [3])?;
    /// assert_eq!(indices.read::<i32>()?, [2, 0, -1]);
    /// let refused = gpu.upload_indices(&[0, 1 << 40], [2]).unwrap_err();
    /// assert_eq!(
    ///     refused.to_string(),
    ///     "upload_indices: element 1 is 1099511627776, which no i32 can hold (-2147483648 to 2147483647)"
    /// );
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::IndexRange`] with the first that does not fit; otherwise those of [`upload`](Accelerator::upload).
    pub fn upload_indices(&self, data: &[i64], shape: impl Into<Shape>) -> Result<Tensor> {
        let op = "upload_indices";
        let narrow =
            |(place, &value)| i32::try_from(value).map_err(|_| Error::IndexRange { op, place, value });
        let narrow: Result<Vec<i32>> = data.iter().enumerate().map(narrow).collect();
        self.upload(&narrow?, shape)
    }

    /// A tensor whose contents a closure writes straight into mapped memory, with no copy in between. (Where the host
    /// can't reach the device's memory, that is staging memory up to 8 MiB, and ordinary memory for more, as with
    /// [`upload`](Accelerator::upload).)
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// let gpu = tidemill::Accelerator::global()?;
    /// let squares = gpu.upload_with([5], |f| f.extend((0..5).map(|i| (i * i) as f32)))?;
    /// assert_eq!(squares.read::<f32>()?, [0.0, 1.0, 4.0, 9.0, 16.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Incomplete`] if the closure leaves elements unwritten; [`Error::TooLarge`]; [`Error::OutOfMemory`].
    pub fn upload_with<T: Element>(
        &self,
        shape: impl Into<Shape>,
        fill: impl FnOnce(&mut TensorWriter<'_, T>),
    ) -> Result<Tensor> {
        let (op, shape) = ("upload_with", shape.into());
        self.make::<T>(op, shape, |lease, bytes| {
            self.core.fill_with(lease, WriteMode::InPlace, bytes, |bytes| TensorWriter::run(op, bytes, fill))
        })
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`]; [`Error::OutOfMemory`].
    pub fn zeros<T: Element>(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        self.run(|r| r.fill_as("zeros", shape, T::zeroed()))
    }

    /// A tensor without contents, to be [written](Tensor::write) before anything reads it.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`].
    pub fn empty(&self, shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
        let shape = shape.into();
        self.core.open()?;
        check_size(&self.core, "empty", shape, dtype)?;
        Ok(Tensor::from_parts(Storage::new(&self.core, dtype, None, Contents::Unwritten), shape))
    }

    fn make<T: Element>(
        &self,
        op: &'static str,
        shape: Shape,
        fill: impl FnOnce(&Lease, u64) -> Result<Contents>,
    ) -> Result<Tensor> {
        self.core.open()?;
        check_size(&self.core, op, shape, T::DTYPE)?;
        let bytes = (shape.elements() * T::DTYPE.size_bytes()) as u64;
        let lease = self.core.acquire(MemoryKind::Device, bytes)?;
        let contents = fill(&lease, bytes)?;
        let storage = Storage::new(&self.core, T::DTYPE, Some(lease), contents);
        Ok(Tensor::from_parts(storage, shape))
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`].
    pub fn synchronize(&self) -> Result<()> {
        process::check()?;
        let _span = self.core.profiler.span("wait");
        self.core.timeline.synchronize()
    }

    /// Waits for all work and destroys the device: after `Ok` nothing of this accelerator is left.
    ///
    /// # Errors
    ///
    /// [`Error::StillInUse`] if tensors, recordings, submissions or clones are still held. Then nothing is closed: they
    /// stay usable, and the device is destroyed with the last of them. [`Error::DeviceLost`].
    pub fn close(self) -> Result<()> {
        process::check()?;
        self.core.timeline.synchronize()?;
        // The process's own singleton does not count as another handle. No one gets it from here on.
        let mut global = GLOBAL.lock();
        let is_global = global.as_ref().is_some_and(|g| Arc::ptr_eq(&g.core, &self.core));
        self.core.wakers.pause();
        let count = || {
            let tensors = self.core.tensors.load(std::sync::atomic::Ordering::Relaxed);
            // Every tensor is one reference; this handle is another.
            let own = 1 + usize::from(is_global);
            (tensors, Arc::strong_count(&self.core).saturating_sub(own + tensors))
        };
        let background = self.core.background.get();
        let (tensors, handles) = background.map_or_else(count, |background| background.while_away(count));
        if tensors + handles > 0 {
            return Err(Error::StillInUse { tensors, handles });
        }
        if is_global {
            *global = None;
        }
        drop(global);
        self.core.mark_closed();
        if let Some(background) = background {
            background.stop();
        }
        self.core.wakers.stop();
        Ok(())
    }

    /// Peaks of the device, measured by the host's clock on the first call (some tenths of a second), then kept, on
    /// disk too.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; [`Error::DeviceLost`].
    pub fn peaks(&self) -> Result<Peaks> {
        self.core.open()?;
        self.core.peaks()
    }

    /// Lets RenderDoc capture the closure's submissions, and returns the file: `name` with `.rdc` appended, a path
    /// relative to the working directory or an absolute one. Nothing else is in it: work before is waited for,
    /// background work stays away, and work inside is waited for.
    ///
    /// ```no_run
    /// # fn main() -> tidemill::Result<()> {
    /// use tidemill::{Accelerator, Config};
    /// let gpu = Accelerator::new(&Config::new().renderdoc(true))?;
    /// let a = gpu.upload(&[1.0f32; 1000], [1000])?;
    /// let (sum, file) = gpu.capture("sum", || gpu.run(|r| r.add(&a, &a)))?;
    /// println!("open {} with qrenderdoc", file.display());
    /// # let _ = sum;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ProfileError::NoRenderDoc`](crate::error::ProfileError::NoRenderDoc) says what is missing, before the closure
    /// is called; [`ProfileError::Capturing`](crate::error::ProfileError::Capturing) if a capture is under way, in this
    /// closure's caller or on another thread;
    /// [`ProfileError::CaptureFailed`](crate::error::ProfileError::CaptureFailed); those of the closure.
    pub fn capture<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, std::path::PathBuf)> {
        let core = &self.core;
        core.open()?;
        let renderdoc = core.renderdoc.as_ref();
        let renderdoc =
            renderdoc.map_err(|missing| ProfileError::NoRenderDoc { missing: missing.clone() })?;
        let _quiet = core.quiet.capture()?;
        core.timeline.synchronize()?;
        // Ended in any case, by an error or a panic, too; what a failed run left is thrown away.
        let capture = renderdoc.begin(&core.device.instance, name)?;
        let value = work()?;
        core.timeline.synchronize()?;
        Ok((value, capture.end()?))
    }

    /// Frees the memory that the pool caches, with staging memory, and returns the number of bytes. The driver gets
    /// back all but one memory object for each kind of memory, of 8 to 32 MiB, and those that blocks in use share with
    /// what was freed. Pipelines that no plan and no work in flight uses are freed, too; the next user of one makes it
    /// again.
    pub fn trim(&self) -> u64 {
        if let Err(Error::Forked { .. }) = self.core.timeline.reclaim() {
            return 0;
        }
        self.core.pipelines.trim();
        self.core.pool.trim()
    }

    /// Counts of its work so far, and the pool's contents. (All zero in a forked process, as after [`Error::Forked`].)
    pub fn stats(&self) -> Stats {
        if process::is_forked() {
            return Stats::default();
        }
        let load =
            |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
        let (counters, grown) = (&self.core.counters, &self.core.device.grown);
        let _ = self.core.timeline.reclaim();
        Stats {
            submissions: load(&counters.submissions),
            dispatches: load(&counters.dispatches),
            barriers: load(&counters.barriers),
            bytes_up: load(&counters.bytes_up),
            bytes_down: load(&counters.bytes_down),
            bytes_moved: load(&counters.bytes_moved),
            temporaries: load(&counters.temporaries),
            temporary_bytes: load(&counters.temporary_bytes),
            imported_bytes: self.core.pool.imported_bytes(),
            in_flight: self.core.timeline.in_flight(),
            pool: self.core.pool.stats(),
            pipelines: self.core.pipelines.stats(),
            commands: CommandStats {
                encoded: load(&counters.encoded),
                plan_encoded: load(&counters.plan_encoded),
                plan_copies: load(&counters.plan_copies),
                command_pools: load(&grown.command_pools),
                descriptor_pools: load(&grown.descriptor_pools),
                query_pools: load(&grown.query_pools),
            },
        }
    }

    /// The progress of prewarming.
    pub fn prewarm_status(&self) -> PrewarmStatus {
        self.background().map(BackgroundThread::status).unwrap_or_default()
    }

    /// Waits until prewarming in the background is finished.
    pub fn wait_prewarmed(&self) -> PrewarmStatus {
        self.background().map(BackgroundThread::wait_finished).unwrap_or_default()
    }

    /// The background work, in the process that has it.
    fn background(&self) -> Option<&BackgroundThread> {
        self.core.background.get().filter(|_| !process::is_forked())
    }

    /// Every kernel variant, and which ones this accelerator uses.
    pub fn variants(&self) -> Vec<VariantInfo> {
        self.core.catalog.variants()
    }

    /// The pipeline cache's file, and whether it was loaded from an earlier process.
    pub fn pipeline_cache(&self) -> Option<(&std::path::Path, bool)> {
        let cache = &self.core.pipelines.cache;
        cache.file().map(|file| (file, cache.was_loaded()))
    }

    /// Why nothing is kept on disk, if the default cache folder could not be used.
    pub fn cache_problem(&self) -> Option<&str> {
        self.core.cache_problem.as_deref()
    }

    /// Messages of the validation layer since the last call; empty without [`Config::validation`], or if
    /// [`Config::on_message`] receives them: then this returns once that function has received all earlier messages.
    pub fn validation_messages(&self) -> Vec<String> {
        if process::is_forked() {
            return Vec::new();
        }
        self.core.device.take_messages()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_loss_the_global_accelerator_is_a_new_one() {
        let first = Accelerator::global().unwrap();
        let tensor = first.upload(&[1.0f32], [1]).unwrap();
        first.core.timeline.lose();
        assert!(matches!(first.begin_recording(), Err(Error::DeviceLost { .. })));
        let second = Accelerator::global().unwrap();
        assert!(!Arc::ptr_eq(&first.core, &second.core));
        let own = second.upload(&[2.0f32], [1]).unwrap();
        assert!(matches!(second.run(|r| r.add(&own, &tensor)), Err(Error::ForeignTensor { .. })));
        assert_eq!(second.run(|r| r.add(&own, &own)).unwrap().read::<f32>().unwrap(), [4.0]);
        // The same again, as long as it lives.
        assert!(Arc::ptr_eq(&Accelerator::global().unwrap().core, &second.core));
        drop((first, tensor));
    }
}
