//! Submissions, and plans that make them.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::{Failure, Result};
use crate::json;
use crate::profile::{dict, mode};
use crate::tensor::Tensor;

/// Work that was handed to the device. Dropping it waits for nothing and loses nothing.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Submission {
    submission: tidemill::Submission,
}

impl Submission {
    pub(crate) fn new(submission: tidemill::Submission) -> Submission {
        Submission { submission }
    }
}

#[pymethods]
impl Submission {
    /// Waits until it is done; with a timeout in seconds, says whether it was done in time.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> Result<bool> {
        let Some(seconds) = timeout else {
            py.detach(|| self.submission.wait())?;
            return Ok(true);
        };
        let timeout = Duration::try_from_secs_f64(seconds);
        let timeout = timeout.map_err(|why| Failure::parameter(format!("wait: timeout {seconds}: {why}")))?;
        Ok(py.detach(|| self.submission.wait_timeout(timeout))?)
    }

    /// Whether it is done; waits for nothing.
    #[getter]
    fn is_complete(&self) -> Result<bool> {
        Ok(self.submission.is_complete()?)
    }

    /// Its place in the order of the accelerator's submissions.
    #[getter]
    fn number(&self) -> u64 {
        self.submission.number()
    }

    /// When each of its dispatches ran, as a dictionary; of a submission that was profiled, and is done.
    fn profile<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        dict(py, &json::profile(&self.submission.profile()?))
    }

    /// The same as a table.
    fn profile_table(&self) -> Result<String> {
        Ok(self.submission.profile()?.to_string())
    }
}

/// A recording that is kept, to be submitted again and again. It reads its tensors when it is submitted: what was
/// written to them since is seen.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Plan {
    plan: Mutex<tidemill::Plan>,
}

impl Plan {
    pub(crate) fn new(plan: tidemill::Plan) -> Plan {
        Plan { plan: Mutex::new(plan) }
    }

    /// Uses the plan without the interpreter, which another thread may need to give it back.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut tidemill::Plan) -> tidemill::Result<T> + Send,
    ) -> Result<T> {
        let done = py.detach(|| self.plan.lock().ok().map(|mut plan| act(&mut plan)));
        let panicked = || Failure::new("InternalError", "an earlier call on this plan panicked".to_owned());
        Ok(done.ok_or_else(panicked)??)
    }
}

#[pymethods]
impl Plan {
    /// Hands it to the device as one submission; waits for nothing.
    fn submit(&self, py: Python<'_>) -> Result<Submission> {
        Ok(Submission::new(self.with(py, tidemill::Plan::submit)?))
    }

    /// From now on `tensor` stands in the place of `recorded`, which was read or kept when the plan was recorded.
    fn bind(&self, py: Python<'_>, recorded: &Tensor, tensor: &Tensor) -> Result<()> {
        self.with(py, |plan| plan.bind(&recorded.tensor, &tensor.tensor))
    }

    /// Compiles every pipeline that it needs, ahead of its first submission.
    fn prepare(&self, py: Python<'_>) -> Result<()> {
        self.with(py, |plan| plan.prepare(|_| ControlFlow::Continue(())))
    }

    /// Profiles its submissions in their own way, whatever the accelerator's is: "off", "timeline" or "isolated".
    fn profiling(&self, py: Python<'_>, mode: &str) -> Result<()> {
        let mode = self::mode(mode)?;
        self.with(py, |plan| {
            plan.profiling(mode);
            Ok(())
        })
    }
}
