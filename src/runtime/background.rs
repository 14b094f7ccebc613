//! The background thread: warms pipelines while the queue is idle, and writes what the next start can use when that has
//! changed.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::ir::pipeline_key::PipelineKey;
use crate::runtime::commands::{BlockUse, Job};
use crate::runtime::core::Core;
use crate::runtime::pipelines::parallel::{Told, Watch};
use crate::vk::buffer::MemoryKind;
use crate::vk::command::Bound;
use crate::vk::exit::{self, ExitHook};

/// The queue must have been quiet for so long before the next pipeline is warmed: an application that has just
/// started gets its first results first.
const QUIET: Duration = Duration::from_millis(30);
/// Where an application is known, so much of background work is done for it: less than a second, with the pipeline that
/// is under way when it is over.
const WARM_BUDGET: Duration = Duration::from_millis(800);
/// How often the thread looks whether new pipelines should be written to disk.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);

/// How long a process that ends waits for the pipeline that is being made in the background; none is begun any more.
/// Vulkan has no way to stop a compilation, and drivers destroy their compilers at exit: a thread that is inside
/// crashes the process (`vk/exit.rs`). A driver that takes longer is left to itself, and the process ends.
const COMPILE_PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits for work that it has left in flight, and for messages to be heard.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);

/// How far prewarming has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrewarmStatus {
    /// Pipelines that are wanted warm: the catalog's, and those that earlier processes of the application have used on
    /// this device.
    pub catalog: usize,
    /// Those that are. Where there were such processes, the background is given a second, and the rest is made when it
    /// is used.
    pub warmed: usize,
    /// The time spent on them.
    pub elapsed_us: u64,
    /// Whether all that can be done is done.
    pub finished: bool,
}

/// The common part of the thread and its owner.
#[derive(Debug, Default)]
struct Shared {
    stop: Mutex<bool>,
    woken: Condvar,
    /// The thread uses the driver no more.
    ended: Mutex<bool>,
    at_end: Condvar,
    status: Mutex<PrewarmStatus>,
    finished: Condvar,
    /// Held by the thread while it has a handle of the accelerator.
    present: Mutex<()>,
}

/// The owner's side. Stops the thread when dropped.
#[derive(Debug)]
pub(crate) struct BackgroundThread {
    shared: Arc<Shared>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    _exit: Arc<ExitHook>,
}

/// How many pipelines are made at once: half of what a caller who waits would have. Drivers that compile at the first
/// dispatch have one queue to do it in.
fn batch(core: &Core) -> usize {
    match core.device.info.workarounds.compiles_at_dispatch {
        true => 1,
        false => (core.pipelines.threads(usize::MAX) / 2).max(1),
    }
}

/// Makes pipelines, and, if the driver may compile now, on drivers that do so at the first dispatch makes them do it.
/// Says how many are there then.
fn warm_batch(core: &Core, keys: &[PipelineKey], may_compile: bool) -> usize {
    let missing: Vec<&PipelineKey> = keys.iter().filter(|key| !core.pipelines.has(key)).collect();
    let failed = if may_compile && core.device.info.workarounds.compiles_at_dispatch {
        missing.iter().filter(|key| warm(core, key).is_err()).count()
    } else {
        // What fails is tried again by who needs it, and is an error there.
        let _ = core.pipelines.make_all(&missing);
        missing.iter().filter(|key| !core.pipelines.has(key)).count()
    };
    keys.len() - failed
}

/// What is to be warmed: what earlier processes of the application have used, and then what the catalog wants.
struct Wanted {
    keys: Vec<PipelineKey>,
    /// Whether there were such processes, also if they used none.
    is_known: bool,
}

impl Wanted {
    fn new(core: &Core) -> Result<Wanted> {
        let history = core.pipelines.history.lock();
        let (mut keys, is_known) = (history.remembered(&core.catalog), history.is_known());
        drop(history);
        keys.extend(core.catalog.prewarm()?);
        let mut known = FxHashSet::default();
        keys.retain(|key| known.insert(key.clone()));
        Ok(Wanted { keys, is_known })
    }

    /// Whether that is enough for the background. An application's first start warms the whole catalog; later ones have
    /// a second, of which what they have used before takes the first part.
    fn is_enough(&self, spent: Duration) -> bool {
        self.is_known && spent >= WARM_BUDGET
    }

    /// How many are made at once, of this many that could be: the budget is a core's time, which several threads would
    /// use up faster than the clock.
    fn at_once(&self, most: usize) -> usize {
        if self.is_known { 1 } else { most }
    }
}

