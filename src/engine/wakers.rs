//! Wakes the tasks that await submissions: a thread waits for the timeline in their stead.

use std::sync::Arc;
use std::task::Waker;
use std::thread::{Builder, JoinHandle};

use parking_lot::{Condvar, Mutex};

use super::core::Core;

/// The thread waits in steps of this: long enough to cost nothing, short enough for the end of a process.
const STEP_NS: u64 = 100_000_000;

/// What the thread and its owner share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Who is to be woken when which number is reached.
    waiting: Vec<(u64, Waker)>,
    /// Kept while somebody waits, so that the timeline is there to be waited for.
    core: Option<Arc<Core>>,
    stop: bool,
}

/// The owner's side. The thread is started when the first task waits, and stopped when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Wakers {
    /// Wakes the task once the number is reached or the device is lost; at once if there can be no thread.
    pub(crate) fn register(&self, core: &Arc<Core>, value: u64, waker: &Waker) {
        let mut state = self.shared.state.lock();
        match state.waiting.iter_mut().find(|(v, known)| *v == value && known.will_wake(waker)) {
            Some(_) => return,
            None => state.waiting.push((value, waker.clone())),
        }
        state.core.get_or_insert_with(|| core.clone());
        drop(state);
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            *thread = Builder::new().name("tidemill wakers".to_owned()).spawn(move || work(&shared)).ok();
        }
        if thread.is_none() {
            // The task polls until it is done, then.
            waker.wake_by_ref();
        }
        drop(thread);
        self.shared.changed.notify_one();
    }

    /// Stops the thread and waits for it. Whoever still waits is woken.
    pub(crate) fn stop(&self) {
        let mut state = self.shared.state.lock();
        state.stop = true;
        drop(state);
        self.shared.changed.notify_one();
        // The thread itself may hold the last reference to the accelerator for a moment, and comes by here then: so the
        // lock is not held while somebody waits for it.
        let other = self.thread.lock().take_if(|thread| thread.thread().id() != std::thread::current().id());
        if let Some(other) = other {
            let _ = other.join();
        }
    }
}

impl Drop for Wakers {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(shared: &Shared) {
    loop {
        let mut state = shared.state.lock();
        while state.waiting.is_empty() && !state.stop {
            shared.changed.wait(&mut state);
        }
        let core = state.core.clone().filter(|_| !state.stop);
        drop(state);
        // Nobody waits for less than the next number, so nobody is woken late.
        let reached = core.as_ref().map(|core| core.timeline.wait_for_next(STEP_NS));
        let mut state = shared.state.lock();
        let due: Vec<Waker> = match reached {
            Some(Ok(completed)) => state
                .waiting
                .extract_if(.., |(value, _)| *value <= completed)
                .map(|(_, waker)| waker)
                .collect(),
            // Lost, or the end: they find out for themselves.
            _ => state.waiting.drain(..).map(|(_, waker)| waker).collect(),
        };
        let released = if state.waiting.is_empty() { state.core.take() } else { None };
        let stop = state.stop;
        drop(state);
        due.into_iter().for_each(Waker::wake);
        // Outside the lock: these may be the last references.
        drop((core, released));
        if stop {
            return;
        }
    }
}
