//! Profiles of whole runs, and what is told as dictionaries.

use std::sync::Mutex;

use pyo3::prelude::*;
use tidemill::profile::Profiling;

use crate::errors::{Failure, Result};
use crate::json;
use crate::recording::lock;

/// JSON as Python has it.
pub(crate) fn dict<'py>(py: Python<'py>, value: &serde_json::Value) -> Result<Bound<'py, PyAny>> {
    Ok(py.import("json")?.call_method1("loads", (value.to_string(),))?)
}

/// How submissions are profiled, by its name.
pub(crate) fn mode(name: &str) -> Result<Profiling> {
    match name {
        "off" => Ok(Profiling::Off),
        "timeline" => Ok(Profiling::Timeline),
        "isolated" => Ok(Profiling::Isolated),
        other => Err(Failure::parameter(format!(
            "profiling is {other:?}; take \"off\", \"timeline\" or \"isolated\""
        ))),
    }
}

/// A run that is being profiled: the `with` block of `gpu.begin_profiling(...)`. Its end waits for everything
/// submitted.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Session {
    session: Mutex<Option<tidemill::profile::Session>>,
    run: Mutex<Option<Py<Run>>>,
}

impl Session {
    pub(crate) fn new(session: tidemill::profile::Session) -> Session {
        Session { session: Mutex::new(Some(session)), run: Mutex::new(None) }
    }
}

#[pymethods]
impl Session {
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Ends the session; after an exception discards it.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        if !kind.is_none() {
            drop(lock(&self.session)?.take());
        } else if lock(&self.session)?.is_some() {
            self.finish(py)?;
        }
        Ok(false)
    }

    /// Waits for everything submitted, ends the session and gives its figures.
    fn finish(&self, py: Python<'_>) -> Result<Py<Run>> {
        let session = lock(&self.session)?.take();
        let session = session.ok_or_else(|| Failure::closed("the session has ended"))?;
        let run = py.detach(|| session.finish())?;
        let run = Py::new(py, Run { run })?;
        *lock(&self.run)? = Some(run.clone_ref(py));
        Ok(run)
    }

    /// The figures, once the session has ended.
    #[getter]
    fn run(&self, py: Python<'_>) -> Result<Option<Py<Run>>> {
        Ok(lock(&self.run)?.as_ref().map(|run| run.clone_ref(py)))
    }
}

/// Everything that was submitted between two moments, with times.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Run {
    run: tidemill::profile::Run,
}

#[pymethods]
impl Run {
    /// All figures as a dictionary. Times are nanoseconds; what is not known is `None`.
    fn json<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        dict(py, &json::run(&self.run))
    }

    /// A page for a browser.
    fn html(&self) -> String {
        self.run.html()
    }

    /// A trace for Perfetto or `chrome://tracing`.
    fn trace_json(&self) -> String {
        self.run.trace_json()
    }

    /// Fails with `ProfileError` if the run has figures that can't be true.
    fn check(&self) -> Result<()> {
        Ok(self.run.check()?)
    }

    /// A table: a row for each kernel.
    fn __str__(&self) -> String {
        self.run.to_string()
    }
}

/// Several runs as one page for a browser.
#[pyfunction]
pub(crate) fn html_report(title: &str, runs: Vec<Bound<'_, Run>>) -> String {
    let runs: Vec<_> = runs.iter().map(|run| &run.get().run).collect();
    tidemill::profile::html_report(title, &runs)
}
