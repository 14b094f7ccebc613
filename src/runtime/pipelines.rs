//! Pipelines by kernel and specialization. Users' go with their kernel; of the engine's own, this many are kept, those
//! used last. Command slots hold what they have bound, so none goes while work in flight or a plan uses it.

pub(crate) mod parallel;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use crate::error::{Error, KernelMismatch, Result};
use crate::ir::pipeline_key::{PipelineKey, Specialization};
use crate::runtime::pipeline_history::{self, History};
use crate::spirv::{BindingKind, Reflection};
use crate::vk::device::Device;
use crate::vk::kernel::{Kernel, KernelWatch};
use crate::vk::pipeline::{Pipeline, PipelineCache, Slot, SlotKind};

/// The most pipelines of the engine's own that are kept while nothing uses them: several networks' worth. On software
/// drivers each is some 0.4 MB of machine code.
const MOST: usize = 512;

#[derive(Debug, Default)]
struct Entry {
    made: OnceLock<Arc<Pipeline>>,
    /// Somebody has asked for it, other than to have it made ahead.
    used: AtomicBool,
    /// How many pipelines had been made when it was last asked for.
    last_use: AtomicU64,
    /// Held while the pipeline is being made, so that two who want the same wait for one.
    making: Mutex<()>,
}

impl Entry {
    /// Whether there is a pipeline, and nothing but this refers to it.
    fn is_idle(entry: &Arc<Entry>) -> bool {
        Arc::strong_count(entry) == 1 && entry.made.get().is_some_and(|made| Arc::strong_count(made) == 1)
    }
}

/// The pipelines of a kernel, which it takes along when it goes.
#[derive(Debug)]
struct OfKernel {
    kernel: KernelWatch,
    embedded: bool,
    entries: FxHashMap<Specialization, Arc<Entry>>,
}

/// How many pipelines there are, how many were made, and how long that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipelineStats {
    /// Pipelines made in this process.
    pub made: u64,
    /// The time spent making them.
    pub make_us: u64,
    /// Pipelines that are there: those of users' kernels that live, and at most 512 of the engine's own beside those
    /// that plans and work in flight use.
    pub live: usize,
    /// Pipelines that were let go: their kernel was dropped, others were used since, or
    /// [`trim`](crate::Accelerator::trim) was called.
    pub let_go: u64,
}

/// Pipelines that a recording or a plan had to have made, and the time that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipelineBuildStats {
    pub(crate) pipelines: u64,
    pub(crate) ns: u64,
}

/// The pipelines of an accelerator.
#[derive(Debug)]
pub(crate) struct Pipelines {
    /// By the kernel's number.
    kernels: RwLock<FxHashMap<u64, OfKernel>>,
    stats: Mutex<PipelineStats>,
    /// As `stats.made`: the clock by which pipelines age.
    made: AtomicU64,
    pub(crate) history: Mutex<History>,
    pub(crate) cache: PipelineCache,
    device: Arc<Device>,
}

impl Pipelines {
    pub(crate) fn new(device: &Arc<Device>, cache: PipelineCache, application: &str) -> Pipelines {
        let history = Mutex::new(History::open(cache.file(), &device.info.cache_key, application));
        Pipelines {
            kernels: RwLock::default(),
            stats: Mutex::default(),
            made: AtomicU64::new(0),
            history,
            cache,
            device: device.clone(),
        }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The pipeline to be used. If it is new it is made now, and with it, on several threads, what else the caller is
    /// going to ask for; that is counted.
    pub(crate) fn get<'k>(
        &self,
        key: &'k PipelineKey,
        built: &mut PipelineBuildStats,
        needed: impl FnOnce() -> Vec<&'k PipelineKey>,
    ) -> Result<Arc<Pipeline>> {
        let entry = self.entry(key);
        let first = !entry.used.load(Ordering::Relaxed) && !entry.used.swap(true, Ordering::Relaxed);
        let now = self.made.load(Ordering::Relaxed);
        if entry.last_use.load(Ordering::Relaxed) != now {
            entry.last_use.store(now, Ordering::Relaxed);
        }
        if let Some(used) = first.then(|| pipeline_history::Entry::of(key)).flatten() {
            self.history.lock().note(used);
        }
        if let Some(pipeline) = entry.made.get() {
            return Ok(pipeline.clone());
        }
        let begun = Instant::now();
        let mut missing = needed();
        missing.retain(|key| !self.has(key));
        let _made = self.make_all(&missing)?;
        built.pipelines += missing.len() as u64;
        built.ns += begun.elapsed().as_nanos() as u64;
        self.make_entry(key, &entry)
    }

