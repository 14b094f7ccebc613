//! The accelerator.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyList, PyTuple};
use tidemill::device::DeviceChoice;
use tidemill::interop::HostMemory;
use tidemill::tune::TuneOptions;
use tidemill::{Config, Prewarm};

use crate::array::{ArrayElement, Extents, array, dtype, with_type};
use crate::errors::{Failure, Result};
use crate::json;
use crate::operand::Operand;
use crate::profile::{Session, dict, mode};
use crate::recording::{Recording, as_value, lock};
use crate::tensor::Tensor;

/// The device and all that exists once: pipelines, the pool of memory, the queue. `Accelerator.shared()` is the
/// process's own; this makes another one, with options.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Accelerator {
    /// `None` once it was closed.
    accelerator: Mutex<Option<tidemill::Accelerator>>,
}

impl Accelerator {
    fn of(accelerator: tidemill::Accelerator) -> Accelerator {
        Accelerator { accelerator: Mutex::new(Some(accelerator)) }
    }

    fn get(&self) -> Result<tidemill::Accelerator> {
        Ok(lock(&self.accelerator)?.clone().ok_or(tidemill::Error::Closed)?)
    }
}

/// When pipelines are made ahead, by its name.
fn prewarm(name: &str) -> Result<Prewarm> {
    match name {
        "background" => Ok(Prewarm::Background),
        "blocking" => Ok(Prewarm::Blocking),
        "off" => Ok(Prewarm::Off),
        other => Err(Failure::parameter(format!(
            "prewarm is {other:?}; take \"background\", \"blocking\" or \"off\""
        ))),
    }
}

