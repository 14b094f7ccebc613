//! Products and convolutions. What follows one, elementwise, becomes its epilogue by itself.

use pyo3::prelude::*;
use tidemill::{Conv2d, Matmul};

use crate::errors::Result;
use crate::operand::{Operand, Value};
use crate::recording::{Recording, value};

#[pymethods]
impl Recording {
    /// alpha * lhs @ rhs, plus beta * accumulate if that is given; of transposed operands if so. Dimensions in front
    /// are batches.
    #[pyo3(signature = (lhs, rhs, *, transpose_lhs=false, transpose_rhs=false, alpha=1.0, accumulate=None, beta=1.0))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn matmul(
        slf: &Bound<'_, Self>,
        lhs: Operand<'_>,
        rhs: Operand<'_>,
        transpose_lhs: bool,
        transpose_rhs: bool,
        alpha: f32,
        accumulate: Option<Operand<'_>>,
        beta: f32,
    ) -> Result<Value> {
        let mut how = Matmul::new();
        if transpose_lhs {
            how = how.transpose_lhs();
        }
        if transpose_rhs {
            how = how.transpose_rhs();
        }
        if alpha != 1.0 {
            how = how.alpha(alpha);
        }
        if let Some(accumulate) = &accumulate {
            how = how.accumulate(beta, accumulate.get());
        }
        value(slf, |r| Ok(r.matmul_with(lhs.get(), rhs.get(), how)?))
    }

    /// The convolution of images [image, channel, y, x] with weights [channel of the result, channel in its group, y,
    /// x].
    #[pyo3(signature = (images, weights, *, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1))]
    fn conv2d(
        slf: &Bound<'_, Self>,
        images: Operand<'_>,
        weights: Operand<'_>,
        stride: (usize, usize),
        padding: (usize, usize),
        dilation: (usize, usize),
        groups: usize,
    ) -> Result<Value> {
        let how = Conv2d::new().stride(stride.into()).padding(padding.into());
        let how = how.dilation(dilation.into()).groups(groups);
        value(slf, |r| match &weights {
            Operand::Value(weights) => Ok(r.conv2d_with(images.get(), weights.get().value, how)?),
            Operand::Tensor(weights) => Ok(r.conv2d_with(images.get(), &weights.get().tensor, how)?),
        })
    }
}
