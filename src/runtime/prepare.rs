//! Pipelines that a recording or a plan has made before they are needed.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::runtime::background::prepare;
use crate::runtime::pipelines::parallel::{PrepareProgress, needed};
use crate::runtime::plan::Plan;
use crate::runtime::recording::Recording;
use crate::schedule::compiled_graph::CompiledGraph;

impl Recording {
    /// Makes the pipelines that the recording needs as it is now, so that [`end_recording`](Recording::end_recording)
    /// and [`into_plan`](Recording::into_plan) have none to make: on several threads, with a word after each.
    ///
    /// `progress` is called for every pipeline that is ready, and can end the call by [`ControlFlow::Break`]. Then the
    /// recording is unchanged, and what has been made stays. The callback is called on this thread, at the beginning,
    /// too. Pipelines under way are finished first.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use std::ops::ControlFlow;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32; 64 * 64], [64, 64])?;
    /// let r = gpu.begin_recording()?;
    /// let y = r.matmul(&x, &x)?;
    /// let y = r.softmax(y, -1)?;
    /// let y = r.keep(y)?;
    /// r.prepare(|progress| {
    ///     println!("{} of {} after {:?}", progress.ready, progress.total, progress.elapsed);
    ///     ControlFlow::Continue(())
    /// })?;
    /// let plan = r.into_plan()?;
    /// # let _ = (plan, y);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled); [`Error::OutOfMemory`](crate::Error::OutOfMemory); what the
    /// driver says; [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn prepare(&self, mut progress: impl FnMut(PrepareProgress) -> ControlFlow<()>) -> Result<()> {
        self.core.open()?;
        let (graph, tensors) = {
            let state = self.state();
            (state.graph.clone(), state.leases.len())
        };
        let compiled = CompiledGraph::new(self.catalog(), self.core.fusion, graph, tensors)?;
        prepare(&self.core, &needed(&compiled.lowered), &mut progress)
    }
}

impl Plan {
    /// Has the driver compile what is left to compile before the first submission. The plan's pipelines were made with
    /// it, but some drivers compile at the first dispatch; on others there is nothing left. As [`Recording::prepare`],
    /// which is to be called before [`into_plan`](Recording::into_plan) where making pipelines takes the time.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// use std::ops::ControlFlow;
    /// use tidemill::Error;
    /// let gpu = tidemill::Accelerator::global()?;
    /// let x = gpu.upload(&[1.0f32; 1000], [1000])?;
    /// let r = gpu.begin_recording()?;
    /// let y = r.sum(&x, 0)?;
    /// let y = r.keep(y)?;
    /// let mut plan = r.into_plan()?;
    /// let cancelled = plan.prepare(|_| ControlFlow::Break(())).unwrap_err();
    /// assert!(matches!(cancelled, Error::Cancelled { .. }));
    /// plan.prepare(|_| ControlFlow::Continue(()))?;
    /// plan.submit()?.wait()?;
    /// # let _ = y;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled); [`Error::OutOfMemory`](crate::Error::OutOfMemory);
    /// [`Error::DeviceLost`](crate::Error::DeviceLost).
    pub fn prepare(&self, mut progress: impl FnMut(PrepareProgress) -> ControlFlow<()>) -> Result<()> {
        prepare(self.core(), &needed(self.lowered()), &mut progress)
    }
}