/// Warms the whole catalog here and now.
pub(crate) fn warm_all(core: &Core) -> Result<PrewarmStatus> {
    let begun = Instant::now();
    let keys = Wanted::new(core)?.keys;
    let all: Vec<&PipelineKey> = keys.iter().collect();
    prepare(core, &all, &mut |_| ControlFlow::Continue(()))?;
    core.pipelines.save();
    let elapsed_us = begun.elapsed().as_micros() as u64;
    Ok(PrewarmStatus { catalog: keys.len(), warmed: keys.len(), elapsed_us, finished: true })
}

impl BackgroundThread {
    /// Starts the thread. With `status` the catalog is warm already, or is not to be warmed.
    pub(crate) fn start(core: &Arc<Core>, status: Option<PrewarmStatus>) -> BackgroundThread {
        let shared = Arc::new(Shared { status: Mutex::new(status.unwrap_or_default()), ..Shared::default() });
        let thread = Arc::new(Mutex::new(None));
        let (hook_shared, hook_thread, hook_core) = (shared.clone(), thread.clone(), Arc::downgrade(core));
        let exit = Arc::new(ExitHook::new(Arc::new(move || {
            hook_shared.ask_to_stop();
            if hook_shared.ends_within(COMPILE_PATIENCE) {
                stop(&hook_shared, &hook_thread);
            }
            if let Some(core) = hook_core.upgrade() {
                // A software driver must not be at work when its compiler goes. The validation layer makes some of its
                // globals in the middle of calls, and those go before this hook, unless it comes first for certain: it
                // can't be called then.
                if exit::is_certain() || !core.device.instance.is_validated() {
                    core.timeline.drain(EXIT_PATIENCE);
                }
                core.wakers.stop();
                core.device.instance.log.flush(Some(EXIT_PATIENCE));
                // Nothing of the device's is destroyed this late.
                std::mem::forget(core);
            }
        })));
        let (theirs, weak, wanted) = (shared.clone(), Arc::downgrade(core), status.is_none());
        // The thread may be the one to drop the accelerator: the end of the process waits for that, too.
        let their_exit = exit.clone();
        let spawned = std::thread::Builder::new().name("tidemill background".to_owned()).spawn(move || {
            work(&theirs, &weak, wanted);
            *theirs.ended.lock() = true;
            theirs.at_end.notify_all();
            drop(their_exit);
        });
        // Without a thread nothing is warmed or saved early; all still works.
        match spawned {
            Ok(handle) => *thread.lock() = Some(handle),
            Err(_) => {
                shared.status.lock().finished = true;
                *shared.ended.lock() = true;
            }
        }
        BackgroundThread { shared, thread, _exit: exit }
    }

    pub(crate) fn status(&self) -> PrewarmStatus {
        *self.shared.status.lock()
    }

    /// Waits until prewarming is finished.
    pub(crate) fn wait_finished(&self) -> PrewarmStatus {
        let mut status = self.shared.status.lock();
        while !status.finished {
            self.shared.finished.wait(&mut status);
        }
        *status
    }

    /// Does something while the thread has no handle of the accelerator; it finishes the pipeline it is at.
    pub(crate) fn while_away<R>(&self, act: impl FnOnce() -> R) -> R {
        let _away = self.shared.present.lock();
        act()
    }

