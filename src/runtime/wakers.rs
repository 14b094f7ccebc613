//! Wakes the tasks that await submissions: a thread waits for the timeline in their stead.

use std::sync::Arc;
use std::task::Waker;
use std::thread::{Builder, JoinHandle};

use parking_lot::{Condvar, Mutex};

use crate::runtime::core::Core;

/// The thread waits in steps of this: long enough to cost nothing, short enough for the end of a process.
const STEP_NS: u64 = 100_000_000;

/// The common part of the thread and its owner.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A future that waits. It has one waker, that of its last poll, as futures do.
#[derive(Debug)]
struct Waiting {
    future: u64,
    value: u64,
    waker: Waker,
}

#[derive(Debug, Default)]
struct State {
    /// Wakers, and the number on the timeline at which each is woken.
    waiting: Vec<Waiting>,
    /// The number of the last future that waited.
    futures: u64,
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

/// Where a future waits, if it does. A clone is another future.
#[derive(Debug, Default)]
pub(crate) struct WaitingPlace(Option<u64>);

impl Clone for WaitingPlace {
    fn clone(&self) -> WaitingPlace {
        WaitingPlace::default()
    }
}

impl Wakers {
    /// Wakes the task once the number is reached or the device is lost; at once if there can be no thread. A future
    /// that waits already is woken by this waker only, from now on.
    pub(crate) fn register(&self, core: &Arc<Core>, place: &mut WaitingPlace, value: u64, waker: &Waker) {
        let mut state = self.shared.state.lock();
        if let Some(known) = state.waiting.iter_mut().find(|waiting| Some(waiting.future) == place.0) {
            let old =
                (!known.waker.will_wake(waker)).then(|| std::mem::replace(&mut known.waker, waker.clone()));
            drop(state);
            // The drop of a waker may run any code.
            drop(old);
            return;
        }
        state.futures += 1;
        let future = state.futures;
        place.0 = Some(future);
        state.waiting.push(Waiting { future, value, waker: waker.clone() });
        state.core.get_or_insert_with(|| core.clone());
        drop(state);
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            *thread = Builder::new().name("tidemill wakers".to_owned()).spawn(move || work(&shared)).ok();
        }
        let is_there = thread.is_some();
        drop(thread);
        if is_there {
            self.shared.changed.notify_one();
        } else {
            // The task polls until it is done, then.
            self.forget(place);
            waker.wake_by_ref();
        }
    }

    /// Forgets a future that does not wait any more.
    pub(crate) fn forget(&self, place: &mut WaitingPlace) {
        let Some(future) = place.0.take() else { return };
        let mut state = self.shared.state.lock();
        let found = state.waiting.iter().position(|waiting| waiting.future == future);
        let waiting = found.map(|i| state.waiting.swap_remove(i));
        // The thread may sleep and never see that nothing waits any more: the accelerator would stay for good.
        let released = if state.waiting.is_empty() { state.core.take() } else { None };
        drop(state);
        drop((waiting, released));
    }

    /// Stops the thread and waits for it. A task that still waits is woken.
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

impl Wakers {
    /// Lets go of the accelerator until somebody waits again.
    pub(crate) fn pause(&self) {
        self.stop();
        self.shared.state.lock().stop = false;
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
        // No task waits for less than the next number, so none is woken late.
        let reached = core.as_ref().map(|core| core.timeline.wait_for_next(STEP_NS));
        let mut state = shared.state.lock();
        let due: Vec<Waiting> = match reached {
            Some(Ok(completed)) => {
                state.waiting.extract_if(.., |waiting| waiting.value <= completed).collect()
            }
            // Lost, or the end: they find out for themselves.
            _ => state.waiting.drain(..).collect(),
        };
        let released = if state.waiting.is_empty() { state.core.take() } else { None };
        let stop = state.stop;
        drop(state);
        due.into_iter().for_each(|waiting| waiting.waker.wake());
        // Outside the lock: these may be the last references.
        drop((core, released));
        if stop {
            return;
        }
    }
}
