//! Tensors, from and to NumPy.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{ArrayElement, Extents, array, dtype_name, new_array, with_type};
use crate::errors::Result;

/// A dense, row-major array in device memory. Operations never change one, except `update` and `assign`; `write` does,
/// and what was recorded before sees the old contents.
#[pyclass(frozen, module = "tidemill")]
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) tensor: tidemill::Tensor,
}

impl Tensor {
    pub(crate) fn new(tensor: tidemill::Tensor) -> Tensor {
        Tensor { tensor }
    }
}

#[pymethods]
impl Tensor {
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.shape().dims())
    }

    /// NumPy's name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        dtype_name(self.tensor.dtype())
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.tensor.size_bytes()
    }

    /// Whether its contents are still in the program's own memory, as `import_bytes` left them.
    #[getter]
    fn is_imported(&self) -> bool {
        self.tensor.is_imported()
    }

    /// The contents as a new array, which owns them. Waits for the submission that writes them, and for nothing else.
    fn numpy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let tensor = &self.tensor;
        with_type!(tensor.dtype(), T => new_array(py, tensor.shape(), |data: &mut [T]| tensor.read_into(data)))
    }

    /// The one element, as a number of Python.
    fn item<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.numpy(py)?.call_method0("item")?)
    }

    /// The contents as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.numpy(py)?.call_method0("tolist")?)
    }

    /// Overwrites the contents with an array of the same type and as many elements. Does not wait for what uses the old
    /// ones: they stay as they are for it.
    fn write(&self, data: &Bound<'_, PyAny>) -> Result<()> {
        let (tensor, py) = (&self.tensor, data.py());
        let to = if data.hasattr("dtype")? { None } else { Some(tensor.dtype()) };
        let (data, dtype, _) = array(data, to)?;
        with_type!(dtype, T => {
            let elements = T::elements(&data)?;
            Ok(py.detach(|| tensor.write(&elements))?)
        })
    }

    /// The same contents with another shape of as many elements; nothing is copied.
    fn reshape(&self, shape: Extents) -> Result<Tensor> {
        Ok(Tensor::new(self.tensor.reshape(shape.shape("reshape")?)?))
    }

    /// For `numpy.asarray`: a new array.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(crate::errors::Failure::parameter(
                "__array__: the contents are in device memory, and an array of them is a copy".to_owned(),
            ));
        }
        let array = self.numpy(py)?;
        match dtype {
            Some(dtype) => Ok(array.call_method1("astype", (dtype,))?),
            None => Ok(array),
        }
    }

    /// For `from_dlpack` of NumPy, PyTorch and others: a copy in the CPU's memory, which they own.
    #[pyo3(signature = (**how))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        how: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        Ok(self.numpy(py)?.call_method("__dlpack__", (), how)?)
    }

    /// The CPU: where `__dlpack__` puts the contents.
    fn __dlpack_device__(&self) -> (i32, i32) {
        const CPU: i32 = 1;
        (CPU, 0)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Tensor(shape={}, dtype={})", self.shape(py)?.repr()?, self.dtype()))
    }
}