    /// Stops the thread and waits for it; it finishes the pipeline it is at.
    pub(crate) fn stop(&self) {
        stop(&self.shared, &self.thread);
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn ask_to_stop(&self) {
        *self.stop.lock() = true;
        self.woken.notify_all();
    }

    /// Waits until the thread is done with the driver, but no longer than this; says whether it is.
    fn ends_within(&self, patience: Duration) -> bool {
        let mut ended = self.ended.lock();
        self.at_end.wait_while_for(&mut ended, |ended| !*ended, patience);
        *ended
    }
}

fn stop(shared: &Shared, thread: &Mutex<Option<JoinHandle<()>>>) {
    shared.ask_to_stop();
    // The thread itself may hold the last reference to the accelerator for a moment, and comes by here then: so the
    // lock is not held while somebody waits for it.
    let other = thread.lock().take_if(|thread| thread.thread().id() != std::thread::current().id());
    if let Some(other) = other {
        let _ = other.join();
    }
}

/// Sleeps, unless the owner wants an end; `true` then.
fn stopped_within(shared: &Shared, time: Duration) -> bool {
    let mut stop = shared.stop.lock();
    if !*stop {
        shared.woken.wait_for(&mut stop, time);
    }
    *stop
}

fn work(shared: &Shared, core: &Weak<Core>, wanted: bool) {
    if wanted {
        prewarm(shared, core);
    }
    shared.status.lock().finished = true;
    shared.finished.notify_all();
    while !stopped_within(shared, SAVE_INTERVAL) {
        let _present = shared.present.lock();
        let Some(core) = core.upgrade() else { return };
        core.pipelines.save();
    }
    if let Some(core) = core.upgrade() {
        core.pipelines.save();
    }
}

/// Runs a pipeline on nothing, so that drivers that compile at the first dispatch do it now.
fn warm(core: &Core, key: &PipelineKey) -> Result<()> {
    let pipeline = core.pipelines.make(key)?;
    let dummy = core.acquire(MemoryKind::Device, 256)?;
    let mut slot = core.timeline.take_slot()?;
    slot.begin()?;
    slot.bind_pipeline(&pipeline);
    let arguments =
        vec![Bound { buffer: &dummy.block().buffer, offset: 0, bytes: 256 }; pipeline.slots().len()];
    slot.bind_arguments(&pipeline, &arguments)?;
    slot.push_constants(&pipeline, &vec![0; key.kernel.reflection().push_constant_bytes as usize]);
    slot.dispatch([0, 1, 1]);
    slot.end()?;
    let value = core.timeline.submit(Job::plain(slot, vec![BlockUse::writing(dummy.hold())]))?;
    core.timeline.wait(value, u64::MAX).map(drop)
}

/// Makes pipelines, and, on drivers that compile at the first dispatch, has them compiled.
pub(crate) fn prepare(core: &Core, keys: &[&PipelineKey], watch: Watch<'_>) -> Result<()> {
    core.open()?;
    let compiles_at_dispatch = core.device.info.workarounds.compiles_at_dispatch;
    let (there, missing): (Vec<&PipelineKey>, Vec<_>) = keys.iter().partition(|key| core.pipelines.has(key));
    if compiles_at_dispatch {
        // Making them is a small part of it there, and no one can tell which ones the driver has compiled before.
        let mut told = Told::new(watch, 0, keys.len());
        told.tell()?;
        let _made = core.pipelines.make_all(keys)?;
        return keys.iter().try_for_each(|key| warm(core, key).and_then(|()| told.one_more()));
    }
    let mut told = Told::new(watch, there.len(), keys.len());
    told.tell()?;
    core.pipelines.make_missing(&missing, &mut told)
}

/// Warms the catalog, a few pipelines at a time, whenever the queue has been quiet.
fn prewarm(shared: &Shared, core: &Weak<Core>) {
    let present = shared.present.lock();
    let wanted = core.upgrade().and_then(|core| {
        let wanted = Wanted::new(&core).ok()?;
        core.pipelines.history.lock().note_first_start();
        let at_once = wanted.at_once(batch(&core));
        Some((wanted, at_once))
    });
    let Some((wanted, at_once)) = wanted else { return };
    drop(present);
    shared.status.lock().catalog = wanted.keys.len();
    let mut spent = Duration::ZERO;
    // The queue's last number that is known: a change means that somebody is at work.
    let mut seen = None;
    for keys in wanted.keys.chunks(at_once) {
        if wanted.is_enough(spent) {
            return;
        }
        loop {
            let present = shared.present.lock();
            let Some(core) = core.upgrade() else { return };
            let (last, idle) = core.timeline.last_and_idle();
            let quiet = core.quiet.try_hold();
            if quiet.is_some() && idle && seen == Some(last) {
                let begun = Instant::now();
                let warmed = warm_batch(&core, keys, exit::is_certain());
                let mut status = shared.status.lock();
                status.warmed += warmed;
                status.elapsed_us += begun.elapsed().as_micros() as u64;
                drop(status);
                spent += begun.elapsed();
                seen = Some(core.timeline.last_and_idle().0);
                if *shared.stop.lock() {
                    return;
                }
                break;
            }
            seen = Some(last);
            drop(quiet);
            drop(core);
            drop(present);
            if stopped_within(shared, QUIET) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_that_is_known_costs_a_second_at_the_most() {
        let wanted = |is_known| Wanted { keys: Vec::new(), is_known };
        assert!(!wanted(true).is_enough(Duration::ZERO));
        assert!(wanted(true).is_enough(Duration::from_secs(1)));
        assert!(
            !wanted(false).is_enough(Duration::from_secs(60)),
            "the first start warms all of the catalog"
        );
        assert_eq!((wanted(true).at_once(4), wanted(false).at_once(4)), (1, 4), "a second of one core");
    }

    /// As when a process ends while its last accelerator is dropped by the thread that warms pipelines.
    #[test]
    fn a_thread_that_drops_the_accelerator_is_waited_for_without_a_deadlock() {
        let (shared, thread) = (Arc::new(Shared::default()), Arc::new(Mutex::new(None)));
        let (theirs, handle) = (shared.clone(), thread.clone());
        *thread.lock() = Some(std::thread::spawn(move || {
            while !stopped_within(&theirs, Duration::from_secs(1)) {}
            // Until the owner waits for this thread.
            std::thread::sleep(Duration::from_millis(50));
            stop(&theirs, &handle);
        }));
        let (done, stopped) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            stop(&shared, &thread);
            let _ = done.send(());
        });
        stopped.recv_timeout(Duration::from_secs(20)).expect("the owner and its thread wait for each other");
    }
}