    /// The pipeline, made ahead of its use if it is new.
    pub(crate) fn make(&self, key: &PipelineKey) -> Result<Arc<Pipeline>> {
        let entry = self.entry(key);
        match entry.made.get() {
            Some(pipeline) => Ok(pipeline.clone()),
            None => self.make_entry(key, &entry),
        }
    }

    fn entry(&self, key: &PipelineKey) -> Arc<Entry> {
        let id = key.kernel.id();
        let found =
            self.kernels.read().get(&id).and_then(|kernel| kernel.entries.get(&key.specialization).cloned());
        found.unwrap_or_else(|| {
            let mut kernels = self.kernels.write();
            let kernel = kernels.entry(id).or_insert_with(|| OfKernel {
                kernel: key.kernel.watch(),
                embedded: key.kernel.is_embedded(),
                entries: FxHashMap::default(),
            });
            kernel.entries.entry(key.specialization.clone()).or_default().clone()
        })
    }

    fn make_entry(&self, key: &PipelineKey, entry: &Entry) -> Result<Arc<Pipeline>> {
        let _making = entry.making.lock();
        if let Some(pipeline) = entry.made.get() {
            return Ok(pipeline.clone());
        }
        let begun = Instant::now();
        check_device(&key.kernel, &self.device)?;
        let slots = slots(&key.kernel)?;
        let pipeline =
            Arc::new(Pipeline::new(&self.device, &self.cache, &key.kernel, slots, &key.specialization)?);
        let mut stats = self.stats.lock();
        stats.made += 1;
        stats.make_us += begun.elapsed().as_micros() as u64;
        drop(stats);
        // What is new is what was used last, also if it was made ahead.
        entry.last_use.store(self.made.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let _ = entry.made.set(pipeline.clone());
        self.keep(MOST);
        Ok(pipeline)
    }

    /// Lets go of the pipelines of kernels that are gone, and of all but this many of the engine's own, as far as
    /// nothing uses them.
    fn keep(&self, most: usize) {
        let mut gone = Vec::new();
        {
            let mut kernels = self.kernels.write();
            kernels.retain(|_, kernel| {
                let stays = !kernel.kernel.is_gone();
                if !stays {
                    gone.extend(kernel.entries.drain().map(|(_, entry)| entry));
                }
                stays
            });
            let own = kernels.iter().filter(|(_, kernel)| kernel.embedded);
            let own = own.flat_map(|(id, kernel)| kernel.entries.iter().map(move |entry| (*id, entry)));
            let made = own.clone().filter(|(_, (_, entry))| entry.made.get().is_some()).count();
            if made > most {
                let idle = own.filter(|(_, (_, entry))| Entry::is_idle(entry));
                let mut idle: Vec<_> = idle
                    .map(|(id, (constants, entry))| {
                        (entry.last_use.load(Ordering::Relaxed), id, constants.clone())
                    })
                    .collect();
                idle.sort_unstable();
                for (_, id, constants) in idle.into_iter().take(made - most) {
                    gone.extend(kernels.get_mut(&id).and_then(|kernel| kernel.entries.remove(&constants)));
                }
            }
        }
        let pipelines = gone.iter().filter(|entry| entry.made.get().is_some()).count();
        self.stats.lock().let_go += pipelines as u64;
        // Destroyed here, outside the lock, or when the last command buffer that bound them is done.
        drop(gone);
    }

    /// Lets go of whatever nothing uses.
    pub(crate) fn trim(&self) {
        self.keep(0);
    }

    /// Whether the pipeline is there already.
    pub(crate) fn has(&self, key: &PipelineKey) -> bool {
        let kernels = self.kernels.read();
        let entry = kernels.get(&key.kernel.id()).and_then(|kernel| kernel.entries.get(&key.specialization));
        entry.is_some_and(|entry| entry.made.get().is_some())
    }

    /// Writes to disk what the next start can use.
    pub(crate) fn save(&self) {
        self.cache.save();
        History::save(&self.history);
    }

    pub(crate) fn stats(&self) -> PipelineStats {
        self.keep(MOST);
        let kernels = self.kernels.read();
        let entries = kernels.values().flat_map(|kernel| kernel.entries.values());
        let live = entries.filter(|entry| entry.made.get().is_some()).count();
        PipelineStats { live, ..*self.stats.lock() }
    }
}

/// The descriptor slots that a kernel's bindings ask for.
pub(crate) fn slots(kernel: &Kernel) -> Result<Vec<Slot>> {
    let refuse = |binding: u32, declared: String, given: &'static str| Error::KernelArguments {
        kernel: kernel.name().to_owned(),
        mismatch: KernelMismatch::Binding { binding, declared, given },
    };
    let bindings = &kernel.reflection().bindings;
    bindings
        .iter()
        .map(|b| {
            if b.set != 0 || b.count != 1 {
                let declared = format!("in set {} with {} descriptors", b.set, b.count);
                return Err(refuse(b.binding, declared, "one tensor in set 0"));
            }
            let kind = match b.kind {
                BindingKind::StorageBuffer { .. } => SlotKind::Storage,
                BindingKind::UniformBuffer { .. } => SlotKind::Uniform,
                BindingKind::StorageTexel { format } => match SlotKind::texel(format) {
                    Some(kind) => kind,
                    None => {
                        return Err(refuse(
                            b.binding,
                            b.kind.to_string(),
                            "a view in a stated 32-bit format",
                        ));
                    }
                },
                BindingKind::UniformTexel | BindingKind::Other(_) => {
                    return Err(refuse(
                        b.binding,
                        b.kind.to_string(),
                        "a storage buffer or storage texel buffer",
                    ));
                }
            };
            Ok(Slot { binding: b.binding, kind })
        })
        .collect()
}

