//! Recordings: contexts of Python.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;
use tidemill::explain::Explanation;

use crate::array::dtype_name;
use crate::errors::{Failure, Result};
use crate::json;
use crate::operand::{Operand, Value};
use crate::plan::{Plan, Submission};
use crate::profile::{dict, mode};
use crate::tensor::Tensor;

/// What happens between `gpu.recording()` and the end of its `with` block: a list of operations, carried out as one
/// submission. An operation that fails leaves it as it was. A block that is left by an exception discards it.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Recording {
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Box<tidemill::Recording>),
    Submitted(tidemill::Submission),
    /// It is a plan, or was discarded.
    Ended,
}

/// A lock's contents. The interpreter is released while another thread has the lock, since that one may need it to go
/// on. A call that panicked inside has left them in an unknown state.
pub(crate) fn lock<T>(state: &Mutex<T>) -> Result<std::sync::MutexGuard<'_, T>> {
    let failed = |_| Failure::new("InternalError", "an earlier call on this object panicked".to_owned());
    Python::attach(|py| state.lock_py_attached(py)).map_err(failed)
}

impl Recording {
    pub(crate) fn new(recording: tidemill::Recording) -> Recording {
        Recording { state: Mutex::new(State::Open(Box::new(recording))) }
    }

    /// Does something with the open recording.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&tidemill::Recording) -> Result<T>) -> Result<T> {
        match &*lock(&self.state)? {
            State::Open(recording) => act(recording),
            _ => Err(ended()),
        }
    }

    /// Takes the open recording out.
    pub(crate) fn take(&self) -> Result<tidemill::Recording> {
        let mut state = lock(&self.state)?;
        match std::mem::replace(&mut *state, State::Ended) {
            State::Open(recording) => Ok(*recording),
            before => {
                *state = before;
                Err(ended())
            }
        }
    }

    pub(crate) fn submit(&self, py: Python<'_>) -> Result<Submission> {
        let recording = self.take()?;
        let submission = py.detach(|| recording.end_recording())?;
        *lock(&self.state)? = State::Submitted(submission.clone());
        Ok(Submission::new(submission))
    }

    fn explained(&self, show: impl FnOnce(&Explanation) -> String) -> Result<String> {
        self.with(|r| Ok(show(&r.explain()?)))
    }
}

/// What an operation gives.
pub(crate) fn value(
    recording: &Bound<'_, Recording>,
    record: impl FnOnce(&tidemill::Recording) -> Result<tidemill::Value>,
) -> Result<Value> {
    let value = recording.get().with(record)?;
    Ok(Value { recording: recording.clone().unbind(), value })
}

/// As [`value`], for operations that give two.
pub(crate) fn two_values(
    recording: &Bound<'_, Recording>,
    record: impl FnOnce(&tidemill::Recording) -> Result<[tidemill::Value; 2]>,
) -> Result<(Value, Value)> {
    let [first, second] = recording.get().with(record)?;
    let value = |value| Value { recording: recording.clone().unbind(), value };
    Ok((value(first), value(second)))
}

/// The operand as a value: a tensor becomes one without being copied.
pub(crate) fn as_value(r: &tidemill::Recording, operand: &Operand<'_>) -> Result<tidemill::Value> {
    match operand {
        Operand::Value(value) => Ok(value.get().value),
        Operand::Tensor(tensor) => {
            let tensor = &tensor.get().tensor;
            Ok(r.reshape(tensor, tensor.shape())?)
        }
    }
}

fn ended() -> Failure {
    Failure::closed("the recording has ended; gpu.recording() begins another one")
}

#[pymethods]
impl Recording {
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Submits what was recorded, and waits for nothing; after an exception discards it.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        let is_open = matches!(*lock(&self.state)?, State::Open(_));
        if is_open && kind.is_none() {
            self.submit(py)?;
        } else if is_open {
            drop(self.take()?);
        }
        Ok(false)
    }

    /// Ends the recording as one submission; waits for nothing. The end of a `with` block does it, too.
    fn end_recording(&self, py: Python<'_>) -> Result<Submission> {
        self.submit(py)
    }

    /// Ends the recording as a plan, which submits it as often as it is wanted.
    #[pyo3(name = "into_plan")]
    fn end_as_plan(&self, py: Python<'_>) -> Result<Plan> {
        let recording = self.take()?;
        Ok(Plan::new(py.detach(|| recording.into_plan())?))
    }

    /// The submission, once the recording has ended as one.
    #[getter]
    fn submission(&self) -> Result<Option<Submission>> {
        Ok(match &*lock(&self.state)? {
            State::Submitted(submission) => Some(Submission::new(submission.clone())),
            _ => None,
        })
    }

    /// A tensor as a value, so that operators can begin with it.
    fn of(slf: &Bound<'_, Self>, x: Operand<'_>) -> Result<Value> {
        value(slf, |r| as_value(r, &x))
    }

    /// Makes a value a tensor that outlives the recording. It has contents once the recording was submitted.
    fn keep(&self, x: Operand<'_>) -> Result<Tensor> {
        self.with(|r| Ok(Tensor::new(r.keep(as_value(r, &x)?)?)))
    }

    /// The extents of an operand.
    fn shape<'py>(&self, x: Operand<'py>, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        let shape = self.with(|r| Ok(r.shape(x.get())?))?;
        Ok(PyTuple::new(py, shape.dims())?)
    }

    /// The element type of an operand.
    fn dtype(&self, x: Operand<'_>) -> Result<&'static str> {
        self.with(|r| Ok(dtype_name(r.dtype(x.get())?)))
    }

    /// Compiles every pipeline that it needs, ahead of its end.
    fn prepare(&self, py: Python<'_>) -> Result<()> {
        let prepared = py.detach(|| {
            let state = self.state.lock().ok()?;
            let State::Open(recording) = &*state else { return None };
            Some(recording.prepare(|_| std::ops::ControlFlow::Continue(())))
        });
        Ok(prepared.ok_or_else(ended)??)
    }

    /// Profiles this recording in its own way, whatever the accelerator's is: "off", "timeline" or "isolated".
    fn profiling(&self, mode: &str) -> Result<()> {
        let mode = self::mode(mode)?;
        self.with(|r| {
            r.profiling(mode);
            Ok(())
        })
    }

    /// What will run if the recording ends now: what is fused, where barriers stand, what is stored.
    fn explain(&self) -> Result<String> {
        self.explained(Explanation::to_string)
    }

    /// The same as a dictionary.
    fn explain_json<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let explained = self.with(|r| Ok(json::explanation(&r.explain()?)))?;
        dict(py, &explained)
    }

    /// The same as a drawing, an SVG file.
    fn explain_svg(&self) -> Result<String> {
        self.explained(Explanation::to_svg)
    }

    /// The same as a graph for Graphviz.
    fn explain_dot(&self) -> Result<String> {
        self.explained(Explanation::to_dot)
    }
}