#[pymethods]
impl Accelerator {
    /// An accelerator with options:
    ///
    /// - `device`: an index, a kind ("discrete", "integrated", "cpu", ...) or a part of the device's name;
    /// - `validation`: calls of Vulkan are checked, and `validation_messages` has what is found;
    /// - `profiling`: "off", "timeline" or "isolated"; `fusion`: whether operations are fused;
    /// - `prewarm`: when pipelines are made ahead: "background", "blocking" or "off";
    /// - `pool_cap`: the most bytes that tensors may take; `max_in_flight`: the most submissions;
    /// - `cache`: whether files are kept between runs, `cache_dir`: where, `application`: for which program;
    /// - `tuned`: whether what `tune` found is used; `variants`: kernels by family.
    #[new]
    #[pyo3(signature = (*, device=None, validation=None, labels=None, profiling=None, fusion=true, prewarm=None,
        pool_cap=None, max_in_flight=None, cache=true, cache_dir=None, application=None, tuned=true, variants=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        device: Option<Bound<'_, PyAny>>,
        validation: Option<bool>,
        labels: Option<bool>,
        profiling: Option<&str>,
        fusion: bool,
        prewarm: Option<&str>,
        pool_cap: Option<u64>,
        max_in_flight: Option<usize>,
        cache: bool,
        cache_dir: Option<PathBuf>,
        application: Option<&str>,
        tuned: bool,
        variants: Option<HashMap<String, String>>,
    ) -> Result<Accelerator> {
        let mut config = Config::new().fusion(fusion).tuned(tuned);
        if let Some(device) = device {
            config = config.device(DeviceChoice::parse(&device.str()?.to_string()));
        }
        if let Some(on) = validation {
            config = config.validation(on);
        }
        if let Some(on) = labels {
            config = config.labels(on);
        }
        if let Some(name) = profiling {
            config = config.profiling(mode(name)?);
        }
        if let Some(name) = prewarm {
            config = config.prewarm(self::prewarm(name)?);
        }
        if let Some(bytes) = pool_cap {
            config = config.pool_cap(bytes);
        }
        if let Some(submissions) = max_in_flight {
            config = config.max_in_flight(submissions);
        }
        if let Some(folder) = cache_dir {
            config = config.cache_dir(folder);
        }
        if let Some(name) = application {
            config = config.application(name);
        }
        if !cache {
            config = config.no_cache();
        }
        for (family, variant) in variants.into_iter().flatten() {
            config = config.variant(&family, &variant);
        }
        Ok(Accelerator::of(py.detach(|| tidemill::Accelerator::new(&config))?))
    }

    /// The process's own accelerator, on the best device there is; made by the first call.
    #[staticmethod]
    fn shared(py: Python<'_>) -> Result<Accelerator> {
        Ok(Accelerator::of(py.detach(tidemill::Accelerator::global)?))
    }

    /// A tensor with a copy of an array, a list or a number. Python's own numbers become float32 and int32; arrays of
    /// types that tensors do not have are converted only if `dtype` says so.
    #[pyo3(signature = (data, dtype=None))]
    fn upload(&self, data: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>) -> Result<Tensor> {
        let (gpu, py) = (self.get()?, data.py());
        let (data, dtype, shape) = array(data, dtype.map(self::dtype).transpose()?)?;
        with_type!(dtype, T => {
            let elements = T::elements(&data)?;
            Ok(Tensor::new(py.detach(|| gpu.upload(&elements, shape))?))
        })
    }

    /// A tensor with a copy of anything that has `__dlpack__`, in the CPU's memory.
    #[pyo3(name = "from_dlpack")]
    fn upload_dlpack(&self, data: &Bound<'_, PyAny>) -> Result<Tensor> {
        let array = data.py().import("numpy")?.call_method1("from_dlpack", (data,))?;
        self.upload(&array, None)
    }

    /// A tensor on a `bytes` object, from a byte of it on: without a copy where the device, the driver and the address
    /// allow it (`is_imported` tells), and with one otherwise. The object is kept as long as the device needs it.
    #[pyo3(signature = (data, shape, dtype, offset=0))]
    fn import_bytes(
        &self,
        py: Python<'_>,
        data: PyBackedBytes,
        shape: Extents,
        dtype: &Bound<'_, PyAny>,
        offset: usize,
    ) -> Result<Tensor> {
        let (gpu, shape, dtype) = (self.get()?, shape.shape("import_bytes")?, self::dtype(dtype)?);
        let memory = HostMemory::new(data);
        let (tensor, _) = py.detach(|| gpu.import_or_upload(&memory, offset, shape, dtype))?;
        Ok(Tensor::new(tensor))
    }

    /// A tensor of zeros.
    #[pyo3(signature = (shape, dtype=None))]
    fn zeros(&self, py: Python<'_>, shape: Extents, dtype: Option<&Bound<'_, PyAny>>) -> Result<Tensor> {
        let (gpu, shape) = (self.get()?, shape.shape("zeros")?);
        let dtype = dtype.map(self::dtype).transpose()?.unwrap_or(tidemill::DType::F32);
        with_type!(dtype, T => Ok(Tensor::new(py.detach(|| gpu.zeros::<T>(shape))?)))
    }

    /// A tensor without contents: to be written, or to be bound as a plan's output.
    #[pyo3(signature = (shape, dtype=None))]
    fn empty(&self, py: Python<'_>, shape: Extents, dtype: Option<&Bound<'_, PyAny>>) -> Result<Tensor> {
        let (gpu, shape) = (self.get()?, shape.shape("empty")?);
        let dtype = dtype.map(self::dtype).transpose()?.unwrap_or(tidemill::DType::F32);
        Ok(Tensor::new(py.detach(|| gpu.empty(shape, dtype))?))
    }

    /// Begins a recording: `with gpu.recording() as r:`.
    fn recording(&self, py: Python<'_>) -> Result<Recording> {
        let gpu = self.get()?;
        Ok(Recording::new(py.detach(|| gpu.begin_recording())?))
    }

    /// Records what a function does with a recording, submits it, and keeps what the function gives: a value, or
    /// several.
    fn run<'py>(&self, record: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let py = record.py();
        let recording = Bound::new(py, self.recording(py)?)?;
        let given = record.call1((&recording,))?;
        let keep = |x: Operand<'_>| -> Result<Tensor> {
            recording.get().with(|r| Ok(Tensor::new(r.keep(as_value(r, &x)?)?)))
        };
        let kept = if let Ok(one) = given.extract::<Operand<'_>>() {
            Bound::new(py, keep(one)?)?.into_any()
        } else {
            let several: Vec<Operand<'_>> = given.extract()?;
            let kept = several.into_iter().map(keep).collect::<Result<Vec<_>>>()?;
            PyTuple::new(py, kept)?.into_any()
        };
        recording.get().submit(py)?;
        Ok(kept)
    }

    /// Profiles everything that is submitted in a `with` block. One session at a time.
    #[pyo3(signature = (name, mode="timeline"))]
    fn begin_profiling(&self, name: &str, mode: &str) -> Result<Session> {
        Ok(Session::new(self.get()?.begin_profiling(name, self::mode(mode)?)?))
    }

    /// Waits until everything submitted is done.
    fn synchronize(&self, py: Python<'_>) -> Result<()> {
        let gpu = self.get()?;
        Ok(py.detach(|| gpu.synchronize())?)
    }

    /// Waits for all work, and closes: calls on it fail from then on. `StillInUseError` says how much of it is still
    /// there.
    fn close(&self, py: Python<'_>) -> Result<()> {
        let taken = lock(&self.accelerator)?.take();
        let gpu = taken.ok_or(tidemill::Error::Closed)?;
        Ok(py.detach(|| gpu.close())?)
    }

    /// Frees the memory that the pool keeps for later, and says how many bytes that was.
    fn trim(&self, py: Python<'_>) -> Result<u64> {
        let gpu = self.get()?;
        Ok(py.detach(|| gpu.trim()))
    }

    /// The device: name, kind, driver, limits.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        dict(py, &json::device(self.get()?.device()))
    }

    /// What it has done so far: submissions, dispatches, barriers, bytes, pool, pipelines.
    fn stats<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        dict(py, &json::stats(&self.get()?.stats()))
    }

    /// What the device can do in practice. Measured when first asked for (some tenths of a second), then kept, on disk
    /// too.
    fn peaks<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let gpu = self.get()?;
        dict(py, &json::peaks(&py.detach(|| gpu.peaks())?))
    }

    /// The kernels of each family, and which is used for what.
    fn variants<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        dict(py, &json::variants(&self.get()?.variants()))
    }

    /// Measures the variants of each family (or of those that are named) on this device, and uses the best from now on;
    /// for so many seconds at most.
    #[pyo3(signature = (families=None, seconds=None))]
    fn tune<'py>(
        &self,
        py: Python<'py>,
        families: Option<Vec<String>>,
        seconds: Option<f64>,
    ) -> Result<Bound<'py, PyAny>> {
        let gpu = self.get()?;
        let mut options = TuneOptions::new();
        for family in families.into_iter().flatten() {
            options = options.family(&family);
        }
        if let Some(seconds) = seconds {
            let budget = Duration::try_from_secs_f64(seconds);
            let budget =
                budget.map_err(|why| Failure::parameter(format!("tune: seconds {seconds}: {why}")))?;
            options = options.budget(budget);
        }
        let tuned = py.detach(|| gpu.tune(&options, |_| std::ops::ControlFlow::Continue(())))?;
        dict(py, &json::tuning(&tuned))
    }

    /// Waits until every pipeline is made that is made ahead.
    fn wait_prewarmed(&self, py: Python<'_>) -> Result<()> {
        let gpu = self.get()?;
        py.detach(|| gpu.wait_prewarmed());
        Ok(())
    }

    /// What the validation layer has said since the last call.
    fn validation_messages(&self) -> Result<Vec<String>> {
        Ok(self.get()?.validation_messages())
    }

    /// Lets RenderDoc record what a function submits; gives what the function gives, and the path of the file.
    fn capture<'py>(&self, name: &str, work: &Bound<'py, PyAny>) -> Result<(Bound<'py, PyAny>, PathBuf)> {
        let mut failure = None;
        let captured = self.get()?.capture(name, || {
            work.call0().map_err(|error| {
                failure = Some(error);
                // Only says that there is a failure.
                tidemill::Error::Closed
            })
        });
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(captured?),
        }
    }

    fn __repr__(&self) -> Result<String> {
        Ok(format!("Accelerator({:?})", self.get()?.device().name))
    }
}

/// Every Vulkan device of the machine, with why it can't be used if so.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> Result<Bound<'_, PyAny>> {
    let devices = PyList::empty(py);
    for device in py.detach(tidemill::Accelerator::devices)? {
        devices.append(dict(py, &json::device(&device))?)?;
    }
    Ok(devices.into_any())
}