/// Whether the device supports what the kernel needs; the error names what it lacks.
pub(crate) fn check_device(kernel: &Kernel, device: &Device) -> Result<()> {
    let reflection: &Reflection = kernel.reflection();
    let (limits, features) = (&device.info.limits, &device.info.features);
    let lacks = |needs: String| Error::KernelNeeds {
        kernel: kernel.name().to_owned(),
        needs,
        device: device.info.name.clone(),
    };
    for capability in &reflection.capabilities {
        let there = match capability.to_string().as_str() {
            "Float64" => features.float64,
            "Int64" => features.int64,
            "Float16" => features.float16,
            "Int16" => features.int16,
            "Int8" => features.int8,
            "StorageBuffer16BitAccess" => features.storage16,
            "StorageBuffer8BitAccess" => features.storage8,
            "StorageImageExtendedFormats" => features.extended_formats,
            "GroupNonUniformVote" => features.subgroup_vote,
            "GroupNonUniformArithmetic" => features.subgroup_arithmetic,
            "GroupNonUniformBallot" => features.subgroup_ballot,
            "GroupNonUniformShuffle" => features.subgroup_shuffle,
            "GroupNonUniformShuffleRelative" => features.subgroup_shuffle_relative,
            "GroupNonUniformClustered" => features.subgroup_clustered,
            "GroupNonUniformQuad" => features.subgroup_quad,
            // What every Vulkan 1.3 device has.
            "Shader" | "Matrix" | "ImageBuffer" | "GroupNonUniform" | "SampledBuffer" | "ImageQuery" => true,
            _ => {
                return Err(Error::KernelCapability {
                    kernel: kernel.name().to_owned(),
                    capability: capability.to_string(),
                });
            }
        };
        if !there {
            return Err(lacks(format!("the SPIR-V capability {capability}")));
        }
    }
    if kernel.counts_on_subgroup_size() && !device.info.has_known_subgroups() {
        let [least, most] = limits.subgroup_sizes;
        return Err(lacks(format!("subgroups of {}, not of {least} to {most}", limits.subgroup_size)));
    }
    if reflection.push_constant_bytes > limits.push_constant_bytes {
        return Err(lacks(format!("{} bytes of push constants", reflection.push_constant_bytes)));
    }
    let (mut storage, mut uniform, mut texel) = (0, 0, 0);
    for binding in &reflection.bindings {
        match binding.kind {
            BindingKind::StorageBuffer { .. } => storage += 1,
            BindingKind::UniformBuffer { .. } => uniform += 1,
            BindingKind::StorageTexel { .. } => texel += 1,
            BindingKind::UniformTexel | BindingKind::Other(_) => {}
        }
    }
    let counts = [
        (storage, limits.storage_bindings, "storage buffer"),
        (uniform, limits.uniform_bindings, "uniform buffer"),
        (texel, limits.texel_bindings, "storage texel"),
    ];
    match counts.into_iter().find(|(count, limit, _)| count > limit) {
        Some((count, _, name)) => Err(lacks(format!("{count} {name} bindings"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::modules::constants::Constants;
    use crate::kernels::modules::generate;
    use crate::runtime::accelerator::Accelerator;
    use crate::runtime::config::{Config, Prewarm};
    use crate::runtime::recording::{Recording, Value};

    type Op = fn(&Recording, Value) -> Result<Value>;

    #[test]
    fn as_many_of_the_engines_own_stay_as_is_promised() {
        let gpu = Accelerator::new(&Config::new().no_cache().prewarm(Prewarm::Off)).unwrap();
        let pipelines = &gpu.core().pipelines;
        for local_size in 1..=MOST as u32 + 20 {
            let kernel = Constants::<generate::File>::new(local_size).of(generate::Module::Only);
            pipelines.make(&gpu.core().catalog.pipeline(kernel).unwrap()).unwrap();
        }
        // Without a question for figures, which looks after them, too.
        let there: usize = pipelines.kernels.read().values().map(|kernel| kernel.entries.len()).sum();
        assert_eq!((there, pipelines.stats().let_go), (512, 20));
    }

    #[test]
    fn of_the_engines_own_those_used_last_stay() {
        let gpu = Accelerator::new(&Config::new().no_cache().prewarm(Prewarm::Off)).unwrap();
        let pipelines = &gpu.core().pipelines;
        let x = gpu.upload(&[1.0f32; 4], [4]).unwrap();
        let ops: [Op; 6] = [
            |r, v| r.neg(v),
            |r, v| r.abs(v),
            |r, v| r.sqrt(v),
            |r, v| r.floor(v),
            |r, v| r.ceil(v),
            |r, v| r.sign(v),
        ];
        let run = |op: usize| {
            let y = gpu.run(|r| {
                let v = r.reshape(&x, [4])?;
                ops[op](r, v)
            });
            y.unwrap().read::<f32>().unwrap();
        };
        let made = || pipelines.stats().made;
        for op in 0..6 {
            run(op);
            run(0);
        }
        assert_eq!((made(), pipelines.stats().live), (6, 6));
        pipelines.keep(3);
        assert_eq!((pipelines.stats().live, pipelines.stats().let_go), (3, 3));
        [0, 4, 5].into_iter().for_each(run);
        assert_eq!(made(), 6, "those used last, and the one that is used all the time");
        run(1);
        assert_eq!(made(), 7);
    }
}
