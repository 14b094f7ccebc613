//! Pipelines that are made on several threads at once, with somebody who watches and can end it.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use crate::error::{Error, Result};
use crate::ir::command::Lowered;
use crate::ir::pipeline_key::PipelineKey;
use crate::runtime::pipelines::Pipelines;
use crate::vk::pipeline::Pipeline;

/// The most threads that make pipelines for one caller: drivers' compilers take tens of megabytes each.
const MOST_THREADS: usize = 8;

/// How far [`Recording::prepare`](crate::Recording::prepare) and [`Plan::prepare`](crate::Plan::prepare) have come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PrepareProgress {
    /// Pipelines that are ready, those that were there before among them.
    pub ready: usize,
    /// Pipelines that are needed.
    pub total: usize,
    /// Since the call.
    pub elapsed: Duration,
}

/// The callback for every pipeline.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(PrepareProgress) -> ControlFlow<()>;

/// The argument of the callback.
pub(crate) struct Told<'a> {
    watch: Watch<'a>,
    ready: usize,
    total: usize,
    begun: Instant,
}

impl<'a> Told<'a> {
    pub(crate) fn new(watch: Watch<'a>, ready: usize, total: usize) -> Told<'a> {
        Told { watch, ready, total, begun: Instant::now() }
    }

    /// An error if that is enough.
    pub(crate) fn tell(&mut self) -> Result<()> {
        let &mut Told { ready, total, begun, .. } = self;
        match (self.watch)(PrepareProgress { ready, total, elapsed: begun.elapsed() }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled { op: "prepare", ready, total }),
        }
    }

    pub(crate) fn one_more(&mut self) -> Result<()> {
        self.ready += 1;
        self.tell()
    }
}

/// The pipelines of commands, each once, in the order of their first use.
pub(crate) fn needed(lowered: &Lowered) -> Vec<&PipelineKey> {
    let mut seen = FxHashSet::default();
    let keys = lowered.commands.iter().filter_map(|command| command.action.pipeline());
    keys.filter(|key| seen.insert(*key)).collect()
}

impl Pipelines {
    /// Makes those that are not there yet, on several threads, and gives all of them. After an error, what has been
    /// made stays.
    pub(crate) fn make_all(&self, keys: &[&PipelineKey]) -> Result<Vec<Arc<Pipeline>>> {
        let missing: Vec<&PipelineKey> = keys.iter().copied().filter(|key| !self.has(key)).collect();
        let go_on = &mut |_: PrepareProgress| ControlFlow::Continue(());
        self.make_missing(&missing, &mut Told::new(go_on, 0, missing.len()))?;
        keys.iter().map(|key| self.make(key)).collect()
    }

    /// How many threads make this many pipelines.
    pub(crate) fn threads(&self, pipelines: usize) -> usize {
        if self.device().info.workarounds.one_pipeline_at_a_time {
            return 1;
        }
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        cores.clamp(2, MOST_THREADS).min(pipelines)
    }

    pub(crate) fn make_missing(&self, missing: &[&PipelineKey], told: &mut Told<'_>) -> Result<()> {
        let threads = self.threads(missing.len());
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (made, each) = mpsc::channel();
        let work = |made: mpsc::Sender<Result<()>>| {
            while let Some(key) = missing.get(next.fetch_add(1, Ordering::Relaxed))
                && !stop.load(Ordering::Relaxed)
                && made.send(self.make(key).map(drop)).is_ok()
            {}
        };
        thread::scope(|scope| {
            if threads > 1 {
                for _ in 0..threads {
                    let (work, made) = (&work, made.clone());
                    let thread = thread::Builder::new().name("tidemill pipelines".to_owned());
                    // One that can't be had leaves its part to the others.
                    let _ = thread.spawn_scoped(scope, move || work(made));
                }
            }
            drop(made);
            for result in each {
                if let Err(error) = result.and_then(|()| told.one_more()) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            // Where there are no threads, all of it is left.
            let rest = next.load(Ordering::Relaxed).min(missing.len());
            missing[rest..].iter().try_for_each(|key| self.make(key).and_then(|_| told.one_more()))
        })
    }
}
