//! Work that the host submits in command buffers of its own: who holds what until which point of the host's is reached.
//!
//! Order is no matter of this: the barriers on both sides of such work stand between it and whatever is submitted to
//! the queue before and after.

use smallvec::SmallVec;

use crate::error::Result;
use crate::runtime::pool::Lease;
use crate::schedule::compiled_graph::Usage;
use crate::vk::command::CommandSlot;
use crate::vk::raw::SemaphorePoint;

/// What was recorded into one command buffer of the host's.
#[derive(Debug)]
pub(crate) struct ExternalCommands {
    /// Reached when its execution is over.
    pub(crate) done: SemaphorePoint,
    /// Leases, since its position in the queue is unknown: what it reads must stay as it is.
    pub(crate) uses: Vec<(Lease, Usage)>,
    /// Has the descriptors; they are used for as long as the blocks are.
    pub(crate) _commands: CommandSlot,
}

/// All external commands that are not done.
#[derive(Debug, Default)]
pub(crate) struct ExternalInFlight(Vec<ExternalCommands>);

impl ExternalInFlight {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, work: ExternalCommands) {
        self.0.push(work);
    }

    /// When all of it is over.
    pub(crate) fn points(&self) -> SmallVec<[SemaphorePoint; 2]> {
        self.0.iter().map(|work| work.done).collect()
    }

    /// When whatever writes a block is over.
    pub(crate) fn points_writing(&self, lease: &Lease) -> SmallVec<[SemaphorePoint; 2]> {
        let writes = |work: &&ExternalCommands| {
            work.uses.iter().any(|(used, usage)| usage.writes && used.address() == lease.address())
        };
        self.0.iter().filter(writes).map(|work| work.done).collect()
    }

    /// Takes out what is over.
    pub(crate) fn take_done(
        &mut self,
        is_reached: impl Fn(SemaphorePoint) -> Result<bool>,
    ) -> Result<Vec<ExternalCommands>> {
        let mut done = Vec::new();
        let mut i = 0;
        while i < self.0.len() {
            if is_reached(self.0[i].done)? {
                done.push(self.0.swap_remove(i));
            } else {
                i += 1;
            }
        }
        Ok(done)
    }
}
